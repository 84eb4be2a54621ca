"""The command line: exit codes, formats, options, and the world around it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from opschema_cli.commands.pre_commit import explanation, hook_entry, installed_origins
from opschema_cli.lint.builtin import YAML_SYNTAX
from tests.command import EXECUTABLE, TILEKIT, Done, Opschema, environment

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes differ here")


def codes(done: Done) -> list[str]:
    """The codes of a text or concise report."""
    return re.findall(r"^\S+:\d+:\d+:?\s+(?:error|warning|info) ([A-Z]{3}\d{3})", done.out, re.MULTILINE)


# Exit codes


def test_0_when_nothing_reaches_the_level_that_fails(opschema: Opschema, root: Path) -> None:
    (root / "a.toy.yaml").write_text("add: {doc: LOUD}\n")
    done = opschema("lint")
    assert done.code == 0
    assert "TOY102" in done.out


def test_1_on_findings(opschema: Opschema) -> None:
    done = opschema("lint")
    assert done.code == 1
    assert codes(done) == ["TOY102", "TOY103"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["lint", "nowhere"], "opschema: nowhere: no such file or folder"),
        (["lint", "--nope"], "No such option"),
        (["lint", "--output-format", "yaml"], "'yaml' is not one of"),
        (["lint", "--jobs", "0"], "0 is not in the range"),
        (["lint", "--no-baseline", "--write-baseline"], "--no-baseline goes with neither"),
        (["lint", "--write-baseline", "--fix"], "--write-baseline goes with neither --fix nor --output-file"),
        (["lint", "--write-baseline", "-o", "x.json"], "--write-baseline goes with neither --fix nor --output-file"),
        (["lint", "--write-baseline", "--diff"], "choose one of --write-baseline and --diff"),
        (["lint", "--statistics", "--output-format", "json"], "--statistics has no --output-format json"),
        (["lint", "--diff", "--output-format", "sarif"], "--diff has no --output-format sarif"),
        (["lint", "--show-settings", "--output-format", "json"], "--show-settings has no --output-format json"),
        (["init", "--name", "npu"], "--name goes with --backend"),
        (["lint", "--baseline", "none.json"], "none.json: no baseline; `opschema baseline` writes one"),
        (["lint", "--output-file", "no/such/folder.txt"], "no/such/folder.txt cannot be written"),
        (["lint", ".", ".."], "is outside the workspace"),
        (["lnt"], "Did you mean `lint`?"),
        (["rule", "unknown"], "no rule is called `unknown`"),
        (["rules", "nope"], "no rule is called `nope`"),
        (["show", "adde"], "no operator here is called `adde`"),
    ],
)
def test_2_on_wrong_usage(opschema: Opschema, args: list[str], message: str) -> None:
    done = opschema(*args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_2_on_input_that_cannot_be_read_and_the_rest_is_reported(opschema: Opschema, root: Path) -> None:
    (root / "sub/b.toy.yaml").write_bytes(b"\0")
    done = opschema("lint")
    assert done.code == 2
    assert codes(done) == ["TOY102", "TOY103", "OPS101"]


def test_3_when_a_rule_fails_and_the_rest_is_reported(opschema: Opschema, root: Path) -> None:
    (root / "sub/b.toy.yaml").write_text("mul: {doc: x, crash: yes}\n")
    done = opschema("lint", "a.toy.yaml")
    assert done.code == 3
    assert codes(done)[:1] == ["TOY102"]
    assert "OPS900" in done.out


def process_group_is_gone(group: int) -> bool:
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@POSIX
def test_130_on_interrupt(tmp_path: Path) -> None:
    """One file that takes long to parse; the interrupt goes to the whole group, as a terminal sends it."""
    (tmp_path / "opschema.toml").write_text('plugins = ["slow.py"]\npacks = ["slow"]\n')
    (tmp_path / "slow.py").write_text(
        "from opschema_cli.lint.loaded import Loaded\n"
        "from opschema_cli.lint.pack import Pack\n"
        "def load(project, options):\n"
        "    print('loading', flush=True)\n"
        "    project.load_python(['big.py', 'bigger.py'])\n"
        "    return Loaded()\n"
        "PACK = Pack('slow', 's', lambda project, options: True, load, ())\n"
    )
    (tmp_path / "big.py").write_text("x = [1, 2, 3]\n" * 100_000)
    (tmp_path / "bigger.py").write_text("x = [1, 2, 3]\n" * 110_000)
    process = subprocess.Popen(
        [EXECUTABLE, "lint", "--no-cache"], cwd=tmp_path, env=environment(tmp_path / "cache"), start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"loading\n"
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - started < 5
    assert process.returncode == 130
    assert errors.decode().strip() == "opschema: interrupted"
    assert process_group_is_gone(process.pid), "no worker is left"


@POSIX
@pytest.mark.parametrize("name", ["text", "json"])
def test_a_reader_that_goes_away_is_no_trouble(opschema: Opschema, root: Path, name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        run = subprocess.run(
            [EXECUTABLE, "lint", "--output-format", name],
            cwd=root, env=environment(opschema.cache), stdout=writer, stderr=subprocess.PIPE,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (130, b"")


# Formats


def test_every_format_is_what_it_says(opschema: Opschema) -> None:
    formats = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "html")
    found = {name: opschema("lint", "--output-format", name) for name in formats}
    assert {name: done.code for name, done in found.items()} == dict.fromkeys(found, 1)
    report = json.loads(found["json"].out)
    assert report["version"] == 1
    assert [item["code"] for item in report["diagnostics"]] == ["TOY102", "TOY103"]
    assert report["diagnostics"][0] == {
        "code": "TOY102", "name": "loud-doc", "severity": "warning", "message": "`add` shouts", "path": "a.toy.yaml",
        "line": 1, "column": 12, "end_line": 1, "end_column": 16, "ops": ["add"], "related": [],
        "fix": {"safety": "safe", "title": "lower it"},
    }  # fmt: skip
    assert {key: report["summary"][key] for key in ("errors", "warnings", "infos", "suppressed", "baselined", "ops", "files")} == {
        "errors": 1, "warnings": 1, "infos": 0, "suppressed": 0, "baselined": 0, "ops": 2, "files": 2,
    }  # fmt: skip
    [run] = json.loads(found["sarif"].out)["runs"]
    assert [item["ruleId"] for item in run["results"]] == ["TOY102", "TOY103"]
    assert [item["id"] for item in run["tool"]["driver"]["rules"]] == ["TOY102", "TOY103"]
    assert len(json.loads(found["gitlab"].out)) == 2
    assert ElementTree.fromstring(found["junit"].out).iter("failure")
    assert [line.split(" ")[0] for line in found["github"].out.splitlines() if line.startswith("::")] == [
        "::warning",
        "::error",
    ]
    assert found["concise"].out.splitlines()[0].startswith("a.toy.yaml:1:12: warning TOY102 [loud-doc]")
    assert "a.toy.yaml:1:12" in found["text"].out
    assert 'data-pack="toy" data-rule="TOY102 loud-doc" data-path="a.toy.yaml"' in found["html"].out


@pytest.mark.parametrize("name", ["text", "json"])
def test_output_file_takes_the_report_and_the_screen_stays_empty(opschema: Opschema, root: Path, name: str) -> None:
    shown = opschema("lint", "--output-format", name).out
    done = opschema("lint", "--output-format", name, "-o", "report.out")
    assert (done.code, done.out, done.err) == (1, "", "")
    written = (root / "report.out").read_text()

    def steady(text: str) -> str:
        return re.sub(r"[\d.]+ s\b|\"seconds\": [\d.]+", "", text)

    assert steady(written) == steady(shown)


def test_quiet_says_nothing_when_there_is_nothing_to_say(opschema: Opschema, root: Path) -> None:
    assert "TOY103" in opschema("lint", "--quiet").out
    (root / "a.toy.yaml").unlink()
    assert opschema("lint", "--quiet") == Done(0, "", "")
    assert opschema("lint").out != ""


def test_a_path_that_is_not_linted_is_named_with_the_reason(opschema: Opschema, root: Path) -> None:
    (root / "build").mkdir()
    (root / "build/a.toy.yaml").write_text("add: {doc: LOUD}\n")
    (root / "notes.txt").write_text("")
    config = root / "opschema.toml"
    config.write_text(config.read_text() + 'exclude = ["build/"]\n')
    for path, reason in (("build", "it is empty, git"), ("build/a.toy.yaml", "git")):
        first = opschema("lint", path).err.splitlines()[0]
        assert (
            first == f"opschema: {path} is not linted: {reason} ignores it, or `exclude` of the configuration lists it"
        )
    assert opschema("lint", "notes.txt").err == "opschema: `opschema init` lists what it looks for\n"
    assert opschema("lint", "sub", "build").err == ""


def test_the_settings_and_the_diff_of_fixes_go_to_a_file(opschema: Opschema, root: Path) -> None:
    for option, more in (("--show-settings", ()), ("--diff", ()), ("--diff", ("--select", "TOY103"))):
        shown = opschema("lint", option, *more)
        done = opschema("lint", option, *more, "-o", "report.txt")
        assert (done.code, done.out, done.err) == (shown.code, "", shown.err)
        assert (root / "report.txt").read_text() == shown.out
        (root / "report.txt").unlink()


def test_statistics_count_findings_and_time(opschema: Opschema) -> None:
    done = opschema("lint", "--statistics")
    assert done.code == 1
    rows = {line.split()[-2]: line.split() for line in done.out.splitlines()[1:-1]}
    assert rows["TOY103"][0] == "1"
    assert rows["TOY101"][0] == "0"
    assert rows["TOY101"][3] == "2", "it ran on two ops"


def test_statistics_name_rules_that_the_engine_checks(opschema: Opschema, root: Path) -> None:
    (root / "a.toy.yaml").write_text("add: [\n")
    assert re.search(r"(?m)^ +1 +- +- +YML001 yaml-syntax$", opschema("lint", "--statistics").out)


def test_show_settings_tells_what_would_run(opschema: Opschema, root: Path) -> None:
    (root / "opschema.toml").write_text(
        'plugins = ["toypack.py"]\npacks = ["toy"]\nignore = ["TOY101"]\n[severity]\nTOY103 = "info"\n'
    )
    done = opschema("lint", "--show-settings")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["root", str(root)] in lines
    assert ["detected", "toy"] in lines
    assert ["TOY101", "missing-doc", "off"] in lines
    assert ["TOY103", "known-dtype", "info"] in lines
    assert not any("TOY102" in line for line in lines), "it runs as it would by default"


@pytest.mark.parametrize("columns", ["80", "120"])
def test_show_settings_tells_what_a_pack_goes_by(opschema: Opschema, tilekit: Path, columns: str) -> None:
    (tilekit / "opschema.toml").unlink()
    done = opschema("lint", "--show-settings", cwd=tilekit, env={"COLUMNS": columns})
    assert done.code == 0
    shown = done.out[done.out.index("\ntileops ") + 1 :]
    assert re.search(r"^  two-workloads +on +docs/manifest.md:\d+$", shown, re.MULTILINE)
    assert re.search(r"^  no-ellipsis +off +a shape has no ellipsis$", shown, re.MULTILINE)
    assert 'or `spec = ["latest"]` for all' in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= int(columns)
    (tilekit / "opschema.toml").write_text('[tileops]\nspec = ["no-ellipsis"]\n')
    asked = opschema("lint", "--show-settings", cwd=tilekit).out
    assert re.search(r"^  no-ellipsis +on +requested by `spec`$", asked, re.MULTILINE)


def test_show_settings_puts_a_note_below_a_long_path(opschema: Opschema, tilekit: Path) -> None:
    (tilekit / "opschema.toml").unlink()
    path = f"{'deep/' * 20}native_functions.yaml"
    (tilekit / path).parent.mkdir(parents=True)
    (tilekit / path).write_text("- func: f(Tensor self) -> Tensor\n")
    done = opschema("lint", "--show-settings", cwd=tilekit, env={"COLUMNS": "80"})
    assert done.code == 0
    shown = done.out.splitlines()
    at = next(number for number, line in enumerate(shown) if line.endswith(path))
    assert shown[at + 1].strip().startswith("1 operator; no tags.yaml; read by ")


def test_lines_and_columns_count_characters(opschema: Opschema, root: Path) -> None:
    (root / "a.toy.yaml").write_bytes("\ufeff# 😀\r\nädd: {döc: x, dtype: f8}\r\n".encode())
    report = json.loads(opschema("lint", "--output-format", "json").out)
    places = [(item["code"], item["line"], item["column"], item["end_column"]) for item in report["diagnostics"]]
    assert places == [("TOY101", 2, 1, 4), ("TOY103", 2, 22, 24)]


# Paths


def test_paths_choose_what_is_reported_and_the_whole_workspace_is_read(opschema: Opschema, root: Path) -> None:
    (root / "sub/b.toy.yaml").write_text("mul: {impl: impl.py}  # opschema: ignore[TOY102]\n")
    (root / "impl.py").write_text("class A: ...\n")
    assert codes(opschema("lint", "--output-format", "concise", "sub")) == ["TOY104", "TOY101", "SUP001"]
    assert codes(opschema("lint", "--output-format", "concise", "impl.py")) == ["TOY104"]
    assert codes(opschema("lint", "--output-format", "concise", "a.toy.yaml")) == ["TOY102", "TOY103"]
    assert len(codes(opschema("lint", "--output-format", "concise", "sub", "a.toy.yaml"))) == 5


def test_from_a_subfolder_the_root_is_found_and_paths_start_at_it(opschema: Opschema, root: Path) -> None:
    assert opschema("lint", "--output-format", "concise", cwd=root / "sub").out.startswith("a.toy.yaml:1:12")
    assert opschema("lint", "--output-format", "concise", "../a.toy.yaml", cwd=root / "sub").code == 1
    assert opschema("lint", "--output-format", "concise", "b.toy.yaml", cwd=root / "sub").code == 0


def test_from_outside_the_workspace_of_the_path_is_linted(opschema: Opschema, root: Path) -> None:
    assert opschema("lint", "root/a.toy.yaml", cwd=root.parent).code == 1
    assert opschema("lint", "root/sub", cwd=root.parent).code == 0


@POSIX
def test_a_link_to_the_workspace_is_the_workspace(opschema: Opschema, root: Path) -> None:
    (root.parent / "link").symlink_to("root")
    assert opschema("lint", "link/a.toy.yaml", cwd=root.parent).code == 1
    assert opschema("lint", "a.toy.yaml", cwd=root.parent / "link").code == 1


# Standard input


def test_stdin_stands_for_the_file(opschema: Opschema) -> None:
    args = ("lint", "--output-format", "concise", "--stdin-filename")
    assert codes(opschema(*args, "a.toy.yaml", stdin=b"add: {dtype: f8}\n")) == ["TOY101", "TOY103"]
    assert codes(opschema(*args, "sub/b.toy.yaml", stdin=b"mul: {doc: LOUD}\n")) == ["TOY102"]
    assert codes(opschema(*args, "sub/new.toy.yaml", stdin=b"new: {}\n")) == ["TOY101"]
    assert codes(opschema(*args, "a.toy.yaml", stdin=b"")) == []


def test_stdin_with_fix_writes_the_fixed_text_and_nothing_else(opschema: Opschema, root: Path) -> None:
    before = (root / "a.toy.yaml").read_text()
    done = opschema("lint", "--fix", "--stdin-filename", "a.toy.yaml", stdin="add: {doc: ÄÖÜ, dtype: f8}\r\n".encode())
    assert done.out == "add: {doc: äöü, dtype: f8}\r\n"
    assert done.code == 1
    assert (root / "a.toy.yaml").read_text() == before


def test_stdin_that_is_not_text_is_wrong_usage(opschema: Opschema) -> None:
    done = opschema("lint", "--stdin-filename", "a.toy.yaml", stdin=b"\xff\xfe\0")
    assert done.code == 2
    done = opschema("lint", "--stdin-filename", "a.toy.yaml", stdin=b"caf\xe9")
    assert (done.code, done.err.strip()) == (
        2,
        "opschema: standard input cannot be read: byte 0xe9 on line 1 is not utf-8",
    )


# Fixes


def test_fix_writes_the_safe_fixes_and_reports_what_is_left(opschema: Opschema, root: Path) -> None:
    done = opschema("lint", "--fix", "--output-format", "concise")
    assert (done.code, codes(done)) == (1, ["TOY103"])
    assert (root / "a.toy.yaml").read_text() == "add: {doc: loud, dtype: f8}\n"
    done = opschema("lint", "--fix", "--unsafe-fixes", "--output-format", "concise")
    assert (done.code, codes(done)) == (0, [])
    assert (root / "a.toy.yaml").read_text() == "add: {doc: loud, dtype: f16}\n"


PATCHED = {
    "plain": b"add:\n  doc: LOUD\n  dtype: f16\n",
    "crlf": b"add:\r\n  doc: LOUD\r\n  dtype: f16\r\n",
    "no newline at the end": b"add: {doc: LOUD}",
    "line separators": 'add: {note: "a\u2028c\x85e", doc: LOUD}\nb: "f\u2029g"\n'.encode(),
    "far apart": b"add: {doc: LOUD}\n" + b"# x\n" * 50 + b"mul: {doc: SHOUT}\n",
}


@pytest.mark.parametrize("text", PATCHED.values(), ids=PATCHED)
def test_diff_writes_nothing_and_patch_accepts_it(opschema: Opschema, root: Path, text: bytes) -> None:
    (root / "a.toy.yaml").write_bytes(text)
    done = opschema("lint", "--diff")
    assert done.code == 1
    assert (root / "a.toy.yaml").read_bytes() == text
    run = subprocess.run(
        ["patch", "-p1", "--binary"], cwd=root, input=done.out.encode("utf-8", "surrogateescape"), capture_output=True
    )
    assert run.returncode == 0, run.stdout
    assert (root / "a.toy.yaml").read_bytes() == text.replace(b"LOUD", b"loud").replace(b"SHOUT", b"shout")
    assert opschema("lint", "--diff") == Done(0, "", "opschema: nothing to fix\n")


def test_fixes_that_do_not_settle_are_told(opschema: Opschema, root: Path) -> None:
    (root / "sub/b.toy.yaml").write_text("mul: {doc: x, flip: a}\n")
    done = opschema("lint", "--fix")
    assert "opschema: the fixes of sub/b.toy.yaml do not settle" in done.err
    assert (root / "sub/b.toy.yaml").read_text() == "mul: {doc: x, flip: a}\n"
    assert (root / "a.toy.yaml").read_text() == "add: {doc: loud, dtype: f8}\n"


# Baseline


def test_a_baseline_holds_what_is_there_and_lets_what_is_new_through(opschema: Opschema, root: Path) -> None:
    config = root / "opschema.toml"
    config.write_text(config.read_text() + 'baseline = ".opschema-baseline.json"\n')
    assert opschema("lint").code == 2
    done = opschema("baseline")
    written = f"Wrote 2 findings to {root}/.opschema-baseline.json; `opschema lint` counts only findings that are not in it.\n"
    assert (done.code, done.err) == (0, written)
    assert opschema("lint").code == 0
    (root / "sub/b.toy.yaml").write_text("mul: {}\n")
    (root / "a.toy.yaml").write_text("add: {doc: LOUD}\n")
    done = opschema("lint", "--output-format", "concise")
    assert (done.code, codes(done)) == (1, ["SUP003", "SUP003", "TOY102", "TOY101"])
    assert opschema("lint", "--write-baseline", "sub").code == 0
    assert opschema("lint").code == 0
    assert len(json.loads((root / ".opschema-baseline.json").read_text())["findings"]) == 2


def test_a_baseline_at_its_usual_place_needs_no_configuration(opschema: Opschema, root: Path) -> None:
    assert opschema("lint").code == 1
    assert opschema("baseline").err.endswith("; `opschema lint` counts only findings that are not in it.\n")
    done = opschema("lint")
    assert (done.code, "2 baselined" in done.out) == (0, True)
    assert f"baseline    {root}/.opschema-baseline.json\n" in opschema("lint", "--show-settings").out
    held = opschema("lint", "--no-baseline", "--output-format", "concise")
    assert (held.code, codes(held)) == (1, ["TOY102", "TOY103"])
    assert opschema("lint", cwd=root / "sub").code == 0
    (root / ".opschema-baseline.json").write_text("[]")
    assert "not a baseline" in opschema("lint").err
    (root / ".opschema-baseline.json").unlink()
    assert opschema("lint").code == 1


@pytest.mark.parametrize(
    ("config", "where"),
    [("opschema.toml", "opschema.toml"), ("pyproject.toml", "[tool.opschema] of pyproject.toml")],
)
def test_a_baseline_of_ones_own_is_used_once_the_configuration_says_what_is_printed(
    opschema: Opschema, root: Path, config: str, where: str
) -> None:
    text = (root / "opschema.toml").read_text()
    (root / "opschema.toml").unlink()
    head = "[tool.opschema]\n" if config == "pyproject.toml" else ""
    (root / config).write_text(head + text)
    done = opschema("baseline", "--output-file", 'mine "1".json', cwd=root / "sub")
    first, line = done.err.splitlines()
    assert (done.code, first) == (0, f'Wrote 2 findings to mine "1".json. `opschema lint` reads it once {where} says:')
    assert opschema("lint").code == 1
    assert opschema("lint", "--baseline", 'sub/mine "1".json').code == 0
    (root / config).write_text(f"{head}{line}\n{text}")
    assert opschema("lint").code == 0
    assert opschema("baseline").err.startswith(f'Wrote 2 findings to {root}/sub/mine "1".json; ')


def test_a_baseline_outside_the_workspace_is_named_on_the_command_line(opschema: Opschema, root: Path) -> None:
    theirs = root.parent / "theirs.json"
    assert f"; `opschema lint --baseline {theirs}` counts" in opschema("baseline", "--output-file", theirs).err
    assert opschema("lint", "--baseline", theirs).code == 0


@POSIX
def test_a_baseline_that_is_a_link_out_of_the_root_is_not_read(opschema: Opschema, root: Path) -> None:
    (root.parent / "theirs.json").write_text("secret")
    (root / ".opschema-baseline.json").symlink_to("../theirs.json")
    done = opschema("lint")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("opschema: .opschema-baseline.json leads out of the workspace")


def test_a_failing_rule_is_not_accepted_into_a_baseline(opschema: Opschema, root: Path) -> None:
    (root / "sub/b.toy.yaml").write_text("mul: {doc: x, crash: yes}\n")
    done = opschema("baseline")
    assert done.code == 3
    assert "Not in it: sub/b.toy.yaml OPS900 the rule TOY301" in done.err
    assert "OPS900" not in (root / ".opschema-baseline.json").read_text()


# rules, rule, show, init


def test_rules_lists_them_in_three_formats(opschema: Opschema, tilekit: Path) -> None:
    lines = [line.split() for line in opschema("rules", cwd=tilekit).out.splitlines()]
    assert ["SIG203", "tileops", "ctor-default", "error"] in [line[:4] for line in lines]
    some = [line.split()[0] for line in opschema("rules", "OPS1", cwd=tilekit).out.splitlines()]
    assert {code[:4] for code in some} == {"OPS1"}
    assert some == sorted({"OPS101", "OPS102", *some})
    listed = json.loads(opschema("rules", "--output-format", "json", cwd=tilekit).out)
    assert {
        "code": "YML001",
        "name": "yaml-syntax",
        "pack": "opschema",
        "severity": "error",
        "fix": "",
        "stage": "stable",
        "summary": YAML_SYNTAX.summary,
    } in listed
    assert (
        "| [SIG203](SIG203.md) | `ctor-default` |" in opschema("rules", "--output-format", "markdown", cwd=tilekit).out
    )


def test_rule_explains_one_by_code_or_name(opschema: Opschema, tilekit: Path) -> None:
    page = opschema("rule", "SIG203", cwd=tilekit).out
    assert page == opschema("rule", "ctor-default", cwd=tilekit).out
    assert page.startswith("# SIG203 ctor-default\n\n")
    assert "\n\nPack: tileops. Severity: error. Fix: " in page
    done = opschema("rule", "ctor-defaults", cwd=tilekit)
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "opschema: no rule is called `ctor-defaults`; did you mean `ctor-default`?",
    )


def test_show_prints_an_op_and_helps_with_a_wrong_name(opschema: Opschema) -> None:
    done = opschema("show", "add")
    assert done.code == 0
    assert re.search(r"doc +LOUD +kernel: unresolved", done.out)
    assert "did you mean `add`?" in opschema("show", "addd").err


def test_init_writes_the_configuration_and_the_hook_once(opschema: Opschema, tilekit: Path) -> None:
    (tilekit / "opschema.toml").unlink()
    pyproject = (tilekit / "pyproject.toml").read_text()
    (tilekit / ".pre-commit-config.yaml").write_bytes(
        b"# ours\r\nrepos:\r\n- repo: local\r\n  hooks: []  # none\r\n# end\r\n"
    )
    dry = opschema("init", "--dry-run", cwd=tilekit)
    assert dry.code == 0
    assert "+[tool.opschema]" in dry.out
    assert (tilekit / "pyproject.toml").read_text() == pyproject

    done = opschema("init", cwd=tilekit)
    assert done.code == 0
    wrote = ["wrote  pyproject.toml", f"wrote  .pre-commit-config.yaml: {explanation(installed_origins(()))}"]
    assert done.out.splitlines()[-2:] == wrote
    assert (tilekit / "pyproject.toml").read_text() == pyproject.rstrip(
        "\n"
    ) + '\n\n[tool.opschema]\npacks = ["tileops", "torchlib"]\n'
    hooks = (tilekit / ".pre-commit-config.yaml").read_bytes()
    assert hooks.startswith(b"# ours\r\nrepos:\r\n- repo: local\r\n  hooks: []  # none\r\n- repo: ")
    entry = hook_entry(installed_origins(())).replace("\n  ", "\r\n").removeprefix("  ").rstrip()
    assert hooks.endswith(f"{entry}\r\n# end\r\n".encode())
    assert hooks.count(b"\n") == hooks.count(b"\r\n")

    again = opschema("init", cwd=tilekit)
    assert [line.split()[0] for line in again.out.splitlines()[-2:]] == ["kept", "kept"]
    assert (tilekit / ".pre-commit-config.yaml").read_bytes() == hooks


def test_init_without_anything_to_lint_says_so(opschema: Opschema, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = opschema("init", cwd=tmp_path / "empty")
    assert done.code == 2
    assert "nothing to lint" in done.err
    assert list((tmp_path / "empty").iterdir()) == []


def test_lint_without_anything_to_lint_says_so(opschema: Opschema, tmp_path: Path) -> None:
    (tmp_path / "opschema.toml").write_text("")
    (tmp_path / "app.py").write_text("print()\n")
    done = opschema("lint", cwd=tmp_path)
    assert (done.code, done.out.partition(":")[0]) == (0, "Nothing to lint")
    failed = opschema("lint", "-q", "--fail-on-nothing", cwd=tmp_path)
    assert (failed.code, failed.out.partition(":")[0]) == (2, "Nothing to lint")
    again = opschema("lint", "--fail-on-nothing", "--output-format", "json", cwd=tmp_path)
    assert (again.code, json.loads(again.out)["summary"]["nothing_to_lint"]) == (2, True)


def test_lint_of_a_folder_that_no_pack_reads_says_so(opschema: Opschema, tilekit: Path) -> None:
    (tilekit / "assets").mkdir()
    (tilekit / "assets" / "page.html").write_text("")
    done = opschema("lint", "assets", "--fail-on-nothing", cwd=tilekit)
    assert (done.code, done.out.partition(":")[0]) == (2, "Nothing to lint")
    manifests = opschema("lint", "tilekit/manifest", "--fail-on-nothing", cwd=tilekit)
    assert "Nothing to lint" not in manifests.out


def test_baseline_and_show_without_anything_to_read_say_so(opschema: Opschema, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for command, missing in (("baseline", "nothing to lint in"), ("show", "nothing to show in")):
        done = opschema(*((command,) if command == "baseline" else (command, "add")), cwd=folder)
        assert (done.code, done.out) == (2, "")
        assert missing in done.err
        assert "`opschema init` lists what it looks for" in done.err
    assert list(folder.iterdir()) == []


def test_baseline_of_the_wrong_folder_leaves_an_earlier_one(opschema: Opschema, root: Path) -> None:
    assert opschema("baseline").code == 0
    accepted = (root / ".opschema-baseline.json").read_text()
    for path in root.rglob("*.toy.yaml"):
        path.unlink()
    assert opschema("baseline").code == 2
    assert (root / ".opschema-baseline.json").read_text() == accepted


@POSIX
def test_init_and_baseline_do_not_write_through_a_link_out_of_the_root(opschema: Opschema, tilekit: Path) -> None:
    victim = tilekit.parent / "victim"
    (tilekit / ".pre-commit-config.yaml").symlink_to("../victim")
    (tilekit / ".opschema-baseline.json").symlink_to("../victim")
    done = opschema("init", cwd=tilekit)
    assert (done.code, done.err.partition(" leads")[0]) == (2, "opschema: .pre-commit-config.yaml")
    assert not victim.exists()
    victim.write_text("theirs")
    assert opschema("baseline", cwd=tilekit).code == 2
    assert victim.read_text() == "theirs"


# The world around


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1", "TERM": "dumb", "NO_COLOR": "1"},
    ],
    ids=lambda env: " ".join(f"{name}={value}" for name, value in env.items()),
)
def test_any_locale_and_terminal(opschema: Opschema, root: Path, env: dict[str, str | None]) -> None:
    (root / "a.toy.yaml").unlink()
    (root / "ünï.toy.yaml").write_text("ädd: {doc: 漢字, dtype: 😀}\n", encoding="utf-8")
    text = opschema("lint", env=env)
    assert (text.code, text.err) == (1, "")
    assert "TOY103" in text.out
    concise = opschema("lint", "--output-format", "concise", env=env)
    assert concise.out.startswith(
        "ünï.toy.yaml:1:23: error TOY103 [known-dtype] `😀` is not one of f16, f32 (ops: ädd)\n"
    )
    stdin = opschema("lint", "--fix", "--stdin-filename", "a.toy.yaml", stdin="ädd: {doc: ÄÖ}\n".encode(), env=env)
    assert stdin.out == "ädd: {doc: äö}\n"


@POSIX
def test_a_workspace_that_cannot_be_written(opschema: Opschema, root: Path) -> None:
    for folder in (root, root / "sub"):
        folder.chmod(0o555)
    try:
        assert opschema("lint").code == 1
        done = opschema("lint", "--fix")
        assert done.code == 2
        assert "nothing was written" in done.err
    finally:
        for folder in (root, root / "sub"):
            folder.chmod(0o755)


@POSIX
def test_a_report_or_baseline_that_is_read_only_is_left_alone(opschema: Opschema, root: Path) -> None:
    for command in (["baseline"], ["lint", "--output-format", "json"]):
        (root / "file.json").write_text("theirs")
        (root / "file.json").chmod(0o444)
        done = opschema(*command, "--output-file", "file.json")
        assert (done.code, done.err) == (2, "opschema: file.json cannot be written: it is marked read-only\n")
        assert (root / "file.json").read_text() == "theirs"
        (root / "file.json").chmod(0o644)


def test_no_home_and_no_cache_folder(opschema: Opschema, root: Path) -> None:
    gone = {"OPSCHEMA_CACHE_DIR": None, "XDG_CACHE_HOME": None}
    assert opschema("lint", env={**gone, "HOME": "/dev/null"}).code == 1
    assert opschema("lint", env={"OPSCHEMA_CACHE_DIR": "/dev/null/x"}).code == 1
    (root / "file").write_text("")
    assert opschema("lint", env={"OPSCHEMA_CACHE_DIR": str(root / "file")}).code == 1


def test_a_cache_folder_is_made_and_the_tree_stays_as_it_is(opschema: Opschema, tilekit: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tilekit.rglob("*")}
    assert opschema("lint", tilekit, cwd=tilekit.parent).code in (0, 1)
    assert {path: path.stat().st_mtime_ns for path in tilekit.rglob("*")} == before
    assert [path.suffix for path in opschema.cache.iterdir() if path.suffix == ".sqlite"] == [".sqlite"]


def test_the_module_runs_like_the_command_and_imports_nothing_from_the_current_folder(
    opschema: Opschema, root: Path
) -> None:
    for name in ("click.py", "msgspec.py", "rich.py", "opschema_rules.py", "sitecustomize.py"):
        (root / name).write_text("raise SystemExit(f'{__name__} of the linted tree was imported')\n")
    run = subprocess.run(
        [sys.executable, "-m", "opschema_cli", "lint", "--output-format", "concise"],
        cwd=root, env=environment(opschema.cache), capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert run.stdout == opschema("lint", "--output-format", "concise").out or "TOY103" in run.stdout


def test_help_names_every_command_and_option(opschema: Opschema) -> None:
    top = opschema("--help").out
    assert all(f"  {command} " in top for command in ("lint", "rules", "rule", "show", "baseline", "init"))
    lint = opschema("lint", "-h").out
    options = (
        "select", "ignore", "fail-on", "fix", "unsafe-fixes", "diff", "output-format", "output-file", "baseline",
        "no-baseline", "write-baseline", "statistics", "no-cache", "no-plugins", "jobs", "stdin-filename", "show-settings",
    )  # fmt: skip
    assert all(f" --{option} " in lint for option in options)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_init_fills_a_pre_commit_configuration_that_holds_comments_alone(
    opschema: Opschema, tilekit: Path, newline: str
) -> None:
    path = tilekit / ".pre-commit-config.yaml"
    path.write_bytes(f"# Hooks{newline}#{newline}".encode())
    assert opschema("init", cwd=tilekit).code == 0
    text = path.read_bytes().decode()
    assert text.startswith(f"# Hooks{newline}#{newline}repos:{newline}  - repo: local{newline}")
    assert "\n" not in text.replace(newline, "")


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("---", ""), ("--- # hooks\n", ""), ("%YAML 1.1\n---\n# hooks\n", "...\n# no more\n")],
)
def test_init_fills_an_empty_pre_commit_configuration(
    opschema: Opschema, tilekit: Path, before: str, after: str
) -> None:
    path = tilekit / ".pre-commit-config.yaml"
    path.write_text(before + after)
    assert opschema("init", cwd=tilekit).code == 0
    text = path.read_text()
    assert text.startswith(before)
    assert text.endswith(after)
    assert yaml.safe_load(text)["repos"][0]["hooks"][0]["id"] == "opschema"


def test_init_says_where_the_hook_goes_that_it_cannot_write(opschema: Opschema, tilekit: Path) -> None:
    path = tilekit / ".pre-commit-config.yaml"
    path.write_text("repos: []\n")
    done = opschema("init", cwd=tilekit)
    assert (done.code, path.read_text()) == (2, "repos: []\n")
    assert "has no list of repos to add to; write this under its `repos`:\n  - repo: local\n" in done.err


def test_where_a_rule_of_a_plugin_is_explained(opschema: Opschema, root: Path) -> None:
    done = opschema("rule", "TOY102")
    assert done.code == 2
    assert "no rule is called `TOY102`; a rule of toypack.py is explained by its docstring there\n" in done.err
    (root / "opschema.toml").write_text('plugins = ["toypack.py"]\n')
    assert opschema("rule", "TOY102").err.endswith("docstring there\n")
    for wrong, meant in (
        ("fake-signatur", "fake-signature"),
        ("Fake-Signature", "fake-signature"),
        ("reg20x", "REG2"),
    ):
        error = opschema("rule", wrong).err
        assert f"`{wrong}`; a rule of toypack.py is explained by its docstring there; did you mean `{meant}" in error
    (root / "opschema.toml").unlink()
    assert "no rule is called `fake-signatur`; did you mean `fake-signature`?" in opschema("rule", "fake-signatur").err


def test_version(opschema: Opschema) -> None:
    assert re.fullmatch(r"opschema, version \d+\.\d+\.\d+\n", opschema("--version").out)


# The fixture repository


def test_tilekit_is_linted_the_same_way_cold_and_warm(opschema: Opschema, tilekit: Path) -> None:
    cold = opschema("lint", "--output-format", "json", cwd=tilekit)
    warm = opschema("lint", "--output-format", "json", cwd=tilekit)
    uncached = opschema("lint", "--output-format", "json", "--no-cache", "--jobs", "1", cwd=tilekit)
    assert cold.code == warm.code == uncached.code
    assert cold.code in (0, 1)
    reports = [json.loads(done.out) for done in (cold, warm, uncached)]
    for report in reports:
        report["summary"].pop("seconds", None)
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["summary"]["ops"] == 22
    assert not {"OPS101", "OPS102", "OPS900", "YML001"} & {item["code"] for item in reports[0]["diagnostics"]}


def test_show_knows_an_op_of_tilekit(opschema: Opschema, tilekit: Path) -> None:
    done = opschema("show", "RMSNormFwdOp", cwd=tilekit)
    assert done.code == 0
    assert "weight" in done.out


def test_a_path_from_elsewhere_finds_the_fixtures_own_root(opschema: Opschema, tilekit: Path) -> None:
    report = json.loads(opschema("lint", "tilekit", "--output-format", "json", cwd=tilekit.parent).out)
    assert report["summary"]["ops"] == 22
    with contextlib.suppress(IndexError):
        assert not report["diagnostics"][0]["path"].startswith("/")


def test_streams_that_were_closed_before_the_start_change_nothing(tmp_path: Path) -> None:
    command = f"{shlex.quote(str(EXECUTABLE))} lint"
    tree, environ = tmp_path / "tree", environment(tmp_path / "cache")
    shutil.copytree(TILEKIT, tree)
    for closed in ("", ">&-", "2>&-", "<&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"], cwd=tree, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, closed
        assert done.stderr == ""
        assert ("Found" in done.stdout) is (">&-" not in closed.replace("2>&-", ""))
