"""Demands on an op's constructor, which must pass its kernels on, and on the methods of its class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import HARMLESS_BASES, ClassRef, External, FunctionRef, Unresolved
from opschema_cli.source.python import Expr, Function, Scope
from opschema_rules.tileops.drift import Drift, Method, method_of, settle
from opschema_rules.tileops.model import Implementations, OpImplementation
from opschema_rules.tileops.op_classes import call_params


@rule("SIG206", "kernel-map-argument")
def kernel_map_argument(ops: Implementations) -> Iterator[Diagnostic]:
    """`__init__()` does not take `kernel_map`.

    `kernel_map` lets a caller replace kernels. A constructor that does not take it (or `**kwargs`) makes that impossible.
    This is checked if the tree's specification mentions slot S12.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5):
            self.dispatch_kernel()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, **kwargs):
            self.dispatch_kernel(kwargs.pop("kernel_map", None))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    if ops.manifest.spec.knows("kernel-map-argument"):
        yield from settle(ops, _kernel_map_argument)


def _kernel_map_argument(op: OpImplementation) -> Iterator[Drift]:
    method = method_of(op, "__init__")
    if method is not None and not _takes_kernel_map(method):
        text = "`__init__()` does not take `kernel_map`, so no caller can replace a kernel"
        yield Drift(method, text, method.span, op.entry.key, "declares this op")


def _takes_kernel_map(method: Method) -> bool:
    return method.open or method.param("kernel_map") is not None


@rule("SIG207", "dispatch-call")
def dispatch_call(ops: Implementations) -> Iterator[Diagnostic]:
    """`__init__()` never calls `self.dispatch_kernel()`.

    `dispatch_kernel` resolves and installs the kernels, and registers the instance for `torch.compile`. A constructor that
    takes `kernel_map` and never gets there, neither itself nor through `super().__init__()` nor through a method of its
    own, drops the caller's kernels silently. The finding is at the last constructor that receives them. If a call cannot be
    followed, nothing is reported. This is checked if the tree's specification mentions slot S13.

    With `spec = ["dispatch-in-init"]` the rule is stricter: the call must be in `__init__()` itself, or in a constructor
    that it calls. A call in another method is reported.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.kernel_map = kernel_map

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Bad, the base does not either:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            super().__init__()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self._set_up(kernel_map)

        def _set_up(self, kernel_map):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    strict = ops.manifest.spec.knows("dispatch-in-init")
    if ops.manifest.spec.knows("dispatch-call") or strict:
        found = _constructions(ops.ops, strict=strict)
        sound: set[tuple[str, int]] = set()
        if any(each.dispatches is False for each in found.values()):
            judged = {op.name for op in ops.ops}
            others = [op for op in ops.manifest.implementations if op.name not in judged]
            every = [*found.values(), *_constructions(others, strict=strict).values()]
            sound = {item.key for each in every if each.dispatches is not False for item in each.constructors}
        yield from settle(ops, lambda op: _dispatch_call(op, found.get(op.name), sound))


class _Construction(msgspec.Struct, frozen=True):
    """The constructors that an op runs, its own first, and whether they reach ``dispatch_kernel``; ``elsewhere`` if only through
    another method, where that is not allowed.
    """

    constructors: list[Method]
    dispatches: bool | None
    elsewhere: bool = False


def _constructions(ops: Iterable[OpImplementation], *, strict: bool) -> dict[str, _Construction]:
    """Return how ops are constructed, by name, if that is known."""
    built = ((op, _construction(op, strict=strict)) for op in ops)
    return {op.name: construction for op, construction in built if construction is not None}


def _construction(op: OpImplementation, *, strict: bool) -> _Construction | None:
    method = method_of(op, "__init__")
    if method is None or not _takes_kernel_map(method):
        return None
    search = _Search(op)
    answer = search.dispatches(method.ref)
    constructors = [ref for ref in search.seen if ref.function.name == "__init__"]
    elsewhere = strict and answer is True and _Search(op, strict=True).dispatches(method.ref) is False
    found = [Method(op, "__init__", ref, call_params(ref) or []) for ref in constructors]
    return _Construction(found, answer, elsewhere)


def _dispatch_call(
    op: OpImplementation, construction: _Construction | None, sound: set[tuple[str, int]]
) -> Iterator[Drift]:
    """Yield the innermost constructor that gets the kernels and drops them, for all ops that run it."""
    if construction is None or not construction.constructors:
        return
    own, *bases = construction.constructors
    if construction.elsewhere:
        text = "`__init__()` calls `self.dispatch_kernel()` only through another method; call it in `__init__()` itself"
        yield Drift(own, text, own.span, op.entry.key, "declares this op")
    if construction.dispatches is not False:
        return
    dropping = [base for base in bases if base.key not in sound and _takes_kernel_map(base)]
    method = dropping[-1] if dropping else own
    text = "`__init__()` never calls `self.dispatch_kernel()`, so `kernel_map` is dropped"
    yield Drift(method, text, method.span, op.entry.key, "declares this op")


MAX_METHODS = 50
"""Maximum number of methods to follow from one constructor."""


class _Search:
    """Follows a constructor's calls to ``self.dispatch_kernel()``; an answer is None if it cannot be known. A ``strict`` search
    only follows constructors.
    """

    def __init__(self, op: OpImplementation, *, strict: bool = False) -> None:
        self.op = op
        self.strict = strict
        self.seen: list[FunctionRef] = []

    def dispatches(self, ref: FunctionRef) -> bool | None:
        """Whether a method gets there."""
        if self.strict and ref.function.name != "__init__":
            return False
        if any(ref.function is item.function for item in self.seen):
            return False
        if len(self.seen) >= MAX_METHODS:
            return None
        self.seen.append(ref)
        me = ref.function.params[0].name if ref.function.params else ""
        calls = [call for scope in ref.function.body.walk() for call in scope.calls]
        answer = _any(self._call(ref, call, me) for call in calls)
        return None if answer is False and _mentions_dispatch(ref.function.body, me) else answer

    def _call(self, ref: FunctionRef, call: Expr, me: str) -> bool | None:
        if _is_dispatch(call, me):
            return True
        if call.items[0].kind == "attribute" and call.items[0].items[0].callee == "super":
            return self._inherited(ref, call.items[0].text)
        owner, _, name = call.callee.rpartition(".")
        if owner == me:
            return self._method(name)
        if any(value.kind == "name" and value.text == me for value in call.items[1:]):
            return self._function(ref, call)
        return False

    def _method(self, name: str) -> bool | None:
        found = self.op.program.member(self.op.ref, name)
        if isinstance(found, FunctionRef):
            return self.dispatches(found)
        return None

    def _function(self, ref: FunctionRef, call: Expr) -> bool | None:
        """A call that hands the instance on: ``Base.__init__(self, ...)`` or a helper."""
        found = self.op.program.resolve(ref.file, call.callee, (ref.function.body,)) if call.callee else None
        if isinstance(found, External) and found.name in _HARMLESS_CALLS:
            return False
        passes_first = call.items[1].kind == "name" if len(call.items) > 1 else False
        return self.dispatches(found) if isinstance(found, FunctionRef) and passes_first else None

    def _inherited(self, ref: FunctionRef, name: str) -> bool | None:
        """Whether ``super()`` runs a dispatching method: the next definition after the class that writes this one."""
        order = self.op.program.mro(self.op.ref)
        if isinstance(order, Unresolved) or ref.owner is None or ref.owner not in order:
            return None
        for item in order[order.index(ref.owner) + 1 :]:
            if isinstance(item, External) and item.name not in HARMLESS_BASES:
                return None
            found = self.op.program.own_member(item, name) if isinstance(item, ClassRef) else None
            if found is not None:
                return self.dispatches(found) if isinstance(found, FunctionRef) else None
        return False


def _is_dispatch(call: Expr, me: str) -> bool:
    """Whether a call is of the instance's ``dispatch_kernel()``: on itself, on ``super()``, or on a class that gets it first."""
    called = call.items[0]
    owner, _, name = called.text.rpartition(".")
    if name != "dispatch_kernel":
        return False
    on_super = called.kind == "attribute" and called.items[0].callee == "super"
    return on_super or owner == me or (len(call.items) > 1 and call.items[1].text == me)


def _mentions_dispatch(body: Scope, me: str) -> bool:
    """Whether a method reads the instance's ``dispatch_kernel`` without calling it, or has its name in a string."""
    return any(
        "dispatch_kernel" in scope.strings or any(use.name == f"{me}.dispatch_kernel" for use in scope.uses)
        for scope in body.walk()
    )


_HARMLESS_CALLS = frozenset({"isinstance", "type", "id", "repr", "str", "hasattr", "getattr", "super", "print", "vars"})


def _any(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    return True if True in found else None if None in found else False


@rule("SIG208", "contract-stub")
def contract_stub(op: OpImplementation) -> Iterator[Diagnostic]:
    """An op's class leaves a method of its contract abstract.

    A base class marks the methods that every op must implement with `@abstractmethod`. A class that inherits the abstract
    method cannot be constructed; one that inherits a body of `raise NotImplementedError` instead can, but fails when the
    method is called. Methods that a hook such as `__init_subclass__` may generate are not reported.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        @property
        def default_kernel_map(self):
            return {"example": ExampleKernel}

        def _validate_dtypes(self, x):
            pass

        def eval_roofline(self):
            return 1, 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good, a class in between implements it:

    ```python
    class ExampleBase(Op):
        @property
        def default_kernel_map(self):
            return {"example": ExampleKernel}

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def _validate_dtypes(self, x):
            pass

        def eval_roofline(self):
            return 1, 1


    class ExampleFwdOp(ExampleBase):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    for name, contract in _contract(op).items():
        found = op.program.member(op.ref, name)
        if isinstance(found, FunctionRef) and (_is_abstract(found.function) or _only_raises(found.function)):
            what = "abstract" if _is_abstract(found.function) else "a stub that raises `NotImplementedError`"
            text = f"the class leaves `{name}` {what}"
            related = (
                Related(op.code_place(found), f"`{name}` is {what} here"),
                *(
                    [Related(op.code_place(contract), "every op must write it")]
                    if contract.function is not found.function
                    else []
                ),
                Related(op.entry.place, "declares this op"),
            )
            place = Place(op.ref.file.path, op.ref.cls.span)
            yield Diagnostic(text, place, related, ops=(op.name,), severity=op.entry.severity)


def _contract(op: OpImplementation) -> dict[str, FunctionRef]:
    """The methods that some base declares abstract, each where it does so first."""
    return {
        function.name: FunctionRef(base.file, function, base)
        for base in op.program.lineage(op.ref)
        for function in base.cls.body.functions
        if function.decorators and _is_abstract(function)
    }


def _is_abstract(function: Function) -> bool:
    return any(name.rpartition(".")[2].startswith("abstract") for name in function.decorator_names)


def _only_raises(function: Function) -> bool:
    return function.stub and any(use.name == "NotImplementedError" for use in function.body.uses)
