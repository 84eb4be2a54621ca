"""Progress is shown on a terminal, once a run takes long, and nowhere else."""

from __future__ import annotations

import io

import pytest

from opschema_cli.commands.output import ProgressBar


class Terminal(io.StringIO):
    """Standard error that is one."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, enabled: bool = True, quiet: float = 0) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "100")
    with ProgressBar("verifying", "cells", enabled=enabled, quiet=quiet) as progress:
        progress(1, 40)
        progress(2, 40, "[bold]Op\x1b[31m")
    return stream.getvalue()


def test_a_terminal_sees_how_far_a_run_is_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    told = shown(monkeypatch, Terminal())
    assert "verifying" in told
    assert "1/40" in told
    assert "2/40" in told
    assert "cells" in told
    assert "[bold]Op\\x1b[31m" in told


@pytest.mark.parametrize(
    ("stream", "enabled", "quiet"), [(io.StringIO(), True, 0), (Terminal(), False, 0), (Terminal(), True, 1000)]
)
def test_nothing_else_does(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, enabled: bool, quiet: float) -> None:
    assert shown(monkeypatch, stream, enabled=enabled, quiet=quiet) == ""
