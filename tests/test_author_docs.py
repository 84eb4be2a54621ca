"""The examples in the pages for authors work as they are written, and the names in the pages exist."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli import api
from opschema_cli.workspace import Workspace

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("writing-a-pack.md", "writing-a-rule.md", "writing-a-migration.md", "faster-packs.md")
TEXTS = {name: (DOCS / name).read_text(encoding="utf-8") for name in PAGES}
_BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = {name: text for page in TEXTS.values() for name, text in _BLOCK.findall(page)}
TESTS = [name for name in MODULES if name.startswith("test_")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All modules of the pages, side by side."""
    folder = tmp_path_factory.mktemp("docs")
    for name, text in MODULES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_every_block_of_python_is_one_of_the_modules() -> None:
    assert sum(text.count("```python\n") for text in TEXTS.values()) == len(MODULES)
    assert len(TESTS) == 3


def test_the_tests_of_the_pages_pass_and_the_other_modules_can_be_imported(folder: Path) -> None:
    # Python 3.10 has no tomllib.
    others = [
        name.removesuffix(".py")
        for name in MODULES
        if name not in TESTS and (name != "toml_tables.py" or sys.version_info >= (3, 11))
    ]
    (folder / "test_imports.py").write_text(
        f"import importlib\nfor name in {others}:\n    importlib.import_module(name)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, "test_imports.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert "10 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="it has no tomllib")
def test_the_example_of_another_format(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("toml_tables")
    source = api.Source("ops.toml", '[ops.a]\nimpl = "a.py"\nargs = [\n  "x"]\n\n[ops.b]\nimpl =\n[ops.c]\nx = 1\n')
    found = list(module.tables(source))
    assert [(name, values) for name, _, values in found] == [("a", {"impl": "a.py", "args": ["x"]}), ("c", {"x": 1})]
    assert module.key_of(source, found[0][1], "args") == (22, 26)
    assert module.key_of(source, found[1][1], "args") is None


def test_the_example_of_operators_fills_the_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("kernel_operators")
    workspace = Workspace(folder, {"kernels.yaml": "scale: {dtype: fp16}\nadd: {}\n"})
    found = {item.name: item for item in module.operators(api.Project(workspace))}
    assert list(found) == ["scale", "add"]
    assert found["scale"].declaration.arguments[0].dtypes == ("fp16",)
    assert [gap.reason for gap in found["add"].gaps()] == ["not read"]


def test_a_pack_with_a_rule_a_fix_and_a_migration_takes_less_than_100_lines() -> None:
    assert MODULES["kernel_tables.py"].count("\n") < 100


def test_each_name_of_the_api_is_that_of_the_module_that_defines_it() -> None:
    source = Path(api.__file__).read_text(encoding="utf-8")
    listed = set(re.findall(r"from opschema_cli\.([\w.]+) import (\w+) as \2", source))
    assert listed == {(module, name) for name, module in api._MODULES.items()}
    for name in api.__all__:
        assert getattr(api, name) is not None


def test_a_name_that_the_api_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = api.nothing


def test_every_name_of_the_api_is_in_a_page() -> None:
    text = "\n".join(TEXTS.values())
    assert [name for name in api.__all__ if not re.search(rf"\b{name}\b", text)] == []
