"""Structures in shared memory that FlyDSL rejects, and fields that they do not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, excerpt
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Class, Expr, PythonFile, Use
from opschema_cli.source.text import Span, places_of
from opschema_cli.source.word_index import called_word
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.operands import LONGEST, argument
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.storages import Storage, fields, is_composite, storage_of
from opschema_rules.flydsl.usage import is_meant_to_fail, is_unsure, may_be_absent
from opschema_rules.flydsl.value_classes import plain_name, value_at, value_classes

_ARRAY = "fx.Array[type, size]` or `fx.Array[type, size, alignment]"
_USUAL = re.compile(
    r"\[\s*(?!int\b|float\b|bool\b|torch\b)[A-Za-z_][\w.]*\s*,(?!\s*0\b|\s*-|\s*\d*\.|\s*[\w.]*\b(?:Int|Uint|Float|BFloat|Boolean)\d*\b)[^,\]]+(?:,\s*(?:[A-Za-z_]\w*|1|2|4|8|16|32|64|128|256)\s*)?\]"
)
"""Common parameters: a type, a number of elements, and optionally an alignment."""

_Held: TypeAlias = "tuple[Storage, frozenset[str] | None]"
"""A structure in a variable, with its fields if they are known."""

_OWN = frozenset({"replace"})
"""Methods of every structure."""


@rule("FLY236", "storage-field", pure=True)
def storage_field(file: FlyFile) -> Iterator[Diagnostic]:
    """A structure in shared memory that FlyDSL refuses, or a field that it does not have.

    The fields of a class under `@fx.struct` are annotations such as `fx.Array[fx.Float32, 64, 16]`: a type of FlyDSL, a number of
    elements, and an alignment in bytes, which is a power of two. Another order, a type of Python or torch, and `fx.Array(...)`
    raise. `SharedAllocator().allocate()` takes such a class itself: a class without the decorator, and an instance that lacks its
    fields, raise. A field that the class does not have raises `AttributeError` when the function is traced.

    Bad:

    ```python
    @fx.struct
    class Storage:
        sums: fx.Array[64, fx.Float32, 16]
        maxima: fx.Array[float, 64]
    ```

    Bad:

    ```python
    @fx.struct
    class Storage:
        sums: fx.Array[fx.Float32, 64, 16]


    class Other:
        sums: fx.Array[fx.Float32, 64, 16]


    @flyc.kernel
    def total(A: fx.Tensor):
        shared = fx.SharedAllocator().allocate(Storage).peek()
        shared.sum.view(fx.make_layout(64, 1))
        other = fx.SharedAllocator().allocate(Other).peek()
    ```

    Good:

    ```python
    def storage(slots):
        @fx.struct
        class Storage:
            sums: fx.Array[fx.Float32, slots, 16]

        return Storage


    Reduction = storage(64)


    @flyc.kernel
    def total(A: fx.Tensor):
        shared = fx.SharedAllocator().allocate(Reduction).peek()
        shared.sums.view(fx.make_layout(64, 1))
        rest = fx.SharedAllocator().allocate(1024)
    ```
    """
    tree = file.tree
    for each in tree.files:
        if tree.bodies.program.module_name(each.path).partition(".")[0] == ROOT:
            continue
        if "struct" in each.source.text and _may_be_refused(each.source.text):
            yield from _arrays(tree, each)
        for body in tree.bodies.calling(each, ["allocate"]):
            yield from _allocations(tree, body)


def _may_be_refused(text: str) -> bool:
    """Whether a text contains array parameters that may be rejected."""
    return any(_USUAL.match(text, at + len("Array")) is None for at in places_of("Array", text))


def _arrays(tree: FlyTree, each: PythonFile) -> Iterator[Diagnostic]:
    """Yield findings on annotations of structures in one file that raise where the class is defined."""
    for body in tree.bodies.of(each):
        cls, around = body.cls, body.parent
        if cls is None or around is None or not cls.decorators or not is_composite(tree, Storage(around, cls)):
            continue
        for field in (item for item in cls.body.assigns if item.annotation is not None):
            why = _refused(tree, body, field)
            if why and field.annotation is not None and not _is_expected(tree, body, field.start):
                yield Diagnostic(f"`{field.target}` of `{cls.name}` {why}", body.at(field.annotation), ops=(cls.name,))


def _is_expected(tree: FlyTree, body: Body, at: int) -> bool:
    """Whether an error at a place is expected or handled."""
    return any(
        may_pass(tree, item, at) or may_be_absent(tree, item, at, "Array") or is_meant_to_fail(tree, item)
        for item in body.outward()
    )


def _refused(tree: FlyTree, body: Body, field: Assign) -> str:
    """Return why a field is rejected; empty if it may be valid."""
    annotation = field.annotation
    if annotation is None or annotation.kind not in ("call", "subscript") or annotation.items[0].kind != "name":
        return ""
    name = annotation.items[0]
    if plain_name(tree.names.full(body, name.text)) != "Array" or may_be_another(tree, body, name):
        return ""
    if annotation.kind == "call":
        return f"calls `fx.Array`, which raises: write `{_ARRAY}`"
    given = annotation.items[1:]
    if not 2 <= len(given) <= 3:
        return f"has {count(len(given), 'parameter')}, which raises: write `{_ARRAY}`"
    found = argument(tree, body, given[0])
    written = excerpt(body.file.text(given[0]), LONGEST)
    if found.nature in ("torch dtype", "python type", "constant"):
        return f"has elements of `{written}`, which is not a FlyDSL type: it raises; write `{_ARRAY}`"
    if argument(tree, body, given[1]).nature == "flydsl type":
        return f"has a type as the number of elements, which raises: write `{_ARRAY}`"
    if given[1].kind == "const" and (not isinstance(given[1].value, int) or given[1].value < 1):
        return f"has `{excerpt(body.file.text(given[1]), LONGEST)}` elements, which raises: the number is a positive integer"
    alignment = given[2].value if len(given) == 3 and given[2].kind == "const" else None
    if isinstance(alignment, int) and (alignment < 1 or alignment & (alignment - 1)):
        return f"has the alignment {alignment}, which raises: it is a power of two"
    return ""


def _allocations(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on the structures that a function allocates, and on the fields that it uses."""
    for call in body.scope.calls:
        given = call.positional() if called_word(call.items[0]) == "allocate" and "*" not in call.keywords else []
        if given and _is_of_allocator(tree, body, call):
            yield from _allocated(tree, body, call, given[0])
    held: dict[Span, _Held] = {}
    known: dict[tuple[str, Span], frozenset[str] | None] = {}
    names: set[str] = set()
    for item in body.scope.assigns if body.function is not None else ():
        found = _peeked(tree, body, item.value) if item.value is not None and "." not in item.target else None
        if found is not None and item.value is not None and is_composite(tree, found):
            key = (found.body.file.path, found.cls.span)
            if key not in known:
                known[key] = fields(found.cls)
            held[item.value.span] = found, known[key]
            names.add(item.target)
    for inner in tree.bodies.inside(body) if held else ():
        for use in inner.scope.uses:
            if use.name.partition(".")[0] in names:
                yield from _absent(tree, inner, body, use, held)


def _is_of_allocator(tree: FlyTree, body: Body, call: Expr) -> bool:
    callee = call.items[0]
    owner = callee.items[0] if callee.kind == "attribute" else Expr("name", callee.start, callee.start, _owner(callee))
    return value_classes(tree).of(body, owner) == "SharedAllocator"


def _owner(callee: Expr) -> str:
    return callee.text.rpartition(".")[0]


def _allocated(tree: FlyTree, body: Body, call: Expr, given: Expr) -> Iterator[Diagnostic]:
    storage = storage_of(tree, body, given.items[0] if given.kind == "call" else given)
    if storage is None:
        return
    cls, why = storage.cls, ""
    if given.kind == "call":
        lacks = any(item.annotation is not None and item.value is None for item in cls.body.assigns)
        if is_composite(tree, storage) and lacks and len(given.items) == 1:
            why = f"`{cls.name}()` lacks its fields: pass the class itself"
    elif not cls.decorators and not cls.bases and not cls.keywords and _is_plain(cls):
        why = f"`{cls.name}` is not a FlyDSL structure: decorate it with `@fx.struct`"
    if why and not is_unsure(tree, body, call):
        related = (Related(storage.body.at(cls.span), "the class"),)
        yield Diagnostic(f"{why}; it raises `TypeError`", body.at(given), related, ops=(cls.name,))


def _is_plain(cls: Class) -> bool:
    """Whether a class defines no method of the protocol by which FlyDSL stores values."""
    return not any(name.startswith("__") for name in cls.body.named)


def _peeked(tree: FlyTree, body: Body, value: Expr) -> Storage | None:
    """Return the class whose instance `SharedAllocator().allocate(...).peek()` returns."""
    callee = value.items[0] if value.kind == "call" and len(value.items) == 1 else None
    made = callee.items[0] if callee is not None and callee.kind == "attribute" and callee.text == "peek" else None
    if made is None or made.kind != "call" or called_word(made.items[0]) != "allocate" or len(made.items) < 2:
        return None
    return storage_of(tree, body, made.items[1]) if _is_of_allocator(tree, body, made) else None


def _absent(tree: FlyTree, inner: Body, body: Body, use: Use, held: Mapping[Span, _Held]) -> Iterator[Diagnostic]:
    """Yield a finding on a field that a structure in a function's variable does not have."""
    first, _, rest = use.name.partition(".")
    word = rest.partition(".")[0]
    if not word or word.startswith("__") or inner.binder(first) is not body:
        return
    value = value_at(inner, body, Expr("name", use.start, use.end, first))
    storage, known = held.get(value.span, (None, None)) if value is not None else (None, None)
    if storage is None or known is None or word in known or word in _OWN:
        return
    name = Expr("name", use.start, use.end, use.name)
    if may_be_another(tree, inner, name) or may_pass(tree, inner, use.start):
        return
    if may_be_absent(tree, inner, use.start, word) or is_meant_to_fail(tree, inner):
        return
    yield Diagnostic(
        f"`{storage.cls.name}` has no field `{word}`: it raises `AttributeError`"
        + did_you_mean(near_name(word, [*known, *_OWN])),
        inner.at(use.span),
        (Related(storage.body.at(storage.cls.span), "the structure"),),
        ops=(storage.cls.name,),
    )
