"""Proves fixes: an oracle, the real system, observes files before and after a fix, and no probe may get worse.

For authors of rules. A rule names its oracle in ``proof=``; its tests run :func:`check_fixes` with that oracle::

    def test_fixes_are_proved() -> None:
        check_fixes(PACK, rule, oracle)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Fix, Severity
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.rule import Rule, examples
from opschema_cli.source.text import Edit, apply_edits
from opschema_cli.testing import fix_files, lint_files

Files: TypeAlias = Mapping[str, str]
"""The texts of a workspace by path."""

Level: TypeAlias = Literal["right", "refused", "wrong"]


class Seen(msgspec.Struct, frozen=True):
    """The outcome of one probe, such as a registration or a call.

    ``level`` is ``right``: accepted, with the result that the declaration promises; ``refused``: a loud failure, ``message`` says
    which; ``wrong``: accepted in silence though it is not right, such as an argument that nothing reads. ``result`` identifies what
    was computed.
    """

    level: Level
    message: str = ""
    result: str = ""


Observation: TypeAlias = Mapping[str, Seen]
"""The outcomes of a workspace by probe. A probe is named by its action, so that it means the same before and after a fix."""

Oracle: TypeAlias = Callable[[Sequence[Files]], Sequence[Observation]]
"""Observes each of some workspaces; many at once, since it may be slow to start."""

Variants: TypeAlias = Callable[[Files], Iterable[Files]]
"""Files like those of an example: with another default, another order, other line ends."""


class Case(msgspec.Struct, frozen=True):
    """Files before and after fixes. ``cures`` says that something must have become right: the files are a rule's own example.

    ``doubt`` is the reason why the fixes are unsafe; empty if they are safe. ``others`` says whether the pack's other rules report
    errors or warnings in the files after; such a fault is not silent.
    """

    title: str
    before: Files
    after: Files
    cures: bool
    doubt: str = ""
    others: Callable[[], bool] = lambda: False


def no_variants(files: Files) -> Iterable[Files]:
    """The example alone."""
    return ()


def windows_lines(files: Files) -> Iterable[Files]:
    """The example with the line ends of Windows."""
    yield {path: text.replace("\n", "\r\n") for path, text in files.items()}


def fix_cases(pack: Pack, rule: Rule, variants: Variants = no_variants) -> Iterator[Case]:
    """Apply the fixes of a rule to its Bad examples and their variants: all fixes at once, and each on its own."""
    for number, example in enumerate(examples(rule.doc), 1):
        if example.kind == "bad":
            files = pack.example(example.fences)
            title = f"{rule.code} example {number}"
            yield from cases_of(pack, rule, files, title, cures=True)
            for count, variant in enumerate(variants(files), 1):
                yield from cases_of(pack, rule, variant, f"{title} variant {count}", cures=False)


def cases_of(pack: Pack, rule: Rule, files: Files, title: str, *, cures: bool) -> Iterator[Case]:
    """Apply the fixes of a rule to some files: all at once and, if there are several, each on its own."""
    fixes = _fixes(pack, rule, files)
    if fixes:
        changed, _ = fix_files([pack], files, [rule.code], unsafe=True)
        doubt = "; ".join(sorted({fix.why_unsafe for fix in fixes} - {""}))
        after = {**files, **changed}
        titles = ", ".join(fix.title for fix in fixes)
        yield Case(f"{title}: {titles}", files, after, cures, doubt, _loud(pack, rule, after))
    if len(fixes) > 1:
        for case in (case_of(title, files, fix) for fix in fixes):
            yield msgspec.structs.replace(case, others=_loud(pack, rule, case.after))


def case_of(title: str, files: Files, fix: Fix) -> Case:
    """Apply one fix to files."""
    return Case(f"{title}: {fix.title}", files, apply_fix(files, fix), cures=False, doubt=fix.why_unsafe)


def _fixes(pack: Pack, rule: Rule, files: Files) -> list[Fix]:
    found = [item.fix for item in lint_files([pack], files, [rule.code]).diagnostics if item.code == rule.code]
    return [fix for fix in found if fix is not None]


def apply_fix(files: Files, fix: Fix) -> Files:
    """The files with one fix applied."""
    edits: dict[str, list[Edit]] = {}
    for item in fix.edits:
        edits.setdefault(item.path, []).append(item.edit)
    return {path: apply_edits(text, sorted(edits.get(path, ()))) for path, text in files.items()}


def _loud(pack: Pack, rule: Rule, files: Files) -> Callable[[], bool]:
    """Return a check whether rules other than the fixed one report errors or warnings."""

    def others() -> bool:
        found = lint_files([pack], files).diagnostics
        return any(item.code != rule.code and item.severity is not Severity.INFO for item in found)

    return others


def judge(
    before: Observation,
    after: Observation,
    *,
    cures: bool,
    doubted: bool = False,
    others: Callable[[], bool] = lambda: False,
) -> Iterator[str]:
    """Faults of a change, a sentence each; empty if it is proved.

    - What was right stays right, with the same result.
    - What was refused may become right, never wrong: no loud failure becomes a silent one. Only a change that is ``doubted``, an
      unsafe fix, may do that, unless it has to cure.
    - What was wrong may become right or refused.
    - What is wrong and ``others`` report is not silent: another fault of the files has come to light.
    - A probe that only one side has counts as refused on the other.
    - If the change ``cures``, at least one probe gets better, and there is one.
    """
    for probe in sorted({*before, *after}):
        old, new = before.get(probe, _ABSENT), after.get(probe, _ABSENT)
        if old.level != "wrong" == new.level and not cures and others():
            continue
        if old.level == "right" and new.level != "right":
            yield f"{probe}: was right and is {new.level} now: {new.message}"
        elif old.level == new.level == "right" and old.result != new.result:
            yield f"{probe}: gave {old.result} and gives {new.result} now"
        elif old.level == "refused" and new.level == "wrong" and (cures or not doubted):
            yield f"{probe}: was refused ({old.message}) and is silently wrong now: {new.message}"
    if cures and not any(_improves(before.get(probe, _ABSENT), seen) for probe, seen in after.items()):
        yield f"no probe of {len({*before, *after})} got better: {dict(after)}"


_ABSENT = Seen("refused", "there is no such probe on this side")


def _improves(old: Seen, new: Seen) -> bool:
    return new.level == "right" and old.level != "right"


def prove(cases: Sequence[Case], oracle: Oracle) -> list[str]:
    """Faults of each change, a line each; the texts are observed together."""
    seen = oracle([files for case in cases for files in (case.before, case.after)])
    complaints: list[str] = []
    for case, before, after in zip(cases, seen[::2], seen[1::2], strict=True):
        complaints += [
            f"{case.title}: {line}"
            for line in judge(before, after, cures=case.cures, doubted=bool(case.doubt), others=case.others)
        ]
    return complaints


def check_fixes(pack: Pack, rule: Rule, oracle: Oracle, variants: Variants = no_variants) -> None:
    """Assert that the oracle confirms each fix of a rule's Bad examples and of their variants.

    Raises:
        AssertionError: saying which fix is not, or that no Bad example has a fix.
    """
    cases = list(fix_cases(pack, rule, variants))
    assert any(case.cures for case in cases), f"{rule.code}: no Bad example has a fix"
    complaints = prove(cases, oracle)
    assert not complaints, "\n".join(complaints)
