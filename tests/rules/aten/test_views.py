"""Views, their in-place variants and the operators that copy."""

from __future__ import annotations

import pytest

from tests.rules.aten.native_findings import fixed, lines

WIDEN = """\
- func: widen.int(Tensor(a) self, int n) -> Tensor(a)
  dispatch:
    CPU: widen
- func: widen_copy.int(Tensor self, int n) -> Tensor
  dispatch:
    CompositeExplicitAutogradNonFunctional: widen_copy
  tags: view_copy
"""
INPLACE = """\
- func: widen_.int(Tensor(a!) self, int n) -> Tensor(a!)
  dispatch:
    CPU: widen_
  tags: inplace_view
"""


@pytest.mark.parametrize(
    "text",
    [
        WIDEN,
        WIDEN + INPLACE,
        "- func: slice_inverse(Tensor(a) self) -> Tensor(a)\n  dispatch:\n    CPU: f\n",
        "- func: narrow(Tensor(a) self) -> Tensor(a)\n- func: narrow_copy(Tensor self) -> Tensor\n"
        "  dispatch:\n    CompositeExplicitAutogradNonFunctional: f\n  tags: view_copy\n",
        "- func: set_(Tensor(a!) self) -> Tensor(a!)\n  tags: inplace_view\n",
        "- func: copy(Tensor self) -> Tensor\n  dispatch:\n    CPU: copy\n",
    ],
)
def test_views_that_fit(text: str) -> None:
    assert lines(text) == []


def test_a_view_without_copy() -> None:
    assert lines(WIDEN.partition("- func: widen_copy")[0]) == ["ATN343 1:widen.int <- 2:dispatch"]


def test_a_copy_with_another_signature() -> None:
    assert lines(WIDEN.replace("widen_copy.int(Tensor self, int n", "widen_copy.int(Tensor self, SymInt n")) == [
        "ATN343 4:SymInt <- 1:int"
    ]


def test_a_copy_of_another_overload() -> None:
    assert lines(WIDEN.replace("widen_copy.int", "widen_copy.any")) == []


def test_a_copy_that_may_stand_in_an_entry_that_cannot_be_read() -> None:
    assert lines(WIDEN.replace("(Tensor self, int n) ->", "(Tensor self, int n) - >")) == []


def test_a_copy_without_tag() -> None:
    text = WIDEN.replace("  tags: view_copy\n", "")
    assert lines(text) == ["ATN344 4:widen_copy.int <- 1:widen.int"]
    assert fixed(text, "ATN344") == WIDEN


@pytest.mark.parametrize(
    ("tags", "after"), [("core", "[core, view_copy]"), ("[core, pointwise]", "[core, pointwise, view_copy]")]
)
def test_the_tag_is_added_to_others(tags: str, after: str) -> None:
    assert fixed(WIDEN.replace("tags: view_copy", f"tags: {tags}"), "ATN344") == WIDEN.replace(
        "view_copy\n", f"{after}\n"
    )


def test_an_inplace_view_without_view() -> None:
    assert lines(INPLACE) == ["ATN341 1:widen_.int <- 4:inplace_view"]


def test_an_inplace_view_that_is_not_called_so() -> None:
    text = WIDEN + INPLACE.replace("widen_.int", "widen.inner")
    assert "ATN341 8:widen.inner <- 11:inplace_view" in lines(text)


def test_an_inplace_view_by_its_annotations() -> None:
    text = "- func: f_(Tensor(a!) self, Tensor(b -> *) other) -> Tensor(a!)\n  dispatch:\n    CPU: f_\n"
    assert lines(text) == ["ATN342 1:f_"]
    assert fixed(text, "ATN342") == text + "  tags: inplace_view\n"


def test_a_composite_view_and_its_inplace_variant() -> None:
    view = "- func: widen.int(Tensor(a) self, int n) -> Tensor(a)\n"
    assert lines(view + INPLACE) == ["ATN345 3:dispatch <- 1:widen.int"]
    assert lines(view + INPLACE.replace("  dispatch:\n    CPU: widen_\n", "")) == []


def test_names_that_are_one_without_copy() -> None:
    view = "- func: widen(Tensor(a) self, int n) -> Tensor(a)\n- func: widen_copy(Tensor(a) self, int n) -> Tensor(a)\n"
    assert lines(view) == ["ATN346 2:widen_copy <- 1:widen"]


def test_an_annotation_that_makes_a_view_of_an_out_variant() -> None:
    text = """\
- func: f(Tensor[] tensors) -> Tensor
- func: f.out(Tensor(b -> *)[] tensors, *, Tensor(a!) out) -> Tensor(a!)
"""
    assert lines(text) == ["ATN347 2:Tensor(b -> *)[] <- 1:f"]


def test_a_file_from_before_variants_were_generated_is_not_judged_by_what_came_then() -> None:
    view, fill = "- func: widen(Tensor(a) self) -> Tensor(a)\n", "- func: fill_(Tensor(a!) self) -> Tensor(a!)\n"
    kernel = "  dispatch:\n    CPU: kernel\n"
    others = "".join(f"- func: f{number}(Tensor self) -> Tensor\n" for number in range(600))
    assert lines(view + kernel + fill + kernel) == ["ATN343 1:widen <- 2:dispatch", "ATN371 4:fill_"]
    assert lines(view + kernel + fill + kernel + others) == []
    listed = f"- func: f(Tensor self) -> Tensor\n{kernel}  autogen: f.out\n"
    assert len(lines(view + kernel + fill + kernel + others + listed)) == 2
