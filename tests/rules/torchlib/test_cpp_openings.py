"""Blocks, keys and registrations behind macros, helpers and loops, which only look wrong or are not followed."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

NEG = "static at::Tensor neg(const at::Tensor& self) { return self; }\n"
TWO = NEG + "static at::Tensor other(const at::Tensor& self) { return self; }\n"
BLOCK = "TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)"
HELPER = "template <class F> void reg(torch::Library& m, const char* name, F f) { m.impl(name, f); }\n"

SILENT = {
    "a module of pybind11": 'PYBIND11_MODULE(kit, m) { m.def("neg", &neg); m.def("neg", &neg); }\n',
    "a macro that opens another module": (
        "#define MODULE(name, m) TORCH_LIBRARY(name, lib) {} PYBIND11_MODULE(name, m)\n"
        'MODULE(kit, m) { m.def("neg(Tensr x)", &neg); }\n'
    ),
    "a key that the build chooses": (
        "#ifdef FAST\n#define KEY PrivateUse2\n#else\n#define KEY PrivateUse1\n#endif\n"
        'TORCH_LIBRARY_IMPL(aten, KEY, m) { m.impl("neg", neg); }\n'
    ),
    "a helper under both sides of a condition": (
        f'{HELPER}{BLOCK} {{\n#ifdef FAST\nreg(m, "neg", &neg);\n#else\nreg(m, "neg", &other);\n#endif\n}}\n'
    ),
    "a helper in both branches": (
        f'{HELPER}{BLOCK} {{ if (fast()) {{ reg(m, "neg", &neg); }} else {{ reg(m, "neg", &other); }} }}\n'
    ),
    "a helper in both branches without arguments": (
        'void one(torch::Library& m) { m.impl("neg", &neg); }\nvoid two(torch::Library& m) { m.impl("neg", &other); }\n'
        f"{BLOCK} {{ if (fast()) {{ one(m); }} else {{ two(m); }} }}\n"
    ),
    "a helper that makes the name": (
        'void reg(torch::Library& m, std::string name) { m.impl(("aten::" + name).c_str(), neg); }\n'
        f'{BLOCK} {{ reg(m, "ne"); reg(m, "g"); }}\n'
    ),
    "a loop over names that are computed": (
        f'{BLOCK} {{ for (auto name : {{prefix("n"), std::string("negg")}}) m.impl(name.c_str(), neg); }}\n'
    ),
    "a loop over an array that the build chooses": (
        '#ifdef FAST\nstatic const char* names[] = {"negg"};\n#else\nstatic const char* names[] = {"neg"};\n#endif\n'
        f"{BLOCK} {{ for (auto* name : names) m.impl(name, neg); }}\n"
    ),
    "a loop with a condition": (
        f'{BLOCK} {{ for (auto name : {{"neg", "abs"}}) {{ if (wants(name)) m.impl(name, neg); }} m.impl("neg", neg); }}\n'
    ),
    "a kernel that one of two macros defines": (
        "#ifdef FAST\n#define MAKE(name) at::Tensor name(const at::Tensor& self, int64_t n) { return self; }\n"
        "#else\n#define MAKE(name) at::Tensor name(const at::Tensor& self) { return self; }\n#endif\n"
        f'MAKE(made)\n{BLOCK} {{ m.impl("neg", made); }}\n'
    ),
    "a kernel that a macro defines in a namespace": (
        "#define MAKE(name) at::Tensor name(const at::Tensor& self) { return self; }\n"
        "namespace one { MAKE(made) }\nnamespace two { at::Tensor made(const at::Tensor& self, int64_t n) { return self; } }\n"
        f'{BLOCK} {{ m.impl("neg", one::made); }}\n'
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_no_finding(name: str) -> None:
    found = lint_files(
        PACK, {"kit/ops.cpp": f"#include <torch/library.h>\n{BLOCK} {{}}\n{TWO}{SILENT[name]}"}
    ).diagnostics
    assert [item.message for item in found if item.severity is not Severity.INFO] == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f'{BLOCK} {{ for (auto name : {{"abs", "negg"}}) m.impl(name, neg); }}\n', '"negg"'),
        (
            f'static const char* names[] = {{"negg"}};\n{BLOCK} {{ for (auto* name : names) m.impl(name, neg); }}\n',
            '"negg"',
        ),
        (f'{HELPER}{BLOCK} {{ reg(m, "negg", &neg); }}\n', 'reg(m, "negg", &neg)'),
    ],
)
def test_the_place_of_a_name(text: str, place: str) -> None:
    linted = lint_files(PACK, {"kit/ops.cpp": f"#include <torch/library.h>\n{NEG}{text}"})
    assert [(item.code, linted.text(item.place)) for item in linted.diagnostics] == [("REG504", place)]


def test_a_loop_over_an_array_registers_twice() -> None:
    text = f'{NEG}{BLOCK} {{ for (auto name : {{"neg", "abs"}}) m.impl(name, neg); m.impl("neg", neg); }}\n'
    assert lint_files(PACK, {"kit/ops.cpp": f"#include <torch/library.h>\n{text}"}).codes() == ["REG506"]
