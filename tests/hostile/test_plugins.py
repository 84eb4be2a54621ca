"""A plugin that the tree's configuration names runs only if the user has allowed these very bytes, by whatever command."""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import TOYPACK, Done, Opschema, environment

TRAP = "import os, pathlib\npathlib.Path(os.environ['TRAP']).touch()\n"
PLUGIN = TOYPACK.read_text() + "\n\n" + TRAP


class Tree:
    """A repository whose configuration names a plugin, which leaves a mark when it runs; the user has allowed nothing."""

    def __init__(self, folder: Path) -> None:
        self.root, self.state, self.trap = folder / "tree", folder / "state", folder / "ran"
        (self.root / "tools").mkdir(parents=True)
        (self.root / ".git").mkdir()
        self.plugin = self.root / "tools/ours.py"
        self.plugin.write_text(PLUGIN)
        self.configure('plugins = ["tools/ours.py"]\npacks = ["toy"]\n')
        (self.root / "a.toy.yaml").write_text("add: {dtype: f8}\n")
        self.opschema = Opschema(self.root, folder / "cache")

    def configure(self, text: str) -> None:
        (self.root / "opschema.toml").write_text(text)

    def run(self, *args: str | Path, **env: str | None) -> Done:
        own = {"OPSCHEMA_ALLOW_PLUGINS": None, "OPSCHEMA_STATE_DIR": str(self.state), "TRAP": str(self.trap), **env}
        return self.opschema(*args, env=own)

    def ran(self) -> bool:
        """Whether the plugin has run since this was last asked."""
        found = self.trap.exists()
        self.trap.unlink(missing_ok=True)
        return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


# Which commands run it

READING = (
    ["lint"],
    ["lint", "--fix"],
    ["lint", "--show-settings"],
    ["migrate"],
    ["show", "add"],
    ["baseline"],
    ["verify"],
    ["stubs"],
)
NEVER = (
    ["rules"],
    ["rule", "TOY101"],
    ["init"],
    ["plugins", "list"],
    ["plugins", "allow"],
    ["--help"],
    ["lint", "--help"],
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_what_needs_the_plugin_refuses_to_go_on_without_permission(tree: Tree, command: list[str]) -> None:
    done = tree.run(*command)
    assert not tree.ran()
    assert done.code == 2
    assert done.err == (
        "opschema: the configuration names a plugin that you have not allowed to run:\n"
        f"  tools/ours.py ({digest(tree.plugin)})\n"
        "Read, then allow (by path or digest): `opschema plugins allow tools/ours.py`. Without their rules: `--no-plugins`.\n"
    )
    assert sorted(path.name for path in tree.root.iterdir()) == [".git", "a.toy.yaml", "opschema.toml", "tools"]


@pytest.mark.parametrize("command", NEVER, ids=" ".join)
@pytest.mark.parametrize("allowed", [None, "all"])
def test_what_does_not_need_it_never_runs_it(tree: Tree, command: list[str], allowed: str | None) -> None:
    tree.run(*command, OPSCHEMA_ALLOW_PLUGINS=allowed)
    assert not tree.ran()


def test_without_plugins_there_is_nothing_to_allow(tree: Tree) -> None:
    for done in (tree.run("lint", "--no-plugins"), tree.run("lint", OPSCHEMA_NO_PLUGINS="1")):
        assert (done.code, tree.ran()) == (0, False)
        assert "these plugins and their rules do not run: tools/ours.py" in done.err


# What a permission is for


def test_a_plugin_runs_once_it_is_allowed_and_no_more_once_it_is_revoked(tree: Tree) -> None:
    done = tree.run("plugins", "allow")
    assert done.out == f"allowed  {digest(tree.plugin)}  {tree.plugin}\n"
    assert (tree.run("lint").code, tree.ran()) == (1, True)
    assert (tree.run("lint").code, tree.ran()) == (1, False), "replayed"
    assert tree.run("plugins", "list").out == f"allowed      {digest(tree.plugin)}  {tree.plugin}\n"
    assert tree.run("plugins", "revoke", "tools/ours.py").out == f"revoked  {digest(tree.plugin)}  {tree.plugin}\n"
    assert (tree.run("lint").code, tree.ran()) == (2, False), "a replayed run asks for the permission, too"
    assert tree.run("plugins", "list").out == f"not allowed  {digest(tree.plugin)}  {tree.plugin}\n"


def test_a_plugin_that_changed_must_be_allowed_again(tree: Tree) -> None:
    tree.run("plugins", "allow", tree.plugin)
    status = tree.plugin.stat()
    tree.plugin.write_text(PLUGIN.replace("import os, pathlib", "import os,  pathlib"[:18]))
    os.utime(tree.plugin, ns=(status.st_atime_ns, status.st_mtime_ns))
    done = tree.run("lint")
    assert (done.code, tree.ran()) == (2, False)
    assert "changed since you allowed it)" in done.err
    tree.plugin.write_text(PLUGIN)
    assert (tree.run("lint").code, tree.ran()) == (1, True)


def test_the_same_plugin_in_another_checkout_need_not_be_allowed_again(tree: Tree, tmp_path: Path) -> None:
    tree.run("plugins", "allow")
    clone = Path(shutil.copytree(tree.root, tmp_path / "clone"))
    assert tree.run("lint", clone).code == 1
    assert tree.ran()


def test_of_several_plugins_each_that_is_not_allowed_is_named_and_none_runs(tree: Tree) -> None:
    tree.run("plugins", "allow")
    (tree.root / "tools/more ours.py").write_text(TRAP)
    tree.configure('plugins = ["tools/ours.py", "tools/more ours.py"]\n')
    done = tree.run("lint")
    assert (done.code, tree.ran()) == (2, False)
    assert "tools/ours.py (" not in done.err
    assert "`opschema plugins allow 'tools/more ours.py'`" in done.err


# Continuous integration


def test_a_ci_pins_digests(tree: Tree) -> None:
    pins = f"{digest(tree.plugin)}, sha256:{'0' * 64}"
    assert (tree.run("lint", OPSCHEMA_ALLOW_PLUGINS=pins).code, tree.ran()) == (1, True)
    assert not tree.state.exists()
    tree.plugin.write_text(PLUGIN + "# a pull request\n")
    assert (tree.run("lint", OPSCHEMA_ALLOW_PLUGINS=pins).code, tree.ran()) == (2, False)
    assert (tree.run("lint", OPSCHEMA_ALLOW_PLUGINS="all").code, tree.ran()) == (1, True)


@pytest.mark.parametrize("value", ["1", "yes", "sha256:abc", "sha256:" + "g" * 64, "tools/ours.py", "ALL"])
def test_a_value_that_is_neither_a_digest_nor_all_allows_nothing(tree: Tree, value: str) -> None:
    done = tree.run("lint", OPSCHEMA_ALLOW_PLUGINS=value)
    assert (done.code, tree.ran()) == (2, False)
    assert f"OPSCHEMA_ALLOW_PLUGINS: `{value}` is neither `sha256:` with 64 hexadecimal digits nor `all`" in done.err


# What a tree may try


def test_what_runs_are_the_bytes_that_were_allowed(tree: Tree) -> None:
    """Neither a compiled file beside the plugin is run, nor what the plugin's file became after it was read."""
    other = tree.root / "other.py"
    other.write_text("import pathlib\npathlib.Path('compiled_ran').touch()\n")
    for name in (f"ours.{sys.implementation.cache_tag}.pyc", f"ours.{sys.implementation.cache_tag}.opt-1.pyc"):
        target = tree.root / "tools/__pycache__" / name
        py_compile.compile(str(other), str(target), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    tree.run("plugins", "allow")
    assert (tree.run("lint").code, tree.ran()) == (1, True)
    assert not list(tree.root.rglob("compiled_ran"))


def test_a_file_that_changes_between_the_check_and_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opschema_cli.plugins import check_allowed, read_plugins
    from opschema_cli.workspace import Workspace

    (tmp_path / "ours.py").write_text("PACK = 'allowed'\n")
    monkeypatch.setenv("OPSCHEMA_ALLOW_PLUGINS", digest(tmp_path / "ours.py"))
    found = read_plugins(Workspace(tmp_path), ["ours.py"])
    (tmp_path / "ours.py").write_text("PACK = 'swapped'\n")
    check_allowed(found, tmp_path)
    assert found[0].run().PACK == "allowed"


@pytest.mark.parametrize(
    "name",
    [
        "../outside.py",
        "tools/../../outside.py",
        "{folder}/outside.py",
        "tools/link.py",
        "away/outside.py",
        "tools/loop.py",
    ],
)
def test_a_plugin_outside_of_the_tree_is_refused_even_if_it_is_allowed(tree: Tree, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.py").write_text(TRAP)
    (tree.root / "tools/link.py").symlink_to(tmp_path / "outside.py")
    (tree.root / "tools/loop.py").symlink_to("loop.py")
    (tree.root / "away").symlink_to(tmp_path)
    tree.configure(f"plugins = [{json.dumps(name.format(folder=tmp_path))}]\n")
    done = tree.run("lint", OPSCHEMA_ALLOW_PLUGINS="all")
    assert (done.code, tree.ran()) == (2, False)
    assert "leads out of the workspace" in done.err or "cannot be read" in done.err


@pytest.mark.parametrize("name", ["antigravity", "tools.ours", "idlelib.idle", "opschema_rules.tileops.pack", "."])
def test_a_module_is_no_plugin(tree: Tree, name: str) -> None:
    tree.configure(f'plugins = ["{name}"]\n')
    done = tree.run("lint", OPSCHEMA_ALLOW_PLUGINS="all", PYTHONPATH=str(tree.root))
    assert (done.code, tree.ran()) == (2, False)
    assert f"the plugin `{name}` is not a file" in done.err


@pytest.mark.parametrize("kind", ["pipe", "folder", "missing", "huge"])
def test_a_plugin_that_is_no_file(tree: Tree, kind: str) -> None:
    tree.plugin.unlink()
    if kind == "pipe":
        os.mkfifo(tree.plugin)
    elif kind == "folder":
        tree.plugin.mkdir()
    elif kind == "huge":
        with tree.plugin.open("wb") as stream:
            stream.truncate(2**30)
    for command in (["lint"], ["plugins", "allow"], ["plugins", "list"]):
        done = tree.run(*command, OPSCHEMA_ALLOW_PLUGINS="all")
        assert done.code == 2
        assert "the plugin `tools/ours.py` cannot be read: " in done.err


# Who may write a permission


def permission(tree: Tree) -> Path:
    tree.run("plugins", "allow")
    [file] = (tree.state / "allowed-plugins").iterdir()
    return file


@pytest.mark.skipif(sys.platform == "win32", reason="owners and modes")
def test_permissions_are_the_users_alone(tree: Tree) -> None:
    file = permission(tree)
    assert file.name == digest(tree.plugin).removeprefix("sha256:")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_bytes()) == {"path": str(tree.plugin), "digest": digest(tree.plugin)}


@pytest.mark.skipif(sys.platform == "win32", reason="owners and modes")
@pytest.mark.parametrize("trick", ["mode", "link", "content", "name", "folder", "pipe"])
def test_a_permission_that_came_with_the_tree_counts_for_nothing(tree: Tree, trick: str) -> None:
    """Also where the folder of the user was put into the checkout, which Git writes for others to read."""
    file = permission(tree)
    data = file.read_bytes()
    if trick == "mode":
        file.chmod(0o644)
    elif trick == "content":
        file.write_bytes(data.replace(b"sha256:", b"sha256:0"))
    elif trick == "name":
        file.rename(file.with_name("0" * 64))
    else:
        file.unlink()
    if trick == "link":
        (tree.root / "permission").write_bytes(data)
        (tree.root / "permission").chmod(0o600)
        file.symlink_to(tree.root / "permission")
    elif trick == "folder":
        file.mkdir()
    elif trick == "pipe":
        os.mkfifo(file)
    assert (tree.run("lint").code, tree.ran()) == (2, False)
    assert tree.run("plugins", "list").out == f"not allowed  {digest(tree.plugin)}  {tree.plugin}\n"


def test_a_permission_inside_the_tree_counts_for_nothing_whatever_its_mode(tree: Tree) -> None:
    """With a umask of 077 Git checks files out for their user alone."""
    inside = str(tree.root / "state")
    tree.run("plugins", "allow", OPSCHEMA_STATE_DIR=inside)
    done = tree.run("lint", OPSCHEMA_STATE_DIR=inside)
    assert (done.code, tree.ran()) == (2, False)
    assert f"permissions in {inside}, inside the tree, count for nothing; set OPSCHEMA_STATE_DIR" in done.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_permission_of_another_user_counts_for_nothing(tree: Tree) -> None:
    file = permission(tree)
    os.chown(file, 65534, 65534)
    assert (tree.run("lint").code, tree.ran()) == (2, False)


@pytest.mark.parametrize("state", ["/dev/null", "/dev/null/x"])
def test_where_no_permission_can_be_kept_that_is_said(tree: Tree, state: str) -> None:
    done = tree.run("plugins", "allow", OPSCHEMA_STATE_DIR=state)
    assert done.code == 2
    assert "the permission cannot be stored: " in done.err
    assert (tree.run("lint", OPSCHEMA_STATE_DIR=state).code, tree.ran()) == (2, False)


def test_a_user_without_a_home_has_allowed_nothing(tree: Tree) -> None:
    gone = {"OPSCHEMA_STATE_DIR": None, "XDG_STATE_HOME": None, "HOME": "/dev/null"}
    assert (tree.run("lint", **gone).code, tree.ran()) == (2, False)


# Allowing and revoking


def test_digests_are_allowed_and_revoked_without_their_files(tree: Tree) -> None:
    name = digest(tree.plugin)
    assert tree.run("plugins", "allow", name).out == f"allowed  {name}\n"
    assert (tree.run("lint").code, tree.ran()) == (1, True)
    assert tree.run("plugins", "revoke", name.removeprefix("sha256:")).out == f"revoked  {name}\n"
    assert tree.run("lint").code == 2


def test_revoking_all_of_a_file_takes_back_what_it_was_before_too(tree: Tree) -> None:
    for text in (PLUGIN, PLUGIN + "#\n"):
        tree.plugin.write_text(text)
        tree.run("plugins", "allow")
    assert len(tree.run("plugins", "list").out.splitlines()) == 2
    assert len(tree.run("plugins", "revoke", tree.plugin).out.splitlines()) == 2
    tree.run("plugins", "allow")
    assert len(tree.run("plugins", "revoke", "--all").out.splitlines()) == 1
    assert tree.run("plugins", "revoke").code == 2


def test_a_configuration_without_plugins_has_none_to_allow(tree: Tree) -> None:
    tree.configure("")
    done = tree.run("plugins", "allow")
    assert (done.code, done.err) == (2, "opschema: the configuration here names no plugin\n")
    assert tree.run("plugins", "allow", "no/such.py").code == 2


def test_a_plugin_finds_no_module_beside_it(tree: Tree) -> None:
    """Files that a digest does not cover are not on the module path, so a plugin cannot use them without saying so."""
    (tree.root / "tools/helper.py").write_text("")
    tree.plugin.write_text("import helper\n")
    tree.run("plugins", "allow")
    run = subprocess.run(
        [sys.executable, "-m", "opschema_cli", "lint"],
        cwd=tree.root / "tools", capture_output=True, text=True,
        env=environment(tree.opschema.cache, OPSCHEMA_ALLOW_PLUGINS=None, OPSCHEMA_STATE_DIR=str(tree.state)),
    )  # fmt: skip
    assert run.returncode == 2
    assert "the plugin `tools/ours.py` cannot be loaded: ModuleNotFoundError: No module named 'helper'" in run.stderr
