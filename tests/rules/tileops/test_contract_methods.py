"""Hand-written contract methods and registered operators against the manifest."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

CODE, YAML = "kit/ops/example.py", "kit/manifest/example.yaml"

TWO = "x: {dtype: float16}\n    weight: {dtype: float16}"
OPTIONAL = "x: {dtype: float16}\n    bias: {dtype: float16, optional: true}"


def lint(select: str, op: str, inputs: str = TWO, outputs: str = "y: {dtype: float16}") -> Linted:
    entry = f"signature:\n  inputs:\n    {inputs}\n  outputs:\n    {outputs}\n"
    return lint_files([PACK], example_files([("yaml", entry), ("python", op)]), [select])


def found(linted: Linted) -> list[tuple[str, str, str]]:
    return [(item.place.path, linted.text(item.place), item.message) for item in linted.diagnostics]


def method(name: str, params: str, body: str = "pass") -> str:
    return f"class ExampleFwdOp(Op):\n    def {name}(self, {params}):\n        {body}\n"


SHAPES = [
    ("x_shape", [("_infer_output_shapes", "does not take `weight_shape`")]),
    ("x_shape, w_shape", [("w_shape", "takes `w_shape` where the manifest makes it `weight_shape`")]),
    ("x_shape, weight_shape, n", [("n", "requires `n`, which no declared input gives it")]),
    ("x_shape, weight_shape, /", [("x_shape", "takes `x_shape` by position only; it is passed by name"),
                                  ("weight_shape", "takes `weight_shape` by position only; it is passed by name")]),
    ("weight_shape, x_shape", []),
    ("x_shape, *, weight_shape=None, n=1", []),
    ("**shapes", []),
    ("*shapes", []),
]  # fmt: skip


@pytest.mark.parametrize(("params", "expected"), SHAPES)
def test_infer_output_shapes_takes_the_inputs_shapes(params: str, expected: list[tuple[str, str]]) -> None:
    linted = lint("SIG301", method("_infer_output_shapes", params))
    assert found(linted) == [(CODE, place, f"`_infer_output_shapes()` {text}") for place, text in expected]


def test_a_method_of_the_class_itself_is_the_place_whoever_inherits_it() -> None:
    """The other op may get a method of its own from a hook, as it does in the tree where this was seen."""
    op = method("_infer_output_shapes", "x_shape") + "\n\nclass OtherFwdOp(ExampleFwdOp): ...\n"
    entry = "{}:\n  signature: {{inputs: {{{}}}, outputs: {{y: {{dtype: float16}}}}}}\n  status: implemented\n"
    entry += "  source: {{op: kit/ops/example.py}}\n  roofline: {{}}\n  workloads: []\n"
    texts = example_files([("python", op)])
    texts[YAML] = entry.format("ExampleFwdOp", "x: {dtype: float16}, w: {dtype: float16}")
    texts[YAML] += entry.format("OtherFwdOp", "x: {dtype: float16}")
    (item,) = lint_files([PACK], texts, ["SIG301"]).diagnostics
    assert (item.place.path, item.ops) == (CODE, ("ExampleFwdOp",))


def test_optional_inputs_have_a_shape_argument_too() -> None:
    assert found(lint("SIG301", method("_infer_output_shapes", "x_shape"), OPTIONAL)) == [
        (CODE, "_infer_output_shapes", "`_infer_output_shapes()` does not take `bias_shape`")
    ]
    assert found(lint("SIG301", method("_infer_output_shapes", "x_shape, bias_shape"), OPTIONAL)) == []


RETURNS = [
    ('return {"output": x_shape}', ['"output"']),
    ('return {"y": x_shape, "indices": x_shape}', ['"indices"']),
    ("return {}", ["{}"]),
    ("return dict(output=x_shape)", ["x_shape"]),
    ('return {"y": x_shape}', []),
    ("return dict(y=x_shape)", []),
    ("return {OUTPUT: x_shape}", []),
    ("return {**super()._infer_output_shapes(x_shape)}", []),
    ('return {"output": 1} | other', []),
    ("found = {}\n        return found", []),
    ('return {self.name: x_shape}', []),
    # One method for two ops: the other branch belongs to the other op.
    ('if self.indices:\n            return {"y": 1, "indices": 1}\n        return {"y": 1}', []),
    ('if self.a:\n            return {"a": 1}\n        return {"b": 1}', ['"a"', '"b"']),
]  # fmt: skip


@pytest.mark.parametrize(("body", "places"), RETURNS)
def test_infer_output_shapes_returns_the_outputs(body: str, places: list[str]) -> None:
    op = 'OUTPUT = "y"\n\n\n' + method("_infer_output_shapes", "x_shape, weight_shape", body)
    assert [place for _, place, _ in found(lint("SIG302", op))] == places


def test_the_returned_and_the_declared_outputs_are_named() -> None:
    linted = lint("SIG302", method("_infer_output_shapes", "x_shape", 'return {"y": 1}'), outputs="{a: {}, y: {}}")
    (item,) = linted.diagnostics
    assert item.message == "`_infer_output_shapes()` returns `y`; the manifest declares `a`, `y`"
    assert [(side.place.path, linted.text(side.place)) for side in item.related] == [(YAML, "a")]


def test_validate_dtypes_takes_the_inputs() -> None:
    assert found(lint("SIG303", method("_validate_dtypes", "x"))) == [
        (CODE, "_validate_dtypes", "`_validate_dtypes()` does not take `weight`")
    ]
    assert found(lint("SIG303", method("_validate_dtypes", "x, bias"), OPTIONAL)) == [
        (CODE, "bias", "`_validate_dtypes()` requires the optional input `bias`; give it the default `None`")
    ]
    assert found(lint("SIG303", method("_validate_dtypes", "x, bias=None"), OPTIONAL)) == []


POOL = """\
def _validate_input(self, input):
    pass


class ExampleFwdOp(Op):
    _validate_dtypes = _validate_input


class OtherFwdOp(Op):
    _validate_dtypes = _validate_input
"""


def test_an_aliased_function_is_the_place_if_it_fits_no_op() -> None:
    linted = lint("SIG303", POOL, "x: {dtype: float16}")
    assert found(linted) == [(CODE, "input", "`_validate_dtypes()` takes `input` where the manifest makes it `x`")]


HOOK = """\
def install(cls):
    if "_validate_dtypes" in cls.__dict__:
        return
    cls._validate_dtypes = generate(cls)


class Base(Op):
    def __init_subclass__(cls):
        install(cls)


class Middle(Base):
    def _validate_dtypes(self, x): ...


class ExampleFwdOp({base}): {body}
"""


@pytest.mark.parametrize(
    ("base", "body", "count"),
    [
        ("Base", "...", 0),
        ("Middle", "...", 0),
        ("Base", "\n    def _validate_dtypes(self, x): ...", 1),
    ],
    ids=["generated", "generated over an inherited one", "written"],
)
def test_a_generated_validate_dtypes_is_right_by_itself(base: str, body: str, count: int) -> None:
    assert len(found(lint("SIG303", HOOK.format(base=base, body=body)))) == count


# SIG304

OPERATOR = """\
class ExampleFwdOp(Op):
    compile_op_names = {names}


@torch.library.custom_op("kit::one", mutates_args={one})
def _one({params}) -> torch.Tensor: ...


@torch.library.custom_op("kit::two", mutates_args=("x",))
def _two(x: torch.Tensor) -> torch.Tensor: ...
"""

TENSORS = "x: torch.Tensor, weight: Optional[torch.Tensor], key: str"


def mutations(
    one: str, names: str = '("kit::one",)', params: str = TENSORS, inputs: str = TWO
) -> list[tuple[str, str, str]]:
    return found(lint("SIG304", OPERATOR.format(names=names, one=one, params=params), inputs))


def test_an_input_that_an_operator_writes() -> None:
    text = "an operator of the op writes `weight`, which the manifest does not mark `mutated: true`"
    assert mutations('("weight",)') == [(YAML, "weight", text)]
    # Under another name it is the input at its place.
    assert mutations('["w"]', params="a: torch.Tensor, w: torch.Tensor") == [(YAML, "weight", text)]


def test_an_input_that_no_operator_writes() -> None:
    marked = "x: {dtype: float16, mutated: true}\n    weight: {dtype: float16}"
    text = "the manifest marks `x` as mutated, but no operator of the op writes it"
    assert mutations("()", inputs=marked) == [(YAML, "mutated", text)]
    # A flag that is not `true` is another rule's business.
    assert mutations('("x",)', inputs=marked.replace("true", "1")) == []
    # One operator of several is enough: an in-place variant is registered beside the other.
    assert mutations("()", '("kit::one", "kit::two")', inputs=marked) == []


def test_a_listed_operator_that_nothing_registers() -> None:
    text = "`compile_op_names` lists `kit::three`, which nothing in the tree registers"
    assert mutations("()", '("kit::one", "kit::three")') == [(CODE, "ExampleFwdOp", text)]


UNKNOWN = [
    ("WRITTEN", '("kit::one",)', TENSORS),
    ('"unknown"', '("kit::one",)', TENSORS),
    ('("weight",)', '("other::elsewhere",)', TENSORS),
    ('("weight",)', "names()", TENSORS),
    ('("weight",)', "()", TENSORS),
    ('("out",)', '("kit::one",)', "x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor"),
    ('("w",)', '("kit::one",)', "x, w"),
]


@pytest.mark.parametrize(("one", "names", "params"), UNKNOWN)
def test_what_is_not_literal_or_is_no_input_is_left_alone(one: str, names: str, params: str) -> None:
    assert mutations(one, names, params) == []
