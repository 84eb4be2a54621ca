"""The migrations of the pack `pypto` on simpler before people did the same by hand: what they wrote, by parsing both."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import load_config
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Result, Task, migrate_all
from opschema_cli.migrate.options import fill
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.load import load_programs
from opschema_rules.pypto.pack import PACK

Fields = dict[str, list[str] | None]
"""What a kernel's dict, or the orchestration's, says in the fields that are lists."""

_LISTS = ("signature", "arg_index")

JUDGED = Path(__file__).with_name("judged")

NOTED = [
    "examples/a2a3/tensormap_and_ringbuffer/scalar_data_test/test_scalar_data.py",
    *["examples/a5/tensormap_and_ringbuffer/bgemm/test_bgemm.py"] * 2,
    *["tests/st/a2a3/tensormap_and_ringbuffer/spmd_paged_attention_highperf/test_spmd_paged_attention_highperf.py"] * 2,
]
"""What is left to a person at 8b34712bc^: a tensor added in two ways, and MIX kernels of which each declares the whole payload."""

RENAMED = {
    f"examples/{arch}/tensormap_and_ringbuffer/paged_attention_unroll_manual_scope/{old}.py": (
        f"examples/{arch}/tensormap_and_ringbuffer/paged_attention_unroll_manual_scope/{new}.py"
    )
    for arch in ("a2a3", "a5")
    for old, new in [("test_paged_attention_unroll", "test_paged_attention_unroll_manual_scope")]
}
"""Files by what they are called in the newest tree."""


def tree(corpus: Path, name: str) -> Path:
    """A checkout of simpler; one with a ``p`` at its end is the parent of the commit."""
    root = corpus / "pypto" / f"simpler-{name}"
    if not root.is_dir():
        pytest.skip(f"pypto/simpler-{name} is not below OPSCHEMA_CORPUS")
    return root


def opened(root: Path) -> Project:
    return Project(Workspace(root), Cache.for_workspace(root))


@lru_cache(1)
def derived_signatures(root: Path) -> tuple[Draft, Result]:
    """`derive-signatures` in the whole of a tree."""
    return migrate(root, "derive-signatures")


def migrate(root: Path, name: str, *options: str, only: tuple[str, ...] = ()) -> tuple[Draft, Result]:
    """Run a migration, and once more, which may change nothing."""
    registry = Registry((PACK,))
    record = next(item for item in PACK.all_migrations() if item.name == name)
    task = Task(record, fill([record], options)[name], lambda project: PACK.load(project, PyptoOptions()))
    draft = Draft(opened(root), task.load)
    config, _ = load_config(root)
    ground = Ground(registry, resolve_settings(config, registry), Choice(only))
    result = migrate_all(draft, [task], ground)[0]
    changes = draft.changes
    migrate_all(draft, [task], ground)
    assert draft.changes == changes
    return draft, result


def dicts(text: str) -> list[Fields]:
    """The lists of each dict of a description, in the order of the file."""
    found: list[Fields] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            fields = {key.value: value for key, value in _pairs(node)}
            if "func_id" in fields or "function_name" in fields:
                found.append({name: _items(fields.get(name)) for name in _LISTS})
    return found


def _pairs(node: ast.Dict) -> Iterator[tuple[ast.Constant, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            yield key, value


def _items(value: ast.expr | None) -> list[str] | None:
    if not isinstance(value, ast.List):
        return None
    return [item.attr if isinstance(item, ast.Attribute) else ast.unparse(item) for item in value.elts]


def without_lists(text: str) -> str:
    """A module without those fields."""
    parsed = ast.parse(text)
    for node in ast.walk(parsed):
        if isinstance(node, ast.Dict):
            kept = [
                (key, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if not (isinstance(key, ast.Constant) and key.value in _LISTS)
            ]
            node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]
    return ast.dump(parsed)


def descriptions(root: Path) -> dict[str, str]:
    """The Python files of a tree that describe kernels."""
    paths = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
    texts = {name: path.read_text() for name, path in paths.items()}
    return {name: text for name, text in texts.items() if "func_id" in text}


Key = tuple[str, int]


def fields_of(texts: Mapping[str, str]) -> dict[Key, Fields]:
    """The lists of all dicts by file and number."""
    return {(name, number): item for name, text in texts.items() for number, item in enumerate(dicts(text))}


def after(draft: Draft, before: Mapping[str, str]) -> dict[str, str]:
    """The same files in a draft; nothing but their lists, and no other file, is changed."""
    changed = {change.path: change.after or "" for change in draft.changes}
    assert changed.keys() <= before.keys()
    for path, text in changed.items():
        assert without_lists(text) == without_lists(before[path]), path
    return {**before, **changed}


def test_signatures_are_those_of_the_human(corpus: Path) -> None:
    """Commit 8b34712bc completed 20 signatures; in the files that it touched nothing else is wrong."""
    root = tree(corpus, "8b34712bcp")
    texts = descriptions(root)
    human_texts = descriptions(tree(corpus, "8b34712bc"))
    before, human = fields_of(texts), fields_of(human_texts)
    changed = {key for key, fields in before.items() if human[key] != fields}
    assert len(changed) == 20

    touched = tuple(sorted({path for path, _ in changed}))
    draft, result = migrate(root, "derive-signatures", only=touched)
    derived = fields_of(after(draft, texts))
    assert {key for key in before if derived[key] != before[key]} == changed
    assert {key for key in changed if derived[key] == human[key]} == changed
    assert result.notes == []
    for path in touched:
        kept = [line for line in texts[path].splitlines() if "#" in line]
        assert [line for line in draft.text(path).splitlines() if "#" in line] == kept


Signatures = dict[tuple[str, int], str]
"""The declarations of kernels (``IN OUT``, ``-`` for nothing), by file and ``func_id``."""


def signatures(project: Project) -> Signatures:
    """Those of all kernels whose number is known, in trees where no file describes two programs."""
    found = [
        ((program.file.path, kernel.func_id), kernel.signature)
        for program in load_programs(project, PyptoOptions())
        for kernel in program.kernels
        if kernel.func_id is not None
    ]
    return {key: " ".join(slot.direction.value for slot in part.slots or ()) if part else "-" for key, part in found}


@dataclass(frozen=True)
class Line:
    """A line of the judged list: a kernel, its signature before and after, and who wrote the same or did not."""

    path: str
    func_id: int
    before: str
    after: str
    whose: str

    @classmethod
    def parse(cls, text: str) -> Line:
        found = re.fullmatch(r"(\S+):(\d+) (.+) => (.+) \((.+)\)", text)
        assert found is not None, text
        return cls(found[1], int(found[2]), found[3], found[4], found[5])


def test_elsewhere_the_same_fault_is_corrected_alike(corpus: Path) -> None:
    """The human's 20 and 25 more, of which nothing is dumped either. People corrected nine of these later, to what is written
    here; the others are still wrong in the newest tree. None was ever written otherwise.
    """
    listed = (JUDGED / "derive-signatures-8b34712bcp.txt").read_text().splitlines()
    lines = [Line.parse(line) for line in listed]
    root = tree(corpus, "8b34712bcp")
    draft, result = derived_signatures(root)
    before, derived = signatures(opened(root)), signatures(draft.project)
    changed = {key: (before[key], derived[key]) for key in before if before[key] != derived[key]}
    assert changed == {(line.path, line.func_id): (line.before, line.after) for line in lines}
    assert Counter(line.whose for line in lines) == {
        "8b34712bc": 20, "later: b972b288e": 7, "later: 0194fde75": 2, "still at 6ebaf7715": 16
    }  # fmt: skip
    assert [site.note.place.path for site in result.notes] == NOTED

    trees = {name: signatures(opened(tree(corpus, name))) for name in ("8b34712bc", "b972b288e", "6ebaf7715")}
    for line in lines:
        key, newest = (line.path, line.func_id), (RENAMED.get(line.path, line.path), line.func_id)
        assert trees["8b34712bc"][key] == (line.after if line.whose == "8b34712bc" else line.before)
        assert trees["b972b288e"][key] == (
            line.after if "8b34712bc" in line.whose or "b972b288e" in line.whose else line.before
        )
        assert trees["6ebaf7715"][newest] == (line.before if "still" in line.whose else line.after)


def test_every_signature_that_changes_is_one_that_a_rule_reports(corpus: Path) -> None:
    """As one of which nothing is dumped; afterwards only what the notes tell is left, and nothing else in the tree differs."""
    root = tree(corpus, "8b34712bcp")
    texts = descriptions(root)
    draft, result = derived_signatures(root)
    assert after(draft, texts).keys() == texts.keys()
    before, derived = signatures(opened(root)), signatures(draft.project)
    changed = {key for key in before if derived[key] != before[key]}
    found = lint(opened(root))
    assert {item.code for item in found} == {"PTO101", "PTO102"}
    assert changed <= {(item.place.path, int(item.ops[0].split()[1])) for item in found}
    left = lint(draft.project)
    assert {item.place.path for item in left} == {item.note.place.path for item in result.notes}


def lint(project: Project) -> list[Diagnostic]:
    """The findings about kernels' signatures."""
    registry = Registry((PACK,))
    config, _ = load_config(project.workspace.root)
    settings = resolve_settings(config, registry, select=["PTO101", "PTO102", "PTO103", "PTO104"])
    return run(Job(registry, settings), project).diagnostics


@pytest.mark.parametrize(("commit", "count"), [("d60b8acdb", 1), ("affb46123", 2)])
def test_directions_of_orchestrations_are_those_of_the_human(corpus: Path, commit: str, count: int) -> None:
    """The third of affb46123's tree is the one that d60b8acdb corrects later."""
    root = tree(corpus, f"{commit}p")
    texts = descriptions(root)
    draft, _ = migrate(root, "orchestration-directions")
    before, human = fields_of(texts), fields_of(descriptions(tree(corpus, commit)))
    derived = fields_of(after(draft, texts))
    changed = {key for key, fields in before.items() if human[key] != fields}
    assert len(changed) == count
    assert {key for key in changed if derived[key] == human[key]} == changed
    others = {path for path, number in before if derived[path, number] != before[path, number]} - dict(changed).keys()
    later = {"tests/st/a2a3/host_build_graph/bgemm/test_bgemm.py"}
    assert others == (set() if commit == "d60b8acdb" else later)


def test_nothing_is_left_to_direct_in_the_newest_tree(corpus: Path) -> None:
    _, result = migrate(tree(corpus, "6ebaf7715"), "orchestration-directions")
    assert result.sites == []


def test_named_slots_are_those_of_the_human(corpus: Path) -> None:
    """Commit b972b288e named the slots of all signatures by hand; those that it wrote anew at the same time left out."""
    root = tree(corpus, "b972b288ep")
    texts = descriptions(root)
    draft, result = migrate(root, "arg-index", "action=add")
    before, human = fields_of(texts), fields_of(descriptions(tree(corpus, "b972b288e")))
    derived = fields_of(after(draft, texts))
    same = {key for key, fields in before.items() if human[key]["signature"] == fields["signature"]}
    named = {key for key in same if human[key]["arg_index"] is not None}
    assert {key for key in named if derived[key] == human[key]} == named
    assert {key for key in before if derived[key] != before[key]} == named
    (note,) = result.notes
    assert note.note.place.path == "examples/a5/tensormap_and_ringbuffer/bgemm/test_bgemm.py"


def test_dropped_again_they_leave_the_tree_as_it_was(corpus: Path) -> None:
    root = tree(corpus, "b972b288e")
    texts = descriptions(root)
    draft, _ = migrate(root, "arg-index", "action=drop")
    dropped = fields_of(after(draft, texts))
    assert [fields for fields in dropped.values() if fields["arg_index"] is not None] == []
    assert {key: fields["signature"] for key, fields in dropped.items()} == {
        key: fields["signature"] for key, fields in fields_of(texts).items()
    }
