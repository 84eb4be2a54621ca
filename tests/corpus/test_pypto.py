"""simpler, pypto and pypto-lib: at the commits that mended by hand what opschema finds, and at their newest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Task, migrate_all
from opschema_cli.project import Project
from opschema_cli.testing import Linted
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.load import load, load_programs
from opschema_rules.pypto.model import Kernel
from opschema_rules.pypto.pack import PACK

Open = Callable[[str], Project]

JUDGED = Path(__file__).with_name("judged")


@pytest.fixture
def tree(corpus: Path) -> Open:
    def open_tree(name: str) -> Project:
        root = corpus / "pypto" / name
        if not root.is_dir():
            pytest.skip(f"pypto/{name} is not below OPSCHEMA_CORPUS")
        return Project(Workspace(root), Cache.for_workspace(root))

    return open_tree


def lint(project: Project, *select: str, **options: int) -> list[str]:
    """The findings as ``CODE path:line what is there``, in report order."""
    registry = Registry((PACK,))
    config = Config(pack_options={"pypto": {name.replace("_", "-"): value for name, value in options.items()}})
    linted = Linted(run(Job(registry, resolve_settings(config, registry, select=select)), project), project)
    return [
        f"{item.code} {item.place.path}:{linted.position(item.place).line} {' '.join(linted.text(item.place).split())}"
        for item in linted.diagnostics
    ]


# Each finding has been read, and is true.


@pytest.mark.parametrize("name", ["simpler-6ebaf7715", "pypto-e2d0f78ae", "pypto-lib-634e77bde"])
def test_what_is_found_is_what_was_judged(name: str, tree: Open) -> None:
    assert lint(tree(name)) == (JUDGED / f"{name}.txt").read_text().splitlines()


# An output that is read: it came to light as a NaN, and ten days later as a test that fails now and then. Two more were mended
# in `affb46123`, whose kernels choose by `switch` what they read.


@pytest.mark.parametrize(
    ("commit", "mended"),
    [
        ("affb46123p", ["tests/st/a2a3/host_build_graph/bgemm/test_bgemm.py:41"]),
        ("affb46123", ["tests/st/a2a3/host_build_graph/bgemm/test_bgemm.py:41"]),
        ("d60b8acdbp", ["tests/st/a2a3/host_build_graph/bgemm/test_bgemm.py:46"]),
        ("d60b8acdb", []),
    ],
)
def test_outputs_that_are_read(commit: str, mended: list[str], tree: Open) -> None:
    assert lint(tree(f"simpler-{commit}"), "PTO106") == [f"PTO106 {place} D.OUT" for place in mended]


def test_a_task_with_17_tensors_is_too_wide_for_the_older_runtime(tree: Open) -> None:
    found = lint(tree("simpler-6ebaf7715"), "PTO105", max_tensors=16)
    assert found
    assert all("/qwen3_14b_decode/" in item for item in found)
    assert lint(tree("simpler-6ebaf7715"), "PTO105") == []


# Signatures that a person completed


def kernels(project: Project) -> Iterator[tuple[tuple[str, str, int | None], Kernel]]:
    for program in load_programs(project, PyptoOptions()):
        for kernel in program.kernels:
            yield (program.file.path, program.name, kernel.func_id), kernel


def written(kernel: Kernel) -> str | None:
    """A signature, without its layout."""
    slots = kernel.signature.slots if kernel.signature is not None else None
    return None if slots is None else " ".join(slot.direction.value for slot in slots)


def derived(project: Project, name: str) -> Draft:
    migration = next(item for item in PACK.all_migrations() if item.name == name)
    task = Task(migration, migration.options(), lambda loaded: load(loaded, PyptoOptions()))
    registry = Registry((PACK,))
    draft = Draft(project, task.load)
    migrate_all(draft, [task], Ground(registry, resolve_settings(Config(), registry), Choice()))
    return draft


def test_derive_signatures_writes_what_a_person_wrote(tree: Open) -> None:
    before = {key: written(kernel) for key, kernel in kernels(tree("simpler-8b34712bcp"))}
    person = {key: written(kernel) for key, kernel in kernels(tree("simpler-8b34712bc"))}
    draft = derived(tree("simpler-8b34712bcp"), "derive-signatures")
    after = {key: written(kernel) for key, kernel in kernels(draft.project)}
    changed = [key for key in before if before[key] != person[key]]
    assert len(changed) == 20
    assert {key: after[key] for key in changed} == {key: person[key] for key in changed}


def without_signatures(text: str) -> str:
    """The text of a file without the signatures of kernels and the import of the directions."""
    module = ast.parse(text)
    module.body = [
        item for item in module.body if not (isinstance(item, ast.ImportFrom) and "ArgDirection" in ast.dump(item))
    ]
    for node in ast.walk(module):
        keys = [ast.unparse(key) for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
        if isinstance(node, ast.Dict) and "'func_id'" in keys and "'signature'" in keys:
            del node.values[keys.index("'signature'")], node.keys[keys.index("'signature'")]
    return ast.dump(module)


def test_derive_signatures_changes_what_lint_finds_and_nothing_else(tree: Open) -> None:
    found = lint(tree("simpler-8b34712bcp"), "PTO101", "PTO102")
    draft = derived(tree("simpler-8b34712bcp"), "derive-signatures")
    left = lint(draft.project, "PTO101", "PTO102")
    assert (len(found), len(left)) == (48, 3)
    for change in draft.changes:
        assert change.before is not None
        assert change.after is not None
        assert without_signatures(change.after) == without_signatures(change.before)
