"""The pages of the site: their links, the catalogue of rules, the navigation and the pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from opschema_cli.lint.registry import load_registry
from website.build import documents
from website.links import REPOSITORY, relinked
from website.pictures import THEMES, picture
from website.reports import with_pictures
from website.walkthrough import Step, all_steps, repository, steps

ROOT = Path(__file__).parents[2]
PAGES = {"CHANGELOG.md", "docs/diff.md", "docs/rules/README.md", "docs/rules/SIG203.md"}


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/diff.md", "rules/SIG203.md#bad", "rules/SIG203.md#bad"),
        ("docs/rules/SIG203.md", "../diff.md", "../diff.md"),
        ("docs/diff.md", "../CHANGELOG.md", "CHANGELOG.md"),
        ("CHANGELOG.md", f"{REPOSITORY}/blob/main/docs/diff.md#both", "diff.md#both"),
        ("docs/diff.md", "../fixtures/tilekit", f"{REPOSITORY}/tree/main/fixtures/tilekit"),
        ("docs/diff.md", "../action.yml", f"{REPOSITORY}/blob/main/action.yml"),
        ("docs/diff.md", f"{REPOSITORY}/blob/main/LICENSE.md", f"{REPOSITORY}/blob/main/LICENSE.md"),
        ("docs/diff.md", f"{REPOSITORY}/issues", f"{REPOSITORY}/issues"),
        ("docs/diff.md", "#both", "#both"),
        ("docs/diff.md", "https://pre-commit.com", "https://pre-commit.com"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_to_the_repository(page: str, link: str, expected: str) -> None:
    assert relinked(f"see [it]({link}).", page, PAGES) == f"see [it]({expected})."


def test_what_looks_like_a_link_in_a_fence_is_code() -> None:
    text = "[a](../action.yml)\n\n```\nf[0](../action.yml)\n```\n"
    assert relinked(text, "docs/diff.md", PAGES).count("../action.yml") == 1


def test_every_page_is_in_the_navigation() -> None:
    settings = yaml.load((ROOT / "website/mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    listed = set(re.findall(r"[\w./-]+\.md", str(settings["nav"])))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    reached_by_tables = {page for page in pages if re.match(r"(rules|migrations)/(?!README|proofs)", page)}
    assert listed == (pages - reached_by_tables) | {"CHANGELOG.md"}


def test_the_catalogue_has_every_rule_with_its_pack() -> None:
    registry = load_registry()
    rows = [line.split(" | ") for line in documents()["docs/rules/README.md"].splitlines() if line.startswith("| [")]
    assert [row[0][3:9] for row in rows] == list(registry.rules)
    found = {row[1].strip("`"): (row[2], row[3], row[4]) for row in rows}
    assert found["ctor-default"] == ("tileops", "error", "safe")
    assert {pack for pack, _, _ in found.values()} == {pack.name for pack in registry.packs} | {"opschema"}


def test_a_picture_shows_the_output_in_its_colours_and_needs_no_other_host() -> None:
    report = "\x1b[1;31merror SIG203\x1b[0m ctor-default\n"
    shown = {theme: picture("opschema lint", report, theme) for theme in THEMES}
    for theme, svg in shown.items():
        text = re.sub(r"<[^>]*>", "", svg.replace("&#160;", " "))
        assert "$ opschema lint" in text
        assert "error SIG203 ctor-default" in text
        assert THEMES[theme].ansi_colors[1].hex in svg
        width, height = map(int, re.findall(r"viewBox=\"0 0 (\d+) (\d+)\"", svg)[0])
        assert (width, height) > (1220, 50), "two lines of 100 columns have room"
        assert f'<rect width="{width}" height="{height}"' in svg
        assert set(re.findall(r"https?://[^\"]+", svg)) == {"http://www.w3.org/2000/svg"}
    assert shown["light"] != shown["dark"]


def test_a_page_names_its_repository_and_its_commands() -> None:
    page = "# Page\n\n<!-- repository: tilekit tilekit_migrated -->\n\n```console\n$ cat a\n1\n\n2\n$ true\n```\n"
    assert repository(page) == ("tilekit", "tilekit_migrated")
    assert repository("# Page\n") == ()
    assert list(all_steps(page)) == steps("$ cat a\n1\n\n2\n$ true\n") == [Step("cat a", "1\n\n2\n"), Step("true", "")]


def test_commands_without_colours_stay_text() -> None:
    page = (
        "<!-- repository: atenkit_broken -->\n\n```console\n$ ls aten\nnative_functions.yaml\ntags.yaml\n```\n\nEnd.\n"
    )
    assert with_pictures(page, "page") == (page, {})
