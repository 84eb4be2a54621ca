"""The objections of an oracle to the fixes of each rule of a pack. It is started once for all of them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from opschema_cli.proof import Case, Oracle, judge


def complaints_by_rule(
    cases: Mapping[str, Sequence[Case]], oracle: Oracle, *, cured: Container[str], same: Container[str] = ()
) -> dict[str, list[str]]:
    """The complaints by rule code.

    Args:
        cases: what the fixes of each rule make of files, by code.
        oracle: observes the files.
        cured: the codes of rules whose examples must get better, as this oracle sees them.
        same: the codes of rules whose fixes may change nothing that it sees.
    """
    flat = [(code, case) for code, found in cases.items() for case in found]
    seen = oracle([files for _, case in flat for files in (case.before, case.after)])
    complaints: dict[str, list[str]] = {code: [] for code in cases}
    for (code, case), before, after in zip(flat, seen[::2], seen[1::2], strict=True):
        cures = case.cures and code in cured
        lines = list(judge(before, after, cures=cures, doubted=bool(case.doubt), others=case.others))
        if code in same and before != after:
            lines.append(f"{before} became {after}")
        complaints[code] += [f"{case.title}: {line}" for line in lines]
    return complaints
