"""One forkserver for the runs of these tests, those of a command in a process of its own excepted."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _share(forkservers: None) -> None:
    """See :func:`tests.conftest.forkservers`."""
