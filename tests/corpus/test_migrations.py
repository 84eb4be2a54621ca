"""TileOPs' own refactorings, done by migrations: what of the person's change each reproduces, and what else it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Task, migrate_all
from opschema_cli.migrate.migration import Migration, Note
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.load import load
from opschema_rules.tileops.pack import PACK
from tests.corpus.comparison import (
    compare_code,
    compare_data,
    entries_of,
    manifest_texts,
    open_moved,
    open_parent,
)

MIGRATIONS: dict[str, Migration] = {item.name: item for item in PACK.all_migrations()}

Run = Callable[..., list[Note]]


@pytest.fixture(autouse=True)
def _has_both_trees(corpus: Path, request: pytest.FixtureRequest) -> None:
    commit = request.node.callspec.params["commit"]
    for name in (f"tileops-{commit}", f"tileops-{commit}-parent"):
        if not (corpus / name).is_dir():
            pytest.skip(f"{name} is not below OPSCHEMA_CORPUS")


def migrate(draft: Draft, name: str, **options: object) -> list[Note]:
    migration = MIGRATIONS[name]
    filled = msgspec.convert(dict(options), migration.options, strict=False)
    task = Task(migration, filled, lambda project: load(project, TileopsOptions()))
    registry = Registry((PACK,))
    ground = Ground(registry, resolve_settings(Config(), registry), Choice())
    return [item.note for item in migrate_all(draft, [task], ground)[0].notes]


@pytest.mark.parametrize("commit", ["a72e78b9"])
def test_rename_op_writes_the_very_bytes(commit: str, corpus: Path) -> None:
    draft = open_parent(corpus, commit)
    for stem in ("GroupNorm", "InstanceNorm"):
        assert not migrate(draft, "rename-op", old=f"{stem}FwdOpNoAffine", new=f"{stem}NoAffineFwdOp")
    assert len(draft.changes) == 8
    for change in draft.changes:
        assert change.after == (corpus / f"tileops-{commit}" / change.path).read_text()


HALF_RENAMED = [
    *(
        "Exp",
        "Log",
        "Sqrt",
        "Rsqrt",
        "Abs",
        "Neg",
        "Reciprocal",
        "Sign",
        "Sin",
        "Cos",
        "Floor",
        "Ceil",
        "Round",
        "Trunc",
    ),
    *("Erf", "Log1p", "Expm1", "Sigmoid", "Tanh", "LogicalNot", "BitwiseNot", "Isnan", "Isinf", "Isfinite"),
]


@pytest.mark.parametrize("commit", ["24886ce6"])
def test_rename_input(commit: str, corpus: Path) -> None:
    draft = open_parent(corpus, commit)
    ops = ["DropoutOp", "FFTC2COp", *(f"{stem}FwdOp" for stem in HALF_RENAMED)]
    assert not migrate(draft, "rename-input", old="x", new="input", op=",".join(ops))
    assert compare_data(corpus, commit, draft).of() == (107, 107, 0)
    assert compare_code(corpus, commit, draft, "tileops/ops").of() == (2, 2, 0)


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("e01a88ee", (66, 66, 0)),
        # Besides: two paths that the person forgot.
        ("a6b9ff24", (12, 12, 2)),
        # Differs in one: the file that defines the kernel, not the one with the old folder's name.
        ("6a61ba14", (67, 66, 1)),
        ("e4960c8c", (19, 19, 0)),
    ],
)
def test_move_sources(commit: str, expected: tuple[int, int, int], corpus: Path) -> None:
    draft = open_moved(corpus, commit)
    migrate(draft, "move-sources")
    assert compare_data(corpus, commit, draft).of() == expected


@pytest.mark.parametrize("commit", ["8ac5b963"])
def test_move_sources_leaves_paths_below_src(commit: str, corpus: Path) -> None:
    draft = open_moved(corpus, commit, "src/")
    migrate(draft, "move-sources")
    assert draft.changes_since(draft.project) == []
    assert compare_data(corpus, commit, draft).of() == (0, 0, 0)


def plain_lines(text: str) -> list[str]:
    """Lines that are not comments, without the spaces by which a person aligned them."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("commit", ["19ee4c2b", "46d0918a", "9448edbf"])
def test_split_manifest(commit: str, corpus: Path) -> None:
    wanted = manifest_texts(corpus / f"tileops-{commit}")
    shards = {path: text for path, text in wanted.items() if "elementwise_" in path}
    groups = "; ".join(f"{Path(path).stem}: {', '.join(entries_of({path: text}))}" for path, text in shards.items())
    told: Mapping[str, object] = {
        "19ee4c2b": {"into": "family", "folder": "tileops/manifest"},
        "46d0918a": {"into": groups},
        "9448edbf": {"into": "family", "ops": "drop"},
    }[commit]
    draft = open_parent(corpus, commit)
    migrate(draft, "split-manifest", **told)
    assert compare_data(corpus, commit, draft).of() == (0, 0, 0)
    for path, text in wanted.items():
        assert plain_lines(draft.text(path)) == plain_lines(text)
        assert commit != "9448edbf" or draft.text(path) == text


@pytest.mark.parametrize("commit", ["9448edbf"])
def test_merging_and_splitting_gives_the_same_bytes(commit: str, corpus: Path) -> None:
    root = corpus / f"tileops-{commit}"
    draft = open_moved(corpus, commit)
    migrate(draft, "split-manifest", into="family", ops="drop")
    migrate(draft, "merge-manifest", to="tileops/ops_manifest.yaml")
    migrate(draft, "split-manifest", into="family", folder="tileops/manifest")
    for path, text in manifest_texts(root).items():
        assert draft.text(path) == text


@pytest.mark.parametrize(
    ("commit", "what", "code"),
    [
        ("86149d97", "defaults", (6, 6, 0)),
        # Left: a class that monkey-patching hides, a base that no entry has. Besides: what the person mended in the manifest.
        ("4a776dee", "kw_only", (21, 19, 2)),
    ],
)
def test_sync_signature_of_the_code(commit: str, what: str, code: tuple[int, int, int], corpus: Path) -> None:
    draft = open_parent(corpus, commit)
    migrate(draft, "sync-signature", what=what, **{"from": "yaml"})
    assert compare_code(corpus, commit, draft, "tileops/ops").of() == code


@pytest.mark.parametrize("commit", ["4a776dee"])
def test_sync_signature_of_the_manifest(commit: str, corpus: Path) -> None:
    draft = open_parent(corpus, commit)
    migrate(draft, "sync-signature", what="kw_only", op="AddFwdOp,SubFwdOp,DivFwdOp", **{"from": "code"})
    assert compare_data(corpus, commit, draft).of() == (3, 3, 0)


def differences(old: object, new: object, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    """The keys of mappings that are new or have another plain value, and None for those that are gone; lists aside."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {} if old == new or isinstance(old, list) or isinstance(new, list) else {path: new}
    found: dict[tuple[str, ...], object] = {(*path, key): None for key in old if key not in new}
    found.update(((*path, key), value) for key, value in new.items() if key not in old)
    for key in old.keys() & new.keys():
        found.update(differences(old[key], new[key], (*path, key)))
    return found


def told_fields(corpus: Path, commit: str, *names: str) -> dict[tuple[str, str | None], list[str]]:
    """What a commit did to fields: path and value (None for a field that is gone), with the ops."""
    before = entries_of(manifest_texts(corpus / f"tileops-{commit}-parent"))
    after = entries_of(manifest_texts(corpus / f"tileops-{commit}"))
    found: dict[tuple[str, str | None], list[str]] = {}
    for op in before.keys() & after.keys():
        for path, value in differences(before[op], after[op]).items():
            if path[-1] in names:
                written = None if value is None and path[-1] in ("variant_of", "static_dims") else json.dumps(value)
                found.setdefault((".".join(path), written), []).append(op)
    return found


@pytest.mark.parametrize(
    ("commit", "names", "expected"),
    [
        ("dfce4964", ("bench_manifest_driven", "bench"), (104, 104, 0)),
        ("2b307059", ("static_dims",), (6, 6, 0)),
        ("2ec50323", ("mutated", "torch_compile_fullgraph", "bench_manifest_driven"), (28, 28, 0)),
        ("c986df54", ("kernel_map", "bench_manifest_driven"), (63, 63, 0)),
    ],
)
def test_fields(commit: str, names: tuple[str, ...], expected: tuple[int, int, int], corpus: Path) -> None:
    draft = open_parent(corpus, commit)
    for (path, value), ops in told_fields(corpus, commit, *names).items():
        if value is None:
            migrate(draft, "drop-field", path=path, op=",".join(ops))
        else:
            migrate(draft, "add-field", path=path, value=value, op=",".join(ops), replace=True)
    assert compare_data(corpus, commit, draft).of(*names) == expected
    child = corpus / f"tileops-{commit}"
    for change in draft.changes:
        new = [line for line in (change.after or "").splitlines() if line not in (change.before or "").splitlines()]
        written = (child / change.path).read_text().splitlines()
        assert sum(line not in written for line in new) <= 1


@pytest.mark.parametrize("commit", ["40bd165b"])
def test_a_field_goes_everywhere_and_a_flag_comes(commit: str, corpus: Path) -> None:
    draft = open_parent(corpus, commit)
    migrate(draft, "drop-field", path="variant_of")
    for (path, value), ops in told_fields(corpus, commit, "optional").items():
        migrate(draft, "add-field", path=path, value=value or "true", op=",".join(ops))
    found = compare_data(corpus, commit, draft)
    before = entries_of(manifest_texts(corpus / f"tileops-{commit}-parent"))
    after = entries_of(manifest_texts(corpus / f"tileops-{commit}"))
    kept = [leaf for leaf in found.human if leaf[0] in after and leaf[0] in before]
    assert sum("variant_of" in leaf for leaf in kept) == sum(
        "variant_of" in leaf for leaf in found.same if leaf[0] in after
    )
    # The other flags are of inputs that the person added with them.
    assert sum("optional" in leaf for leaf in found.same) == 6
    assert all("variant_of" in leaf for leaf in found.other)


@pytest.mark.parametrize("commit", ["daace1e6", "82535c3d"])
def test_drop_param_leaves_what_the_code_uses(commit: str, corpus: Path) -> None:
    """These commits took parameters out of the manifest that constructors kept, and use: one side alone is not changed."""
    before = entries_of(manifest_texts(corpus / f"tileops-{commit}-parent"))
    after = entries_of(manifest_texts(corpus / f"tileops-{commit}"))
    dropped: dict[str, list[str]] = {}
    for op in before.keys() & after.keys():
        gone = params_of(before[op]) - params_of(after[op])
        dropped.setdefault(",".join(sorted(gone)), []).append(op)
    draft = open_parent(corpus, commit)
    for names, ops in dropped.items():
        if names:
            notes = [note.message for note in migrate(draft, "drop-param", param=names, op=",".join(ops))]
            assert all(any(f"`{op}` by hand" in note and "it is used" in note for note in notes) for op in ops)
    assert draft.changes_since(draft.project) == []


def params_of(entry: object) -> set[str]:
    signature = entry.get("signature") if isinstance(entry, dict) else None
    return set(signature.get("params") or {}) if isinstance(signature, dict) else set()
