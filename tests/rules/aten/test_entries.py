"""Entries as a whole: the installed torch's are sound, a broken one hides nothing, and no text makes a rule fail."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.entry_findings import entry, lines, linted, places
from tests.rules.aten.oracle import DERIVATIVES, NATIVE, PACKAGED, TAGS

OUT = "tanh.out(Tensor self, int dim=1, *, Tensor(a!) out) -> Tensor(a!)"


def test_the_installed_torch_is_sound() -> None:
    """No rule of the pack finds anything in torchgen's own files."""
    names = (f"ATen/native/{NATIVE}", f"ATen/native/{TAGS}", f"autograd/{DERIVATIVES}", "autograd/deprecated.yaml")
    files = {name: (PACKAGED / name).read_text(encoding="utf-8") for name in names}
    assert lint_files([PACK], files).diagnostics == []


def test_every_fault_of_an_entry_and_of_its_neighbours() -> None:
    text = entry("variant: method\ndevice_guard: 1\ndispatch: {CPUU: a-b}", "tanh(Tensr self,int n) -> Tensor")
    assert places(text + "- 3\n" + entry("structured: True")) == [
        "ATN204 Tensr",
        "ATN202 int",
        "ATN102 variant",
        "ATN104 1",
        "ATN131 CPUU",
        "ATN133 a-b",
        "ATN101 3",
        "ATN151 structured",
    ]


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("variants: method\nvariants: method", "f(Tensor self) -> Tensor", "ATN103 variants <- variants"),
        ("variants: method", OUT, "ATN112 method <- Tensor(a!) out"),
        ("python_module: nn\nvariants: method", "f(Tensor self) -> Tensor", "ATN113 method <- nn"),
        ("cpp_no_default_args: [self]", OUT, "ATN118 self <- Tensor self"),
        ("dispatch:\n  CPU: a\n  CUDA, CPU: b", "f(Tensor self) -> Tensor", "ATN134 CPU <- CPU"),
        (
            "dispatch: {CompositeExplicitAutograd: a, CompositeImplicitAutograd: b}",
            "f(Tensor self) -> Tensor",
            "ATN135 CompositeImplicitAutograd <- CompositeExplicitAutograd",
        ),
        (
            "structured_delegate: f.out\ndispatch: {CPU: a}",
            "f(Tensor self) -> Tensor",
            "ATN155 CPU <- structured_delegate",
        ),
        ("structured: True\nprecomputed: [dim -> int self]", OUT, "ATN162 self <- Tensor self"),
        ("variants: method", "f(Tensor? self) -> Tensor", "ATN211 method <- Tensor?"),
    ],
)
def test_both_sides(fields: str, schema: str, expected: str) -> None:
    assert places(entry(fields, schema)) == [expected]


def test_without_tags_those_of_torch_count() -> None:
    text = entry("tags: [pointwise, poinwise]", "rand(Tensor self) -> Tensor")
    files = {NATIVE: text, "requirements.txt": "torch==2.14\n"}
    found = [item.message.partition(";")[0] for item in lint_files([PACK], files, ["ATN116", "ATN117"]).diagnostics]
    assert found == [
        "the name `rand` holds `rand`, so that it needs the tag `nondeterministic_seeded`",
        "torch 2.14 has no tag `poinwise`",
    ]


def test_a_release_has_the_tags_of_its_time() -> None:
    """`reduction` came with 2.10."""
    text = entry("tags: reduction")
    found = {
        release: [
            item.code
            for item in lint_files([PACK], {NATIVE: text, "requirements.txt": release}, ["ATN116"]).diagnostics
        ]
        for release in ("torch==2.9.1\n", "torch>=2.9\n")
    }
    assert found == {"torch==2.9.1\n": ["ATN116"], "torch>=2.9\n": []}


def test_the_tags_of_the_tree_count_before_those_of_torch() -> None:
    text = entry("tags: [anything, else]", "rand(Tensor self) -> Tensor")
    tags = "- tag: anything\n  desc: it\n- tag: else\n  desc: it\n"
    assert lines(text, {TAGS: tags}) == []  # tags of a version that does not know nondeterministic_seeded


@pytest.mark.parametrize(
    "text",
    [
        "- func: 'f(Tensor self, int n) -> Tensr'\n",
        '- func: "f(Tensor self, int n) -> Tensr"\n',
        "- func: |-\n    f(Tensor self, int n) -> Tensr\n",
        "- func: f(Tensor self,\n    int n) -> Tensr\n",
        "- func: !!str f(Tensor self, int n) -> Tensr\n",
        "- {func: 'f(Tensor self, int n) -> Tensr'}\n",
        "- &a\n  func: f(Tensor self, int n) -> Tensr\n",
    ],
)
def test_however_the_schema_is_written(text: str) -> None:
    assert places(text) == ["ATN204 Tensr"]


ODD = [
    "",
    "~",
    "1",
    "true",
    "x",
    "''",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "{a: b}",
    "{[]: 1}",
    "2020-01-01",
    "!x y",
    "[~]",
    '"\\0"',
]
FIELDS = [
    "func",
    "cpp_no_default_args",
    "use_const_ref_for_mutable_tensors",
    "variants",
    "manual_kernel_registration",
    "manual_cpp_binding",
    "device_guard",
    "device_check",
    "structured",
    "structured_delegate",
    "structured_inherits",
    "python_module",
    "category_override",
    "precomputed",
    "tags",
    "dispatch",
    "autogen",
    "ufunc_inner_loop",
]


@pytest.mark.parametrize("value", ODD)
def test_whatever_stands_in_a_field(value: str) -> None:
    other = f"CPU: {value}\n? {value}\n: x" if value.startswith(("[", "{")) else f"CPU: {value}"
    text = "".join(f"- func: f(Tensor self) -> Tensor\n  {name}: {value}\n" for name in FIELDS if name != "func")
    text += f"- func: {value}\n- func: f(int[] x=[,) -> \n  dispatch:\n    " + other.replace("\n", "\n    ") + "\n"
    text += f"- func: {OUT}\n  structured: True\n  precomputed: [{value or 'x'}]\n  ufunc_inner_loop: {{Generic: {value}}}\n"
    assert "OPS900" not in [item.code for item in linted(text).diagnostics]
