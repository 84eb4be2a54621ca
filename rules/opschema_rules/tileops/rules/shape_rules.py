"""Shape rules as text: do they parse, do their names mean something, do they check anything."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.evaluate import SHAPE_FUNCTIONS
from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, Reference, parse_expression
from opschema_cli.source.text import Edit, Span
from opschema_rules.tileops.bindings import (
    bound_names,
    is_complete,
    parsed,
    shape_rules,
    statement,
    static_dims,
    tensor_names,
)
from opschema_rules.tileops.model import OpEntry, Rule
from opschema_rules.tileops.vocabulary import SHAPE_HELPERS, states


def closest(name: str, names: Iterable[str]) -> str:
    """A suggestion for a message, or nothing."""
    found = difflib.get_close_matches(name, sorted(set(names) - {name}), n=1, cutoff=0.75)
    return f"; is it `{found[0]}`?" if found else ""


@rule("SHP101", "rule-syntax")
def rule_syntax(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule is no Python expression.

    A rule that does not parse is never checked by anything. It has to be one expression: no statement, no `=` for `==`.

    Bad:

    ```yaml
    signature:
      shape_rules:
        - "y.shape = x.shape"
    ```

    Good:

    ```yaml
    signature:
      shape_rules:
        - "y.shape == x.shape"
    ```
    """
    for item in entry.shape_rules:
        try:
            parse_expression(item.text)
        except ExpressionSyntaxError as error:
            place = entry.at(entry.inner(item.node, (error.offset, error.offset + 1)))
            yield Diagnostic(f"the shape rule is no Python expression: {error.reason}", place, ops=(entry.name,))


@rule("SHP102", "unknown-helper")
def unknown_helper(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule calls a function that shape rules do not have.

    Rules may call a fixed set of functions: Python's own such as `len`, `all` and `isinstance`, and helpers such as
    `broadcast_shapes` and `reduced_shape`. A function that the tree's own validator, documents or the modules beside its
    manifest name is known too. Any other makes the rule impossible to evaluate.

    Bad:

    ```yaml
    signature:
      shape_rules:
        - "y.shape == broadcast_shape(x.shape, x.shape)"
    ```

    Good, the helper is defined beside the manifest:

    ```yaml
    signature:
      shape_rules:
        - "y.shape == padded_shape(x.shape, 8)"
    ```

    ```python kit/manifest/shape_rules.py
    def padded_shape(shape, multiple):
        return tuple(-(-size // multiple) * multiple for size in shape)
    ```
    """
    # Before a tree says which helpers it has, those that opschema evaluates are as good as any.
    known = SHAPE_HELPERS if entry.manifest.spec.knows("rule-helpers") else {*SHAPE_HELPERS, *SHAPE_FUNCTIONS}
    for item, expression in shape_rules(entry):
        for name, span in expression.calls():
            if name not in known and not states(entry.manifest, name):
                place = entry.at(entry.inner(item.node, span))
                hint = closest(name, SHAPE_HELPERS)
                yield Diagnostic(f"`{name}()` is not a function that shape rules may call{hint}", place, ops=(entry.name,))


@rule("SHP106", "optional-unguarded")
def optional_unguarded(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule uses an optional input without saying what holds when it is not passed.

    Every rule holds on every call, also on one that leaves the input out, where its name is `None`. So each use other than
    `x is None` and `x is not None` needs an earlier `x is None` among the operands of the rule's top-level `or`. The form
    `x is not None and …` reports a legal call without the input as a violation.

    Holds where the tree's specification knows optional inputs.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
      shape_rules:
        - "y.shape == x.shape"
        - "bias is not None and bias.shape == (x.shape[0],)"
    ```

    Good, the guard precedes the use, though it is not the first operand:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        scale: {dtype: "same_as(x)", optional: true}
        bias: {dtype: "same_as(x)", optional: true}
      shape_rules:
        - "y.shape == x.shape"
        - "(scale is None) == (bias is None)"
        - "scale is None or bias is None or bias.shape == scale.shape"
    ```
    """
    optional = {tensor.name: tensor for tensor in entry.inputs if tensor.optional}
    if not optional or not entry.manifest.spec.knows("optional"):
        return
    for item, expression in shape_rules(entry):
        first: dict[str, Reference] = {}
        for use in unguarded(expression, optional):
            first.setdefault(use.name, use)
        for name, use in first.items():
            place = entry.at(entry.inner(item.node, use.span))
            message = f"the rule uses the optional input `{name}` before `{name} is None or …` lets a call omit it"
            related = (entry.related(optional[name].key, f"`{name}` is optional"),)
            yield Diagnostic(message, place, related, ops=(entry.name,))


def unguarded(expression: Expression, optional: Iterable[str], *, guards: bool = True) -> Iterator[Reference]:
    """Uses of ``optional`` names that are no presence test; those behind an ``x is None`` operand of the top-level
    ``or`` are left out where ``guards`` count.
    """
    node = expression.tree
    operands = node.values if guards and isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else [node]
    guarded: set[str] = set()
    for operand in operands:
        part = expression.part(operand)
        tested = {part.start_of(test) for inner in part.nodes if (test := _tested(inner)) is not None}
        for use in part.names():
            if use.name in optional and use.name not in guarded and use.span.start not in tested:
                yield use
        test = _tested(operand, ast.Is)
        guarded.update([test.id] if test is not None else [])


def _tested(node: ast.AST, *signs: type[ast.cmpop]) -> ast.Name | None:
    """The name in ``x is None`` or ``x is not None``."""
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or len(node.ops) != 1:
        return None
    other = node.comparators[0]
    is_none = isinstance(other, ast.Constant) and other.value is None
    return node.left if is_none and isinstance(node.ops[0], signs or (ast.Is, ast.IsNot)) else None


@rule("SHP107", "unbound-name", severity="warning")
def unbound_name(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule reads a name that nothing gives a value.

    A rule knows the inputs and outputs, the params, the static dimensions, the dimensions of declared shapes, and the names
    that some rule equates with a known size (`q.shape == (B, S, H, D)` gives four). A rule that reads any other name can
    never be evaluated. Names that a workload row gives a value count as known.

    Bad, `D_head` is meant to be `D`:

    ```yaml
    signature:
      shape_rules:
        - "x.shape == (S, D)"
        - "D_head % 8 == 0"
    ```

    Good, each name is bound somewhere, if not in the rule that reads it:

    ```yaml
    signature:
      shape_rules:
        - "S % 8 == 0"
        - "x.shape == (S, 2 * D)"
        - "D > 0"
        - "all(size > 0 for size in x.shape)"
    ```
    """
    if not is_complete(entry):
        return
    bound = {*_given_names(entry), *(name for _, item in shape_rules(entry) for name in bound_names(item))}
    seen: set[str] = set()
    for item, expression in shape_rules(entry):
        for name, span in expression.names():
            if name not in bound and name not in seen and name not in SHAPE_FUNCTIONS:
                seen.add(name)
                place = entry.at(entry.inner(item.node, span))
                message = f"nothing gives `{name}` a value, so the rule can never be evaluated{closest(name, bound)}"
                yield Diagnostic(message, place, ops=(entry.name,), severity=Severity.WARNING)


def _given_names(entry: OpEntry) -> Iterator[str]:
    """Names that have a value without any rule."""
    yield from tensor_names(entry)
    yield from (param.name for param in entry.params)
    yield from (key.value for key, _, _ in static_dims(entry))
    for declaration in statement(entry).declarations.values():
        yield from (symbol.name for symbol in declaration.symbols)
    for row in entry.rows:
        yield from row.data


@rule("SHP108", "unused-symbol", severity="warning")
def unused_symbol(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule introduces a name that nothing reads.

    `_k == (kernel_size[0] if isinstance(kernel_size, tuple) else kernel_size)` only gives `_k` a meaning; with no other rule,
    shape, constraint or formula that reads `_k`, it constrains nothing, and what it was written for is probably missing.
    Dimensions of declared shapes and of tuples (`x.shape == (B, S)`) are documentation and may stand alone.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        stride: {type: int, default: 1}
      shape_rules:
        - "y.shape == x.shape"
        - "_s == (1 if stride is None else stride)"
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        stride: {type: int, default: 1}
      shape_rules:
        - "_s == (1 if stride is None else stride)"
        - "y.shape == (x.shape[0] // _s,)"
        - "x.shape == (B, S)"
    ```
    """
    introduced = [(item, use) for item, expression in shape_rules(entry) for use in _introduces(expression)]
    if not introduced or not is_complete(entry):
        return
    given = set(_given_names(entry))
    reads = [use.name for _, expression in shape_rules(entry) for use in expression.names()]
    reads += [name for text in _other_texts(entry) for name in _names(text)]
    for item, use in introduced:
        if use.name not in given and reads.count(use.name) == 1:
            place = entry.at(entry.inner(item.node, use.span))
            message = f"nothing reads `{use.name}`, so the rule that defines it checks nothing; use it or drop the rule"
            yield Diagnostic(message, place, ops=(entry.name,), severity=Severity.WARNING)


def _introduces(expression: Expression) -> Iterator[Reference]:
    """The name that a rule ``name == expression`` is about."""
    node = expression.tree
    if isinstance(node, ast.Compare) and [type(sign) for sign in node.ops] == [ast.Eq]:
        sides = [node.left, *node.comparators]
        named = [side for side in sides if isinstance(side, ast.Name)]
        if len(named) == 1:
            yield Reference(named[0].id, expression.span_of(named[0]))


def _other_texts(entry: OpEntry) -> Iterator[str]:
    """Expressions beside the shape rules that may read a name."""
    formulas = entry.get("roofline", "vars")
    nodes = [value for _, value in formulas.pairs()] if formulas is not None else []
    nodes += [node for node in (entry.get("roofline", key) for key in ("flops", "bytes")) if node is not None]
    for tensor in entry.tensors:
        owner = tensor.attribute("constraints")
        nodes += [value for _, value in owner.pairs()] if owner is not None else []
    yield from (node.value for node in nodes if node.kind == "scalar")
    yield from (text for _, _, text in static_dims(entry))


def _names(text: str) -> Sequence[str]:
    expression = parsed(text)
    return [] if expression is None else [use.name for use in expression.names()]


@rule("SHP110", "rule-without-check", severity="warning", fixable="unsafe")
def rule_without_check(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule comes out as a number or a shape, so it holds whatever it says.

    A rule must be true; any number but 0 and any shape but `()` counts as true. The usual cause is a conditional
    expression, which binds less tightly than `==`: `n == a if c else b` means `(n == a) if c else b`, and where `c` is false
    the rule is the number `b` and `n` is not looked at. Put the conditional in parentheses.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        same: {type: bool, default: false}
      shape_rules:
        - "y.shape[0] == x.shape[0] if same else x.shape[0] // 2 + 1"
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        same: {type: bool, default: false}
      shape_rules:
        - "y.shape[0] == (x.shape[0] if same else x.shape[0] // 2 + 1)"
        - "y.shape == x.shape if same else True"
        - "same or y.ndim == x.ndim"
    ```
    """
    for item, expression in shape_rules(entry):
        for node in _verdicts(expression.tree):
            if _is_quantity(node):
                span = expression.span_of(node)
                text = expression.text[span.start : span.end]
                message = f"`{text}` is a value and no comparison, so here the rule holds whatever it is"
                place = entry.at(entry.inner(item.node, span))
                fix = _parenthesise(entry, item, expression)
                hint = "; put the conditional in parentheses" if fix is not None else "; compare it with something"
                yield Diagnostic(message + hint, place, (), fix, (entry.name,), severity=Severity.WARNING)


def _verdicts(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of a rule that can be what it comes out as; what `or` tests may be a number on purpose."""
    if isinstance(node, ast.IfExp):
        yield from _verdicts(node.body)
        yield from _verdicts(node.orelse)
    else:
        yield node


def _is_quantity(node: ast.expr) -> bool:
    """Whether an expression is surely a number, a shape or a text; ``a & b`` may combine truth values."""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    if isinstance(node, ast.Constant):
        return bool(node.value) and node.value is not True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("broadcast_shapes", "reduced_shape", "tuple")
    shape = isinstance(node, ast.Attribute) and node.attr == "shape"
    return shape or (isinstance(node, ast.Tuple) and bool(node.elts))


def _parenthesise(entry: OpEntry, item: Rule, expression: Expression) -> Fix | None:
    """``n == (a if c else b)`` for ``n == a if c else b``."""
    node = expression.tree
    if not isinstance(node, ast.IfExp) or not isinstance(node.body, ast.Compare) or len(node.body.ops) != 1:
        return None
    if not isinstance(node.body.ops[0], ast.Eq) or not _is_quantity(node.orelse):
        return None
    span = Span(expression.start_of(node.body.comparators[0]), expression.span.end)
    place = entry.inner(item.node, span)
    raw = entry.file.source.text[place.start : place.end]
    if raw != expression.text[span.start : span.end] or raw.count("(") != raw.count(")"):
        return None
    edit = FileEdit(entry.file.path, Edit(place, f"({raw})"))
    return Fix("put the conditional in parentheses", (edit,), "unsafe", "the rule then checks what it did not check before")

