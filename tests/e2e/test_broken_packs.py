"""An installed pack that is broken is named and left out: other packs, and other repositories, go on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from opschema_cli import main
from tests.command import Done

HEALTHY = """\
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack
PACK = Pack("acme", "acme's", lambda project, options: True, lambda project, options: Loaded(), ())
"""

BROKEN = {
    "no module": ("import acme_needs_this", "ModuleNotFoundError: No module named 'acme_needs_this'"),
    "another version": ("from opschema_cli.lint.pack import Pakc", "ImportError: cannot import name 'Pakc'"),
    "syntax": ("def", "SyntaxError: invalid syntax"),
    "raises": ("raise RuntimeError('no licence\\nfor you')", "RuntimeError: no licence for you"),
    "exits": ("import sys; sys.exit('bye')", "SystemExit: bye"),
    "no attribute": ("", "`acme_pack` has no `PACK`; the entry point is"),
    "an object": ("PACK = 1", "it is an int, not a `Pack`"),
    "another name": (HEALTHY.replace('"acme"', '"emca"'), "it calls itself `emca`, its entry point `acme`; give both one name"),
    "a wrong call": (HEALTHY.replace(", lambda project, options: Loaded(), ()", ""), "Missing required argument 'load' (line 3 of"),
    "no detect": (HEALTHY.replace("lambda project, options: True", "None"), "the pack `acme`: detect=None; it is a"),
    "no options": (HEALTHY.replace("(), ())", "(), (), options=None)"), "the pack `acme`: options=None; it is a"),
    "no rules": (HEALTHY.replace("(), ())", "(), ('ACM101',))"), "the pack `acme`: `rules` holds a str"),
    "a rule of another": (
        "from opschema_cli.lint.diagnostic import Severity\nfrom opschema_cli.lint.rule import Rule\n"
        + HEALTHY.replace("(), ())", "(), (Rule('SIG203', 'own', Severity.ERROR, 'It.'),))"),
        "its rule SIG203 `own` has the code of SIG203 `ctor-default` (line ",
    ),
    "the name of a built-in pack": (
        HEALTHY.replace('"acme"', '"tileops"'),
        "it calls itself `tileops`, its entry point `acme`; give both one name",
    ),
}  # fmt: skip


class Acme:
    """A pack of another distribution, and the command in a folder that it may lint."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.site, self.tree = folder / "site", folder / "tree"
        self.tree.mkdir()
        self._captured = captured
        self.monkeypatch = monkeypatch
        monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(folder / "cache"))
        monkeypatch.chdir(self.tree)

    def install(self, text: str, name: str = "acme") -> None:
        info = self.site / "acme_pack-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pack\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[opschema.packs]\n{name} = acme_pack:PACK\n")
        (self.site / "acme_pack.py").write_text(text)
        self.monkeypatch.syspath_prepend(str(self.site))
        self.monkeypatch.delitem(sys.modules, "acme_pack", raising=False)

    def __call__(self, *args: str) -> Done:
        self.monkeypatch.delitem(sys.modules, "acme_pack", raising=False)
        code = main.run([*args])
        out, err = self._captured.readouterr()
        assert "Traceback" not in err, err
        return Done(code, " ".join(out.split()), err)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Acme:
    return Acme(tmp_path, monkeypatch, capsys)


def lib(acme: Acme) -> None:
    """An operator of torch.library with an error, which the pack `torchlib` finds."""
    text = "import torch\nlib = torch.library.Library('kit', 'DEF')\nlib.define('f(Tensr x) -> Tensor')\n"
    (acme.tree / "ops.py").write_text(text)


def test_the_pack_of_these_tests_works_if_it_is_not_broken(acme: Acme) -> None:
    acme.install(HEALTHY)
    lib(acme)
    done = acme("lint")
    assert (done.code, done.err, "acme" in done.out) == (1, "", False)
    assert "found acme acme's" in acme("init", "--dry-run").out


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_pack_is_named_and_the_others_run(acme: Acme, text: str, reason: str) -> None:
    acme.install(text)
    lib(acme)
    done = acme("lint")
    assert done.code == 1, "what the others find decides"
    assert "REG110" in done.out
    assert "the pack `acme` (acme_pack:PACK) cannot be used: " in done.out
    assert reason in done.out
    assert "pip uninstall acme-pack" in done.out
    assert acme("lint").out.count("the pack `acme` (acme_pack:PACK)") == 1, "the next run says so as well"


@pytest.mark.parametrize(("name", "owner"), [("tileops", "a pack of opschema"), ("flydsl", "a pack of opschema")])
def test_a_pack_with_the_name_of_a_built_in_one_is_left_out(acme: Acme, name: str, owner: str) -> None:
    acme.install(HEALTHY.replace('"acme"', f'"{name}"'), name)
    lib(acme)
    done = acme("lint")
    assert "REG110" in done.out
    where = f"{owner} has this name already (opschema_rules.{name}.detection:LAZY_PACK)"
    assert f"the pack `{name}` (acme_pack:PACK) cannot be used: {where}; choose another" in done.out


def test_it_does_not_fail_a_repository_without_findings(acme: Acme) -> None:
    acme.install("import acme_needs_this")
    (acme.tree / "ops.py").write_text("import torch\nlib = torch.library.Library('kit', 'DEF')\n")
    done = acme("lint")
    assert done.code == 0
    assert "OPS104" in done.out
    assert acme("lint", "--fail-on", "warning").code == 2
    (unchecked,) = json.loads(acme("lint", "--output-format", "json").out)["not_checked"]
    assert (unchecked["code"], unchecked["severity"]) == ("OPS104", "warning")


def test_a_pack_that_the_configuration_names_is_needed(acme: Acme) -> None:
    acme.install("import acme_needs_this")
    lib(acme)
    config = 'packs = ["acme", "torchlib"]\nignore = ["ACM101"]\n[acme]\nany = 1\n[severity]\nACM102 = "info"\n'
    (acme.tree / "opschema.toml").write_text(config)
    done = acme("lint")
    assert done.code == 2, "it could not look"
    assert "REG110" in done.out
    for command in (("migrate",), ("migrate", "any", "--check"), ("verify",), ("stubs",)):
        refused = acme(*command)
        assert (refused.code, "the pack `acme`" in refused.err) == (2, True), command


def test_a_pack_that_the_configuration_leaves_out_is_not_imported(acme: Acme) -> None:
    acme.install("import acme_needs_this")
    lib(acme)
    (acme.tree / "opschema.toml").write_text('packs = ["torchlib"]\n')
    assert "acme" not in acme("lint").out


@pytest.mark.parametrize("command", [("rules",), ("rule", "SIG203"), ("show", "kit::f"), ("init",), ("baseline",)])
def test_other_commands_go_on_and_say_so(acme: Acme, command: tuple[str, ...]) -> None:
    acme.install("import acme_needs_this")
    lib(acme)
    done = acme(*command)
    assert done.code == 0
    assert "the pack `acme`" in done.err
    assert "pip uninstall acme-pack" in done.err


def test_show_settings_lists_it(acme: Acme) -> None:
    acme.install("import acme_needs_this")
    lib(acme)
    assert "broken the pack `acme` (acme_pack:PACK) cannot be used" in acme("lint", "--show-settings").out


def test_once_it_is_repaired_it_runs(acme: Acme) -> None:
    acme.install("import acme_needs_this\n" + HEALTHY)
    lib(acme)
    assert "the pack `acme`" in acme("lint").out
    assert "the pack `acme`" in acme("lint").out
    (acme.site / "acme_needs_this.py").write_text("")
    acme.monkeypatch.delitem(sys.modules, "acme_needs_this", raising=False)
    assert "the pack `acme`" not in acme("lint").out
