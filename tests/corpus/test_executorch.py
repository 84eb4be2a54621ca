"""pytorch/executorch at a pinned commit: what is found there was judged, and its own code generator agrees about lists and types.

``python -m benchmarks.corpus unrelated`` unpacks it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Files, Observation, Seen, check_fixes
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.workspace import Workspace
from opschema_rules.executorch.kernel_types import argument_type, arguments_of, returned_type, untranslated
from opschema_rules.executorch.pack import PACK
from opschema_rules.executorch.proofs import READ
from tests.corpus.judging import findings
from tests.file_schemas import refused
from tests.rules.executorch.faults import missed
from tests.rules.executorch.list_cases import REFUSED, SILENT, SOUND

JUDGED = Path(__file__).with_name("judged") / "executorch-cff6f4dd.txt"
ORACLE = Path(__file__).parents[1] / "rules/executorch/codegen_oracle.py"

TOLERATED = 4
"""Faults of 54 that may be missed: in an entry without a kernel in the tree, and a function whose name is mentioned elsewhere."""

WITHOUT_SPELLING = "ArrayRef<const Scalar&>"
"""The type that the code generator writes for a list of scalars, which is no type of C++."""


@pytest.fixture
def executorch(corpus: Path) -> Path:
    root = corpus / "unrelated/pytorch+executorch"
    if not root.is_dir():
        pytest.skip("unrelated/pytorch+executorch is not below OPSCHEMA_CORPUS")
    return root


def test_what_is_found_is_what_was_judged(executorch: Path) -> None:
    assert findings(PACK, executorch) == JUDGED.read_text().splitlines()


def test_the_schema_accepts_every_list(executorch: Path) -> None:
    found = refused(PACK, executorch)
    assert len(found) > 10
    assert not any(found.values()), found


def test_faults_are_reported(executorch: Path) -> None:
    total, lost = missed(Workspace(executorch), 3)
    assert total >= 50
    assert len(lost) <= TOLERATED, lost


# The code generator


def ask(executorch: Path, folder: Path, lists: Sequence[tuple[str, str]], schemas: Sequence[str]) -> Any:
    """The answers of ExecuTorch's code generator (``codegen_oracle.py``)."""
    pytest.importorskip("torchgen")
    (folder / "executorch").symlink_to(executorch.resolve())
    asked = json.dumps({"lists": lists, "schemas": schemas})
    command = [sys.executable, str(ORACLE), str(folder)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_code_generator_refuses_the_same_lists(executorch: Path, tmp_path: Path) -> None:
    silent = {name: text for name, (text, _) in SILENT.items()}
    found = ask(executorch, tmp_path, [*SOUND.items(), *REFUSED.items(), *silent.items()], [])["lists"]
    assert {name for name, error in found.items() if error} == set(REFUSED)


def test_the_code_generator_writes_the_same_types(executorch: Path, tmp_path: Path) -> None:
    pytest.importorskip("torchgen")
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged import __path__ as packaged

    native = Path(next(iter(packaged)), "ATen/native")
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    schemas = [str(function.func) for function in parsed.native_functions]
    for text, wanted in zip(schemas, ask(executorch, tmp_path, [], schemas)["schemas"], strict=True):
        schema = parse_schema(text, "torchgen").schema
        assert schema is not None
        assert (wanted is None) == bool(untranslated(schema)), text
        found = [*map(argument_type, arguments_of(schema)), returned_type(schema)]
        spelt = [spelling(item.replace("torch::executor::", "at::")) for item in wanted or ()]
        assert wanted is None or [item or WITHOUT_SPELLING for item in found] == spelt, text


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.code) for rule in PACK.rules if rule.proof == READ])
def test_fixes_are_proved_by_the_code_generator(rule: Rule, executorch: Path, tmp_path: Path) -> None:
    def read(workspaces: Sequence[Files]) -> list[Observation]:
        lists = [(str(number), files["functions.yaml"]) for number, files in enumerate(workspaces)]
        errors = ask(executorch, tmp_path, lists, [])["lists"].values()
        return [{"the list": Seen("refused", error) if error else Seen("right")} for error in errors]

    check_fixes(PACK, rule, read)
