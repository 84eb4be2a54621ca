"""`__init__()` against the manifest: parameters, defaults, keyword-only, `None`, kernels, the contract's methods."""

from __future__ import annotations

import textwrap

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

CODE, YAML = "kit/ops/example.py", "kit/manifest/example.yaml"

OP = """\
class ExampleFwdOp(Op):
    {body}

    def __init__(self, {init}):
        self.dispatch_kernel(kernel_map)

    def forward(self, x, {forward}):
        return 1
"""


def files(params: str, init: str, forward: str = "", body: str = "pass", *, head: str = "") -> dict[str, str]:
    """An op whose entry declares ``params`` (flow mapping), and whose methods take ``init`` and ``forward``."""
    op = head + OP.format(init=init or "kernel_map=None", forward=forward, body=body)
    return example_files([("yaml", f"signature:\n  params: {params}\n"), ("python", op)])


def lint(select: str, *args: str, **kwargs: str) -> Linted:
    return lint_files([PACK], files(*args, **kwargs), [select])


def found(linted: Linted) -> list[tuple[str, str, str]]:
    """File, text at the place and message of each finding."""
    return [(item.place.path, linted.text(item.place), item.message) for item in linted.diagnostics]


def fixed(select: str, *args: str, unsafe: bool = False, **kwargs: str) -> str:
    """The declared parameters after fixing."""
    texts, _ = fix_files([PACK], files(*args, **kwargs), [select], unsafe=unsafe)
    changed = texts.get(YAML, "")
    return next((line.strip() for line in changed.splitlines() if line.strip().startswith("params:")), "")


# SIG201


def test_a_parameter_that_no_method_takes() -> None:
    linted = lint("SIG201", "{epsilon: {type: float}}", "eps, *, kernel_map=None")
    assert found(linted) == [
        (YAML, "epsilon", "neither `__init__()` nor `forward()` takes the parameter `epsilon`; did you mean `eps`?")
    ]
    assert [side.message for side in linted.diagnostics[0].related] == ["takes `eps`, `kernel_map`", "takes `x`"]


@pytest.mark.parametrize(
    ("declared", "init", "hint"),
    [
        ("alpha: {type: float}", "a_shape: tuple", ""),
        ("alpha: {type: float}", "alphas: tuple[float, ...]", "; did you mean `alphas`?"),
        ("alpha: {type: float}", "alphas: tuple", ""),
        ("alpha: {type: float}", "Alpha: int", "; did you mean `Alpha`?"),
        ("alpha: {type: Mode}", "alpha_: torch.Tensor", ""),
        ("alpha: {type: Mode}", "alpha_: str", "; did you mean `alpha_`?"),
        ("out_dtype: {type: torch.dtype}", "dtype: torch.dtype", "; did you mean `dtype`?"),
        ("out_dtype: {type: torch.dtype}", "out_type: str", ""),
    ],
)
def test_what_is_suggested_is_close_in_spelling_and_of_the_same_kind(declared: str, init: str, hint: str) -> None:
    linted = lint("SIG201", f"{{{declared}}}", f"{init}, *, kernel_map=None")
    name = declared.partition(":")[0]
    message = f"neither `__init__()` nor `forward()` takes the parameter `{name}`{hint}"
    assert found(linted) == [(YAML, name, message)]


@pytest.mark.parametrize(
    ("init", "forward"),
    [("eps", ""), ("", "eps=0.5"), ("**kwargs", ""), ("", "**kwargs"), ("*eps", "")],
    ids=["in __init__", "in forward", "swallowed by __init__", "swallowed by forward", "all positions"],
)
def test_a_parameter_that_some_method_takes_or_may_take(init: str, forward: str) -> None:
    assert found(lint("SIG201", "{eps: {type: float}}", init, forward)) == []


def test_a_patched_constructor_is_not_known() -> None:
    patched = "\nfor _cls in [ExampleFwdOp]:\n    _cls.__init__ = wrap(_cls.__init__)\n"
    texts = files("{epsilon: {type: float}}", "eps")
    assert found(lint_files([PACK], {**texts, CODE: texts[CODE] + patched}, ["SIG201"])) == []


def test_a_key_of_the_first_layout_finds_the_class_that_it_spells() -> None:
    entry = (
        "ops:\n  log_softmax_fwd:\n    signature: {inputs: {x: {dtype: float16}}, params: {dim: {type: int}}}\n"
        "    source: {op: kit/ops/example.py}\n    roofline: {}\n    workloads: []\n    status: spec-only\n"
    )
    op = "class SoftmaxOp(Op): ...\n\n\nclass LogSoftmaxOp(Op):\n    def forward(self, x): ...\n"
    texts = {**example_files([("python", op)]), YAML: entry}
    linted = lint_files([PACK], {**texts, "opschema.toml": ""}, ["SIG201"])
    assert [(item.ops, item.severity) for item in linted.diagnostics] == [(("log_softmax_fwd",), Severity.WARNING)]
    # A tree that states how a key is spelled has no such keys.
    stated = lint_files([PACK], {**texts, YAML: entry.replace("spec-only", "implemented")}, ["SRC102", "BEN"])
    message = "`kit/ops/example.py` defines no class `log_softmax_fwd`; did you mean `LogSoftmaxOp`?"
    assert [item.message for item in stated.diagnostics] == [message]


# SIG202


def test_a_static_dim_that_the_constructor_does_not_take() -> None:
    entry = "signature:\n  static_dims: {N: 'x.shape[-1]', K: 'x.shape[0]'}\n"
    op = OP.format(init="n, K, *, kernel_map=None", forward="", body="pass")
    linted = lint_files([PACK], example_files([("yaml", entry), ("python", op)]), ["SIG202"])
    assert found(linted) == [(YAML, "N", "`__init__()` does not take `N` of `static_dims`; did you mean `n`?")]


# SIG203

DIFFERENT = [
    ("{eps: {type: float, default: 0.5}}", "eps=0.25", "0.25", "`0.25`; the manifest declares `default: 0.5`"),
    ("{eps: {type: float, default: 0.5}}", "eps=None", "None", "`None`; the manifest declares `default: 0.5`"),
    (
        "{eps: {type: float, default: null}}",
        "eps=EPS",
        "EPS",
        "`EPS`, which is `1e-05`; the manifest declares `default: null`",
    ),
    (
        "{eps: {type: str, default: 'none'}}",
        "eps='mean'",
        "'mean'",
        "`'mean'`; the manifest declares `default: 'none'`",
    ),
    ("{eps: {type: list, default: [1, 2]}}", "eps=(1, 3)", "1, 3", "`(1, 3)`; the manifest declares `default: [1, 2]`"),
    (
        "{eps: {type: torch.dtype, default: float16}}",
        "eps=torch.bfloat16",
        "torch.bfloat16",
        "`torch.bfloat16`; the manifest declares `default: float16`",
    ),
]


@pytest.mark.parametrize(("params", "init", "place", "message"), DIFFERENT)
def test_defaults_that_differ(params: str, init: str, place: str, message: str) -> None:
    linted = lint("SIG203", params, init, body="EPS = 1e-5")
    assert found(linted) == [(CODE, place, f"`__init__()` defaults `eps` to {message}")]


SAME = [
    ("1.0e-5", "EPS"),
    ("1.0e-5", "1 / 100_000"),
    ("1", "1.0"),
    ("true", "1"),
    ("null", "None"),
    (".inf", 'float("inf")'),
    (".inf", "math.inf"),
    ("-.inf", "-math.inf"),
    (".nan", "float('nan')"),
    ("[0, 1]", "(0, 1)"),
    ("[]", "()"),
    ("float16", "torch.float16"),
    ("torch.float16", "torch.float16"),
    ("float16", "torch.half"),
    ("torch.double", "torch.float64"),
    ("1e-5", "1e-5"),  # text to YAML 1.1, which is another rule's business
    ("2", "compute()"),
    ("2", "somewhere.CONSTANT"),
    ("fast", "Mode.FAST"),
    ("REQUIRED", ""),
]


@pytest.mark.parametrize(("stated", "code"), SAME)
def test_defaults_that_are_the_same_or_not_known(stated: str, code: str) -> None:
    init = f"eps={code}" if code else "eps"
    head = "import enum\nimport math\n\n\nclass Mode(enum.Enum):\n    FAST = 1\n\n\n"
    params = f"{{eps: {{type: float, default: {stated}}}}}"
    assert found(lint("SIG203", params, init, body="EPS = 1e-5", head=head)) == []


def test_a_default_that_only_the_manifest_has_stands_in_the_code() -> None:
    args = ("SIG203", "{eps: {type: float, default: 0.5}}", "eps, *, kernel_map=None")
    linted = lint(*args)
    assert found(linted) == [(CODE, "eps", "`__init__()` gives `eps` no default; the manifest declares `default: 0.5`")]
    assert [(linted.text(side.place), side.message) for side in linted.diagnostics[0].related] == [
        ("0.5", "`default: 0.5`")
    ]
    assert fixed(*args, unsafe=True) == ""  # the rows would lack what is required then


def test_a_default_that_no_row_needs_may_go() -> None:
    texts = files("{eps: {type: float, default: 0.5}}", "eps, *, kernel_map=None")
    texts[YAML] = texts[YAML].replace("dtypes:", "eps: 0.5, dtypes:")
    assert fix_files([PACK], texts, ["SIG203"])[0] == {}
    changed, _ = fix_files([PACK], texts, ["SIG203"], unsafe=True)
    assert "params: {eps: {type: float}}" in changed[YAML]


ADDED = [
    ("{eps: {type: float}}", "eps=EPS", "{eps: {type: float, default: 1.0e-05}}"),
    ("{eps: {type: float, default: REQUIRED}}", "eps=2", "{eps: {type: float, default: 2}}"),
    (
        "{eps: {type: torch.dtype, kw_only: true}}",
        "*, eps=torch.int8",
        "{eps: {type: torch.dtype, default: int8, kw_only: true}}",
    ),
    ("{eps: {type: tuple}}", "eps=(0, 1)", "{eps: {type: tuple, default: [0, 1]}}"),
    ("{eps: {type: float}}", "eps=compute()", ""),
    ("{eps: {type: float}}", "eps=somewhere.CONSTANT", ""),
]


@pytest.mark.parametrize(("params", "init", "expected"), ADDED)
def test_a_default_that_only_the_code_has_stands_in_the_manifest(params: str, init: str, expected: str) -> None:
    (item,) = lint("SIG203", params, init, body="EPS = 1e-5").diagnostics
    assert (item.place.path, item.message.partition(";")[0]) == (YAML, "the manifest gives `eps` no default")
    assert fixed("SIG203", params, init, body="EPS = 1e-5") == (expected and f"params: {expected}")


KNOWS_COMPAT_DEFAULT = "signature, workloads, roofline, status, shape_rules; `compat_default` is for legacy callers\n"


@pytest.mark.parametrize(
    ("stated", "code", "docs", "codes"),
    [
        ("null", "None", KNOWS_COMPAT_DEFAULT, []),
        ("4", "COUNT", KNOWS_COMPAT_DEFAULT, []),
        ("8", "make()", KNOWS_COMPAT_DEFAULT, []),
        ("8", "4", KNOWS_COMPAT_DEFAULT, ["SIG203"]),
        ("4", "4", "", ["SIG203"]),
    ],
)
def test_a_default_for_legacy_callers_only_where_the_tree_has_such(
    stated: str, code: str, docs: str, codes: list[str]
) -> None:
    entry = f"{{experts: {{type: int, compat_default: {stated}}}}}"
    tree = files(entry, f"experts={code}, kernel_map=None", head="COUNT = 4\n\n\n") | {"docs/manifest.md": docs}
    assert lint_files([PACK], tree, ["SIG203"]).codes() == codes


def test_a_misspelt_default_is_not_given_a_second_one() -> None:
    assert found(lint("SIG203", "{eps: {type: float, defualt: 0.5}}", "eps=0.5, kernel_map=None")) == []


def test_parameters_of_forward_have_no_constructor_default() -> None:
    assert found(lint("SIG203", "{eps: {type: float, default: 1}}", "", "eps=2")) == []


# SIG204


def test_keyword_only_in_the_code() -> None:
    args = ("SIG204", "{eps: {type: float}}", "*, eps, kernel_map=None")
    message = "`__init__()` takes `eps` by keyword only; the manifest lets callers pass it by position"
    assert found(lint(*args)) == [(CODE, "eps", message)]
    assert fixed(*args) == ""
    assert fixed(*args, unsafe=True) == "params: {eps: {type: float, kw_only: true}}"


def test_keyword_only_in_the_manifest() -> None:
    args = ("SIG204", "{eps: {type: float, kw_only: true}}", "eps, *, kernel_map=None")
    message = "the manifest declares `eps` keyword-only; `__init__()` takes it by position too"
    assert found(lint(*args)) == [(YAML, "kw_only", message)]
    assert fixed(*args) == "params: {eps: {type: float}}"


def test_one_wrong_base_is_one_finding_and_one_fix() -> None:
    op = (
        "class Base(Op):\n    def __init__(self, *, dim=-1, kernel_map=None):\n        self.dispatch_kernel(kernel_map)\n"
        "\n\nclass ExampleFwdOp(Base): ...\n\n\nclass OtherFwdOp(Base): ...\n"
    )
    entry = "{}:\n  signature: {{inputs: {{x: {{dtype: float16}}}}, params: {{dim: {{type: int, default: -1}}}}}}\n"
    entry += "  source: {{op: kit/ops/example.py}}\n  roofline: {{}}\n  workloads: []\n  status: implemented\n"
    texts = {**example_files([("python", op)]), YAML: entry.format("ExampleFwdOp") + entry.format("OtherFwdOp")}
    (item,) = lint_files([PACK], texts, ["SIG204"]).diagnostics
    assert item.ops == ("ExampleFwdOp", "OtherFwdOp")
    after, left = fix_files([PACK], texts, ["SIG204"], unsafe=True)
    assert after[YAML].count("{type: int, default: -1, kw_only: true}") == 2
    assert left.diagnostics == []


# SIG205

ADMITS = [
    "Optional[float]",
    "float | None",
    "Union[int, float, None]",
    '"float | None"',
    "'Optional[float]'",
    "Target",
    "Deep",
    "Literal[1, None]",
    "typing.Optional[int]",
    "None",
]
REFUSES = ["float", "int | float", "Sequence[int]", "Tuple[Optional[int], ...]", "Mode", "torch.dtype", '"float"']
UNKNOWN = ["Any", "object", "Somebody", "torch.types.Device", "make()", "T", "'not a type('", "Circle", "Wide0"]

ALIASES = """\
import typing
from typing import Any, Literal, Optional, Sequence, Tuple, TypeVar, Union
from somewhere import Somebody

Target = Union[str, None]
Deep = Union[int, Target]
T = TypeVar("T")
Circle = Union[int, Circle]
WIDE


class Mode: ...


""".replace("WIDE", "\n".join(f"Wide{i} = Union[{', '.join([f'Wide{i + 1}'] * 9)}]" for i in range(99)))


def annotated(stated: str, annotation: str) -> list[str]:
    params = f'{{eps: {{type: "{stated}"}}}}'
    linted = lint("SIG205", params, f"eps: {annotation}, *, kernel_map=None", head=ALIASES)
    return [f"{item.place.path}: {linted.text(item.place)}" for item in linted.diagnostics]


@pytest.mark.parametrize("annotation", ADMITS)
def test_annotations_that_admit_none(annotation: str) -> None:
    assert annotated("float", annotation) == [f'{YAML}: "float"']
    assert annotated("float | None", annotation) == []


@pytest.mark.parametrize("annotation", REFUSES)
def test_annotations_that_do_not(annotation: str) -> None:
    assert annotated("float | None", annotation) == [f"{CODE}: {annotation}"]
    assert annotated("float", annotation) == []


@pytest.mark.parametrize("annotation", UNKNOWN)
def test_annotations_that_cannot_be_known(annotation: str) -> None:
    assert annotated("float | None", annotation) == annotated("float", annotation) == []


@pytest.mark.parametrize("stated", ["Any", "not a type(", "[" * 400])
def test_declared_types_that_cannot_be_known(stated: str) -> None:
    assert annotated(stated, "Optional[float]") == annotated(stated, "float") == []


def test_the_manifest_can_catch_up() -> None:
    params = '{eps: {type: "int | float"}}'
    assert fixed("SIG205", params, "eps: Optional[int]", head=ALIASES) == 'params: {eps: {type: "int | float | None"}}'
    null = '{eps: {type: "float | None", default: null}}'
    assert found(lint("SIG205", null, "eps: float = None", head=ALIASES)) == [
        (CODE, "float", "`__init__()` annotates `eps` as `float`; the manifest's `float | None` admits `None`")
    ]
    # `default: null` on a type without it has a rule, and a fix, of its own.
    assert found(lint("SIG205", "{eps: {type: float, default: null}}", "eps: Optional[int]", head=ALIASES)) == []


# SIG206 to SIG208


def lint_op(select: str, op: str) -> list[str]:
    return [
        item.message
        for item in lint_files([PACK], example_files([("python", textwrap.dedent(op))]), [select]).diagnostics
    ]


DISPATCHES = {
    "itself": "self.dispatch_kernel(kernel_map)",
    "in a branch": "if kernel_map:\n            self.dispatch_kernel(kernel_map)",
    "in a nested function": "def later():\n            self.dispatch_kernel(kernel_map)\n        later()",
    "by its base": "super().__init__(kernel_map)",
    "by its base, named": "Middle.__init__(self, kernel_map)",
    "by a method": "self.prepare(kernel_map)",
    "by a function": "prepare(self, kernel_map)",
    "on its base": "super().dispatch_kernel(kernel_map)",
    "on a class": "Op.dispatch_kernel(self, kernel_map)",
    "by another name": "install = self.dispatch_kernel\n        install(kernel_map)",
    "as an argument": "somewhere.run(self.dispatch_kernel, kernel_map)",
    "by a name in a string": "getattr(self, 'dispatch_kernel')(kernel_map)",
    "perhaps by something else": "somewhere.prepare(self)",
    "perhaps by a method that is made": "self.made(kernel_map)",
}

LINEAGE = """\
def prepare(op, kernel_map):
    op.dispatch_kernel(kernel_map)


class Middle(Op):
    made = somewhere.make()

    def __init__(self, kernel_map=None):
        self.dispatch_kernel(kernel_map)

    def prepare(self, kernel_map):
        self.dispatch_kernel(kernel_map)

    def unprepared(self, kernel_map):
        self.unprepared(kernel_map)


class ExampleFwdOp(Middle):
    def __init__(self, kernel_map=None):
        {body}
"""


@pytest.mark.parametrize("body", DISPATCHES.values(), ids=DISPATCHES.keys())
def test_constructors_that_dispatch_or_may(body: str) -> None:
    assert lint_op("SIG207", LINEAGE.replace("{body}", body)) == []


@pytest.mark.parametrize("how", DISPATCHES)
def test_a_stricter_contract_asks_for_the_call_in_a_constructor(how: str) -> None:
    files = example_files([("python", LINEAGE.replace("{body}", DISPATCHES[how]))])
    files["opschema.toml"] = '[tileops]\nspec = ["dispatch-in-init"]\n'
    found = [item.message for item in lint_files([PACK], files, ["SIG207"]).diagnostics]
    text = "`__init__()` calls `self.dispatch_kernel()` only through another method; call it in `__init__()` itself"
    assert found == ([text] if how in ("by a method", "by a function") else [])


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "self.unprepared(kernel_map)",
        "isinstance(self, Op)",
        "self.kernel_map = kernel_map",
        "other.dispatch_kernel(kernel_map)",
        "self.dispatch_kernels = kernel_map",
    ],
)
def test_constructors_that_do_not_dispatch(body: str) -> None:
    assert lint_op("SIG207", LINEAGE.replace("{body}", body)) == [
        "`__init__()` never calls `self.dispatch_kernel()`, so `kernel_map` is dropped"
    ]


BASES = """\
class Base(Op):
    def __init__(self, *, kernel_map=None):
        self.kernels = kernel_map


class ExampleFwdOp(Base):
    {example}


class OtherFwdOp(Base):
    def __init__(self, *, kernel_map=None):
        super().__init__(kernel_map=kernel_map)
        {other}
"""

INHERITS = "def __init__(self, *, kernel_map=None):\n        super().__init__(kernel_map=kernel_map)"
BOTH = ("ExampleFwdOp", "OtherFwdOp")


@pytest.mark.parametrize(
    ("example", "other", "expected"),
    [
        ("pass", "pass", [("Base", BOTH)]),
        (INHERITS, "pass", [("Base", BOTH)]),
        ("pass", "self.dispatch_kernel(kernel_map)", [("Base", BOTH[:1])]),
        # A base that leaves it to its ops is not to blame.
        (INHERITS, "self.dispatch_kernel(kernel_map)", [("ExampleFwdOp", BOTH[:1])]),
    ],
)
def test_a_base_that_drops_the_kernels_is_one_finding(
    example: str, other: str, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    entry = "{}:\n  signature: {{inputs: {{}}}}\n  source: {{op: kit/ops/example.py}}\n  status: implemented\n"
    texts = example_files([("python", BASES.format(example=example, other=other))])
    texts[YAML] = "".join(entry.format(name) + "  roofline: {}\n  workloads: []\n" for name in BOTH)
    linted = lint_files([PACK], texts, ["SIG207"])
    heads = [texts[CODE][: item.place.span.start].rpartition("class ")[2] for item in linted.diagnostics]
    assert [
        (head.partition("(")[0], item.ops) for head, item in zip(heads, linted.diagnostics, strict=True)
    ] == expected


def test_a_wrapper_that_calls_the_constructor_it_replaces() -> None:
    op = """\
class ExampleFwdOp(Op):
    def __init__(self, kernel_map=None):
        self.dispatch_kernel(kernel_map)

    def forward(self, x):
        return x


_original = ExampleFwdOp.__init__


def _wrapper(self, *args, **kwargs):
    _original(self, *args, **kwargs)


ExampleFwdOp.__init__ = _wrapper
"""
    assert lint_op("SIG207", op) == []


def test_a_constructor_without_kernel_map_is_one_finding_not_two() -> None:
    op = "class ExampleFwdOp(Op):\n    def __init__(self, eps=0.5):\n        pass\n"
    assert lint_op("SIG206", op) == ["`__init__()` does not take `kernel_map`, so no caller can replace a kernel"]
    assert lint_op("SIG207", op) == []


CONTRACT = """\
class Base(Op):
    @property
    def default_kernel_map(self):
        return {{}}

    def _infer_output_shapes(self, x_shape):
        {shapes}

    def _validate_dtypes(self, x):
        {dtypes}

    def eval_roofline(self):
        return 1, 1

    def forward(self, x):
        return x


class ExampleFwdOp(Base): ...
"""


def test_a_stub_in_the_place_of_a_contract_method() -> None:
    op = CONTRACT.format(shapes='raise NotImplementedError("later")', dtypes="pass")
    (message,) = lint_op("SIG208", op)
    assert message == "the class leaves `_infer_output_shapes` a stub that raises `NotImplementedError`"
    # A body that does nothing is an answer: there is nothing to check.
    assert lint_op("SIG208", CONTRACT.format(shapes="return {}", dtypes='"""Any dtype."""')) == []


def test_a_contract_method_that_a_hook_makes_is_not_missing() -> None:
    base = example_files([])["kit/ops/op_base.py"]
    hook = "    def __init_subclass__(cls):\n        cls._validate_dtypes = generate(cls)\n\n"
    op = CONTRACT.replace("    def _validate_dtypes(self, x):\n        {dtypes}\n\n", "").format(shapes="return {}")
    texts = example_files([("python", op)])
    assert [item.message for item in lint_files([PACK], texts, ["SIG208"]).diagnostics] == [
        "the class leaves `_validate_dtypes` abstract"
    ]
    texts["kit/ops/op_base.py"] = base.replace("class Op(ABC):\n", f"class Op(ABC):\n{hook}")
    assert lint_files([PACK], texts, ["SIG208"]).diagnostics == []
