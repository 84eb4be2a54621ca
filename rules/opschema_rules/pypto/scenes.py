"""The arguments that a scene test passes to its orchestration: what ``generate_args()`` of its class returns."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from opschema_cli.source.python import Class, Expr, Function, PythonFile
from opschema_cli.source.text import Span

_BUILDER, _KINDS = "TaskArgsBuilder", {"TensorArg": "tensor", "Tensor": "tensor", "Scalar": "scalar"}
_MEMBERS = frozenset(("specs", "clone", "tensor_names", "add_tensor", "add_scalar"))
_ANOTHER = (
    r"\b(?:lambda|for|as|import|def|match|case|del)\b[^:\n]*\b{0}\b|\b{0}\s*(?:,[^=\n]*|:[^=\n]*)?=(?!=)"
    r"|\b(?:try|hasattr|global|and|or|else(?!\s*:))\b"
)
"""Code of a function in which a name may stand for something else, or what is written may not run."""

_OTHERWISE = re.compile(r"\b(?:raises|assertRaises\w*|setattr)\s*\(|\.\s*add_(?:tensor|scalar)\s*\(|\bdef _?run\w*\(")
"""Code that may pass other arguments, or expects an error."""


class Argument(msgspec.Struct, frozen=True):
    """One of the arguments: ``TensorArg("a", ...)``, ``Scalar("n", ...)``."""

    name: str
    kind: Literal["tensor", "scalar"]
    expr: Expr


class Scene(msgspec.Struct, frozen=True):
    """All arguments of each case of a test, in their order; ``unknown`` are the names that its golden function reads of these and
    that none has.
    """

    call: Expr
    arguments: tuple[Argument, ...]
    unknown: tuple[tuple[str, Span], ...] = ()

    def of(self, kind: Literal["tensor", "scalar"]) -> list[Argument]:
        """The arguments of a kind."""
        return [item for item in self.arguments if item.kind == kind]


def read_scene(file: PythonFile, cls: Class) -> Scene | None:
    """The arguments of a scene test on one chip; None where its class may pass others."""
    methods = {item.name: item for item in cls.body.functions}
    makes = methods.get("generate_args")
    bases = [item.text.rpartition(".")[2] for item in cls.bases]
    if makes is None or bases != ["SceneTestCase"] or not _is_alone(cls) or _OTHERWISE.search(file.source.text):
        return None
    returns = makes.body.returns if not makes.decorators else ()
    call = returns[0] if len(returns) == 1 else None
    if call is None or call.kind != "call" or _imported(file, call.callee) != _BUILDER or any(call.keywords):
        return None
    found = [_argument(file, item) for item in call.items[1:]]
    known = tuple(item for item in found if item is not None)
    if len(known) != len(found):
        return None
    golden = methods.get("compute_golden")
    unknown = _unknown(file, golden, known) if golden is not None else ()
    return Scene(call, known, unknown)


def _is_alone(cls: Class) -> bool:
    """Whether the class is a test of one chip (level 2), which gets the arguments as they are."""
    for item in cls.decorators:
        level = item.keyword("level") if item.callee.rpartition(".")[2] == "scene_test" else None
        if level is not None:
            return level.value == 2
    return False


def _imported(file: PythonFile, name: str) -> str:
    """The name of something in ``simpler_setup`` by which a file imports it; empty for anything else."""
    found = [item for item in file.body.imports if item.name == name]
    others = any(item.target == name for item in file.body.assigns)
    return found[0].attr if len(found) == 1 and not others and found[0].module.startswith("simpler_setup") else ""


def _argument(file: PythonFile, expr: Expr) -> Argument | None:
    kind = _KINDS.get(_imported(file, expr.callee)) if expr.kind == "call" else None
    name = next(iter(expr.positional()), None)
    if kind is None or name is None or not isinstance(name.value, str):
        return None
    return Argument(name.value, "tensor" if kind == "tensor" else "scalar", expr)


def _unknown(file: PythonFile, golden: Function, known: tuple[Argument, ...]) -> tuple[tuple[str, Span], ...]:
    """The attributes of its arguments that a golden function surely reads and that no argument has."""
    if len(golden.params) < 2 or golden.decorators:
        return ()
    owner, names = golden.params[1].name, {item.name for item in known} | _MEMBERS
    text = file.source.text[golden.end : golden.outer.end]
    if re.search(_ANOTHER.format(re.escape(owner)), text.partition(":\n")[2]):
        return ()
    branches = [span for item in golden.body.conditions for span in (item.body, item.orelse) if span is not None]
    found: dict[str, Span] = {}
    for use in golden.body.uses:
        first, _, rest = use.name.partition(".")
        name = rest.partition(".")[0]
        is_set = re.search(rf"\.{re.escape(name)}\s*=(?!=)", file.source.text) if name else None
        sure = is_set is None and not any(span.start <= use.start < span.end for span in branches)
        if first == owner and name and name not in names and not name.startswith("_") and sure:
            found.setdefault(name, Span(use.start, use.end))
    return tuple(found.items())
