"""Declared names against real signatures."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import pytest

from opschema_cli.verify.binding import (
    Arguments,
    UnboundError,
    bind,
    bind_function,
    for_call,
    for_constructor,
    without_self,
)


def call(function: Callable[..., object], **given: Any) -> Arguments:
    return for_call(signature(function), inputs=given.pop("inputs", {}), params=given.pop("params", {}), **given)


def test_inputs_go_by_name_whatever_their_order() -> None:
    assert call(lambda weight, x: 0, inputs={"x": 1, "weight": 2}) == Arguments((2, 1))


def test_an_input_that_the_call_does_not_take_is_left_out() -> None:
    assert call(lambda x: 0, inputs={"carrier": 0, "x": 1}) == Arguments((1,))
    assert call(lambda: 0, inputs={"carrier": 0}) == Arguments()


def test_a_required_argument_that_nothing_gives() -> None:
    with pytest.raises(UnboundError, match=r"^the call needs `weight`, which the declaration does not give$"):
        call(lambda weight: 0, inputs={"x": 1})


def test_an_omitted_input_is_none_where_it_is_required() -> None:
    assert call(lambda x, bias: 0, inputs={"x": 1}, omitted=["bias"]) == Arguments((1, None))
    assert call(lambda x, bias=None: 0, inputs={"x": 1}, omitted=["bias"]) == Arguments((1,))


def test_keyword_only_arguments() -> None:
    def forward(x: int, *, scale: int, eps: float = 0.0) -> None: ...

    assert call(forward, inputs={"x": 1}, params={"scale": 2}) == Arguments((1,), {"scale": 2})
    with pytest.raises(UnboundError, match="`scale`"):
        call(forward, inputs={"x": 1})


def test_positional_only_arguments_keep_their_places() -> None:
    def forward(x: int, y: int = 7, /, z: int = 8) -> None: ...

    assert call(forward, inputs={"x": 1, "z": 3}) == Arguments((1, 7, 3))
    assert call(forward, inputs={"x": 1}) == Arguments((1,))


def test_starred_arguments_take_inputs_in_order() -> None:
    def forward(*tensors: int) -> None: ...

    def first(x: int, scale: int = 5, *tensors: int) -> None: ...

    assert call(forward, inputs={"a": 1, "b": 2}) == Arguments((1, 2))
    assert call(first, inputs={"a": 1, "x": 2, "b": 3}) == Arguments((2, 5, 1, 3))


def test_double_starred_arguments_take_what_else_is_named() -> None:
    def forward(x: int, **options: int) -> None: ...

    assert call(forward, inputs={"x": 1, "y": 2}, params={"n": 3}) == Arguments((1,), {"y": 2, "n": 3})


def test_a_parameter_that_is_called_like_a_starred_one_is_not_it() -> None:
    def forward(*args: int, **kwargs: int) -> None: ...

    assert call(forward, inputs={"args": 1}, params={"kwargs": 2}) == Arguments((1,), {"kwargs": 2})


def test_params_go_to_the_constructor_first() -> None:
    def init(n: int, dtype: str, eps: float = 0.1) -> None: ...

    def forward(x: int, n: int = 0, scale: int = 1) -> None: ...

    params = {"n": 4, "scale": 2}
    made = for_constructor(signature(init), signature(forward), params=params, extras={"dtype": "f", "device": "d"})
    assert made == {"dtype": "f", "n": 4}
    assert bind(signature(init), made, where="the constructor") == Arguments((4, "f"))
    assert call(forward, inputs={"x": 1}, params=params, made_with=made) == Arguments((1, 0, 2))


def test_a_param_goes_to_both_if_the_call_requires_it() -> None:
    assert call(lambda x, n: 0, inputs={"x": 1}, params={"n": 4}, made_with=["n"]) == Arguments((1, 4))


def test_a_declared_dtype_wins_over_the_cells() -> None:
    def init(dtype: str) -> None: ...

    made = for_constructor(signature(init), Signature(), params={"dtype": "b"}, extras={"dtype": "f"})
    assert made == {"dtype": "b"}


def test_an_open_constructor_takes_params_that_the_call_does_not() -> None:
    def init(**options: int) -> None: ...

    made = for_constructor(signature(init), signature(lambda x, n: 0), params={"n": 1, "m": 2}, extras={"dtype": "f"})
    assert made == {"m": 2}
    assert bind(signature(init), made, where="the constructor", keep=True) == Arguments((), {"m": 2})


def test_a_param_without_a_place() -> None:
    with pytest.raises(UnboundError, match=r"^neither the constructor nor the call takes `dim`$"):
        call(lambda x: 0, inputs={"x": 1}, params={"dim": 0, "eps": 1}, made_with=["eps"])


def test_a_constructor_that_needs_more() -> None:
    with pytest.raises(UnboundError, match=r"^the constructor needs `batch`, which the declaration does not give$"):
        bind(signature(lambda batch: 0), {}, where="the constructor")


# References


def rms_norm(self: int, normalized_shape: int, weight: int | None = None, eps: float | None = None) -> None: ...


def reference(function: Callable[..., object], inputs: dict[str, object], params: dict[str, object]) -> Arguments:
    return bind_function(signature(function), inputs=inputs, params=params)


def test_an_input_with_another_name_goes_to_the_place_that_is_left() -> None:
    found = reference(rms_norm, {"x": 1, "weight": 2}, {"normalized_shape": 3, "eps": 4})
    assert found == Arguments((1, 3, 2, 4))


def test_inputs_with_other_names_keep_their_order() -> None:
    assert reference(lambda first, other: 0, {"a": 1, "b": 2}, {}) == Arguments((1, 2))


@pytest.mark.parametrize(
    ("inputs", "params", "reason"),
    [
        ({"x": 1, "bias": 2}, {"normalized_shape": 3}, "the reference does not take `x`, `bias`"),
        ({"x": 1}, {"normalized_shape": 3, "mode": 1}, "the reference does not take `mode`"),
        ({}, {"normalized_shape": 3}, "the reference needs `self`, which the declaration does not give"),
        ({"x": 1}, {}, "the reference does not take `x`"),
    ],
)
def test_what_does_not_fit_a_reference(inputs: dict[str, object], params: dict[str, object], reason: str) -> None:
    with pytest.raises(UnboundError, match=reason):
        reference(rms_norm, inputs, params)


def test_a_starred_reference() -> None:
    def broadcast(*tensors: int) -> None: ...

    assert reference(broadcast, {"a": 1, "b": 2}, {}) == Arguments((1, 2))


# Signatures


class Op:
    def forward(self, x: int) -> None: ...


def test_self_is_taken_away() -> None:
    assert [*without_self(Op.forward).parameters] == ["x"]
    assert without_self(Op.forward).parameters["x"].kind is Parameter.POSITIONAL_OR_KEYWORD


def test_a_builtin_without_signature() -> None:
    with pytest.raises(UnboundError, match="Python cannot determine the signature"):
        without_self(max)
