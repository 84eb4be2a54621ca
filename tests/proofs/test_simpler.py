"""The fixes of the pack `pypto`, loaded by the simpler that `OPSCHEMA_SIMPLER` names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opschema_cli.proof import fix_cases
from opschema_rules.pypto import proofs
from opschema_rules.pypto.pack import PACK
from tests.proofs.pypto_variants import variants
from tests.proofs.simpler_oracle import observe

FOLDER = os.environ.get("OPSCHEMA_SIMPLER", "")


@pytest.mark.skipif(not FOLDER, reason="OPSCHEMA_SIMPLER names no folder with a simpler")
def test_simpler_loads_what_fixes_write_and_reads_it_as_the_stand_in_does() -> None:
    rules = [rule for rule in PACK.rules if rule.fixable and rule.proof != proofs.SPECS]
    cases = [(rule.code, case) for rule in rules for case in fix_cases(PACK, rule, variants)]
    seen = observe(Path(FOLDER), [files for _, case in cases for files in (case.before, case.after)])
    for (code, case), before, after in zip(cases, seen[::2], seen[1::2], strict=True):
        assert after["simpler"].level == "right", f"{code}, {case.title}: {after['simpler'].message}"
        for observation in (before, after):
            assert observation["simpler"] == observation["stand-in"], f"{code}, {case.title}"
    changed = {code for (code, _), before, after in zip(cases, seen[::2], seen[1::2], strict=True) if before != after}
    assert changed == {rule.code for rule in rules if rule.proof != proofs.SAME}
