"""Arguments of types that FlyDSL's functions do not accept."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import excerpt
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.operands import (
    FUNCTION_WORDS,
    FUNCTIONS,
    LONGEST,
    METHOD_WORDS,
    METHODS,
    NUMBER,
    Argument,
    Taken,
    argument,
    may_be_refused,
    may_be_type,
)
from opschema_rules.flydsl.possible_types import is_scalar, possible_of
from opschema_rules.flydsl.usage import is_unsure
from opschema_rules.flydsl.value_classes import plain_name, value_classes
from opschema_rules.flydsl.value_table import NUMERIC

_CAST = re.compile(
    r"(?:Int|Uint|Float|Boolean)\w{0,20}\(\s*(?:\)|[\"'\[{]|f[\"']|None\b|torch\.\w+\)|\w+\.(?:Int|Uint|Float)\w*\)|\([^(),]*,[^()]*\)\s*\))"
)
"""A conversion of a value that may not be a number."""

_CASTS = frozenset({"to", "bitcast"})
_DTYPE_LAST = frozenset({"filled", "full"})


@rule("FLY234", "argument-type", pure=True)
def argument_type(file: FlyFile) -> Iterator[Diagnostic]:
    """An argument of a type that a function of FlyDSL does not take.

    The types of elements are FlyDSL's own, `fx.Float32`: a torch dtype, a Python type or its name raises. A copy takes an
    atom and two tensors, a tiled copy an atom, a layout and a tile, in this order. `make_copy_atom()` and `make_mma_atom()` take an
    operation, so `fx.UniversalCopy128b` has to be called. `fx.Int32(n)` and the like take a number, no string, tuple or `None`, and
    not nothing.

    All of these raise when the function is traced. Only arguments are checked whose type is sure: constants, types by name, and
    what FlyDSL's functions return.

    Bad:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor):
        atom = fx.make_copy_atom(fx.UniversalCopy32b, fx.Float32)
        values = fx.make_rmem_tensor(4, torch.float32)
        fx.copy(values, atom, A)
        scale = fx.Float32("1")
    ```

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor):
        values = fx.Vector.filled(4, 0.0, float)
        A[0] = fx.full(4, 0.0, fx.Float32).to(torch.float16)[0]
    ```

    Good:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor):
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), 32)
        values = fx.make_rmem_tensor(4, fx.Float32)
        fx.copy(atom, A, values)
        zeros = fx.Vector.filled(4, 0.0, fx.Float32)
        zeros = torch.zeros(4).to(torch.float16)
        count = fx.Int32(4.0)
    ```
    """
    tree = file.tree
    for each in tree.files:
        if tree.bodies.program.module_name(each.path).partition(".")[0] == ROOT:
            continue
        calls = tree.bodies.words(each).calls
        words = {word for word in calls if word in FUNCTION_WORDS or word in METHOD_WORDS}
        words |= {word for word in calls if is_scalar(word)} if _CAST.search(each.source.text) else set()
        for body in tree.bodies.calling(each, words) if words else ():
            yield from _refused(tree, body, words)


def _refused(tree: FlyTree, body: Body, words: Collection[str]) -> Iterator[Diagnostic]:
    for call in body.scope.calls:
        word = called_word(call.items[0])
        if word not in words or "*" in call.keywords:
            continue
        if len(call.items) < 2:
            yield from _without_value(tree, body, call, word)
            continue
        for name, takes in _candidates(body, call, word).items():
            pairs = [pair for pair in _pairs(call, word, takes) if may_be_refused(body, *pair)]
            if pairs and _calls(tree, body, call, name):
                yield from _misfits(tree, body, call, word, pairs)


def _without_value(tree: FlyTree, body: Body, call: Expr, word: str) -> Iterator[Diagnostic]:
    """Yield a finding on a FlyDSL number that is made without a value."""
    if is_scalar(word) and _calls(tree, body, call, word) and not is_unsure(tree, body, call):
        message = (
            f"`{word}()` needs a value: it raises `TypeError`; the type itself is `{body.file.text(call.items[0])}`"
        )
        yield Diagnostic(message, body.at(call), ops=(word,))


def _misfits(
    tree: FlyTree, body: Body, call: Expr, word: str, pairs: Iterable[tuple[Expr, Taken]]
) -> Iterator[Diagnostic]:
    """Yield a finding on the first rejected argument of a call."""
    for given, taken in pairs:
        found = argument(tree, body, given)
        if found.nature and taken.refuses(found) and not is_unsure(tree, body, call):
            written = excerpt(body.file.text(given), LONGEST)
            yield Diagnostic(
                f"`{word}()` takes {taken.words} here, and `{written}` is {_what(found)}: it raises when it is traced",
                body.at(given),
                ops=(word,),
            )
            return


def _candidates(body: Body, call: Expr, word: str) -> dict[str, Sequence[Taken]]:
    """Return the functions that a call may call, each with its parameters: by name, or as methods by the type of the value."""
    if word in METHOD_WORDS:
        owner = call.items[0].owner if word not in _CASTS or may_be_type(call.items[1]) else None
        kinds = possible_of(body, owner) if owner is not None else frozenset[str]()
        return {f".{kind}": METHODS[kind, word] for kind in sorted(kinds) if (kind, word) in METHODS}
    owner_word = call.callee.rpartition(".")[0].rpartition(".")[2]
    name = f"{owner_word}.{word}" if f"{owner_word}.{word}" in FUNCTIONS else word
    if name in FUNCTIONS:
        return {name: FUNCTIONS[name]}
    is_cast = is_scalar(word) and call.keywords == ("",) and word != "Index"
    return {word: (NUMBER,)} if is_cast else {}


def _calls(tree: FlyTree, body: Body, call: Expr, name: str) -> bool:
    """Whether a call is known to be of such a function or method."""
    if not name.startswith("."):
        return bool(call.callee) and plain_name(tree.names.full(body, call.callee)) == name
    owner = call.items[0].owner
    return owner is not None and value_classes(tree).of(body, owner) == name[1:]


def _pairs(call: Expr, word: str, takes: Sequence[Taken]) -> Iterator[tuple[Expr, Taken]]:
    """Yield the arguments of a call to check, each with the arguments that its parameter accepts."""
    yield from zip(call.positional(), takes, strict=False)
    for keyword, given in call.args:
        place = 2 if word in _DTYPE_LAST else 0 if len(takes) == 1 else 1
        if keyword in ("dtype", "elem_type") and place < len(takes):
            yield given, takes[place]


def _what(found: Argument) -> str:
    """Describe an argument."""
    match found.nature:
        case "torch dtype":
            return "a torch dtype"
        case "python type":
            return "a Python type"
        case "flydsl type":
            return "a type"
        case "operation":
            return "a function that is not called"
        case "constant":
            return "`None`" if found.constant is None else f"a constant of the type `{type(found.constant).__name__}`"
        case "display":
            return "a tuple, list, dict or string"
    return "a number" if found.kind == NUMERIC else f"a `{found.kind}`"
