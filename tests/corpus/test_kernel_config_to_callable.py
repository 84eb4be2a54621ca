"""`kernel-config-to-callable` on simpler before commit 2e598d648 did the same by hand: the data of both, by parsing them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.corpus.test_derive_signatures import migrate, tree


def callables(text: str) -> Iterator[dict[str, object]]:
    """The class variables of each class with a ``CALLABLE``, as data; calls and the like as they are written."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            pairs = ((item.targets[0], item.value) for item in node.body if isinstance(item, ast.Assign))
            found = {target.id: data(value) for target, value in pairs if isinstance(target, ast.Name)}
            if "CALLABLE" in found:
                yield {**found, "decorators": [ast.unparse(item) for item in node.decorator_list]}


def data(node: ast.expr | None) -> object:
    if isinstance(node, ast.Dict):
        return {data(key): data(value) for key, value in zip(node.keys, node.values, strict=True)}
    if isinstance(node, ast.List):
        return [data(item) for item in node.elts]
    return node.value if isinstance(node, ast.Constant) else ast.unparse(node) if node is not None else None


def without_names(found: dict[str, object]) -> object:
    """The description of a program without the names of its kernels, by their numbers."""
    described = found["CALLABLE"]
    assert isinstance(described, dict)
    kernels = [{key: value for key, value in item.items() if key != "name"} for item in described["incores"]]
    return {**described, "incores": sorted(kernels, key=lambda kernel: str(kernel["func_id"]))}


def program_of(path: str) -> tuple[str, ...]:
    """Platform, runtime and name: what stays when an example becomes a test in another folder."""
    return tuple(part.replace("-", "_") for part in path.split("/")[-4:-1])


def test_descriptions_are_those_of_the_human(corpus: Path) -> None:
    """The human dropped the kernels' names, and put them back later (8b8ea9004); one orchestration's name was corrected."""
    root, human_root = tree(corpus, "2e598d648p"), tree(corpus, "2e598d648")
    draft, result = migrate(root, "kernel-config-to-callable", "platforms=a2a3sim,a2a3")
    made = {change.path: change.after for change in draft.changes if change.before is None and change.after}
    assert (len(made), len([item for item in result.sites if item.status == "left"])) == (35, 5)
    assert not any(draft.project.workspace.is_file(path.rpartition("/")[0] + "/golden.py") for path in made)

    human = {program_of(path.as_posix()): path for path in sorted(human_root.rglob("test_*.py"))}
    gone = {path: text for path, text in made.items() if not (human_root / path).with_name("golden.py").exists()}
    same: dict[str, bool] = {}
    for path, text in gone.items():
        (mine,) = callables(text)
        (theirs,) = callables(human[program_of(path)].read_text())
        same[path] = without_names(mine) == without_names(theirs)
        if "_BatchPaged" not in human[program_of(path)].read_text():
            assert [mine[key] for key in ("decorators", "RTOL")] == [theirs[key] for key in ("decorators", "RTOL")]
    assert len(same) == 13
    different = [path for path, equal in same.items() if not equal]
    assert different == ["tests/st/a2a3/tensormap_and_ringbuffer/paged_attention_unroll/test_paged_attention_unroll.py"]
