"""Collects cases; each gets a namespace of its own, for which ``NS`` stands in the texts."""

from __future__ import annotations

from itertools import count

from tests.rules.torchlib.oracle import Case, Probe

HEAD = "import torch\nfrom torch import Tensor\nfrom typing import List, Optional, Sequence, Tuple, Union\n\n"


class CaseCollector:
    """Collects cases under names and namespaces of their own."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self._numbers = count()

    def add(self, title: str, body: str, *probes: Probe | str, head: str = HEAD) -> None:
        """A case; a probe given as a text is a real call."""
        namespace = f"t{next(self._numbers)}"
        kept = tuple(Probe("real", item) if isinstance(item, str) else item for item in probes)
        kept = tuple(Probe(item.how, item.call.replace("NS", namespace), item.shape) for item in kept)
        self.cases.append(Case(namespace, title, (head + body).replace("NS", namespace), kept))


def op(
    parameters: str, returns: str = " -> Tensor", body: str = "return x.clone()", *, mutates: str = "()", more: str = ""
) -> str:
    """A custom op ``NS::f`` over a function of these texts."""
    lines = f"def f({parameters}){returns}:\n    {body}\n"
    return f'@torch.library.custom_op("NS::f", mutates_args={mutates}{more})\n{lines}'
