"""The options of ``opschema lint``."""

from __future__ import annotations

from pathlib import Path

import msgspec


class LintOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema lint``."""

    paths: tuple[Path, ...]
    select: str
    ignore: str
    fail_on: str | None
    fail_on_nothing: bool
    fix: bool
    unsafe_fixes: bool
    diff: bool
    output_format: str
    output_file: Path | None
    baseline: Path | None
    no_baseline: bool
    write_baseline: bool
    statistics: bool
    no_cache: bool
    no_plugins: bool
    jobs: int | None
    stdin_filename: Path | None
    preview: bool
    show_settings: bool
    show_unresolved: bool
    torch: str
    as_implemented: tuple[str, ...]
    quiet: bool
