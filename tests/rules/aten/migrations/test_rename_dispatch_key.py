"""A dispatch key renamed where it is a key, and nowhere else."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.oracle import installed

NATIVE, DERIVATIVES, XPU = "native_functions.yaml", "derivatives.yaml", "xpu_functions.yaml"

FUNCTIONS = """\
# Math says that it works everywhere.
- func: abs(Tensor self) -> Tensor
  dispatch:
    CPU,  Math , "CUDA": Math  # Math_abs
    'Math': mathematics
- func: sin(Tensor self) -> Tensor
  dispatch: {Math: sin, CPU: Math}
- func: cos(Tensor self) -> Tensor
  dispatch:
    MathCPU: Math
"""


def renamed(*options: str, files: dict[str, str]) -> Migrated:
    return migrate_files(PACK, "rename-dispatch-key", files, options or ["from=Math", "to=CompositeImplicitAutograd"])


def test_keys_are_renamed_and_kernels_and_comments_stay() -> None:
    plain = FUNCTIONS.replace('"CUDA"', "CUDA").replace("'Math': mathematics", "XPU: mathematics")
    done = renamed(files={NATIVE: plain})
    assert done.files[NATIVE] == plain.replace(" Math ,", " CompositeImplicitAutograd ,").replace(
        "{Math:", "{CompositeImplicitAutograd:"
    )
    assert done.sites() == [
        f"{NATIVE}:4: rename `Math` to `CompositeImplicitAutograd` in `abs`",
        f"{NATIVE}:7: rename `Math` to `CompositeImplicitAutograd` in `sin`",
    ]
    assert done.notes() == [f"{NATIVE}:1: this comment still mentions `Math`"]


def test_a_quoted_key_stays_quoted() -> None:
    text = "- func: abs(Tensor self) -> Tensor\n  dispatch:\n    'CPU, Math': abs\n"
    assert renamed(files={NATIVE: text}).files[NATIVE] == text.replace("Math", "CompositeImplicitAutograd")


def test_an_entry_that_has_the_new_key_stays() -> None:
    text = "- func: abs(Tensor self) -> Tensor\n  dispatch:\n    CPU: one\n    CUDA: two\n"
    done = renamed("from=CPU", "to=CUDA", files={NATIVE: text})
    assert done.files[NATIVE] == text
    assert done.notes() == [
        f"{NATIVE}:3: `CUDA` is in this table already, line 4; drop one of the two, then rename `CPU`"
    ]


@pytest.mark.parametrize(
    ("table", "notes"),
    [
        ("Math: abs", 1),
        ("Math: abs_symint", 0),
        ("CPU, Math: abs", 0),
    ],
)
def test_a_table_that_torchgen_refuses_is_noted(table: str, notes: int) -> None:
    done = renamed(files={NATIVE: f"- func: abs(Tensor self) -> Tensor\n  dispatch:\n    {table}\n"})
    assert [note.partition(": ")[2] for note in done.notes()] == notes * [
        "torchgen refuses a table of `CompositeImplicitAutograd` alone: delete it, and call the kernel as the operator"
    ]


def test_keys_of_derivatives_are_renamed() -> None:
    files = {
        NATIVE: "- func: abs(Tensor self) -> Tensor\n  dispatch:\n    CPU: abs\n",
        DERIVATIVES: """\
- name: abs(Tensor self) -> Tensor
  dispatch:
    Default:
      self: grad
    AutogradNestedTensor:
      self: AutogradNestedTensor(grad)
""",
    }
    done = renamed("from=AutogradNestedTensor", "to=AutogradXPU", files=files)
    assert done.files == {**files, DERIVATIVES: files[DERIVATIVES].replace("AutogradNestedTensor:", "AutogradXPU:")}
    assert done.sites() == [f"{DERIVATIVES}:5: rename `AutogradNestedTensor` to `AutogradXPU` in `abs`"]


def test_a_backend_is_renamed_and_its_class_noted() -> None:
    text = "backend: MSNPU\ncpp_namespace: torch_ort\nsupported:\n- abs\n"
    done = renamed("from=MSNPU", "to=MAIA", files={XPU: text})
    assert done.files[XPU] == text.replace("MSNPU", "MAIA")
    assert done.notes() == [
        f"{XPU}:1: the kernels are now looked for in the class `MAIANativeFunctions`; rename it, or write `class_name:`"
    ]
    named = text + "class_name: MSNPUKernels\n"
    assert renamed("from=MSNPU", "to=MAIA", files={XPU: named}).notes() == []


def test_code_that_names_the_key_is_noted_once_no_entry_has_it() -> None:
    files = {
        NATIVE: "# Math\n- func: abs(Tensor self) -> Tensor\n  dispatch:\n    Math, CPU: abs\n",
        "a.cpp": "auto k = DispatchKey::Math;\nTORCH_LIBRARY_IMPL(aten, Math, m) {}\nint Math = std::Math();\n",
        "b.py": "DispatchKey.Math\nDispatchKey.MathCPU\n",
    }
    assert renamed(files=files).notes() == [
        f"{NATIVE}:1: this comment still mentions `Math`",
        "a.cpp:1: this still names `Math`",
        "a.cpp:2: this still names `Math`",
        "b.py:1: this still names `Math`",
    ]
    clash = "- func: sin(Tensor self) -> Tensor\n  dispatch:\n    Math: a\n    CompositeImplicitAutograd: b\n"
    assert len(renamed(files={**files, NATIVE: files[NATIVE] + clash}).notes()) == 1


def test_a_table_that_an_alias_shares_is_renamed_once() -> None:
    text = """\
- func: abs(Tensor self) -> Tensor
  dispatch: &table
    Math, CPU: abs
- func: sin(Tensor self) -> Tensor
  dispatch: *table
"""
    done = renamed(files={NATIVE: text})
    assert done.files[NATIVE] == text.replace("Math", "CompositeImplicitAutograd")
    assert len(done.sites()) == 1


def test_a_new_key_that_torchgen_does_not_know_is_noted_once() -> None:
    text = "- func: abs(Tensor self) -> Tensor\n  dispatch:\n    CPU: one\n    XPU: two\n"
    done = renamed("from=XPU", "to=Cuda", files={NATIVE: text + text.replace("abs", "sin"), XPU: "backend: XPU\n"})
    assert done.notes() == [f"{NATIVE}:4: torchgen has no dispatch key `Cuda`; did you mean `CUDA`?"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["from=CPU", "to=CPU"], "-o to=CPU: it is called so already"),
        (["from=CPU,CUDA", "to=XPU"], "-o from=CPU,CUDA: a dispatch key is one word, such as `CPU`"),
        (
            ["from=CompositeImplictAutograd", "to=XPU"],
            "no entry has such a dispatch key; did you mean `CompositeImplicitAutograd`?",
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], message: str) -> None:
    text = "- func: abs(Tensor self) -> Tensor\n  dispatch:\n    CPU: abs\n"
    with pytest.raises(OptionError) as raised:
        renamed(*options, files={NATIVE: text})
    assert message in str(raised.value)


def test_a_key_that_is_gone_is_no_mistake() -> None:
    text = "- func: abs(Tensor self) -> Tensor\n  dispatch:\n    HPU: abs\n"
    assert renamed("from=HPU1", "to=HPU", files={NATIVE: text}).sites() == []
    assert renamed("from=Math", "to=XPU", files={NATIVE: text}).sites() == []


@pytest.mark.parametrize(
    ("name", "old", "entries"), [(NATIVE, "CompositeExplicitAutograd", 544), (DERIVATIVES, "AutogradNestedTensor", 13)]
)
def test_the_files_of_the_installed_torch_there_and_back(name: str, old: str, entries: int) -> None:
    there = renamed(f"from={old}", "to=DefaultBackend", files={name: installed(name)})
    lines = zip(installed(name).splitlines(), there.files[name].splitlines(), strict=True)
    changed = [(before, after) for before, after in lines if before != after]
    assert len(there.sites()) == entries == len(changed)
    assert all(before.replace(old, "DefaultBackend", 1) == after for before, after in changed)
    back = renamed("from=DefaultBackend", f"to={old}", files=there.files)
    assert back.files[name] == installed(name)
