"""Operators moved between the lists of a backend's YAML, and no line but theirs."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK

YAML = "xla_native_functions.yaml"

BACKEND = """\
# What is lowered.
backend: XLA
cpp_namespace: torch_xla
full_codegen:
  - acos
  - abs  # hand-checked
  - ceil
  - _conj_copy
  - sin
supported:
  - add.Tensor
  # Slow on CPU.
  - bernoulli
  - cos  # no `cosh` yet

  # Note: the ones below are composite in core.
  - embedding
  - block_diag
symint:
  - expand
autograd:
  - max_pool2d
"""


def moved(*options: str, text: str = BACKEND, only: tuple[str, ...] = ()) -> Migrated:
    return migrate_files(PACK, "move-supported", {YAML: text}, options, only=only)


def test_an_operator_goes_to_its_sorted_place_with_its_comment() -> None:
    done = moved("ops=bernoulli,cos", "to=full_codegen")
    gone = "  # Slow on CPU.\n  - bernoulli\n  - cos  # no `cosh` yet\n"
    came = "  # Slow on CPU.\n  - bernoulli\n  - ceil\n  - _conj_copy\n  - cos  # no `cosh` yet\n"
    assert done.files[YAML] == BACKEND.replace(gone, "").replace("  - ceil\n  - _conj_copy\n", came)
    assert done.sites() == [
        f"{YAML}:13: move `bernoulli` from `supported` to `full_codegen`",
        f"{YAML}:14: move `cos` from `supported` to `full_codegen`",
    ]
    assert done.notes() == [f"{YAML}:8: the comment above `bernoulli` went with it"]


def test_a_new_operator_stays_above_the_comment_that_heads_others() -> None:
    done = moved("ops=sin", "to=supported")
    assert done.files[YAML] == BACKEND.replace("  - sin\n", "").replace("`cosh` yet\n", "`cosh` yet\n  - sin\n")


def test_a_comment_that_heads_others_stays_and_is_noted() -> None:
    done = moved("ops=embedding", "to=autograd")
    expected = BACKEND.replace("  - embedding\n", "").replace("autograd:\n", "autograd:\n  - embedding\n")
    assert done.files[YAML] == expected
    assert done.notes() == [f"{YAML}:16: this comment was above `embedding`, which was moved to `autograd`"]


def test_a_comment_that_names_its_operator_is_its_own() -> None:
    text = "backend: XLA\ncpp_namespace: a\nsupported:\n  # See `cos` below.\n  - cos\n  - sin\nautograd:\n  - abs\n"
    done = moved("ops=cos", "to=autograd", text=text)
    assert done.files[YAML].endswith("supported:\n  - sin\nautograd:\n  - abs\n  # See `cos` below.\n  - cos\n")


def test_symint_lists_an_operator_besides() -> None:
    done = moved("ops=add.Tensor", "to=symint")
    assert done.files[YAML] == BACKEND.replace("symint:\n", "symint:\n  - add.Tensor\n")
    again = moved("ops=add.Tensor", "from=symint", "to=supported", text=done.files[YAML])
    assert again.files[YAML] == BACKEND


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            ["ops=expand", "to=ir_gen"],
            "20: `expand` is not in `supported`, `full_codegen` or `autograd`, so torchgen would ignore it in `ir_gen`",
        ),
        (
            ["ops=acos", "to=ir_gen"],
            "5: `full_codegen` makes the IR class of `acos` already; move it to `supported` first",
        ),
        (
            ["ops=expand", "from=symint", "to=supported"],
            "20: `expand` is not in `supported`, and `symint` says only more of it; leave `-o from=` out",
        ),
    ],
)
def test_what_torchgen_would_not_look_at_stays(options: list[str], note: str) -> None:
    done = moved(*options)
    assert done.files[YAML] == BACKEND
    assert done.notes() == [f"{YAML}:{note}"]
    assert [site.endswith("(left)") for site in done.sites()] == [True]


def test_an_operator_without_symint_in_a_torch_that_may_be_another_goes_to_symint_and_is_noted() -> None:
    done = moved("ops=acos", "to=symint")
    assert done.files[YAML] == BACKEND.replace("symint:\n", "symint:\n  - acos\n")
    (note,) = done.notes()
    assert note.startswith(f"{YAML}:5: no argument of `acos` is a `SymInt` in the installed torch ")


def test_an_operator_in_two_lists_leaves_the_other_one() -> None:
    twice = BACKEND.replace("  - add.Tensor\n", "  - acos\n  - add.Tensor\n")
    assert moved("ops=acos", "to=full_codegen", text=twice).files[YAML] == BACKEND


def test_one_that_is_there_is_no_site() -> None:
    done = moved("ops=acos,abs", "to=full_codegen")
    assert (done.files[YAML], done.sites()) == (BACKEND, [])


def test_a_list_that_is_not_there_is_made() -> None:
    done = moved("ops=embedding,add.Tensor,bernoulli", "to=ir_gen")
    assert done.files[YAML] == BACKEND + "ir_gen:\n  - add.Tensor\n  - bernoulli\n  - embedding\n"


def test_an_empty_list_is_filled_and_the_last_item_leaves_an_empty_one() -> None:
    text = "backend: XLA\ncpp_namespace: a\nfull_codegen:\nsupported:  # by hand\n  - abs\n  - acos\nsymint: [abs]\n"
    done = moved("ops=a*", "to=full_codegen", text=text)
    expected = "full_codegen:\n  - abs\n  - acos\nsupported: []  # by hand\nsymint: [abs]\n"
    assert done.files[YAML] == "backend: XLA\ncpp_namespace: a\n" + expected
    back = moved("ops=acos", "to=supported", text=done.files[YAML])
    assert back.files[YAML].endswith("full_codegen:\n  - abs\nsupported:  # by hand\n  - acos\nsymint: [abs]\n")
    marked = moved("ops=acos", "to=symint", text=text)
    assert marked.files[YAML] == text.replace("[abs]", "[abs, acos]")


def test_a_commented_item_goes_to_a_list_that_is_made() -> None:
    text = "backend: XLA\ncpp_namespace: a\nsupported:\n- abs\n# Slow.\n- cos # very\nfull_codegen: ~ # none\n"
    done = moved("ops=cos", "to=full_codegen", text=text)
    assert done.files[YAML] == text.replace("# Slow.\n- cos # very\n", "").replace(" ~", "") + "# Slow.\n- cos # very\n"
    done = moved("ops=cos", "to=autograd", text=text.rstrip())
    assert done.files[YAML] == text.replace("# Slow.\n- cos # very\n", "") + "autograd:\n# Slow.\n- cos # very"


def test_what_stood_with_a_second_item_is_noted() -> None:
    text = "backend: XLA\ncpp_namespace: a\nsupported:\n  - abs  # slow\nfull_codegen:\n  - abs\n"
    done = moved("ops=abs", "to=full_codegen", text=text)
    assert done.files[YAML] == text.replace("supported:\n  - abs  # slow\n", "supported: []\n")
    assert done.notes() == [f"{YAML}:4: the text next to an item of `abs` was moved with it: `- abs # slow`"]


def test_an_item_with_options_goes_with_them_into_another_indentation() -> None:
    text = "backend: XLA\ncpp_namespace: a\nfull_codegen:\n- abs\nsupported:\n    - cos\n    - mul.out:\n        structured: true\n"
    done = moved("ops=mul.out", "to=full_codegen", text=text)
    assert done.files[YAML] == (
        "backend: XLA\ncpp_namespace: a\nfull_codegen:\n- abs\n- mul.out:\n    structured: true\nsupported:\n    - cos\n"
    )


def test_line_ends_and_a_missing_last_one_are_kept() -> None:
    text = "backend: XLA\r\ncpp_namespace: a\r\nsupported:\r\n  - abs\r\n  - cos\r\nfull_codegen:\r\n  - acos"
    done = moved("ops=cos", "to=full_codegen", text=text)
    assert done.files[YAML] == text.replace("  - cos\r\n", "") + "\r\n  - cos"


def test_a_list_that_is_not_sorted_gets_it_at_the_end() -> None:
    text = "backend: XLA\ncpp_namespace: a\nsupported:\n  - z\n  - y\n  - x\n  - w\nfull_codegen:\n  - abs\n"
    done = moved("ops=abs", "to=supported", text=text)
    assert done.files[YAML] == text.replace("  - w\n", "  - w\n  - abs\n").replace(
        "full_codegen:\n  - abs", "full_codegen: []"
    )


def test_only_what_is_chosen_goes() -> None:
    done = moved("ops=bernoulli,cos", "to=full_codegen", only=("cos",))
    assert "  # Slow on CPU.\n  - bernoulli\n\n" in done.files[YAML]
    assert done.sites()[0].endswith("(skipped)")


NATIVE = """\
- func: abs(Tensor self) -> Tensor
  dispatch: {CPU: abs}
- func: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
  dispatch: {CPU: expand}
"""

CPP = """\
namespace torch_xla {
// at::Tensor XLANativeFunctions::abs(const at::Tensor& self)
at::Tensor XLANativeFunctions::abs(const at::Tensor& self) { return other::abs(self); }
at::Tensor XLANativeFunctions::expand(const at::Tensor& self, at::IntArrayRef size, bool implicit) { return self; }
}
"""


@pytest.mark.parametrize(
    ("told", "note"),
    [
        (["ops=abs", "to=full_codegen"], "aten.cpp:3: the kernel of `abs` is generated now; this defines it as well"),
        (
            ["ops=expand", "to=symint"],
            "aten.cpp:4: the kernel of `expand` is called `expand_symint` now, and takes `SymInt`",
        ),
        (["ops=abs", "to=symint"], f"{YAML}:4: the schema of `abs` has no SymInt, so torchgen refuses it in `symint`"),
    ],
)
def test_what_kernels_in_cpp_say_to_it_is_noted(told: list[str], note: str) -> None:
    text = "backend: XLA\ncpp_namespace: torch_xla\nsupported:\n  - abs\n  - expand\n"
    files = {YAML: text, "native_functions.yaml": NATIVE, "aten.cpp": CPP}
    assert migrate_files(PACK, "move-supported", files, told).notes() == [note]


VARIANTS = """\
- func: abs(Tensor self) -> Tensor
  dispatch: {CPU: abs}
- func: abs_(Tensor(a!) self) -> Tensor(a!)
  dispatch: {CPU: abs_}
- func: abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch: {CPU: abs_out}
- func: abs.dim(Tensor self, int dim) -> Tensor
  dispatch: {CPU: abs_dim}
"""


@pytest.mark.parametrize(
    ("supported", "autograd", "told", "notes"),
    [
        ("abs abs_ abs.out", "sin", "ops=abs to=autograd", ["`abs.out` and `abs_` would stay behind"]),
        ("abs abs_", "sin", "ops=abs to=autograd", ["`abs_` would stay behind"]),
        ("abs abs_", "sin", "ops=abs* to=autograd", []),
        ("abs abs.dim", "sin", "ops=abs to=autograd", []),
        ("sin", "abs abs_", "ops=abs_ to=supported", ["`abs` would stay behind"]),
        ("sin", "abs abs_", "ops=abs_ from=autograd to=full_codegen", ["`abs` would stay behind"]),
        ("abs abs.out", "abs_", "ops=abs to=autograd", []),  # torn before: it is put together step by step
        ("abs abs_", "sin", "ops=abs to=full_codegen", []),
        ("abs abs_", "sin", "ops=abs to=symint", ["the schema of `abs` has no SymInt"]),
    ],
)
def test_variants_stay_on_one_side_of_autograd(supported: str, autograd: str, told: str, notes: list[str]) -> None:
    lists = {"supported": supported, "autograd": autograd}
    text = "backend: XLA\ncpp_namespace: a\nfull_codegen:\n- cos\n" + "".join(
        f"{key}:\n" + "".join(f"- {name}\n" for name in names.split()) for key, names in lists.items()
    )
    files = {YAML: text, "native_functions.yaml": VARIANTS + single("sin") + single("cos")}
    done = migrate_files(PACK, "move-supported", files, told.split())
    assert [note.partition(" ")[2].partition(",")[0] for note in done.notes()] == notes
    assert (done.files[YAML] == text) == bool(notes)


def single(name: str) -> str:
    return f"- func: {name}(Tensor self) -> Tensor\n  dispatch: {{CPU: {name}}}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["ops=beroulli", "to=full_codegen"], "no list here has such an operator; did you mean `bernoulli`?"),
        (["ops=cos", "to=full_codgen"], "-o to=full_codgen: there is no such list; did you mean `full_codegen`?"),
        (["ops=cos", "to=custom"], "there is no such list; known: `supported`, "),
        (
            ["ops=cos", "from=suported", "to=symint"],
            "-o from=suported: there is no such list; did you mean `supported`?",
        ),
        (
            ["ops=cos", "from=autograd", "to=full_codegen"],
            "-o ops=cos: it is listed under `supported`, not under `autograd`",
        ),
        (["ops=cos", "from=symint", "to=symint"], "it is the list that -o to= names"),
        (["ops=", "to=symint"], "names no operator"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        moved(*options)


@pytest.mark.parametrize("items", ["&all\n  - abs\n  - cos", "\n  - &one abs\n  - *one\n  - cos"])
def test_lists_with_anchors_stay(items: str) -> None:
    text = f"backend: XLA\ncpp_namespace: a\nsupported: {items}\n"
    done = moved("ops=cos", "to=full_codegen", text=text)
    assert done.files[YAML] == text
    assert [note.partition(" ")[2] for note in done.notes()] == [
        "move `cos` by hand: it holds tags, anchors or aliases"
    ]


WRAPPED = """\
backend: XLA
cpp_namespace: a
full_codegen: [cos,
  sin, tan]
autograd: [add.Tensor,
           sub.Tensor]
"""


@pytest.mark.parametrize(
    ("ops", "to", "lists"),
    [
        ("cos", "autograd", "full_codegen: [sin, tan]\nautograd: [add.Tensor,\n           sub.Tensor, cos]\n"),
        ("cos,tan", "autograd", "full_codegen: [sin]\nautograd: [add.Tensor,\n           sub.Tensor, cos, tan]\n"),
        (
            "add.Tensor,sub.Tensor",
            "full_codegen",
            "full_codegen: [cos,\n  sin, tan, add.Tensor, sub.Tensor]\nautograd: []\n",
        ),
    ],
)
def test_a_list_in_brackets_keeps_its_lines(ops: str, to: str, lists: str) -> None:
    done = moved(f"ops={ops}", f"to={to}", text=WRAPPED)
    assert done.files[YAML] == f"backend: XLA\ncpp_namespace: a\n{lists}"
    written = ops.split(",") if to == "autograd" else []
    said = "`{}` is not generated any more: define it in C++"
    assert [note.partition("the kernel of ")[2] for note in done.notes()] == [said.format(name) for name in written]


def test_options_in_brackets_stay() -> None:
    text = "backend: XLA\ncpp_namespace: a\nfull_codegen: [abs]\nsupported: [cos, {mul.out: {structured: true}}]\n"
    done = moved("ops=mul.out", "to=full_codegen", text=text)
    assert done.files[YAML] == text
    said = "move `mul.out` by hand: `mul.out` has options between the brackets of `supported`"
    assert done.notes() == [f"{YAML}:4: {said}"]
