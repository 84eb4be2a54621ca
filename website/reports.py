"""Replaces the commands of a page by pictures of what they print today."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from website.pictures import THEMES, WIDTH, picture
from website.walkthrough import BLOCK, Step, copy_repository, repository, steps

# A block: pictures for both schemes, then its text for those who read or copy text.
_SHOWN = """\
<div class="report" role="region" aria-label="Output of {label}" tabindex="0" markdown>

{images}

</div>

??? quote "The output as text"

{text}
"""


def with_pictures(page: str, name: str) -> tuple[str, dict[str, str]]:
    """A page with pictures in place of its commands, and the pictures by file name.

    A block with several commands, or with lines left out, stays text.
    """
    names = repository(page)
    if not names:
        return page, {}
    pictures: dict[str, str] = {}
    parts, end = [], 0
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "kit")
        copy_repository(names, folder)
        for number, block in enumerate(BLOCK.finditer(page), 1):
            outputs = [_output(step, folder, Path(scratch, "cache")) for step in steps(block["text"])]
            parts.append(page[end : block.start()])
            parts.append(_shown(block, outputs, f"{name}-{number}", pictures))
            end = block.end()
    return "".join([*parts, page[end:]]), pictures


def _shown(block: re.Match[str], outputs: list[str], name: str, pictures: dict[str, str]) -> str:
    text = block["text"]
    found = steps(text)
    if len(found) > 1 or not found[0].command.startswith("opschema ") or "\x1b" not in outputs[0]:
        return f"```console\n{text}```\n"
    if "\n...\n" in f"\n{text}":
        return f"```console\n{text}```\n"
    command, images = found[0].command, []
    for theme in THEMES:
        pictures[f"{name}-{theme}.svg"] = picture(command, outputs[0], theme)
        images.append(f"![Output of {command}; its text is below](pictures/{name}-{theme}.svg#only-{theme})")
    plain = f"```text\n$ {command}\n{Text.from_ansi(outputs[0]).plain.rstrip()}\n```"
    indented = "".join(f"    {line}\n" if line else "\n" for line in plain.split("\n"))
    return _SHOWN.format(label=command, images="\n".join(images), text=indented)


def _output(step: Step, folder: Path, cache: Path) -> str:
    """The output of a command in a folder, as on a colour terminal.

    Raises:
        RuntimeError: The command failed.
    """
    environ = {
        **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
        "OPSCHEMA_CACHE_DIR": str(cache),
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "FORCE_COLOR": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    done = subprocess.run(
        step.command, shell=True, cwd=folder, env=environ, capture_output=True, encoding="utf-8", timeout=120
    )
    if done.returncode > 1:
        raise RuntimeError(f"{step.command}: {done.stderr}")
    return done.stdout + done.stderr
