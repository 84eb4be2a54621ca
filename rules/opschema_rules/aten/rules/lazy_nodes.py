"""Hand-written code for the nodes of a lazy tensor backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.suggestions import near_name
from opschema_rules.aten.known_operators import certain_slip
from opschema_rules.aten.lazy_nodes import PARTS, LazyNodes
from opschema_rules.aten.model import BackendItem

_CLOSE = 0.8


@rule("ATN632", "node-part-missing")
def node_part_missing(lazy: LazyNodes) -> Iterator[Diagnostic]:
    """A function is missing that has to be written for an operator under `full_codegen` or `ir_gen`.

    pytorch/xla generates the class of the node that stands for the operator (`Acos` for `acos`, `EqScalar` for `eq.Scalar`).
    Two functions are left to be written: the method `Acos::Lower`, and `AcosOutputShape`, which the constructor calls. Without
    one of them the backend does not compile or link.

    A missing function is reported only if the tree plainly follows this convention: it defines the function, under this or a
    similar name, for at least half of the listed operators. A missing `Lower` is also reported if the tree defines the output shape
    of the same node, and `Lower` of any other node. In-place and out variants have no node of their own. A function that a macro
    may define does not count as missing, and neither does one whose node is named in another way: as an argument of a macro or
    template, as a class, or in an included list. Nothing is reported if a script of the tree writes such functions.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    full_codegen: [square, relu, expand]
    ```

    ```cpp ops_lower_fn.cpp
    torch_xla::XlaOpVector Relu::Lower(LoweringContext* loctx) const { return ReturnOp(BuildRelu(operand(0)), loctx); }
    torch_xla::XlaOpVector Square::Lower(LoweringContext* loctx) const { return ReturnOp(xla::Square(operand(0)), loctx); }
    xla::Shape ReluOutputShape(const torch::lazy::Value& input) { return GetXlaShape(input); }
    xla::Shape SquareOutputShape(const torch::lazy::Value& input) { return GetXlaShape(input); }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    full_codegen: [square, relu, add.Tensor]
    ```

    ```cpp ops_lower_fn.cpp
    #define LOWER(Node, build) XlaOpVector Node::Lower(LoweringContext* loctx) const { return ReturnOp(build(operand(0)), loctx); }
    LOWER(Square, xla::Square)
    torch_xla::XlaOpVector Relu::Lower(LoweringContext* loctx) const { return ReturnOp(BuildRelu(operand(0)), loctx); }
    torch_xla::XlaOpVector AddTensor::Lower(LoweringContext* loctx) const { return ReturnOp(BuildAdd(operand(0)), loctx); }
    ```
    """
    expected = [pair for part in PARTS for pair in _expected(lazy, part)]
    missing: dict[str, tuple[BackendItem, list[str]]] = {}
    for item, function in expected:
        if function not in lazy.defined and not _is_unknown(lazy, item.name):
            missing.setdefault(item.name, (item, []))[1].append(function)
    free = lazy.defined.keys() - {function for _, function in expected}
    for item, functions in missing.values():
        yield _missing(lazy, item, functions, sorted(free))


def _is_unknown(lazy: LazyNodes, name: str) -> bool:
    """Whether another rule reports that there is no such operator."""
    reference = lazy.backend.reference
    unknown = reference is not None and reference.catalogue.complete and name not in reference.catalogue.by_name
    return unknown or certain_slip(name) is not None


def _expected(lazy: LazyNodes, part: str) -> Sequence[tuple[BackendItem, str]]:
    """Return the functions of one kind that the operators need and that the tree is known to define itself."""
    names = [(item, PARTS[part].format(node), node) for item, node in lazy.nodes if node not in lazy.perhaps]
    free = sorted(lazy.defined.keys() - {name for _, name, _ in names})
    found = sum(name in lazy.defined for _, name, _ in names)
    renamed = sum(name not in lazy.defined and _near(name, free) is not None for _, name, _ in names)
    if found + renamed and 2 * (found + renamed) >= len(names):
        return [(item, name) for item, name, _ in names]
    shaped = [(item, name) for item, name, node in names if PARTS["OutputShape"].format(node) in lazy.defined]
    return shaped if part == "Lower" and found else ()


def _missing(lazy: LazyNodes, item: BackendItem, names: Sequence[str], free: Sequence[str]) -> Diagnostic:
    near = [_near(name, free) for name in names]
    what = f"no {listed(names, 'and no')}"
    message = f"`{item.name}` is under `{item.section}`, and the C++ defines {what}, which its node needs"
    found = [name for name in near if name is not None]
    if found:
        message += f"; did you mean {listed(found)}?"
    related = [Related(lazy.defined[name], f"`{name}` is defined here") for name in found]
    return Diagnostic(message, lazy.backend.at(item.name_node), tuple(related) or _others(lazy), ops=(item.name,))


def _near(name: str, free: Sequence[str]) -> str | None:
    """A function of the same kind whose node has nearly the same name."""
    part = "::Lower" if name.endswith("::Lower") else "OutputShape"
    nodes = [other.removesuffix(part) for other in free if other.endswith(part)]
    near = near_name(name.removesuffix(part), nodes, _CLOSE)
    return f"{near}{part}" if near is not None else None


def _others(lazy: LazyNodes) -> tuple[Related, ...]:
    """Return the file that defines most existing functions; empty if all of them have other names."""
    names = {name.format(node) for name in PARTS.values() for _, node in lazy.nodes}
    places = [place for name, place in lazy.defined.items() if name in names]
    if not places:
        return ()
    path, number = Counter(place.path for place in places).most_common(1)[0]
    place = max((place for place in places if place.path == path), key=lambda item: item.span.start)
    return (Related(place, f"this file defines {count(number, 'function')} of other nodes"),)
