"""Groups of entries ported to structured kernels, as torchgen takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.oracle import DERIVATIVES, NATIVE, TAGS, emission_refusal, installed, refusal
from tests.rules.aten.plots import plot

SIN = """\
# Sines.
- func: sin(Tensor self) -> Tensor
  device_check: NoCheck   # TensorIterator
  variants: function, method
  dispatch:
    CompositeExplicitAutograd: sin
    SparseCPU, SparseCUDA: sin_sparse

- func: sin_(Tensor(a!) self) -> Tensor(a!)
  variants: function, method
  dispatch:
    # In place.
    CPU, CUDA: sin_

- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA, SparseCPU: sin_out
"""

DERIVATIVE = "- name: sin(Tensor self) -> Tensor\n  self: grad * self.cos()\n"

PORTED = """\
# Sines.
- func: sin(Tensor self) -> Tensor
  device_check: NoCheck   # TensorIterator
  structured_delegate: sin.out
  variants: function, method
  dispatch:
    SparseCPU, SparseCUDA: sin_sparse

- func: sin_(Tensor(a!) self) -> Tensor(a!)
  structured_delegate: sin.out
  variants: function, method

- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA, SparseCPU: sin_out
"""


def port(*options: str, text: str = SIN) -> Migrated:
    return migrate_files(PACK, "structured-port", {NATIVE: text, TAGS: installed(TAGS)}, options)


@pytest.mark.parametrize("named", ["sin", "sin_", "sin.out", "sin,sin.out"])
def test_a_group_is_ported_by_any_of_its_names(named: str) -> None:
    done = port(f"op={named}", "inherits=TensorIteratorBase")
    assert done.files[NATIVE] == PORTED
    assert refusal(done.files) is None
    assert emission_refusal({**done.files, DERIVATIVES: DERIVATIVE}) is None
    assert done.sites() == [f"{NATIVE}:15: make `sin.out` structured, and `sin` and `sin_` delegate to it"]
    assert done.notes() == [
        f"{NATIVE}:13: write `TORCH_META_FUNC(sin)` and `TORCH_IMPL_FUNC(sin_out)` in C++; `sin` and `sin_` may go there",
        f"{NATIVE}:2: `sin` had `CompositeExplicitAutograd`; the generated code instead calls `sin.out`",
        f"{NATIVE}:9: a comment went with `dispatch` of `sin_`: `# In place.`",
    ]


def test_a_group_that_is_structured_is_no_site() -> None:
    assert port("op=sin", text=PORTED).sites() == []


def test_a_composite_key_that_was_left_behind_goes() -> None:
    left = PORTED.replace(
        "    SparseCPU, SparseCUDA: sin_sparse\n",
        "    CompositeExplicitAutograd: sin\n    SparseCPU, SparseCUDA: sin_sparse\n",
        1,
    )
    assert port("op=sin", "keep=CompositeExplicitAutograd", text=left).sites() == []
    assert port("op=sin", text=left).files[NATIVE] == PORTED


def test_a_port_that_was_left_half_done_is_finished() -> None:
    half = PORTED.replace(
        "  structured_delegate: sin.out\n  variants: function, method\n\n", "  variants: function, method\n\n"
    )
    half = half.replace("structured: True", "structured: False").replace(
        "  structured_inherits: TensorIteratorBase\n", ""
    )
    assert half.count("sin.out") == 2
    done = port("op=sin", text=half)
    assert done.files[NATIVE] == PORTED.replace("  structured_inherits: TensorIteratorBase\n", "")


def test_composite_keys_that_are_asked_for_stay() -> None:
    done = port("op=sin", "keep=CompositeExplicitAutograd")
    assert "    CompositeExplicitAutograd: sin\n    SparseCPU, SparseCUDA: sin_sparse\n" in done.files[NATIVE]
    assert refusal(done.files) is None


def test_keys_of_one_line_and_of_a_flow_table_go_by_themselves() -> None:
    text = SIN.replace(
        "    CompositeExplicitAutograd: sin\n    SparseCPU, SparseCUDA: sin_sparse", "    CPU, SparseCPU,CUDA: sin"
    )
    text = text.replace("\n    # In place.\n    CPU, CUDA: sin_", " {CPU: sin_, SparseCPU: sin_sparse_, CUDA: sin_}")
    done = port("op=sin", text=text)
    assert "  variants: function, method\n  dispatch:\n    SparseCPU: sin\n" in done.files[NATIVE]
    assert "  dispatch: {SparseCPU: sin_sparse_}\n" in done.files[NATIVE]


def test_fields_that_touch_in_braces_stay() -> None:
    text = (
        "- {func: abs(Tensor self) -> Tensor, dispatch: {CPU: abs}}\n"
        '- {func: "abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", dispatch: {CPU: abs_out}}\n'
    )
    done = port("op=abs", text=text)
    assert done.files[NATIVE] == text
    assert [note.partition(": ")[2] for note in done.notes()] == [
        "port it by hand: the fields to change are neighbours in braces"
    ]
    apart = text.replace("dispatch: {CPU: abs}}", "variants: function, dispatch: {CPU: abs}}")
    assert "-> Tensor, structured_delegate: abs.out, variants: function}" in port("op=abs", text=apart).files[NATIVE]


def test_the_flag_is_spelt_as_in_the_file() -> None:
    other = "- func: cos(Tensor self) -> Tensor\n  manual_cpp_binding: true\n"
    assert "  structured: true\n" in port("op=sin", text=SIN + other).files[NATIVE]


def test_a_meta_function_of_an_overload_has_its_name() -> None:
    text = SIN.replace("sin(", "sin.Tensor(").replace("sin_(", "sin_.Tensor(").replace("sin.out(", "sin.Tensor_out(")
    done = port("op=sin.Tensor", text=text)
    assert "structured_delegate: sin.Tensor_out" in done.files[NATIVE]
    assert "write `TORCH_META_FUNC2(sin, Tensor)` and" in done.notes()[0]


IMPLICIT = """\
- func: sin(Tensor self) -> Tensor
- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch: {CPU: sin_out}
"""


def test_a_composite_functional_is_noted() -> None:
    done = port("op=sin", text=IMPLICIT)
    assert refusal(done.files) is None
    assert done.notes()[1] == f"{NATIVE}:1: `sin` was CompositeImplicitAutograd: it needs a derivative of its own now"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "- func: sin.out",
            "- func: cosh.out",
            "its group has no out entry, which a structured kernel needs: `sin` and `sin_`",
        ),
        (
            "- func: sin(",
            "- func: cosh(",
            "its group has no functional entry, which a structured kernel needs: `sin.out` and `sin_`",
        ),
        (
            "    CPU, CUDA, SparseCPU: sin_out",
            "    CPU: sin_out",
            "`sin_` has kernels for `CUDA`, and `sin.out` has none: they would be lost",
        ),
        (
            "    CPU, CUDA, SparseCPU: sin_out",
            "    SparseCPU: sin_out",
            "`sin.out` has no kernel for `CPU`, `CUDA`, `MPS`, `MTIA` or `XPU`",
        ),
        (
            "    CPU, CUDA, SparseCPU: sin_out",
            "    CompositeImplicitAutograd: sin_o",
            "`sin.out` is CompositeImplicitAutograd, and",
        ),
        (
            "    CPU, CUDA: sin_\n",
            "    Meta: sin_meta_\n",
            "`sin_` has `Meta`, which is generated for structured kernels",
        ),
        (
            "sin_(Tensor(a!) self) -> Tensor(a!)\n",
            "sin_(Tensor(a!) self) -> Tensor(a!)\n  device_guard: False\n",
            "`sin_` has `device_guard: False`",
        ),
        (
            "sin_(Tensor(a!) self) -> Tensor(a!)\n",
            "sin_(Tensor(a!) self) -> Tensor(a!)\n  structured_delegate: cos.out\n",
            "`sin_` delegates to `cos.out` already",
        ),
        ("# Sines.\n", "- func: sin(Tensor self) -> Tensor\n", "an operator of its group is written twice"),
    ],
)
def test_what_torchgen_would_refuse_stays(old: str, new: str, message: str) -> None:
    text = SIN.replace(old, new, 1)
    assert text != SIN
    done = port("op=sin_", text=text)
    assert done.files[NATIVE] == text
    assert [message in note for note in done.notes()] == [True]
    assert done.sites()[0].endswith(" (left)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- func: ones(int size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=None) -> Tensor\n"
            "  dispatch: {CPU: o}\n"
            "- func: ones.out(int size, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch: {CPU: o}\n",
            "structured kernels take no `dtype`, `layout`, `device` and `pin_memory` together (`TensorOptions`)",
        ),
        (
            "- func: ones(Tensor x) -> Tensor[]\n  dispatch: {CPU: o}\n"
            "- func: ones.out(Tensor x, *, Tensor(a!)[] out) -> ()\n  dispatch: {CPU: o}\n",
            "structured kernels write tensors, and `out` is none",
        ),
    ],
)
def test_schemas_that_structured_kernels_do_not_have_stay(text: str, message: str) -> None:
    done = port("op=ones.out", text=text)
    assert done.files[NATIVE] == text
    assert done.notes()[0].endswith(message)
    assert refusal(done.files) is None
    flagged = text.replace("dispatch", "structured_delegate: ones.out\n  dispatch", 1)
    flagged = flagged.replace(
        "  structured_delegate: ones.out\n  dispatch: {CPU: o}", "  structured_delegate: ones.out"
    )
    flagged = re.sub(r"(?s)(ones\.out\(.*?\n)", r"\1  structured: True\n", flagged)
    files = {NATIVE: flagged, TAGS: installed(TAGS)}
    assert refusal(files) is not None or emission_refusal(files) is not None


def test_a_copy_of_a_view_stays() -> None:
    text = plot(())[NATIVE]
    done = port("op=narrow_copy.out", text=text)
    assert done.files[NATIVE] == text
    (note,) = done.notes()
    assert note.endswith(": `narrow_copy` copies a view (`view_copy`): torchgen writes its kernel")


def test_a_name_without_its_overload_is_answered_with_those_that_there_are() -> None:
    text = SIN.replace("sin(", "sin.One(").replace("sin_(", "sin_.One(")
    with pytest.raises(OptionError, match=r"^-o op=sin: there is no such entry; there are `sin\.One` and `sin\.out`$"):
        port("op=sin", text=text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["op=sine"], "-o op=sine: there is no such entry"),
        (["op=sin.ot"], "-o op=sin.ot: there is no such entry; did you mean `sin.out`?"),
        (["op="], "-o op= names no operator"),
        (["op=sin", "keep=CPU"], "-o keep=CPU: it is not one of `CompositeExplicitAutograd`, "),
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(OptionError) as raised:
        port(*options)
    assert message in str(raised.value)


# The installed torch's structured kernels, taken back to what they were before.

STRUCTURED = ("CPU", "CUDA", "MPS", "MTIA", "XPU")
Entries = Mapping[str, Mapping[str, Any]]


def entries_of(text: str) -> dict[str, dict[str, Any]]:
    return {entry["func"].partition("(")[0]: entry for entry in yaml.safe_load(text)}


def keys_of(entry: Mapping[str, Any]) -> list[str]:
    return [key.strip() for keys in entry.get("dispatch", {}) for key in keys.split(",")]


def old_groups(entries: Entries) -> Iterator[tuple[str, list[str]]]:
    """Structured out entries and what delegates to them, but those that are nothing without being structured."""
    for name, entry in entries.items():
        delegates = [other for other, found in entries.items() if found.get("structured_delegate") == name]
        composite = [key for other in delegates for key in keys_of(entries[other]) if key.startswith("Composite")]
        if entry.get("structured") and not composite and not {"ufunc_inner_loop", "precomputed"} & entry.keys():
            yield name, delegates


def taken_back(text: str, groups: Mapping[str, list[str]], entries: Entries) -> str:
    """The groups' entries, as they are written, without being structured: each delegate has kernels of its own."""
    outs = {delegate: out for out, delegates in groups.items() for delegate in delegates}
    found: list[str] = []
    for block in re.split(r"\n(?=- func: )", text):
        name = block.removeprefix("- func: ").partition("(")[0]
        if name in groups:
            found.append(re.sub(r"\n  structured(_inherits)?:.*", "", block))
        elif name in outs:
            keys = ", ".join(key for key in keys_of(entries[outs[name]]) if key in STRUCTURED)
            block = re.sub(r"\n  structured_delegate:.*", "", block).rstrip()
            table = "" if "\n  dispatch:" in block else "\n  dispatch:"
            line = f"{table}\n    {keys}: {name.replace('.', '_')}_old"
            at = block.index("\n", block.index("\n  dispatch:") + 1) if not table else len(block)
            found.append(f"{block[:at]}{line}{block[at:]}\n")
    return "\n".join(found)


def test_the_installed_kernels_are_ported_again() -> None:
    entries = entries_of(installed(NATIVE))
    groups = dict(list(old_groups(entries))[::4])
    before = {NATIVE: taken_back(installed(NATIVE), groups, entries), TAGS: installed(TAGS)}
    assert len(groups) > 60
    assert "structured:" not in before[NATIVE]
    assert refusal(before) is None
    derivative = f"- name: {entries[next(iter(groups.values()))[0]]['func']}\n  self: grad\n"
    by_base: dict[str, list[str]] = {}
    for name in groups:
        by_base.setdefault(entries[name].get("structured_inherits", ""), []).append(name)
    files = before
    for base, names in by_base.items():
        done = migrate_files(PACK, "structured-port", files, [f"op={','.join(names)}", f"inherits={base}"])
        assert not [site for site in done.sites() if site.endswith(")")]
        files = done.files
    assert entries_of(files[NATIVE]) == {name: entries[name] for name in entries_of(before[NATIVE])}
    assert refusal(files) is None
    assert emission_refusal({**files, DERIVATIVES: derivative}) is None
