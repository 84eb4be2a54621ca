"""The page that lints in the browser, opened in headless Chromium with Pyodide.

Needs ``OPSCHEMA_SLOW`` and what :mod:`tests.website.test_site` needs, and npm, which fetches Pyodide.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.website.test_playground import FOUND
from tests.website.test_site import Page, address, browser, serious, site
from website.playground.bundle import write_bundle

__all__ = ["address", "browser", "site"]

pytestmark = pytest.mark.skipif(not os.environ.get("OPSCHEMA_SLOW"), reason="OPSCHEMA_SLOW builds the site")

SHOWN = {**{pack: [code for code, _ in found] for pack, found in FOUND.items()}, "executorch": ["OPS104", "EXE501"]}
"""The codes of each example in the browser, where the list of PyTorch's own operators is too long for the YAML parser."""

CODES, CHECK = ".playground-findings a", "button.md-button--primary"

BUSY = "document.querySelector('.playground-status').textContent.includes('…')"


@pytest.fixture(scope="module", autouse=True)
def bundle(site: Path) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, which fetches Pyodide")
    write_bundle(site / "playground")
    return site / "playground"


@pytest.fixture(scope="module")
def loaded(address: str, browser: Any) -> Page:
    """The page, after its first answer, which it gives by itself."""
    opened = Page(browser, address)
    began = time.perf_counter()
    page = opened.open("playground.html")
    page.wait_for_selector(CODES, timeout=170_000)
    print(f"first answer after {time.perf_counter() - began:.1f} s")
    return opened


def first_answer(page: Any) -> None:
    """Press Check, and wait for an answer that has findings."""
    page.click(CHECK)
    page.wait_for_function(f"!{BUSY}", timeout=170_000)
    assert codes(page) != [], page.inner_text(".playground-status")


def codes(page: Any) -> list[str]:
    return [text.split()[0] for text in page.locator(CODES).all_inner_texts()]


def choose(page: Any, pack: str) -> None:
    page.select_option("#playground-example", index=[*FOUND].index(pack))


def wait_for(page: Any, expected: list[str]) -> float:
    """Wait until exactly these findings are shown; the seconds that it took."""
    began = time.perf_counter()
    while codes(page) != expected or "…" in page.inner_text(".playground-status"):
        status = page.inner_text(".playground-status")
        assert "failed" not in status, status
        assert time.perf_counter() - began < 30, (codes(page), status)
        time.sleep(0.02)
    return time.perf_counter() - began


@pytest.mark.parametrize("pack", FOUND)
def test_each_example_has_its_findings(pack: str, loaded: Page) -> None:
    choose(loaded.page, pack)
    expected = SHOWN[pack]
    print(f"{pack}: {wait_for(loaded.page, expected):.1f} s")
    assert all(code in loaded.page.inner_text(".playground-terminal") for code in expected)
    assert loaded.wrong == []


def test_editing_the_text_makes_a_finding_go_away(loaded: Page) -> None:
    page = loaded.page
    choose(page, "magi")
    wait_for(page, ["MAG301"])
    text = page.locator("textarea").nth(1)
    text.fill(text.input_value().replace("@dataclass\n", "@dataclass(frozen=True)\n"))
    print(f"answer after an edit: {wait_for(page, []):.1f} s, of which the page waits 0.5 s")
    assert page.inner_text(".playground-status").startswith("0 findings")


def test_a_finding_selects_its_place(loaded: Page) -> None:
    page = loaded.page
    choose(page, "tileops")
    wait_for(page, ["WKL201", "SIG203"])
    page.locator(".playground-findings button").nth(1).focus()
    page.keyboard.press("Enter")
    selected = "(e => e.value.slice(e.selectionStart, e.selectionEnd))(document.activeElement)"
    assert page.evaluate(selected) == "1e-5"


def test_other_texts_are_checked_and_text_that_is_no_python_is_a_finding(loaded: Page) -> None:
    page = loaded.page
    choose(page, "torchlib")
    wait_for(page, [code for code, _ in FOUND["torchlib"]])
    page.locator("textarea").first.fill("def f(:\n")
    wait_for(page, [])
    page.locator("textarea").first.fill("import torch\n\ntorch.library.define('a::b', '(Tensor x) -> Tensr')\n")
    wait_for(page, ["REG110"])


CPP = 'TORCH_LIBRARY(kit, m) { m.def("double(Tensor x) -> Tensor", &twice); }\n'


def test_what_needs_cpp_is_reported_as_not_checked(loaded: Page) -> None:
    page = loaded.page
    choose(page, "torchlib")
    expected = [code for code, _ in FOUND["torchlib"]]
    wait_for(page, expected)
    page.click("text=Add a file")
    page.keyboard.press("Control+A")
    page.keyboard.type("csrc/twice.cpp")
    page.locator("textarea").last.fill(CPP)
    page.wait_for_function(
        "document.querySelector('.playground-terminal').textContent.includes('OPS104')", timeout=30_000
    )
    assert "tree_sitter" in page.inner_text(".playground-terminal")


DEEP = (
    "[" * 1000 + "]" * 1000,
    "(" * 5000,
    "a" + ".b" * 390,
    "a" + ".b" * 20_000,
    "-" * 5000 + "1",
    "lambda: " * 390 + "1",
)


def test_nested_code_is_a_finding(loaded: Page) -> None:
    page = loaded.page
    choose(page, "magi")
    wait_for(page, ["MAG301"])
    text = page.locator("textarea").nth(1)
    sound = text.input_value()
    for deep in (*(f"x = {value}\n" for value in DEEP), "if a: pass\n" + "elif b: pass\n" * 900):
        text.fill(f"{sound}\n{deep}")
        page.click(CHECK)
        page.wait_for_function(f"!{BUSY}", timeout=170_000)
        status = page.inner_text(".playground-status")
        assert codes(page) in (["MAG301"], ["OPS102"]), (deep[:20], status)


def test_a_failure_of_the_engine_is_said_and_it_loads_again(loaded: Page) -> None:
    page = loaded.page
    choose(page, "magi")
    wait_for(page, ["MAG301"])
    page.locator("textarea").nth(1).fill("x = 1\n")
    page.locator("input[type=text]").nth(1).fill("../outside.py")
    page.click(CHECK)
    page.wait_for_function("document.querySelector('.playground-status').textContent.startsWith('opschema failed')")
    choose(page, "flydsl")
    first_answer(page)
    assert codes(page) == ["FLY211"]


def test_colours_fit_the_scheme_and_the_page_a_narrow_screen(address: str, browser: Any) -> None:
    for scheme, width in (("light", 1280), ("dark", 360)):
        opened = Page(browser, address, scheme, width)
        page = opened.open("playground.html")
        page.wait_for_selector(".playground-file textarea")
        first_answer(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        colour = page.evaluate("getComputedStyle(document.querySelector('.playground-file textarea')).backgroundColor")
        assert (sum(map(int, colour[4:-1].split(", "))) > 384) == (scheme == "light")
        if axe := os.environ.get("OPSCHEMA_AXE"):
            assert serious(page, axe) == []
        if pictures := os.environ.get("OPSCHEMA_PICTURES"):
            page.screenshot(path=f"{pictures}/playground-{scheme}-{width}.png", full_page=True)
        assert opened.wrong == []


def test_nothing_is_loaded_unasked_where_data_is_saved(address: str, browser: Any) -> None:
    opened = Page(browser, address)
    opened.page.add_init_script("Object.defineProperty(navigator, 'connection', {value: {saveData: true}})")
    asked: list[str] = []
    opened.page.on("request", lambda request: asked.append(request.url))
    page = opened.open("playground.html")
    page.wait_for_selector(".playground-file textarea")
    page.wait_for_timeout(500)
    assert not [url for url in asked if url.endswith(("worker.mjs", ".wasm"))]
    assert page.inner_text(".playground-status") == ""


def test_what_the_page_loads_is_compiled(bundle: Path) -> None:
    with tarfile.open(bundle / "packages.tar.gz") as archive:
        names = archive.getnames()
    assert "opschema_cli/lint/execute.pyc" in names
    assert "opschema_cli/lint/execute.py" not in names
    assert "opschema_cli/commands/verify.py" in names
    assert (bundle / "packages.tar.gz").stat().st_size < 6_500_000


def test_without_its_files_the_page_says_so(bundle: Path, address: str, browser: Any) -> None:
    page = Page(browser, address).page
    page.route("**/playground/*", lambda route: route.fulfill(status=404))
    page.goto(f"{address}/playground.html")
    page.wait_for_function("document.getElementById('playground').textContent.includes('built without it')")
