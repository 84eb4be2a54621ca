"""Code written by hand for the nodes of a lazy tensor backend, as in pytorch/xla."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.aten.lazy_nodes import node_name
from opschema_rules.aten.pack import PACK

HEAD = "backend: XLA\ncpp_namespace: torch_xla\n"


def lower(*nodes: str) -> str:
    return "".join(
        f"XlaOpVector {node}::Lower(LoweringContext* loctx) const {{ return f(g(), 1); }}\n" for node in nodes
    )


def shape(*nodes: str) -> str:
    return "".join(f"xla::Shape {node}OutputShape(const torch::lazy::Value& x) {{\n  return x;\n}}\n" for node in nodes)


def lint(lists: str, cpp: str) -> Linted:
    return lint_files([PACK], {"xla.yaml": HEAD + lists, "ops_lower_fn.cpp": cpp}, ["ATN632"])


def messages(lists: str, cpp: str) -> list[str]:
    return [item.message for item in lint(lists, cpp).diagnostics]


LISTED = "full_codegen: [acos, abs, eq.Scalar]\nir_gen: [_log_softmax]\n"
NODES = ("Acos", "Abs", "EqScalar", "LogSoftmax")


def test_the_names_of_nodes_are_torchgens() -> None:
    names = ["acos", "eq.Scalar", "_adaptive_avg_pool2d_backward", "__lshift__.Tensor", "clamp.Tensor_minmax"]
    assert [node_name(name) for name in names] == [
        "Acos",
        "EqScalar",
        "AdaptiveAvgPool2dBackward",
        "LshiftTensor",
        "ClampTensorMinmax",
    ]


def test_a_missing_function_and_the_one_that_is_meant() -> None:
    text = lower("Acoss", *NODES[1:]) + shape(*NODES)
    assert messages(LISTED, text) == [
        "`acos` is under `full_codegen`, and the C++ defines no `Acos::Lower`, which its node needs; did you mean"
        " `Acoss::Lower`?"
    ]
    assert [lint(LISTED, text).text(item.place) for item in lint(LISTED, text).diagnostics[0].related] == [
        "Acoss::Lower"
    ]


def test_an_operator_that_is_listed_without_its_functions() -> None:
    linted = lint(LISTED.replace("acos", "lcm"), lower(*NODES[1:]) + shape(*NODES[1:]))
    assert [item.message for item in linted.diagnostics] == [
        "`lcm` is under `full_codegen`, and the C++ defines no `Lcm::Lower` and no `LcmOutputShape`, which its node needs"
    ]
    assert linted.diagnostics[0].related[0].message == "this file defines 6 functions of other nodes"


@pytest.mark.parametrize(
    ("lists", "cpp"),
    [
        (LISTED, lower(*NODES) + shape(*NODES)),
        (LISTED, lower(*NODES)),  # shapes are inferred otherwise in this tree
        (LISTED, lower("Acos")),  # most are elsewhere
        (LISTED, "#define LOWER(n) X n::Lower(C* c) const { return 1; }\nLOWER(Acos)\n" + lower(*NODES[1:])),
        ("full_codegen: [acos, abs, relu_, add.out]\n", lower("Acos", "Abs")),
        ("supported: [acos, abs, sin]\n", lower("Acos", "Abs")),
        (LISTED, "torch::lazy::NodePtr f() { return 1; }\n"),
    ],
)
def test_what_misses_nothing(lists: str, cpp: str) -> None:
    assert messages(lists, cpp) == []


@pytest.mark.parametrize(
    ("lists", "cpp", "missing"),
    [
        ("full_codegen: [acos, lcm]\n", lower("Acos"), ["Lcm::Lower"]),
        ("full_codegen: [acos, lcm]\n", lower("Acoss", "Lcm"), ["Acos::Lower"]),
        ("full_codegen: [asinh]\n", lower("Asinnh"), ["Asinh::Lower"]),
        ("full_codegen: [acos, lcm, abs]\n", lower("Acos") + shape("Acos", "Lcm"), ["Lcm::Lower", "AbsOutputShape"]),
        ("full_codegen: [acos, lcm, abs, sin, cos]\n", lower("Acos") + shape("Acos", "Lcm"), ["Lcm::Lower"]),
        ("full_codegen: [acos, lcm, abs, sin, cos]\n", lower("Acos") + shape("Acos"), []),
        ("full_codegen: [acos, lcm]\n", shape("Lcm"), ["AcosOutputShape"]),
        ("full_codegen: [acos]\n", lower("Sinh"), []),
        ("full_codegen: [asinh, lcm]\n", lower("Asinnh"), ["Asinh::Lower", "Lcm::Lower"]),
    ],
)
def test_few_functions(lists: str, cpp: str, missing: list[str]) -> None:
    found = [message.partition("defines no `")[2].partition("`")[0] for message in messages(lists, cpp)]
    assert sorted(found) == sorted(missing)


ONE = "#define ONE(N) X N::Lower(C* c) const { return 1; } Shape N##OutputShape(V& v) { return 1; }\n"
OTHERWISE = {
    "a macro of macros": {"a.cpp": f"{ONE}#define TWO(N) ONE(N)\nTWO(Acos)\n"},
    "a list for a macro": {
        "a.cpp": f"#define NODES(_) _(Acos, acos) \\\n  _(Rsqrt, rsqrt)\n{ONE}NODES(ONE)\n#undef ONE\n"
    },
    "a macro of a header": {"m.h": ONE, "a.cpp": '#include "m.h"\nONE(Acos);\n'},
    "a list in a file of its own": {"nodes.inc": "ONE(Acos)\n", "a.cpp": f'{ONE}#include "nodes.inc"\n'},
    "an included file": {"a.inc": lower("Acos") + shape("Acos")},
    "a default in braces": {"a.cpp": lower("Acos") + "Shape AcosOutputShape(const V& v, D d = {1, 2}) { return 1; }\n"},
    "a variable": {"a.cpp": lower("Acos") + "const auto AcosOutputShape = [](const V& v) { return 1; };\n"},
    "an alias": {"a.cpp": "using Acos = Unary<xla::Acos>;\n" + shape("Acos")},
    "a class": {"a.cpp": "struct Acos : Node { X Lower(C* c) const override { return 1; } };\n" + shape("Acos")},
    "a generator": {
        "gen.py": "for n in names:\n    print(f'X {n}::Lower(C* c) const {{}} Shape {n}OutputShape(V& v) {{}}')\n"
    },
    "a template": {"nodes.j2": "X {{ n }}::Lower(C* c) const {} Shape {{ n }}OutputShape(V& v) {}\n"},
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_functions_that_are_defined_otherwise(name: str) -> None:
    listed = "backend: XLA\ncpp_namespace: torch_xla\n" + LISTED
    others = {"ops.yaml": listed, "most.cpp": lower(*NODES[1:]) + shape(*NODES[1:])}
    codes = lint_files(PACK, {**others, **OTHERWISE[name]}).codes()
    assert "ATN632" not in codes
    assert "ATN632" in lint_files(PACK, others).codes()


def test_comments_declarations_and_calls_define_nothing() -> None:
    decoys = (
        "// X Acos::Lower(LoweringContext* c) const { return 1; }\n"
        "X Acos::Lower(LoweringContext* c) const;\n"
        "X Other::Lower(LoweringContext* c) const { return Acos::Lower(c); }\n"
    )
    assert len(messages(LISTED, decoys + lower(*NODES[1:]))) == 1
