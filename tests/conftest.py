"""Settings of the whole suite."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.huge_pages import collapse

# A busy machine must not fail a test, and CI must give the same answer each time.
settings.register_profile(
    "opschema",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("opschema")

# The plugins of the tests' own trees run; what is not allowed is the matter of tests that take this away.
os.environ["OPSCHEMA_ALLOW_PLUGINS"] = "all"

# Collecting makes millions of objects that live on; looking through them again and again took a twentieth of the time.
gc.set_threshold(200_000, 50, 100)

# Tests run side by side, one for each core: more threads of torch would wait for a core, and turn while they wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what it runs in the background with ^C ignored, and so would be all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop where the installed entry points are not those of ``pyproject.toml``: no pack would be found."""
    modules = {point.module for point in entry_points(group="opschema.packs")}
    if any(name.startswith("opschema_rules.") and find_spec(name) is None for name in modules):
        pytest.exit("the entry points changed; install anew: .venv/bin/python -m pip install --no-deps -e .", 4)


WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
"""The processes of pytest-xdist, of which this is the one with the number ``WORKER``."""


FORKING = ("test_transaction.py",)
"""Modules that fork hundreds of times. A fork of a process that has run the suite takes five times as long as one at the start."""

LONG = ("e2e", "verify", "proofs", "hostile")
"""Folders of tests that start programs."""


class Rotated(pytest.Dir):
    """A folder whose modules each process collects from another place on, so that it finds some that others have compiled."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        found = list(super().collect())
        first = len(found) * WORKER // WORKERS
        return found[first:] + found[:first]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Rotated | None:
    """Collect a folder; a package is left to pytest."""
    if (path / "__init__.py").exists():
        return None
    node: Rotated = Rotated.from_parent(parent, path=path)
    return node


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in an order on which all processes agree. Those that fork come first, then folders whose tests take long, so
    that no process is left alone with one of them at the end.
    """
    if WORKERS > 1:
        items.sort(key=lambda item: (item.path.name not in FORKING, item.path.parent.name not in LONG, item.path.parts))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Many tests fork; collecting all of them has made this process large."""
    if len(session.items) > 1000:
        collapse()


def pytest_runtest_teardown() -> None:
    """A command runs without garbage collection, to the end of its process. In this one, the garbage of hundreds of runs in tests
    made a gigabyte, and each process forked from it looked through that (see ``_read`` in ``source/parse_process.py``).
    """
    gc.enable()


@pytest.fixture(autouse=True)
def no_parser_is_left() -> Iterator[None]:
    """Each test ends the processes that parse Python for it: one that is left would be counted by a later test."""
    yield
    left = []
    for process in multiprocessing.active_children():
        process.join(1)  # one that has nothing left to parse ends by itself
        if process.is_alive():
            left.append(process.name)
            process.kill()
            process.join()
    assert left == []


@pytest.fixture
def no_cpp(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process cannot import the C++ grammar of tree-sitter."""
    from opschema_cli.source import cpp

    monkeypatch.setitem(sys.modules, "tree_sitter_cpp", None)
    cpp._language.cache_clear()
    yield
    cpp._language.cache_clear()


@pytest.fixture(scope="session")
def forkservers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """From here on, all runs of this process have their workers from forkservers that they share."""
    from tests.worker_forkservers import Forkservers

    with pytest.MonkeyPatch.context() as patch:
        shared = Forkservers(tmp_path_factory.mktemp("forkserver"))
        patch.setattr("opschema_cli.verify.workers.Forkserver", shared)
        yield
    shared.end()


@pytest.fixture(scope="session")
def compiled_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """From here on, each kernel of tilekit is compiled once: it is kept under a hash of its sources, flags and compiler."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEKIT_CACHE_DIR", str(shared / "kernels"))
        yield
