"""Keys by which methods read `self.kernel_map`, against those of `default_kernel_map`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import combinations

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.reaching import excludes
from opschema_cli.evaluation.sure_code import is_unconditional
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Expr, Function
from opschema_cli.source.resolution import ClassKey, ClassRef
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.drift import names
from opschema_rules.tileops.model import Manifest, OpImplementation
from opschema_rules.tileops.rules.kernel_map import kernels_of, key_text


@rule("SRC107", "kernel-map-key")
def kernel_map_key(op: OpImplementation) -> Iterator[Diagnostic]:
    """A method reads a kernel that `default_kernel_map` does not have.

    `self.kernel_map` holds the keys of `default_kernel_map`, whatever kernels a caller replaces, so reading another key raises
    `KeyError` when the kernel is built. Keys are followed through class attributes, constants and local variables. The rule
    looks at the methods of the op's own class. A map with computed keys, an empty one, and one that other code changes, asks for
    its keys or extends in a subclass is not compared. A read is not reported in `try`, or under a condition that asks for more
    than arguments, attributes that the object writes, and devices.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        @property
        def default_kernel_map(self):
            return {"example": ExampleKernel}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["exmaple"](x)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        KEY = "example"

        @property
        def default_kernel_map(self):
            return {self.KEY: ExampleKernel}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map[self.KEY](x)
    ```
    """
    method = op.method("default_kernel_map")
    known = kernels_of(op, method) if method is not None else None
    if method is None or known is None or not known.complete or not known.kernels:
        return
    absent = [item for function in op.ref.cls.body.functions for item in _absent(op, function, known.kernels)]
    for key, name in absent if absent and not _may_differ(op, method) else ():
        hint = did_you_mean(near_name(name, sorted(known.kernels), 0.6))
        text = f"`default_kernel_map` has no kernel `{name}`{hint}"
        place = Place(method.file.path, method.function.span)
        related = Related(place, f"it has {names(sorted(known.kernels))}")
        yield Diagnostic(text, Place(op.ref.file.path, key.span), (related,), ops=(op.name,))


def _absent(op: OpImplementation, function: Function, kernels: Collection[str]) -> Iterator[tuple[Expr, str]]:
    """Yield the keys missing from the map by which a method is known to read it."""
    bodies, ref = op.entry.manifest.evaluator.bodies, FunctionRef(op.ref.file, function, op.ref)
    body = bodies.defined(op.ref.file, function)
    for key in {key.span: key for key in _keys_read(body)}.values() if body is not None else ():
        name = key_text(op, ref, key)
        if name is not None and name not in kernels and body is not None and is_unconditional(bodies, body, key.start):
            yield key, name


_KEEPING = frozenset({"property", "cached_property", "abstractmethod", "override"})
_READS = r"\s*\[(?![^\]\n]*\][ \t]*(?:[-+*/|]?=(?!=)|:[^=\n]+=))|\.(?:get|items|values)\("
_CHANGES = re.compile(rf"(?<!kernel_map=self)\.kernel_map\b(?!{_READS})|[\"']kernel_map[\"']|def kernel_map\b")
"""Uses of a map that may change it, or test its contents."""
_ADDS = re.compile(
    r"(?m)^[ \t]*[\w.]+\[[ \t]*[\"'][^\]\n]*\][ \t]*=(?!=)|[({,]\s*[\"']\w+[\"']\s*:|\b(?:update|setdefault)\("
)
"""Code of `dispatch_kernel()` that may add keys."""


def _may_differ(op: OpImplementation, method: FunctionRef) -> bool:
    """Whether `self.kernel_map` may hold other keys than the method returns: for subclasses, by decorators, or by other writes."""
    program = op.program
    if not {name.rpartition(".")[2] for name in method.function.decorator_names} <= _KEEPING:
        return True
    beside = (ClassRef(op.ref.file, item) for item in op.ref.file.body.classes)
    heirs = (ref for ref in beside if ref.key != op.ref.key and _maps(op, ref) and op.ref in program.lineage(ref))
    if op.ref.key in _extended(op.entry.manifest) or any(heirs):
        return True
    lineage = program.lineage(op.ref)
    found = [(ref, program.own_member(ref, "dispatch_kernel")) for ref in lineage]
    methods = [(ref, method) for ref, method in found if isinstance(method, FunctionRef)]
    installing = [ref for ref, _ in methods[-1:]]
    texts = [ref.file.text(ref.cls.outer) for ref in installing]
    texts += [method.file.text(method.function.outer) for _, method in methods[:-1]]
    if any(map(_ADDS.search, texts)):
        return True
    others = [ref for ref in lineage if ref not in installing and ref.file.path != op.ref.file.path]
    texts = [op.ref.file.source.text, *(ref.file.text(ref.cls.outer) for ref in others)]
    return any(_CHANGES.search(text) for text in texts)


@cached_on_argument
def _extended(manifest: Manifest) -> set[ClassKey]:
    """The classes below which an op has another `default_kernel_map`."""
    found: set[ClassKey] = set()
    for op in manifest.implementations:
        lineage = op.program.lineage(op.ref)
        above = next((index for index, ref in enumerate(lineage) if _maps(op, ref)), len(lineage))
        found.update(ref.key for ref in lineage[above + 1 :])
    return found


def _maps(op: OpImplementation, ref: ClassRef) -> bool:
    return op.program.own_member(ref, "default_kernel_map") is not None


def _keys_read(body: Body) -> Iterator[Expr]:
    """The keys by which a method reads ``self.kernel_map``, with the values of local variables in their place."""
    scope = body.scope
    assigned = [item.value for item in scope.assigns if item.value is not None]
    for expr in (*scope.calls, *scope.returns, *assigned):
        for part in expr.walk():
            if part.kind == "subscript" and part.items[0].text == f"{body.this}.kernel_map" and len(part.items) == 2:
                yield from _values(body, part.items[1])


def _values(body: Body, key: Expr) -> Iterator[Expr]:
    """Yield the expressions that a key may be; none for a variable that is set by anything but plain assignments, or whose
    assignments follow one another.
    """
    if key.kind != "name" or "." in key.text:
        yield key
        return
    if any(item.name == key.text for function in body.scope.lambdas for item in function.params):
        return
    written = [item for item in body.scope.assigns if item.target == key.text]
    if not written and not body.binds(key.text):
        yield key
    pairs = combinations([item.start for item in written], 2)
    if len(written) > MAX_WRITES or not all(excludes(body.scope, *pair) for pair in pairs):
        return
    for item in written if body.values(key.text) is not None else ():
        value = item.value
        if value is not None:
            yield from value.items[1:] if value.kind == "ifexp" else (value,)


MAX_WRITES = 8
"""Maximum number of assignments to a variable to follow."""
