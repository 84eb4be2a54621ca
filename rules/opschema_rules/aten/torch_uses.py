"""PyTorch's operators that the YAML of backends lists, and those whose schemas it copies."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.torch_uses import TorchUse
from opschema_cli.project import Project
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.dialects import OWN_LISTS
from opschema_rules.aten.entry import string
from opschema_rules.aten.kernel_matching import read_kernels
from opschema_rules.aten.kernel_tree import Method
from opschema_rules.aten.kernels import DIALECTS, BackendKernels
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile, BackendItem, NativeFile


def torch_uses(project: Project, options: AtenOptions) -> Iterator[TorchUse]:
    """The uses in a workspace, each operator of a file once: at its kernel, if that is found."""
    subjects = load(project, options).subjects
    backends = [item for item in subjects if isinstance(item, BackendFile)]
    methods = {
        (item.backend.path, asked.item.name): method
        for item in read_kernels(project, backends, options.kernels)
        if isinstance(item, BackendKernels)
        for asked, method in (*item.paired, *item.drifted)
    }
    for backend in backends:
        symint = {item.name for item in backend.section("symint")}
        listed = {item.name: item for item in reversed(backend.items) if item.section not in OWN_LISTS}
        for item in reversed(listed.values()):
            yield _of_item(backend, item, methods.get((backend.path, item.name)), symint=item.name in symint)
    for native in subjects:
        if isinstance(native, NativeFile):
            yield from _of_native(native)


def _of_item(backend: BackendFile, item: BackendItem, method: Method | None, *, symint: bool) -> TorchUse:
    text = string(item.name_node) or ""
    if "(" in text:
        return TorchUse(item.name, backend.at(item.name_node), schema=text)
    has_kernel = backend.dialect in DIALECTS and item.section != "full_codegen" and item.options is None
    listed = backend.at(item.name_node)
    place, kernel = (method.place, listed) if method is not None else (listed, None)
    return TorchUse(item.name, place, "c++" if has_kernel else "", symint, listed=kernel)


def _of_native(native: NativeFile) -> Iterator[TorchUse]:
    for entry in native.entries:
        text = entry.schema_text
        if text is not None and entry.name:
            yield TorchUse(entry.name, entry.at(text.node), schema=text.text)
