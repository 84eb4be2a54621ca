"""Where exceptions came from, without their messages, which may quote the linted tree."""

from __future__ import annotations

import os


def trace_of(error: BaseException) -> str:
    """The type of an exception, and the places in the code that it passed, the innermost last; likewise for its causes."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 10:
        lines = [type(current).__name__]
        trace = current.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            lines.append(f"  {_shown(code.co_filename)}:{trace.tb_lineno} in {code.co_name}")
            trace = trace.tb_next
        parts.append("\n".join(lines))
        current = current.__cause__ or current.__context__
    return "\n".join(parts)


def _shown(path: str) -> str:
    """The end of a path: its package and file, without the folders of the user."""
    return "/".join(path.replace(os.sep, "/").split("/")[-3:])
