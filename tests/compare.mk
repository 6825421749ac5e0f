.PHONY: golden numbers peer bench
# numbers reads a hundred million random strings as strtod does, which takes minutes. The others
# need python3-torch, python3-numpy, python3-scipy, python3-mpmath; bench takes what it finds of them, python3-scipy, libsleef-dev,
# wrk, python3-fastapi and python3-uvicorn: the peers that our numbers are compared with.
golden:
	$(PYTHON) tests/tools/golden/make.py > tests/tools/golden/vectors.jsonl
	$(PYTHON) tests/tools/golden/bodies.py > tests/tools/golden/bodies.jsonl
	$(PYTHON) tests/tools/golden/tables.py > tests/tools/golden/tables.jsonl
	$(PYTHON) tests/tools/golden/gradients.py > tests/tools/golden/gradients.jsonl
	$(PYTHON) tests/tools/golden/compositions.py > tests/tools/golden/compositions.jsonl
	$(PYTHON) tests/tools/golden/drift.py > tests/tools/golden/drift.jsonl
	$(PYTHON) tests/tools/golden/rules.py > tests/tools/golden/rules.jsonl
	$(PYTHON) tests/tools/golden/zones.py > tests/tools/golden/zones.jsonl
	$(PYTHON) tests/tools/golden/months.py > tests/tools/golden/months.jsonl
	$(PYTHON) tests/tools/golden/volume.py > tests/tools/golden/volume.jsonl
numbers: $(B)/tests/all
	KLDIV_NUMBERS=100000000 $(B)/tests/all --filter 'numbers/random*'
peer: all
	$(PYTHON) tests/tools/peer/random_requests.py build/kldivd
	$(PYTHON) -B tests/tools/peer/random_monitors.py build/kldivd
BENCHES = $(patsubst tests/tools/bench/%.c,$(B)/bench/%,$(wildcard tests/tools/bench/*.c))
bench: all $(BENCHES)
	sh tests/tools/bench/run.sh
