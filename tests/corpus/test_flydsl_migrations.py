"""The migrations of the pack flydsl at commits of FlyDSL of which the next one did the same by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Change, Draft
from opschema_cli.migrate.engine import Ground, Result, Task, migrate_all
from opschema_cli.migrate.options import fill
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.load import load
from opschema_rules.flydsl.pack import PACK

Migrate = Callable[..., "tuple[dict[str, Change], Result]"]


@pytest.fixture
def tree(corpus: Path) -> Callable[[str], Path]:
    def folder(commit: str) -> Path:
        root = corpus / "flydsl" / commit
        if not root.is_dir():
            pytest.skip(f"flydsl/{commit} is not below OPSCHEMA_CORPUS")
        return root

    return folder


@pytest.fixture
def migrate(tree: Callable[[str], Path]) -> Migrate:
    def run(commit: str, name: str, *options: str) -> tuple[dict[str, Change], Result]:
        root = tree(commit)
        project = Project(Workspace(root), Cache.for_workspace(root))
        migration = next(item for item in PACK.all_migrations() if item.name == name)
        task = Task(migration, fill([migration], options)[name], lambda loaded: load(loaded, FlydslOptions()))
        registry = Registry((PACK,))
        draft = Draft(project, task.load)
        ground = Ground(registry, resolve_settings(Config(), registry), Choice())
        result = migrate_all(draft, [task], ground)[0]
        return {change.path: change for change in draft.changes}, result

    return run


def notes(result: Result) -> list[str]:
    return [f"{left.note.place.path}:{left.position.line}: {left.note.message}" for left in result.notes]


def test_drop_num_records_does_what_a_person_did(migrate: Migrate, tree: Callable[[str], Path]) -> None:
    changes, result = migrate("4cffe5f6", "drop-num-records")
    example = "examples/04-preshuffle_gemm.py"
    assert list(changes) == [example]
    mine = (changes[example].after or "").splitlines()
    person = (tree("5301ec17") / example).read_text().splitlines()
    assert mine[25:28] == [
        "    # Exact descriptor sizes from compile-time shape (f16 = 2 bytes/elem);",
        "    # ``num_records_bytes`` is required with ``max_size=False`` to avoid",
        "    # silent OOB on JIT-cache reuse across shapes.",
    ]
    assert mine[:25] + mine[28:] == person
    assert f"{example}:26: this comment still mentions the removed `num_records_bytes`" in notes(result)
    left = {item.site.place.path for item in result.sites if item.status == "left"}
    assert left == {"kernels/fp8_gemm_utils.py"}, "which a person left too"


def without_docstring(text: str) -> str:
    module = ast.parse(text)
    module.body = module.body[1:]
    return ast.dump(module)


def test_drop_mark_static_does_what_a_person_did(migrate: Migrate, tree: Callable[[str], Path]) -> None:
    changes, result = migrate("1dfedbf4", "drop-mark-static")
    method, test = "python/flydsl/compiler/jit_argument.py", "tests/unit/test_tensor_cache_signature.py"
    person = tree("1f8f3325")
    assert list(changes) == [method, test]
    assert changes[method].after == (person / method).read_text()
    assert without_docstring(changes[test].after or "") == without_docstring((person / test).read_text())
    assert notes(result) == [
        f"{test}:{line}: mentions of `mark_static` were removed here: check the text" for line in (6, 78)
    ]
    files = {path.relative_to(tree("1dfedbf4")).as_posix(): path for path in tree("1dfedbf4").rglob("*.py")}
    after = {path: changes[path].after if path in changes else file.read_text() for path, file in files.items()}
    assert [path for path, text in after.items() if "mark_static" in (text or "")] == []


def test_add_num_records_finds_what_a_person_mended(migrate: Migrate) -> None:
    changes, result = migrate("5e64bba2", "add-num-records")
    assert changes == {}
    kinds = [item.site.title.split("`")[1] for item in result.sites]
    assert sorted(set(kinds)) == ["create_buffer_resource", "make_buffer_tensor"]
    assert (kinds.count("create_buffer_resource"), kinds.count("make_buffer_tensor")) == (18, 7)
    assert len(result.notes) == 25


def test_rename_api_renames_what_a_person_renamed(migrate: Migrate, tree: Callable[[str], Path]) -> None:
    changes, _ = migrate("b25dbe1a", "rename-api", "to=0.2.2")
    person = tree("0fab09fd")
    same, kept, others = 0, 0, []
    for path, change in changes.items():
        theirs = set((person / path).read_text().splitlines())
        pairs = zip((change.before or "").splitlines(), (change.after or "").splitlines(), strict=True)
        for before, after in pairs:
            if before != after:
                same += after in theirs and "from_torch_tensor" in after
                kept += after not in theirs and before in theirs
                others += [before] if after not in theirs and before not in theirs else []
    assert same == 55
    assert kept == 4, "in two examples, whose calls go on to work"
    assert all(re.search(r"TensorAdaptor.*\._[a-z]", line) for line in others), "private attributes, which changed too"
    own = [path for path in changes if path.startswith("python/")]
    assert own == []
