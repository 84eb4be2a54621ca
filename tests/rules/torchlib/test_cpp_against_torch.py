"""Findings on C++ registrations against torch: ``cpp_verdicts.json`` has what torch 2.13 does with each case.

With ``OPSCHEMA_SLOW`` the cases are compiled with the headers of the installed torch, loaded and called, and the verdicts compared.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK
from tests.rules.torchlib.cpp_cases import cases
from tests.rules.torchlib.cpp_form_cases import form_cases
from tests.rules.torchlib.cpp_oracle import namespace_of, text_of, verdicts

VERDICTS = Path(__file__).with_name("cpp_verdicts.json")
CASES = (*cases(), *form_cases())

#: What torch or the compiler refuses without a finding, and why.
UNSEEN = {
    "an optional written tensor by reference": "does not compile",
    "an enumeration of its own": "does not compile; its type may be a typedef",
    "a pointer": "does not compile",
    "TORCH_FN of an overloaded function": "does not compile",
    "the address of an overloaded function": "does not compile",
    "an unboxed function as a boxed one": "does not compile",
    "a variable with a lambda": "local variables are not followed",
}

NATIVE = """\
add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, \
MemoryFormat? memory_format=None) -> Tensor
as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)
resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)
clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
_local_scalar_dense(Tensor self) -> Scalar
"""


@cache
def findings() -> tuple[tuple[Diagnostic, ...], ...]:
    """The errors and warnings of each case, all of them found in one run."""
    files = {f"{namespace_of(number)}/ops.cpp": text_of(number, case) for number, case in enumerate(CASES)}
    entries = "".join(f"- func: {line}\n  dispatch:\n    CPU: kernel\n" for line in NATIVE.splitlines())
    flag = "  use_const_ref_for_mutable_tensors: True\n"
    files["aten/src/ATen/native/native_functions.yaml"] = entries.replace("- func: clamp", f"{flag}- func: clamp")
    by_path: dict[str, list[Diagnostic]] = {path: [] for path in files}
    for item in lint_files(PACK, files).diagnostics:
        if item.severity is not Severity.INFO:
            by_path[item.place.path].append(item)
    return tuple(tuple(by_path[f"{namespace_of(number)}/ops.cpp"]) for number in range(len(CASES)))


def recorded() -> dict[str, str]:
    return msgspec.json.decode(VERDICTS.read_bytes(), type=dict[str, str])


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_errors_are_what_torch_refuses(number: int) -> None:
    case, found = CASES[number], findings()[number]
    refused = recorded()[case.name] != "ok"
    if refused:
        assert bool(found) is (case.name not in UNSEEN)
    else:
        assert [item.message for item in found if item.severity is Severity.ERROR] == []


def test_the_table() -> None:
    refused = recorded()
    table = Counter(
        (
            refused[case.name] != "ok",
            any(refused[case.name] != "ok" or item.severity is Severity.ERROR for item in found),
        )
        for case, found in zip(CASES, findings(), strict=True)
    )
    assert len(refused) == len(CASES) >= 200
    assert table[False, True] == 0
    assert table[True, False] == len(UNSEEN)


@pytest.mark.skipif(not os.environ.get("OPSCHEMA_SLOW"), reason="compiles C++ for a minute")
def test_the_verdicts_are_those_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if not version("torch").startswith("2.13."):
        pytest.skip("the verdicts are those of torch 2.13")
    assert dict(zip([case.name for case in CASES], verdicts(CASES, tmp_path), strict=True)) == recorded()
