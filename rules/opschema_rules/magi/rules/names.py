"""The names under which ops are registered."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.scripts import are_apart
from opschema_cli.source.text import Edit, Place, Span
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.reporting import is_sound
from opschema_rules.magi.version import MODULE

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?\Z", re.ASCII)
_GUARD = re.compile(rb"^def _assert_op_name_valid\(", re.MULTILINE)


@rule("MAG349", "bare-decorator", fixable="safe", proof=CALLS)
def bare_decorator(tree: MagiTree) -> Iterator[Diagnostic]:
    """`@magi_register_custom_op` without its parentheses.

    The decorator is created by a call. Without the call, the function is treated as the op's name, and the function's name
    then refers to the decorator: no op is registered, and calling it decorates its argument.

    Bad:

    ```python
    @magi_register_custom_op
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```

    Good:

    ```python
    @magi_register_custom_op()
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```
    """
    for item in tree.bare:
        place = item.place
        fix = Fix("call it", (FileEdit(place.path, Edit(Span(place.span.end, place.span.end), "()")),))
        name = item.function.function.name if item.function.function is not None else ""
        message = f"the decorator is not called, so that `{name}` is not an op: write `()` after it"
        yield Diagnostic(message, place, fix=fix)


@rule("MAG350", "op-name")
def op_name(tree: MagiTree) -> Iterator[Diagnostic]:
    """A name that is not `namespace::name`, or that two ops share.

    A name of another form is rejected. If two ops share a name, the second replaces the first, also where the first one's
    handle is called; newer versions of MagiCompiler reject it. Without a name, an op is named after its file and function,
    so two files with the same name in different folders may clash: that is a warning, as they may never be imported
    together. Explicit names in two files may be for different machines: that is an info. Ops that are registered inside
    functions or under conditions are not reported.

    Bad:

    ```python
    @magi_register_custom_op("scale")
    def scale(x: Tensor) -> Tensor:
        return x * 2
    ```

    Bad:

    ```python
    @magi_register_custom_op("kit::scale")
    def scale(x: Tensor) -> Tensor:
        return x * 2


    @magi_register_custom_op("kit::scale")
    def scale_more(x: Tensor) -> Tensor:
        return x * 4
    ```

    Good:

    ```python
    try:
        import fast

        @magi_register_custom_op("kit::scale")
        def scale(x: Tensor) -> Tensor:
            return fast.scale(x)

    except ImportError:

        @magi_register_custom_op("kit::scale")
        def scale(x: Tensor) -> Tensor:
            return x * 2


    @magi_register_custom_op()
    def double(x: Tensor) -> Tensor:
        return x * 2
    ```
    """
    seen: dict[str, list[MagiOp]] = {}
    for op in tree.ops:
        if is_sound(op) and op.name is not None:
            if not _is_valid(op.name):
                yield _malformed(op, op.name)
            elif _always_registered(op):
                others = seen.setdefault(op.name, [])
                first = next((item for item in others if not are_apart(item.body.file.path, op.body.file.path)), None)
                if first is not None:
                    yield _shared(op, first)
                others.append(op)


def _is_valid(name: str) -> bool:
    parts = re.split(r"::|\.", name)
    return bool(_NAME.match(name)) and not any(map(keyword.iskeyword, parts)) and parts[1:3][-1:] != ["default"]


def _always_registered(op: MagiOp) -> bool:
    """Whether importing the module always registers the op."""
    outer, at = op.registration.outer, op.registration.call.start
    inside = any(body.function is not None for body in outer.outward())
    return not inside and not any(_is_guarded(body, at) for body in outer.outward())


def _is_guarded(body: Body, at: int) -> bool:
    spans = [*body.scope.guarded, *(loop.body for loop in body.scope.loops)]
    return any(span.start <= at < span.end for span in spans)


def _name_place(op: MagiOp) -> Place:
    written = op.argument("name")
    return written.place if isinstance(written, Written) and op.is_named else op.place


def _malformed(op: MagiOp, name: str) -> Diagnostic:
    where = "" if op.is_named else ", which its file and function give,"
    message = f"`{name}`{where} is not a name of an op: it has the form `namespace::name`, both identifiers"
    return Diagnostic(message, _name_place(op), (Related(op.place, "the op"),), ops=(op.title,))


def _shared(op: MagiOp, first: MagiOp) -> Diagnostic:
    same_file = op.body.file is first.body.file
    effect = "registering it raises" if _is_guarding(op.tree) else "it replaces the other"
    told = "" if same_file else ", where both are imported"
    return Diagnostic(
        f"`{op.title}` is the name of another op, too{told}: {effect}",
        _name_place(op),
        (Related(_name_place(first), "the other"),),
        ops=(op.title,),
        severity=Severity.ERROR if same_file else Severity.INFO if op.is_named and first.is_named else Severity.WARNING,
    )


def _is_guarding(tree: MagiTree) -> bool:
    """Whether the tree's own MagiCompiler refuses a name that is taken."""
    own = [path for path in tree.project.workspace.files if f"/{path}".endswith(f"/{MODULE}")]
    return len(own) == 1 and _GUARD.search(tree.project.workspace.peek(own[0])) is not None
