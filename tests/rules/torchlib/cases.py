"""All modules that the oracle and the linter are to agree on: right ones, and such with one slip each."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.rules.torchlib.behaviours import add_behaviours
from tests.rules.torchlib.case_collector import CaseCollector
from tests.rules.torchlib.definitions import add_definitions
from tests.rules.torchlib.forms import add_forms
from tests.rules.torchlib.oracle import Case, How, Probe
from tests.rules.torchlib.signatures import Parameters, calls, draw, listed, schema_of, sizes, slips


def _function(name: str, parameters: str, body: str, annotated: bool = False) -> str:
    returns = " -> Tensor" if annotated else ""
    return f"def {name}({parameters}){returns}:\n    return {body}\n"


def _probes(items: Parameters, *hows: How, function: str = "f") -> list[Probe]:
    return [Probe(how, call, shape) for call, shape in calls(items, function) for how in hows]


def _custom_op(items: Parameters, options: str = "") -> str:
    made = f"x.new_zeros(({sizes(items, items)}))"
    decorator = f'@torch.library.custom_op("NS::f", mutates_args=(){options})\n'
    return decorator + _function("f", listed(items, True), made, True) + "\n\n"


def _defined(items: Parameters) -> str:
    return f"torch.library.define(\"NS::f\", '{schema_of(items)}')\n\n\n"


def fakes(collector: CaseCollector, rng: random.Random, rounds: int) -> None:
    """Fakes against the operator, registered in each way."""
    ways = ("@f.register_fake\n", '@torch.library.register_fake("NS::f")\n', '@torch.library.register_fake("NS::f")\n')
    for number in range(rounds):
        items = draw(rng, least=number % 3)
        for title, own in slips(rng, items):
            way = rng.randrange(3)
            fake = ways[way] + _function("fake", listed(own), f"x.new_empty(({sizes(items, own)}))")
            body = _custom_op(items)
            call = "f"
            if way == 2:
                made = f"x.new_zeros(({sizes(items, items)}))"
                impl = '@torch.library.impl("NS::f", "cpu")\n' + _function("kernel", listed(items), made)
                body, call = _defined(items) + impl + "\n\n", "torch.ops.NS.f"
            collector.add(f"fake {title}", body + fake, *_probes(items, "real", "fake", function=call))


def kernels(collector: CaseCollector, rng: random.Random, rounds: int) -> None:
    """Kernels against the operator: of another device, of a definition, and the function under a schema of its own."""
    for number in range(rounds):
        items = draw(rng, least=1 + number % 2)
        for title, own in slips(rng, items):
            made = f"x.new_zeros(({sizes(items, own)}))"
            kernel = _function("kernel", listed(own), made)
            way, call = rng.randrange(4), "f"
            if way == 0:
                body = _custom_op(items, ', device_types="cuda"') + '@f.register_kernel("cpu")\n' + kernel
            elif way == 1:
                schema = f", schema='{schema_of(items)}'"
                body = f'@torch.library.custom_op("NS::f", mutates_args=(){schema})\n' + _function(
                    "f", listed(own), made
                )
            elif way == 2:
                body, call = _defined(items) + '@torch.library.impl("NS::f", "cpu")\n' + kernel, "torch.ops.NS.f"
            else:
                library = (
                    'library = torch.library.Library("NS", "FRAGMENT")\n' + f"library.define('f{schema_of(items)}')\n"
                )
                body, call = f'{library}\n\n{kernel}\n\nlibrary.impl("f", kernel, "CPU")\n', "torch.ops.NS.f"
            collector.add(f"kernel {title}", body, *_probes(items, "real", function=call))


def vmaps(collector: CaseCollector, rng: random.Random, rounds: int) -> None:
    """Vmap functions against the operator."""
    for _ in range(rounds):
        items = draw(rng, least=1)
        for title, own in slips(rng, items):
            made = sizes(items, own).replace("x.shape[0]", "x.shape[1]")
            rule = _function("batched", f"info, in_dims, {listed(own)}", f"x.new_zeros((x.shape[0], {made})), 0")
            collector.add(f"vmap {title}", _custom_op(items) + "@f.register_vmap\n" + rule, *_probes(items, "vmap"))


def make() -> Sequence[Case]:
    """All cases, the same each time."""
    collector, rng = CaseCollector(), random.Random(20)
    fakes(collector, rng, 8)
    kernels(collector, rng, 6)
    vmaps(collector, rng, 2)
    add_definitions(collector)
    add_behaviours(collector)
    add_forms(collector)
    return collector.cases
