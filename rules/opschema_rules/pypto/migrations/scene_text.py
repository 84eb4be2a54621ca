"""Writes a scene test: the content of an old test as the class that simpler's harness runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.imports import drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.project import Project
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.pypto.migrations.old_configs import Config
from opschema_rules.pypto.migrations.old_goldens import Case, Golden
from opschema_rules.pypto.migrations.old_statements import Piece, Unclear, bound, header_of

_HARNESS = (b"class SceneTestCase", b"class TaskArgsBuilder")
_STEP = "    "

_METHODS = """\
    def generate_args(self, params):
        specs = []
        for name, value in generate_inputs(params):
            if isinstance(value, torch.Tensor):
                specs.append({tensor}(name, value))
            else:
                specs.append({scalar}(name, value))
        return TaskArgsBuilder(*specs)

    def compute_golden(self, args, params):
        tensors = {{spec.name: spec.value for spec in args.specs if isinstance(spec, {tensor})}}
        compute_golden(tensors, params)
        for name, value in tensors.items():
            getattr(args, name)[:] = value


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
"""


class Harness(msgspec.Struct, frozen=True):
    """The names that a tree's harness has for the parts of scene tests; ``manual`` if a case can be left out of a plain run."""

    module: str = "simpler_setup"
    tensor: str = "TensorArg"
    scalar: str = "Scalar"
    manual: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a scene test imports."""
        return (self.scalar, "SceneTestCase", "TaskArgsBuilder", self.tensor, "scene_test")


def find_harness(project: Project) -> Harness:
    """Return the harness of a tree; the newest one if the tree has none."""
    for path in project.workspace.files:
        file = project.python(path) if path.endswith(".py") and _holds(project, path) else None
        if file is not None:
            folder = path.rpartition("/")[0]
            tensor = "Tensor" if "Tensor" in file.classes else Harness().tensor
            scalar = "ScalarArg" if "ScalarArg" in file.classes else Harness().scalar
            return Harness(folder.rpartition("/")[2], tensor, scalar, '"manual"' in file.source.text)
    return Harness()


def _holds(project: Project, path: str) -> bool:
    data = project.workspace.peek(path)
    return all(word in data for word in _HARNESS)


def test_name(folder: str) -> str:
    """Return the name of the test for a program in that folder: ``multi_round`` for ``multi-round`` and ``multi_round_test``."""
    return re.sub(r"\W+", "_", folder.rpartition("/")[2]).removesuffix("_test") or "program"


def class_name(folder: str) -> str:
    """Return the name of the test's class."""
    return "Test" + "".join(part[:1].upper() + part[1:] for part in test_name(folder).split("_"))


def scene_text(config: Config, golden: Golden, harness: Harness, name: str, platforms: Sequence[str]) -> str:
    """Return the text of the scene test.

    Raises:
        Unclear: the two use a name for different things.
    """
    tree = golden.tree
    needed = {*config.names, *harness.names, name}
    if taken := sorted(item for item in needed if _is_taken(tree, item)):
        raise Unclear(f"`golden.py` has a `{taken[0]}` of its own")
    rewrite = Rewrite(tree)
    rewrite.remove(*golden.removed)
    drop_imports(rewrite, unused_imports(rewrite, golden.unused))
    at = _behind_imports(tree)
    gap = "" if _imported(tree) else "\n"
    has_torch = any("torch" in bound(item.body[0]) for item in _imported(tree))
    rewrite.replace(Span(at, at), gap + _imports(config, harness, has_torch=has_torch))
    body = rewrite.text().rstrip()
    header = "" if tree.text.startswith("#") else config.header
    text = f"{header}{body}\n\n\n{''.join(_class(config, golden, harness, name, platforms))}"
    return text.replace("\r\n", "\n").replace("\n", tree.module.default_newline)


def _is_taken(tree: PythonTree, name: str) -> bool:
    """Whether a module uses a name, except for local variables of its functions."""
    for node in tree.names(name):
        function = tree.enclosing(node, cst.FunctionDef)
        if function is None or not any(_is_written(tree, item) for item in tree.names(name, function.body)):
            return True
    return False


def _is_written(tree: PythonTree, node: cst.Name) -> bool:
    above = tree.parent(node)
    return isinstance(above, cst.AssignTarget) and above.target is node


def _imported(tree: PythonTree) -> list[cst.SimpleStatementLine]:
    lines = (item for item in tree.module.body if isinstance(item, cst.SimpleStatementLine))
    return [item for item in lines if isinstance(item.body[0], cst.Import | cst.ImportFrom)]


def _behind_imports(tree: PythonTree) -> int:
    """Return the end of the first lines of a module: its docstring and imports."""
    documented = tree.docstring(tree.module) is not None
    found = _imported(tree) or (tree.module.body[:1] if documented else [])
    return tree.line_end(tree.span(found[-1]).end - 1) if found else len(header_of(tree))


def _imports(config: Config, harness: Harness, *, has_torch: bool) -> str:
    first = ["import torch"] if not has_torch else []
    lines = [*first, *config.imports, "", f"from {harness.module} import {', '.join(harness.names)}"]
    return "".join(f"{line}\n" for line in lines)


def _class(config: Config, golden: Golden, harness: Harness, name: str, platforms: Sequence[str]) -> Iterator[str]:
    yield f'@scene_test(level=2, runtime="{config.runtime}")\nclass {name}(SceneTestCase):\n'
    if config.docstring:
        yield f"{_STEP}{_deeper(config.docstring, 1)}\n\n"
    for constant, text in golden.tolerances.items():
        yield f"{_STEP}{constant} = {_deeper(text, 1)}\n"
    if config.environment is not None:
        yield f"{_commented(config.environment, 1)}{_STEP}RUNTIME_ENV = {_deeper(config.environment.text, 1)}\n"
    yield "\n" if golden.tolerances or config.environment else ""
    yield f"{_STEP}CALLABLE = {{\n"
    for key, piece in (("orchestration", config.orchestration), ("incores", config.kernels)):
        yield f'{_commented(piece, 2)}{_STEP * 2}"{key}": {_deeper(piece.text, 2)},\n'
    yield f"{_STEP}}}\n\n"
    yield _commented(Piece("", (*config.settings_comments, *golden.cases_comments)), 1)
    yield f"{_STEP}CASES = [\n"
    for case in golden.cases:
        yield from _case(case, config.settings, platforms, manual=harness.manual and not case.default)
    yield f"{_STEP}]\n\n"
    yield _METHODS.format(tensor=harness.tensor, scalar=harness.scalar)


def _case(case: Case, settings: Mapping[str, str], platforms: Sequence[str], *, manual: bool) -> Iterator[str]:
    inner = _STEP * 3
    listed = ", ".join(f'"{name}": {value}' for name, value in settings.items())
    yield f"{_commented(case.params, 2)}{_STEP * 2}{{\n"
    yield f'{inner}"name": {case.name},\n{inner}"platforms": {json.dumps(list(platforms))},\n'
    yield f'{inner}"config": {{{listed}}},\n{inner}"params": {_deeper(case.params.text, 2)},\n'
    yield f'{inner}"manual": True,\n' if manual else ""
    yield f"{_STEP * 2}}},\n"


def _commented(piece: Piece, depth: int) -> str:
    return "".join(f"{_STEP * depth}{line}\n" for line in piece.comments)


def _deeper(text: str, depth: int) -> str:
    """Return a text with all lines after the first indented by some more steps."""
    first, *others = text.split("\n")
    return "\n".join([first, *(_STEP * depth + line if line.strip() else "" for line in others)])
