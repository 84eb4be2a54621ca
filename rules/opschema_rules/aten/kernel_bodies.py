"""Bodies for the kernels that a backend still lacks, to be filled in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_rules.aten.kernel_matching import asked_of, read_kernels
from opschema_rules.aten.kernel_tree import find_class
from opschema_rules.aten.kernels import Asked, BackendKernels, class_of, default_class, read_operators
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile

if TYPE_CHECKING:
    from opschema_rules.aten.detection import AtenOptions


def with_bodies(project: Project, options: AtenOptions, source: str, path: str) -> str | None:
    """Return the C++ file at ``path`` with a body for each kernel that the YAML ``source`` requires and the tree neither
    defines nor may define by a macro; None if it needs none.

    Raises:
        OpschemaError: PyTorch's operators, or the class of the kernels, are not known.
    """
    backend = next(
        item for item in load(project, options).subjects if isinstance(item, BackendFile) and item.path == source
    )
    if backend.reference is None or not class_of(backend):
        raise OpschemaError(f"{source}: PyTorch's operators or the class of the kernels are not known")
    missing = list(_missing(project, options, backend))
    text = project.source(path)
    if not missing:
        return None
    head = text.text.rstrip() if text is not None else f'#include "{default_class(backend.name)}.h"'
    namespace = backend.text_of("cpp_namespace")
    bodies = "\n\n".join(_body(class_of(backend), asked) for asked in missing)
    include = "" if text is not None and "c10/util/Exception.h" in text.text else "#include <c10/util/Exception.h>\n\n"
    added = f"\n\n{include}namespace {namespace} {{\n\n{bodies}\n\n}}  // namespace {namespace}\n"
    return head + (added if text is None else added.replace("\n", text.newline))


def _missing(project: Project, options: AtenOptions, backend: BackendFile) -> Iterator[Asked]:
    found = [item for item in read_kernels(project, [backend], options.kernels) if isinstance(item, BackendKernels)]
    present = {asked.item.name for item in found for asked, _ in (*item.paired, *item.drifted)}
    assert backend.reference is not None
    asked, _ = asked_of(backend, read_operators(project, backend.reference))
    made = find_class(project, class_of(backend), backend.text_of("cpp_namespace"), options.kernels).perhaps
    return (item for item in asked if not item.generated and item.item.name not in present and item.name not in made)


def _body(class_name: str, asked: Asked) -> str:
    signature = str(asked.signature)
    declared = signature.replace(f" {asked.name}(", f" {class_name}::{asked.name}(", 1)
    return f'{declared} {{\n  C10_THROW_ERROR(NotImplementedError, "{asked.item.name} is not implemented");\n}}'
