"""The lines that torchgen asks for: computed, written, and no other line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK

NATIVE = "native_functions.yaml"

TANH = """\
# Hyperbolic.
- func: tanh(Tensor self) -> Tensor  # the first
  dispatch:
    CPU: tanh

- func: tanh_(Tensor(a!) self) -> Tensor(a!)
  variants: method
  dispatch:
    CPU: tanh_
"""


def added(text: str, *options: str) -> Migrated:
    return migrate_files(PACK, "add-autogen", {NATIVE: text}, options)


def test_the_line_for_an_operator_that_is_asked_for() -> None:
    done = added(TANH, "ops=tanh")
    assert done.files[NATIVE] == TANH + "  autogen: tanh.out\n"
    assert done.sites() == [f"{NATIVE}:6: write `autogen: tanh.out` in `tanh_`"]


def test_nothing_is_added_that_is_not_asked_for() -> None:
    text = TANH.partition("\n- func: tanh_")[0] + "\n"
    assert added(text).files[NATIVE] == text
    composite = "- func: tanh_(Tensor(a!) self) -> Tensor(a!)\n"
    assert added(composite).files[NATIVE] == composite


def test_what_torchgen_demands_is_added_without_asking() -> None:
    text = """\
- func: scale_(Tensor(a!) self, int by) -> Tensor(a!)
  dispatch:
    CPU: scale_
  tags: core
- func: scale.out(Tensor self, int by, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: scale_out
"""
    assert added(text).files[NATIVE] == text.replace("  tags", "  autogen: scale\n  tags")


def test_a_line_that_is_there_is_completed() -> None:
    text = "- func: fill_(Tensor(a!) self) -> Tensor(a!)\n  dispatch:\n    CPU: fill_\n  autogen: fill.out  # one\n"
    assert added(text).files[NATIVE] == text.replace("fill.out", "fill, fill.out")


def test_a_line_has_the_order_that_it_had() -> None:
    text = (
        "- func: f(Tensor x, Tensor(a!) y) -> Tensor\n  dispatch:\n    CPU: f\n  autogen: f_functional, other, f.out\n"
    )
    assert added(text).files[NATIVE] == text.replace(" other,", "")


def test_the_line_goes_where_the_nearest_entry_has_it() -> None:
    text = """\
- func: a(Tensor self) -> Tensor
  dispatch:
    CPU: a
  tags: core
  autogen: a.out
- func: b(Tensor self) -> Tensor
  dispatch:
    CPU: b
  tags: core
- func: c(Tensor self) -> Tensor
- func: d(Tensor self) -> Tensor
- func: e(Tensor self) -> Tensor
  dispatch:
    CPU: e
  autogen: e.out
  tags: core
"""
    assert added(text, "ops=b").files[NATIVE] == text.replace("- func: c", "  autogen: b.out\n- func: c")


def test_what_torchgen_generates_nothing_for_is_noted() -> None:
    text = """\
- func: view(Tensor(a) self) -> Tensor(a)
  dispatch:
    CPU: view
- func: composite(Tensor self) -> Tensor
- func: count(Tensor self) -> int
  dispatch:
    CPU: count
- func: both(Tensor self) -> (Tensor, SymInt)
  dispatch:
    CPU: both
- func: fill(Tensor(a!) self) -> Tensor
  dispatch:
    CPU: fill
"""
    done = added(text, "ops=view,composite,count,both,fill")
    assert done.files[NATIVE] == text
    assert done.notes() == [
        f"{NATIVE}:1: torchgen generates nothing for `view`: it is a view",
        f"{NATIVE}:4: torchgen generates nothing for `composite`: it is CompositeImplicitAutograd and not tagged `core`",
        f"{NATIVE}:5: torchgen generates nothing for `count`: it returns no tensor",
        f"{NATIVE}:8: torchgen generates nothing for `both`: a `SymInt` is returned beside tensors",
        f"{NATIVE}:11: torchgen generates nothing for `fill`: `self` is written, but the name is not that of an in-place"
        " operator",
    ]


def test_an_operator_with_all_variants_needs_nothing() -> None:
    text = TANH + "- func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    CPU: tanh_out\n"
    done = added(text, "ops=tanh*")
    assert done.files[NATIVE] == text
    assert done.notes() == []


def test_variants_that_differ_stay() -> None:
    text = TANH.replace("tanh_(Tensor(a!) self)", "tanh_(Tensor(a!) self, int n)") + "  autogen: tanh.out\n"
    assert added(text).files[NATIVE] == text


def test_a_misspelt_operator_is_refused() -> None:
    with pytest.raises(OptionError, match="did you mean `tanh_`"):
        added(TANH, "ops=tahn_")


def test_an_entry_in_braces() -> None:
    text = "- func: sin(Tensor self) -> Tensor\n- {func: tanh(Tensor self) -> Tensor, dispatch: {CPU: tanh}}\n"
    assert added(text, "ops=tanh").files[NATIVE] == text.replace("}}", "}, autogen: tanh.out}")


_ENTRY = re.compile(r"^- func: ([\w.]+).*\n(?:(?!- func:).*\n)*", re.MULTILINE)
_AUTOGEN = re.compile(r"^  autogen: [^\n]*\n", re.MULTILINE)


def test_the_lines_of_the_installed_torch_come_back() -> None:
    torchgen = pytest.importorskip("torchgen")
    text = (Path(torchgen.__file__).parent / "packaged/ATen/native" / NATIVE).read_text(encoding="utf-8")
    # Without kernels of its own an operator is composite: its line is dead, for torchgen generates nothing.
    listing = [match for match in _ENTRY.finditer(text) if _AUTOGEN.search(match[0]) and "\n  dispatch:" in match[0]][
        ::6
    ]
    bare = text
    for match in listing:
        bare = bare.replace(match[0], _AUTOGEN.sub("", match[0]))
    done = added(bare, f"ops={','.join(match[1] for match in listing)}")
    after = {match[1]: match[0] for match in _ENTRY.finditer(done.files[NATIVE])}
    before = {match[1]: match[0] for match in _ENTRY.finditer(text)}
    other = [name for name in before if before[name] != after[name]]
    # Those that are not the same to the byte differ in whether the line stands before the tags.
    assert [sorted(before[name].splitlines()) for name in other] == [sorted(after[name].splitlines()) for name in other]
    assert len(listing) > 70
    assert len(other) <= 3
