#!/bin/sh
# The package of Python as users get it: its wheel is installed, without the network, into an environment of its own that
# sees Debian's modules; its types are checked; each test_*.py runs. The source distribution is checked to have all files of
# the library; compiling it takes minutes.
# usage: PYTHON=… run.sh WHEEL SDIST KLDIVD
set -eu
python=${PYTHON:-python3} wheel=$1 sdist=$2
KLDIV_SERVER=$(realpath "$3"); export KLDIV_SERVER
here=$(dirname "$0")
environment=build/python-environment
unset PYTHONPATH KLDIV_LIBRARY

(cd "$here/../../../api/clients/python" && mypy --python-executable "$(command -v "$python")" --cache-dir=/dev/null)
rm -rf $environment
"$python" -m venv --system-site-packages $environment
pip="$environment/bin/python -m pip --quiet --disable-pip-version-check --no-cache-dir"
members() { (cd "$1" && find lib kldiv -name '*.[ch]' -o -name '*.map' -o -path 'kldiv/*.py' | sort); }
mkdir $environment/sources
tar xzf "$sdist" -C $environment/sources --strip-components 1
[ "$(members $environment/sources)" = "$(members build/pypi/source)" ]
$pip install --no-index --no-deps "$wheel"
for module in pandas torch sklearn fastapi polars pyarrow; do
    $environment/bin/python -c "import $module" 2>/dev/null || echo "NOT RUN: tests of the package of Python that need $module"
done
cd "$here"
exec "$OLDPWD/$environment/bin/python" -B -m unittest
