"""Whether a type admits ``None``: of an annotation in the code, with its aliases resolved, or of a manifest's type text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from opschema_cli.evaluation.quoted import quoted
from opschema_cli.evaluation.values import NO_CALL
from opschema_cli.source.program import ClassRef, External, Program, ValueRef
from opschema_cli.source.python import Expr, PythonFile

MAX_ALIASES = 30
"""Maximum number of type aliases to follow from one annotation."""

_TYPING = ("typing.", "typing_extensions.", "collections.abc.", "numbers.", "types.")
_BUILTIN_TYPES = frozenset(
    {
        "int",
        "float",
        "bool",
        "str",
        "bytes",
        "complex",
        "list",
        "tuple",
        "dict",
        "set",
        "frozenset",
        "type",
        "slice",
        "range",
    }
)
_LIBRARY_TYPES = frozenset(
    {"torch.dtype", "torch.Tensor", "torch.device", "torch.Size", "torch.Generator", "torch.nn.Module"}
)
_UNKNOWN_TYPING = frozenset(
    {"Any", "Optional", "Union", "Unpack", "Self", "TypeVar", "ParamSpec", "Annotated", "Literal"}
)

Lookup = Callable[[str], "bool | None"]


def annotation_admits_none(program: Program, file: PythonFile, annotation: Expr) -> bool | None:
    """Whether an annotation admits ``None``; None if that cannot be known."""
    return _Annotations(program).admits_none(file, annotation)


class _Annotations:
    """Reads one annotation; each name of a type on its way is read once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.aliases: dict[tuple[str, int], bool | None] = {}

    def admits_none(self, file: PythonFile, annotation: Expr) -> bool | None:
        def lookup(name: str) -> bool | None:
            found = self.program.resolve(file, name)
            if isinstance(found, ClassRef):
                return False
            if isinstance(found, External):
                return _external(found.name)
            return self._alias(found) if isinstance(found, ValueRef) else None

        return _admits_none(annotation, lookup)

    def _alias(self, found: ValueRef) -> bool | None:
        key = (found.file.path, found.assign.start)
        if key not in self.aliases and found.assign.sure and found.assign.value is not None:
            self.aliases[key] = None  # an alias of itself is not known
            if len(self.aliases) <= MAX_ALIASES:
                self.aliases[key] = self.admits_none(found.file, found.assign.value)
        return self.aliases.get(key)


def text_admits_none(text: str) -> bool | None:
    """Whether a manifest's type expression admits ``None``; None if it is not a type expression, or contains Any."""
    expr = quoted(text, NO_CALL)
    return _admits_none(expr, _named) if expr is not None else None


def _named(name: str) -> bool | None:
    return None if name.rpartition(".")[2] in {"Any", "object", "Optional", "Union"} else False


def _external(name: str) -> bool | None:
    last = name.rpartition(".")[2]
    if name.startswith(_TYPING):
        return None if last in _UNKNOWN_TYPING else False
    return False if name in _BUILTIN_TYPES or name in _LIBRARY_TYPES else None


def _admits_none(expr: Expr, lookup: Lookup) -> bool | None:
    if expr.kind == "const":
        inner = quoted(expr.value, expr) if isinstance(expr.value, str) else None
        return expr.value is None or (_admits_none(inner, lookup) if inner is not None else None)
    if expr.kind == "name":
        return lookup(expr.text)
    if expr.kind == "binary" and expr.text == "|":
        return _either(_admits_none(item, lookup) for item in expr.items)
    if expr.kind == "subscript" and expr.items[0].kind == "name":
        return _generic(expr.items[0].text, expr.items[1:], lookup)
    return None


def _generic(name: str, arguments: Sequence[Expr], lookup: Lookup) -> bool | None:
    last = name.rpartition(".")[2]
    if last == "Optional":
        return True
    if last == "Union":
        return _either(_admits_none(item, lookup) for item in arguments)
    if last in ("Annotated", "ClassVar", "Final"):
        return _admits_none(arguments[0], lookup) if arguments else None
    if last == "Literal":
        return any(item.kind == "const" and item.value is None for item in arguments)
    return lookup(name)


def _either(parts: Iterable[bool | None]) -> bool | None:
    found = list(parts)
    return True if True in found else None if None in found else False
