"""Installed packs are looked for once, and again when a distribution comes or goes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.lint import installed
from opschema_cli.lint.installed import InstalledPack, installed_packs


def distribution(folder: Path, name: str, entry: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{installed.GROUP}]\n{entry}\n", encoding="utf-8")


def names(cache: Cache) -> set[str]:
    return {pack.name for pack in installed_packs(cache)}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by an item whenever distributions are looked through."""
    found: list[str] = []
    look = installed._look
    monkeypatch.setattr(installed, "_look", lambda: (found.append("look"), look())[1])
    return found


def test_a_distribution_that_comes_is_found_and_one_that_stays_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[str]
) -> None:
    folder, cache = tmp_path / "site", Cache(tmp_path / "cache" / "c.sqlite")
    distribution(folder, "one", "first = one.pack:PACK")
    monkeypatch.syspath_prepend(str(folder))
    assert InstalledPack("first", "one.pack:PACK", "one") in installed_packs(cache)
    assert InstalledPack("first", "one.pack:PACK", "one") in installed_packs(cache)
    assert len(looks) == 1
    distribution(folder, "two", "second = two:PACK")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert {"first", "second"} < names(cache)
    assert len(looks) == 2
    monkeypatch.setattr(sys, "path", [item for item in sys.path if item != str(folder)])
    assert "first" not in names(cache)


def test_a_pack_that_two_distributions_bring_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editable installation under an earlier name leaves such a second one."""
    for name in ("older", "acme"):
        distribution(tmp_path, name, "first = one.pack:PACK\ntileops = opschema_rules.tileops.detection:LAZY_PACK")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [(pack.name, pack.distribution) for pack in installed_packs(Cache(None))]
    assert [item for item in found if item[0] == "first"] == [("first", "acme")]
    assert [item for item in found if item[0] == "tileops"] == [("tileops", "opschema-cli")]


def test_packs_of_opschema_come_before_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "one", "aaa = one.pack:PACK")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [pack.name for pack in installed_packs(Cache(None))]
    assert found[-1] == "aaa"
    assert found[:-1] == sorted(found[:-1])


def test_without_a_cache_it_is_looked_every_time(looks: list[str]) -> None:
    assert names(Cache(None)) >= {"tileops", "torchlib"}
    assert installed_packs(Cache(None)) == installed_packs(Cache(None))
    assert len(looks) == 3


@pytest.mark.parametrize("rubbish", [b"", b"\xff", b"\x93\x01"])
def test_what_is_kept_and_makes_no_sense_is_looked_for_anew(tmp_path: Path, rubbish: bytes) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    found = installed_packs(cache)
    cache.put("installed packs", {installed._state_of_path(): rubbish})
    assert installed_packs(cache) == found
