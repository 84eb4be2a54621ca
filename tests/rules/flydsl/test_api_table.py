"""The table of FlyDSL's names by release, and how it is read out of the releases' texts."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from subprocess import CompletedProcess
from zipfile import ZipFile

import pytest
from packaging.version import Version

from benchmarks.flydsl_releases import missing
from opschema_rules.flydsl.api_reading import Package
from opschema_rules.flydsl.api_table import Api, has, having, load_api, members, missing_from, parse_api, render_api
from opschema_rules.flydsl.contract import RELEASES, known
from opschema_rules.flydsl.key import PROGRAM_SINCE


def test_the_releases_are_read_alone() -> None:
    assert tuple(sorted(load_api())) == RELEASES


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("flydsl.compiler.from_dlpack", f"0.1.5 to {RELEASES[-1]}"),
        ("flydsl.compiler.from_torch_tensor", f"0.2.2 to {RELEASES[-1]}"),
        ("flydsl.expr.buffer_ops.create_buffer_resource", "0.1.5 to 0.2.4"),
        ("flydsl.expr.rocdl.cluster.compute_mcast_masks", "0.1.8 to 0.2.4"),
        ("flydsl.expr.rocdl.mfma_f32_16x16x16f16", f"0.1.5 to {RELEASES[-1]}"),
        ("flydsl.expr.rocdl", f"0.1.5 to {RELEASES[-1]}"),
        ("flydsl.compiler.TensorAdaptor", ""),
        ("flydsl.compiler.jit_function.KernelFunction", "0.1.5 to 0.4.2"),
        ("flydsl.compiler.jit_function._jit_function_cache_key", "0.1.5 to 0.4.2"),
        ("flydsl.compiler.kernel_function.KernelFunction", f"0.1.5 to {RELEASES[-1]}"),
    ],
)
def test_releases_of_names(name: str, releases: str) -> None:
    found = having(name)
    assert known(found) == releases
    assert [item for item in RELEASES if has(name, item)] == found


def test_what_a_release_brought() -> None:
    assert having("flydsl.extension.coop.warp.reduce.warp_sum")[0] == Version("0.5.0")
    assert having("flydsl.compiler.jit_function._artifact_cache_key")[0] == PROGRAM_SINCE


def test_what_is_not_known() -> None:
    assert has("flydsl.compiler.jit", Version("99")) is None
    assert missing_from("flydsl.expr.arith.whatever", Version("0.4.2")) == ""  # it takes a compiled module's names
    assert missing_from("flydsl._mlir.whatever", Version("0.4.2")) == ""
    assert missing_from("flydsl.expr.Tensor.whatever", Version("0.4.2")) == ""
    assert missing_from("flydsl.nowhere.whatever", Version("0.4.2")) == "flydsl.nowhere"
    assert missing_from("torch.whatever", Version("0.4.2")) == ""


def test_what_wrapped_tensors_have() -> None:
    marks = {
        version: sorted(name for name in members("from_dlpack", Version(version)) or () if name.startswith("mark_"))
        for version in ("0.1.8", "0.2.0", "0.2.1", "0.5.0")
    }
    dims = ["mark_layout_dynamic", "mark_shape_dynamic", "mark_stride_dynamic"]
    assert marks == {"0.1.8": dims[:1], "0.2.0": dims[:1], "0.2.1": dims, "0.5.0": dims}
    assert members("from_torch_tensor", Version("0.2.1")) is None


def test_a_package_is_read_without_importing_it(tmp_path: Path) -> None:
    wheel = tmp_path / "flydsl-9.9-py3-none-any.whl"
    files = {
        "flydsl/__init__.py": "from .tools import *\nraise SystemExit\n",
        "flydsl/tools.py": '__all__ = ["a", "b"]\n__all__ += ["_c"]\ndef a(): ...\ndef hidden(): ...\n',
        "flydsl/open.py": "from ._mlir.compiled import *\nhere = 1\n",
        "flydsl/exporting.py": 'from ._mlir.compiled import *\n__all__ = ["here"]\nhere = 1\n',
        "flydsl/circle.py": "from .circle import *\n",
        "flydsl/with_.py": "x, (y, *z) = f()\nfor i in z: j = i\nwith f() as g, f() as (h, k): pass\nl: int = 1\nimport a.b as m\n",
        "flydsl/lazy.py": '_MODULES = {"rocdl": ".rocdl"}\ndef __getattr__(name): ...\n',
        "flydsl/hooked.py": "from .tools import load as __getattr__\n",
        "flydsl/both.py": "old = 1\n",
        "flydsl/both/__init__.py": "try:\n    from . import inner as new\nexcept ImportError:\n    other = 1\n",
        "flydsl/both/inner.py": "",
        "flydsl/_private/inner.py": "x = 1\n",
        "flydsl/_mlir/ir.py": "from .compiled import *\n",
        "numpy/__init__.py": "zeros = 1\n",
        "flydsl.libs/notes.txt": "import flydsl\n",
        "flydsl/compiler/jit_argument.py": """\
class Base:
    def mark(self):
        self.marked = True

class Tensor(Base):
    size = property()

def from_dlpack(tensor) -> Tensor: ...
def from_torch_tensor(tensor): ...
""",
    }
    with ZipFile(wheel, "w") as written:
        for path, text in files.items():
            written.writestr(path, text)
    found = {
        name: sorted(names) if names is not None else None for name, names in Package.of_wheel(wheel).api().items()
    }
    assert found == {
        "flydsl": [
            *("_c", "_mlir", "_private", "a", "b", "both", "circle", "compiler", "exporting", "hooked", "lazy", "open"),
            *("tools", "with_"),
        ],
        "flydsl.both": ["inner", "new", "other"],
        "flydsl.both.inner": [],
        "flydsl.circle": None,
        "flydsl.compiler.from_dlpack()": ["mark", "marked", "size"],
        "flydsl.compiler.jit_argument": ["Base", "Tensor", "from_dlpack", "from_torch_tensor"],
        "flydsl.exporting": None,
        "flydsl.hooked": None,
        "flydsl.lazy": ["_MODULES", "__getattr__", "rocdl"],
        "flydsl.open": None,
        "flydsl.tools": ["__all__", "a", "hidden"],
        "flydsl.with_": [*"ghijklmxyz"],
    }


def test_the_table_reads_back() -> None:
    old: Api = {"flydsl": frozenset({"a", "b"}), "flydsl.open": None, "flydsl.gone": frozenset()}
    new: Api = {"flydsl": frozenset({"b", "c"}), "flydsl.open": frozenset({"x"})}
    found = {Version("0.1"): old, Version("0.2"): new, Version("0.3"): old}
    assert parse_api(render_api(found)) == found
    assert '"-0.1,0.3-": "a"' in render_api(found).decode()
    assert parse_api(render_api(load_api())) == load_api()


@pytest.mark.skipif("OPSCHEMA_ONLINE" not in os.environ, reason="it asks PyPI: set OPSCHEMA_ONLINE")
def test_no_release_is_missing() -> None:
    assert missing() == []


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("flydsl (9.1)\nAvailable versions: 9.1, 9.0, 0.5.0, 0.1.5\n  LATEST:    9.1\n", ["9.0", "9.1"]),
        ("flydsl (0.5.0)\nAvailable versions: 0.5.0\n", []),
    ],
)
def test_releases_that_are_new(listed: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: object) -> CompletedProcess[str]:
        return CompletedProcess(command, 0, listed)

    monkeypatch.setattr("subprocess.run", run)
    assert missing() == [Version(item) for item in found]


def test_against_the_installed_flydsl() -> None:
    """No name that a module has when it is imported is missing from the table."""
    flydsl = pytest.importorskip("flydsl", reason="FlyDSL is not installed")
    release = Version(flydsl.__version__)
    if release not in load_api():
        pytest.skip(f"FlyDSL {release} is not in the table")
    for module in pkgutil.walk_packages(flydsl.__path__, "flydsl."):
        table = load_api()[release].get(module.name)
        if table is not None and not module.name.startswith(("flydsl._mlir", "flydsl.extension")):
            names = {name for name in dir(importlib.import_module(module.name)) if not name.startswith("__")}
            assert names <= table, module.name
