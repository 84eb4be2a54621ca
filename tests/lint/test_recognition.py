"""Which files that cannot be read or parsed are reported: those that a pack recognises."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import load_registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace

Files = dict[str, str | bytes]

TWO_DOCUMENTS = "- name: a\n---\n- b: 1\n"
TEMPLATE = (
    'apiVersion: v1\nmetadata:\n  name: {{ include "chart.name" . }}\n{{- if .Values.x }}\nbackend: a\n{{- end }}\n'
)
OP = (
    "import torch\nfrom kit import helper\n\n\n@torch.library.custom_op('kit::f', mutates_args=())\n"
    "def f(x: torch.Tensor) -> torch.Tensor:\n    return x.clone()\n\n\n"
    "@f.register_fake\ndef _(x):\n    return torch.empty_like(x)\n"
)


def found(root: Path, files: Files, *select: str, cache: Cache | None = None) -> list[str]:
    """The engine's own findings of all packs, as code and path."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
    registry = load_registry()
    job = Job(registry, resolve_settings(Config(), registry, select=select))
    outcome = run(job, Project(Workspace(root), cache))
    own = {"OPS101", "OPS102", "OPS103", "YML001"}
    return [f"{item.code} {item.place.path}" for item in outcome.diagnostics if item.code in own]


@pytest.mark.parametrize(
    "files",
    [
        {"m.yaml": TWO_DOCUMENTS},
        {"meta.yaml": '{% set version = "1.0" %}\npackage:\n  name: kit\n  version: {{ version }}\n'},
        {"charts/templates/service.yaml": TEMPLATE},
        {"ingress.yaml": "spec:\n  backend: {{ .Values.backend }}\n  supported: [\n"},
        {"tags.yaml": "- tag: [v1\n  desc: first\n"},
        {"ops.yaml": "- func: {{ name }}\n  args: [\n"},
        {"binary.yaml": b"name: \xff\xfe\x00\x01\n"},
        {"latin.yaml": "name: caf\xe9\nfunc: x\n".encode("latin-1")},
        {"a.py": "# a custom_op may be broken here, and so may flydsl\ndef f(:\n"},
        {"a.py": "print 'register_fake'  # Python 2\n"},
        {"a.py": "# torch.library\n# caf\xe9\n".encode("latin-1")},
    ],
)
def test_a_file_that_nobody_recognises_is_no_finding(tmp_path: Path, files: Files) -> None:
    assert found(tmp_path, files) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"native_functions.yaml": TWO_DOCUMENTS}, "YML001 native_functions.yaml"),
        ({"aten/native_functions.yaml": b"\xff\xff"}, "OPS101 aten/native_functions.yaml"),
        ({"x.yaml": "- func: f(Tensor x) -> Tensor\n  variants: [\n"}, "YML001 x.yaml"),
        ({"x.yaml": "backend: XLA\ncpp_namespace: torch_xla\nsupported: [abs\n"}, "YML001 x.yaml"),
        ({"kit/op.py": OP + "def g(:\n"}, "OPS102 kit/op.py"),
        ({"kit/op.py": OP.encode() + b"# caf\xe9\n"}, "OPS101 kit/op.py"),
        ({"k.py": "from flydsl import compiler\ndef g(:\n"}, "OPS102 k.py"),
        ({"k.py": "@magi_register_custom_op('a::b')\ndef g(:\n"}, "OPS102 k.py"),
    ],
)
def test_a_file_that_a_pack_recognises_is_one(tmp_path: Path, files: Files, expected: str) -> None:
    assert found(tmp_path, files) == [expected]


def test_a_manifest_is_known_by_its_folder(tmp_path: Path) -> None:
    entry = "AddFwdOp:\n  signature: {}\n  roofline: {}\n  workloads: []\n"
    files: Files = {"kit/manifest/a.yaml": entry, "kit/manifest/b.yaml": "x: [\n", "kit/other/c.yaml": "name: [\n"}
    assert found(tmp_path, files) == ["YML001 kit/manifest/b.yaml"]


def test_a_module_that_a_recognised_one_imports_is_reported(tmp_path: Path) -> None:
    package: Files = {"kit/__init__.py": "", "kit/op.py": OP}
    broken = "def helper(:  # of torch.library\n"
    assert found(tmp_path, {**package, "kit/helper.py": broken}) == ["OPS102 kit/helper.py"]


def test_it_is_reported_also_where_the_importing_module_is_not_parsed_again(tmp_path: Path) -> None:
    kernel = "import flydsl.compiler as flyc\nimport flydsl.expr as fx\nfrom kit import helper\n\n\n"
    kernel += "@flyc.kernel\ndef copy(A: fx.Tensor):\n    A[0] = 1\n"
    files: Files = {"kit/__init__.py": "", "kit/kernel.py": kernel, "kit/helper.py": "def helper(:  # of flydsl\n"}
    cached = Cache(tmp_path / "cache.sqlite")
    first = found(tmp_path / "root", files, cache=cached)
    assert first == ["OPS102 kit/helper.py"]
    assert found(tmp_path / "root", {"kit/other.py": kernel}, cache=cached) == first


def test_a_broken_module_that_nothing_imports_is_not(tmp_path: Path) -> None:
    files: Files = {"kit/__init__.py": "", "kit/op.py": OP, "kit/template.py": "def {{ name }}(:  # of torch.library\n"}
    assert found(tmp_path, files) == []


def test_text_in_another_encoding_beside_operators_is_not_reported(tmp_path: Path) -> None:
    latin = "# caf\xe9\nx = 1\n".encode("latin-1")
    cpp = "// caf\xe9\nvoid f() { pointer.impl(); }\n".encode("latin-1")
    assert found(tmp_path, {"kit/__init__.py": "", "kit/op.py": OP, "tools/x.py": latin, "csrc/a.cpp": cpp}) == []


def test_a_selection_reports_files_of_the_packs_that_it_runs(tmp_path: Path) -> None:
    files: Files = {"native_functions.yaml": TWO_DOCUMENTS, "op.py": OP + "def g(:\n"}
    both = ["YML001 native_functions.yaml", "OPS102 op.py"]
    assert found(tmp_path, files) == both
    assert found(tmp_path, files, "ALL") == both
    assert found(tmp_path, files, "REG") == ["OPS102 op.py"]
    assert found(tmp_path, files, "ATN") == ["YML001 native_functions.yaml"]
    assert found(tmp_path, files, "YML001") == ["YML001 native_functions.yaml"]
    assert found(tmp_path, files, "SIG201") == []
