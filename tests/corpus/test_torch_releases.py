"""Every release of torch that opschema knows (``aten/torch-2.15``), against its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.corpus import TORCH_RELEASES
from opschema_cli.requirements import read_version
from opschema_rules.torchlib.type_table import known_releases, type_table


def release(corpus: Path, name: str) -> Path:
    """The folder of one release."""
    folder = corpus / f"aten/torch-{name}"
    if not (folder / "torchgen").is_dir():
        pytest.skip(f"aten/torch-{name} is not below OPSCHEMA_CORPUS")
    return folder


def test_the_releases_that_are_known() -> None:
    assert known_releases() == tuple(map(read_version, TORCH_RELEASES))


@pytest.mark.parametrize("name", TORCH_RELEASES)
def test_infer_schema_of_the_release_takes_the_types_of_the_table(corpus: Path, name: str) -> None:
    pytest.importorskip("torch")
    from benchmarks.torch_types import probe, release_function

    table = type_table(read_version(name) or (0, 0))
    asked = probe(release_function(release(corpus, name)))
    assert asked == {"parameters": table.parameters, "returns": table.returns}
