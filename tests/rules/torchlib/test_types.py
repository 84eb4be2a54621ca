"""The table of types, against what the installed torch answers."""

from __future__ import annotations

import pytest

from opschema_cli.requirements import read_version
from opschema_rules.torchlib.type_table import known_releases, type_table


def test_the_installed_torch_takes_the_types_of_its_release() -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.torch_types import probe

    release = read_version(torch.__version__)
    assert release in known_releases()
    table = type_table(release)
    asked = probe(torch.library.infer_schema)
    unregistered = {"Opaque"}  # the class that the table's probes register
    assert asked["parameters"] == {key: table.parameters[key] for key in table.parameters.keys() - unregistered}
    assert asked["returns"] == {key: table.returns[key] for key in table.returns.keys() - unregistered}


def test_a_release_that_is_not_known_has_the_types_of_the_nearest_older_one() -> None:
    assert type_table((2, 16)) == type_table((2, 15))
    assert type_table((2, 1)) == type_table((2, 4))
