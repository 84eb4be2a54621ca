# `make demo` and `make test` need nothing but Python: each installs what it needs into .venv. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than the two cores that CI has: many tests wait for processes that they started.
JOBS ?= 3
# What the tests are written against; a bare torch may bring gigabytes of CUDA.
TORCH := torch==2.13.0

# Shows a command that runs next.
SAY := @printf '\n$$ %s\n\n'

.PHONY: help demo test check bench docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[stubs,verify]' $(TORCH)
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## lint the example repositories, migrate one, verify that its ops compute the same, generate a backend's stubs
	@rm -rf $(VENV)/drifted && cp -r fixtures/tilekit $(VENV)/drifted
	@cp -r fixtures/tilekit_migrated/. fixtures/tilekit_drifted/. $(VENV)/drifted
	$(SAY) 'opschema lint    # a default and a workload differ between the manifest and the code'
	@cd $(VENV)/drifted && ../bin/opschema lint || test $$? -eq 1
	$(SAY) 'opschema lint fixtures/tilekit    # two ops declare an input that nobody passes'
	@$(BIN)/opschema lint fixtures/tilekit || test $$? -eq 1
	$(SAY) 'opschema show windowmaskfwdop'
	@cd fixtures/tilekit && ../../$(BIN)/opschema show windowmaskfwdop
	@rm -rf $(VENV)/tilekit && cp -r fixtures/tilekit $(VENV)/tilekit
	$(SAY) 'opschema migrate drop-carrier'
	@cd $(VENV)/tilekit && ../bin/opschema migrate drop-carrier
	$(SAY) 'opschema migrate drop-carrier --apply'
	@cd $(VENV)/tilekit && ../bin/opschema migrate drop-carrier --apply --allow-dirty
	$(SAY) 'opschema lint'
	@cd $(VENV)/tilekit && ../bin/opschema lint
	$(SAY) 'opschema verify --before ../../fixtures/tilekit --cells 9'
	@cd $(VENV)/tilekit && ../bin/opschema verify --before ../../fixtures/tilekit --cells 9
	$(SAY) 'opschema lint fixtures/atenkit_broken'
	@$(BIN)/opschema lint fixtures/atenkit_broken || test $$? -eq 1
	@rm -rf $(VENV)/atenkit && cp -r fixtures/atenkit $(VENV)/atenkit
	$(SAY) 'opschema show aten::add.Tensor'
	@cd $(VENV)/atenkit && ../bin/opschema show aten::add.Tensor
	$(SAY) 'opschema stubs --apply'
	@cd $(VENV)/atenkit && ../bin/opschema stubs --apply

test: $(VENV)/.dev  ## the whole suite
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope

check: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## speed and memory, side by side with the peers
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

docs: $(VENV)/.demo  ## write the generated pages of docs/ from the code
	$(BIN)/python -m opschema_cli.lint.docs
	$(BIN)/python -m opschema_cli.migrate.docs
	$(BIN)/python -m tests.verify.faults

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
