#!/bin/sh
# With curl: JSON, and .npy files as a form.
set -eu
url=$1
call() { # a refusal goes to standard error
    response=$(curl -sS --fail-with-body "$@") || { echo "$response" >&2; exit 1; }
    echo "$response"
}
dir=$(mktemp -d); trap 'rm -r "$dir"' EXIT; cd "$dir"

call "$url?reduction=batchmean" \
    -d '{"input": [[-1, -0.5], [-2, -0.25]], "target": [[0.25, 0.75], [0.5, 0.5]]}'

# The bytes that numpy.save writes of float32 arrays of shape (2, 2).
header="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
{ printf '\223NUMPY\001\000\166\000%-117s\n' "$header"
  printf '\000\000\200\277\000\000\000\277\000\000\000\300\000\000\200\276'; } > input.npy
{ printf '\223NUMPY\001\000\166\000%-117s\n' "$header"
  printf '\000\000\200\076\000\000\100\077\000\000\000\077\000\000\000\077'; } > target.npy
call "$url" -F input=@input.npy -F target=@target.npy -F reduction=batchmean
