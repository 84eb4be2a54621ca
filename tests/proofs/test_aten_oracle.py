"""The oracle of the pack aten sees what torchgen takes by mistake."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import pytest

from opschema_cli.proof import Level, Observation
from opschema_rules.aten.pack import PACK
from tests.proofs.aten_oracle import observe

pytestmark = pytest.mark.skipif(not version("torch").startswith("2.13."), reason="the words are those of torch 2.13")

NATIVE = "yaml"
BACKEND = "yaml backend.yaml"
HEAD = "backend: XLA\ncpp_namespace: torch_xla\nsupported: "
RELU = "namespace torch_xla {\nat::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }\n}\n"

SEEN: dict[str, tuple[list[tuple[str, str]], Level, str]] = {
    "what is sound": ([], "right", ""),
    "an unknown field": ([(NATIVE, "- func: tanh(Tensor self) -> Tensor\n  variant: method\n")], "refused", "leftover"),
    "a default that torch cannot read": (
        [(NATIVE, "- func: tanh(Tensor self, bool flag=true) -> Tensor\n")],
        "refused",
        "torch: invalid numeric default value",
    ),
    "two arguments of one name": (
        [(NATIVE, "- func: tanh(Tensor self, int n, *, int n) -> Tensor\n")],
        "refused",
        "g++: redefinition",
    ),
    "a kernel that is not a name": (
        [(NATIVE, "- func: tanh(Tensor self) -> Tensor\n  dispatch:\n    CPU: tanh-cpu\n")],
        "refused",
        "g++: expected initializer",
    ),
    "a formula that does not compile": (
        [("yaml derivatives.yaml", '- name: relu(Tensor self) -> Tensor\n  self: "0"\n')],
        "refused",
        "g++: operands to",
    ),
    "a tag that is given twice": (
        [(NATIVE, "- func: tanh(Tensor self) -> Tensor\n  tags: [core, core]\n")],
        "wrong",
        "tags: core (left out)",
    ),
    "autogen in an entry that nothing is generated from": (
        [
            (
                NATIVE,
                "- func: tanh(Tensor self) -> Tensor\n  autogen: tanh.out\n"
                "- func: tanh_(Tensor(a!) self) -> Tensor(a!)\n",
            )
        ],
        "wrong",
        "autogen",
    ),
    "an operator under symint alone": ([(BACKEND, HEAD + "[relu]\nsymint: [expand]\n")], "wrong", "symint: expand"),
    "a kernel that is defined": ([(BACKEND, HEAD + "[relu]\n"), ("cpp kernels.cpp", RELU)], "right", ""),
    "a kernel that is not defined": (
        [(BACKEND, HEAD + "[relu, square]\n"), ("cpp kernels.cpp", RELU)],
        "refused",
        "undefined reference to `torch_xla::XLANativeFunctions::square",
    ),
    "a kernel that is not declared": (
        [(BACKEND, HEAD + "[square]\n"), ("cpp kernels.cpp", RELU)],
        "refused",
        "g++: no declaration matches",
    ),
}


SPACED = ("tanh", '"tanh "', "tanh_cpu")
"""Names of kernels, of which the first two are the same."""


@cache
def _observed() -> list[Observation]:
    """All trees, observed by one process: those of SEEN, then those of SPACED."""
    text = "- func: tanh(Tensor self) -> Tensor\n  dispatch:\n    CPU: {}\n"
    trees = [fences for fences, _, _ in SEEN.values()] + [[(NATIVE, text.format(name))] for name in SPACED]
    return list(observe([PACK.example(fences) for fences in trees]))


@pytest.mark.parametrize("title", SEEN)
def test_levels(title: str) -> None:
    _, level, message = SEEN[title]
    seen = _observed()[list(SEEN).index(title)]["emission"]
    assert (seen.level, message in seen.message) == (level, True), seen


def test_space_in_what_is_written_makes_no_difference() -> None:
    plain, spaced, other = _observed()[len(SEEN) :]
    assert plain["emission"] == spaced["emission"] != other["emission"]
