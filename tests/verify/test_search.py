"""The search for calls of an operator: from its schema, with a function that accepts or refuses them."""

from __future__ import annotations

import math
import re
from itertools import islice

import pytest

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.verify.model import Call, Input, Weakness
from opschema_cli.verify.search.candidates import Accepts, FinalRefusal, candidates, completed
from opschema_cli.verify.search.derived import derived_calls
from opschema_cli.verify.search.finder import MOST_TRIED, Found, accepted_by_either, find_calls


def schema(text: str) -> OperatorSchema:
    found = parse_schema(f"kit::op{text}").schema
    assert found is not None
    return found


def shapes(call: Call) -> dict[str, tuple[int, ...]]:
    return {item.name: item.shape for item in call.inputs}


def accepting(condition: str) -> Accepts:
    """A kernel that checks this of its arguments: tensors are their shapes, or lists of them."""

    def refusal(call: Call) -> str:
        tensors = {item.name: item.shape for item in call.inputs if "." not in item.name}
        lists = {name: [shapes(call)[item] for item in items] for name, items in call.lists.items()}
        dtypes = {f"{item.name}_dtype": item.dtype for item in call.inputs}
        try:
            return "" if eval(condition, {}, {**dtypes, **call.params, **tensors, **lists}) else f"not {condition}"
        except (NameError, IndexError, TypeError) as error:
            return str(error)

    return refusal


def found(text: str, condition: str) -> Found:
    return find_calls(schema(text), {}, accepting(condition))


def test_the_first_call_is_the_likeliest() -> None:
    call = found("(Tensor x, Tensor weight, float eps=1e-6) -> Tensor", "True").calls[0].call
    assert shapes(call) == {"x": (32, 64), "weight": (64,)}
    assert (call.params, call.outputs[0].name) == ({}, "output")


def test_shapes_that_a_kernel_asks_for_are_found() -> None:
    for text, condition in {
        "(Tensor a, Tensor b) -> Tensor": "len(a) == len(b) == 2 and a[1] == b[0]",
        "(Tensor x, Tensor w, Tensor b) -> Tensor": "len(w) == 2 and x[-1] == w[1] and b == w[:1]",
        "(Tensor q, Tensor k, Tensor v) -> Tensor": "len(q) == 4 and q[1:] == k[1:] == v[1:]",
        "(Tensor x, Tensor index) -> Tensor": "index_dtype == 'int64' and len(index) == 1",
        "(Tensor x, int n) -> Tensor": "x[-1] == n",
        "(Tensor[] xs, int dim) -> Tensor": "len(xs) == 2 and xs[0] == xs[1] and dim == 0",
        "(Tensor x, Tensor? bias=None, *, int[] size) -> Tensor": "len(size) == 2 and bias",
        "(Tensor x) -> Tensor": "x_dtype == 'float16' and x[-1] % 128 == 0",
    }.items():
        calls = found(text, condition).calls
        assert [accepting(condition)(item.call) for item in calls[:1]] == [""], text


def test_a_call_that_is_not_found_has_the_last_refusal_as_its_reason() -> None:
    nothing = found("(Tensor x) -> Tensor", "False")
    assert nothing.calls == ()
    assert nothing.reason.startswith("the search found no call that it accepts, in ")
    assert nothing.reason.endswith("; all were refused alike: not False")
    unmakable = found("(Tensor x, Generator g) -> Tensor", "True").reason
    assert unmakable == "no value of type `Generator` can be made for `g`"


def _each_in_another_way(tried: list[Call], call: Call) -> str:
    tried.append(call)
    return f"not {'a' * (len(tried) % 300)}"


def refusing(reason: str, tried: list[Call]) -> Accepts:
    def refusal(call: Call) -> str:
        tried.append(call)
        return reason.format(rank=len(call.inputs[0].shape), dtype=call.inputs[0].dtype)

    return refusal


@pytest.mark.parametrize(
    ("reason", "fewest", "most"),
    [
        ("NameError: name `tree` is not defined, at kit/ops.py:7 in norm", 60, 80),
        ("AssertionError: Torch not compiled with CUDA enabled", 60, 80),
        ("NotImplementedError: {dtype} with {rank} axes cannot be run, at kit/ops.py:7 in norm", 60, 80),
        ("ValueError: expected 17 dimensions, got {rank}, at kit/ops.py:7 in norm", 190, 210),
    ],
)
def test_a_search_stops_where_refusals_get_no_farther(reason: str, fewest: int, most: int) -> None:
    tried: list[Call] = []
    says = find_calls(
        schema("(Tensor q, Tensor k, Tensor v, float scale) -> Tensor"), {}, refusing(reason, tried)
    ).reason
    assert fewest <= len(tried) <= most
    assert {len(call.inputs[0].shape) for call in tried} == set(range(6))
    first = reason.format(rank=2, dtype="float32")
    assert says == f"the search found no call that it accepts, in {len(tried)} calls; all were refused alike: {first}"


def test_the_most_frequent_refusal_is_reported() -> None:
    reason = found("(Tensor x, Tensor y) -> Tensor", "x[2] > 999").reason
    assert re.search(r"in \d+ calls; \d+ of them were refused alike: (not|tuple index)", reason)


def test_calls_as_different_as_possible_find_what_the_likeliest_do_not() -> None:
    text = "(Tensor q, Tensor k, Tensor v, Tensor w, float a, float b) -> Tensor"
    assert found(text, "q == k == v == w and len(q) == 4 and q_dtype == w_dtype == 'int8'").calls


def test_a_search_ends_where_no_call_can_be_tried_any_more() -> None:
    tried: list[Call] = []

    def refusal(call: Call) -> str:
        tried.append(call)
        return FinalRefusal("3 calls ended the process") if len(tried) == 3 else "no answer"

    reason = find_calls(schema("(Tensor x) -> Tensor"), {}, refusal).reason
    assert (reason, len(tried)) == ("the search found no call that it accepts; 3 calls ended the process", 3)


def test_no_call_is_too_large_to_be_drawn() -> None:
    calls = islice(candidates(schema("(Tensor x, Tensor y, Tensor z) -> Tensor")), 5000)
    assert max(sum(math.prod(item.shape) for item in call.inputs) for call in calls) <= 1 << 22


def test_the_search_is_bounded_and_the_same_each_time() -> None:
    tried: list[list[Call]] = [[], []]
    for calls in tried:
        find_calls(
            schema("(Tensor a, Tensor b, Tensor c, int n) -> Tensor"),
            {},
            lambda call, to=calls: _each_in_another_way(to, call),
        )
    assert len(tried[0]) == MOST_TRIED
    assert tried[0] == tried[1]


def test_flags_dtypes_and_ranks_are_varied() -> None:
    calls = found("(Tensor x, bool causal=False) -> Tensor", "True").calls
    assert {len(item.call.inputs[0].shape) for item in calls} == {1, 2, 3}
    assert {item.dtype for item in calls} == {"float32", "bfloat16", "float16", "float64"}
    assert any(item.call.params == {"causal": True} for item in calls)


def test_samples_come_first_and_a_refused_one_is_reported() -> None:
    samples = {
        "sample-1": Call(inputs=(Input(name="x", shape=(3, 5), dtype="float32"),)),
        "sample-2": Call(inputs=(Input(name="x", shape=(3, 7), dtype="float32"),)),
    }
    result = find_calls(schema("(Tensor x) -> Tensor"), samples, accepting("x[1] == 5"))
    assert [item.row for item in result.calls[:1]] == ["sample-1"]
    assert result.refused == {"sample-2": "not x[1] == 5"}


def test_what_was_accepted_before_is_called_though_it_is_refused_now() -> None:
    anything, nothing = accepting("True"), accepting("False")
    sample = {"sample-1": Call(inputs=(Input(name="x", shape=(3, 7), dtype="float32"),))}
    now = accepting("x[-1] % 2 == 0 and x_dtype == 'float32'")
    before = find_calls(schema("(Tensor x) -> Tensor"), sample, now, anything)
    assert ([item.row for item in before.calls[:1]], before.refused) == (["sample-1"], {})
    assert {item.dtype for item in before.calls} == {"float32", "bfloat16", "float16", "float64"}
    broken = find_calls(schema("(Tensor x) -> Tensor"), {}, nothing, anything)
    assert [item.row for item in broken.calls[:2]] == ["call-1", "call-2"]
    never = find_calls(schema("(Tensor x) -> Tensor"), {}, nothing, nothing)
    assert (never.calls, never.reason.endswith("; all were refused alike: not False")) == ((), True)


def test_a_call_that_is_accepted_now_is_preferred() -> None:
    now = accepting("len(x) == 3")
    calls = find_calls(schema("(Tensor x) -> Tensor"), {}, now, accepting("True")).calls
    assert len(calls[0].call.inputs[0].shape) == 3
    either = accepted_by_either(now, accepting("len(x) == 2"))
    by_rank = [Call(inputs=(Input(name="x", shape=(1,) * rank, dtype="float32"),)) for rank in range(4)]
    assert [either(call) for call in by_rank] == ["not len(x) == 3", "not len(x) == 3", "", ""]


def test_equal_sizes_and_numbers_change_together() -> None:
    given = Call(
        inputs=(Input(name="x", shape=(32, 64), dtype="float32"), Input(name="w", shape=(64,), dtype="float32")),
        params={"n": 64, "k": 3},
    )
    derived = derived_calls(given, accepting("x[-1] == w[0] == n and x[0] > 0"), 1 << 20)
    assert shapes(derived["odd"]) == {"x": (7, 67), "w": (67,)}
    assert derived["odd"].params == {"n": 67, "k": 3}
    assert shapes(derived["one-row"])["x"] == (1, 67)
    assert "zero-rows" not in derived
    assert shapes(derived["zero-columns"])["w"] == (0,)


def test_the_schema_says_what_is_written_and_shared() -> None:
    call = Call(inputs=(Input(name="x", shape=(2,), dtype="float32"), Input(name="y", shape=(2,), dtype="float32")))
    whole = completed(schema("(Tensor(a!) x, Tensor y) -> (Tensor(a!), Tensor)"), call)
    assert [item.mutated for item in whole.inputs] == [True, False]
    assert [item.name for item in whole.outputs] == ["output0", "output1"]
    assert whole.aliases == {"output0": "x"}


def test_calls_near_one_that_is_refused_in_a_new_way_are_tried() -> None:
    """Each check hides the next one, as in code: the dtype that goes with another argument, then shapes that an error mentions."""

    def refusal(call: Call) -> str:
        given = {item.name: item for item in call.inputs}
        block = call.params["block_size"]
        assert isinstance(block, list)
        if given["input"].dtype not in ("int8", "uint8"):
            return f"Unsupported dtype: {given['input'].dtype}"
        if call.params["input_dtype"] != f"torch.{given['input'].dtype}":
            return f"Expected: {call.params['input_dtype']}, got: {given['input'].dtype}"
        sizes = given["input"].shape
        if len(block) != len(sizes) or 0 in block or any(s % b for s, b in zip(sizes, block, strict=True)):
            return f"block_size {block} does not divide the input"
        blocks = [s // b for s, b in zip(sizes, block, strict=True)]
        return "" if list(given["scale"].shape) == blocks else f"shape '{blocks}' is invalid"

    text = "(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype) -> Tensor"
    first = find_calls(schema(text), {}, refusal).calls[0].call
    assert refusal(first) == ""
    derived = derived_calls(first, refusal, 1 << 20)
    assert {"odd", "larger", "long"} <= derived.keys()


def test_offsets_have_one_element_more_than_there_are_parts() -> None:
    text = "(Tensor src, Tensor indptr, Tensor? out=None) -> Tensor"
    first = found(text, "len(indptr) == 1 and src[0] == indptr[0] - 1").calls[0].call
    assert shapes(first) == {"src": (32, 64), "indptr": (33,)}
    assert [item.ascending for item in first.inputs] == [False, True]
    derived = derived_calls(first, accepting("src[0] == indptr[0] - 1"), 1 << 20)
    assert shapes(derived["odd"]) == {"src": (7, 67), "indptr": (8,)}
    assert shapes(derived["one-row"]) == {"src": (1, 67), "indptr": (2,)}


def test_a_call_whose_results_say_something_is_preferred() -> None:
    def worth(call: Call) -> Weakness | None:
        return (
            None if call.params["mask"] == [True, True] else "undefined" if True in call.params["mask"] else "nothing"
        )

    text = "(Tensor x, bool[2] mask) -> (Tensor, Tensor)"
    calls = find_calls(schema(text), {}, accepting("True"), worth=worth).calls
    assert calls[0].call.params == {"mask": [True, True]}
    assert [item.optional for item in calls[0].call.outputs] == [True, True]
    weak = find_calls(schema(text), {}, accepting("mask[0] == False"), worth=lambda call: "constant").calls
    assert weak[0].call.params == {"mask": [False, False]}
