"""The table of FlyDSL's types of values against installed releases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_rules.flydsl.value_table import METHOD_RESULTS, TYPES, attributes, methods
from tests.rules.flydsl.key_oracle import RELEASES

ASK = """
import inspect, json, sys
from flydsl.expr import derived, gpu, numeric, typing

def parameters(value):
    try:
        return [*inspect.signature(value).parameters]
    except (TypeError, ValueError):
        return []

found = {}
for name in json.loads(sys.argv[1]):
    cls = next((getattr(module, name) for module in (typing, derived, numeric, gpu) if hasattr(module, name)), None)
    names = [word for word in dir(cls) if not word.startswith("_")] if cls else []
    found[name] = {word: parameters(getattr(cls, word)) for word in names}
print(json.dumps(found))
"""


def test_what_methods_return_is_in_the_table() -> None:
    assert all(kind in TYPES and method in attributes(kind) for kind, method in METHOD_RESULTS)
    assert set(METHOD_RESULTS.values()) <= set(TYPES)


def test_parameters() -> None:
    (found,) = methods("reduce").values()
    assert [item.name for item in found] == ["op", "init_val", "reduction_profile", "fastmath", "loc", "ip"]
    assert [item.default is None for item in found] == [True, False, False, False, False, False]
    assert [item.kind for item in found] == [*["normal"] * 3, *["kwonly"] * 3]


@pytest.mark.parametrize("folder", RELEASES)
def test_a_release_has_nothing_else(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(TYPES)], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    unknown = [(kind, word) for kind, words in found.items() for word in words if word not in attributes(kind)]
    assert unknown == []
    other = [
        (kind, word, name)
        for kind, words in found.items()
        for word, names in words.items()
        if (params := attributes(kind)[word]) is not None
        for name in names
        if name != "self" and name not in {item.name for item in params}
    ]
    assert other == []
