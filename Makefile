# Two commands do all on a fresh machine: `make demo` and `make test`. Each installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than the two cores that CI has: many tests wait for processes that they started.
JOBS ?= 3
# What the tests are written against; a bare torch may bring gigabytes of CUDA.
TORCH := torch==2.13.0

.PHONY: demo test check bench docs clean

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[stubs,verify]' $(TORCH)
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## lint the fixture repositories, migrate a copy of one, verify that its ops compute the same, generate a backend's stubs
	@echo "\n$$ opschema lint fixtures/tilekit\n"
	@$(BIN)/opschema lint fixtures/tilekit || test $$? -eq 1
	@echo "\n$$ opschema show WindowMaskFwdOp\n"
	@cd fixtures/tilekit && ../../$(BIN)/opschema show WindowMaskFwdOp
	@rm -rf $(VENV)/tilekit && cp -r fixtures/tilekit $(VENV)/tilekit
	@echo "\n$$ opschema migrate drop-carrier\n"
	@cd $(VENV)/tilekit && ../bin/opschema migrate drop-carrier
	@echo "\n$$ opschema migrate drop-carrier --apply\n"
	@cd $(VENV)/tilekit && ../bin/opschema migrate drop-carrier --apply --allow-dirty
	@echo "\n$$ opschema lint\n"
	@cd $(VENV)/tilekit && ../bin/opschema lint
	@echo "\n$$ opschema verify --before ../../fixtures/tilekit --cells 9\n"
	@cd $(VENV)/tilekit && ../bin/opschema verify --before ../../fixtures/tilekit --cells 9
	@echo "\n$$ opschema lint fixtures/atenkit_broken\n"
	@$(BIN)/opschema lint fixtures/atenkit_broken || test $$? -eq 1
	@rm -rf $(VENV)/atenkit && cp -r fixtures/atenkit $(VENV)/atenkit
	@echo "\n$$ opschema show aten::add.Tensor\n"
	@cd $(VENV)/atenkit && ../bin/opschema show aten::add.Tensor
	@echo "\n$$ opschema stubs --apply\n"
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

docs: $(VENV)/.demo  ## write docs/rules, docs/migrations and docs/verify-faults.md from the code
	$(BIN)/python -m opschema_cli.lint.docs
	$(BIN)/python -m opschema_cli.migrate.docs
	$(BIN)/python -m tests.verify.faults

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
