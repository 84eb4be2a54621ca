"""Pages as tests read them: their elements, what a browser makes of them, and the contrast of two colours."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "input", "br", "option"}


class Page(HTMLParser):
    """The elements of a page, each with its attributes and its text; the tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for index in self._open:
            self.elements[index][2].append(data)

    def texts(self, tag: str, kind: str = "") -> list[str]:
        """The texts of all elements of a tag and a class."""
        return [
            "".join(texts) for name, attrs, texts in self.elements if name == tag and (attrs.get("class") or "") == kind
        ]

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs, _ in self.elements if name == tag]


def in_browser(page: Path, fragment: str, folder: Path) -> Page:
    """The page after its script has run; the test is skipped without a browser."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    run = subprocess.run(
        [*command, "--dump-dom", f"file://{page}#{fragment}"], capture_output=True, timeout=60, check=True
    )
    return Page(run.stdout.decode())


def contrast(one: str, other: str) -> float:
    """The contrast of two colours ``#rrggbb``, as WCAG 2 defines it."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
