"""Macros of torch that apply a macro to each of some types, and macros that hold for a part of a file."""

from __future__ import annotations

import importlib.metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.torch_macros import read
from opschema_cli.requirements import read_version
from opschema_rules.torchlib.type_lists import type_lists
from tests.rules.torchlib.operators_of import tree_of


def test_the_table_has_the_lists_of_the_installed_torch() -> None:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    version = read_version(importlib.metadata.version("torch"))
    assert version is not None
    assert type_lists(version) == read(Path(spec.origin).with_name("include"))


@pytest.mark.parametrize(
    ("release", "listed"),
    [("2.4", ()), ("2.5", ()), ("2.6", ("Int1",)), ("2.8", ("Int1", "Float4_e2m1fn_x2"))]
    + [(release, ("Int1", "Float4_e2m1fn_x2", "BComplex32")) for release in ("2.14", "2.15", "3.0")],
)
def test_the_lists_of_a_release(release: str, listed: tuple[str, ...]) -> None:
    text = f"#include <torch/library.h>\n{TO}{block('AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(TO)')}\n"
    tree = tree_of({"ops.cpp": text, "requirements.txt": f"torch=={release}.0\n"})
    found = {name.removeprefix("kit::to_") for item in tree.operators for name in item.names or ()}
    assert "Long" in found
    assert found & {"Int1", "Float4_e2m1fn_x2", "BComplex32"} == set(listed)


def test_a_list_that_a_release_lacks_is_not_understood() -> None:
    text = f"#include <torch/library.h>\n{TO}{block('AT_FORALL_FLOAT8_TYPES(TO)')}\n"
    assert tree_of({"ops.cpp": text, "requirements.txt": "torch==2.7.0\n"}).operators
    old = tree_of({"ops.cpp": text, "requirements.txt": "torch==2.6.0\n"})
    assert not old.operators
    assert len(old.unresolved) == 1


def names(text: str) -> list[str]:
    tree = tree_of({"ops.cpp": f"#include <torch/library.h>\n{text}\n"})
    assert not tree.unresolved
    return sorted(name.removeprefix("kit::") for item in tree.operators for name in item.names or ())


def block(text: str) -> str:
    return f"TORCH_LIBRARY(kit, m) {{\n{text}\n}}"


TO = '#define TO(T, N) m.def("to_" #N "(Tensor x) -> Tensor");\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TO + block("AT_FORALL_COMPLEX_TYPES(TO)"), "to_ComplexDouble to_ComplexFloat"),
        (TO + block("  AT_FORALL_INT_TYPES(TO);"), "to_Byte to_Char to_Int to_Long to_Short"),
        (
            block('#define _(T, n) m.def("fill_" #n "(Tensor(a!) x) -> ()");\nAT_FORALL_SCALAR_TYPES_AND2(Half, BFloat16, _)\n'
                  "#undef _"),
            "fill_BFloat16 fill_Byte fill_Char fill_Double fill_Float fill_Half fill_Int fill_Long fill_Short",
        ),
        (
            '#define BLOCK(T, N) TORCH_LIBRARY_FRAGMENT(kit, m) { m.def("as_" #N "(Tensor x) -> Tensor"); }\n'
            "AT_FORALL_COMPLEX_TYPES(BLOCK)",
            "as_ComplexDouble as_ComplexFloat",
        ),
        (
            "#define ALL(_) _(sum) _(mean)\n"
            + block('#define _(n) m.def(#n "(Tensor x) -> Tensor");\nALL(_)\n#undef _\n'
                    '#define _(n) m.def(#n "_all(Tensor x) -> Tensor");\nALL(_)\n#undef _'),
            "mean mean_all sum sum_all",
        ),
        (block('#define TRACE(x)\nTRACE(begin);\nm.def("f(Tensor x) -> Tensor");'), "f"),
        ("TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {\n#define FP32(...) m.impl(\"x\", &f);\nAT_FORALL_FP32(FP32)\n}", ""),
    ],
    ids=["types", "semicolon", "parameter", "blocks", "undefined", "empty", "operators"],
)  # fmt: skip
def test_what_a_list_defines(text: str, expected: str) -> None:
    assert " ".join(names(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        block('#ifdef A\n#define _(n) m.def(#n "(Tensor x) -> Tensor");\n#else\n#define _(n) m.def(#n "(Tensor y) -> Tensor");\n'
              "#endif\n_(sum)"),
        block('#define _(n) m.def(#n "(Tensor x) -> Tensor");\n#ifdef A\n#undef _\n#define _(n) m.def(#n "_(Tensor x) -> ()");\n'
              "#endif\n_(sum)"),
        block("AT_FORALL_MY_TYPES(TO)"),
        TO + block("AT_FORALL_INT_TYPES(TO, TO)"),
    ],
    ids=["alternatives", "redefined", "another", "count"],
)  # fmt: skip
def test_what_is_not_known(text: str) -> None:
    tree = tree_of({"ops.cpp": f"#include <torch/library.h>\n{text}\n"})
    assert not tree.operators
    assert len(tree.unresolved) == 1


OWN = """
#define QUIET_TORCH_LIBRARY_IMPL(ns, k, m) QUIET_IMPL(ns, k, m, C10_UID)
#define QUIET_IMPL(ns, k, m, uid) \\
  static void C10_CONCATENATE(TORCH_LIBRARY_IMPL_init_##ns##_##k##_, uid)(torch::Library&); \\
  static const torch::detail::TorchLibraryInit C10_CONCATENATE(TORCH_LIBRARY_IMPL_static_init_##ns##_##k##_, uid)( \\
      torch::Library::IMPL, &C10_CONCATENATE(TORCH_LIBRARY_IMPL_init_##ns##_##k##_, uid), #ns, \\
      std::make_optional(c10::DispatchKey::k), __FILE__, __LINE__); \\
  void C10_CONCATENATE(TORCH_LIBRARY_IMPL_init_##ns##_##k##_, uid)(torch::Library & m)
"""


def test_a_macro_that_makes_a_library_as_torch_does() -> None:
    text = (
        block('m.def("scale(Tensor x) -> Tensor");')
        + '\nQUIET_TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("scale", &f); }'
    )
    tree = tree_of({"quiet.h": OWN, "ops.cpp": f'#include "quiet.h"\n{text}\n'})
    assert not tree.unresolved
    assert [item.keys for operator in tree.operators for item in operator.registrations] == [frozenset({"CUDA"})]


def test_a_helper_that_is_given_the_name() -> None:
    macro = '#define ADD(NAME, F) kit::infer_and_define("kit::" NAME, F, m); m.impl("kit::" NAME, F);\n'
    text = block('m.def("scale(Tensor x) -> Tensor");\nm.def("shift(Tensor x) -> Tensor");\nADD("shift", &f);')
    tree = tree_of({"ops.cpp": f"#include <torch/library.h>\n{macro}{text}\n"})
    known = {name: item.complete for item in tree.operators for name in item.names or ()}
    assert known == {"kit::scale": True, "kit::shift": False}
    assert len(tree.unresolved) == 1


def test_a_helper_of_the_tree_that_is_given_the_name_does_not_touch_python() -> None:
    helper = (
        "namespace kit {\ntemplate <typename F> void infer_and_define(const char* name, F&& f, torch::Library& m) {\n"
        "  auto s = infer(name, f);\n  if (unknown(s)) { m.def(std::move(s)); }\n}\n}\n"
        '#define ADD(NAME, F) kit::infer_and_define("kit::" NAME, F, m); m.impl("kit::" NAME, F);\n'
    )
    uses = block('m.def("scale(Tensor x) -> Tensor");\nADD("shift", &f);')
    python = "import torch\n\ntorch.library.define('kit::turn', '(Tensor x) -> Tensor')\n"
    files = {"setup.py": "", "kit.h": helper, "ops.cpp": f'#include "kit.h"\n{uses}\n', "kit/ops.py": python}
    tree = tree_of(files)
    assert all(item.complete for item in tree.operators)
    assert [reason for _, reason in tree.unresolved] == ["`kit::infer_and_define` is not understood here"]
