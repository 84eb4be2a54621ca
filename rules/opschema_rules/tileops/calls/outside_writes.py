"""Attributes that other code may set before a call: of classes which it finds at run time, or by a method of the op."""

from __future__ import annotations

import re

from opschema_cli.evaluation.execution.outcomes import Raised
from opschema_cli.source.python import Function
from opschema_rules.tileops.model import Manifest, OpImplementation

_FINDS = re.compile(
    r"__subclasses__\(|\b(?:globals|dir|getmembers|import_module)\(|\bvars\((?!self\b)|\bsys\.modules\b"
    r"|__dict__\.(?:values|items)\(|\bin\s+[\w.]+\.__dict__\s*:|__dict__(?:\.get\(|\[)\s*[a-z_]"
)
_ABSENT = re.compile(r"has no attribute '(\w+)'")
_CALLED = re.compile(r"(\w+)\s*\(")


_CALLS = frozenset({"forward", "eval_roofline"})


def may_be_set_outside(op: OpImplementation, raised: Raised) -> bool:
    """Whether other code may have set the attribute that a call lacks, or that is None: a module that looks for classes, or who
    calls a public method of the op first.
    """
    manifest = op.entry.manifest
    name = _attribute(manifest, raised)
    if not name:
        return False
    lineage = op.program.lineage(op.ref)
    if any(name in _written(method) for ref in lineage for method in ref.cls.body.functions):
        return True
    classes = "|".join(re.escape(ref.name) for ref in lineage)
    of_class = re.compile(rf"(?:__class__|\btype\(\w+\)|\b(?:cls|{classes}))\.{name}[ \t]*=(?!=)")
    if any(of_class.search(ref.file.text(ref.cls.outer)) for ref in lineage):
        return True
    write = re.compile(
        rf"(?<!\bself)\.{name}\b[ \t]*(?::[^=\n]*)?=(?!=)|\bsetattr\((?!self\b)[^,\n]+,\s*(?:[\"']{name}[\"']|[a-z_]\w*)"
    )
    sources = filter(None, map(manifest.project.source, manifest.program.package_files))
    return any(_FINDS.search(item.text) and write.search(item.text) for item in sources)


def _written(method: Function) -> set[str]:
    """The attributes that a method sets of its object, if callers may call it before `forward()`."""
    return set() if method.name.startswith("_") or method.name in _CALLS else method.sets


def _attribute(manifest: Manifest, raised: Raised) -> str:
    absent = _ABSENT.search(raised.message or "")
    if absent is not None:
        return absent[1]
    source = manifest.project.source(raised.place.path) if raised.place is not None else None
    if source is None or raised.place is None or not (raised.message or "").startswith("'NoneType'"):
        return ""
    return next((found[1] for found in _CALLED.finditer(source.text, *raised.place.span) if found[1] != "type"), "")
