"""Values of an entry's fields that follow from the code: each from one place, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opschema_cli.source.program import ClassRef
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.rules.bench import is_driven
from opschema_rules.tileops.rules.kernel_map import dispatched_kernels


def _kernel_map(entry: OpEntry) -> Data:
    ref = entry.op_class
    found = dispatched_kernels(OpImplementation(entry, ref)) if isinstance(ref, ClassRef) else None
    kernels: dict[Data, Data] = dict(found.items()) if found is not None else {}
    return kernels or None


def _op(entry: OpEntry) -> Data:
    """The file of the only class of the entry's name, as other entries write such paths."""
    home = entry.manifest.definitions.of_class(entry.name)
    if home is None or home not in entry.manifest.program.package_files:
        return None
    base = entry.manifest.base
    below = home if base == "." else home.removeprefix(base + "/")
    written = [path for other in entry.manifest.entries for _, path in other.source_paths("op")]
    return below if any(path.startswith("src/") for path in written) else below.removeprefix("src/")


def _status(entry: OpEntry) -> Data:
    return "implemented" if isinstance(entry.op_class, ClassRef) else "spec-only"


def _driven(entry: OpEntry) -> Data:
    return True if is_driven(entry) else None


DERIVED: Mapping[tuple[str, ...], tuple[Callable[[OpEntry], Data], str]] = {
    ("status",): (_status, "whether the file of `source.op` defines the op's class"),
    ("source", "op"): (_op, "the only module that defines the op's class"),
    ("source", "kernel_map"): (_kernel_map, "`default_kernel_map` of the op's class"),
    ("source", "bench_manifest_driven"): (_driven, "what the benchmark reads from the manifest"),
}
"""The fields, the sources of each, and how it is derived: None if that is not known."""
