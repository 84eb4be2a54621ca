"""Parameters dropped from entries, constructors and calls."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.drop_param import drop_param
from tests.rules.tileops.migrations.drafts import BENCH, CODE, TEST, YAML, files, migrate

DROP: Migration = drop_param

SIGNATURE = """\
signature:
  inputs:
    x: {dtype: float16, shape: "[M, K]"}
  params:
    n: {type: int}  # how many
    eps: {type: float, default: 0.5}
  shape_rules:
    - "n > 0"
    - "x.shape[0] == 2"
workloads:
  - {x_shape: [4, 8], n: 4, dtypes: [float16], label: "small"}
"""
OP = '''\
class ExampleFwdOp(Op):
    def __init__(self, n: int, eps: float = 0.5, *, kernel_map=None):
        """Make it.

        Args:
            n: How many.
            eps: Small.
        """
        self.eps = eps

    def forward(self, x):
        return x
'''


def test_the_entry_loses_the_param_its_values_and_its_rules() -> None:
    texts = files(("yaml", SIGNATURE), ("python", OP))
    done = migrate(texts, DROP, param="n")
    text = done.text(YAML)
    assert "n: {type: int}" not in text
    assert "how many" not in text
    assert '- "x.shape[0] == 2"' in text
    assert '"n > 0"' not in text
    assert '- {x_shape: [4, 8], dtypes: [float16], label: "small"}' in text
    assert done.notes == []


def test_what_other_rules_name_stays_in_rules_and_rows() -> None:
    signature = SIGNATURE.replace('    - "x.shape[0] == 2"\n', '    - "x.shape[0] == 2 * n"\n')
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n")
    assert '- "n > 0"\n      - "x.shape[0] == 2 * n"\n' in done.text(YAML)
    assert "{x_shape: [4, 8], n: 4," in done.text(YAML)
    said = "this rule of `ExampleFwdOp` names `n`, which is not a parameter any more"
    assert [message for path, _, message in done.said if path == YAML] == [said, said]


def test_the_constructor_and_its_calls_lose_it() -> None:
    test = "from kit.ops.example import ExampleFwdOp\n\nExampleFwdOp(4, 0.1)\nExampleFwdOp(n=4, eps=0.1)\nExampleFwdOp(*[4])\n"
    done = migrate(files(("yaml", SIGNATURE), ("python", OP), tests__test_example=test), DROP, param="n")
    assert done.text(TEST).splitlines()[2:] == ["ExampleFwdOp(0.1)", "ExampleFwdOp(eps=0.1)", "ExampleFwdOp(*[4])"]
    assert "def __init__(self, eps: float = 0.5, *, kernel_map=None):" in done.text(CODE)
    assert "n: How many." not in done.text(CODE)
    assert (TEST, 5) in [(path, line) for path, line, _ in done.said]


def test_a_param_that_the_code_uses_stays_on_both_sides() -> None:
    test = "from kit.ops.example import ExampleFwdOp\n\nExampleFwdOp(4, eps=0.1)\n"
    texts = files(("yaml", SIGNATURE), ("python", OP), tests__test_example=test)
    done = migrate(texts, DROP, param="eps")
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]
    assert [message for path, _, message in done.said if path == CODE] == ["`__init__()` keeps `eps`: it is used"]


def test_a_value_is_folded() -> None:
    op = """\
class ExampleFwdOp(Op):
    def __init__(self, n: int, *, kernel_map=None):
        if n > 2:
            self.wide = True

    def forward(self, x):
        return x
"""
    signature = SIGNATURE.replace("    eps: {type: float, default: 0.5}\n", "")
    done = migrate(files(("yaml", signature), ("python", op)), DROP, param="n", value="4")
    assert "4 > 0" not in done.text(YAML)
    assert '- {x_shape: [4, 8], dtypes: [float16], label: "small"}' in done.text(YAML)
    assert "def __init__(self, *, kernel_map=None):" in done.text(CODE)
    assert "n" not in [word for line in done.text(CODE).splitlines() if "if" in line for word in line.split()]


def test_a_dimension_of_that_name_stands_for_it() -> None:
    signature = SIGNATURE.replace("[M, K]", "[M, n]")
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n")
    assert '- "n > 0"' in done.text(YAML)
    assert [path for path, _, _ in done.said] == []


def test_a_constructor_that_another_op_shares_keeps_it() -> None:
    texts = files(("yaml", SIGNATURE), ("python", OP + "\n\nclass TwinFwdOp(ExampleFwdOp):\n    pass\n"))
    texts[YAML] += "\n" + texts[YAML].replace("ExampleFwdOp", "TwinFwdOp")
    done = migrate(texts, DROP, param="n", op="ExampleFwdOp")
    assert done.texts == {}
    assert "`__init__()` keeps `n`: `TwinFwdOp` share it and declare it" in [message for _, _, message in done.said]


def test_an_op_that_stays_holds_those_that_share_its_constructor() -> None:
    own = "\n    def forward(self, x, n):\n        return x * n\n"
    texts = files(("yaml", SIGNATURE), ("python", f"{OP}\n\nclass TwinFwdOp(ExampleFwdOp):{own}"))
    texts[YAML] += "\n" + texts[YAML].replace("ExampleFwdOp", "TwinFwdOp")
    done = migrate(texts, DROP, param="n")
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",), ("TwinFwdOp",)]
    assert [message for path, _, message in done.said if path == CODE] == [
        "`__init__()` keeps `n`: `TwinFwdOp` share it and declare it",
        "`forward()` keeps `n`: it is used",
    ]


def test_the_last_param_and_the_last_rule() -> None:
    signature = "signature:\n  params:\n    n: {type: int}\n  shape_rules:\n    - n > 0\n"
    texts = files(("yaml", signature), ("python", OP))
    texts[YAML] += "\nOtherOp:\n  status: spec-only\n  signature: {inputs: {}, outputs: {}}\n"
    done = migrate(texts, DROP, param="n")
    assert "params" not in done.text(YAML)
    assert "shape_rules" not in done.text(YAML)


def test_code_that_reads_it_from_rows_is_noted() -> None:
    texts = files(("yaml", SIGNATURE), ("python", OP), benchmarks__bench_example='make(row["n"])\n')
    said = migrate(texts, DROP, param="n").said
    assert (BENCH, 1, '"n" is no longer a key of the rows of `ExampleFwdOp`') in said


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("  params:", '  static_dims: {K: "x.shape[n]"}\n  params:', "`static_dims.K` of `ExampleFwdOp`"),
        ('"n > 0"', '"x.shape[0] > n"', "this rule of `ExampleFwdOp`"),
        ("workloads:", 'roofline: {flops: "n * 2", bytes: "2"}\nworkloads:', "`roofline.flops` of `ExampleFwdOp`"),
        ("workloads:", 'roofline: {vars: {k: n}, bytes: "2"}\nworkloads:', "`roofline.vars.k` of `ExampleFwdOp`"),
        ('"[M, K]"', '"[M, K]", constraints: {M: divisible_by(n)}', "a constraint of `x` of `ExampleFwdOp`"),
    ],
)
def test_an_expression_that_would_name_nothing_leaves_the_entry_whole(old: str, new: str, what: str) -> None:
    signature = SIGNATURE.replace("n: 4, ", "").replace(old, new)
    texts = files(("yaml", signature), ("python", OP))
    done = migrate(texts, DROP, param="n")
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]
    places = [
        line for _, line, message in done.said if message == f"{what} names `n`, which nothing else gives a value"
    ]
    assert [new.splitlines()[0].strip() in texts[YAML].splitlines()[line - 1] for line in places] == [True]


def test_what_another_rule_equates_has_a_value() -> None:
    roofline = 'roofline:\n  flops: "n * 2"\n  bytes: "2"\n'
    signature = SIGNATURE.replace('"x.shape[0] == 2"', '"n == x.shape[0]"') + roofline
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n")
    assert "n: {type: int}" not in done.text(YAML)
    assert "`roofline.flops` of `ExampleFwdOp` names `n`, which is not a parameter any more" in [
        item[2] for item in done.said
    ]


@pytest.mark.parametrize("value", ["[1]", "{a: 1}", ".nan"])
def test_a_value_that_no_expression_can_hold_leaves_the_entry_whole(value: str) -> None:
    signature = SIGNATURE.replace("n: 4, ", "")
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value=value)
    assert done.texts == {}
    assert "this uses `n`, whose value cannot be written in an expression" in [message for _, _, message in done.said]


def test_a_constraint_is_folded() -> None:
    signature = SIGNATURE.replace('"[M, K]"', '"[M, K]", constraints: {M: divisible_by(n)}')
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value="4")
    assert "constraints: {M: divisible_by(4)}" in done.text(YAML)


@pytest.mark.parametrize("options", [{"param": ""}, {"param": "n,eps", "value": "1"}, {"param": "n", "op": "Exampel"}])
def test_options_that_do_not_fit(options: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        migrate(files(), DROP, **options)


def test_neighbours_in_one_line_go_together() -> None:
    signature = """\
signature:
  params: {a: {type: int}, b: {type: int}, eps: {type: float, default: 0.5}}
  shape_rules: ["a > 0", "b > 0", "x.ndim == 2"]
workloads:
  - {a: 1, b: 2, x_shape: [4, 8], dtypes: [float16], label: "small"}
  - a: 1
    b: 2
    x_shape: [4, 8]
"""
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="a,b")
    assert "params: {eps: {type: float, default: 0.5}}" in done.text(YAML)
    assert 'shape_rules: ["x.ndim == 2"]' in done.text(YAML)
    assert '- {x_shape: [4, 8], dtypes: [float16], label: "small"}\n    - x_shape: [4, 8]\n' in done.text(YAML)


ANCHORED = """\
signature:
  inputs:
    x: {dtype: float16, shape: "[M, K]"}
  params: &params
    n: {type: int}
    eps: {type: float, default: 0.5}
  shape_rules:
    - "n > 0"
workloads:
  - {x_shape: [4, 8], n: 4, dtypes: [float16], label: "small"}
"""


@pytest.mark.parametrize("value", [None, "4"])
def test_an_entry_below_an_anchor_is_left_whole_with_its_code(value: str | None) -> None:
    texts = files(("yaml", ANCHORED), ("python", OP))
    texts[YAML] += (
        "\nOtherOp:\n  status: spec-only\n  signature:\n    inputs: {}\n    outputs: {}\n    params: *params\n"
    )
    done = migrate(texts, DROP, param="n", value=value)
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",), ("OtherOp",)]
    assert all(
        "it lies in `&params`, so that each `*params` would change too" in message for _, _, message in done.said
    )


@pytest.mark.parametrize("row", ["&row {x_shape: [4, 8], n: 4}\n  - *row", "{<<: &base {n: 4}, x_shape: [4, 8]}"])
def test_a_row_that_cannot_lose_it_leaves_the_entry_whole(row: str) -> None:
    signature = SIGNATURE.replace('{x_shape: [4, 8], n: 4, dtypes: [float16], label: "small"}', row)
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n")
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]


@pytest.mark.parametrize("given", ["8", "true", "null", '"4"'])
def test_a_row_with_another_value_leaves_the_entry_whole(given: str) -> None:
    more = SIGNATURE + f'  - {{x_shape: [4, 8], n: {given}, dtypes: [float16], label: "other"}}\n'
    texts = files(("yaml", more), ("python", OP))
    done = migrate(texts, DROP, param="n", value="4")
    assert done.texts == {}
    assert len(done.left) == 1
    assert [line for _, line, message in done.said if message.startswith("this row gives")] == [
        number for number, text in enumerate(texts[YAML].splitlines(), 1) if '"other"' in text
    ]


def test_a_row_with_the_same_number_written_otherwise_loses_it() -> None:
    signature = SIGNATURE.replace("n: 4,", "n: 4.0,")
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value="4")
    assert '- {x_shape: [4, 8], dtypes: [float16], label: "small"}' in done.text(YAML)


@pytest.mark.parametrize("call", ["ExampleFwdOp(8)", "ExampleFwdOp(eps=0.1, n=8)", "ExampleFwdOp(n=-4)"])
def test_a_call_with_another_value_leaves_the_entry_whole(call: str) -> None:
    test = f"from kit.ops.example import ExampleFwdOp\n\nExampleFwdOp(4)\n{call}\n"
    done = migrate(files(("yaml", SIGNATURE), ("python", OP), tests__test_example=test), DROP, param="n", value="4")
    assert done.texts == {}
    assert len(done.left) == 1
    assert [line for path, line, message in done.said if message.startswith("this call passes")] == [4]


def test_a_call_with_a_value_that_is_not_known_is_kept_and_noted() -> None:
    test = (
        "from kit.ops.example import ExampleFwdOp\n\nExampleFwdOp(n=4)\n\ndef make(n):\n    return ExampleFwdOp(n=n)\n"
    )
    done = migrate(files(("yaml", SIGNATURE), ("python", OP), tests__test_example=test), DROP, param="n", value="4")
    assert done.text(TEST) == test.replace("ExampleFwdOp(n=4)", "ExampleFwdOp()")
    assert (TEST, 6, "this passes `n`, which was removed and stood for 4") in done.said


def test_arguments_that_partial_binds() -> None:
    test = """\
import functools
from kit.ops.example import ExampleFwdOp

make = functools.partial(ExampleFwdOp, 4)
make = functools.partial(ExampleFwdOp, 4, 0.1)
make = functools.partial(ExampleFwdOp, n=4, eps=0.1)
make = functools.partial(ExampleFwdOp, eps=0.1)
make = functools.partial(ExampleFwdOp, size)
"""
    done = migrate(files(("yaml", SIGNATURE), ("python", OP), tests__test_example=test), DROP, param="n", value="4")
    assert done.lines(TEST) == [
        "make = functools.partial(ExampleFwdOp)",
        "make = functools.partial(ExampleFwdOp, 0.1)",
    ]
    assert done.said == [
        (TEST, 7, "calls of this may pass `n`, which was removed"),
        (TEST, 8, "this passes `n`, which was removed and stood for 4"),
    ]


def test_a_constructor_that_hands_it_to_another_that_loses_it() -> None:
    op = (
        OP
        + """

class TwinFwdOp(ExampleFwdOp):
    def __init__(self, n: int):
        super().__init__(n)
"""
    )
    texts = files(("yaml", SIGNATURE), ("python", op))
    texts[YAML] += "\n" + texts[YAML].replace("ExampleFwdOp", "TwinFwdOp")
    done = migrate(texts, DROP, param="n", value="4")
    assert "    def __init__(self):\n        super().__init__()\n" in done.text(CODE)
    assert done.said == []


@pytest.mark.parametrize(("value", "written"), [("1", "x.shape[1]"), ("-1", "x.shape[-1]")])
def test_a_static_dimension_is_folded(value: str, written: str) -> None:
    signature = SIGNATURE.replace("n: 4, ", "").replace("  params:", '  static_dims:\n    N: "x.shape[n]"\n  params:')
    signature = signature.replace("n > 0", "n != 0")
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value=value)
    assert f'N: "{written}"' in done.text(YAML)


@pytest.mark.parametrize("value", ["1.5", "true", "null", "[1]", "one"])
def test_a_static_dimension_that_cannot_take_the_value_leaves_the_entry_whole(value: str) -> None:
    signature = SIGNATURE.replace("n: 4, ", "").replace("  params:", '  static_dims:\n    N: "x.shape[n]"\n  params:')
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value=value)
    assert done.texts == {}
    assert len(done.left) == 1
    assert "this static dimension uses `n`, which cannot be folded here" in [message for _, _, message in done.said]


@pytest.mark.parametrize(
    ("rule", "value", "left"),
    [
        ("n > 1", "10000.0", None),
        ("n is None or n > 0", "null", None),
        ("n // 0 > 1", "1", "1 // 0 > 1"),
        ("n ** 2 == 1", "-1", None),
        ("open(n)", "'f'", "open('f')"),
        ("x.shape[0] > n", "1", "x.shape[0] > 1"),
    ],
)
def test_a_rule_that_always_holds_goes(rule: str, value: str, left: str | None) -> None:
    signature = SIGNATURE.replace("n: 4, ", "").replace('"n > 0"', f'"{rule}"')
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value=value)
    rules = [f'      - "{left}"'] if left else []
    lines = done.text(YAML).splitlines()
    at = lines.index("    shape_rules:") + 1
    assert lines[at : lines.index("  workloads:")] == [*rules, '      - "x.shape[0] == 2"']
    noted = [message for _, _, message in done.said if "not known to hold" in message]
    assert noted == ([f"this rule is `{left}` now, which is not known to hold"] if left and "x" not in left else [])


@pytest.mark.parametrize(("rule", "value"), [("n > 1", "1"), ("n in (1, 2)", "3"), ("n is not None", "null")])
def test_a_value_that_a_rule_forbids_leaves_the_entry_whole(rule: str, value: str) -> None:
    signature = SIGNATURE.replace("n: 4, ", "").replace("n > 0", rule)
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value=value)
    assert done.texts == {}
    assert len(done.left) == 1
    assert f"the rule `{rule}` does not allow" in done.said[0][2]


def test_params_and_rules_of_one_line_go_together() -> None:
    signature = 'signature: {inputs: {}, outputs: {}, params: {n: {type: int}}, shape_rules: ["n > 0"]}\n'
    for value in (None, "4"):
        done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="n", value=value)
        assert "n > 0" not in done.text(YAML)
        assert "type: int" not in done.text(YAML)


def test_a_static_dimension_that_only_resembles_it_does_not_matter() -> None:
    signature = SIGNATURE.replace("n: 4, ", "").replace("n: {", "shape: {").replace('"n > 0"', '"shape > 0"')
    signature = signature.replace("  params:", '  static_dims:\n    N: "x.shape[0]"\n  params:')
    done = migrate(files(("yaml", signature), ("python", OP)), DROP, param="shape", value="0.5")
    assert 'N: "x.shape[0]"' in done.text(YAML)
    assert "shape > 0" not in done.text(YAML)
    assert done.left == []


DEFAULTED = SIGNATURE.replace("n: {type: int}", "n: {type: int, default: 2}").replace(" n: 4,", "")
DEFAULTED_OP = OP.replace("n: int,", "n: int = 2,").replace("        self.eps = eps\n", "        self.n = n\n")


def test_a_row_and_a_call_that_take_another_default() -> None:
    texts = files(("yaml", DEFAULTED), ("python", DEFAULTED_OP))
    done = migrate(texts, DROP, param="n", value="4")
    assert done.texts == {}
    assert (YAML, 17, "this row takes the default 2 for `n`, not 4") in done.said
    texts = files(("yaml", SIGNATURE), ("python", DEFAULTED_OP))
    texts[TEST] = "from kit.ops.example import ExampleFwdOp\n\nOPS = [ExampleFwdOp(*SIZES), ExampleFwdOp(eps=0.5)]\n"
    done = migrate(texts, DROP, param="n", value="4")
    assert done.texts == {}
    assert (TEST, 3, "this call takes the default 2 for `n`, not 4") in done.said
    texts = files(("yaml", DEFAULTED), ("python", DEFAULTED_OP))
    done = migrate(
        texts | {TEST: "from kit.ops.example import ExampleFwdOp\n\nOP = ExampleFwdOp()\n"}, DROP, param="n", value="2"
    )
    assert "self.n = 2" in done.text(CODE)
    assert "n: {type: int" not in done.text(YAML)


@pytest.mark.parametrize(
    "op",
    [
        "@dataclass\nclass ExampleFwdOp(Op):\n    n: int\n    eps: float = 0.5\n",
        "@with_constructor\nclass ExampleFwdOp(Op):\n    pass\n\n\nExampleFwdOp.__init__ = made()\n",
    ],
)
def test_a_constructor_that_is_made_at_run_time_keeps_the_parameter(op: str) -> None:
    done = migrate(
        files(("yaml", SIGNATURE), ("python", "from dataclasses import dataclass\n\n\n" + op)), DROP, param="n"
    )
    assert done.texts == {}
    assert done.said == [(YAML, 11, "drop `n` of `ExampleFwdOp` by hand: its `__init__()` is made at run time")]
    done = migrate(files(("yaml", SIGNATURE), ("python", "class ExampleFwdOp(Op):\n    pass\n")), DROP, param="n")
    assert "n: {type: int}" not in done.text(YAML)
