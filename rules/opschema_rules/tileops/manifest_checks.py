"""The code of a tree that checks its manifest: validators, and tests that look into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.readings import Reading
from opschema_cli.source.python import PythonFile
from opschema_rules.tileops.demands import demands
from opschema_rules.tileops.model import Manifest

_LOOKED_UP = (re.compile(r"""["']signature["']"""), re.compile(r"""["']inputs["']"""))


def checks(manifest: Manifest) -> Iterator[PythonFile]:
    """The tree's validators, and its tests that look into manifests."""
    paths = manifest.project.workspace.under(manifest.base, ".py")
    asked = [path for path in paths if path in manifest.spec.sources or _is_test(path.rpartition("/")[2])]
    for path, looks in manifest.project.readings(_LOOKS_INTO_MANIFESTS, asked).items():
        file = manifest.project.python(path) if looks else None
        if file is not None:
            yield file


def _is_test(name: str) -> bool:
    return name.startswith("test_") or name.endswith("_test.py")


def _looks_into_manifests(text: str) -> bool:
    return all(word.search(text) for word in _LOOKED_UP)


_LOOKS_INTO_MANIFESTS = Reading("tileops looks into manifests", _looks_into_manifests, bool)


@lru_cache(maxsize=2)
def forces_inputs(manifest: Manifest) -> bool:
    """Whether a tree's own checks demand an input of every op, so that an op without tensors has to declare a carrier."""
    if manifest.spec.knows("empty-inputs"):
        return False
    return any(demands(manifest.program, file) for file in checks(manifest))
