"""Verification as a page: the verdict, the ops that failed first, their cells, the errors before and after, the trend over runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from opschema_cli.errors import OpschemaError
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.html import THEMES
from opschema_cli.reporters.html import page as web
from opschema_cli.reporters.verification.plots import Histogram, Trend, histogram, percent, trend, worst, worst_share
from opschema_cli.reporters.verification.text import outcome, summary
from opschema_cli.verify.model import CellResult, Figures, Verdict
from opschema_cli.verify.results import FAILED, VERDICTS, Results, finding_lines

MEANINGS: dict[Verdict, str] = {
    "unchanged": "the same bits as before, and nothing wrong found",
    "within-tolerance": "other bits, and right; also right with no tree before",
    "regression": "wrong where it was not before, or it cannot be run any more",
    "wrong-already": "wrong in the same way before",
    "crashed": "the op raised or its process died, before too if there is a tree before",
    "not-checked": "nothing is known; the reason is given",
}

_ORDER: tuple[Verdict, ...] = (
    "regression",
    "crashed",
    "wrong-already",
    "not-checked",
    "within-tolerance",
    "unchanged",
)
_WORST = 8
_MISSING_SHOWN = 50


class OpPage(msgspec.Struct, frozen=True):
    """The part of the page about one op."""

    name: str
    device: str
    counts: Counter[Verdict]
    share: str
    errors: Histogram | None
    trend: Trend | None
    worst: Sequence[tuple[CellResult, Figures]]
    told: Sequence[CellResult]

    @property
    def rank(self) -> int:
        """The place of its worst verdict, the failing ones first."""
        return min(_ORDER.index(verdict) for verdict in self.counts)


def write_pages(results: Results, folder: Path, seconds: float, earlier: Sequence[Results] = ()) -> Path:
    """Write ``index.html`` into ``folder``; it needs no other file.

    Raises:
        OpschemaError: it cannot be written.
    """
    page = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(render(results, seconds, earlier), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OpschemaError(f"{page} cannot be written: {error.strerror or error}") from None
    return page


def render(results: Results, seconds: float, earlier: Sequence[Results] = ()) -> str:
    """The page; ``earlier`` are runs for the trend, the oldest first."""
    environment = Environment(
        loader=PackageLoader("opschema_cli.reporters.verification"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    runs = [*earlier, results]
    ops = sorted((_op(name, cells, runs) for name, cells in results.by_op().items()), key=lambda op: op.rank)
    body = environment.get_template("page.html").render(
        header=results.header,
        missing=results.missing[:_MISSING_SHOWN],
        more_missing=max(0, len(results.missing) - _MISSING_SHOWN),
        lacks=results.lacks,
        errors=results.errors,
        ops=ops,
        verdicts=VERDICTS,
        meanings=MEANINGS,
        failed=FAILED,
        outcome=outcome(results),
        summary=summary(results, seconds).partition(": ")[2],
        finding_lines=finding_lines,
        runs=len(runs),
        trends=any(op.trend for op in ops),
        percent=percent,
    )
    top = f'<header class="top"><h1>opschema verify</h1>{THEMES}</header>\n'
    return web.render(f"opschema verify: {outcome(results)}", top + body, "verification")


def _shown(value: object) -> object:
    """Escape a text of an op or a tree, line by line, for a browser; leave HTML and numbers unchanged."""
    return "\n".join(map(visible, value.split("\n"))) if type(value) is str else value


def _op(name: str, cells: Sequence[CellResult], runs: Sequence[Results]) -> OpPage:
    told = [cell for cell in cells if cell.verdict not in ("unchanged", "within-tolerance")]
    share = worst_share(cells)
    return OpPage(
        name,
        ", ".join(dict.fromkeys(cell.device for cell in cells)),
        Counter(cell.verdict for cell in cells),
        "-" if share is None else percent(share),
        histogram(cells),
        trend(name, runs),
        worst(cells, _WORST),
        sorted(told, key=lambda cell: _ORDER.index(cell.verdict)),
    )
