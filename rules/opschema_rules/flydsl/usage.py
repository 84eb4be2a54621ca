"""Code that is meant to fail: tests that expect an error."""

from __future__ import annotations

import re

from opschema_cli.source.bodies import Body
from opschema_rules.flydsl.model import FlyTree

_EXPECTS = re.compile(r"\b(?:raises|warns|assert(?:Raises|Warns)(?:Regex)?|xfail|expectedFailure)\b")
_WORDS = ("raises", "warns", "Raises", "Warns", "xfail", "expectedFailure")
"""Words of which every match has one; for a fast check."""


def is_meant_to_fail(tree: FlyTree, body: Body) -> bool:
    """Whether a test holds a body, or is all that calls the traced function in which it lies."""
    if _expects(tree, body):
        return True
    traced = tree.around(body)
    return traced is not None and bool(traced.calls) and all(_expects(tree, call.body) for call in traced.calls)


def _expects(tree: FlyTree, body: Body) -> bool:
    outermost = next((item for item in reversed(list(body.outward())) if item.function is not None), None)
    if outermost is None or outermost.function is None:
        return False
    if outermost not in tree.expecting:
        text = outermost.file.text(outermost.function.outer)
        tree.expecting[outermost] = any(word in text for word in _WORDS) and _EXPECTS.search(text) is not None
    return tree.expecting[outermost]
