"""By which operators a backend is judged: the configuration's, the tree's, the installed torch's."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.ci_pins import commits_in, installing, takes_others, versions_in
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile, Reference
from opschema_rules.aten.pins import pins_of

NATIVE = "torchgen/packaged/ATen/native/native_functions.yaml"
BACKEND = "backend: XLA\ncpp_namespace: torch_xla\nsupported:\n  - abs\n"
COMMIT = "a" * 40


def native(*names: str, dispatch: str = "CPU") -> str:
    """A native_functions.yaml of operators with these names."""
    entries = (f"- func: {name}(Tensor self) -> Tensor\n  dispatch:\n    {dispatch}: {name}\n" for name in names)
    return "\n".join(entries)


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPSCHEMA_TORCH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "interpreter"))


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """Makes an environment ``tmp_path/NAME`` with a torch of a version, whose operators are ``names``."""

    def make(name: str, version: str, *names: str) -> Path:
        packages = tmp_path / name / "lib/python3.11/site-packages"
        write(packages / NATIVE, native(*names))
        write(packages / "torch/version.py", f"__version__ = '{version}'\ngit_version = '{COMMIT}'\n")
        write(packages / "torch/__init__.py", "raise AssertionError('torch is imported')\n")
        return tmp_path / name

    return make


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def find(root: Path, files: dict[str, str] | None = None, options: AtenOptions | None = None) -> Reference | None:
    """The reference of the backend in a tree."""
    for path, text in {"xla.yaml": BACKEND, **(files or {})}.items():
        write(root / path, text)
    loaded = load(Project(Workspace(root)), options or AtenOptions())
    return next(item for item in loaded.subjects if isinstance(item, BackendFile)).reference


def told(reference: Reference | None) -> tuple[str, bool] | None:
    return (reference.origin, reference.certain) if reference is not None else None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


# -- the tree's own ----------------------------------------------------------------------------------------------------


def test_there_may_be_none(root: Path) -> None:
    assert find(root) is None


def test_the_only_native_functions_of_the_tree(root: Path) -> None:
    found = find(root, {"n/native_functions.yaml": native("abs", "relu")})
    assert told(found) == ("`n/native_functions.yaml`", True)
    assert found is not None
    assert list(found.catalogue.by_name) == ["abs", "relu"]


def test_of_several_the_one_where_pytorch_keeps_it(root: Path) -> None:
    aten = "third_party/pytorch/aten/src/ATen/native/native_functions.yaml"
    assert told(find(root, {"native_functions.yaml": native("abs"), aten: native("relu")})) == (f"`{aten}`", True)


def test_of_several_the_one_that_has_what_the_backend_lists(root: Path) -> None:
    listed = "".join(f"  - op{number}\n" for number in range(9))
    names = [f"op{number}" for number in range(8)]  # the ninth is a mistake
    files = {
        "xla.yaml": BACKEND.replace("  - abs\n", listed),
        "a/native_functions.yaml": native("mine", "yours"),
        "b/native_functions.yaml": native(*names),
    }
    assert told(find(root, files)) == ("`b/native_functions.yaml`", True)


def test_of_several_the_nearest_that_has_more_of_them(root: Path) -> None:
    aten = "examples/aten/src/ATen/native/native_functions.yaml"
    files = {aten: native("relu"), "kit/aten/native_functions.yaml": native("abs"), "xla.yaml": ""}
    found = find(root, {**files, "kit/backend/xla.yaml": BACKEND})
    assert told(found) == ("`kit/aten/native_functions.yaml`", True)
    found = find(root, {**files, aten: native("abs"), "kit/backend/xla.yaml": BACKEND})
    assert told(found) == (f"`{aten}`", True)
    other = {"other/aten/native_functions.yaml": native("abs")}
    found = find(root, {**files, **other, "kit/backend/xla.yaml": BACKEND})
    assert told(found) == ("`kit/aten/native_functions.yaml`", True)


def test_none_of_several_that_all_fit(root: Path) -> None:
    assert find(root, {"a/native_functions.yaml": native("abs"), "b/native_functions.yaml": native("abs")}) is None


def test_an_excerpt_of_another_backend_is_none(root: Path) -> None:
    excerpt = native("abs", dispatch="XPU")
    assert find(root, {"native_functions.yaml": excerpt}) is None
    assert find(root, {"native_functions.yaml": excerpt + "  ufunc_inner_loop: {Generic: abs (Float)}\n"}) is None
    assert find(root, {"native_functions.yaml": native("abs", dispatch="CompositeExplicitAutograd")}) is not None


# -- the configuration's -----------------------------------------------------------------------------------------------


def test_the_configuration_names_it(root: Path) -> None:
    files = {"native_functions.yaml": native("abs"), "other/list.yaml": native("relu")}
    for named in ("other/list.yaml", "./other/list.yaml"):
        assert told(find(root, files, AtenOptions(native_functions=named))) == ("`other/list.yaml`", True)


@pytest.mark.parametrize("named", ["missing.yaml", "../outside.yaml", "link.yaml", "/etc/passwd", "folder"])
def test_the_configuration_leads_to_no_file_outside_of_the_tree(root: Path, named: str) -> None:
    write(root.parent / "outside.yaml", native("abs"))
    (root / "link.yaml").symlink_to(root.parent / "outside.yaml")
    (root / "folder").mkdir()
    with pytest.raises(OpschemaError, match="is not a file of the workspace"):
        find(root, {}, AtenOptions(native_functions=named))


# -- the installed torch's ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX", "OPSCHEMA_TORCH"])
def test_the_torch_of_an_environment(
    root: Path, install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(install("env", "2.13.0+cpu", "abs")))
    found = find(root)
    assert told(found) == ("the installed torch 2.13.0+cpu", False)
    assert found is not None
    assert (found.version, "abs" in found.catalogue.by_name) == ("2.13.0+cpu", True)


def test_the_torch_beside_the_interpreter(root: Path, install: Callable[..., Path]) -> None:
    install("interpreter", "2.9.0", "abs")
    assert told(find(root)) == ("the installed torch 2.9.0", False)


def test_the_active_environment_comes_before_the_interpreter(
    root: Path, install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("interpreter", "2.9.0", "abs")
    monkeypatch.setenv("VIRTUAL_ENV", str(install("env", "2.13.0", "abs")))
    assert told(find(root)) == ("the installed torch 2.13.0", False)


def test_the_environment_in_the_tree(root: Path, install: Callable[..., Path]) -> None:
    install("root/.venv", "2.9.0", "abs")
    assert told(find(root)) == ("the installed torch 2.9.0", False)


def test_an_environment_in_the_tree_leads_to_no_file_outside(root: Path, install: Callable[..., Path]) -> None:
    (root / ".venv").symlink_to(install("elsewhere", "2.9.0", "abs"))
    assert find(root) is None


def test_a_checkout_and_a_file_can_be_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "pytorch"
    write(checkout / "aten/src/ATen/native/native_functions.yaml", native("abs"))
    write(checkout / "version.txt", "2.14.0a0\n")
    monkeypatch.setenv("OPSCHEMA_TORCH", str(checkout))
    assert told(find(root)) == ("the installed torch 2.14.0a0", False)
    file = tmp_path / "ops.yaml"
    write(file, native("abs"))
    monkeypatch.setenv("OPSCHEMA_TORCH", str(file))
    assert told(find(root)) == (f"`{file.as_posix()}`", False)


def test_a_variable_that_names_no_torch_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_TORCH", "/nowhere")
    with pytest.raises(OpschemaError, match="OPSCHEMA_TORCH"):
        find(root)


def test_the_configuration_can_do_without(root: Path, install: Callable[..., Path]) -> None:
    install("interpreter", "2.9.0", "abs")
    assert find(root, {}, AtenOptions(installed_torch=False)) is None


def test_its_torchgen_lends_the_vocabulary(root: Path, install: Callable[..., Path]) -> None:
    packages = install("interpreter", "2.9.0", "abs") / "lib/python3.11/site-packages"
    write(packages / "torchgen/model.py", "class DispatchKey(Enum):\n    CPU = auto()\n    Mine = auto()\n")
    write(
        packages / "torchgen/gen_backend_stubs.py", "yaml_values.pop('backend')\nif isinstance(item, dict):\n    pass\n"
    )
    found = find(root)
    assert found is not None
    assert found.torchgen.vocabulary.dispatch_keys == {"CPU", "Mine"}
    assert found.torchgen.limits.takes_options


def test_its_operators_are_not_read_unless_something_is_judged(root: Path, install: Callable[..., Path]) -> None:
    install("interpreter", "2.9.0", "abs")
    write(root / "native_functions.yaml", native("abs"))
    workspace = Workspace(root)
    load(Project(workspace), AtenOptions())
    assert all(not Path(path).is_absolute() for path in workspace.reads if path.endswith(".yaml"))


def test_its_operators_are_read_once_for_a_process_while_they_are_the_same(
    root: Path, install: Callable[..., Path]
) -> None:
    first, again = install("interpreter", "2.9.0", "abs") and find(root), find(root)
    changed = install("interpreter", "2.9.0", "abs", "sin") and find(root)
    assert first is not None
    assert again is not None
    assert changed is not None
    assert first.native is again.native
    assert set(changed.native.by_name) == {"abs", "sin"}
    assert {item.name for item in changed.catalogue.by_name.values()} == {"abs", "sin"}


HERE, OF_28 = "the installed torch 2.9.0+cpu", "torch 2.8"
COMMIT_28 = "a1cb3cc05d46d198467bebbb6e8fba50a325d4e7"
LOCKED_DAY = '[[package]]\nname = "torch"\nversion = "2.9.0.dev20250701"\n'
WORKFLOW = ".github/workflows/test.yml"
PINS = [
    ({}, HERE, False),
    ({"requirements.txt": "numpy\ntorch==2.9.1  # as pytorch/xla\n"}, HERE, True),
    ({"requirements/dev.txt": "torch ~= 2.9.0\n"}, HERE, True),
    ({"requirements.txt": "torch==2.8.0\n"}, OF_28, True),
    ({"requirements.txt": "torch==2.8.0.dev20250101\n"}, OF_28, False),
    ({"requirements.txt": "torch==2.9.0.dev20250701\n"}, HERE, False),
    ({"requirements.txt": "torch==2.9.0\n", "uv.lock": LOCKED_DAY}, HERE, False),
    ({WORKFLOW: "- run: pip install torch==2.9.0\n- run: pip install torch\n"}, HERE, False),
    ({"requirements.txt": "torch==2.9.0\n", "pyproject.toml": "dependencies = ['torch==2.8']\n"}, HERE, False),
    ({"requirements.txt": "torch>=2.9\n"}, HERE, False),
    ({"requirements.txt": "torchvision==2.9.0\n# torch==2.9.0\n"}, HERE, False),
    ({"pyproject.toml": 'requires = ["torch==2.9.0"]\n'}, HERE, True),
    ({"setup.py": "base_version = '2.9'\n"}, HERE, True),
    ({"setup.py": "install_requires=['torch==2.8.0']\n"}, OF_28, True),
    ({"setup.py": "version = os.getenv('TORCH_XLA_VERSION', '2.9.0')\n"}, HERE, True),
    ({"torch_pin.py": 'TORCH_VERSION = "2.8.0"\n'}, OF_28, True),
    ({"setup.py": "_libtpu_version = '2.9.0'\n_torchax_version = '2.9.0'\n"}, HERE, False),
    ({"setup.py": "base_version = '2.9'\n", ".torch_commit": "# a day\n" + "b" * 40}, HERE, False),
    ({"setup.py": "base_version = '2.8'\n", ".torch_commit": "# a day\n" + "b" * 40}, OF_28, False),
    ({".torch_commit": COMMIT}, HERE, True),
    ({".github/ci_commit_pins/pytorch.txt": COMMIT_28}, OF_28, True),
    ({".github/ci_commit_pins/pytorch.txt": "v2.8.0\n"}, OF_28, True),
    ({".github/workflows/test.yml": "- run: pip install torch==2.8.0 pytest\n"}, OF_28, True),
    ({".github/workflows/test.yml": "- run: pip install torch==2.8.0\n- run: pip install torch==2.7.1\n"}, HERE, False),
    (
        {".github/workflows/test.yml": "- run: pip install torch==2.8.0\n", "setup.py": "base_version = '2.9'\n"},
        HERE,
        True,
    ),
]


CHECKOUT = "      - uses: actions/checkout@v4\n        with:\n          {}\n          repository: pytorch/pytorch\n          {}\n"
CI_PINS = [
    (WORKFLOW, "        torch-version: ['2.8.0']\n    - run: pip install torch==${{ matrix.torch-version }}\n"),
    (WORKFLOW, "        torch:\n          - 2.8.0\n          - '2.8.1'\n        cuda:\n          - 12.8\n"),
    (WORKFLOW, "          - {python: '3.11', torch: '2.8.0', cuda: 12.8}\n"),
    (WORKFLOW, "env:\n  MIN_TORCH_VERSION: 2.4\n  TORCH_VERSION: 2.8.0  # for all jobs\n  TORCHVISION_VERSION: 0.23\n"),
    (
        WORKFLOW,
        "      torch-version:\n        description: of PyTorch\n        type: string\n        default: '2.8.0'\n",
    ),
    (WORKFLOW, "      image: pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel\n"),
    (WORKFLOW, CHECKOUT.format("path: pytorch", "ref: v2.8.0")),
    (WORKFLOW, CHECKOUT.format(f"ref: {COMMIT_28}", "path: pytorch")),
    (WORKFLOW, "- run: git clone --branch v2.8.0 https://github.com/pytorch/pytorch.git\n"),
    (
        WORKFLOW,
        "- run: pip install https://download.pytorch.org/whl/cpu/torch-2.8.0%2Bcpu-cp311-cp311-linux_x86_64.whl\n",
    ),
    (".github/actions/setup/action.yml", "inputs:\n  torch_version:\n    default: 2.8.0\n"),
    (".github/matrices/linux.json", '[{"torch-version": "2.8.0", "cuda": ["12.8"]}]'),
    (".github/docker/ci.Dockerfile", 'RUN if [ "$TORCH_VERSION" = "2.9.0" ]; then pip install torch==2.8.0; fi\n'),
    (WORKFLOW, 'jobs = [dict(torch = "2.8.0", cuda = "12.8")]\n'),
    (".buildkite/pipeline.yml", "env:\n  PYTORCH_VERSION: '2.8'\n"),
    (".ci/install.sh", "TORCH_VERSION=${TORCH_VERSION:-2.8.0}\npip install torch==$TORCH_VERSION\n"),
    ("docker/requirements.txt", "numpy\ntorch==2.8.0+cpu\n"),
    ("docker/Dockerfile.rocm", "FROM rocm/pytorch:rocm7.2_ubuntu24.04_py3.12_pytorch_release_2.8.1\n"),
    ("azure-pipelines.yml", "variables:\n  torchVersion: 2.8.0\n"),
    ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.8.0"\n'),
    ("pixi.toml", '[dependencies]\npytorch = "2.8.*"\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "2.8.0", source = "cpu"}\n'),
    (".github/pins/pytorch.txt", COMMIT_28),
    ("ci/pytorch_commit.txt", COMMIT_28),
]


@pytest.mark.parametrize(("path", "text"), CI_PINS)
def test_ways_to_pin_a_torch(root: Path, path: str, text: str) -> None:
    assert told(find(root, {path: text})) == (OF_28, True)


@pytest.mark.parametrize(
    "text",
    [
        "env:\n  MIN_TORCH_VERSION: 2.8\n  TORCHVISION_VERSION: 2.8\n  TORCH_CUDA_ARCH_LIST: '8.0 9.0'\n",
        "    image: nvcr.io/nvidia/pytorch:2.8-py3\n",
        "      if: matrix.torch-version == '2.8.0'\n",
        "        torch: ['2.8.0', '2.9.0']\n",
        "        torch: [\n          '2.8.0',\n          '2.9.0',\n        ]\n",
        "- run: |\n    torches = ['2.8.0', '2.9.0']\n    pip install torch==2.8.0\n",
        "- run: |\n    TORCH_VERSIONS=('2.8.0' '2.9.0')\n",
        "env:\n  TORCH_VERSIONS: '2.8.0 2.9.0'\n",
        '- run: if [ "$TORCH_VERSION" = "2.8.0" ]; then make old; fi\n',
        '- run: test "$TORCH_VERSION" = "2.8.0" || make new\n',
        "- run: if [[ $torch == 2.8* ]]; then make old; fi\n",
        "      - uses: a/b@v1\n        with:\n          repository: pytorch/pytorch\n      - with:\n          ref: v2.8.0\n",
        "- run: git clone --branch v2.8.0 https://github.com/pytorch/pytorch-fork\n",
        "- name: torch: fast\n  run: echo 2.8\n",
        "- name: needs torch: 2.8\n  run: make\n",
        "- run: pip install torch~=2.8\n",
        '- run: |\n    if [ "$TORCH_VERSION" = "2.8" ]; then\n      make\n    fi\n',
        "- run: sed -i 's/torch==2.8.0/torch/' requirements.txt\n",
        "- run: pip freeze | grep torch==2.8.0\n",
        "- run: pip uninstall -y torch==2.8.0\n",
        "- run: echo 'please run pip install torch==2.8.0'\n",
        "- run: git clone -b v2.8 https://github.com/a/b && git clone https://github.com/pytorch/pytorch\n",
        "        torch: ${{ fromJSON(inputs.torch) }}\n        exclude:\n          - torch: 2.8.0\n            python: 3.13\n",
    ],
)
def test_texts_that_pin_no_torch(root: Path, text: str) -> None:
    assert find(root, {WORKFLOW: text}) is None


@pytest.mark.parametrize("path", ["docker/examples/Dockerfile", "docs/Dockerfile", "docs-requirements.txt"])
def test_files_of_examples_and_documentation_pin_no_torch(root: Path, path: str) -> None:
    assert find(root, {path: "RUN pip install torch==2.8.0\n"}) is None


PINNED = "- run: pip install torch==2.8.0\n"


@pytest.mark.parametrize(
    ("files", "certain"),
    [
        ({WORKFLOW: PINNED}, True),
        ({WORKFLOW: PINNED + "- run: echo TORCH_VERSION=2.8.0 >> $GITHUB_ENV\n"}, True),
        ({WORKFLOW: PINNED + "- run: conda install pytorch=2.8.0 -c pytorch\n"}, True),
        ({WORKFLOW: PINNED + "- run: pip install torch==${{ matrix.torch }} torchvision\n"}, True),
        ({WORKFLOW: PINNED + "- run: pip install torch\n"}, False),
        ({WORKFLOW: PINNED, "Dockerfile": "RUN uv pip install \\\n    numpy \\\n    'torch' \\\n    pytest\n"}, False),
        ({WORKFLOW: PINNED + "- run: pip install 'torch>=2.7'\n"}, False),
        ({WORKFLOW: PINNED, "tox.ini": "deps =\n  torch28: torch==2.8.0\n  latest: torch\n"}, False),
        ({WORKFLOW: PINNED + "- run: pip install x --index-url https://download.pytorch.org/whl/nightly/cpu\n"}, False),
        ({WORKFLOW: "        torch: [2.8.0, nightly]\n"}, False),
        ({WORKFLOW: "        torch:\n          - 2.8.0\n          - nightly\n"}, False),
        ({WORKFLOW: "        include:\n          - torch: 2.8.0\n          - torch: nightly\n"}, False),
        ({WORKFLOW: "env:\n  TORCH_VERSION: 2.8.0.dev20250601\n"}, False),
        ({WORKFLOW: "on:\n  push:\n    branches: [release/1.0, 'v1.*']\n" + PINNED}, False),
        ({WORKFLOW: "on:\n  push:\n    branches: [main, release/1.0]\n" + PINNED}, True),
        ({WORKFLOW: "- run: pip install \"torch==2.8.0; python_version < '3.9'\"\n"}, False),
        ({"environment.yml": "- pip:\n  - torch==2.8.0; sys_platform == 'darwin'\n  - torch\n"}, False),
        ({"uv.lock": '[[package]]\nname = "torch"\nversion = "2.8.0.dev20250601"\n'}, False),
        ({WORKFLOW: PINNED, "docker/Dockerfile": "ARG BASE=nvcr.io/nvidia/pytorch:26.05-py3\nFROM $BASE\n"}, False),
        ({WORKFLOW: PINNED, "docker/Dockerfile": "FROM rocm/pytorch:latest\n"}, False),
        ({WORKFLOW: PINNED, "docker/Dockerfile": "FROM pytorch/pytorch:2.8.0-cuda12.9-cudnn9-devel\n"}, True),
        ({WORKFLOW: PINNED, "docker/Dockerfile": "FROM pytorch/pytorch:${TORCH}-cuda12.9-cudnn9-devel\n"}, True),
    ],
)
def test_a_pin_is_uncertain_where_the_tree_takes_other_releases(
    root: Path, files: dict[str, str], certain: bool
) -> None:
    assert told(find(root, files)) == (OF_28, certain)


@pytest.mark.parametrize(
    "line",
    [
        "torch:[",
        "torch-version:\n  description: x\n",
        "git clone ",
        "repository: pytorch/pytorch\n",
        "exclude:\n",
        "pip install ",
        "branches: [",
        "s/ ",
        "torch:\n - 1.2x\n",
        "torch:\n - 1.2\n",
        "torch='1.2 ",
        "torch=(",
        "[ $",
        "a/pytorch",
        "pytorch",
    ],
)
def test_the_time_grows_with_the_text(line: str) -> None:
    started = time.process_time()
    text = installing(line * 10_000)
    assert not takes_others(text)
    assert not [*commits_in(text)]
    assert len([*versions_in(line * 10_000)]) <= 10_000
    assert time.process_time() - started < 5


def test_pins_are_read_once(root: Path) -> None:
    write(root / "requirements.txt", "torch==2.8.0\n")
    workspace = Workspace(root)
    assert pins_of(workspace) is pins_of(workspace)


@pytest.mark.parametrize(("files", "origin", "certain"), PINS)
def test_the_torch_that_the_tree_pins_comes_first(
    root: Path, install: Callable[..., Path], files: dict[str, str], origin: str, certain: bool
) -> None:
    install("interpreter", "2.9.0+cpu", "abs")
    assert told(find(root, files)) == (origin, certain)


@pytest.mark.parametrize(
    ("files", "there"),
    [
        ({"requirements.txt": "torch==1.8.0\n"}, False),
        ({"setup.py": "version = os.getenv('TORCH_XLA_VERSION', '1.10')\n"}, False),
        ({"docker/requirements.txt": "torch==2.1.0+cpu\n"}, False),
        ({"docker/requirements.txt": "torch==2.1.0\n", WORKFLOW: "- run: pip install torch\n"}, True),
        ({"requirements.txt": "torch>=1.8.0\n"}, True),
    ],
)
def test_no_known_torch_is_the_one_of_a_tree_that_pins_an_older_one(
    root: Path, install: Callable[..., Path], files: dict[str, str], there: bool
) -> None:
    install("interpreter", "2.9.0+cpu", "abs")
    assert (find(root, files) is not None) is there


def test_an_older_torch_counts_where_it_is_installed(root: Path, install: Callable[..., Path]) -> None:
    install("interpreter", "1.13.1", "abs")
    assert told(find(root, {"requirements.txt": "torch==1.13.1\n"})) == ("the installed torch 1.13.1", True)


def test_a_submodule_pins_its_commit(root: Path) -> None:
    section = '[submodule "pytorch"]\n\tpath = third_party/pytorch\n\turl = {}\n'
    write(root / ".gitmodules", section.format("https://github.com/pytorch/pytorch.git"))
    for command in (
        ["init", "-q"],
        ["update-index", "--add", "--cacheinfo", f"160000,{COMMIT_28},third_party/pytorch"],
    ):
        subprocess.run(["git", "-C", root, *command], check=True)
    assert told(find(root)) == (OF_28, True)
    write(root / ".gitmodules", section.format("https://github.com/pytorch/pytorch-fork"))
    assert find(root) is None


def test_the_environment_comes_before_the_pins(
    root: Path, install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSCHEMA_TORCH", str(install("named", "2.9.0", "abs")))
    assert told(find(root, {"requirements.txt": "torch==2.8.0\n"})) == ("the installed torch 2.9.0", False)


def test_nothing_is_imported(root: Path, install: Callable[..., Path]) -> None:
    before = set(sys.modules)
    packages = install("interpreter", "2.9.0", "abs") / "lib/python3.11/site-packages"
    write(packages / "torchgen/__init__.py", "raise AssertionError('torchgen is imported')\n")
    found = find(root)
    assert found is not None
    assert found.catalogue.complete
    assert not {name for name in set(sys.modules) - before if name.partition(".")[0] in ("torch", "torchgen")}
