"""`enum-to-str-enum`: enumerations that ops take become strings, and are compared as such."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.python import Assign, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import ClassRef, External, Folded
from opschema_cli.source.text import Edit, Place, Span
from opschema_rules.magi.classes import EnumKind
from opschema_rules.magi.migrations.enum_values import EnumValues, string_uses
from opschema_rules.magi.migrations.scopes import OPS
from opschema_rules.magi.migrations.trees import meant_ops, naming, tree_of
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.printed_members import is_printed_to_calls
from opschema_rules.magi.proofs import PROGRAMS

_COMPARING = ("__eq__", "__ne__", "__new__")
_IDENTITY = re.compile(r"\bis\b(?P<not>\s+not\b)?")


def find(draft: Draft, options: object) -> Iterator[Site]:
    """The enumerations of strings, no strings themselves, that ops take."""
    tree = tree_of(draft)
    takers: dict[ClassRef, tuple[EnumKind, list[str]]] = {}
    for op in meant_ops(tree) if tree is not None else ():
        for leaf in op.lowering.leaves:
            if leaf.enum is not None and leaf.enum.values == "str" and not leaf.enum.mixed:
                takers.setdefault(leaf.enum.ref, (leaf.enum, []))[1].append(op.title)
    for ref, (kind, titles) in takers.items():
        place = Place(ref.file.path, ref.cls.span)
        yield Site(place, f"make the members of `{ref.name}` strings", tuple(sorted(set(titles))), ("MAG306",), kind)


@migration(
    "enum-to-str-enum",
    find=find,
    scope=OPS,
    settled="no op takes an enumeration of strings that is not a string itself",
    proof=PROGRAMS,
)
def enum_to_str_enum(draft: Draft, sites: Sequence[Site], options: object) -> Iterator[Note]:
    """Make the members of string enumerations that ops take strings, and compare them with `==`.

    `magi_register_custom_op` lowers an enumeration to `str`. A member of a plain `Enum` is rejected when the op is called;
    inside the op it is a plain string, so `mode is Mode.A` is silently false. `class Mode(Enum)` becomes
    `class Mode(str, Enum)`, and wherever the workspace compares a member of it, or a parameter annotated with it, `is`
    becomes `==` and `is not` `!=`.

    An enumeration is left unchanged, with a note, if it has other bases than `Enum`, defines `__eq__()` or `__new__()`, or has
    a member whose value is empty: as a string that one would be false. Notes show where an op, or a function that it passes
    the parameter to, uses what a plain string lacks (`mode.value`, `isinstance(mode, Mode)`), and where the workspace tests
    `isinstance(..., str)` besides the enumeration. A note also shows a default member that calls may omit while they pass a later
    argument: the schema stores it as Python prints it. On Python 3.10 an f-string prints a member that is a string as its value.

        opschema migrate enum-to-str-enum
    """
    tree = tree_of(draft)
    assert tree is not None
    workbench = Workbench(draft)
    for site in sites:
        assert isinstance(site.subject, EnumKind)
        try:
            with workbench.atomic():
                _mix_in(tree, workbench, site.subject)
                compared = _compare(tree, workbench, site.subject.ref)
        except LeftAlone as found:
            yield from left(site, found)
            continue
        yield from compared
        for op in tree.ops:
            yield from string_uses(tree, workbench, op, site.subject.ref)
            yield from _printed_defaults(op, site.subject.ref)
    workbench.commit()


def _printed_defaults(op: MagiOp, ref: ClassRef) -> Iterator[Note]:
    """Yield notes on default members that a schema drops now, and keeps as another string than their value."""
    for leaf in op.lowering.leaves:
        place = leaf.written.place
        if leaf.enum is not None and leaf.enum.ref == ref and place is not None and is_printed_to_calls(op, leaf):
            printed = str(leaf.written)
            yield Note(
                place,
                f"Python 3.11 stores this default as {printed!r}; calls that omit it but pass a later argument get this",
            )


def _mix_in(tree: MagiTree, workbench: Workbench, kind: EnumKind) -> None:
    """Write `str` before the base.

    Raises:
        LeftAlone: it has other bases, or a member that would be false.
    """
    ref, path = kind.ref, kind.ref.file.path
    body = tree.lowerer.classes.body(ref)
    base = kind.sole_base
    if base is None or tree.lowerer.classes.resolve(body, ref.cls.bases[0].text) != External("enum.Enum"):
        raise LeftAlone(Place(path, ref.cls.span), f"`{ref.name}` has other bases than `Enum`")
    own = next((item for item in ref.cls.body.functions if item.name in _COMPARING), None)
    if own is not None:
        raise LeftAlone(
            Place(path, own.span), f"`{ref.name}` defines `{own.name}()`, which a plain string does not have"
        )
    if tree.lowerer.classes.resolve(body, "str") != External("str"):
        raise LeftAlone(Place(path, ref.cls.span), "`str` is another name here")
    for member in kind.members:
        if _is_empty(tree, kind, member):
            raise LeftAlone(
                Place(path, member.span), f"`{ref.name}.{member.target}` would be false, as an empty string"
            )
    with workbench.on(path) as rewrite:
        rewrite.replace(Span(base.start, base.start), "str, ")


def _is_empty(tree: MagiTree, kind: EnumKind, member: Assign) -> bool:
    folded = tree.evaluator.fold(kind.ref, member.value) if member.value is not None else None
    return isinstance(folded, Folded) and folded.value == ""


def _compare(tree: MagiTree, workbench: Workbench, ref: ClassRef) -> list[Note]:
    """Compare its members by value, in every file that names it."""
    notes: list[Note] = []
    values = EnumValues(tree, ref)
    for file in naming(workbench.draft, tree.bodies, ref.name, lambda found: found == ref):
        with workbench.on(file.path) as rewrite:
            for edit in _identities(rewrite.tree, values, file):
                rewrite.replace(*edit)
            notes += _asked_for_strings(tree, rewrite.tree, file)
    return notes


def _identities(tree: PythonTree, values: EnumValues, file: PythonFile) -> Iterator[Edit]:
    """Yield the edits of `is` and `is not` between a value of the enumeration and anything but a Python singleton."""
    for node in tree.nodes:
        if type(node) is not cst.Comparison:
            continue
        sides = [node.left, *(item.comparator for item in node.comparisons)]
        for before, item in zip(sides, node.comparisons, strict=False):
            pair = (before, item.comparator)
            if not isinstance(item.operator, cst.Is | cst.IsNot) or any(map(_is_singleton, pair)):
                continue
            if any(values.has(file, tree, side) for side in pair):
                yield _by_value(tree, *pair)


def _by_value(tree: PythonTree, left: cst.BaseExpression, right: cst.BaseExpression) -> Edit:
    start = tree.outer(left).end
    match = _IDENTITY.search(tree.text, start, tree.outer(right).start)
    assert match is not None
    return Edit(Span(*match.span()), "!=" if match["not"] else "==")


def _is_singleton(node: cst.BaseExpression) -> bool:
    return (isinstance(node, cst.Name) and node.value in ("None", "True", "False")) or isinstance(node, cst.Ellipsis)


def _asked_for_strings(tree: MagiTree, nodes: PythonTree, file: PythonFile) -> Iterator[Note]:
    for call in nodes.calls("isinstance"):
        asked = [arg.value for arg in call.args[1:2]]
        kinds = [item.value for item in asked[0].elements] if asked and isinstance(asked[0], cst.Tuple) else asked
        if any(isinstance(kind, cst.Name) and kind.value == "str" for kind in kinds):
            place = Place(file.path, nodes.span(call))
            yield Note(place, "this asks whether something is a string, which members of the enumeration now are")
