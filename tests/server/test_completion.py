"""Completion while a manifest is typed, lenses, and the schemas that editors without a server use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

import yaml
from lsprotocol import types

from opschema_cli.lint.pack import Pack
from opschema_cli.server.outline import Cursor, cursor_at
from opschema_rules.executorch.pack import PACK as EXECUTORCH
from opschema_rules.paddle.pack import PACK as PADDLE
from tests.command import TILEKIT, Here
from tests.file_schemas import refused
from tests.server.editor import Editor

INPUTS = ("Op", "signature", "inputs")
MANIFEST = "tilekit/manifest/normalization.yaml"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Op:\n  fam|", Cursor(("Op",), "key", "fam")),
        ("Op:\n  signature:\n    inputs:\n      x: {dt|", Cursor((*INPUTS, "x"), "key", "dt")),
        (
            'Op:\n  signature:\n    inputs:\n      x: {dtype: "fl|',
            Cursor(("Op", "signature", "inputs", "x", "dtype"), "value", "fl"),
        ),
        ("Op:\n  status: |", Cursor(("Op", "status"), "value", "")),
        (
            "Op:\n  # note: {\n\n  workloads:\n    - {dtypes: [float16, b|",
            Cursor(("Op", "workloads", "*", "dtypes", "*"), "value", "b"),
        ),
        ("Op:\n  workloads:\n  - label: a\n    dt|", Cursor(("Op", "workloads", "*"), "key", "dt")),
        ("- func: f\n  dispatch:\n    CP|", Cursor(("*", "dispatch"), "key", "CP")),
        ("supported:\n- ad|", Cursor(("supported", "*"), "key", "ad")),
        ("Op:\n  a: {b: 1}\nOther:\n  |", Cursor(("Other",), "key", "")),
    ],
)
def test_the_cursor_is_found_by_lines_alone(text: str, expected: Cursor) -> None:
    offset = text.index("|")
    assert cursor_at(text.replace("|", ""), offset) == expected


def completed(editor: Editor, path: str, text: str) -> set[str]:
    at = editor.at(path, text, len(text))
    found = editor.request(types.TEXT_DOCUMENT_COMPLETION, types.CompletionParams(at.text_document, at.position))
    return {item.label for item in found}


def test_keys_and_values_of_the_schema_are_offered(editor: Editor) -> None:
    text = (editor.root / MANIFEST).read_text(encoding="utf-8")
    editor.open(MANIFEST, text + "\nNewFwdOp:\n  status: \n  signature:\n    inputs:\n      t: {dty\n  wor")
    assert {"workloads", "roofline", "source"} <= completed(editor, MANIFEST, "  wor")
    assert completed(editor, MANIFEST, "NewFwdOp:\n  status: ") == {"implemented", "spec-only"}
    assert {"dtype", "shape"} <= completed(editor, MANIFEST, "t: {dty")
    assert {"bfloat16", "float8_e4m3fn"} <= completed(editor, MANIFEST, 'weight: {dtype: "')
    editor.shut(MANIFEST)


def test_a_lens_verifies_an_operator(editor: Editor) -> None:
    editor.open(MANIFEST)
    params = types.CodeLensParams(types.TextDocumentIdentifier(editor.uri(MANIFEST)))
    first, *_ = editor.request(types.TEXT_DOCUMENT_CODE_LENS, params)
    assert editor.reads(MANIFEST, first.range) == "RMSNormFwdOp"
    assert list(first.command.arguments) == [str(editor.root), "RMSNormFwdOp"]
    editor.shut(MANIFEST)


def schemas(here: Here) -> Iterator[tuple[str, dict[str, object]]]:
    for name in here("schema").out.split():
        yield name, json.loads(here("schema", name).out)


def test_schemas_are_valid_and_accept_what_lint_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Here(TILEKIT, tmp_path, monkeypatch, capsys)
    found = dict(schemas(here))
    of_packs = {"tileops/manifest", "aten/native-functions", "aten/backend", "executorch/functions", "paddle/ops"}
    assert set(found) == {"config", *of_packs}
    for schema in found.values():
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        jsonschema.Draft202012Validator.check_schema(schema)

    def errors(name: str, data: object) -> list[str]:
        return [error.message for error in jsonschema.Draft202012Validator(found[name]).iter_errors(data)]

    assert errors("tileops/manifest", yaml.safe_load((TILEKIT / MANIFEST).read_text(encoding="utf-8"))) == []
    assert errors("config", {"select": ["SIG"], "tileops": {"spec": ["latest"]}, "verify": {"recipe": "r.py"}}) == []
    assert errors("config", {"select": "SIG", "tileop": {}, "tileops": {"sepc": 1}})
    entry = {"func": "f(Tensor self) -> Tensor", "dispatch": {"CPU, CUDA": "f"}}
    assert errors("aten/native-functions", [entry]) == []
    assert (
        len(errors("aten/native-functions", [{**entry, "dispach": {}}, {"func": "g()", "dispatch": {"CPUU": "g"}}]))
        == 2
    )
    assert errors("aten/backend", {"backend": "XLA", "cpp_namespace": "a", "supported": ["add.Tensor"]}) == []
    assert errors("aten/backend", {"backend": "XLAA"})
    kernels = [{"arg_meta": None, "kernel_name": "torch::executor::add_out"}]
    assert errors("executorch/functions", [{"op": "add.out", "kernels": kernels}]) == []
    wrong = [{"op": "add.out", "kernel": kernels}, {"kernels": kernels}, {"op": "add.out", "func": "f() -> ()"}]
    assert len(errors("executorch/functions", [*wrong, {"op": "a.out", "kernels": [{"kernel_nam": "k"}]}])) == 5
    half = {"op": "half", "args": "(Tensor x)", "output": "Tensor(out)", "kernel": {"func": "half", "data_type": "x"}}
    assert errors("paddle/ops", [half, {**half, "output": None}]) == []
    assert len(errors("paddle/ops", [{**half, "inplce": "(x -> out)"}, {**half, "kernel": {"fnc": "half"}}, {}])) == 5


@pytest.mark.parametrize(
    ("pack", "kit"), [(EXECUTORCH, "edgekit"), (PADDLE, "paddlekit")], ids=["executorch", "paddle"]
)
def test_a_schema_accepts_the_files_that_it_is_of(pack: Pack, kit: str) -> None:
    found = refused(pack, TILEKIT.with_name(kit))
    assert found
    assert not any(found.values()), found
