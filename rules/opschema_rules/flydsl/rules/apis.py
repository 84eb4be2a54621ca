"""Names of FlyDSL, and how tensors are wrapped and marked."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl.api_lookup import Absent, Lookup
from opschema_rules.flydsl.api_mentions import may_lack
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.detection import MARK, ROOT
from opschema_rules.flydsl.model import FlyTree, Wrap
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.tensors import Tensors
from opschema_rules.flydsl.usage import is_left_alone

INSTEAD = {
    "mark_static": "leave it out (`opschema migrate drop-mark-static`)",
    "raw_cache_signature": "the arguments' `__cache_signature__` is what is left",
    "_reusable_slot_spec": "it is `__c_abi_spec__` now",
}
"""Replacements for names that were not simply renamed."""

_REWRITTEN = ("range", "range_constexpr")
"""Names that FlyDSL looks for in a kernel's loops by their last word, whatever the qualifier."""


@rule("FLY207", "removed-api", pure=True)
def removed_api(file: FlyFile) -> Iterator[Diagnostic]:
    """A name that the FlyDSL of the tree does not have.

    The rule checks imports, attributes of FlyDSL's modules, methods of wrapped tensors, and the number of bytes that
    `make_buffer_tensor()` accepts since 0.2.0. If the tree contains FlyDSL itself, the names are read from its files, and
    members of its enumerations are checked, too; otherwise they are those of the releases that the requirements admit: a name
    that none of them has is an error, one that only the newest lacks, which a new installation gets, is a warning. Names in
    compiled modules are not known. Code guarded by `try`, `hasattr()`, a test of the version, or a condition whose value is
    not known, is not reported. In a tree that contains FlyDSL itself, a condition whose value is not known excuses a name only
    if its file, or one that it imports, contains a test of the version or of what exists. Other conditions, such as `if True:`,
    a flag that callers pass, or `if torch.cuda.is_available():`, excuse nothing.

    Bad:

    ```python
    def wrap(x):
        return flyc.from_dlpack(x).mark_static(dims=[1])
    ```

    Bad:

    ```python
    from flydsl.expr import buffer_ops
    ```

    Bad:

    ```toml
    [flydsl]
    version = "0.1.8"
    ```

    ```python
    def wrap(x):
        return flyc.from_torch_tensor(x)
    ```

    Bad:

    ```toml
    [flydsl]
    version = "0.1.8"
    ```

    ```python
    @flyc.kernel
    def scale(W: fx.Tensor, M: fx.Int32):
        w = fx.rocdl.make_buffer_tensor(W, max_size=False, num_records_bytes=M * 4)
    ```

    Bad, as the condition does not ask which FlyDSL runs:

    ```python
    def wrap(x, pad):
        if pad:
            x = torch.nn.functional.pad(x, (0, 1))
            return flyc.TensorAdaptor(x)
        return flyc.from_torch_tensor(x)
    ```

    Good:

    ```python
    def wrap(x):
        return flyc.from_dlpack(x).mark_shape_dynamic(0)
    ```

    Good:

    ```python
    try:
        from flydsl.expr import buffer_ops
    except ImportError:
        from kit import buffer_ops


    def wrap(x):
        if hasattr(flyc, "TensorAdaptor"):
            return flyc.TensorAdaptor(x)
        return flyc.from_torch_tensor(x)
    ```

    Good, as the condition is a test of the version:

    ```python
    import importlib.metadata

    OLD = importlib.metadata.version("flydsl").startswith("0.1.")


    def wrap(x):
        return flyc.TensorAdaptor(x) if OLD else flyc.from_torch_tensor(x)


    def wrap_all(xs):
        if OLD:
            return [flyc.TensorAdaptor(x) for x in xs]
        return [flyc.from_torch_tensor(x) for x in xs]
    ```
    """
    tree = file.tree
    lookup = Lookup(tree)
    if not lookup.knows:
        return
    own = set(tree.package.paths)
    for module in may_lack(lookup, [item for item in tree.files if item.path not in own]):
        names = _imported(tree, module)
        for body in tree.bodies.of(module) if names else ():
            yield from _absent_imports(lookup, body)
            yield from _absent_uses(lookup, body, names)
    tensors = Tensors(tree)
    for wrap in tree.wraps:
        if wrap.body.file.path not in own:
            yield from _absent_members(lookup, tensors, wrap)
    for item in tree.descriptors:
        if not item.takes_bytes and item.body.file.path not in own:
            given = item.expr.keyword("num_records_bytes")
            if given is not None and not is_left_alone(tree, item.body, given.start, "num_records_bytes"):
                message = (
                    f"`{item.api}()` of this FlyDSL takes no `num_records_bytes`: leave it and `max_size=False` out"
                )
                yield Diagnostic(message, item.body.at(given))


def _imported(tree: FlyTree, file: PythonFile) -> frozenset[str]:
    """Return the names that a file imports from FlyDSL, or from a module that re-exports them."""
    if MARK not in file.source.text:
        bodies = tree.bodies.of(file)
        return frozenset(
            item.name for body in bodies for item in body.scope.imports if tree.names.full(body, item.name)
        )
    scopes = file.body.walk(lambda function: "import" in file.text(function.outer))
    modules = (
        (item.name, tree.bodies.program.absolute_module(file, item)) for scope in scopes for item in scope.imports
    )
    return frozenset(name for name, module in modules if module and module.partition(".")[0] == ROOT)


def _absent_imports(lookup: Lookup, body: Body) -> Iterator[Diagnostic]:
    tree, seen = lookup.tree, set[str]()
    for item in body.scope.imports:
        if item.level or item.module.partition(".")[0] != ROOT:
            continue
        found = lookup.absent_of(".".join(filter(None, [item.module, item.attr.strip("*")])))
        if found is not None and found.name not in seen and not is_left_alone(tree, body, item.start, found.word):
            seen.add(found.name)
            yield _diagnostic(lookup, found, body.at(item.span))


def _absent_uses(lookup: Lookup, body: Body, names: frozenset[str]) -> Iterator[Diagnostic]:
    known: dict[str, Absent | None] = {}
    for use in body.scope.uses:
        first, _, rest = use.name.partition(".")
        if not rest or first not in names or rest in _REWRITTEN:
            continue
        if use.name not in known:
            known[use.name] = lookup.absent(body, use.name)
        found = known[use.name]
        place = _word_in(body, use.span, rest, found) if found is not None else None
        if found is None or place is None or is_left_alone(lookup.tree, body, use.start, found.word):
            continue
        if not found.member or not may_be_another(lookup.tree, body, Expr("name", use.start, use.end, use.name)):
            yield _diagnostic(lookup, found, place)


def _word_in(body: Body, span: Span, rest: str, found: Absent) -> Place | None:
    """Return the place of the absent word after the imported name; None if the import itself provides it."""
    words = rest.split(".")
    if found.word not in words:
        return None
    text = body.file.source.text[span.start : span.end]
    at = text.find(found.word, text.find(".") + 1)
    return body.at(Span(span.start + at, span.start + at + len(found.word))) if at > 0 else body.at(span)


def _absent_members(lookup: Lookup, tensors: Tensors, wrap: Wrap) -> Iterator[Diagnostic]:
    """Yield the absent attributes of one wrapped tensor, chained to the call or read from the name that it is assigned to once."""
    body = wrap.body
    api = wrap.api if wrap.api != "TensorAdaptor" else ""
    for word, place in _attributes(tensors, wrap) if api else ():
        found = lookup.absent_member(api, word)
        if found is not None and not is_left_alone(lookup.tree, body, place.span.start, word):
            yield _diagnostic(lookup, found, place)


def _attributes(tensors: Tensors, wrap: Wrap) -> Iterator[tuple[str, Place]]:
    body = wrap.body
    index = index_of(body)
    for part in (wrap.expr, *wrap.marks):
        for callee in (call.items[0] for call in index.chained.get(part.span, ())):
            yield callee.text, body.at(Span(callee.end - len(callee.text), callee.end))
    for name in tensors.held_by(wrap):
        for use in index.uses.get(name, ()):
            word, start = use.name[len(name) + 1 :].partition(".")[0], use.start + len(name) + 1
            if word:
                yield word, body.at(Span(start, start + len(word)))


def _diagnostic(lookup: Lookup, found: Absent, place: Place) -> Diagnostic:
    if "." in found.name:
        seen = f", which is in {found.seen}" if found.seen else ""
        lacks = f"{found.where} has no `{found.name}`{seen}"
    else:
        lacks = f"a wrapped tensor has no `{found.name}` in {found.where}"
    row = lookup.renamed(found.name)
    module = lookup.moved(found.name)
    if row is not None:
        instead = f"it is `{row.new_word}` from {row.since} on (`opschema migrate rename-api`)"
    else:
        instead = f"import it from `{module}`" if module else INSTEAD.get(found.word, "")
    message = f"{lacks}: {instead}" if instead else lacks
    related = (Related(found.place, "no such name is defined here"),) if found.place is not None else ()
    return Diagnostic(message, place, related, severity=Severity.ERROR if found.always else Severity.WARNING)
