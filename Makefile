# `make demo` and `make test` need nothing but Python: each installs what it needs into .venv. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than the two cores that CI has: many tests wait for processes that they started.
JOBS ?= 3
TEST = -m pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder
# What the tests are written against; a bare torch may bring gigabytes of CUDA.
TORCH := torch==2.13.0

# The versions and hashes that CI and `make test` install; `make test LOCK=` takes the newest that pyproject.toml allows.
LOCK ?= requirements/ci.txt
PIP := $(BIN)/pip --quiet --disable-pip-version-check

# Shows a command that runs next.
SAY := @printf '\n$$ %s\n\n'

.PHONY: help demo test lowest cuda gpu cuda-wheels check bench docs records site torch-table torch-releases flydsl-releases lock sbom dist pythons man clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[stubs,verify]' $(TORCH)
	@touch $@

# Everything with its hash, then torch and this checkout: what torch brings for a GPU differs from machine to machine.
$(VENV)/.dev: pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCK),$(PIP) install --require-hashes -r $(LOCK))
	$(PIP) install $(if $(LOCK),--no-build-isolation) -e '.[dev]'
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

test: $(VENV)/.dev  ## run all tests
	$(BIN)/python $(TEST)

$(VENV)-lowest/.made: pyproject.toml
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check -e '.[test]' $(TORCH)
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check $$($(VENV)-lowest/bin/python -m tests.lowest)
	@touch $@

# Without the tests of what is built, whose tools need newer packages, and of what CI installs.
lowest: $(VENV)-lowest/.made  ## run all tests with the lowest versions of the dependencies that pyproject.toml allows
	$(VENV)-lowest/bin/python $(TEST) --ignore=tests/test_packaging.py --ignore=tests/test_dependencies.py

# Where nvcc and compute-sanitizer are missing, those of the registry serve, as far as the driver is new enough; nvcc needs g++.
CUDA_TOOLS = $(CURDIR)/$(VENV)-cuda/tools
# Options of pytest that select tests: `make cuda TESTS='-k regression'`.
TESTS ?=
# A folder with all packages, for a machine without access to a registry: see `make cuda-wheels`.
WHEELS ?=
cuda: gpu $(VENV)-cuda/.made  ## run the tests that need an NVIDIA GPU, with the torch that PYTHON has
	PATH="$$PATH:$(CUDA_TOOLS)/nvidia/cu13/bin" PYTHONPATH="$$PYTHONPATH:$(CUDA_TOOLS)" \
		$(VENV)-cuda/bin/python -m pytest -v -rfExX --durations=10 -m cuda --junitxml=build/gpu-tests.xml tests/verify $(TESTS)

gpu:  ## check that the torch of PYTHON sees an NVIDIA GPU
	@$(PYTHON) -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no NVIDIA GPU")'

# The virtual environment uses PYTHON's torch, even if that is in a virtual environment itself, and its pip if it has none of its own.
CUDA_PIP = $(VENV)-cuda/bin/python -m pip install --quiet --disable-pip-version-check $(if $(WHEELS),--no-index --find-links $(WHEELS))
$(VENV)-cuda/.made: pyproject.toml tests/verify/cuda_packages.py
	$(PYTHON) -m venv $(VENV)-cuda || $(PYTHON) -m venv --clear --without-pip $(VENV)-cuda
	$(PYTHON) -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])' \
		> "$$($(VENV)-cuda/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz-torch.pth"
	$(CUDA_PIP) -e '.[verify]' 'hypothesis>=6.100,<7'
	packages="$$($(VENV)-cuda/bin/python -m tests.verify.cuda_packages)"; test -z "$$packages" || \
		$(CUDA_PIP) --target $(CUDA_TOOLS) $$packages $(if $(WHEELS),|| echo 'nvcc or compute-sanitizer is not in $(WHEELS)')
	test ! -d $(CUDA_TOOLS)/nvidia/cu13/lib || ln -sfn lib $(CUDA_TOOLS)/nvidia/cu13/lib64  # where nvcc looks for its libraries
	@touch $@

# The version of Python on the machine with the GPU.
CUDA_PYTHON ?= 3.12
cuda-wheels:  ## download what `make cuda WHEELS=build/cuda-wheels` needs on a machine with Python CUDA_PYTHON and without a registry
	$(PYTHON) -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version $(CUDA_PYTHON) \
		--implementation cp $(foreach version,2014 _2_17 _2_24 _2_28,--platform manylinux$(version)_x86_64) -d build/cuda-wheels \
		$$($(PYTHON) -m tests.verify.cuda_packages --wheels)

check: $(VENV)/.dev  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## measure speed and memory, beside other linters
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

docs: $(VENV)/.demo  ## write the generated pages of docs/ from the code
	$(BIN)/python -m opschema_cli.lint.docs
	$(BIN)/python -m opschema_cli.migrate.docs
	$(BIN)/python -m tests.verify.faults

records: $(VENV)/.dev  ## ask the real systems anew what the proofs of fixes and migrations need, and keep the answers
	rm -f tests/proofs/answers/*.jsonl
	OPSCHEMA_RECORD=1 $(BIN)/python -m pytest -q tests/proofs

site: $(VENV)/.demo $(VENV)-tools/.made  ## write the documentation as a site to build/site
	$(BIN)/python -m website
	NO_MKDOCS_2_WARNING=1 $(VENV)-tools/bin/mkdocs build --strict --quiet --config-file website/mkdocs.yml
	$(BIN)/python -m website.playground build/site/playground

torch-table: $(VENV)/.dev  ## write the table of torch's shapes and dtypes from the installed torch, which takes minutes
	$(BIN)/python -m benchmarks.torch_shapes
	$(BIN)/python -m benchmarks.torch_results
	$(BIN)/python -m benchmarks.torch_macros

torch-releases: $(VENV)/.dev  ## write the tables of torch's releases from the wheels in WHEELS, of which none may be missing
	$(BIN)/python -m benchmarks.torch_releases $(WHEELS)

flydsl-releases: $(VENV)/.dev  ## add the releases of FlyDSL that are new on PyPI to the table of its names
	$(BIN)/python -m benchmarks.flydsl_releases

lock: $(VENV)-tools/.made  ## write requirements/ci.txt: for every platform and Python, each file with its hash
	$(VENV)-tools/bin/uv pip compile --quiet pyproject.toml requirements/ci.in --extra dev --override requirements/without-torch.txt \
		--universal --python-version 3.10 --generate-hashes --upgrade --custom-compile-command 'make lock' -o requirements/ci.txt

sbom: $(VENV)-tools/.made  ## write build/sbom.cdx.json (CycloneDX): what `pip install opschema-cli` brings, in the locked versions
	rm -rf $(VENV)-sbom && $(PYTHON) -m venv --without-pip $(VENV)-sbom && mkdir -p build
	sed -n 's/^\([a-z].*\) \\$$/\1/p' requirements/ci.txt > $(VENV)-sbom/versions.txt
	$(VENV)-tools/bin/pip --python $(VENV)-sbom/bin/python install --quiet --disable-pip-version-check -c $(VENV)-sbom/versions.txt .
	$(VENV)-tools/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible --output-format JSON \
		--output-file build/sbom.cdx.json $(VENV)-sbom/bin/python

# The time of the last commit stands for that of all files.
dist: $(VENV)-tools/.made  ## write the source distribution and the wheel to build/dist, twice and compared, and check them
	rm -rf build/dist build/again
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(VENV)-tools/bin/python -m build --outdir build/dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(VENV)-tools/bin/python -m build --outdir build/again
	diff -r build/dist build/again
	$(VENV)-tools/bin/twine check --strict build/dist/*

PYTHONS ?= 3.10 3.11 3.12 3.13 3.14
# A Python by its version: the one on the PATH, or pyenv's newest.
pythons: dist  ## install the wheel for each of PYTHONS that is there, and lint an example with it
	@for version in $(PYTHONS); do \
		python=$$(for each in "python$$version" "$$HOME"/.pyenv/versions/"$$version".*/bin/python; do \
			"$$each" -c 'import sys; print(sys.executable)' 2>/dev/null && break; done); \
		if [ -z "$$python" ]; then echo "Python $$version: not there"; continue; fi; \
		rm -rf build/venv && "$$python" -m venv build/venv && build/venv/bin/pip install --quiet --disable-pip-version-check build/dist/*.whl || exit 1; \
		(cd fixtures/tilekit && ../../build/venv/bin/opschema --version --verbose | sed -n 2p && \
			{ ../../build/venv/bin/opschema lint --no-cache | tail -1; ../../build/venv/bin/opschema lint >/dev/null; test $$? -eq 1; }) || exit 1; \
	done

man: $(VENV)/.demo $(VENV)-tools/.made  ## write a manual page for each command to build/man
	rm -rf build/man && mkdir -p build/man
	$(BIN)/pip install --quiet --disable-pip-version-check click-man
	$(BIN)/python -c 'from click_man.core import write_man_pages; from opschema_cli.main import __version__, cli; \
		cli.commands = {name: cli.get_command(None, name) for name in cli.list_commands(None)}; \
		write_man_pages("opschema", cli, version=__version__, target_dir="build/man")'
	test -f build/man/opschema-lint.1  # commands are imported when they are used, which click-man alone does not do

# Made anew when a tool is added here.
$(VENV)-tools/.made: Makefile
	$(PYTHON) -m venv $(VENV)-tools
	$(VENV)-tools/bin/pip install --quiet --disable-pip-version-check 'uv>=0.5,<1' 'cyclonedx-bom>=7,<8' 'build>=1,<2' 'twine>=7,<8' \
		'mkdocs-material>=9.7,<10'
	@touch $@

clean:  ## remove the virtual environments and caches
	rm -rf $(VENV)-tools $(VENV)-sbom $(VENV)-cuda $(VENV) .mypy_cache .ruff_cache .pytest_cache
