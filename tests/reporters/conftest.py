"""A small workspace, and reports about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, NotChecked, Place, Related, Severity, Unread
from opschema_cli.reporters import Report, RuleInfo, Summary
from opschema_cli.source.text import Edit, Source, Span

FILES = {
    "ops/norm.py": """\
class RMSNorm(Op):
    def __init__(self, eps: float = 1e-6) -> None:
        self.eps = eps
""",
    "ops/norm.yaml": """\
RMSNorm:
  params:
    eps: {type: float, default: 1e-5}
  status: "100%, done"
""",
}


@pytest.fixture(scope="session")
def make_report() -> Callable[..., Report]:
    """Call with the diagnostics, ``files`` (path to text) where they are not about the norms, what was ``unread`` and
    ``not_checked``.
    """

    def make(
        *diagnostics: Diagnostic,
        files: Mapping[str, str] = FILES,
        unread: Sequence[Unread] = (),
        not_checked: Sequence[NotChecked] = (),
        **counts: float,
    ) -> Report:
        sources = {path: Source(path, text) for path, text in files.items()}
        severities = [diagnostic.severity for diagnostic in diagnostics]
        summary = Summary(
            errors=severities.count(Severity.ERROR),
            warnings=severities.count(Severity.WARNING),
            infos=severities.count(Severity.INFO),
            **{"suppressed": 0, "baselined": 0, "ops": 178, "files": 22, "seconds": 0.31, **counts},  # type: ignore[arg-type]
        )
        page = "https://example.org/rules/{}.md"
        rules = {
            "SIG110": RuleInfo(
                "default-differs", "A default differs.", "A default differs.\n\nPage.", uri=page.format("SIG110")
            ),
            "SIG999": RuleInfo("finds-nothing", "It finds nothing.", "It finds nothing.", uri=page.format("SIG999")),
        }
        return Report(diagnostics, summary, sources.get, rules, Path("/repo"), unread, not_checked)

    return make


def place(path: str, text: str) -> Place:
    start = FILES[path].index(text)
    return Place(path, Span(start, start + len(text)))


@pytest.fixture
def differs() -> Diagnostic:
    """An error with both sides, an op and a safe fix."""
    declared = place("ops/norm.yaml", "1e-5")
    return Diagnostic(
        "`eps` defaults to `1e-5` in the manifest and to `1e-6` in `__init__()`. Give both the same default",
        declared,
        (Related(place("ops/norm.py", "1e-6"), "the default that runs"),),
        Fix("set the manifest's default to `1e-6`", (FileEdit(declared.path, Edit(declared.span, "1e-6")),)),
        ("RMSNorm",),
        "SIG110",
        "default-differs",
    )


@pytest.fixture
def status() -> Diagnostic:
    """A warning about one place; its code is in no list of rules."""
    return Diagnostic(
        "status `100%, done` is not known: use `implemented`",
        place("ops/norm.yaml", '"100%, done"'),
        code="MAN101",
        name="status",
        severity=Severity.WARNING,
    )
