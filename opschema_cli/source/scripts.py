"""Scripts: files that are programs on their own, such as examples and tests."""

from __future__ import annotations

import re

_SCRIPTS = re.compile(r"(?:^|/)(?:examples?|demos?|samples?|tutorials?|tests?|benchmarks?|scripts)/")


def are_apart(first: str, second: str) -> bool:
    """Whether no process is likely to load both files: both are scripts, and neither folder contains the other."""
    if not (_SCRIPTS.search(first) and _SCRIPTS.search(second)):
        return False
    one, two = (path.rpartition("/")[0] + "/" for path in (first, second))
    return not one.startswith(two) and not two.startswith(one)
