"""One forkserver for the runs of these tests, those of a command in a process of its own excepted; and no cache of the user's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _share(forkservers: None) -> None:
    """See :func:`tests.conftest.forkservers`."""


@pytest.fixture(scope="session", autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels that these tests compile are kept apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
