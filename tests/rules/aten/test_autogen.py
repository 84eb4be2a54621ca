"""The field autogen against what torchgen generates."""

from __future__ import annotations

import pytest

from tests.rules.aten.native_findings import fixed, lines, messages

FILL = """\
- func: fill_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: fill_
  autogen: fill, fill.out
"""
PAIR = """\
- func: tanh(Tensor self) -> Tensor
  dispatch:
    CPU: tanh
- func: tanh_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: tanh_
  autogen: tanh.out
"""


@pytest.mark.parametrize("text", [FILL, FILL.replace("fill, fill.out", "fill.out, fill"), PAIR])
def test_lines_that_are_right(text: str) -> None:
    assert lines(text) == []


def test_one_of_two_is_missing() -> None:
    text = FILL.replace("fill, ", "")
    assert lines(text) == ["ATN331 4:fill.out"]
    assert messages(text) == [
        "torchgen generates `fill` for `fill_`, and that must be listed: `autogen: fill, fill.out`"
    ]
    assert fixed(text, "ATN331") == FILL


def test_the_line_is_missing() -> None:
    text = """\
- func: _prod_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: prod_
- func: _prod.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: prod_out
"""
    assert lines(text) == ["ATN331 1:_prod_"]
    assert fixed(text, "ATN331") == text.replace("prod_\n-", "prod_\n  autogen: _prod\n-")


def test_a_misspelt_name_that_keeps_torchgen_from_generating() -> None:
    text = PAIR.replace("tanh.out", "tanh.oot")
    assert lines(text) == ["ATN332 7:tanh.oot <- 4:tanh_"]
    assert fixed(text, "ATN332") == PAIR


def test_several_misspelt_names() -> None:
    text = FILL.replace("fill, fill.out", "filll, fill.uot")
    assert lines(text) == ["ATN332 4:filll <- 1:fill_", "ATN332 4:fill.uot <- 1:fill_"]
    assert fixed(text, "ATN332") == FILL


def test_an_out_variant_that_is_declared() -> None:
    text = PAIR + "- func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    CPU: tanh_out\n"
    assert lines(text) == ["ATN332 7:tanh.out <- 4:tanh_"]
    assert messages(text) == ["torchgen generates no `tanh.out` for `tanh_`; all its variants are declared"]


def test_lines_that_torchgen_does_not_look_at() -> None:
    composite = "- func: tanh(Tensor self) -> Tensor\n  autogen: {}\n"
    assert lines(composite.format("tanh.out")) == []
    assert lines(composite.format("tan.out")) == ["ATN332 2:tan.out <- 1:tanh"]


def test_a_line_in_another_entry() -> None:
    text = PAIR.replace("  autogen: tanh.out\n", "").replace("CPU: tanh\n", "CPU: tanh\n  autogen: tanh.out\n")
    assert lines(text) == ["ATN333 4:tanh.out <- 5:tanh_"]
    assert fixed(text, "ATN333") == text + "  autogen: tanh.out\n"


def test_a_line_in_both_entries() -> None:
    assert lines(PAIR.replace("CPU: tanh\n", "CPU: tanh\n  autogen: tanh.out\n")) == []


def test_a_name_twice() -> None:
    assert lines(PAIR.replace("tanh.out", "tanh.out, tanh.out")) == ["ATN334 7:tanh.out"]


def test_what_cannot_be_generated() -> None:
    text = FILL.replace("fill_(", "fill(").replace("fill, fill.out", "fill.out")
    assert lines(text) == ["ATN335 1:Tensor(a!) <- 4:fill.out"]


def test_an_operator_that_writes_self_and_is_not_called_so() -> None:
    text = "- func: fill(Tensor(a!) self) -> Tensor\n  dispatch:\n    CPU: fill\n  autogen: fill.out\n"
    assert lines(text) == ["ATN335 1:Tensor(a!) <- 4:fill.out"]
    assert lines(text.replace("  autogen: fill.out\n", "")) == []


def test_an_operator_that_returns_a_number_beside_tensors() -> None:
    text = "- func: count(Tensor self) -> (Tensor, int)\n  dispatch:\n    CPU: count\n  autogen: count.out\n"
    assert lines(text) == ["ATN335 1:int <- 4:count.out"]
    assert lines(text.replace("int)", "Tensor[])")) == []


def test_variants_that_differ_are_reported_instead() -> None:
    text = PAIR.replace("tanh(Tensor self)", "tanh(Tensor self, int n)")
    assert lines(text) == ["ATN311 4:tanh_ <- 1:int n"]


@pytest.mark.parametrize("value", ["", "[tanh.out]", "3", "{a: b}"])
def test_a_malformed_line_is_not_judged(value: str) -> None:
    assert lines(PAIR.replace("autogen: tanh.out", f"autogen: {value}")) == []


@pytest.mark.parametrize("value", ["fill,fill.out", "fill ,fill.out,"])
def test_names_without_a_space_between(value: str) -> None:
    text = FILL.replace("fill, fill.out", value)
    assert lines(text) == [f"ATN332 4:{value}"]
    assert fixed(text, "ATN332") == FILL


@pytest.mark.parametrize("value", ["fill_out", "fill."])
def test_names_that_are_none(value: str) -> None:
    assert lines(FILL.replace("fill, fill.out", f"fill, {value}")) == [f"ATN332 4:{value} <- 1:fill_"]
