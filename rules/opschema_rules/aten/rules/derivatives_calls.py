"""Calls of operators in formulas of derivatives.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import joined
from opschema_cli.suggestions import nearest
from opschema_rules.aten.derivatives import Block, Formula, blocks_of
from opschema_rules.aten.findings import found
from opschema_rules.aten.formula_calls import Call, Takes, callables_of, calls_in
from opschema_rules.aten.model import DerivativesFile
from opschema_rules.aten.native import WHOLE

_MEMBERS = frozenset(
    {"backward", "requires_grad", "size", "stride", "value"}
    | {f"sym_{name}" for name in ("is_contiguous", "numel", "size", "storage_offset", "stride")}
)
"""Methods of tensors that are no methods of operators, and are called like one, or almost so."""

_BUILTIN = frozenset({"not_implemented", "wrap_opt_if"})
"""Functions of formulas that torchgen, or the file around them, knows."""


@rule("ATN436", "derivative-unknown-function", severity="warning", pure=True)
def derivative_unknown_function(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula calls an unknown function named like an operator, or calls an operator as a method that does not exist.

    Functions of the namespace `at`, and methods of the operator's tensors and of gradients are compared with PyTorch's
    operators and their `variants`; other functions may be helpers in C++, except those called almost like
    `not_implemented`. Nothing is reported unless the whole native_functions.yaml is known.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: 'not_implement("square")'
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: 'not_implemented("square")'
    ```
    """
    native = derivatives.native
    whole = native is not None and len(native.entries) > WHOLE
    known = callables_of(native) if native is not None and whole else {}
    functions = frozenset(name for name, takes in known.items() if takes.functions)
    methods = frozenset(name for name, takes in known.items() if takes.methods)
    fits: set[tuple[frozenset[str], str]] = set()
    for block, formula, call in _calls(derivatives):
        names = _BUILTIN
        if call.holder:
            names = functions if call.holder == "at" else methods if call.holder in _tensors(block) else _NONE
        if not names or call.name in names or call.name in _MEMBERS or (names, call.name) in fits:
            continue
        takes = known.get(call.name)
        if takes is not None and call.holder:
            kind, instead = (
                ("function", f"x.{call.name}(...)") if call.holder == "at" else ("method", f"at::{call.name}(...)")
            )
            yield _at(formula, call, f"`{call.name}` has no variant `{kind}`; write `{instead}`", takes)
            continue
        near = nearest(call.name, names, 0.86) if takes is None else None
        if near is None:
            fits.add((names, call.name))
        else:
            yield _at(formula, call, f"there is no `{_written(call)}`; did you mean `{near}`?")


_NONE: frozenset[str] = frozenset()


@rule("ATN437", "derivative-call-arguments", severity="warning", pure=True)
def derivative_call_arguments(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula calls an operator with too few or too many arguments.

    The numbers are those of all overloads of the operator, as a function, or as a method of one of the operator's tensors
    or of a gradient. A helper function in C++ with an operator's name takes precedence, which YAML does not show.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_backward(Tensor grad_output, Tensor output) -> Tensor
      dispatch:
        CPU: tanh_backward
    ```

    ```yaml derivatives.yaml
    - name: tanh(Tensor self) -> Tensor
      self: tanh_backward(grad, result, self)
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_backward(Tensor grad_output, Tensor output) -> Tensor
      dispatch:
        CPU: tanh_backward
    ```

    ```yaml derivatives.yaml
    - name: tanh(Tensor self) -> Tensor
      self: tanh_backward(grad, result)
    ```
    """
    native = derivatives.native
    for block, formula, call in _calls(derivatives) if native is not None else ():
        assert native is not None
        takes = callables_of(native).get(call.name)
        if takes is None or call.count is None:
            continue
        method = call.holder not in ("", "at")
        numbers = takes.methods if method and call.holder in _tensors(block) else [] if method else takes.functions
        if numbers and not any(call.count in item for item in numbers):
            message = f"`{_written(call)}` takes {_told(numbers)}, and {call.count} {'is' if call.count == 1 else 'are'} passed"
            yield _at(formula, call, message, takes)


def _calls(derivatives: DerivativesFile) -> Iterator[tuple[Block, Formula, Call]]:
    for block in blocks_of(derivatives):
        for formula in (*block.backward, *block.forward) if block.sound else ():
            for call in calls_in(formula.text):
                yield block, formula, call


@cached_on_argument
def _tensors(block: Block) -> frozenset[str]:
    """The names of tensors in formulas: arguments, their values and tangents, outputs, and the gradient."""
    definition = block.definition
    names = [name for name, item in definition.arguments.items() if str(item.type) == "Tensor"]
    outputs = [name for name, item in definition.outputs if str(item.type) == "Tensor"]
    return frozenset(["grad", *outputs, *(f"{name}{suffix}" for name in names for suffix in ("", "_p", "_t"))])


def _at(formula: Formula, call: Call, message: str, takes: Takes | None = None) -> Diagnostic:
    related = [takes.entry.related(takes.entry.place.span, "the operator")] if takes is not None else []
    return found(formula.entry, formula.span(call.start, call.start + len(call.name)), message, *related)


def _written(call: Call) -> str:
    return f"at::{call.name}" if call.holder == "at" else f"{call.holder}.{call.name}" if call.holder else call.name


def _told(numbers: list[range]) -> str:
    """``1, or 3 to 4 arguments``."""
    spans = dict.fromkeys(str(item[0]) if len(item) == 1 else f"{item[0]} to {item[-1]}" for item in numbers)
    return f"{joined(list(spans), 'or')} argument{'s' * (list(spans) != ['1'])}"
