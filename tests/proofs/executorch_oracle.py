"""Links the kernels of a workspace as ExecuTorch's code generator calls them, with g++ and stand-ins for its types."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.proof import Files, Observation, Seen
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.workspace import Workspace
from opschema_rules.executorch.detection import ExecutorchOptions
from opschema_rules.executorch.kernel_types import argument_type, arguments_of, returned_type
from opschema_rules.executorch.load import read_tree

HEADER = """\
#include <cstdint>
#include <optional>
#include <tuple>
struct Tensor {};
struct Scalar {};
enum class ScalarType { Float };
struct KernelRuntimeContext {};
template <typename T> struct ArrayRef {};
using std::optional;
using std::tuple;
"""


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """Whether each kernel of each workspace is found by the linker."""
    return [dict(_observed(files)) for files in workspaces]


def _observed(files: Files) -> Iterator[tuple[str, Seen]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).write_text(text)
        tree = read_tree(Project(Workspace(root)), ExecutorchOptions())
        sources = sorted(path for path in files if path.endswith(".cpp"))
        for entry in tree.entries:
            for kernel in entry.kernels:
                schema = entry.schema
                call = _call(schema, kernel.namespace, kernel.symbol) if schema is not None else ""
                yield entry.name, _linked(root, sources, call)


def _call(schema: OperatorSchema, namespace: str, symbol: str) -> str:
    types = ["KernelRuntimeContext&", *(argument_type(item) or "" for item in arguments_of(schema))]
    declared = f"namespace {namespace} {{ {returned_type(schema)} {symbol}({', '.join(types)}); }}"
    pointer = f"void* volatile found = reinterpret_cast<void*>(&{namespace}::{symbol});"
    return f"{declared}\nint main() {{ {pointer} return found == nullptr; }}\n"


def _linked(root: Path, sources: Sequence[str], call: str) -> Seen:
    (root / "header.h").write_text(HEADER)
    (root / "main.cc").write_text(call)
    command = ["g++", "-std=c++17", "-w", "-include", "header.h", "main.cc", *sources, "-o", "main"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return Seen("right", result="linked") if done.returncode == 0 else Seen("refused", done.stderr[-500:])
