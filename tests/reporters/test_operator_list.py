"""The table of operators on narrow screens: folders are cut first, then the middle of names."""

from __future__ import annotations

import pytest

from opschema_cli.operators.model import Declaration, Gap, Implementation, Operator, WorkloadRow
from opschema_cli.reporters.operators.listing import write
from opschema_cli.reporters.screen import Screen
from opschema_cli.source.text import Place, Span


def operator(name: str, declared: str, code: str, gaps: int = 0) -> Operator:
    kernel = Implementation("kernel", place=Place(code, Span(0, 0)))
    place = Place(declared, Span(0, 0))
    unresolved = (Gap("fake", "computed"),) * gaps
    return Operator(
        name, Declaration("", place), "kit", "", (), (kernel,), (), (WorkloadRow(),) * 4, unresolved=unresolved
    )


OPERATORS = [
    operator("GroupedAttentionDecodeWithCacheFwdOp", "kit/manifest/attention.yaml", "kit/kernels/attention/decode.py"),
    operator("lib/norm.py:norm", "kit/manifest/normalization_of_groups.yaml", "kit/kernels/norm.py", 2),
]


TABLES = {
    120: """\
kit                                   declared                                   implemented         kernels  rows  gaps
GroupedAttentionDecodeWithCacheFwdOp  kit/manifest/attention.yaml                …/decode.py               1     4
lib/norm.py:norm                      kit/manifest/normalization_of_groups.yaml  …/kernels/norm.py         1     4     2
""",
    80: """\
kit                              declared       implemented  kernels  rows  gaps
GroupedAttentionDeco…CacheFwdOp  …tention.yaml  …/decode.py        1     4
lib/norm.py:norm                 …_groups.yaml  …/norm.py          1     4     2
""",
    60: """\
kit            declared       implemented  kernels  rows  gaps
GroupedA…wdOp  …tention.yaml  …/decode.py        1     4
norm.py:norm   …_groups.yaml  …/norm.py          1     4     2
""",
}


@pytest.mark.parametrize("width", TABLES)
def test_columns_fit_the_screen(width: int) -> None:
    text = write(OPERATORS, lambda path: None, Screen(width), fit=True)
    assert text == TABLES[width] + "\n2 operators, 1 with gaps (--unresolved lists them)\n"
