"""Configuration: where it is found, that every mistake in it is named, and what each key does."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli import __version__
from opschema_cli.cache import Cache
from opschema_cli.config import Config, load_config
from opschema_cli.errors import EXIT_USAGE, OpschemaError
from opschema_cli.main import run

TOYPACK = Path(__file__).with_name("toypack.py")
TILEKIT = Path(__file__).parents[1] / "fixtures/tilekit"

Lint = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace that each test lints: one sound op, and the toy pack beside it."""
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copy(TOYPACK, folder / "toypack.py")
    (folder / "a.toy.yaml").write_text("add: {dtype: f8}\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def lint(capfd: pytest.CaptureFixture[str]) -> Lint:
    def lint(*args: str) -> tuple[int, str, str]:
        code = run(["lint", "--output-format", "concise", *args])
        return code, *capfd.readouterr()

    return lint


def configure(root: Path, text: str, *, plugin: bool = True) -> None:
    (root / "opschema.toml").write_text(('plugins = ["toypack.py"]\n' if plugin else "") + text)


def test_without_a_file_everything_has_its_default(root: Path) -> None:
    assert load_config(root) == (Config(), None)


def test_opschema_toml_goes_before_pyproject(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool.opschema]\nfail-on = 'info'\n")
    path = root / "pyproject.toml"
    assert load_config(root) == (Config(fail_on="info", file=str(path)), path)
    (root / "opschema.toml").write_text("fail-on = 'warning'\n")
    path = root / "opschema.toml"
    assert load_config(root) == (Config(fail_on="warning", file=str(path)), path)


def test_a_pyproject_without_our_table_is_none_of_our_business(root: Path) -> None:
    (root / "pyproject.toml").write_text("tool = 3\n[project]\nname = 'x'\n")
    assert load_config(root) == (Config(), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = ['TOY']", "unknown key `selct`; did you mean `select`?"),
        ("per_file_ignores = {}", "unknown key `per_file_ignores`; did you mean `per-file-ignores`?"),
        ("[severty]\nTOY101 = 'info'", "unknown key `severty`; did you mean `severity`?"),
        ("[tou]\nfail = 'x'", "unknown key `tou`; did you mean `toy`?"),
        ("[pack-options.toy]", "unknown key `pack-options`"),
        ("zzz = 1", "unknown key `zzz`; known keys: baseline, diff, exclude, fail-on"),
        ("[diff]\nlevl = 'callers'", "diff: unknown key `levl`; did you mean `level`?"),
        ("select = 'TOY'", "`select`: Expected `array`, got `str`"),
        ("select = [1]", "`select[0]`: Expected `str`, got `int`"),
        ("fail-on = 'eror'", "`fail-on`: Invalid enum value 'eror'; choose `error`, `info`, `warning`"),
        ("severity = {TOY101 = 'loud'}", "Invalid enum value 'loud'; choose `error`, `info`, `warning`"),
        ("severity = {TOY999 = 'info'}", "severity: no rule is called `TOY999`; `opschema rules TOY` lists them"),
        ("select = ['toy']", "select: no rule is called `toy`; `opschema rules TOY` lists them"),
        ("severity = {TOY109 = 'info'}", "severity: no rule is called `TOY109`; did you mean `TOY10"),
        ("select = ['mising-doc']", "select: no rule is called `mising-doc`; did you mean `missing-doc`?"),
        ("ignore = ['QQQ']", "ignore: no rule is called `QQQ`"),
        ("per-file-ignores = {'*.yaml' = ['TOY1O1']}", "no rule is called `TOY1O1`; did you mean `TOY101`?"),
        ("ignore = ['toy1Ol']", "ignore: no rule is called `toy1Ol`; did you mean `TOY101`?"),
        ("per-file-ignores = {'!' = ['TOY']}", "per-file-ignores: "),
        ("exclude = ['!']", "exclude: "),
        (
            "packs = ['qq']",
            "no pack is called `qq`; known packs: aten, bindings, executorch, flydsl, magi, paddle, pypto, tileops, torchlib, toy",
        ),
        ("packs = ['torchlb']", "no pack is called `torchlb`; did you mean `torchlib`?"),
        ("packs = ['Torchlib']", "no pack is called `Torchlib`; did you mean `torchlib`?"),
        ("baseline = '../theirs.json'", "../theirs.json leads out of the workspace"),
        (
            "[rules.known-dtype]\nallowd = []",
            "rules.known-dtype: unknown key `allowd`; did you mean `allowed`?",
        ),
        (
            "[rules.known-dtype]\nallowed = 'f8'",
            "rules.known-dtype: `allowed`: Expected `array`, got `str`",
        ),
        ("[rules.known-dtyp]\nallowed = []", "rules: no rule is called `known-dtyp`; did you mean `known-dtype`?"),
        ("[rules.missing-doc]\nx = 1", "TOY101 has no options"),
        ("rules = 1", "`rules`: Expected `object`, got `int`"),
        (
            "[tool.opschema]\nselect = ['TOY']",
            "opschema.toml: `[tool.opschema]` is for pyproject.toml; in opschema.toml write",
        ),
        ("[toy]\nfale = 'x'", "toy: unknown key `fale`; did you mean `fail`?"),
        ("toy = 1", "unknown key `toy`"),
        ("select = [", "Invalid value (at end of document)"),
        ("select = " + "[" * 50_000, "nests too deeply"),
        ("\x1b]0;owned\x07", r"opschema.toml: "),
        ("'\x1b[31m' = 1", r"opschema.toml: "),
    ],
)
def test_every_mistake_is_named_and_ends_with_code_2(root: Path, lint: Lint, text: str, message: str) -> None:
    configure(root, text)
    code, report, errors = lint()
    assert (code, report) == (EXIT_USAGE, "")
    assert message in errors
    assert errors.startswith(f"opschema: {root / 'opschema.toml'}:")
    assert "Traceback" not in errors
    assert "\x1b" not in errors


_PLACES = {
    "select = [\n    'TOY101',\n    'mising-doc',\n]": 4,
    "ignore = ['TOY']\nselect = ['TOY', 'mising-doc']": 3,
    "# mising-doc\nignore = ['mising-doc']": 3,
    "severity = {TOY101 = 'info', TOY999 = 'info'}": 2,
    "[severity]\nTOY999 = 'info'": 3,
    "[per-file-ignores]\n'*.yaml' = ['TOY1O1']": 3,
    "[per-file-ignores]\n'!' = ['TOY']": 3,
    "fail-on = 'eror'": 2,
    "\nfail_on = 'error'": 3,
    "packs = ['toy', 'tay']": 2,
    "[toy]\nfale = 'x'": 3,
    "[tou]\nfail = 'x'": 2,
    "[rules.known-dtyp]\nallowed = []": 2,
    "[rules.known-dtype]\nallowd = []": 3,
    "[rules.known-dtype]\nallowed = 'f8'": 3,
    "[rules.missing-doc]\nx = 1": 2,
    "[diff]\nlevl = 'callers'": 3,
    "exclude = ['!']": 2,
    "ignore = ['mising-doc']\nselect = ['mising-doc']": None,  # it may be either
}


@pytest.mark.parametrize(("text", "line"), _PLACES.items())
def test_a_mistake_has_its_place(root: Path, lint: Lint, text: str, line: int | None) -> None:
    configure(root, text)
    at = f":{line}: " if line is not None else ": "
    assert re.match(re.escape(f"opschema: {root / 'opschema.toml'}{at}") + "[a-z`]", lint()[2])


def test_a_mistake_in_another_table_of_pyproject_has_no_place(root: Path, lint: Lint) -> None:
    path = root / "pyproject.toml"
    path.write_text(
        "[tool.other]\nselect = 'mising-doc'\n[tool.opschema]\nselect = ['mising-doc']\n[x]\ny = 'mising-doc'\n"
    )
    assert lint()[2].startswith(f"opschema: {path}:4: select: no rule is called")


def test_an_error_about_the_repository_has_no_place(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    configure(root, "diff = {main-branch = 'trunk'}")
    assert run(["diff"]) == EXIT_USAGE
    assert capfd.readouterr().err.startswith(f"opschema: {root} is in no git repository")


def test_a_line_of_brackets_takes_no_time(root: Path, lint: Lint) -> None:
    path = root / "pyproject.toml"
    path.write_text(f'[tool.x]\ny = """\n{"[" * 100_000}\n[{" " * 100_000}"""\n[tool.opschema]\nselct = []\n')
    started = time.process_time()
    assert lint()[2].startswith(f"opschema: {path}:6: ")
    assert time.process_time() - started < 10


@pytest.mark.parametrize("names", ["'gone.py'", "'toypack.py', 'gone.py'", "'toypack'", "'../up.py'"])
def test_a_plugin_that_cannot_be_read_has_its_place(root: Path, lint: Lint, names: str) -> None:
    configure(root, f"\nplugins = [{names}]", plugin=False)
    assert lint()[2].startswith(f"opschema: {root / 'opschema.toml'}:2: ")


@pytest.mark.parametrize("word", ["select", "ignore"])
def test_the_command_line_is_checked_like_the_file(root: Path, lint: Lint, word: str) -> None:
    configure(root, "")
    code, _, errors = lint(f"--{word}", "TOY101,mising-doc")
    assert code == EXIT_USAGE
    assert f"opschema: {word}: no rule is called `mising-doc`; did you mean `missing-doc`?" in errors


def test_a_file_that_is_not_utf8_is_named(root: Path, lint: Lint) -> None:
    (root / "opschema.toml").write_bytes(b"# caf\xe9\n")
    code, _, errors = lint()
    assert code == EXIT_USAGE
    assert "opschema.toml" in errors


def found(report: str) -> list[str]:
    """The codes of a concise report."""
    return [word for word in report.replace(":", " ").split() if word[:3].isupper() and word[3:].isdigit()]


def test_rule_options_arrive_typed(root: Path, lint: Lint) -> None:
    configure(root, "select = ['known-dtype']\n[rules.known-dtype]\nallowed = ['f64', 'i8']\n")
    code, report, _ = lint()
    assert code == 1
    assert "`f8` is not one of f64, i8" in report
    configure(root, "select = ['known-dtype']\n[rules.TOY103]\nallowed = ['f8']\n")
    assert lint()[0] == 0


def test_pack_options_arrive_typed(root: Path, lint: Lint) -> None:
    configure(root, "[toy]\nfail = 'load'\n")
    code, report, _ = lint()
    assert code == 3
    assert "the pack `toy` failed: RuntimeError: the toy cannot load (line " in report


def test_select_takes_codes_prefixes_and_names_and_the_command_line_replaces_it(root: Path, lint: Lint) -> None:
    configure(root, "select = ['TOY1']\n")
    assert found(lint()[1]) == ["TOY101", "TOY103"]
    assert found(lint("--select", "missing-doc")[1]) == ["TOY101"]
    assert found(lint("--select", "ALL", "--ignore", "TOY103")[1]) == ["TOY101"]


def test_ignore_takes_away(root: Path, lint: Lint) -> None:
    configure(root, "ignore = ['missing-doc']\n")
    assert found(lint()[1]) == ["TOY103"]
    assert found(lint("--ignore", "TOY103")[1]) == []


def test_severity_is_that_of_the_narrowest_selector_whatever_the_order(root: Path, lint: Lint) -> None:
    for text in ("TOY103 = 'error'\nTOY = 'info'", "TOY = 'info'\nTOY103 = 'error'"):
        configure(root, f"[severity]\n{text}\n")
        _, report, _ = lint()
        assert "info TOY101" in report.replace("[", " ").replace(":", "")
        assert "error TOY103" in report.replace("[", " ").replace(":", "")


def test_fail_on_decides_the_exit_code(root: Path, lint: Lint) -> None:
    (root / "a.toy.yaml").write_text("add: {doc: SHOUT}\n")
    configure(root, "")
    assert lint()[0] == 0
    assert lint("--fail-on", "warning")[0] == 1
    configure(root, "fail-on = 'warning'\n")
    assert lint()[0] == 1
    assert lint("--fail-on", "error")[0] == 0


def test_per_file_ignores_take_globs(root: Path, lint: Lint) -> None:
    (root / "legacy").mkdir()
    (root / "legacy/b.toy.yaml").write_text("mul: {dtype: f8}\n")
    configure(root, "[per-file-ignores]\n'legacy/' = ['TOY103']\n'a.*' = ['TOY']\n")
    _, report, _ = lint()
    assert [(line.partition(":")[0], *found(line)) for line in report.splitlines() if found(line)] == [
        ("legacy/b.toy.yaml", "TOY101")
    ]


def test_excluded_files_are_not_even_read(root: Path, lint: Lint) -> None:
    (root / "gen").mkdir()
    (root / "gen/b.toy.yaml").write_bytes(b"\0")
    configure(root, "exclude = ['gen/']\nignore = ['TOY']\n")
    assert lint()[0] == 0
    configure(root, "ignore = ['TOY']\n")
    assert lint()[0] == EXIT_USAGE


# Plugins

TRAP = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"


def test_a_plugin_runs_only_if_the_configuration_names_it(root: Path, lint: Lint) -> None:
    for name in ("opschema_plugin.py", "plugin.py", "conftest.py", "pack.py", "opschema_rules.py", "sitecustomize.py"):
        (root / name).write_text(TRAP)
    configure(root, "", plugin=False)
    assert lint()[0] == 0
    assert not (root / "ran").exists()
    (root / "opschema.toml").write_text('plugins = ["plugin.py"]\n')
    code, _, errors = lint()
    assert (root / "ran").exists()
    assert code == EXIT_USAGE
    assert "the plugin `plugin.py` cannot be loaded: it has no `PACK`" in errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PACK = 3\n", "the plugin `bad.py` cannot be loaded: its `PACK` is an int, not a `Pack`"),
        ("PACKS = 3\n", "the plugin `bad.py` cannot be loaded: it has no `PACK`, the pack that opschema runs\n"),
        ("import nowhere_at_all\n", "ModuleNotFoundError"),
        ("1/0\n", "the plugin `bad.py` cannot be loaded: ZeroDivisionError: division by zero"),
        ("def (:\n", "SyntaxError"),
        (
            "from opschema_cli.lint.rule import rule\n@rule('X', 'y')\ndef f(x: int): ...\n",
            "cannot be loaded: rule 'X' 'y': a code is three capital letters",
        ),
        (None, "the plugin `bad.py` cannot be read: No such file or directory"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named(root: Path, lint: Lint, text: str | None, message: str) -> None:
    if text is not None:
        (root / "bad.py").write_text(text)
    (root / "opschema.toml").write_text('plugins = ["bad.py"]\n')
    code, _, errors = lint()
    assert code == EXIT_USAGE
    assert message in errors


def test_two_plugins_may_have_files_of_one_name(root: Path, lint: Lint, capfd: pytest.CaptureFixture[str]) -> None:
    (root / "other").mkdir()
    text = TOYPACK.read_text().replace('PACK = Pack("toy"', 'PACK = Pack("other"').replace("TOY", "OTH")
    for name in ("doc", "dtype", "impl-forward", "flip", "grow", "breaks", "twin", "word", "crash", "todo", "probe"):
        text = text.replace(f'{name}"', f'{name}-two"')
    (root / "other/toypack.py").write_text(text)
    (root / "opschema.toml").write_text('plugins = ["toypack.py", "other/toypack.py"]\n')
    codes = found(lint()[1])
    assert {"TOY101", "OTH101"} <= set(codes)
    assert run(["migrate"]) == EXIT_USAGE
    both = r"`toy` \(line \d+ of toypack.py\) and `other` \(line \d+ of other/toypack.py\)"
    assert re.search(f"two packs have a migration `lower-docs`: {both}; give one another name", capfd.readouterr().err)


def test_a_code_that_two_packs_claim_is_named(root: Path, lint: Lint) -> None:
    shutil.copy(TOYPACK, root / "again.py")
    (root / "opschema.toml").write_text('plugins = ["toypack.py", "again.py"]\n')
    code, _, errors = lint()
    assert code == EXIT_USAGE
    assert "the pack `toy` of a plugin has the name of that of another plugin; choose another" in errors
    again = (root / "again.py").read_text().replace('PACK = Pack("toy"', 'PACK = Pack("again"')
    (root / "again.py").write_text(again)
    code, _, errors = lint()
    assert code == EXIT_USAGE
    both = r"its rule TOY101 `missing-doc` \(line \d+ of again.py\) has the code of TOY101 `missing-doc` \(line \d+ of toypack.py\)"
    assert re.search(f"the pack `again`: {both} of the pack `toy`; choose another", errors)
    # The rule of a plugin is the one to change, also if the other pack finds nothing here.
    (root / "again.py").write_text(again.replace("TOY101", "REG201"))
    (root / "opschema.toml").write_text('plugins = ["again.py"]\n')
    code, _, errors = lint()
    assert code == EXIT_USAGE
    assert "the pack `again`: its rule REG201 `missing-doc` (line " in errors
    assert errors.endswith(" of the pack `torchlib`; choose another\n")


def test_packs_limits_the_packs(root: Path, lint: Lint) -> None:
    configure(root, "packs = ['tileops']\n")
    code, report, _ = lint()
    assert (code, found(report)) == (0, [])


# Without plugins


@pytest.mark.parametrize("word", ["plugin.py", "trap_module", "no/such.py", "no_such_module"])
def test_without_plugins_none_runs_and_each_is_named(
    root: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    for name in ("plugin.py", "trap_module.py"):
        (root / name).write_text(TRAP)
    monkeypatch.syspath_prepend(str(root))
    configure(root, f'plugins = ["{word}"]\npacks = ["theirs"]\n[theirs]\nx = 1\n', plugin=False)
    commands = (["lint"], ["lint", "--show-settings"])
    commands_without = (["rules"], ["rule", "yaml-syntax"])
    for command in (*([*command, "--no-plugins"] for command in commands), *commands_without):
        assert run(command) == 0, command
        assert f"opschema: these plugins and their rules do not run: {word}\n" in capfd.readouterr().err
    for command in (["show", "add", "--no-plugins"], ["baseline", "--no-plugins"], ["init"]):
        assert run(command) == EXIT_USAGE, "nothing to show, nothing to lint"
        assert f"their rules do not run: {word}\n" in capfd.readouterr().err
    assert not (root / "ran").exists()


@pytest.mark.parametrize(("value", "runs"), [("1", False), ("true", False), ("0", True), ("", True)])
def test_the_environment_turns_plugins_off(
    root: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch, value: str, runs: bool
) -> None:
    configure(root, "")
    monkeypatch.setenv("OPSCHEMA_NO_PLUGINS", value)
    code, report, errors = lint()
    assert found(report) == (["TOY101", "TOY103"] if runs else [])
    assert ("not run" in errors) is not runs
    assert code == (1 if runs else 0)


def test_a_value_that_is_neither_yes_nor_no_runs_nothing(
    root: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "plugin.py").write_text(TRAP)
    configure(root, 'plugins = ["plugin.py"]\n', plugin=False)
    monkeypatch.setenv("OPSCHEMA_NO_PLUGINS", "maybe")
    code, _, errors = lint()
    assert code == EXIT_USAGE
    assert "OPSCHEMA_NO_PLUGINS" in errors or "maybe" in errors
    assert not (root / "ran").exists()


def test_runs_with_and_without_plugins_are_not_taken_for_each_other(root: Path, lint: Lint) -> None:
    configure(root, "select = ['TOY1']\n")
    assert [found(lint(*args)[1]) for args in ((), ("--no-plugins",), (), ("--no-plugins",))] == [
        ["TOY101", "TOY103"],
        [],
        ["TOY101", "TOY103"],
        [],
    ]
    configure(root, "select = ['TOY1']\n", plugin=False)
    code, _, errors = lint()
    assert (code, "no rule is called `TOY1`" in errors) == (EXIT_USAGE, True)


def test_without_plugins_in_the_configuration_there_is_nothing_to_tell(root: Path, lint: Lint) -> None:
    configure(root, "", plugin=False)
    assert "plugins" not in lint("--no-plugins")[2]


def test_a_plugins_rule_in_a_suppression_is_not_unknown_while_it_does_not_run(tmp_path: Path, lint: Lint) -> None:
    shutil.copytree(TILEKIT, tmp_path / "tilekit")
    manifest = tmp_path / "tilekit/tilekit/manifest/reduction.yaml"
    manifest.write_text(f"# opschema: ignore-file[OUR101] why\n{manifest.read_text()}")
    assert "SUP002" in found(lint(str(tmp_path / "tilekit"))[1])
    config = tmp_path / "tilekit/opschema.toml"
    config.write_text(f'plugins = ["ours.py"]\n{config.read_text()}')
    assert "SUP002" not in found(lint(str(tmp_path / "tilekit"), "--no-plugins")[1])


# What files said before


def test_what_a_file_said_is_remembered(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    configure(root, 'fail-on = "info"\n[toy]\nlevels = [1, 2.5, {a = true}]\n', plugin=False)
    (root / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    first = load_config(root, cache)
    assert first[0].pack_options == {"toy": {"levels": [1, 2.5, {"a": True}]}}

    def parsed_again(*args: object) -> None:
        raise AssertionError("parsed again")

    with monkeypatch.context() as patched:
        patched.setattr("opschema_cli.config._parsed", parsed_again)
        assert load_config(root, cache) == first
        with pytest.raises(AssertionError, match="parsed again"):
            load_config(root)
    configure(root, 'fail-on = "warning"\n', plugin=False)
    assert load_config(root, cache)[0].unplaced == Config(fail_on="warning")
    (root / "opschema.toml").unlink()
    for _ in range(2):
        assert load_config(root, cache) == (Config(), None)


@pytest.mark.parametrize(
    "value",
    [
        "1979-05-27",
        "1979-05-27T07:32:00",
        "07:32:00",
        "1979-05-27T07:32:00Z",
        "1979-05-27T07:32:00+02:00",
        "nan",
        f"{2**70}",
    ],
)
def test_a_value_that_would_be_another_is_not_remembered(tmp_path: Path, root: Path, value: str) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    configure(root, f"[toy]\nx = {value}\n", plugin=False)
    told = {repr(load_config(root, cache)[0].pack_options["toy"]["x"]) for _ in range(2)}
    assert told == {repr(load_config(root)[0].pack_options["toy"]["x"])}


def test_a_mistake_is_told_each_time(tmp_path: Path, root: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    for text in ("x = \n", "colour = 1\n"):
        configure(root, text, plugin=False)
        for _ in range(2):
            with pytest.raises(OpschemaError, match=r"opschema\.toml"):
                load_config(root, cache)


@pytest.mark.parametrize(
    ("required", "message"),
    [
        (f"=={__version__}", ""),
        (">=0.1,<99", ""),
        (">=99", "is opschema " + __version__ + "; install a version that suits"),
        ("new", "'new' is not a version specifier"),
    ],
)
def test_a_configuration_may_require_a_version(root: Path, lint: Lint, required: str, message: str) -> None:
    (root / "opschema.toml").write_text(f'required-version = "{required}"\n')
    code, _, err = lint()
    assert (code == EXIT_USAGE) is bool(message)
    assert message in err
