"""The fields of a description's dicts: those that the runtime requires, and the values that it accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.suggestions import did_you_mean, near_name, nearest
from opschema_rules.pypto.model import Direction, Kernel, Part, Program

_REQUIRED = ("func_id", "source", "core_type")
_CORES = ("aic", "aiv")
_LISTS = frozenset(("KERNELS", "ORCHESTRATION", "CALLABLE"))
_CASE_METHOD = re.compile(r"(?ms)^([ \t]+)def (?:generate_args|compute_golden)\(self\b.*?(?=^(?!\1[ \t]|[ \t]*$))")
"""A method that prepares a case of a scene test, which the harness calls after the program is loaded."""

_EXPECTS_ERROR = re.compile(r"\b(?:raises|assertRaises\w*)\s*\(")


@rule("PTO121", "description-field")
def description_field(program: Program) -> Iterator[Diagnostic]:
    """A field of a kernel or of the orchestration that is missing, misspelled, or has a value which the runtime does not take.

    A kernel needs a `func_id` (a number from 0), a `source` and a `core_type`, the orchestration a `source` and a
    `function_name`: the loader stops with a `KeyError` without them. A `core_type` other than `aic` and `aiv` is built for the
    wrong core, as the tool chain takes anything but `aiv` for the cube core. A misspelled `signature` counts as none, which is a
    warning. An entry of a signature is `IN`, `OUT`, `INOUT` or `SCALAR` of the runtime's `ArgDirection`, not a string.

    Nothing is reported for a dict that is computed or unpacks another, for a field that statements of the file may set, where code
    of the file uses the list or expects an error, nor in a file that may be for another runtime: one without a kernel that has
    all three fields, and that does not name `ArgDirection`.

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_typ": "aiv", "signature": [D.IN, D.IN, D.OUT]},
    ]
    ```

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "AIV", "signature": [D.IN, D.IN, D.OUTPUT]},
    ]
    ```

    Good:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},
    ]
    ```
    """
    if not _is_checked(program):
        return
    for kernel in (*program.kernels, *program.unnumbered):
        if kernel.written:
            yield from _lacking(kernel, _REQUIRED)
            yield from _of_kernel(kernel)
            yield from _directions(kernel)
    part = program.orchestration
    if part is not None and part.written:
        yield from _lacking(part, ("function_name",))
        yield from _directions(part)


def _is_checked(program: Program) -> bool:
    """Whether a description is known to be one of this runtime that is loaded as written: its file names the enum or a kernel
    has all fields, no test expects an error, and no code of the file uses its lists.
    """
    whole = any(kernel.written and all(name in kernel.fields for name in _REQUIRED) for kernel in program.kernels)
    return (whole or "ArgDirection" in program.file.source.text) and _is_loaded_as_written(program.file)


@cached_on_argument
def _is_loaded_as_written(file: PythonFile) -> bool:
    """Whether no test of a file expects an error, and no code of it uses the lists of descriptions."""
    if _EXPECTS_ERROR.search(file.source.text):
        return False
    uses = (use.name for scope in file.body.walk() for use in scope.uses)
    return all(_LISTS.isdisjoint(name.split(".")) for name in uses)


def _title(part: Part) -> str:
    return part.title if isinstance(part, Kernel) else "the orchestration"


def _ops(part: Part) -> tuple[str, ...]:
    return (part.title,) if isinstance(part, Kernel) else ()


def _lacking(part: Part, required: tuple[str, ...]) -> Iterator[Diagnostic]:
    """Yield findings on required fields that a dict lacks, each at the field that may be a misspelling of it."""
    absent = [name for name in required if name not in part.fields and not _is_set(part.program, name)]
    for name in absent:
        meant = _meant(name, part.fields, required)
        place = part.at(part.fields[meant][0]) if meant else part.place
        hint = f": is `{meant}` a misspelling of it?" if meant else ""
        yield Diagnostic(
            f"{_title(part)} has no `{name}`, and cannot be loaded without it{hint}", place, ops=_ops(part)
        )
    is_set = _is_set(part.program, "signature")
    if "signature" not in part.fields and not is_set and (meant := _meant("signature", part.fields, required)):
        message = f"`{meant}` of {_title(part)} is not read; did you mean `signature`?"
        yield Diagnostic(message, part.at(part.fields[meant][0]), ops=_ops(part), severity=Severity.WARNING)


def _meant(name: str, fields: Mapping[str, tuple[Expr, Expr]], required: tuple[str, ...]) -> str | None:
    others = [
        field
        for field in fields
        if field not in (*required, "signature") and not field.startswith(f"{name}_") and not field.endswith(f"_{name}")
    ]
    return near_name(name, others, 0.8)


def _is_set(program: Program, field: str) -> bool:
    """Whether a statement of the file may set a field of dicts: one that names it other than as a key, or has an unknown key."""
    return _may_set(program.file.source.text, field)


@lru_cache(maxsize=8)
def _may_set(text: str, field: str) -> bool:
    set_ = rf"""["']{field}["'](?!\s*:)|\b{field}\s*=|\[\s*[A-Za-z_][\w.]*\s*\]\s*=(?!=)|\.\s*update\("""
    return re.search(set_, _CASE_METHOD.sub("", text)) is not None


def _of_kernel(kernel: Kernel) -> Iterator[Diagnostic]:
    core = kernel.fields["core_type"][1] if "core_type" in kernel.fields else None
    if (
        core is not None
        and core.kind == "const"
        and core.value not in _CORES
        and not _is_set(kernel.program, "core_type")
    ):
        near = nearest(core.value, _CORES) if isinstance(core.value, str) else None
        hint = did_you_mean(near) or "; it has to be `aic` (the cube core) or `aiv` (a vector core)"
        message = f"`core_type` of {kernel.title} is {kernel.program.file.text(core)}{hint}"
        yield Diagnostic(message, kernel.at(core), ops=_ops(kernel))
    number = kernel.fields["func_id"][1] if "func_id" in kernel.fields else None
    if number is not None and not _may_be_id(number) and not _is_set(kernel.program, "func_id"):
        message = (
            f"`func_id` of {kernel.title} is {kernel.program.file.text(number)}; it has to be a number, not below 0"
        )
        yield Diagnostic(message, kernel.at(number), ops=_ops(kernel))


def _may_be_id(expr: Expr) -> bool:
    is_number = isinstance(expr.value, int) and not isinstance(expr.value, bool)
    return is_number if expr.kind == "const" else not _is_negative(expr)


def _is_negative(expr: Expr) -> bool:
    value = expr.items[0].value if expr.kind == "unary" and expr.text == "-" else None
    return isinstance(value, int) and value > 0


def _directions(part: Part) -> Iterator[Diagnostic]:
    """Yield one finding for all entries of a signature that are not directions."""
    refused = part.signature.refused if part.signature is not None else ()
    if refused:
        text, more = part.program.file.text(refused[0]), len(refused) - 1
        word = re.sub(r"\W", "", text.rpartition(".")[2])
        near = near_name(word.upper(), [item.value for item in Direction], 0.6)
        hint = f"{'' if refused[0].kind == 'name' else 'ArgDirection.'}{near}" if near else None
        subject = f"`{text}`{f' and {more} more' if more else ''} in the signature of {_title(part)}"
        what = "are not directions" if more else "is not a direction"
        advice = did_you_mean(hint) or "; use `IN`, `OUT`, `INOUT` or `SCALAR` of `ArgDirection`"
        yield Diagnostic(f"{subject} {what}{advice}", part.at(refused[0]), ops=_ops(part))
