"""The options of ``opschema verify``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from opschema_cli.verify.compute_sanitizer import Tool
from opschema_cli.verify.prepare import Device


class VerifyOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema verify``."""

    ops: tuple[str, ...]
    before: str | None
    after: Path | None
    renamed: tuple[str, ...]
    expect_removed: tuple[str, ...]
    device: Device
    cells: int
    elements: int
    large_tensors: bool
    seconds: float
    imports: tuple[str, ...]
    sanitizer: bool
    sanitizer_tool: Tool | None
    clear_caches: bool
    jobs: int | None
    tx: tuple[str, ...]
    ray: str | None
    gpu_share: float
    fail_fast: bool
    strict: bool
    shard: str | None
    results: Path | None
    resume: bool
    merge: bool
    list_only: bool
    init: bool
    run_file: Path | None
    output_format: str
    output_file: Path | None
    junit: Path | None
    report: Path | None
    earlier: tuple[Path, ...]
    no_plugins: bool
