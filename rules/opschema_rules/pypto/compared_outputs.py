"""Outputs for which a run has a comparison function: ``compare_fn={"y": ...}``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.pypto.model import UnusedComparison
from opschema_rules.pypto.spec_lists import Specs


def unused_comparisons(body: Body, call: Expr, lists: Sequence[Specs]) -> Iterator[UnusedComparison]:
    """Yield the keys of ``compare_fn`` that are not an output of any of the lists, if all their specs are known."""
    compared = call.keyword("compare_fn")
    is_known = all(specs.whole and specs.written is not None for specs in lists)
    if compared is None or compared.kind != "dict" or "**" in call.keywords or not lists or not is_known:
        return
    specs = [item for found in lists for item in found.items]
    outputs = tuple(sorted({item.name for item in specs if item.is_output is not False}))
    for key in compared.items[::2]:
        if isinstance(key.value, str) and key.value.isidentifier() and key.value not in outputs:
            own = next((item for item in specs if item.name == key.value), None)
            yield UnusedComparison(body.at(key), key.value, own.place if own is not None else None, outputs)
