"""Pictures of reports: what ``opschema`` prints on a terminal, as SVG for both colour schemes."""

from __future__ import annotations

import re
from io import StringIO

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

WIDTH = 100
"""Columns of the terminal."""

_LIGHT = TerminalTheme(
    (250, 250, 250),
    (36, 41, 47),
    [
        (36, 41, 47),
        (190, 20, 40),
        (17, 99, 41),
        (138, 70, 0),
        (9, 80, 170),
        (130, 40, 180),
        (0, 105, 117),
        (80, 80, 80),
    ],
)
_DARK = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        *((72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65)),
        *((121, 192, 255), (210, 168, 255), (86, 212, 221), (230, 237, 243)),
    ],
)
THEMES = {"light": _LIGHT, "dark": _DARK}

_CELL = 12.2
"""The width of a character in rich's pictures."""

# As rich's own, without the fonts, which a browser would fetch from another host, and without the buttons of a window.
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 WIDE HIGH" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    {styles}
    </style>
    <defs>
    {lines}
    </defs>
    <rect width="WIDE" height="HIGH" rx="8" fill="BACKGROUND"/>
    <g transform="translate(12, 9)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


def picture(command: str, output: str, theme: str) -> str:
    """A command and its output, with escape sequences, as SVG in one of :data:`THEMES`."""
    console = Console(record=True, width=WIDTH, file=StringIO(), color_system="256", legacy_windows=False)
    console.print(Text.assemble(("$ ", "color(243)"), (command, "bold")), highlight=False)
    console.print(Text.from_ansi(output.rstrip("\n")), highlight=False)
    colors = THEMES[theme]
    svg = console.export_svg(theme=colors, code_format=_FORMAT.replace("BACKGROUND", colors.background_color.hex))
    last = max(float(y) for y in re.findall(r'<text [^>]* y="([\d.]+)"', svg))
    # The size that rich computes is that of a window with a title; this one ends behind the last line.
    sized = svg.replace("WIDE", f"{WIDTH * _CELL + 24:.0f}").replace("HIGH", f"{last + 26:.0f}")
    return re.sub(r"[ \t]+\n", "\n", sized)
