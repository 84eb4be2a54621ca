"""Parameters as declared and as in the constructor: default, keyword-only, whether ``None`` is admitted."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.text import Edit
from opschema_cli.source.yaml_edit import insert_key, remove_key, set_value
from opschema_rules.tileops.annotations import annotation_admits_none, text_admits_none
from opschema_rules.tileops.drift import Drift, Method, method_of, settle, short, yaml_fix
from opschema_rules.tileops.entry_parts import ParamDecl
from opschema_rules.tileops.model import Implementations, OpImplementation
from opschema_rules.tileops.param_defaults import agree, as_data, is_refused, state_default
from opschema_rules.tileops.proofs import ROWS

UNSAFE = "the manifest is the source of truth: perhaps the code is the side to change"


@rule("SIG203", "ctor-default", fixable="safe", proof=ROWS)
def ctor_default(ops: Implementations) -> Iterator[Diagnostic]:
    """A parameter's default differs between the manifest and `__init__()`.

    The constructor must have exactly the defaults that the manifest declares, and no others: workloads, benchmarks and other
    backends omit the parameters that have a default in the manifest. Constants such as `DEFAULT_EPS`, arithmetic and
    `float("inf")` are evaluated; a `torch.dtype` may be written as its name, and a tuple as a list. A default that is computed
    at run time is not compared.

    If only the code has a default, the fix adds `default:` to the manifest and is safe. If both have different defaults, the
    finding is reported at the constructor. Its fix changes the manifest and is unsafe, since the manifest is the source of
    truth. `param-default-type` reports a default that does not match its type in the manifest.

    This is an error if the tree's specification or validator compares defaults. Otherwise, defaults that differ, or that the
    code lacks, are warnings. If they support `compat_default`, a parameter that the manifest requires may have that default in
    the code.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        DEFAULT_EPS = 0.25

        def __init__(self, eps: float = DEFAULT_EPS, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```

    Bad, required in the code:

    ```yaml
    workloads:
      - {x_shape: [4, 8], eps: 0.5, dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], eps: 0.25, dtypes: [float16], label: "large"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```

    Bad, required in the manifest:

    ```yaml
    signature:
      params:
        eps: {type: float}
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: .inf}
        out_dtype: {type: torch.dtype, default: float16}
        dims: {type: "tuple[int, ...]", default: [0, 1]}
    ```

    ```python
    class ExampleFwdOp(Op):
        NOTHING = -float("-inf")

        def __init__(
            self,
            eps: float = NOTHING,
            out_dtype: torch.dtype = torch.float16,
            dims: tuple = (0, 1),
            *,
            kernel_map=None,
        ):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```
    """
    if ops.manifest.spec.knows("ctor-default"):
        yield from settle(ops, default_drifts)
    else:
        for found in settle(ops, _stated_defaults):
            yield msgspec.structs.replace(found, severity=Severity.WARNING)


def _stated_defaults(op: OpImplementation) -> Iterator[Drift]:
    """Defaults in the manifest that a call by the code does not get."""
    for method, param, declared in constructor_params(op):
        if declared.has_default and param.default is None:
            yield from _missing_default(method, param, declared)
        elif declared.has_default and param.default is not None:
            yield from _other_default(method, param.default, declared)


def default_drifts(op: OpImplementation) -> Iterator[Drift]:
    """Differences between the defaults of an op's manifest and constructor."""
    for method, param, declared in constructor_params(op):
        if param.default is None:
            if declared.has_default:
                yield from _missing_default(method, param, declared)
        elif not declared.has_default:
            if not declared.doubtful("default") and not _withheld(method, param.default, declared):
                yield _extra_default(method, param.default, declared)
        else:
            yield from _other_default(method, param.default, declared)


def constructor_params(op: OpImplementation) -> Iterator[tuple[Method, Param, ParamDecl]]:
    """The parameters that both the manifest declares and the constructor takes."""
    method = method_of(op, "__init__")
    for declared in op.entry.params if method is not None else ():
        param = method.param(declared.name) if method is not None else None
        if method is not None and param is not None:
            yield method, param, declared


def _missing_default(method: Method, param: Param, declared: ParamDecl) -> Iterator[Drift]:
    entry, node = method.op.entry, declared.node.get("default") or declared.key
    if _is_unsettled(method, declared):
        return
    value = short(entry.file.source.text[node.start : node.end])
    text = f"`__init__()` gives `{param.name}` no default; the manifest declares `default: {value}`"
    fix = None
    if all(param.name in row.data for row in entry.rows):  # else rows would lack what is required
        title = "remove the manifest's `default`"
        fix = yaml_fix(entry, title, lambda: remove_key(entry.file, declared.node, "default"), UNSAFE)
    yield Drift(method, text, param.span, node.span, f"`default: {value}`", "no default here", fix)


def _is_unsettled(method: Method, declared: ParamDecl) -> bool:
    """Whether the manifest's default is not a value of its own type, or repeated: then the fault is there, not in the drift."""
    entry = method.op.entry
    refused = entry.manifest.spec.knows("param-type") and is_refused(entry, declared)
    return refused or declared.doubtful("default")


def _extra_default(method: Method, default: Expr, declared: ParamDecl) -> Drift:
    written = method.text(default)
    text = f"the manifest gives `{declared.name}` no default; `__init__()` defaults it to `{written}`"
    fix = state_default(method, default, declared, "")
    return Drift(method, text, default.span, declared.key.span, observed="defaulted here", fix=fix, in_manifest=True)


def _withheld(method: Method, default: Expr, declared: ParamDecl) -> bool:
    """Whether the entry names the code's default as one that callers must not rely on (``compat_default``)."""
    entry, node = method.op.entry, declared.node.get("compat_default")
    if node is None or not entry.manifest.spec.mentions("compat_default"):
        return False
    value = method.fold(default)
    return value is None or agree(value, entry.data_of(node), node)


def _other_default(method: Method, default: Expr, declared: ParamDecl) -> Iterator[Drift]:
    value, node = method.fold(default), declared.node.get("default")
    if node is None or value is None or agree(value, declared.default, node) or _is_unsettled(method, declared):
        return
    entry, written = method.op.entry, method.text(default)
    stated = short(entry.file.source.text[node.start : node.end])
    known = "" if value.symbol or default.kind != "name" else f", which is `{as_data(value.value)!r}`"
    text = f"`__init__()` defaults `{declared.name}` to `{written}`{known}; the manifest declares `default: {stated}`"
    fix = state_default(method, default, declared, UNSAFE)
    yield Drift(method, text, default.span, node.span, f"`default: {stated}`", f"`{written}` here", fix)


@rule("SIG204", "ctor-kw-only", fixable="safe", proof=ROWS)
def ctor_kw_only(ops: Implementations) -> Iterator[Diagnostic]:
    """A parameter is keyword-only in only one of manifest and code.

    Parameters are positional unless the manifest says `kw_only: true`. A constructor with the parameter after its `*`
    rejects calls that the manifest promises; one that also takes it by position allows more than the manifest says.

    In the first case the finding is at the constructor, and the fix, which adds `kw_only: true`, is unsafe: the manifest is
    the source of truth. In the second it is in the manifest, and removing `kw_only` is safe. This is checked if the tree's
    specification mentions `kw_only`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, *, eps: float = 0.5, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5, kw_only: true}
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5, kw_only: true}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, *, eps: float = 0.5, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```
    """
    if ops.manifest.spec.knows("kw-only"):
        yield from settle(ops, kw_only_drifts)


def kw_only_drifts(op: OpImplementation) -> Iterator[Drift]:
    """Parameters that only one of an op's manifest and constructor makes keyword-only."""
    for method, param, declared in constructor_params(op):
        if param.kind == "kwonly" and declared.kw_only is False:
            yield _only_in_code(method, param, declared)
        elif param.kind == "normal" and declared.kw_only:
            yield _only_in_manifest(method, param, declared)


def _only_in_code(method: Method, param: Param, declared: ParamDecl) -> Drift:
    entry, node = method.op.entry, declared.node.get("kw_only")

    def edit() -> list[Edit]:
        if node is not None:
            return set_value(entry.file, node, True)
        return insert_key(entry.file, declared.node, "kw_only", True)

    text = f"`__init__()` takes `{param.name}` by keyword only; the manifest lets callers pass it by position"
    fix = yaml_fix(entry, "declare `kw_only: true`", edit, UNSAFE)
    return Drift(method, text, param.span, declared.key.span, "not `kw_only` here", "behind the `*` here", fix)


def _only_in_manifest(method: Method, param: Param, declared: ParamDecl) -> Drift:
    entry, key = method.op.entry, declared.node.pair("kw_only")
    text = f"the manifest declares `{param.name}` keyword-only; `__init__()` takes it by position too"
    fix = yaml_fix(entry, "remove `kw_only`", lambda: remove_key(entry.file, declared.node, "kw_only"))
    span = key[0].span if key is not None else declared.key.span
    return Drift(method, text, param.span, span, observed="positional here", fix=fix, in_manifest=True)


@rule("SIG205", "none-annotation", fixable="safe", proof=ROWS)
def none_annotation(ops: Implementations) -> Iterator[Diagnostic]:
    """A parameter admits `None` in only one of manifest and code.

    Whether a type admits `None` decides whether a caller may omit the value, so the manifest's `type` and the annotation in
    the code must agree on it; the spelling of the type does not matter. `Optional[X]`, `Union[X, None]`, `X | None`, quoted
    annotations and aliases are followed. A type that cannot be followed is not compared.

    If only the code admits `None`, the finding is in the manifest and the fix adds `| None` there. If only the manifest
    does, it is at the annotation. This is checked if the tree's specification compares it. A `default: null` that the
    manifest's own type does not admit is reported by `null-default`.

    Bad:

    ```python
    from typing import Optional

    Target = Optional[float]


    class ExampleFwdOp(Op):
        def __init__(self, eps: Target = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```

    Bad, the reverse:

    ```yaml
    signature:
      params:
        eps: {type: "float | None", default: 0.5}
    ```

    Good, a type that is not known here:

    ```python
    from numbers_of_somebody import Eps


    class ExampleFwdOp(Op):
        def __init__(self, eps: Eps = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```
    """
    if ops.manifest.spec.knows("optional-none"):
        yield from settle(ops, _none_annotation)


def _none_annotation(op: OpImplementation) -> Iterator[Drift]:
    null_default = op.entry.manifest.spec.knows("null-default")
    methods = [method for name in ("__init__", "forward") if (method := method_of(op, name)) is not None]
    for declared in op.entry.params:
        null = declared.has_default and declared.default is None
        if null and null_default and text_admits_none(declared.type or "") is not True:
            continue
        found = next(((item, param) for item in methods if (param := item.param(declared.name)) is not None), None)
        if found is not None and found[1].annotation is not None and declared.type is not None:
            yield from _compare_types(found[0], found[1].annotation, declared, declared.type)


def _compare_types(method: Method, annotation: Expr, declared: ParamDecl, stated: str) -> Iterator[Drift]:
    written = method.text(annotation)
    in_code = annotation_admits_none(method.op.program, method.ref.file, annotation)
    in_manifest = text_admits_none(stated)
    node = declared.node.get("type")
    if in_code is None or in_manifest is None or in_code == in_manifest or node is None:
        return
    if in_manifest:
        text = f"`{method.name}()` annotates `{declared.name}` as `{written}`; the manifest's `{stated}` admits `None`"
        yield Drift(method, text, annotation.span, node.span, f"`{stated}`", f"`{written}` here")
    else:
        entry = method.op.entry
        text = (
            f"the manifest's type of `{declared.name}`, `{stated}`, does not admit `None`; "
            f"`{method.name}()` annotates it as `{written}`"
        )
        fix = yaml_fix(entry, f"declare `{stated} | None`", lambda: set_value(entry.file, node, f"{stated} | None"))
        yield Drift(method, text, annotation.span, node.span, observed=f"`{written}` here", fix=fix, in_manifest=True)
