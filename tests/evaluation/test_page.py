"""The examples of the page about evaluation run as they are written."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Returned
from opschema_cli.evaluation.execution.values import DtypeValue, TensorValue
from opschema_cli.evaluation.values import Arguments, BoundArgument, PackValue, Value
from opschema_cli.project import Project
from opschema_cli.source.resolution import Folded, Unresolved
from opschema_cli.workspace import Workspace

PAGE = Path(__file__).parents[2] / "docs/evaluation.md"
NAMES = (
    *(Arguments, BoundArgument, Dialect, Folded, Iterator, PackValue, Unresolved, Value, arguments_of),
    *(Call, Caller, DtypeValue, ExecutionDialect, Executor, Returned, TensorValue),
)


def test_the_examples_of_the_page_hold(tmp_path: Path) -> None:
    blocks = re.findall(r"```python([^\n]*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    modules = {re.sub(r'.*"(.*)"', r"\1", title): text for title, text in blocks if title}
    project = Project(Workspace(tmp_path, modules))
    code = "\n".join(textwrap.dedent(text) for title, text in blocks if not title)
    assert code.count("assert ") > 5
    names = {getattr(item, "__name__", "Value"): item for item in NAMES} | {"Value": Value, "NOT_KNOWN": NOT_KNOWN}
    exec(compile(code, PAGE.name, "exec"), {**names, "project": project, "__name__": "page"})
