"""C++ functions that are named but missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli import cpp_missing
from opschema_cli.cpp_definitions import CppDefinitions
from opschema_cli.cpp_missing import FunctionSearch, FunctionUse
from opschema_cli.project import Project
from opschema_cli.source.text import Place, Span
from opschema_cli.workspace import Workspace

FOUND = "int scale() { return 1; }\nint shift() { return 2; }\n"
USES = "USE(scale);\nUSE(shift);\nUSE(kit::three);\n"


def declared(path: str, text: str, name: str) -> Place | None:
    """The place where a file declares a function that returns an integer."""
    at = text.find(f"int {name}(") + len("int ")
    return Place(path, Span(at, at + len(name))) if at >= len("int ") else None


def missing(tmp_path: Path, files: dict[str, str], *, certain: bool = True) -> list[tuple[str, str, int, str | None]]:
    """The names of missing functions, of their declarations, the number of other definitions, and a similar name."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    text = files["uses.cpp"]
    uses = []
    for name in ("scale", "shift", "kit::three", "scal"):
        if f"USE({name})" in text:
            at = text.index(f"USE({name})") + 4
            own = name.rpartition("::")[2]
            place = next((item for item in (declared(path, text, own) for path, text in files.items()) if item), None)
            uses.append(FunctionUse(name, "uses.cpp", Span(at, at + len(name)), place, certain))
    search = FunctionSearch(Project(Workspace(tmp_path)), uses)
    return [
        (item.use.name, item.declared.function.name if item.declared is not None else "", len(item.defined), item.near)
        for item in search.missing()
    ]


LOST_BODY = """struct A final : B {
#if X
  int *get(int at) const override {
#else
  int *get(int at) override {
#endif
    return p;
  }
  int *last() const override {
    return p;
  }
};
int scale() { return 1; }
namespace kit { int three(int x) { return x; } }
int shift() {
  REGISTER(scale)
}
USE(scale);
USE(shift);
USE(kit::three);
"""
"""A function with a macro and no semicolon, which the syntax tree takes for a declaration."""

THREE = "namespace kit { int three(int x); }\n"
HEADER = "namespace kit { int three(int x); int four(); }\n"
INCLUDED = '#include "kit.h"\n' + FOUND + USES

DECLARED = FOUND + "namespace kit { int three(int x); }\n" + USES


UNDECLARED = FOUND + "USE(scale);\nUSE(shift);\nUSE(scal);\n"
SCAL: list[tuple[str, str, int, str | None]] = [("scal", "", 0, "scale")]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"uses.cpp": FOUND + "USE(scale);\nUSE(shift);\nUSE(scal);\n"}, [("scal", "", 0, "scale")]),
        ({"uses.cpp": '#include "gone.h"\n' + UNDECLARED}, []),
        ({"uses.cpp": "#include <other/gone.h>\n" + UNDECLARED}, []),
        ({"uses.cpp": '#include "kit.h"\n' + UNDECLARED, "kit.h": "#include <other/gone.h>\n"}, []),
        ({"uses.cpp": '#include <torch/all.h>\n#include "torch/types.h"\n#include <map>\n' + UNDECLARED}, SCAL),
        ({"uses.cpp": "#include <kit/kit.h>\n" + UNDECLARED, "kit.h": "int other();\n"}, []),
        ({"uses.cpp": "#include <kit.h>\n" + UNDECLARED, "kit.h": "int other();\n"}, SCAL),
        ({"uses.cpp": FOUND + "USE(scale);\nUSE(shift);\nUSE(scal);\nMAKE(scal)\n"}, []),
        ({"uses.cpp": FOUND + "USE(scale);\nUSE(shift);\nUSE(scal);\n// MAKE(scal)\n"}, [("scal", "", 0, "scale")]),
        ({"uses.cpp": "USE(scale);\nUSE(shift);\nUSE(scal);\n"}, []),
        ({"uses.cpp": DECLARED}, [("kit::three", "three", 0, None)]),
        ({"uses.cpp": DECLARED, "three.cpp": "namespace kit { int three(int x) { return x; } }\n"}, []),
        ({"uses.cpp": DECLARED, "three.cpp": "int kit::three(int x) { return x; }\n"}, []),
        (
            {"uses.cpp": DECLARED, "three.cpp": "namespace kit { int three(int64_t x) { return 1; } }\n"},
            [("kit::three", "three", 1, None)],
        ),
        ({"uses.cpp": DECLARED, "three.cpp": "namespace kit { int three(Mine x) { return 1; } }\n"}, []),
        ({"uses.cpp": DECLARED, "three.cpp": "namespace kit { int three(const int32_t x) { return x; } }\n"}, []),
        (
            {"uses.cpp": DECLARED, "three.cpp": "namespace other { int three(int64_t x) { return 1; } }\n"},
            [("kit::three", "three", 0, None)],
        ),
        (
            {
                "uses.cpp": DECLARED,
                "three.cpp": "namespace kit {\n#define D(name) int name(int x) { return x; }\nD(three)\n}\n",
            },
            [],
        ),
        (
            {"uses.cpp": DECLARED, "three.cpp": 'const char* text = R"(D(three))";\n'},
            [("kit::three", "three", 0, None)],
        ),
        ({"uses.cpp": LOST_BODY}, []),
        ({"uses.cpp": DECLARED, "three.cpp.in": "int kit::three(int x) { return x; }\n"}, []),
        ({"uses.cpp": INCLUDED, "kit.h": HEADER}, []),  # another library has both
        ({"uses.cpp": INCLUDED, "kit.h": HEADER, "four.cpp": "namespace other { int four() { return 4; } }\n"}, []),
        (
            {"uses.cpp": INCLUDED, "kit.h": HEADER, "four.cpp": "int kit::four() { return 4; }\n"},
            [("kit::three", "three", 0, None)],
        ),
        ({"uses.cpp": INCLUDED, "kit.h": THREE}, [("kit::three", "three", 0, None)]),
    ],
)
def test_missing_functions(
    tmp_path: Path, files: dict[str, str], found: list[tuple[str, str, int, str | None]]
) -> None:
    assert missing(tmp_path, files) == found
    assert missing(tmp_path, files, certain=False) == []


def test_the_tree_is_searched_once_for_all_folders_of_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[frozenset[str]] = []

    def search(project: Project, names: frozenset[str]) -> CppDefinitions:
        searches.append(names)
        return CppDefinitions(project, names)

    monkeypatch.setattr(cpp_missing, "CppDefinitions", search)
    uses = []
    for number in range(20):
        folder = tmp_path / f"f{number}"
        folder.mkdir()
        header, own = f"int lost{number}(int x);\nint kept{number}();\n", f"kept{number}"
        (folder / "kit.h").write_text(header)
        text = f'#include "kit.h"\nUSE(lost{number});\nUSE({own});\n' + f"int {own}() {{ return 1; }}\n" * (number < 15)
        (folder / "uses.cpp").write_text(text + f"int more{number}() {{ return 1; }}\nUSE(more{number});\n")
        for name in (f"lost{number}", own, f"more{number}"):
            at = text.find(f"USE({name})") + 4
            place = declared(f"f{number}/kit.h", header, name)
            uses.append(FunctionUse(name, f"f{number}/uses.cpp", Span(at, at + len(name)), place))
    found = {item.use.name for item in FunctionSearch(Project(Workspace(tmp_path)), uses).missing()}
    assert found == {f"lost{number}" for number in range(15)}
    assert len(searches) == 2
