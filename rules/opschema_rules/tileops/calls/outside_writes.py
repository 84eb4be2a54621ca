"""Attributes that code may give to classes which it finds at run time: all subclasses, all that a module holds."""

from __future__ import annotations

import re

from opschema_cli.evaluation.execution.outcomes import Raised
from opschema_rules.tileops.model import Manifest

_FINDS = re.compile(r"__subclasses__\(|\b(?:globals|vars|dir|getmembers|import_module)\(|__dict__|\bsys\.modules\b")
_ABSENT = re.compile(r"has no attribute '(\w+)'")
_CALLED = re.compile(r"(\w+)\s*\(")


def may_be_set_outside(manifest: Manifest, raised: Raised) -> bool:
    """Whether a module that looks for classes may have set the attribute that a call lacks, or that is None."""
    name = _attribute(manifest, raised)
    if not name:
        return False
    write = re.compile(
        rf"(?<!\bself)\.{name}\b[ \t]*(?::[^=\n]*)?=(?!=)|\bsetattr\([^,\n]+,\s*(?:[\"']{name}[\"']|[a-z_]\w*)"
    )
    sources = filter(None, map(manifest.project.source, manifest.program.package_files))
    return any(_FINDS.search(item.text) and write.search(item.text) for item in sources)


def _attribute(manifest: Manifest, raised: Raised) -> str:
    absent = _ABSENT.search(raised.message or "")
    if absent is not None:
        return absent[1]
    source = manifest.project.source(raised.place.path) if raised.place is not None else None
    if source is None or raised.place is None or not (raised.message or "").startswith("'NoneType'"):
        return ""
    return next((found[1] for found in _CALLED.finditer(source.text, *raised.place.span) if found[1] != "type"), "")
