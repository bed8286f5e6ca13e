# Two commands for users: `make demo` and `make test`. Both set up .venv first, once.
PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/.base
STAMP := .venv/.ready

# Python keeps what it compiled beside the sources. Without that every process, and tests start hundreds, would compile
# torch and the others anew, which takes half a minute.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-label-studio check docs bench study soak clean

setup: $(STAMP)

$(BASE): pyproject.toml constraints.txt
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "Setting up .venv (once, about two minutes) …"
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable .
	@touch $(BASE)

$(STAMP): $(BASE)  ## what tests, checks and experiments need besides
	@echo "Adding what the tests need (once, about a minute) …"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

demo: $(BASE)  ## spend a label budget on two tasks of the built-in corpus; leaves runs/demo/report.html
	$(BIN)/bursar demo

test: setup  ## every test but the long ones, on two cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not soak" --numprocesses 2 --dist loadfile

test-label-studio: setup .label-studio/bin/label-studio  ## a real Label Studio (1 GB, an environment of its own), both ways
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/web/test_label_studio.py

.label-studio/bin/label-studio:
	@echo "Setting up .label-studio (once, about three minutes) …"
	@$(PYTHON) -m venv .label-studio
	@.label-studio/bin/python -m pip install --quiet --upgrade pip
	@.label-studio/bin/python -m pip install --quiet 'label-studio==1.23.*'

check: setup  ## style, types, layers, the examples in docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --doctest-modules src experiments/studies experiments/bench --numprocesses 2 --dist loadfile

docs: setup  ## the documentation, built offline into site/; open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: setup  ## every side-by-side measurement, one JSON line a case; one group: make bench NAME=selection
	$(BIN)/python -m experiments bench $(NAME) --json

study: setup  ## run a study, or resume it: make study NAME=savings
	$(BIN)/python -m experiments $(if $(NAME),run $(NAME),list)

soak: setup  ## a thousand random kills, counted in docs/soak.json (in pieces: KILLS=100); long load and fuzz runs
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.soak $(if $(KILLS),--kills $(KILLS))
	$(if $(KILLS),,$(BIN)/python -m pytest -m soak)

clean:
	rm -rf .venv .label-studio .mypy_cache .ruff_cache .pytest_cache build dist site
