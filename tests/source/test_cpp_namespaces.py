"""Namespaces by braces."""

from __future__ import annotations

import pytest

from opschema_cli.source.cpp_namespaces import Namespaces

TEXT = """\
namespace a { namespace b::c {
HERE1 int f() { if (x) { HERE2 "}" ; '}'; /* } */ } }
#define OPEN }
struct S { HERE3 };
} // }
inline namespace { HERE4 }
HERE5 }
HERE6
"""


@pytest.mark.parametrize(
    ("mark", "around", "declares"),
    [
        ("HERE1", "a::b::c", True),
        ("HERE2", "a::b::c", False),
        ("HERE3", "a::b::c", False),
        ("HERE4", "a", True),
        ("HERE5", "a", True),
        ("HERE6", "", True),
    ],
)
def test_namespaces(mark: str, around: str, declares: bool) -> None:
    found = Namespaces(TEXT)
    assert found.known
    assert (found.at(TEXT.index(mark)), found.declares(TEXT.index(mark))) == (around, declares)


@pytest.mark.parametrize(
    "text",
    ["namespace a {", "}", "{" * 300 + "}" * 300, "#if A\nnamespace a {\n#else\nnamespace b {\n#endif\nint x; }\n"],
)
def test_braces_that_do_not_pair(text: str) -> None:
    found = Namespaces(text)
    assert not found.known
    assert (found.at(len(text)), found.declares(len(text))) == ("", True)
