"""Writes the Markdown of the site: the pages of ``docs`` with their links, the catalogue of rules, and pictures."""

from __future__ import annotations

import shutil
from pathlib import Path

from opschema_cli.lint.registry import load_registry
from website.catalogue import rule_pages
from website.links import relinked, site_path
from website.reports import with_pictures

ROOT = Path(__file__).parents[1]
ASSETS = Path(__file__).with_name("assets")

_START = "docs/README.md"
_FULL_WIDTH = "---\nhide: [navigation]\n---\n\n"


def documents() -> dict[str, str]:
    """The texts of all pages by their path in the repository; the rules' are made from the code."""
    registry = load_registry()
    found = {"CHANGELOG.md": ROOT / "CHANGELOG.md"}
    found |= {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "docs").rglob("*.md"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in found.items()}
    rules = rule_pages(registry.packs, registry.rules)
    return texts | {f"docs/rules/{name}": text for name, text in rules.items()}


def write_pages(folder: Path) -> None:
    """Write the pages of the site, its assets and its pictures to a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ASSETS, folder / "assets")
    pages = documents()
    for path, text in pages.items():
        target = folder / site_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shown, pictures = with_pictures(relinked(text, path, pages), target.stem.lower())
        target.write_text((_FULL_WIDTH if path == _START else "") + shown, encoding="utf-8")
        for name, svg in pictures.items():
            (target.parent / "pictures").mkdir(exist_ok=True)
            (target.parent / "pictures" / name).write_text(svg, encoding="utf-8")
