"""`opschema diff` of what single dialects declare, where one side is written otherwise or has no declaration of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_rules.tileops.examples import example_files
from tests.command import Here


class Folders:
    """Two folders, which are compared."""

    def __init__(self, folder: Path, opschema: Here) -> None:
        self.old, self.new = folder / "old", folder / "new"
        self._opschema = opschema

    def changes(self, old: dict[str, str], new: dict[str, str], *options: str) -> list[str]:
        """The code and message of each change."""
        for folder, files in ((self.old, old), (self.new, new)):
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
        done = self._opschema("diff", "--against", str(self.old), "--output-format", "concise", *options)
        lines = [line for line in done.out.splitlines() if " DIF" in line]
        return [line.partition(" DIF")[2].rpartition(" (ops:")[0] for line in lines]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folders:
    (tmp_path / "new").mkdir()
    return Folders(tmp_path, Here(tmp_path / "new", tmp_path / "cache", monkeypatch, capsys))


LISTS = """\
signature:
  inputs:
    - {name: x, dtype: "float16 | float32"}
  outputs:
    - {name: y, dtype: "same_as(x)"}
  params:
    eps: {type: float, default: 0.5}
"""
MAPPINGS = """\
signature:
  inputs:
    x: {dtype: "float16 | float32"}
  outputs:
    y: {dtype: "same_as(x)"}
  params:
    eps: {type: float, default: 0.5}
"""


def test_a_signature_in_a_form_that_is_not_known_has_no_changes(folders: Folders) -> None:
    before, after = (dict(example_files([("yaml", text)])) for text in (LISTS, MAPPINGS))
    assert folders.changes(before, after) == []
    narrower = dict(example_files([("yaml", MAPPINGS.replace(" | float32", ""))]))
    assert [line[:3] for line in folders.changes(after, narrower)] == ["213", "213"]


def test_a_backend_that_lists_an_operator_of_torch_no_more_does_not_remove_it(folders: Folders) -> None:
    def listed(*names: str) -> dict[str, str]:
        return {
            "kit_native_functions.yaml": "backend: Kit\ncpp_namespace: kit\nsupported:\n"
            + "".join(f"  - {name}\n" for name in names)
        }

    assert folders.changes(listed("abs", "add_.Tensor", "acos"), listed("abs", "acos")) == [
        "402 [backend] `aten::add_.Tensor`: `Kit` does not list it any more (affects backends and kernels)"
    ]


HALF = """\
- op : half
  args : (Tensor x, bool exact = false, float scale = 1.0f, int[] axes = {1, 1}, DataType dtype = DataType::FLOAT32)
  output : Tensor(out)
  infer_meta : {func : HalfInferMeta}
  kernel : {func : half}
"""


def test_defaults_that_are_written_in_cpp(folders: Folders) -> None:
    new = HALF.replace("exact = false", "exact = true").replace("1.0f", "1.0").replace("{1, 1}", "{1,1}")
    found = folders.changes({"ops.yaml": HALF}, {"ops.yaml": new.replace("FLOAT32", "INT64")})
    hit = "(affects callers and users of what the declaration states)"
    assert [item.removesuffix(hit).strip() for item in found] == [
        "209 [default] `half`: `exact` now has the default `true`; it had the default `false`",
        "209 [default] `half`: `dtype` now has the default `DataType::INT64`; it had the default `DataType::FLOAT32`",
    ]
