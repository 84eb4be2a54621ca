"""Trees that are a PyTorch themselves, older ones and those of vendors."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

OPS = 'c10::RegisterOperators().op("old::f(Tensor x) -> Tensor", &f)'
DECLARED = 'torch::RegisterOperators a("old::f(Tensor x) -> Tensor", &f);'


@pytest.mark.parametrize(
    "text",
    [
        f"TEST(Kit, calls) {{ auto a = {OPS}; }}\nTEST(Kit, fails) {{ {{ auto a = {OPS}; }} auto b = {OPS}; }}",
        f"void one() {{ {OPS}; }}\nvoid other() {{ static auto a = {OPS}; }}",
        f"void one() {{ {DECLARED} }}\nvoid other() {{ {DECLARED} }}",
    ],
)
def test_registrars_of_functions_end_with_them(text: str) -> None:
    assert lint_files([PACK], {"kit.cpp": text}, ["REG113", "REG506"]).codes() == []


def test_registrars_of_a_namespace_last() -> None:
    text = f"namespace {{\nauto a = {OPS};\nauto b = {OPS};\n}}\n"
    assert lint_files([PACK], {"kit.cpp": text}, ["REG113"]).codes() == ["REG113"]


HEADER = """#define C10_FORALL_BACKEND_COMPONENTS(_, extra) \\
  _(CPU, extra)                                 \\
  _(MLC, extra)

#define C10_FORALL_FUNCTIONALITY_KEYS(_) \\
  _(Dense, )                             \\
  _(Sparse, Sparse)

enum class DispatchKey : uint16_t {
  Undefined = 0,
  AutogradMLC, // a vendor's
  Remarked /* so */,
  Math
};
constexpr DispatchKey kLast = DispatchKey::Math;
"""


@pytest.mark.parametrize(
    ("key", "codes"),
    [
        ("AutogradMLC", []),
        ("Math", []),
        ("Remarked", []),
        ("MLC", []),
        ("SparseMLC", []),
        ("DenseMLC", ["REG507"]),
        ("AutogradMLK", ["REG507"]),
        ("kLast", ["REG507"]),
    ],
)
def test_the_dispatch_keys_of_the_tree(key: str, codes: list[str]) -> None:
    files = {
        "c10/core/DispatchKey.h": HEADER,
        "kit.cpp": f"TORCH_LIBRARY_IMPL(_, {key}, m) {{ m.fallback(torch::CppFunction::makeFallthrough()); }}\n",
    }
    assert lint_files([PACK], files, ["REG507"]).codes() == codes
