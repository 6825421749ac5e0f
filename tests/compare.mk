.PHONY: golden numbers peer bench
# numbers reads a hundred million random strings as strtod does, which takes minutes. The others
# need python3-torch, python3-numpy, python3-scipy, python3-mpmath; bench takes what it finds of them, python3-scipy, libsleef-dev,
# wrk, python3-fastapi and python3-uvicorn: the peers that our numbers are compared with.
golden:
	$(PYTHON) tests/golden/make.py > tests/golden/vectors.jsonl
	$(PYTHON) tests/golden/bodies.py > tests/golden/bodies.jsonl
	$(PYTHON) tests/golden/tables.py > tests/golden/tables.jsonl
	$(PYTHON) tests/golden/gradients.py > tests/golden/gradients.jsonl
	$(PYTHON) tests/golden/compositions.py > tests/golden/compositions.jsonl
	$(PYTHON) tests/golden/drift.py > tests/golden/drift.jsonl
numbers: $(B)/tests/all
	KLDIV_NUMBERS=100000000 $(B)/tests/all --filter 'numbers/random*'
peer: all
	$(PYTHON) tests/peer/random_requests.py build/kldivd
	$(PYTHON) -B tests/peer/random_monitors.py build/kldivd
bench: all $(BENCHES)
	sh tests/bench/run.sh
