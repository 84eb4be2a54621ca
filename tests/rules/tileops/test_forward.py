"""`forward()` against the manifest: order, names, keyword-only inputs, optional inputs."""

from __future__ import annotations

import textwrap

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

CODES = ["SIG101", "SIG102", "SIG103"]
CODE, YAML = "kit/ops/example.py", "kit/manifest/example.yaml"


def lint(inputs: str, forward: str, params: str = "eps: {type: float, default: 0.5}", body: str = "") -> Linted:
    """Lint an op whose entry declares ``inputs`` (name to attributes) and whose ``forward`` takes ``forward``."""
    listed = textwrap.indent(inputs or "{}", "    ")
    entry = f"signature:\n  inputs:\n{listed}\n  params:\n    {params}\n"
    op = body or f"class ExampleFwdOp(Op):\n    def forward(self, {forward}):\n        return 1\n"
    return lint_files([PACK], example_files([("yaml", entry), ("python", op)]), CODES)


def inputs(*names: str) -> str:
    return "\n".join(f"{name}: {{dtype: float16}}" for name in names)


def found(linted: Linted) -> list[tuple[str, str, str]]:
    """Code, text at the place, and message of each finding."""
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


ORDERS = [
    (
        inputs("x", "weight"),
        "weight, x",
        [("SIG101", "weight", "`forward()` takes `weight`, `x`; the manifest declares `x`, `weight`")],
    ),
    (
        inputs("x", "weight", "bias", "mask"),
        "x, bias, weight, mask",
        [("SIG101", "bias", "`forward()` takes `bias`, `weight`; the manifest declares `weight`, `bias`")],
    ),
    (
        inputs("x", "weight"),
        "input, weight",
        [("SIG101", "input", "`forward()` takes `input` where the manifest declares `x`")],
    ),
    (
        inputs("x", "weight", "bias"),
        "x",
        [
            ("SIG101", "forward", "`forward()` does not take the inputs `weight`, `bias`"),
        ],
    ),
    (
        inputs("x"),
        "x, out=None",
        [
            (
                "SIG101",
                "out",
                "`forward()` takes `out`, which the manifest declares neither as an input nor as a parameter",
            )
        ],
    ),
    (inputs("x", "weight"), "x, weight", []),
    (inputs("x"), "x, eps=0.5", []),
    (inputs("x"), "*tensors", []),
    (inputs("x", "weight"), "x, *rest, **options", []),
]


@pytest.mark.parametrize(("declared", "forward", "expected"), ORDERS)
def test_order(declared: str, forward: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(lint(declared, forward)) == expected


def test_both_sides_are_shown() -> None:
    linted = lint(inputs("x", "weight"), "weight, x")
    (item,) = linted.diagnostics
    assert (item.place.path, linted.position(item.place)) == (CODE, (8, 23))
    assert [(linted.text(side.place), side.place.path, side.message) for side in item.related] == [
        ("x", YAML, "declared here")
    ]
    assert item.ops == ("ExampleFwdOp",)


def test_parameters_follow_the_inputs_in_their_own_order() -> None:
    params = "scale: {type: float}\n    eps: {type: float, default: 0.5}"
    assert found(lint(inputs("x"), "x, scale, eps=0.5", params)) == []
    assert found(lint(inputs("x"), "x, eps, scale", params)) == [
        ("SIG101", "eps", "`forward()` takes `eps`, `scale`; the manifest declares `scale`, `eps`")
    ]
    # Keyword-only parameters have no order.
    assert found(lint(inputs("x"), "x, *, eps=0.5, scale", params)) == []


SPEC_ONLY = "signature:\n  inputs:\n    x: {dtype: float16}\nstatus: spec-only\n"


def test_an_entry_that_is_spec_only_counts_as_a_warning() -> None:
    op = "class ExampleFwdOp(Op):\n    def forward(self, y):\n        return 1\n"
    linted = lint_files([PACK], example_files([("yaml", SPEC_ONLY), ("python", op)]), CODES)
    assert [item.severity for item in linted.diagnostics] == [Severity.WARNING]


SHARED = """\
class UnaryOp(Op):
    def forward(self, input):
        return 1


class ExampleFwdOp(UnaryOp): ...


class OtherFwdOp(UnaryOp): ...
"""


def manifest(**inputs: str) -> str:
    """Entries of these op names, each with one input of that name."""
    return "".join(
        f"{op}:\n  signature:\n    inputs: {{{name}: {{dtype: float16}}}}\n  status: implemented\n  workloads: []\n"
        f"  roofline: {{}}\n  source: {{op: kit/ops/example.py}}\n"
        for op, name in inputs.items()
    )


def lint_shared(**inputs: str) -> Linted:
    files = {**example_files([("python", SHARED)]), YAML: manifest(**inputs)}
    return lint_files([PACK], files, CODES)


def test_ops_that_share_one_wrong_base_are_one_finding_there() -> None:
    linted = lint_shared(ExampleFwdOp="x", OtherFwdOp="x")
    (item,) = linted.diagnostics
    assert (item.place.path, linted.text(item.place)) == (CODE, "input")
    assert item.ops == ("ExampleFwdOp", "OtherFwdOp")
    assert [linted.position(side.place).line for side in item.related] == [3, 10]


def test_an_entry_that_disagrees_with_a_base_that_fits_others_is_the_place_itself() -> None:
    linted = lint_shared(ExampleFwdOp="input", OtherFwdOp="x")
    (item,) = linted.diagnostics
    assert (item.place.path, linted.text(item.place), item.ops) == (YAML, "x", ("OtherFwdOp",))
    assert [(side.place.path, linted.text(side.place), side.message) for side in item.related] == [
        (CODE, "input", "named `input` here")
    ]


RENAMED = """\
class BinaryOp(Op):
    def __init_subclass__(cls, **kwargs):
        name = cls.__dict__.get("_other")
        if name is None:
            return
        cls.forward = renamed(cls.forward, name)

    def forward(self, x, other):
        return 1


class ExampleFwdOp(BinaryOp):
"""


def test_a_forward_that_a_hook_makes_is_not_known() -> None:
    assert found(lint(inputs("x", "exponent"), "", body=RENAMED + '    _other = "exponent"\n')) == []
    assert found(lint(inputs("x", "exponent"), "", body=RENAMED + "    pass\n")) == [
        ("SIG101", "other", "`forward()` takes `other` where the manifest declares `exponent`")
    ]


SIGNED = RENAMED.replace(
    "cls.forward = renamed(cls.forward, name)",
    """\
signature = inspect.signature(cls.forward)
        forward = lambda self, *args, **kwargs: 1
        forward.__signature__ = signature.replace(
            parameters=[p.replace(name=name) if p.name == "other" else p for p in signature.parameters.values()]
        )
        cls.forward = forward""",
)


def test_a_forward_whose_signature_a_hook_assigns() -> None:
    body = f"import inspect\n\n\n{SIGNED}    _other = 'exponent'\n"
    assert found(lint(inputs("x", "exponent"), "", body=body)) == []
    assert found(lint(inputs("x", "weight"), "", body=body)) == [
        ("SIG101", "weight", "`forward()` takes `exponent` where the manifest declares `weight`")
    ]


def test_a_param_that_neither_the_constructor_nor_a_made_forward_takes() -> None:
    entry = (
        "signature:\n  inputs: {x: {dtype: float16}, exponent: {dtype: float16}}\n  params: {weight: {type: float}}\n"
    )
    op = f"import inspect\n\n\n{SIGNED}    _other = 'exponent'\n\n    def __init__(self, scale: float):\n        pass\n"
    files = example_files([("yaml", entry), ("python", op)])
    assert [item.message for item in lint_files([PACK], files, ["SIG201"]).diagnostics] == [
        "neither `__init__()` nor `forward()` takes the parameter `weight`"
    ]


def test_an_input_by_keyword_only() -> None:
    linted = lint(inputs("x", "weight"), "x, *, weight")
    assert found(linted) == [
        ("SIG102", "weight", "`forward()` takes the input `weight` by keyword only; inputs are passed by position")
    ]


OPTIONAL = "x: {dtype: float16}\nbias: {dtype: float16, optional: true}"


def test_an_optional_input_needs_a_default() -> None:
    linted = lint(OPTIONAL, "x, bias")
    assert found(linted) == [
        ("SIG103", "bias", "`forward()` requires the optional input `bias`; give it the default `None`")
    ]
    assert [item.severity for item in linted.diagnostics] == [Severity.ERROR]
    assert found(lint(OPTIONAL, "x, bias=None")) == []


def test_a_required_input_with_a_default_stands_in_the_manifest() -> None:
    linted = lint(inputs("x", "bias"), "x, bias=None")
    (item,) = linted.diagnostics
    assert (item.severity, item.place.path, linted.text(item.place)) == (Severity.WARNING, YAML, "bias")
    assert item.message == "`forward()` defaults the input `bias`, which the manifest requires"


@pytest.mark.parametrize("flag", ['"true"', "yes please", "1", "false", "[true]"])
def test_a_flag_that_is_not_true_is_the_flag_rules_business(flag: str) -> None:
    declared = inputs("x") + f"\nbias: {{dtype: float16, optional: {flag}}}"
    assert found(lint(declared, "x, bias=None")) == found(lint(declared, "x, bias")) == []


MALFORMED = ["[x, weight]", "x", "null", "{1: {dtype: float16}}", "{x: float16, y: [1]}", "&a {x: *a}", "{<<: 3}"]


@pytest.mark.parametrize("value", MALFORMED)
def test_malformed_inputs_are_the_structure_rules_business(value: str) -> None:
    entry = f"signature:\n  inputs: {value}\n"
    op = "class ExampleFwdOp(Op):\n    def forward(self, x, y):\n        return 1\n"
    linted = lint_files([PACK], example_files([("yaml", entry), ("python", op)]), CODES)
    assert [item.code for item in linted.diagnostics if item.code == "OPS900"] == []
    assert value != "{x: float16, y: [1]}" or found(linted) == []
