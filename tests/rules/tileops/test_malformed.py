"""No malformed entry takes a rule down: every part of one entry, replaced by every kind of value that does not belong there."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator

import pytest

from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_compose import compose
from opschema_cli.testing import lint_files
from opschema_rules.tileops.examples import MANIFEST_PATH, OP_PATH, example_files
from opschema_rules.tileops.pack import PACK

PARTS = """\
signature:
  inputs:
    x: {dtype: "float16 | float32", shape: "[M, K]", constraints: {K: even}, layout: channels_last}
    w: {dtype: "same_as(x)", shape: [M, 4], optional: true, mutated: true}
  outputs:
    y: {dtype: "promote_int_to_float(x)", shape: "[M, K]"}
  params:
    eps: {type: "float | None", default: 0.5, kw_only: true}
    dims: {type: "list[int]", default: [1, 2]}
  static_dims: {N: "x.shape[-1]"}
  shape_rules:
    - "y.shape == x.shape"
  dtype_combos:
    - {x: float16, y: float32}
torch_compile_fullgraph: true
variant_of: OtherFwdOp
"""

ENTRY = textwrap.dedent(example_files([("yaml", PARTS)])[MANIFEST_PATH].partition("\n")[2])

VALUES = (
    *(
        "[]",
        "{}",
        "null",
        "3",
        "-1",
        "1e400",
        "x",
        "''",
        "'  '",
        "true",
        "no",
        "2026-01-01",
        "'|'",
        "'same_as('",
        "'[M'",
    ),
    *(
        "[null]",
        "[[1]]",
        "{1: 2}",
        "{? [a] : b}",
        "{<<: {a: b}}",
        "{x: {x: {x: {x: x}}}}",
        "!!python/object:os.system x",
    ),
    *("9" * 40, '"\\u00e9\\n\\u2028"', "*whole"),
)


SHARE = 1 if os.environ.get("OPSCHEMA_SLOW") else 5
"""Each value stands in every fifth place, and all of them in each, unless ``OPSCHEMA_SLOW`` asks for all pairs."""


def nodes(root: Node | None) -> Iterator[Node]:
    waiting = [root] if root is not None else []
    for node in waiting:
        waiting += node.items
        if node.end > node.start:
            yield node


def entries(value: str) -> Iterator[str]:
    """The entry once for each of its nodes, with ``value`` in that node's place."""
    for number, node in enumerate(nodes(compose(ENTRY).root)):
        if (number + VALUES.index(value)) % SHARE:
            continue
        body = ENTRY[: node.start] + value + ENTRY[node.end :]
        try:
            compose(f"W: &whole 1\n{body}")
        except ValueError:
            continue  # a key that cannot be one
        yield f"A{number}FwdOp:\n{textwrap.indent(body, '  ')}"


@pytest.mark.parametrize("value", VALUES)
def test_no_rule_fails(value: str) -> None:
    files = example_files([])
    text = "".join([files[MANIFEST_PATH].replace("ExampleFwdOp:", "ExampleFwdOp: &whole"), *entries(value)])
    root = compose(text).root
    names = [key.value for key in root.items[::2]] if root is not None else []
    classes = "".join(f"\n\nclass {name}(ExampleFwdOp):\n    pass\n" for name in names[1:])
    linted = lint_files([PACK], {**files, MANIFEST_PATH: text, OP_PATH: files[OP_PATH] + classes})
    assert [item.message for item in linted.diagnostics if item.code == "OPS900"] == []
    assert len(linted.diagnostics) > 100 // SHARE
