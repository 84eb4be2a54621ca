"""The site in a browser: built by ``make site``'s commands, opened in headless Chromium.

Needs ``OPSCHEMA_SLOW``, Material for MkDocs (``make site`` installs it), playwright's Python package and Chromium; for the check
of accessibility also ``OPSCHEMA_AXE``, the path of ``axe.min.js`` of the npm package axe-core.
"""

from __future__ import annotations

import functools
import os
import posixpath
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from website.build import ROOT, write_pages

pytestmark = pytest.mark.skipif(not os.environ.get("OPSCHEMA_SLOW"), reason="OPSCHEMA_SLOW builds the site")

TYPICAL = (
    "index.html",
    "rules/index.html",
    "rules/SIG203.html",
    "migrations/index.html",
    "configuration.html",
    "verify.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mkdocs = shutil.which("mkdocs") or shutil.which("mkdocs", path=ROOT / ".venv-tools/bin")
    if mkdocs is None:
        pytest.skip("mkdocs is not installed; `make site` installs it")
    folder = tmp_path_factory.mktemp("site")
    write_pages(ROOT / "build/website")
    command = [mkdocs, "build", "--strict", "--quiet", "-f", "website/mkdocs.yml", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=200, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


class Page:
    """A page of the browser with what went wrong in it: messages of its console, requests to other hosts."""

    def __init__(self, browser: Any, address: str, scheme: str = "light", width: int = 1280, **options: Any) -> None:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, **options)
        self.page, self.address, self.wrong = context.new_page(), address, []
        self.page.on("console", lambda message: message.type == "error" and self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "request", lambda each: each.url.startswith((address, "data:", "blob:")) or self.wrong.append(each.url)
        )

    def open(self, path: str) -> Any:
        self.page.goto(f"{self.address}/{path}")
        return self.page


class Links(HTMLParser):
    """The links of a page and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {"", "__skip"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links |= {value for name in ("href", "src") if (value := values.get(name))}
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}


def test_no_link_is_broken(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): Links(path.read_text("utf-8")) for path in site.rglob("*.html")}
    broken = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
            )
            path = path.lstrip("/") or "index.html"
            path = posixpath.normpath(f"{path}/index.html") if (site / path).is_dir() else path
            anchors = pages[path].anchors if path in pages else {parts.fragment}
            in_picture = parts.fragment in ("only-light", "only-dark")
            if not (site / path).is_file() or not (in_picture or unquote(parts.fragment) in anchors):
                broken.append(f"{name}: {link}")
    assert len(pages) > 400
    assert broken == []


def test_pages_load_on_a_narrow_screen_without_errors(site: Path, address: str, browser: Any) -> None:
    """Every page but those of rules and migrations, which are alike: of these every twentieth. ``test_playground_page.py`` opens
    the page that loads more than the site itself.
    """
    narrow = Page(browser, address, width=360)
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    alike = [page for page in pages if page.startswith(("rules/", "migrations/"))]
    chosen = [*alike[::20], *(page for page in pages if page not in {*alike, "playground.html"})]
    assert [page for page in chosen if narrow.open(page).evaluate("document.documentElement.scrollWidth") > 360] == []
    assert narrow.wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_are_those_that_the_system_prefers(scheme: str, address: str, browser: Any) -> None:
    page = Page(browser, address, scheme).open("index.html")
    page.wait_for_selector(".report img:visible")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(", "))) > 384) == (scheme == "light")
    shown = page.eval_on_selector_all(".report img", "all => all.filter(e => e.offsetWidth).map(e => e.src)")
    assert len(shown) == 2
    assert all(f"-{scheme}.svg" in address for address in shown)


def test_the_search_finds_a_rule_by_its_name(address: str, browser: Any) -> None:
    opened = Page(browser, address)
    page = opened.open("index.html")
    page.click("input.md-search__input")
    page.keyboard.type("ctor-default")
    page.wait_for_selector(".md-search-result__link")
    assert page.get_attribute(".md-search-result__link", "href").partition("?")[0].endswith("rules/SIG203.html")
    assert opened.wrong == []


def test_the_catalogue_is_filtered_and_keeps_its_filters_in_the_address(address: str, browser: Any) -> None:
    page = Page(browser, address).open("rules/index.html")
    rows = "#catalogue tbody tr:visible"
    every = page.locator(rows).count()
    page.select_option("[name=pack]", "tileops")
    page.select_option("[name=fix]", "safe")
    page.fill("[name=text]", "default manifest")
    assert 0 < page.locator(rows).count() < 20 < every
    assert "ctor-default" in page.inner_text("#catalogue table")
    assert page.inner_text("#catalogue output") == f"{page.locator(rows).count()} of {every} rules"
    shown = page.inner_text("#catalogue tbody")
    page.reload()
    assert page.inner_text("#catalogue tbody") == shown


def test_the_catalogue_is_a_table_without_scripts(address: str, browser: Any) -> None:
    page = Page(browser, address, java_script_enabled=False).open("rules/index.html")
    assert page.locator("#catalogue tbody tr").count() > 300
    assert page.locator("form.catalogue-filter").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_no_serious_fault(scheme: str, width: int, address: str, browser: Any) -> None:
    axe = os.environ.get("OPSCHEMA_AXE")
    if axe is None:
        pytest.skip("OPSCHEMA_AXE does not name axe.min.js")
    opened = Page(browser, address, scheme, width)
    assert {path: found for path in TYPICAL if (found := serious(opened.open(path), axe))} == {}


def serious(page: Any, axe: str) -> list[str]:
    """The serious faults of an opened page, each with its first place."""
    page.add_script_tag(path=axe)
    found = [each for each in page.evaluate("axe.run()")["violations"] if each["impact"] in ("serious", "critical")]
    return [f"{each['id']} {each['nodes'][0]['target']} {each['nodes'][0]['failureSummary']}" for each in found]
