"""Look-ups of operators in C++, REG512."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = """#include <torch/library.h>

at::Tensor scale(const at::Tensor& x, double factor, std::optional<int64_t> n) { return x; }
void rows_(std::vector<at::Tensor> x);

TORCH_LIBRARY(kit, m) {
  m.def("scale(Tensor x, float factor, int? n=None) -> Tensor", &scale);
  m.def("rows_(Tensor(a!)[] x) -> ()", &rows_);
  m.def("sizes(Tensor x, SymInt[] sizes) -> (Tensor, Tensor)");
}

"""


def found(name: str, written: str = "", overload: str = "", more: str = "") -> list[str]:
    typed = f".typed<{written}>()" if written else ""
    call = f'auto op = c10::Dispatcher::singleton()\n  .findSchemaOrThrow("{name}", "{overload}")\n  {typed};\n'
    linted = lint_files([PACK], {"kit.cpp": f"{HEAD}{more}\nvoid run() {{\n  {call}}}\n"}, ["REG512"])
    return [item.message for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("name", "written", "words"),
    [
        ("kit::scale", "at::Tensor(const at::Tensor&, double)", "takes 2 arguments, the schema of `kit::scale` has 3"),
        ("kit::scale", "at::Tensor(const at::Tensor&, int64_t, std::optional<int64_t>)", "takes `int64_t` where"),
        ("kit::scale", "void(const at::Tensor& x, double factor, std::optional<int64_t> n)", "returns nothing"),
        ("kit::sizes", "at::Tensor(const at::Tensor&, c10::SymIntArrayRef)", "returns one value|returns 1 value"),
        ("kit::rows_", "void(at::TensorList /* x */, bool)", "takes 2 arguments"),
    ],
)
def test_types_that_are_not_the_operators(name: str, written: str, words: str) -> None:
    (message,) = found(name, written)
    assert any(one in message for one in words.split("|"))
    assert message.startswith("`typed<>` ")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("kit::scale", "at::Tensor(const at::Tensor&, double, std::optional<int64_t>)"),
        ("kit::scale", "at::Tensor(const at::Tensor& x,\n double factor, // of it\n std::optional<int64_t>)"),
        ("kit::scale", "at::Tensor(const at::Tensor&, double\n#ifdef NEW\n, std::optional<int64_t>\n#endif\n)"),
        ("kit::scale", "\n#ifdef OLD\nvoid(bool)\n#else\nSignature\n#endif\n"),
        ("kit::scale", "decltype(scale)"),
        ("kit::scale", "Signature"),
        ("kit::scale", "at::Tensor(PARAMETERS)"),
        ("kit::scale", "at::Tensor(Args...)"),
        ("kit::scale", "Result(Mine, double, Other)"),
        ("kit::scale", ""),
        ("kit::sizes", "std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, at::IntArrayRef)"),
        ("kit::sizes", "std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, c10::SymIntArrayRef)"),
        ("kit::rows_", "void(at::TensorList)"),
    ],
)
def test_types_that_may_be(name: str, written: str) -> None:
    assert found(name, written) == []


@pytest.mark.parametrize(
    ("name", "overload", "count"),
    [
        ("kit::scael", "", 1),
        ("kit::scale", "out", 1),
        ("kit::scale", "", 0),
        ("kit::rotate", "", 0),
        ("kits::scale", "", 0),
        ("aten::scale", "", 0),
    ],
)
def test_names(name: str, overload: str, count: int) -> None:
    assert len(found(name, overload=overload)) == count


def test_overloads_of_the_tree() -> None:
    more = 'TORCH_LIBRARY_FRAGMENT(kit, m) { m.def("scale.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"); }'
    assert found("kit::scale", "at::Tensor&(const at::Tensor&, at::Tensor&)", "out", more) == []
    assert len(found("kit::scale", "at::Tensor&(const at::Tensor&)", "out", more)) == 1
    assert len(found("kit::scale", overload="outt", more=more)) == 1


@pytest.mark.parametrize("schema", ['"scale(Tensor x) -> Tensor"', "given()"])
def test_one_of_several_definitions(schema: str) -> None:
    more = f"#ifdef OTHER\nTORCH_LIBRARY_FRAGMENT(kit, m) {{ m.def({schema}); }}\n#endif"
    typed = "at::Tensor(const at::Tensor&)"
    assert len(found("kit::scale", typed, more=more)) == (schema == "given()")
    assert len(found("kit::scale", overload="out", more=more)) == (schema != "given()")


def test_comments_are_not_read() -> None:
    files = {"kit.cpp": HEAD + '// .findSchemaOrThrow("kit::scael", "")\n/* .findSchemaOrThrow("kit::scael", "") */\n'}
    assert lint_files([PACK], files, ["REG512"]).codes() == []


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("#define FIND ", "\n"),
        ("#define FIND \\\n  ", "\n"),
        ('#define FIND f("a", ", b"), ', "\n"),
        ("#define FIND do { \\\n  ", " } while (0)\n"),
        ('const char* text = R"code(\n', ')code";\n'),
        ("#ifndef OLD\nvoid a();\n#else\n", "#endif\n"),
        ("#ifdef NEW\nvoid a();\n#elif defined(OLD)\n", "#endif\n"),
        ("#if 0\n", "#endif\n"),
        ("#ifdef OLD\n", "#endif\n"),
        ("bool has() {\n  try {\n", "  } catch (const c10::Error&) { return false; }\n}\n"),
        ("TEST(A, B) {\n  EXPECT_ANY_THROW(\n", ");\n}\n"),
    ],
)
def test_look_ups_that_may_fail(before: str, behind: str) -> None:
    call = 'c10::Dispatcher::singleton().findSchemaOrThrow("kit::scales", "")'
    for text, count in ((f"{before}{call};\n{behind}", 0), (f"void run() {{\n  {call};\n}}\n", 1)):
        assert len(lint_files([PACK], {"kit.cpp": HEAD + text}, ["REG512"]).diagnostics) == count
