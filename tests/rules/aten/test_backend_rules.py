"""Findings in a backend's YAML: where they stand, what they say, and how their fixes change the text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.aten.examples import SOUND_NATIVE
from opschema_rules.aten.pack import PACK
from tests.rules.aten.oracle import BACKEND, RELEASE, emission_refusal

HEAD = "backend: XLA\ncpp_namespace: torch_xla\n"
CODES = [rule.code for rule in PACK.rules if rule.code.startswith("ATN6")]


def lint(text: str, files: Mapping[str, str] | None = None) -> Linted:
    """Lint a backend's YAML beside the small native_functions.yaml of the examples."""
    return lint_files([PACK], {"native_functions.yaml": SOUND_NATIVE, **(files or {}), "xla.yaml": text}, CODES)


def found(text: str, files: Mapping[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Code, severity and place (the text there) of every finding."""
    linted = lint(text, files)
    return [(item.code, item.severity.value, linted.text(item.place)) for item in linted.diagnostics]


def messages(text: str) -> list[str]:
    return [item.message for item in lint(text).diagnostics]


def fixed(text: str, *, unsafe: bool = False) -> str:
    files = {"native_functions.yaml": SOUND_NATIVE, "xla.yaml": text}
    return fix_files([PACK], files, CODES, unsafe=unsafe)[0].get("xla.yaml", text)


SOUND = [
    "supported:\n",
    "supported:\n  - relu.out\n",  # which torchgen generates
    "full_codegen:\n  - relu\nir_gen:\n  - expand\nsupported:\n  - expand\nsymint:\n  - expand\n",
    "supported:\n  - relu\nautograd:\n  - square\n",
    "class_name: Kernels\nuse_out_as_primary: true\ndevice_guard: no\nsupported: [relu, add.out]\n",
    "non_native:\n  - func: cast(Tensor x, ScalarType dtype) -> Tensor\n    properties: [ShapeCompute]\n",
    "supported:\n  - add.out: {structured: true, define_meta: false}\n",
    "full_codegen: []\nautograd: []\n",
]


@pytest.mark.parametrize("text", SOUND)
def test_what_is_sound_has_no_findings(text: str) -> None:
    assert found(HEAD + text) == []


FAULTS = [
    ("supported:\n  - rleu\n", "ATN612", "rleu"),
    ("supported:\n  - add\n", "ATN612", "add"),
    ("supported:\n  - aten::relu\n", "ATN612", "aten::relu"),
    ("symint:\n  - rleu\n", "ATN612", "rleu"),
    ("ir_gen:\n  - rleu\n", "ATN612", "rleu"),
    ("supported:\n  - 'rleu'\n", "ATN612", "'rleu'"),
    ("supported:\n  - rleu: {structured: true}\n", "ATN612", "rleu"),
    ("supported:\n  - relu_out\n", "ATN611", "relu_out"),
    ("supported:\n  - relu.\n", "ATN611", "relu."),
    ("supported:\n  - relu, relu_\n", "ATN611", "relu, relu_"),
    ("supported:\n  - __ixyz__\n", "ATN611", "__ixyz__"),
    ("supported:\n  - f_functional_\n", "ATN611", "f_functional_"),
    ("supported:\n  - 3\n", "ATN606", "3"),
    ("supported:\n  - [relu]\n", "ATN606", "[relu]"),
    ("symint:\n  - expand: {structured: true}\nsupported:\n  - expand\n", "ATN606", "expand: {structured: true}"),
    ("supported:\n  - add.out:\n", "ATN606", "add.out"),
    ("supported:\n  - add.out: {structured: maybe}\n", "ATN606", "maybe"),
    ("supported:\n  - add.out:\n    strctured: true\n", "ATN606", "strctured"),
    ("supported:\n  - add.out:\n    structured: maybe\n", "ATN606", "maybe"),
    ("supported: relu\n", "ATN605", "relu"),
    ("supported: {relu: }\n", "ATN605", "{relu: }"),
    ("full_codegen:\n", "ATN605", "full_codegen"),
    ("ir_gen: 3\n", "ATN605", "3"),
    ("non_native: 3\n", "ATN605", "3"),
    ("autograd: ~\n", "ATN605", "autograd"),
    ("class_name: 3\n", "ATN603", "3"),
    ("class_name: a::b\n", "ATN603", "a::b"),
    ("device_guard:\n", "ATN603", "device_guard"),
    ("use_out_as_primary: 'true'\n", "ATN603", "'true'"),
    ("class_name: !x Kernels\n", "ATN608", "!x Kernels"),
    ("extra_headers: x.h\n", "ATN602", "extra_headers"),
    ("custom: [x]\n", "ATN602", "custom"),
    ("[a]: b\n", "ATN608", "[a]"),
    ("<<: {device_guard: true}\n", "ATN608", "<<"),
    ("3: b\n", "ATN602", "3"),
    ("backend: XLA\n", "ATN604", "backend"),
    ("supported: [relu]\nsymint: [relu]\n", "ATN622", "relu"),
    ("supported: [relu]\nsymint: [expand]\n", "ATN621", "expand"),
    ("supported:\nsymint: [expand]\n", "ATN621", "expand"),
    ("supported: [relu]\nautograd: [relu_]\n", "ATN614", "relu_"),
    ("supported: [relu.out]\nautograd: [relu]\n", "ATN614", "relu"),
    ("supported: [relu]\nautograd: [relu]\n", "ATN614", "relu"),
    ("supported: [relu, relu]\n", "ATN613", "relu"),
    ("full_codegen: [relu]\nsupported: [relu]\n", "ATN613", "relu"),
    ("non_native:\n  - func: f(Tensor x)\n", "ATN631", ""),
    ("non_native:\n  - x\n", "ATN631", "x"),
    ("non_native:\n  - opkind: x\n", "ATN631", "opkind"),
    ("non_native:\n  - func: f(Tensor x) -> Tensor\n    propertes: []\n", "ATN631", "propertes"),
    ("non_native:\n  - func: f(Tensor x) -> Tensor\n    properties: [Lowr]\n", "ATN631", "Lowr"),
]


@pytest.mark.parametrize(("text", "code", "place"), FAULTS)
def test_a_fault_has_one_error_at_its_characters(text: str, code: str, place: str) -> None:
    assert found(HEAD + text) == [(code, "error", place)]


HEADS = [
    ("cpp_namespace: x\nsupported: [relu]\n", [("ATN601", "error", "cpp_namespace")]),
    ("backend:\ncpp_namespace: x\nsupported: [relu]\n", [("ATN601", "error", "backend")]),
    ("backend: XLA\ncpp_namespace: x::y::z\nsupported: [relu]\n", [("ATN603", "error", "x::y::z")]),
    ("backend: XLA\ncpp_namespace: 'x::'\nsupported: [relu]\n", [("ATN603", "error", "'x::'")]),
    ("backend: [XLA]\ncpp_namespace: x\nsupported: [relu]\n", [("ATN603", "error", "[XLA]")]),
    ("backend: XAL\ncpp_namespace: x\nsupported: [relu]\n", [("ATN607", "error", "XAL")]),
    ("backend: XAL\ncpp_namespace: x\nsupported:\n", []),  # torchgen looks at it when there is something to register
    ("backend: CPU\ncpp_namespace: x\nsupported: [relu]\n", [("ATN607", "error", "CPU")]),
    ("backend: Vulkan\ncpp_namespace: x\nautograd: [relu]\n", [("ATN607", "error", "autograd")]),
    ("bakend: XLA\ncpp_namespace: x\nsupported: [relu]\n", [("ATN602", "error", "bakend")]),
    ("- backend: XLA\n- cpp_namespace: x\n", [("ATN601", "error", "backend: XLA")]),
]


@pytest.mark.parametrize(("text", "expected"), HEADS)
def test_the_head_of_the_file(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(text) == expected


def test_every_fault_is_found_at_once() -> None:
    text = "backend: XAL\nsuported: [x]\nsupported:\n  - rleu\n  - 3\n  - relu\n  - relu\nsymint: [relu]\nautograd: [relu_]\n"
    assert [code for code, _, _ in found(text)] == [
        *("ATN601", "ATN607", "ATN602", "ATN612", "ATN606", "ATN613", "ATN622", "ATN614")
    ]


def test_an_unknown_operator_is_one_finding_however_often_it_is_listed() -> None:
    linted = lint(HEAD + "supported:\n  - rleu\nsymint:\n  - rleu\n")
    (item,) = linted.diagnostics
    assert item.message == "`rleu` is not an operator of `native_functions.yaml`; did you mean `relu`?"
    assert [(linted.position(other.place).line, other.message) for other in item.related] == [
        (6, "`symint` lists it here")
    ]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("add", "; it needs an overload: `add.Tensor` or `add.out`"),
        ("add.tensor", "; did you mean `add.Tensor`?"),
        ("Add.Tensor", "; did you mean `add.Tensor`?"),
        ("add.tensr", "; did you mean `add.Tensor` or `add.out`?"),
        ("xyzzy", ""),
        ("aten::relu", "; did you mean `relu`?"),
    ],
)
def test_candidates(name: str, advice: str) -> None:
    assert messages(f"{HEAD}supported:\n  - {name}\n") == [
        f"`{name}` is not an operator of `native_functions.yaml`{advice}"
    ]


def alone(*names: str) -> list[tuple[str, str]]:
    """Severity and message of what is found where no torch is known."""
    text = HEAD + "supported:\n" + "".join(f"  - {name}\n" for name in names)
    linted = lint_files([PACK], {"xla.yaml": text, "opschema.toml": "[aten]\ninstalled-torch = false\n"}, ["ATN612"])
    return [(item.severity.value, item.message) for item in linted.diagnostics if item.code == "ATN612"]


def test_a_slip_is_an_error_without_any_torch() -> None:
    slips = {
        "einsumm": "einsum",
        "as_stridedd": "as_strided",
        "xlogi.Tensor": "xlogy.Tensor",
        "add.Tensr": "add.Tensor",
    }
    assert alone(*slips) == [
        ("error", f"`{name}` is not an operator of torch 2.4 to 2.15; did you mean `{meant}`?")
        for name, meant in slips.items()
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("symeig", "empty.SymInt", "_s_where", "kl_div_backward"),  # of older releases
        *("mean.names_dim", "add.Tensor"),  # of some known ones
        *("conv4d", "_cat", "abss", "arelu", "gated_silu", "relu6_x"),  # which may be names of their own
    ],
)
def test_a_name_that_may_be_another_operators_is_no_slip(name: str) -> None:
    assert alone(name) == []


def test_a_slip_in_one_of_two_lists_is_one_finding() -> None:
    assert [item[0] for item in found(HEAD + "supported:\n  - exapnd\nsymint:\n  - expand\n")] == ["ATN612"]


def test_of_the_private_keys_the_first_is_meant() -> None:
    (message,) = messages("backend: privateuseone\ncpp_namespace: a\nsupported:\n  - relu\n")
    assert message.endswith("; did you mean `PrivateUse1`?")


def test_nothing_is_missing_from_a_file_whose_entries_have_no_names() -> None:
    broken = SOUND_NATIVE + "\n- variants: function\n"
    assert found(HEAD + "supported:\n  - rleu\n", {"native_functions.yaml": broken}) == []


def test_an_entry_that_cannot_be_read_is_known_by_its_name() -> None:
    broken = (
        SOUND_NATIVE
        + "\n- func: old.name(Tensor self, Dimnam x) -> Tensor\n  dispatch: {CPU: x}\n  autogen: old.name_out\n"
    )
    text = HEAD + "supported:\n  - old.name\n  - old.name_out\n  - older\n"
    assert found(text, {"native_functions.yaml": broken}) == [("ATN612", "error", "older")]


@pytest.mark.parametrize(
    ("lists", "code"),
    [("suported: [expand]", "ATN602"), ("supported: expand", "ATN605"), ("[a]: [expand]", "ATN608")],
)
def test_symint_is_not_judged_by_lists_that_cannot_be_read(lists: str, code: str) -> None:
    assert [item for item, _, _ in found(f"{HEAD}{lists}\nsymint: [expand]\n")] == [code]


def test_symint_shows_where_the_operator_is_declared() -> None:
    linted = lint(HEAD + "supported: [relu]\nsymint: [relu]\n")
    (item,) = linted.diagnostics
    assert [(other.place.path, linted.text(other.place)) for other in item.related] == [
        ("native_functions.yaml", "relu")
    ]


def test_a_composite_operator_is_a_note() -> None:
    assert found(HEAD + "supported: [square]\n") == [("ATN615", "info", "square")]


def test_other_generators_files_are_not_judged_by_what_only_torchgen_demands() -> None:
    npu = "backend: NPU\ncpp_namespace: a::b::c\nsupported:\n  - npu_x\n  - func: relu\n    op_api: True\ntocpu: [x]\n"
    assert found(npu) == []
    assert [code for code, _, _ in found(npu.replace("npu_x", "relu"))] == ["ATN613"]
    assert found("blacklist:\n- rsub\nsupported:\n- relu\nsymint:\n- expand\n") == []


# -- fixes -------------------------------------------------------------------------------------------------------------


def test_below_a_misspelt_key_the_list_is_read_as_the_one_that_is_meant() -> None:
    assert found(HEAD + "suported:\n  - expand\n  - relu\nsymnit:\n  - expand\n") == [
        ("ATN602", "error", "suported"),
        ("ATN602", "error", "symnit"),
    ]
    assert ("ATN612", "error", "rleu") in found(HEAD + "suported:\n  - rleu\n")


def test_a_misspelt_key_is_respelt() -> None:
    assert fixed("backend: XLA\ncpp_namespce: x  # ours\nsupported: [relu]\n") == (
        "backend: XLA\ncpp_namespace: x  # ours\nsupported: [relu]\n"
    )


def test_the_second_of_two_is_removed() -> None:
    text = HEAD + "supported:\n  # first\n  - relu\n  - expand\n  - relu\n  - relu_\n"
    assert fixed(text) == HEAD + "supported:\n  # first\n  - relu\n  - expand\n  - relu_\n"


def test_a_comment_is_removed_only_when_it_is_allowed() -> None:
    text = HEAD + "supported:\n  - relu\n  - relu  # why\n"
    assert fixed(text) == text
    assert fixed(text, unsafe=True) == HEAD + "supported:\n  - relu\n"


def test_a_namespace_is_taken_off() -> None:
    assert fixed(HEAD + "supported:\n  - aten::relu\n") == HEAD + "supported:\n  - relu\n"


# -- torchgen that takes no options ------------------------------------------------------------------------------------


@pytest.fixture
def torch_without_options(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed torch 2.13 whose torchgen takes no options and two namespaces."""
    packages = tmp_path_factory.mktemp("packages")
    (packages / "torchgen/packaged/ATen/native").mkdir(parents=True)
    (packages / "torchgen/packaged/ATen/native/native_functions.yaml").write_text(SOUND_NATIVE)
    (packages / "torchgen/gen_backend_stubs.py").write_text(
        "isinstance(yaml_values, dict)\nNamespaceHelper(cpp_namespace, max_level=2)\n"
        + "".join(f"yaml_values.pop('{key}')\n" for key in ("backend", "cpp_namespace", "supported"))
    )
    (packages / "torchgen/model.py").write_text("class DispatchKey(Enum):\n    XLA = auto()\n")
    (packages / "torch").mkdir()
    (packages / "torch/version.py").write_text("__version__ = '2.13.0'\n")
    monkeypatch.setenv("OPSCHEMA_TORCH", str(packages))


@pytest.mark.usefixtures("torch_without_options")
def test_options_are_refused_where_the_reference_has_a_torchgen_that_does_not_take_them() -> None:
    files = {"xla.yaml": HEAD + "supported:\n  - add.out: {structured: true}\n", "requirements.txt": "torch==2.13.0\n"}
    linted = lint_files([PACK], files, CODES)
    assert [(item.code, linted.text(item.place)) for item in linted.diagnostics] == [("ATN606", "add.out")]
    assert linted.diagnostics[0].message == (
        "the torchgen of the installed torch 2.13.0 takes no options of `add.out`; write the name alone"
    )


# -- hostile files -----------------------------------------------------------------------------------------------------

HOSTILE = [
    "backend: XLA\ncpp_namespace: *x\nsupported: [relu]\n",
    "backend: &a [*a]\ncpp_namespace: x\nsupported: *a\n",
    "? {a: b}\n: c\nbackend: XLA\ncpp_namespace: x\n",
    "backend: XLA\ncpp_namespace: x\nsupported: [" + "[" * 90 + "]" * 90 + "]\n",
    "backend: !!python/object:os.system x\ncpp_namespace: x\nsupported: [relu]\n",
    "backend: XLA\ncpp_namespace: x\nsupported:\n  - '" + "a" * 100_000 + "'\n",
    'backend: XLA\ncpp_namespace: x\nsupported:\n  - "\\0\\u202e"\n',
    "backend: XLA\ncpp_namespace: x\nnon_native:\n  - func: {a: b}\n    properties: {x: y}\n  - {? [a] : b}\n",
    "backend: XLA\ncpp_namespace: x\n<<: {supported: [relu]}\n",
    "backend: XLA\ncpp_namespace: x\nsupported:\n  - {? {a: b} : c}\n  - {}\n  - {a: {b: *c}}\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_rule_fails_over_malformed_data(text: str) -> None:
    linted = lint_files([PACK], {"native_functions.yaml": SOUND_NATIVE, "xla.yaml": text})
    assert "OPS900" not in linted.codes()


def test_without_pytorchs_operators_the_run_says_so_once() -> None:
    toml = "[aten]\ninstalled-torch = false\n"
    backend = HEAD + "supported:\n- mean.names_dim\n"
    linted = lint_files([PACK], {"opschema.toml": toml, "a.yaml": backend, "b.yaml": backend})
    assert linted.diagnostics == []
    (missed,) = linted.outcome.not_checked
    assert missed.reason == "PyTorch's operators are not known, by which a.yaml, b.yaml are judged"
    assert {"ATN612", "ATN614", "ATN703"} <= set(missed.rules)
    assert "ATN613" not in missed.rules, "it compares the lists with each other"
    assert lint(backend).outcome.not_checked == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("supported: [_foreach_abs]\n", ["_foreach_abs"]),
        ("full_codegen: [_foreach_add.Scalar]\nuse_out_as_primary: no\n", ["_foreach_add.Scalar"]),
        ("supported: [relu]\nautograd: [_foreach_abs]\n", ["_foreach_abs"]),
        ("supported: [_foreach_abs]\nuse_out_as_primary: true\n", []),
        ("supported: [_foreach_abs, _foreach_abs_]\n", []),
        ("supported: [_foreach_abs_, _foreach_pow.ScalarAndTensor, abs]\n", []),
    ],
)
def test_operators_over_lists_without_their_in_place_variants(text: str, names: list[str]) -> None:
    files = {BACKEND: HEAD + text}
    linted = lint_files([PACK], {**files, "requirements.txt": f"torch=={RELEASE}\n"}, ["ATN614"])
    assert [(linted.text(item.place), item.severity.value) for item in linted.diagnostics] == [
        (name, "error") for name in names
    ]
    assert (emission_refusal(files) is not None) is bool(names)


def test_options_beside_the_name_as_pytorch_writes_them_for_its_own_example() -> None:
    text = (
        "backend: PrivateUse1\ncpp_namespace: at::native::openreg\nsupported:\n  - maximum.out:\n    structured: true\n"
    )
    files = {"opschema.toml": "[aten]\ninstalled-torch = false\n", "openreg_native_functions.yaml": text}
    assert lint_files([PACK], files, ["ATN603", "ATN606"]).diagnostics == []


@pytest.mark.usefixtures("torch_without_options")
@pytest.mark.parametrize(("pins", "codes"), [("torch\n", []), ("torch==2.13.0\n", ["ATN603"])])
def test_a_file_with_options_may_be_for_a_torchgen_that_takes_more_namespaces(pins: str, codes: list[str]) -> None:
    text = "backend: XLA\ncpp_namespace: at::native::kit\nsupported:\n  - add.out:\n    structured: true\n"
    assert lint_files([PACK], {"xla.yaml": text, "requirements.txt": pins}, ["ATN603"]).codes() == codes
