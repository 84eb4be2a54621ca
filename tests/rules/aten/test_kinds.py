"""Which YAML files are torchgen's where nothing in them is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.examples import SOUND_NATIVE as NATIVE
from opschema_rules.aten.pack import PACK

DERIVATIVES, TAGS = "derivatives.yaml", "tags.yaml"


def found(files: dict[str, str]) -> list[str]:
    linted = lint_files([PACK], files)
    return [f"{item.code} {item.place.path} {linted.text(item.place)!r}" for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (TAGS, "", ["ATN501 tags.yaml ''"]),
        (TAGS, "[]\n", ["ATN501 tags.yaml '[]'"]),
        (TAGS, "core: An operator of the core set.\n", ["ATN501 tags.yaml 'core'"]),
        (TAGS, "- core\n- pointwise\n", ["ATN501 tags.yaml 'core'", "ATN501 tags.yaml 'pointwise'"]),
        (TAGS, "- tga: core\n  desc: x\n", ["ATN503 tags.yaml 'tga'"]),
        (DERIVATIVES, "", ["ATN401 derivatives.yaml ''"]),
        (DERIVATIVES, "[]\n", ["ATN401 derivatives.yaml '[]'"]),
        (DERIVATIVES, "relu(Tensor self) -> Tensor: grad\n", ["ATN401 derivatives.yaml 'relu(Tensor self) -> Tensor'"]),
        (DERIVATIVES, "- relu\n", ["ATN401 derivatives.yaml 'relu'"]),
        (DERIVATIVES, "- nmae: relu(Tensor self) -> Tensor\n  self: grad\n", ["ATN402 derivatives.yaml 'nmae'"]),
    ],
)
def test_a_file_beside_native_functions_is_known_by_its_name(name: str, text: str, expected: list[str]) -> None:
    assert found({"native_functions.yaml": NATIVE, name: text}) == expected
    assert found({"aten/native_functions.yaml": NATIVE, name: text}) == []


def test_derivatives_lie_beside_what_reads_them() -> None:
    files = {"aten/native_functions.yaml": NATIVE, "autograd/derivatives.yaml": "- relu\n"}
    assert found(files) == []
    assert found({**files, "autograd/load_derivatives.py": ""}) == ["ATN401 autograd/derivatives.yaml 'relu'"]


def test_tags_of_another_kind_elsewhere_are_nobodys() -> None:
    assert found({"native_functions.yaml": NATIVE, "docs/tags.yaml": "- python\n- howto\n"}) == []


@pytest.mark.parametrize(
    "text",
    [
        "- tag: v1.0\n  desc: First release\n- tag: v1.1\n  desc: Second release\n",
        "- name: Build -> Test\n- name: Test -> Deploy\n",
        "- name: Install (all) -> done\n- name: Check -> done\n",
        "- func: print(1)\n- func: main(x)\n",
        "backend: S3\ncustom:\n  - a\n",
        "backend: Agg\nsupported: [png]\n",
        "name: ci\nsupported: [linux]\nblacklist: [windows]\n",
    ],
)
@pytest.mark.parametrize("name", ["config.yaml", "docs/tags.yaml"])
def test_words_of_torchgen_do_not_make_a_file_torchgens(name: str, text: str) -> None:
    assert found({name: text}) == []


def test_a_letter_that_is_another_one_does_not_hide_a_backend() -> None:
    text = "backend: XLA\ncpp_na+espace: torch_xla\nsupported:\n  - abs\n"
    found = lint_files([PACK], {"xla.yaml": text}, ["ATN602"]).diagnostics
    assert [item.message for item in found] == ["torchgen has no key `cpp_na+espace`; did you mean `cpp_namespace`?"]
    other = text.replace("cpp_na+espace", "namespace")
    assert lint_files([PACK], {"xla.yaml": other}).diagnostics == []


@pytest.mark.parametrize("between", [" ", "    ", "\t"])
def test_a_backend_whose_namespace_is_indented_is_not_overlooked(between: str) -> None:
    text = f"backend: XLA\n{between}cpp_namespace: torch_xla\nsupported:\n- abs\n"
    assert [item.code for item in lint_files([PACK], {"xla.yaml": text}).diagnostics] == ["YML001"]
    assert lint_files([PACK], {"xla.yaml": text.replace("cpp_", "")}).diagnostics == []
