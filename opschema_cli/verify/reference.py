"""The expected result of a cell: a torch function or a recipe, run in float64, and in float32 for the usual error."""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, Signature

import torch
from torch import Tensor

from opschema_cli.verify.binding import UnboundError, bind_function, for_call, takes
from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.inputs import make_inputs, place
from opschema_cli.verify.kernels import other_kernel
from opschema_cli.verify.loading import RefusedError, described
from opschema_cli.verify.marks import marked
from opschema_cli.verify.model import Call, Cell, Ran
from opschema_cli.verify.params import listed, typed
from opschema_cli.verify.precision import full_precision
from opschema_cli.verify.protocol import Load, Run
from opschema_cli.verify.recipes import Recipe, has
from opschema_cli.verify.registered import import_operator
from opschema_cli.verify.results_file import OWN, named, save

Op = Callable[..., object]

_SHORT = (torch.float16, torch.bfloat16)


class Reference:
    """The reference of one op. Results are ``ref64:NAME``, ``ref32:NAME`` and, of 16-bit inputs and outputs, ``ref16:NAME``;
    NAME is an output or ``input:`` and a mutated one.
    """

    def __init__(self, load: Load, recipe: Recipe) -> None:
        self._load = load
        self._recipe = recipe
        self._function = torch_function(load.reference) if load.reference else None
        self._kernel: Op | None = None

    def run(self, request: Run) -> Ran:
        """Compute and save the reference of a cell.

        Raises:
            RefusedError: there is none, or it does not fit the call.
            Exception: whatever it raises in float64.
        """
        cell = request.cell
        if reason := self._recipe.skip(cell):
            raise RefusedError(reason)
        started = time.monotonic()
        drawn = place(drawn_inputs(cell, self._recipe), request.device)
        if self._kernel is None and self._function is None and not has(self._recipe, "reference"):
            self._kernel = self._other_kernel(request.device)
        tensors = self._compute(cell, drawn, torch.float64)
        tensors |= self._usual(cell, drawn, torch.float32)
        if any(tensor.dtype in _SHORT for tensor in drawn.values()):
            tensors |= self._usual(cell, drawn, None)
        tensors |= self._marks(cell, drawn, tensors)
        seconds = {"call": time.monotonic() - started}
        file = save(tensors, request.folder, cell.id)
        return Ran(cell=cell.id, status="ok", file=file, seconds=seconds, tolerance=self._recipe.tolerance)

    def _marks(self, cell: Cell, drawn: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The masks of elements with rules of their own."""
        exact = _named_after("ref64:", tensors)

        def compute(inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
            return _named_after("ref64:", self._usual(cell, inputs, torch.float64))

        return marked(cell, drawn, exact, compute)

    def blames_op(self, error: BaseException) -> bool:
        """Return True: an exception of a reference is not a failure of the harness. It means that there is no reference."""
        return True

    def _other_kernel(self, device: str) -> Op | None:
        """Return another kernel of the operator or a decomposition of it, or None if the op is not an operator.

        Raises:
            RefusedError: there is none.
            Exception: whatever importing the operator raises.
        """
        if not self._load.target.operator:
            return None
        return other_kernel(import_operator(self._load.target), device)

    def _usual(self, cell: Cell, drawn: Mapping[str, Tensor], wide: torch.dtype | None) -> dict[str, Tensor]:
        """Compute the same in float32, or without ``wide`` in the inputs' own dtypes. Return nothing if the reference cannot do
        that.
        """
        try:
            return self._compute(cell, drawn, wide)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            if out_of_memory(error):
                raise
            print(f"no reference in {wide or 'the own dtypes'}: {described(error, self._load.target.root)}")
            return {}

    def _compute(self, cell: Cell, drawn: Mapping[str, Tensor], wide: torch.dtype | None) -> dict[str, Tensor]:
        full_precision()
        inputs = {name: promoted(tensor, wide) if wide else tensor.clone() for name, tensor in drawn.items()}
        versions = {name: tensor._version for name, tensor in inputs.items()}
        params = typed(cell.call.params, cell.call.tuples)
        with torch.no_grad(), _default_dtype(wide or torch.float32):
            found = named(self._call(inputs, params, cell.call), cell.call)
        mutated = {spec.name for spec in cell.call.inputs if spec.mutated}
        changed = {name for name in mutated & inputs.keys() if inputs[name]._version != versions[name]}
        found |= {f"input:{name}": inputs[name] for name in changed}
        if wide is None:
            short = {f"ref16:{name}": tensor for name, tensor in found.items() if tensor.dtype in _SHORT}
            own = {OWN + name: tensor for name, tensor in found.items()} if self._kernel is not None else {}
            return {**short, **own}
        key = "ref64" if wide is torch.float64 else "ref32"
        return {f"{key}:{name}": promoted(tensor, wide) for name, tensor in found.items()}

    def _call(self, inputs: dict[str, Tensor], params: dict[str, object], call: Call) -> object:
        if has(self._recipe, "reference"):
            return self._recipe.reference(inputs, params)
        if self._kernel is not None:
            arguments = for_call(inspect.signature(self._kernel), inputs=listed(inputs, call.lists), params=params)
            return self._kernel(*arguments.args, **arguments.kwargs)
        if self._function is None:
            raise RefusedError("there is no reference: the declaration names none, and no recipe gives one")
        # The reference computes in the precision of its inputs.
        optional = typed(call.defaults, call.tuples) | {
            name: params.pop(name) for name in call.static_dims if name in params
        }
        params = {name: value for name, value in params.items() if name != "dtype"}
        reasons: list[str] = []
        for signature in signatures(self._function):
            assumed = {name: value for name, value in optional.items() if takes(signature, name) and name != "dtype"}
            try:
                arguments = bind_function(signature, inputs=inputs, params={**assumed, **params})
            except UnboundError as error:
                reasons.append(str(error))
            else:
                return self._function(*arguments.args, **arguments.kwargs)
        raise RefusedError(f"{self._load.reference}: {reasons[0] if reasons else 'its parameters are not known'}")


def _named_after(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@contextmanager
def _default_dtype(wide: torch.dtype) -> Iterator[None]:
    """Give tensors that a reference creates the same precision."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(wide)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def drawn_inputs(cell: Cell, recipe: Recipe) -> dict[str, Tensor]:
    """The inputs of a cell on the CPU, as the recipe wants them.

    Raises:
        RefusedError: they cannot be drawn.
    """
    try:
        drawn = make_inputs(cell)
    except ValueError as error:
        raise RefusedError(str(error)) from error
    return recipe.inputs(cell, drawn)


def promoted(tensor: Tensor, wide: torch.dtype) -> Tensor:
    """Return a copy in ``wide`` of a floating-point tensor, except that float64 stays. Return other tensors unchanged."""
    narrow = tensor.is_floating_point() and tensor.dtype is not torch.float64
    return tensor.to(wide if narrow else tensor.dtype, copy=True)


def torch_function(name: str) -> Callable[..., object]:
    """The function of torch with this dotted name.

    Raises:
        RefusedError: there is none.
    """
    parts = name.split(".")
    if parts[0] != "torch":
        raise RefusedError(f"the reference `{name}` is not a function of torch")
    found: object = torch
    for depth, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:depth]))
            except ImportError:
                break
        found = getattr(found, part, None)
    if not callable(found):
        raise RefusedError(f"torch {torch.__version__} has no `{name}`")
    return found


def signatures(function: Callable[..., object]) -> Iterator[Signature]:
    """The signatures of a function: Python's own, else the schemas of the aten operator with its name."""
    try:
        yield inspect.signature(function)
    except (TypeError, ValueError):
        packet = getattr(torch.ops.aten, getattr(function, "__name__", ""), None)
        for name in packet.overloads() if packet is not None else ():
            schema = getattr(packet, name)._schema
            if not any(argument.is_out for argument in schema.arguments):
                yield _signature(schema)


def _signature(schema: torch.FunctionSchema) -> Signature:
    """A schema as torch's Python functions spell it: ``self`` is ``input``."""
    parameters = [
        Parameter(
            "input" if argument.name == "self" else argument.name,
            Parameter.KEYWORD_ONLY if argument.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default_value if argument.has_default_value() else Parameter.empty,
        )
        for argument in schema.arguments
    ]
    return Signature(sorted(parameters, key=lambda parameter: parameter.kind))
