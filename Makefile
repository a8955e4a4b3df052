# Every target works on a fresh clone of a machine that has python3 (>= 3.11) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export SENSORTREE_DATA ?= $(abspath ../shared/data)

.DEFAULT_GOAL := help
.PHONY: help demo test coverage slow browser cluster check format docs links reproduce serve lowest release-check results results-check constraints clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/all.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) 'pip>=25.1' # earlier ones know no groups
	$(PIP) --editable '.[all]' --group dev
	@touch $@ $(VENV)/demo.stamp

demo: $(VENV)/demo.stamp  ## heart disease, priced in dollars: fit, report, two pictures
	$(BIN)/python examples/heart_patients.py --output demo_output

serve: $(VENV)/all.stamp  ## the demo's model on http://127.0.0.1:8000, on this machine only
	$(BIN)/python -m sensortree.demo --model demo_output/heart.json
	$(BIN)/python -m sensortree serve demo_output/heart.json --database demo_output/sessions.sqlite3

test: $(VENV)/all.stamp  ## the default tests (about eight minutes on two cores)
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

results: $(VENV)/all.stamp  ## measure again what is older than the default's answers: hours; goes on
	$(BIN)/python -m experiments.renew

results-check: $(VENV)/all.stamp  ## name the tables that are older than the default's answers
	$(BIN)/python -m experiments.renew --check

# What runs with the lowest versions: fits by every method and solver, certificates, sessions;
# model files, with skops; tables of pandas and polars; pictures; commands; the service; Dask; the
# demo; what is compared with. PostgreSQL where it is installed. A minute on two cores, after one to
# install. Not tried: array-api-compat, since no test has an array that needs it. The warning is
# of scikit-learn 1.9.0's own list of tests.
LOWEST := $(addprefix tests/test_, methods.py solvers.py structured.py certificate.py paper.py \
	sessions.py same_answers.py engine.py transforms.py bad_inputs.py display.py svg.py notebook.py \
	cells.py cli.py service.py ledger.py waves.py dask_fit.py demo.py release.py one_thread.py \
	persistence.py::test_foreign_parts_go_through_skops_and_are_read_only_if_trusted \
	experiments.py::test_a_cell_measures_the_lines_that_it_was_asked_for \
	experiments.py::test_trees_of_pystreed_are_optimal_at_the_prices_that_they_are_charged)
lowest: $(VENV)/lowest.stamp  ## the lower bounds of pyproject.toml, exactly: a part of the tests with them
	@cat $(VENV)/lowest/requirements.txt
	$(VENV)/lowest/bin/python -m pytest --numprocesses 2 -W "ignore:Passing a non-Collection iterable" $(LOWEST)

$(VENV)/lowest.stamp: pyproject.toml constraints.txt .ci/lowest.py
	rm -rf $(VENV)/lowest
	$(PYTHON) -m venv $(VENV)/lowest
	$(PYTHON) .ci/lowest.py > $(VENV)/lowest/requirements.txt
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --requirement $(VENV)/lowest/requirements.txt
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

release-check: $(VENV)/all.stamp  ## what is published: built, installed into empty environments, tried there
	$(BIN)/python .ci/release_check.py

constraints: $(VENV)/all.stamp  ## pin what is installed, after the tests passed with it
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean:  ## remove everything that was built
	rm -rf $(VENV) dist build docs/_build docs/auto_examples docs/api/generated demo_output .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
