# Every target works on a fresh clone of a machine that has python3 (>= 3.11) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export SENSORTREE_DATA ?= $(abspath ../shared/data)

.DEFAULT_GOAL := help
.PHONY: help demo test coverage slow browser cluster check format docs links reproduce serve wheel constraints clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/all.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[all]'
	@touch $@ $(VENV)/demo.stamp

demo: $(VENV)/demo.stamp  ## heart disease, priced in dollars: fit, report, two pictures
	$(BIN)/python -m sensortree.demo --output demo_output

serve: $(VENV)/all.stamp  ## the demo's model on http://127.0.0.1:8000, on this machine only
	$(BIN)/python -m sensortree.demo --model demo_output/heart.json
	$(BIN)/python -m sensortree serve demo_output/heart.json --database demo_output/sessions.sqlite3

test: $(VENV)/all.stamp  ## the default tests (a few minutes on two cores)
	$(BIN)/python -m pytest --numprocesses 2

coverage: $(VENV)/all.stamp  ## the same with the lines that no test runs; half as long again
	$(BIN)/python -m pytest --numprocesses 2 --cov --cov-report term:skip-covered

slow: $(VENV)/all.stamp  ## the long tests
	$(BIN)/python -m pytest -m slow

browser: $(VENV)/all.stamp  ## the page in Chromium, its script under Node; installs them as root
	.ci/browser
	$(BIN)/python -m pytest tests/test_javascript.py tests/test_page.py tests/test_browser.py

cluster: $(VENV)/all.stamp  ## Dask and PostgreSQL, long tests too; installs the server as root
	.ci/cluster
	$(BIN)/python -m pytest -m "slow or not slow" $(wildcard tests/test_waves.py tests/test_dask*.py)

check: $(VENV)/all.stamp  ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/all.stamp  ## rewrite the files the way `check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/all.stamp  ## the site in docs/_build/html; warnings and broken links are errors
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

links: $(VENV)/all.stamp  ## ask every address elsewhere that the site names; needs a network
	$(BIN)/python -m sphinx -b linkcheck -D plot_gallery=0 docs docs/_build/links

reproduce: $(VENV)/all.stamp  ## the paper's tables and figures into docs/results; QUICK=1: minutes
	$(BIN)/python -m experiments.run paper --n-jobs 2 $(if $(QUICK),--quick) $(if $(OUTPUT),--output $(OUTPUT))

wheel: $(VENV)/all.stamp  ## the wheel, alone in an empty environment, fits a toy
	rm -rf dist $(VENV)/wheel-test
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv $(VENV)/wheel-test
	$(VENV)/wheel-test/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd $(VENV)/wheel-test && bin/python -c "$$TOY"

define TOY
import numpy as np
from sensortree import SensorTreeClassifier
X = np.random.default_rng(0).normal(size=(60, 3)); y = X[:, 0] + X[:, 1] > 0
model = SensorTreeClassifier().fit(X, y)
assert model.certificate_.gap <= 1e-6, model.certificate_
print('the wheel alone:', model.certificate_)
endef
export TOY

constraints: $(VENV)/all.stamp  ## pin what is installed, after the tests passed with it
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean:  ## remove everything that was built
	rm -rf $(VENV) dist build docs/_build docs/auto_examples docs/api/generated demo_output .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
