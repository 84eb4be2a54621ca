"""The contract of a runtime that is a submodule of the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opschema_cli.main import run as main
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.contract_table import without_sources
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.model import Contract
from opschema_rules.pypto.pack import describe
from opschema_rules.pypto.submodules import Submodule, submodules
from tests.rules.pypto.programs import MIXED, kernels, program
from tests.rules.pypto.test_contract import HEADER, SUM, WIDEST

MODULES = """\
[submodule "3rdparty/msgpack-c"]
\tpath = 3rdparty/msgpack-c
\turl = https://github.com/msgpack/msgpack-c.git
[submodule "simpler"]
\tpath = runtime
\turl = https://github.com/hw-native-sys/simpler
"""

FIRST, OLD, NEW = (
    "a233dbf9945ed5f14fbc9606db09104e3b3a63d3",
    "20548f4327e814dfabb8665399e3ec34a235f7b6",
    "6ebaf77156313aaeb5c9457c57b16c45b84ae7e8",
)
"""Commits of simpler."""

LIMITS, DUMP = "src/common/task_interface/arg_direction.h", "src/a2a3/platform/include/aicpu/tensor_dump_aicpu.h"


def git(root: Path, *arguments: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, env=environment)


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that pins a runtime."""
    root = tmp_path / "tree"
    write(root, {".gitmodules": MODULES})
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    pin(root, "93adc386" * 5)
    return root


def pin(root: Path, commit: str, path: str = "runtime") -> None:
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")


def check_out(root: Path, files: dict[str, str], path: str = "runtime") -> None:
    """Lay out a submodule; git does not list what is in it."""
    write(root / path, files)
    git(root, "init", "-q", path)
    git(root / path, "add", ".")
    assert not any(name.startswith(f"{path}/") for name in Workspace(root).files)


def contract(root: Path) -> Contract:
    return find_contract(Project(Workspace(root)), PyptoOptions())


def test_the_submodule_that_is_checked_out_tells(root: Path) -> None:
    check_out(root, {LIMITS: HEADER.replace("32", "16"), DUMP: SUM})
    found = contract(root)
    assert (found.rule, found.core_tensors, found.certain) == ("sum", 16, True)
    assert found.source == f"runtime/{DUMP}"


def test_without_it_the_pin_tells(root: Path) -> None:
    pin(root, OLD)
    found = contract(root)
    assert (found.rule, found.core_tensors, found.core_scalars, found.certain) == ("sum", 16, 32, True)
    assert found.source == found.limits_source == "simpler `20548f43`, at which `runtime` is pinned"
    pin(root, NEW)
    assert (contract(root).rule, contract(root).core_tensors) == ("widest", 32)


@pytest.mark.parametrize(
    "address",
    [
        *("https://github.com/hw-native-sys/simpler.git", "git@github.com:somebody/simpler.git", "../simpler.git/"),
        *("ssh://git@host:22/a/b/Simpler", "simpler", "host:simpler.git", "C:\\mirrors\\simpler"),
    ],
)
def test_simpler_is_known_by_its_name_wherever_it_comes_from(root: Path, address: str) -> None:
    write(root, {".gitmodules": f'[submodule "x"]\n\turl = {address}\n\tpath = 3rdparty/the runtime\n'})
    pin(root, OLD, "3rdparty/the runtime")
    assert contract(root).source == "simpler `20548f43`, at which `3rdparty/the runtime` is pinned"


@pytest.mark.parametrize(
    "address", ["https://host/simpler-docs", "https://host/simpler/tools", "https://host/oversimpler.git"]
)
def test_what_is_not_called_simpler_is_another(root: Path, address: str) -> None:
    write(root, {".gitmodules": MODULES.replace("https://github.com/hw-native-sys/simpler", address)})
    pin(root, OLD)
    assert contract(root) == Contract()


def test_a_pin_that_is_not_known_leaves_the_newest(root: Path) -> None:
    pin(root, "93adc386" * 5)
    found = contract(root)
    assert (found.rule, found.core_tensors, found.certain) == ("widest", 32, False)
    assert found.source == (
        "the newest runtime is assumed; `runtime` is not checked out, and simpler `93adc386`, at which it is pinned, is not "
        "known"
    )


def test_a_pin_whose_sources_tell_nothing_leaves_the_newest(root: Path) -> None:
    pin(root, FIRST)
    assert without_sources(contract(root)) == Contract()
    assert contract(root).source == (
        "the newest runtime is assumed; simpler `a233dbf9`, at which `runtime` is pinned, does not say"
    )


def test_without_git_nothing_is_pinned(root: Path) -> None:
    pin(root, OLD)
    shutil.rmtree(root / ".git")
    assert contract(root).source == "the newest runtime is assumed; `runtime` is not checked out"


def test_what_is_checked_out_is_meant_before_what_is_pinned(root: Path) -> None:
    pin(root, OLD)
    check_out(root, {LIMITS: HEADER, DUMP: WIDEST})
    assert (contract(root).rule, contract(root).source) == ("widest", f"runtime/{DUMP}")


def test_what_is_checked_out_and_does_not_tell_is_not_what_is_pinned(root: Path) -> None:
    pin(root, OLD)
    check_out(root, {"README.md": ""})
    assert contract(root).source == "the newest runtime is assumed; `runtime` does not say"


def test_the_configuration_is_meant_before_the_pin(root: Path) -> None:
    pin(root, OLD)
    found = find_contract(Project(Workspace(root)), PyptoOptions(signatures="widest", max_tensors=8))
    assert (found.rule, found.core_tensors, found.core_scalars) == ("widest", 8, 32)
    assert found.source == "the configuration"
    assert found.limits_source == "the configuration, simpler `20548f43`, at which `runtime` is pinned"


def test_several_pins_have_to_agree(root: Path) -> None:
    write(root, {".gitmodules": MODULES + '[submodule "second"]\n\tpath = second\n\turl = ../simpler\n'})
    pin(root, OLD)
    pin(root, OLD, "second")
    assert contract(root).rule == "sum"
    pin(root, NEW, "second")
    assert without_sources(contract(root)) == Contract()
    assert contract(root).source == (
        "the newest runtime is assumed; the tree has several: simpler `20548f43`, at which `runtime` is pinned, "
        "simpler `6ebaf771`, at which `second` is pinned"
    )


def test_a_submodule_that_is_checked_out_pins_the_runtime(root: Path) -> None:
    write(root, {".gitmodules": '[submodule "pypto"]\n  path = deps/pypto\n  url = ../pypto\n'})
    check_out(root, {".gitmodules": MODULES}, "deps/pypto")
    pin(root / "deps/pypto", OLD)
    assert contract(root).source == "simpler `20548f43`, at which `deps/pypto/runtime` is pinned"


def test_findings_tell_of_the_pin_and_change_with_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    signed = (', "signature": [D.IN]', ', "signature": [D.IN, D.IN, D.OUT]', "")
    files = program(kernels(*signed), MIXED)
    write(root, {name: text for name, text in files.items() if name != "opschema.toml"})

    def lint() -> str:
        main(["lint", str(root), "--select", "PTO", "--output-format", "concise"])
        return capsys.readouterr().out.partition("Found")[0]

    pin(root, OLD)
    first = lint()
    assert "PTO102" in first
    assert "none of it is dumped (`sum`, says simpler `20548f43`, at which `runtime` is pinned)" in first
    pin(root, NEW)
    assert "PTO102" not in lint()
    pin(root, OLD)
    assert lint() == first


def test_the_trees_own_runtime_is_meant_first(root: Path) -> None:
    check_out(root, {LIMITS: HEADER.replace("32", "16"), DUMP: SUM})
    write(root, {"src/arg_direction.h": HEADER, "src/args_dump_aicpu.h": WIDEST})
    found = contract(root)
    assert (found.rule, found.core_tensors, found.source) == ("widest", 32, "src/args_dump_aicpu.h")


def test_a_submodule_of_a_submodule_counts(root: Path) -> None:
    write(root, {".gitmodules": '[submodule "pypto"]\n  path = "deps/pypto"\n'})
    check_out(root, {".gitmodules": MODULES, f"runtime/{DUMP}": SUM}, "deps/pypto")
    assert contract(root).source == f"deps/pypto/runtime/{DUMP}"


def test_what_is_checked_out_without_such_files_tells_nothing(root: Path) -> None:
    check_out(root, {"README.md": "", LIMITS: "enum class ArgDirection { kInput };\n"})
    assert not contract(root).certain


@pytest.mark.parametrize(
    "path", ["../outside", "/etc", ".", "", "runtime/../..", "a/../../outside", "a/" * 100_000 + "b", "x" * 5_000]
)
def test_paths_out_of_the_tree_are_not_followed(root: Path, path: str) -> None:
    write(root.parent / "outside", {DUMP: SUM})
    write(root, {".gitmodules": f'[submodule "simpler"]\npath = {path}\nurl = x/simpler.git\n'})
    assert submodules(Project(Workspace(root))) == []
    assert contract(root) == Contract()


def test_a_link_out_of_the_tree_is_not_followed(root: Path) -> None:
    write(root.parent / "outside", {DUMP: SUM})
    (root / "runtime").symlink_to(root.parent / "outside")
    assert not contract(root).certain


def test_submodules_that_hold_each_other_end(root: Path) -> None:
    lines = "".join(f'[submodule "{name}"]\n\tpath = {name}\n' for name in ("a", "b", "c"))
    write(root, {".gitmodules": lines})
    for name in ("a", "b", "c"):
        (root / name).symlink_to(root)
    found = submodules(Project(Workspace(root)))
    assert len(found) == 3 + 9 + 27
    assert found[0] == Submodule("a", is_simpler=False)


def test_a_path_that_is_none_is_not_pinned(root: Path) -> None:
    (root / ".gitmodules").write_bytes(b"[submodule]\npath = a\x00b/\xffc\nurl = simpler\n")
    assert contract(root).source.endswith("is not checked out")


def test_garbage_names_no_submodule(root: Path) -> None:
    (root / ".gitmodules").write_bytes(b"[[[\xff\x00path\n= x\n[submodule]\nurl = simpler\npathway = y\n[" * 50)
    assert submodules(Project(Workspace(root))) == []


def test_the_settings_name_the_pin(root: Path) -> None:
    write(root, {name: text for name, text in program(kernels("")).items() if name != "opschema.toml"})
    for commit, rule, source in (
        (OLD, "sum", "simpler `20548f43`, at which `runtime` is pinned"),
        (
            "93adc386" * 5,
            "widest",
            "`runtime` is not checked out, and simpler `93adc386`, at which it is pinned, is not known",
        ),
    ):
        pin(root, commit)
        (description,) = describe(Project(Workspace(root)), PyptoOptions())
        facts = {fact.name: fact.value for fact in description.facts}
        assert facts["signatures"] == rule
        assert facts["source"].endswith(source)
