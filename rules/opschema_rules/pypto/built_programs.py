"""Reads programs that code builds by calls of the runtime: ``ChipCallable.build(...)`` with kernels of ``CoreCallable.build(...)``.

The sources are those that ``compile_orchestration()`` and ``compile_incore()`` got for the binaries of both.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.origins import origin, origins
from opschema_cli.evaluation.values import BoundArgument, Frame, Func
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Constant, Expr, PythonFile
from opschema_rules.pypto.model import Contract, Kernel, OrchestrationPart, Program, Signature
from opschema_rules.pypto.records import Record
from opschema_rules.pypto.signature_reading import Signatures
from opschema_rules.pypto.source_paths import path_of

BUILDS = "ChipCallable.build("
"""Text that every file with such programs contains."""

_OWNER = "ChipCallable"
_CHIP, _CORE = "ChipCallable.build", "CoreCallable.build"
_COMPILES = {"compile_orchestration": ("runtime_name", "source_path"), "compile_incore": ("source_path", "core_type")}
"""The methods of ``KernelCompiler`` with the names of their first parameters."""

_SAME = frozenset({"extract_text_section", "list", "tuple", "bytes"})
"""Functions whose result depends on their first argument alone."""

_DEEPEST = 3
"""Maximum number of calls between functions of a file to follow to one that builds programs."""

_MOST_CALLS = 16
"""Maximum number of calls of a function that builds programs to distinguish."""

_MOST = 60
"""Maximum number of expressions to follow to find the value of one argument."""


class BuiltPrograms(msgspec.Struct, frozen=True, dict=True):
    """Reads the programs that one tree builds."""

    project: Project
    bodies: Bodies
    evaluator: Evaluator
    contract: Contract
    signatures: Signatures

    def of(self, body: Body) -> Iterator[Program]:
        """Yield the programs that a body builds, one for each call of its function if these pass different arguments."""
        own = body.file.body
        functions, classes = {item.name for item in own.functions}, {item.name for item in own.classes}
        if _OWNER in functions | classes | {item.target for item in own.assigns}:
            return
        for call in body.scope.calls:
            if _is_call_of(call, _CHIP) and _passes(call, "children", "binary", "func_name"):
                for frame in self._frames(body):
                    yield self._program(frame, call)

    def _frames(self, body: Body, depth: int = _DEEPEST) -> list[Frame]:
        """Return a frame for each call of a function in its file; without any call, the frame of the function alone."""
        frames = self.evaluator.frames
        assumed = frames.assumed(body)
        if body.function is None or not body.params or body.parent is None or body.parent.function is not None:
            return [assumed]
        name, function, found = body.function.name, Func(body, frames.assumed(body.parent)), list[Frame | None]()
        for other, call in self._calls(body.file).get(name, []):
            if len(found) >= _MOST_CALLS:
                break
            around = self._frames(other, depth - 1) if depth else [frames.assumed(other)]
            found += [frames.entered(function, arguments_of(self.evaluator, frame, call)) for frame in around]
        return [frame for frame in found if frame is not None] or [assumed]

    def _calls(self, file: PythonFile) -> dict[str, list[tuple[Body, Expr]]]:
        """Return the calls of a file, by the names that they call."""
        if file.path not in self._known_calls:
            calls = self._known_calls.setdefault(file.path, {})
            for body in self.bodies.of(file):
                for call in body.scope.calls:
                    calls.setdefault(call.callee, []).append((body, call))
        return self._known_calls[file.path]

    @cached_property
    def _known_calls(self) -> dict[str, dict[str, list[tuple[Body, Expr]]]]:
        return {}

    def _program(self, frame: Frame, call: Expr) -> Program:
        file = frame.body.file
        site = frame.site.call if frame.site is not None and frame.site.frame.body.file is file else call
        name = frame.body.function.name if frame.body.function is not None else _CHIP
        base = file.path.rpartition("/")[0]
        program = Program(self.project, file, "call", name, site.span, base, self.contract)
        program.orchestration = self._orchestration(program, frame, call)
        program.whole = True
        for child in self._children(program, frame, _argument(call, "children")):
            kernel = self._kernel(program, child) if child is not None else None
            if kernel is None or kernel.func_id is None:
                program.whole = False
            if kernel is not None:
                program.kernels.append(kernel)
        return program

    def _orchestration(self, program: Program, frame: Frame, call: Expr) -> OrchestrationPart | None:
        compiled = self._compiled(frame, _argument(call, "binary"), "compile_orchestration")
        function = _text(self.evaluator, BoundArgument(frame, _argument(call, "func_name")))
        if compiled is None or not function:
            return None
        given = _by_name(compiled.expr, "compile_orchestration")
        program.runtime = _text(self.evaluator, BoundArgument(compiled.frame, given.get("runtime_name"))) or ""
        source = self._source(compiled)
        fields: dict[str, tuple[Expr, Expr]] = {
            "source": (call, given["source_path"]),
            "function_name": (call, _folded(_argument(call, "func_name"), function)),
        }
        if "config_name" in call.keywords:
            fields["config_name"] = (call, _argument(call, "config_name"))
        signature = self._signature(frame, call)
        return OrchestrationPart(program, call, fields, source, signature, function, written=False)

    def _kernel(self, program: Program, child: BoundArgument) -> Kernel | None:
        """Return the kernel of a pair of a number and a ``CoreCallable``; None if the pair or its contents are not known."""
        if child.expr is None or child.expr.kind != "tuple" or len(child.expr.items) != 2:
            return None
        number, held = child.expr.items
        cores = self._leaves(child.frame, held)
        core = cores[0] if len(cores) == 1 and cores[0].expr is not None else None
        if core is None or not _is_call_of(core.expr, _CORE) or core.frame.body.file is not program.file:
            return None
        assert core.expr is not None
        found = _constant(self.evaluator, BoundArgument(child.frame, number))
        func_id = found if isinstance(found, int) and not isinstance(found, bool) else None
        compiled = self._compiled(core.frame, _argument(core.expr, "binary"), "compile_incore")
        fields: dict[str, tuple[Expr, Expr]] = {"func_id": (core.expr, _folded(number, func_id))}
        if compiled is not None:
            fields |= self._compiled_fields(core.expr, compiled)
        source = self._source(compiled) if compiled is not None else None
        return Kernel(
            program, core.expr, fields, source, self._signature(core.frame, core.expr), func_id, written=False
        )

    def _compiled_fields(self, call: Expr, compiled: BoundArgument) -> dict[str, tuple[Expr, Expr]]:
        given = _by_name(compiled.expr, "compile_incore")
        core = "aiv" if "core_type" not in given else None
        named = core or _text(self.evaluator, BoundArgument(compiled.frame, given["core_type"]))
        fields = {"source": (call, given["source_path"])} if "source_path" in given else {}
        return {**fields, "core_type": (call, _folded(given.get("core_type", call), named))} if named else fields

    def _source(self, compiled: BoundArgument) -> str | None:
        """Return the workspace path of the source that a call compiles; None if it is not known or does not exist."""
        expr = next((arguments.get("source_path") for arguments in (_by_name(compiled.expr, ""),)), None)
        path = path_of(self.evaluator, compiled.frame, expr) if expr is not None else None
        if path is None or path.startswith("/"):
            return None
        full = posixpath.normpath(posixpath.join(compiled.frame.body.file.path.rpartition("/")[0], path))
        return full if not full.startswith("..") and self.project.workspace.is_file(full) else None

    def _signature(self, frame: Frame, call: Expr) -> Signature | None:
        """Return the signature that a call passes. A named one may be shared, so it cannot be edited."""
        expr = _argument(call, "signature")
        if expr.kind in ("list", "tuple"):
            return self.signatures.of_record(frame.body, Record(call, {"signature": (call, expr)}))
        if expr.kind == "name" and not _is_only_read(frame.body, expr.text):
            return Signature(expr, None, "it may be changed")
        return self.signatures.computed(expr, BoundArgument(frame, expr)) if expr is not call else None

    # -- what names stand for ------------------------------------------------------------------------------------------

    def _children(self, program: Program, frame: Frame, expr: Expr) -> Iterator[BoundArgument | None]:
        """Yield the elements of the list of kernels; None for those that are not known or may be added."""
        listed, named = origin(self.evaluator, frame, expr), expr
        while named.callee in ("list", "tuple") and len(named.items) == 2:
            named = named.items[1]
        while listed.expr is not None and listed.expr.callee in ("list", "tuple") and len(listed.expr.items) == 2:
            listed = origin(self.evaluator, listed.frame, listed.expr.items[1])
        known = listed.expr is not None and listed.expr.kind in ("list", "tuple")
        is_kept = named.kind != "name" or _is_only_read(frame.body, named.text)
        is_changed = named.kind == "name" and _is_changed(program.file.source.text, named.text)
        is_list = listed.expr is not None and listed.expr.kind == "list"
        if not known or is_changed or (is_list and not (is_kept and _is_kept(listed))):
            yield None
        for item in listed.expr.items if listed.expr is not None and known else ():
            found = origin(self.evaluator, listed.frame, item)
            yield found if found.expr is not None and found.frame.body.file is program.file else None

    def _compiled(self, frame: Frame, expr: Expr, name: str) -> BoundArgument | None:
        """Return the call that compiles a binary, if it is the only one."""
        found = [item for item in self._leaves(frame, expr) if item.expr is not None]
        calls = {item.expr.span: item for item in found if item.expr is not None and _is_call_of(item.expr, name)}
        if len(calls) != 1 or any(item.expr is None or item.expr.span not in calls for item in found):
            return None
        (only,) = calls.values()
        return only if "source_path" in _by_name(only.expr, name) else None

    def _leaves(self, frame: Frame, expr: Expr) -> list[BoundArgument]:
        """Return the expressions that an argument may evaluate to, through names, functions of the tree and conditional
        expressions.
        """
        found: list[BoundArgument] = []
        waiting = [BoundArgument(frame, expr)]
        for _ in range(_MOST):
            if not waiting:
                return found
            item = waiting.pop()
            further = self._further(item) if item.expr is not None else None
            if further is None:
                found.append(item)
            else:
                waiting += further
        return []

    def _further(self, item: BoundArgument) -> list[BoundArgument] | None:
        """Return the expressions that an expression refers to; None if it refers to nothing else."""
        frame, expr = item.frame, item.expr
        assert expr is not None
        if expr.kind == "ifexp":
            return [BoundArgument(frame, part) for part in expr.items[1:]]
        if expr.kind == "name" and "." not in expr.text:
            assigned = origins(self.evaluator, frame, expr.text, expr.start)
            if assigned and all(part.index is None for part in assigned):
                return [BoundArgument(part.frame, part.expr) for part in assigned]
            one = origin(self.evaluator, frame, expr)
            return [one] if one.expr is not None and one.expr is not expr else None
        if expr.kind != "call":
            return None
        if expr.callee.rpartition(".")[2] in _SAME and len(expr.items) == 2:
            return [BoundArgument(frame, expr.items[1])]
        return self._returned(frame, expr) if "." not in expr.callee else None

    def _returned(self, frame: Frame, call: Expr) -> list[BoundArgument] | None:
        """Return the results of a call of a function of the tree."""
        values = self.evaluator.evaluate(frame, call.items[0])
        function = values[0] if len(values) == 1 and isinstance(values[0], Func) else None
        if function is None:
            return None
        entered = self.evaluator.frames.entered(function, arguments_of(self.evaluator, frame, call))
        returns = function.body.scope.returns
        return [BoundArgument(entered, part) for part in returns] if entered is not None and returns else None


def _is_call_of(expr: Expr | None, name: str) -> bool:
    return expr is not None and expr.kind == "call" and f".{expr.callee}".endswith(f".{name}")


def _passes(call: Expr, *names: str) -> bool:
    return all(call.keyword(name) is not None for name in names) and "**" not in call.keywords


def _argument(call: Expr, name: str) -> Expr:
    """Return an argument of a call by name; if it is missing, the call itself."""
    found = call.keyword(name)
    return found if found is not None else call


def _by_name(call: Expr | None, method: str) -> dict[str, Expr]:
    """Return the arguments of a compiling call, by parameter name."""
    if call is None:
        return {}
    names = _COMPILES.get(method) or _COMPILES[call.callee.rpartition(".")[2]]
    return {**dict(zip(names, call.positional(), strict=False)), **{word: item for word, item in call.args if word}}


def _constant(evaluator: Evaluator, argument: BoundArgument) -> Constant:
    values = evaluator.values(argument)
    word = constant(values[0]) if len(values) == 1 else None
    return word[0] if word else None


def _text(evaluator: Evaluator, argument: BoundArgument) -> str | None:
    found = _constant(evaluator, argument) if argument.expr is not None else None
    return found if isinstance(found, str) else None


def _folded(expr: Expr, value: Constant) -> Expr:
    """Return a constant at the place of the expression with that value."""
    return Expr("const", expr.start, expr.end, value=value)


def _is_kept(listed: BoundArgument) -> bool:
    """Whether the list made by an expression has no name through which it may be changed."""
    body, expr = listed.frame.body, listed.expr
    assigned = [
        item for item in body.scope.assigns if item.value is not None and expr is not None and item.value == expr
    ]
    return all(_is_only_read(body, item.target) for item in assigned)


def _is_only_read(body: Body, name: str) -> bool:
    """Whether a body uses a variable only once, apart from reading its length or its elements."""
    return _uses(body)[name] <= 1


@cached_on_argument
def _uses(body: Body) -> Counter[str]:
    """The number of uses of each variable in a body through which it may be changed or renamed."""
    text = body.file.source.text
    uses = (use for scope in body.scope.walk() for use in scope.uses)
    return Counter(
        use.name.partition(".")[0]
        for use in uses
        if not text[max(0, use.start - 4) : use.start].endswith(("len(", " in "))
    )


def _is_changed(text: str, name: str) -> bool:
    """Whether a file may change the list of that name."""
    return (
        re.search(rf"\b{re.escape(name)}\s*(?:\.\s*(?:append|extend|insert|remove|pop|clear)\b|\+=|\[)", text)
        is not None
    )
