"""Construction of a ``torch.library.Library``, and its uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.evaluation.reaching import excludes
from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.guarded_code import is_tried
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit
from opschema_cli.suggestions import near_name
from opschema_rules.torchlib.apis import LIBRARIES
from opschema_rules.torchlib.dispatch_keys import BACKENDS, DISPATCH_KEYS
from opschema_rules.torchlib.model import Tree
from opschema_rules.torchlib.proofs import REGISTRATION
from opschema_rules.torchlib.registering import may_end

KINDS = ("DEF", "IMPL", "FRAGMENT")
RESERVED = ("prim",)
"""``torch.library._reserved_namespaces``."""

_DEVICES = (
    "CPU",
    "CUDA",
    "HIP",
    "XLA",
    "MPS",
    "IPU",
    "XPU",
    "HPU",
    "VE",
    "Lazy",
    "MTIA",
    "MAIA",
    "PrivateUse1",
    "Meta",
)
_KEYS = (*_DEVICES, *(f"Autograd{key}" for key in ("", *_DEVICES)), *(f"Sparse{key}" for key in _DEVICES),
"CompositeImplicitAutograd", "CompositeExplicitAutograd", "Autocast", "BackendSelect", "Functionalize")  # fmt: skip
_FUNCTIONALITY = re.compile(r"^(?:Autograd|Autocast|SparseCsr|Sparse|Quantized|NestedTensor)(?=[A-Z])")
_BY_LOWER = {key.lower(): key for key in _KEYS}
"""Dispatch keys by their letters: torch parses them with regard to case (``c10::parseDispatchKey``)."""


class Made(msgspec.Struct, frozen=True):
    """A call that makes a library: its arguments, and their values if these are known."""

    body: Body
    call: Expr
    arguments: dict[str, Expr]
    namespace: str | None
    kind: str | None

    def related(self) -> Related:
        """The call, as the other side of a finding."""
        return Related(self.body.at(self.call), f"made here: `{self.body.file.text(self.call)}`")


@rule("REG119", "library-use", fixable="safe", needs=(CPP,), proof=REGISTRATION)
def library_use(tree: Tree) -> Iterator[Diagnostic]:
    """A `Library` that torch refuses to create, or a call that the library rejects.

    `Library(ns, kind)` accepts the kinds `DEF`, `IMPL` and `FRAGMENT`: `DEF` once for each namespace, `DEF` and `FRAGMENT`
    without a dispatch key and not for `prim`. A library of kind `IMPL` cannot define operators; no library accepts names of
    another namespace. Dispatch keys are `CPU`, `CUDA` and so on; the devices `cpu` and `cuda` are for `register_kernel` and for
    `torch.library.impl` with a qualified name.

    A library is followed if its name is assigned once.

    Bad:

    ```python
    lib = torch.library.Library("kit", "fragment")
    ```

    Bad:

    ```python
    lib = torch.library.Library("kit", "IMPL")
    lib.define("scale(Tensor x, float factor) -> Tensor")
    ```

    Bad:

    ```python
    lib = torch.library.Library("kit", "FRAGMENT")
    lib.define("scale(Tensor x, float factor) -> Tensor")
    lib.impl("scale", lambda x, factor: x * factor, "cuda")
    ```

    Bad:

    ```python
    torch.utils.rename_privateuse1_backend("tile")
    lib = torch.library.Library("aten", "IMPL")
    lib.impl("neg", lambda x: x, "Tile")
    ```

    Good:

    ```python
    lib = torch.library.Library("kit", "DEF")
    more = torch.library.Library("kit", "FRAGMENT")
    kernels = torch.library.Library("kit", "IMPL", "CUDA")
    more.define("kit::scale(Tensor x, float factor) -> Tensor")
    kernels.impl("scale", lambda x, factor: x * factor)


    @torch.library.register_kernel("kit::scale", "cpu")
    def scale_cpu(x, factor):
        return x * factor
    ```
    """
    for file_bodies in _by_file(tree.bodies):
        made = [item for body in file_bodies for item in _made_in(tree.evaluator, body)]
        for item in made:
            if _may_fail(tree.bodies, item.body, item.call):
                continue
            yield from _refused(item)
        yield from _made_twice(made)
        if made:
            for body in file_bodies:
                yield from _misused(tree.evaluator, body)
    yield from _unknown_types(tree)


def _unknown_types(tree: Tree) -> Iterator[Diagnostic]:
    """Strings in ``torch.library.impl("ns::name", key)`` that are neither dispatch keys nor devices, which have no capitals, and in
    ``torch.library.impl(library, "name", key)`` that are no dispatch keys.
    """
    strays = [item.registration for item in (*tree.of_torch, *tree.strays)]
    known = [item for operator in tree.operators for item in operator.registrations]
    seen: set[Place] = set()
    for item in (*strays, *known):
        body, call = item.body, item.call
        if item.form != "impl" or item.language != "python" or body is None or call is None or item.place in seen:
            continue
        if _may_fail(tree.bodies, body, call):
            continue
        seen.add(item.place)
        key = _key_of_impl(tree.evaluator, body, call)
        if key is not None and tree.bodies.external(body, call.callee) == "torch.library.impl":
            yield from _unknown_key(body, key)


def _key_of_impl(evaluator: Evaluator, body: Body, call: Expr) -> Expr | None:
    """The string in ``torch.library.impl(...)`` that must be a dispatch key."""
    plain = call.positional()
    if plain[:1] and isinstance(plain[0].value, str):
        key = plain[1] if len(plain) > 1 else call.keyword("types")
        named = "::" in plain[0].value and key is not None and isinstance(key.value, str)
        return key if named and key is not None and key.value != str(key.value).lower() else None
    if len(plain) != 3 or plain[0].kind != "name" or "." in plain[0].text:
        return None
    return plain[2] if _held(evaluator, body, plain[0].text) is not None else None


def _may_fail(bodies: Bodies, body: Body, call: Expr) -> bool:
    """Whether the error of a call is handled, or expected by a test."""
    return is_tried(body, call.start) or expects_failure(bodies, body, call.start)


def _by_file(bodies: Bodies) -> Iterator[list[Body]]:
    found: dict[str, list[Body]] = {}
    for body in bodies.holding("Library("):
        found.setdefault(body.file.path, []).append(body)
    yield from found.values()


def _made_in(evaluator: Evaluator, body: Body) -> Iterator[Made]:
    for call in body.scope.calls:
        made = _made(evaluator, body, call) if call.callee.endswith("Library") else None
        if made is not None:
            yield made


def _made(evaluator: Evaluator, body: Body, call: Expr) -> Made | None:
    """The library that a call makes; None when it makes none, or its arguments are unpacked."""
    if evaluator.bodies.external(body, call.callee) not in LIBRARIES or any(
        word.startswith("*") for word in call.keywords
    ):
        return None
    arguments = dict(zip(("ns", "kind", "dispatch_key"), call.positional(), strict=False))
    arguments |= {word: value for word, value in call.args if word}
    known = {name: _text(evaluator, body, arguments[name]) for name in ("ns", "kind") if name in arguments}
    return Made(body, call, arguments, known.get("ns"), known.get("kind"))


def _text(evaluator: Evaluator, body: Body, expr: Expr) -> str | None:
    found = evaluator.texts(body, expr)
    return min(found) if found is not None and len(found) == 1 else None


def _refused(made: Made) -> Iterator[Diagnostic]:
    """Yield a finding with the reason why ``Library(...)`` itself raises."""
    if "kind" not in made.arguments:
        yield Diagnostic("`Library` lacks its kind: `DEF`, `IMPL` or `FRAGMENT`", made.body.at(made.call))
    elif made.kind is not None and made.kind not in KINDS:
        meant = made.kind.upper() if made.kind.upper() in KINDS else ""
        message = f"`{made.kind}` is not a kind of library; torch knows `DEF`, `IMPL` and `FRAGMENT`"
        yield _replaced(made.body, made.arguments["kind"], meant, message)
    defines = made.kind in ("DEF", "FRAGMENT")
    if defines and made.namespace in RESERVED:
        yield Diagnostic(f"the namespace `{made.namespace}` is torch's own", made.body.at(made.arguments["ns"]))
    key = made.arguments.get("dispatch_key")
    if key is not None and key.kind == "const" and key.value:
        if defines:
            yield Diagnostic(
                f"a library of kind `{made.kind}` takes no dispatch key; give it to `impl()`", made.body.at(key)
            )
        else:
            yield from _unknown_key(made.body, key)


def _unknown_key(body: Body, key: Expr) -> Iterator[Diagnostic]:
    """Yield a finding on a string that is not a dispatch key."""
    written = key.value
    if not isinstance(written, str) or not written or written in DISPATCH_KEYS:
        return
    meant = _BY_LOWER.get(written.lower(), "")
    backend = _FUNCTIONALITY.sub("", written)
    if meant:
        advice = f"torch knows `{meant}`"
    elif backend.isupper() and near_name(backend, BACKENDS, 0.75) is None:  # the vendor's own torch may know it
        return
    elif (near := near_name(written, sorted(DISPATCH_KEYS), 0.75)) is not None:
        advice = f"did you mean `{near}`?"
    else:
        advice = "the key of a backend with a name of its own is `PrivateUse1`"
    yield _replaced(body, key, meant, f"`{written}` is not a dispatch key; {advice}")


def _replaced(body: Body, written: Expr, meant: str, message: str) -> Diagnostic:
    """Return a finding at a constant, with the fix that replaces the text in its quotes."""
    place = body.at(written)
    text = body.file.text(written)
    if not meant or written.kind != "const" or text[1:-1] != written.value:
        return Diagnostic(message, place)
    edit = FileEdit(place.path, Edit(place.span, f"{text[0]}{meant}{text[-1]}"))
    return Diagnostic(message, place, fix=Fix(f"write `{meant}`", (edit,)))


def _made_twice(made: list[Made]) -> Iterator[Diagnostic]:
    """The second library of kind ``DEF`` for a namespace, where both are made when the module is imported."""
    first: dict[str, Made] = {}
    for item in made:
        if item.kind != "DEF" or item.namespace is None or item.body.function is not None:
            continue
        before = first.setdefault(item.namespace, item)
        apart = before.body is not item.body or excludes(item.body.scope, before.call.start, item.call.start)
        if before is not item and not apart and not _may_not_run(item) and not may_end(before.body, before.call):
            message = f"`{item.namespace}` has its one library of kind `DEF` already; torch refuses a second, write `FRAGMENT`"
            found = _replaced(item.body, item.arguments["kind"], "FRAGMENT", message)
            yield _beside(found, before.related())


def _beside(found: Diagnostic, other: Related) -> Diagnostic:
    """A finding with its other side."""
    return Diagnostic(found.message, found.place, related=(other,), fix=found.fix)


def _may_not_run(made: Made) -> bool:
    return made.body.scope.guarding.innermost(made.call.start) is not None


def _misused(evaluator: Evaluator, body: Body) -> Iterator[Diagnostic]:
    """Calls of methods of a library held by a name."""
    for call in body.scope.calls:
        name, _, method = call.callee.rpartition(".")
        if method not in ("define", "impl") or not name or "." in name:
            continue
        made = _held(evaluator, body, name)
        if made is not None and not _may_fail(evaluator.bodies, body, call):
            yield from _refused_through(evaluator, body, call, method, made)


def _held(evaluator: Evaluator, body: Body, name: str) -> Made | None:
    """Return the library that a name is assigned once, in this body or an enclosing one."""
    binder = body.binder(name) or evaluator.bodies.module(body.file)
    values = binder.values(name)
    if values is None or len(values) != 1 or values[0].kind != "call":
        return None
    return _made(evaluator, binder, values[0])


def _refused_through(evaluator: Evaluator, body: Body, call: Expr, method: str, made: Made) -> Iterator[Diagnostic]:
    plain = call.positional()
    if method == "define" and made.kind == "IMPL":
        message = "a library of kind `IMPL` defines no operators; make one of kind `FRAGMENT` for that"
        yield Diagnostic(message, body.at(call), related=(made.related(),))
        return
    name = _text(evaluator, body, plain[0]) if plain else None
    namespace = name.partition("(")[0].rpartition("::")[0] if name is not None else ""
    if namespace and made.namespace is not None and namespace != made.namespace:
        message = f"this library is of the namespace `{made.namespace}`, and takes no name of `{namespace}`"
        yield Diagnostic(message, body.at(plain[0]), related=(made.related(),))
    if method == "impl" and len(plain) > 1 and isinstance(plain[1].value, str):
        message = "`impl()` takes the function before the dispatch key, and is passed a string for it"
        yield Diagnostic(message, body.at(plain[1]), related=(made.related(),))
    elif method == "impl":
        key = plain[2] if len(plain) > 2 else call.keyword("dispatch_key")
        if key is not None and key.kind == "const":
            yield from _unknown_key(body, key)
