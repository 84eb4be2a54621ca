"""`wrap-outputs`: what of an entry's annotations changes, and what is left to a person."""

from __future__ import annotations

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.pypto.pack import PACK

BEFORE = """\
import pypto.language as pl
import torch
from golden import TensorSpec, run_jit


@pl.jit
def attend(
    x: pl.Tensor[[8], pl.FP32],
    cache: pl.Tensor[[8], pl.FP32],  # the history
    state: pl.Out[pl.Tensor[[8], pl.FP32]],
    y: pl.Tensor[
        [8],
        pl.FP32,
    ],
):
    ...


def build_specs():
    return [
        TensorSpec("x", [8], torch.float32, init_value=torch.randn),
        TensorSpec("cache", [8], torch.float32, init_value=torch.randn, is_output=True),
        TensorSpec("state", [8], torch.float32, init_value=torch.randn),
        TensorSpec("y", [8], torch.float32, is_output=True),
    ]


run_jit(fn=attend, specs=build_specs())
"""

AFTER = (
    BEFORE.replace("cache: pl.Tensor[[8], pl.FP32]", "cache: pl.InOut[pl.Tensor[[8], pl.FP32]]")
    .replace("state: pl.Out[", "state: pl.InOut[")
    .replace(
        "y: pl.Tensor[\n        [8],\n        pl.FP32,\n    ]",
        "y: pl.Out[pl.Tensor[\n        [8],\n        pl.FP32,\n    ]]",
    )
)


def migrate(text: str, **choice: list[str]) -> Migrated:
    return migrate_files(PACK, "wrap-outputs", {"run.py": text}, **choice)


def test_annotations_change_and_nothing_else() -> None:
    done = migrate(BEFORE)
    assert done.files == {"run.py": AFTER}
    assert done.notes() == []
    assert done.sites() == [
        "run.py:9: declare `cache` of `attend` as `pl.InOut`",
        "run.py:10: declare `state` of `attend` as `pl.InOut`",
        "run.py:11: declare `y` of `attend` as `pl.Out`",
    ]


def test_what_is_right_stays() -> None:
    assert migrate(AFTER).sites() == []


def test_a_suppressed_parameter_stays() -> None:
    text = BEFORE.replace("# the history", "# opschema: ignore[PTO110] it is read back by hand")
    done = migrate(text)
    assert "cache: pl.Tensor[[8], pl.FP32]" in done.files["run.py"]
    assert done.sites()[0] == "run.py:9: declare `cache` of `attend` as `pl.InOut` (suppressed)"


def test_an_unknown_initial_value_is_left_with_a_note() -> None:
    text = BEFORE.replace('"y", [8], torch.float32,', '"y", [8], torch.float32, init_value=value,')
    done = migrate(text)
    assert done.notes() == [
        "run.py:11: `y` of `attend` is an output, but whether it has an initial value is not known: declare it `pl.Out` or "
        "`pl.InOut`"
    ]
    assert done.files["run.py"].endswith(text[text.index("    y: pl.Tensor") :])


def test_a_name_for_an_annotation_is_left_with_a_note() -> None:
    text = BEFORE.replace("@pl.jit", "STATE = pl.Out[pl.Tensor[[8], pl.FP32]]\n\n\n@pl.jit").replace(
        "state: pl.Out[pl.Tensor[[8], pl.FP32]]", "state: STATE"
    )
    assert migrate(text).notes() == [
        "run.py:13: `state` of `attend` has to be `pl.InOut`, but its annotation is a name, or the file imports no name for that"
    ]


def test_computed_specs_are_left_with_a_note() -> None:
    text = BEFORE.replace(
        "specs=build_specs()", "specs=build_specs()[:2] + [TensorSpec('y', [8], torch.float32, is_output=True)]"
    )
    assert migrate(text).notes() == [
        "run.py:7: some specs of `attend` are computed: which of `x`, `cache` it writes is not known"
    ]


def test_an_output_that_the_body_reads_goes_both_ways() -> None:
    text = BEFORE.replace("    ...\n", "    y[0:4] = pl.add(pl.slice(y, [4], [4]), x[0:4])\n")
    assert "    y: pl.InOut[pl.Tensor[\n" in migrate(text).files["run.py"]


def test_what_a_host_hands_on_changes_in_both_functions() -> None:
    text = BEFORE.replace(
        "def build_specs",
        "@pl.jit.host\n"
        "def world(x: pl.Tensor[[2, 8], pl.FP32], y: pl.Tensor[[2, 8], pl.FP32]):\n"
        "    for r in pl.range(2):\n"
        "        attend(x[r], x[r], x[r], y[r])\n\n\n"
        "def build_specs",
    ).replace("fn=attend", "fn=world")
    done = migrate(text)
    assert done.sites() == [
        "run.py:11: declare `y` of `attend` as `pl.Out`",
        "run.py:20: declare `y` of `world` as `pl.Out`",
    ]
