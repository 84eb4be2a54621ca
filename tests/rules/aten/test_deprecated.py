from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.aten.deprecated import read_call
from opschema_rules.aten.examples import example_files
from opschema_rules.aten.pack import PACK

RULES = ("ATN451", "ATN452", "ATN453", "ATN454")
NAME = "add(Tensor self, Scalar alpha, Tensor other) -> Tensor"


def lint(deprecated: str) -> Linted:
    return lint_files([PACK], {**example_files([]), "deprecated.yaml": deprecated}, RULES)


@pytest.mark.parametrize(
    ("text", "name", "arguments", "operator"),
    [
        ("add(self, other)", "add", ["self", "other"], "add"),
        ("add_out(out, self)", "add_out", ["out", "self"], "add"),
        ("add.Tensor(self,other)", "add", ["self,other"], "add"),
    ],
)
def test_calls(text: str, name: str, arguments: list[str], operator: str) -> None:
    call = read_call(text)
    assert call is not None
    assert (call.name, call.operator) == (name, operator)
    assert [(item, text[slice(*span)]) for item, span in call.arguments] == [(item, item) for item in arguments]


def test_no_call() -> None:
    assert read_call("add self") is None


@pytest.mark.parametrize(
    ("deprecated", "text", "message"),
    [
        (f"- name: {NAME}\n  aten: add(self, other, alpha)\n", "", ""),
        (
            f"- name: {NAME}\n  aten: ad(self, other, alpha)\n",
            "ad",
            "no operator is called `ad`; did you mean `add`?",
        ),
        (
            f"- name: {NAME}\n  aten: add(self, other,alpha)\n",
            "other,alpha",
            "arguments are separated by a comma and one space",
        ),
        (
            f"- name: {NAME}\n  aten: add(self, alpha, other)\n",
            "alpha",
            "no overload of `add` takes this call; the closest is `add.Tensor`: it takes `Tensor other` there",
        ),
        (
            f"- name: {NAME}(a!)\n  aten: add(self, other, alpha)\n",
            "Tensor(a!)",
            "neither `self` nor an out argument has this annotation",
        ),
        (f"- name: {NAME}\n  aten: 3\n- name: {NAME}\n  aten: add(self, other)\n", "3", None),
        (
            f"- name: {NAME}\n  aten: add(self, other, alpha)\n- aten: add(self, other, alpha)\n",
            "aten",
            "the entry has no `name`, the deprecated signature, a schema",
        ),
    ],
)
def test_deprecated_entries(deprecated: str, text: str, message: str | None) -> None:
    linted = lint(deprecated)
    found = [(linted.text(item.place), item.message) for item in linted.diagnostics]
    if message is None:
        message = "`aten` is the call that it stands for, and this is the number `3`"
    assert found == ([(text, message)] if text else [])


def test_a_schema_is_spaced_as_torchgen_wants_it() -> None:
    wrong = "- name: add(Tensor self,Scalar alpha, Tensor other) -> Tensor\n  aten: add(self, other, alpha)\n"
    texts, left = fix_files([PACK], {**example_files([]), "deprecated.yaml": wrong}, RULES)
    assert texts == {"deprecated.yaml": wrong.replace("self,", "self, ", 1)}
    assert left.codes() == []


def test_one_fault_in_the_installed_torch_is_all_that_is_found() -> None:
    torchgen = pytest.importorskip("torchgen")
    folder = Path(torchgen.__file__).parent / "packaged"
    names = ("ATen/native/native_functions.yaml", "autograd/deprecated.yaml")
    files = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    files[names[1]] += "- name: relu(Tensor self, Scalar x) -> Tensor\n  aten: relu(self, x)\n"
    found = [item.message for item in lint_files([PACK], files, RULES).diagnostics]
    assert found == ["no overload of `relu` takes this call; the closest is `relu`: it takes 1 argument only"]
