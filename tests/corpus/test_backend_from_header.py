"""`backend-from-header` on pytorch/xla before its commit 32fe908404, which wrote the YAML of 375 operators by hand.

``aten/xla-32fe908404_parent`` and ``aten/xla-32fe908404`` are the two trees, ``aten/torch-2.13`` holds PyTorch's operators of
today, five years later.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK

HEADER, NATIVE = "torch_xla/csrc/aten_xla_type.h", "ATen/native/native_functions.yaml"

OPTIONS = [f"header={HEADER}", "backend=XLA", "autograd=max_pool2d,max_pool3d"]

UNKNOWN = 20
"""Declarations whose operator is gone, or has another schema today."""


@pytest.fixture
def done(corpus: Path) -> Migrated:
    texts = {HEADER: corpus / f"aten/xla-32fe908404_parent/{HEADER}", NATIVE: corpus / f"aten/torch-2.13/{NATIVE}"}
    if not all(path.is_file() for path in texts.values()):
        pytest.skip("aten/xla-32fe908404_parent and aten/torch-2.13 are not below OPSCHEMA_CORPUS")
    files = {path: text.read_text() for path, text in texts.items()}
    return migrate_files(PACK, "backend-from-header", files, OPTIONS)


def test_the_lists_are_those_that_a_person_wrote(done: Migrated, corpus: Path) -> None:
    human = yaml.safe_load((corpus / "aten/xla-32fe908404/xla_native_functions.yaml").read_text())
    ours = yaml.safe_load(done.files["xla_native_functions.yaml"])
    assert set(ours["supported"]) <= set(human["supported"])
    assert set(ours["autograd"]) == set(human["autograd"])
    assert (ours["backend"], ours["cpp_namespace"]) == (human["backend"], human["cpp_namespace"])
    written = len(human["supported"]) + len(human["autograd"])
    assert len(ours["supported"]) + len(ours["autograd"]) == written - UNKNOWN == 355


def test_every_other_declaration_is_noted(done: Migrated) -> None:
    assert len(done.notes()) == UNKNOWN + 1  # `InitializeAtenBindings` is not a kernel
    assert not any("may be the kernel of any of" in note for note in done.notes())
