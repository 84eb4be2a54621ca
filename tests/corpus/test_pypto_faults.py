"""Faults put into simpler's own programs, 60 of 12 kinds, and the rules that report them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rules.pypto.faults import KINDS, missed, read_tree

EACH = 5
"""Faults of a kind."""

LEFT_OUT = re.compile(r"/(?:deepseek_v4_flash_decode|qwen3_14b_decode)/")
"""Programs that a compiler wrote: thousands of lines, whose memory is not followed."""

TOLERATED = 6
"""Faults that may be missed: a direction in a signature that is also too short, a scalar that no kernel uses, an output that
is the runtime's own.
"""


def test_faults_in_programs_are_reported(corpus: Path) -> None:
    root = corpus / "pypto" / "simpler-6ebaf7715"
    if not root.is_dir():
        pytest.skip("pypto/simpler-6ebaf7715 is not below OPSCHEMA_CORPUS")
    assert len(KINDS) * EACH == 60
    lost = missed(read_tree(root.resolve(), LEFT_OUT), EACH)
    assert len(lost) <= TOLERATED, lost
