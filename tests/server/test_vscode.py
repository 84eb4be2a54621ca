"""The packaged extension in VS Code itself: code-server, opened in headless Chromium.

Needs ``OPSCHEMA_CODE_SERVER``, the file ``out/node/entry.js`` of the npm package code-server (4.99.4 was tried, on Node.js 20);
the package ``editors/vscode/opschema.vsix``, which ``npm run package`` builds; the Python package playwright; Chromium.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.website.test_site import browser
from website.walkthrough import copy_repository

__all__ = ["browser"]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "editors/vscode/opschema.vsix"
CODE_SERVER = os.environ.get("OPSCHEMA_CODE_SERVER", "")
SECONDS = 120

pytestmark = [
    pytest.mark.skipif(not CODE_SERVER, reason="OPSCHEMA_CODE_SERVER names no code-server"),
    pytest.mark.skipif(not PACKAGE.exists(), reason="`npm run package` in editors/vscode builds the extension"),
]


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    copy_repository(("tilekit", "tilekit_migrated", "tilekit_drifted"), folder)
    return folder


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A code-server with the extension, which starts the command of this checkout."""
    command = tmp_path / "opschema"
    paths = os.pathsep.join(map(shlex.quote, (str(ROOT), str(ROOT / "rules"))))
    command.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {shlex.quote(sys.executable)} -m opschema_cli "$@"\n')
    command.chmod(0o755)
    settings = {"opschema.path": str(command), "security.workspace.trust.enabled": False}
    user = tmp_path / "data/User/settings.json"
    user.parent.mkdir(parents=True)
    user.write_text(json.dumps({**settings, "workbench.startupEditor": "none"}))
    (tmp_path / "config.yaml").touch()
    folders = ("--user-data-dir", str(tmp_path / "data"), "--extensions-dir", str(tmp_path / "extensions"))
    start = ("node", CODE_SERVER, "--config", str(tmp_path / "config.yaml"), *folders)
    environ = {**os.environ, "OPSCHEMA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([*start, "--install-extension", str(PACKAGE)], check=True, timeout=SECONDS, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--auth", "none", "--disable-telemetry", "--disable-update-check")
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(
            [*start, *options, "--bind-addr", f"127.0.0.1:{port}"], env=environ, stdout=log, stderr=log
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/healthz")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(20)


def _wait_for(url: str) -> None:
    for _ in range(SECONDS * 5):
        try:
            return urlopen(url, timeout=5).close()
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"{url} does not answer")


def test_a_finding_is_seen_and_its_fix_applied(kit: Path, address: str, browser: Any) -> None:
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.goto(f"{address}/?folder={kit}")
    page.wait_for_selector("[id='status.problems'] >> text=2")
    page.keyboard.press("Control+Shift+M")
    page.wait_for_selector(".markers-panel .monaco-list-row:has-text('WKL201')")
    page.dblclick(".markers-panel .monaco-list-row:has-text('SIG203')")
    page.wait_for_selector(".tab:has-text('norm.py')")
    page.wait_for_selector(".squiggly-error")
    page.keyboard.press("Control+.")
    page.wait_for_selector(".action-widget .monaco-list-row:has-text('Declare `default: 1.0e-05`')")
    assert page.locator(".action-widget .monaco-list-row").count() == 3
    if pictures := os.environ.get("OPSCHEMA_PICTURES"):
        page.screenshot(path=f"{pictures}/vscode.png")
    page.wait_for_timeout(500)  # the list takes keys once it has been drawn
    page.keyboard.press("Enter")
    page.wait_for_selector("[id='status.problems'] >> text=1")
    page.wait_for_selector(".squiggly-error", state="detached")
    page.keyboard.press("Control+K")
    page.keyboard.press("s")
    manifest = kit / "tilekit/manifest/normalization.yaml"
    began = time.monotonic()
    while "default: 1.0e-05" not in manifest.read_text():
        assert time.monotonic() - began < SECONDS
        time.sleep(0.1)
