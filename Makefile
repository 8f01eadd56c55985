# Two commands matter: `make run` and `make test`. Everything they need is made on the way.
PYTHON ?= python3.11
SIZE ?= small
CASE ?=
BIN := .venv/bin
export PYTHONPATH := $(CURDIR)

.PHONY: setup run test lint bench soak notebook clean

setup: .venv/ready

.venv/ready: requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed: set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "making .venv and installing the pinned packages (a minute or two)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@# Notebooks and tools started elsewhere find the package too.
	@$(BIN)/python -c "import sysconfig, pathlib; pathlib.Path(sysconfig.get_path('purelib'), 'logstore.pth').write_text('$(CURDIR)\n')"
	@touch $@

run: setup
	@$(BIN)/python -m logstore serve --demo

test: setup
	@$(BIN)/python -m tests.prepare
	@$(BIN)/python -m pytest --numprocesses 2 --no-loadscope-reorder

lint: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: setup
	@$(BIN)/python -m bench --size $(SIZE) $(if $(CASE),--case $(CASE))

soak: setup
	@$(BIN)/python -m pytest tests/soak -m soak

# Kernels run inside notebooks/, so they are told where the store is; an empty one gets the sample data first.
notebook: export LOGSTORE_HOME := $(or $(LOGSTORE_HOME),$(CURDIR)/var)
notebook: setup
	@test -n "$(LOGSTORE_DSN)" || $(BIN)/python -m logstore demo --if-empty
	@$(BIN)/jupyter lab notebooks

clean:
	rm -rf .venv var
