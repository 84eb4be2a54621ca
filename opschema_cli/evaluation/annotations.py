"""Types that annotations state, as ``typing.get_type_hints`` gives them, else with each string evaluated by itself.

What a name means depends on how the annotation is written: as an expression it is evaluated where it stands, as a string (also
under ``from __future__ import annotations``) in the module, when that is asked for.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.limits import MAX_TYPES
from opschema_cli.evaluation.namespaces import Namespace, UndefinedNameError, look_up, postponed
from opschema_cli.evaluation.quoted import quoted
from opschema_cli.evaluation.type_forms import ELLIPSIS, NONE, TypeForm, unresolved
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.resolution import ClassRef, External, Unresolved, ValueRef

MAX_PARTS = 5000
"""Maximum number of parts in the annotations of one function or class, including resolved aliases."""


class Hints(msgspec.Struct, frozen=True):
    """Annotations by name; None for a name without one. ``rewritten`` are those whose object differs from what is written.

    ``whole`` is false when ``get_type_hints`` fails, so that each string was evaluated by itself and ``None`` stays what it is.
    """

    types: dict[str, TypeForm | None]
    rewritten: frozenset[str]
    whole: bool = True


class Annotations:
    """Resolves the annotations of one tree."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self._parts = 0

    def hints(
        self, written: Sequence[tuple[str, Expr | None, Namespace, Namespace]], fallback: Callable[[str], Namespace]
    ) -> Hints:
        """The meanings of annotations.

        Each comes with its name, the namespace it is evaluated in as an expression, and the one for what is a string in it.
        ``fallback`` gives the namespace for the strings when one of them does not evaluate.
        """
        self._parts = MAX_PARTS
        annotated = [(name, expr, plain.file) for name, expr, plain, _ in written if expr is not None]
        try:
            found = {name: self._hint(expr, plain, text) for name, expr, plain, text in written}
        except UndefinedNameError:
            found = {name: self._by_itself(expr, plain, fallback(name)) for name, expr, plain, _ in written}
            changed = [name for name, expr, file in annotated if _evaluates(expr, file, found[name])]
            return Hints(found, frozenset(changed), whole=False)
        return Hints(found, frozenset(name for name, expr, file in annotated if _changes(expr, file)))

    def _hint(self, expr: Expr | None, plain: Namespace, text: Namespace) -> TypeForm | None:
        if expr is None:
            return None
        return self.form(expr, text if postponed(plain.file) else plain, text)

    def _by_itself(self, expr: Expr | None, plain: Namespace, text: Namespace) -> TypeForm | None:
        if expr is None:
            return None
        source = plain.file.text(expr) if postponed(plain.file) else expr.value
        if not isinstance(source, str):
            return self.form(expr, plain, None)
        inner = expr if postponed(plain.file) else quoted(source, expr)
        try:
            return self.form(inner, text, None) if inner is not None else TypeForm("text", source)
        except UndefinedNameError:
            return TypeForm("text", source)

    def form(self, expr: Expr, names: Namespace, text: Namespace | None, hops: int = MAX_TYPES) -> TypeForm:
        """The type that an expression is. Strings in it mean what they say in ``text``; None leaves them strings.

        Raises:
            UndefinedNameError: a string names what does not exist.
        """
        self._parts -= 1
        if hops <= 0 or self._parts < 0:
            return unresolved("it refers to itself, or is too large")
        if expr.kind == "const":
            return self._constant(expr, text, hops)
        if expr.kind == "name":
            return self._name(expr.text, names, text, hops)
        if expr.kind == "binary" and expr.text == "|":
            return union([self.form(item, names, text, hops) for item in expr.items])
        if expr.kind == "subscript":
            return self._subscript(expr, names, text, hops)
        if expr.kind == "literal" and expr.text == "...":
            return ELLIPSIS
        return unresolved("it is computed at run time")

    def _constant(self, expr: Expr, text: Namespace | None, hops: int) -> TypeForm:
        if expr.value is None:
            return NONE
        if not isinstance(expr.value, str):
            return unresolved("it is not a type")
        if text is None:
            return TypeForm("text", expr.value)
        inner = quoted(expr.value, expr)
        if inner is None:
            raise UndefinedNameError(expr.value)
        return self.form(inner, text, text, hops - 1)

    def _name(self, dotted: str, names: Namespace, text: Namespace | None, hops: int) -> TypeForm:
        found = look_up(self.bodies.program, dotted, names)
        if isinstance(found, ClassRef):
            return TypeForm("class", ref=found)
        if isinstance(found, External):
            return _external(found.name)
        if isinstance(found, ValueRef) and found.assign.value is not None and found.assign.sure:
            inner = Namespace(found.file, () if found.file is not names.file else names.scopes)
            return self.form(found.assign.value, inner, text, hops - 1)
        return unresolved(found.reason if isinstance(found, Unresolved) else f"`{dotted}` is not a type")

    def _subscript(self, expr: Expr, names: Namespace, text: Namespace | None, hops: int) -> TypeForm:
        head = self._name(expr.items[0].text, names, text, hops) if expr.items[0].kind == "name" else None
        if head is None or head.kind not in ("name", "class"):
            return unresolved("it is computed at run time")
        items = [part for item in expr.items[1:] for part in (item.items if item.kind == "tuple" else (item,))]
        if head.short == "Literal" and head.name.startswith(_TYPING):
            return self._literal(items, names)
        if head.short == "Annotated" and head.name.startswith(_TYPING) and items:
            inner = self.form(items[0], names, text, hops)
            return inner if text is not None else TypeForm("generic", "typing.Annotated", (inner,))
        args = tuple(self.form(item, names, text, hops) for item in items)
        if head.kind == "class":
            return replace(head, args=args)
        if head.name in ("typing.Optional", "typing_extensions.Optional") and len(args) == 1:
            return union([args[0], NONE])
        if head.name in ("typing.Union", "typing_extensions.Union"):
            return union(list(args))
        return TypeForm("generic", _ORIGINS.get(head.name, head.name), args)

    def _literal(self, items: Sequence[Expr], names: Namespace) -> TypeForm:
        values = [item.value for item in items if item.kind == "const"]
        return TypeForm("literal", values=tuple(values) if len(values) == len(items) else None)


def union(parts: list[TypeForm]) -> TypeForm:
    """Return the union of types: flat and without duplicates; a union of one type is that type."""
    flat = [inner for part in parts for inner in (part.args if part.kind == "union" else (part,))]
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else TypeForm("union", args=unique)


def _evaluates(expr: Expr, file: PythonFile, found: TypeForm | None) -> bool:
    """Whether an entire annotation is a string that evaluates to something else, possibly another string."""
    quoted = isinstance(expr.value, str)
    if found is None or found.kind != "text":
        return quoted or postponed(file)
    return quoted and postponed(file)


def _changes(expr: Expr, file: PythonFile) -> bool:
    """Whether ``get_type_hints`` returns another object than the one that is written."""
    if postponed(file) or expr.kind == "const":
        return True
    parts = _types_of(expr)
    strings = any(item.kind == "const" and isinstance(item.value, str) for item in parts)
    return strings or any(item.text.rpartition(".")[2] == "Annotated" for item in parts)


def _types_of(expr: Expr) -> list[Expr]:
    """Return the parts of an annotation that are types; the parts of a ``Literal`` are not."""
    if expr.kind == "subscript" and expr.items[0].text.rpartition(".")[2] == "Literal":
        return []
    return [expr, *(part for item in expr.items for part in _types_of(item))]


_TYPING = ("typing.", "typing_extensions.")
_BUILTINS = frozenset(dir(builtins))
_KNOWN_MODULES = frozenset(
    {
        "typing",
        "typing_extensions",
        "torch",
        "collections",
        "types",
        "numbers",
        "dataclasses",
        "enum",
        "numpy",
        "os",
        "pathlib",
    }
)
"""Modules whose classes, when used in annotations, are not dataclasses."""

_ORIGINS = {
    **{f"typing.{name}": name.lower() for name in ("List", "Tuple", "Dict", "Set", "FrozenSet", "Type")},
    **{
        f"typing.{name}": f"collections.abc.{name}"
        for name in ("Sequence", "Iterable", "Mapping", "Callable", "Iterator")
    },
}


def _external(name: str) -> TypeForm:
    """Return the type of a name from outside the tree; if it may be a dataclass, it is unknown."""
    if name == "types.NoneType":
        return NONE
    head = name.partition(".")[0]
    known = head in _KNOWN_MODULES if "." in name else head in _BUILTINS
    return TypeForm("name", name) if known else unresolved(f"`{name}` lies outside the tree")
