"""Names of operators: their form, reserved namespaces, and duplicate or missing definitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opschema_cli.evaluation.reaching import excludes
from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.schema_tokens import KEYWORDS
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Scope
from opschema_cli.source.text import Edit, Span
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.torchlib.applied_order import runs_before
from opschema_rules.torchlib.build_pairs import Compiled, linked_pairs
from opschema_rules.torchlib.model import Definition, Operator, Registration, StrayRegistration, Tree
from opschema_rules.torchlib.proofs import REGISTRATION
from opschema_rules.torchlib.stray_uses import may_be_of_others

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BY_NAME = ("fake", "kernel", "autograd", "vmap", "autocast")


@rule("REG111", "operator-name", needs=(CPP,))
def operator_name(operator: Operator) -> Iterator[Diagnostic]:
    """A name that is not a valid operator name.

    `custom_op`, `triton_op` and `torch.library.define` take `namespace::name` or `namespace::name.overload`, each part a
    plain identifier and not a keyword of the schema language. `.default` is what `torch.ops` calls the overload without a
    name, and cannot be used.

    Bad:

    ```python
    @torch.library.custom_op("scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor
    ```

    Bad:

    ```python
    torch.library.define("kit::scale-rows", "(Tensor x) -> Tensor")
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    torch.library.define("kit::scale.out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    ```
    """
    definition = operator.definition
    if definition.api == "cpp" or definition.name_place is None or not _is_named_apart(operator):
        return
    reasons = {name: _ill_named(name) for name in sorted(operator.names or ())}
    if all(reasons.values()):  # of several, each may be that of a condition that never holds
        for name, reason in reasons.items():
            yield Diagnostic(
                f"`{name}` is not an operator's name: {reason}", definition.name_place, ops=(operator.title,)
            )


def _is_named_apart(operator: Operator) -> bool:
    """Whether the name is an argument of its own, not the head of a schema string."""
    definition = operator.definition
    if definition.body is None or definition.call is None:
        return False
    callee = operator.tree.bodies.external(definition.body, definition.call.callee)
    return callee in ("torch.library.custom_op", "torch.library.triton_op", "torch.library.define")


def _ill_named(name: str) -> str:
    """Return the fault of a qualified name; empty if there is none."""
    parts = name.split("::")
    if len(parts) != 2:
        return "write `namespace::name`"
    own, _, overload = parts[1].partition(".")
    if own and "." in parts[1] and not overload:
        return "an overload's name follows the dot"
    if overload == "default":
        return "`default` cannot name an overload"
    for part in (parts[0], own, *([overload] if overload else [])):
        if not _NAME.fullmatch(part) or part in KEYWORDS:
            return f"`{part}` is not an identifier that a schema takes"
    return ""


@rule("REG120", "default-overload", fixable="safe", needs=(CPP,), proof=REGISTRATION)
def default_overload(operator: Operator) -> Iterator[Diagnostic]:
    """A registration for `namespace::name.default`.

    `.default` is what `torch.ops` calls the overload without a name. In a string it is rejected, by `register_fake` and
    similar functions, `impl` and `Library.impl`: write the name without it. The overload itself
    (`torch.ops.kit.scale.default`) is accepted.

    Bad:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")


    @torch.library.register_fake("kit::scale.default")
    def scale_fake(x, factor):
        return torch.empty_like(x)
    ```

    Good:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")


    @torch.library.register_kernel("kit::scale", "cpu")
    def scale_cpu(x, factor):
        return x * factor


    @torch.library.register_fake(torch.ops.kit.scale.default)
    def scale_fake(x, factor):
        return torch.empty_like(x)
    ```
    """
    for item in operator.registrations:
        place = item.default_place
        if place is not None and item.role in _BY_NAME and item.body is not None:
            text = item.body.file.source.text if item.body.file.path == place.path else ""
            at = text.rfind(".default", place.span.start, place.span.end)
            edit = FileEdit(place.path, Edit(Span(at, at + len(".default")), ""))
            fix = Fix("drop `.default`", (edit,)) if at >= 0 else None
            name = operator.title.removesuffix(".default")
            yield Diagnostic(
                f"`default` cannot name an overload, so that this raises: write `{name}`",
                place,
                related=(Related(operator.definition.name_place or operator.place, "the definition"),),
                ops=(operator.title,),
                fix=fix,
            )


@rule("REG112", "reserved-namespace", needs=(CPP,))
def reserved_namespace(operator: Operator) -> Iterator[Diagnostic]:
    """An operator in the namespace `prim`.

    `prim` is reserved for TorchScript; `custom_op`, `define` and `Library` reject it.

    Bad:

    ```python
    @torch.library.custom_op("prim::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor
    ```

    Good:

    ```python
    @torch.library.custom_op("primitives::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor
    ```
    """
    definition = operator.definition
    if definition.api != "cpp" and any(name.startswith("prim::") for name in operator.names or ()):
        place = definition.name_place or definition.place
        yield Diagnostic(f"`{operator.title}`: the namespace `prim` is torch's own", place, ops=(operator.title,))


@rule("REG113", "defined-twice", needs=(CPP,))
def defined_twice(tree: Tree) -> Iterator[Diagnostic]:
    """An operator that is defined twice.

    A second `define` of a name raises, and so does `define` beside `custom_op`. A second `custom_op` is accepted and replaces
    the first, with everything that was registered for it, which is a warning. If only one of the definitions is executed (in
    the branches of an `if` or `#if`, in a handler, in a function), they are not reported. Nor are definitions in different
    files, since one of them may never be imported. C++ files are compared where the build always compiles them together, as in
    [REG506](REG506.md).

    Bad:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")
    torch.library.define("kit::scale", "(Tensor x, float factor, float bias) -> Tensor")
    ```

    Bad (the first is lost):

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale_rows(x: Tensor, factors: Tensor) -> Tensor:
        return x * factors
    ```

    Good:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")
    torch.library.define("kit::scale.rows", "(Tensor x, Tensor factors) -> Tensor")

    if torch.cuda.is_available():
        torch.library.define("kit::sort", "(Tensor x) -> Tensor")
    else:
        torch.library.define("kit::sort", "(Tensor x) -> (Tensor, Tensor)")
    ```
    """
    first: dict[tuple[str, str], Operator] = {}
    for operator in sorted(tree.operators, key=lambda item: (item.place.path, item.place.span)):
        name = _one_name(operator)
        if name and not operator.definition.conditional and _runs_once(operator.definition):
            before = first.setdefault((operator.place.path, name), operator)
            if before is not operator:
                yield _twice(operator, before, name)
    for operator, before, _ in linked_pairs(tree, _of_cpp(tree.operators)):
        yield _twice(operator, before, _one_name(operator))


def _of_cpp(operators: Iterable[Operator]) -> Iterator[tuple[object, Compiled, Operator]]:
    for operator in operators:
        definition, name = operator.definition, _one_name(operator)
        if name and definition.api == "cpp" and not definition.branch:
            yield name, Compiled(operator.place.path, definition.conditions), operator


def _one_name(operator: Operator) -> str:
    names = operator.names or frozenset()
    return min(names).removesuffix(".default") if len(names) == 1 else ""


def _runs_once(definition: Definition) -> bool:
    """Whether a definition is at the top level of a module, or in C++."""
    return definition.api == "cpp" or (definition.body is not None and definition.body.function is None)


def _twice(operator: Operator, before: Operator, name: str) -> Diagnostic:
    replaces = {operator.definition.api, before.definition.api} <= {"custom_op", "triton_op"}
    effect = "this one replaces it, with all that is registered for it" if replaces else "torch refuses the second"
    definition = operator.definition
    return Diagnostic(
        f"`{name}` is defined already: {effect}",
        definition.name_place or definition.place,
        related=(Related(before.definition.name_place or before.place, "the definition before"),),
        ops=(name,),
        severity=Severity.WARNING if replaces else Severity.ERROR,
    )


@rule("REG117", "no-such-operator", needs=(CPP,))
def no_such_operator(stray: StrayRegistration) -> Iterator[Diagnostic]:
    """A registration for an operator that nothing defines.

    A fake, an autograd or a vmap rule for a name that no operator has raises; a kernel for it is stored but never called,
    which is a warning. The rule checks namespaces in which the tree defines operators and every registration can be
    followed; not those of torch and other well-known packages, nor those in which more than two operators, and more than the
    tree defines, have registrations only, nor any in a tree without C++ that loads a library (`torch.ops.load_library`,
    `from . import _C`). In these cases it reports slips in names of operators of the tree, and C++ beside definitions in that
    namespace. Names that are defined conditionally are not reported.

    Bad:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")


    @torch.library.register_fake("kit::scales")
    def scale_fake(x, factor):
        return torch.empty_like(x)
    ```

    Good:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")


    @torch.library.register_fake("kit::scale")
    def scale_fake(x, factor):
        return torch.empty_like(x)


    @torch.library.register_fake("othermodule::rotate")
    def rotate_fake(x):
        return torch.empty_like(x)
    ```
    """
    tree, registration = stray.tree, stray.registration
    asked = registration.conditional and registration.language == "python"
    if asked or may_be_of_others(stray):
        return
    kept = registration.language == "cpp" or registration.role in ("kernel", "other", "fallthrough", "autocast")
    kept = kept or bool(registration.keys)
    effect = "it is kept, and never called" if kept else "it raises"
    yield Diagnostic(
        f"nothing defines `{stray.name}`, for which this is registered: {effect}{_meant(tree, stray.name)}",
        registration.place,
        ops=(stray.name,),
        severity=Severity.WARNING if kept else Severity.ERROR,
    )


def _meant(tree: Tree, name: str) -> str:
    """The one operator whose name is like it."""
    known = sorted({item for operator in tree.operators for item in operator.names or ()})
    return did_you_mean(near_name(name, known, 0.85))


@rule("REG118", "registered-too-early")
def registered_too_early(operator: Operator) -> Iterator[Diagnostic]:
    """A fake or an autograd rule that is registered before the operator is defined.

    `register_fake`, `register_autograd` and `register_vmap` look the operator up when they run; a kernel may come
    first.

    Bad:

    ```python
    @torch.library.register_fake("kit::scale")
    def scale_fake(x, factor):
        return torch.empty_like(x)


    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")
    ```

    Good:

    ```python
    @torch.library.impl("kit::scale", "cpu")
    def scale_cpu(x, factor):
        return x * factor


    torch.library.define("kit::scale", "(Tensor x, float factor) -> Tensor")


    @torch.library.register_fake("kit::scale")
    def scale_fake(x, factor):
        return torch.empty_like(x)
    ```
    """
    definition = operator.definition
    name = _one_name(operator)
    if not name or not _runs_once(definition) or definition.conditional or _is_defined_elsewhere(operator, name):
        return
    for item in operator.registrations:
        early = item.role in ("fake", "autograd", "vmap") and not item.keys and item.language == "python"
        if early and not item.conditional and _stands_before(item, definition):
            yield Diagnostic(
                f"`{name}` is defined only below: this raises",
                item.place,
                related=(Related(definition.name_place or definition.place, "the definition"),),
                ops=(name,),
            )


def _is_defined_elsewhere(operator: Operator, name: str) -> bool:
    names = operator.tree.claims
    return names[name] + names[""] > (not operator.names or name in operator.names)


def _stands_before(item: Registration, definition: Definition) -> bool:
    body: Body | None = item.body
    if (
        body is None
        or body is not definition.body
        or body.function is not None
        or item.call is None
        or definition.call is None
    ):
        return False
    scope: Scope = body.scope
    before = runs_before(scope, item.call, definition.call)
    return before and not excludes(scope, item.call.start, definition.call.start)
