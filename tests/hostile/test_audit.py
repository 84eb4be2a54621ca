"""An audit hook watches a whole lint of a tree full of traps: nothing of it is imported, run or started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURE = Path(__file__).parents[2] / "fixtures" / "tilekit"

WATCHER = """
import json, os, sys
root, report = sys.argv[1], sys.argv[2]
log = os.open(report + ".events", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(event, what):  # the processes that parse write here too
    os.write(log, (json.dumps([event, what, os.getpid()]) + "\\n").encode())
def watch(event, args):
    if event in ("compile", "exec", "import", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "ctypes.dlopen",
                 "socket.connect", "pty.spawn"):
        if event == "exec":
            what = [args[0].co_filename, args[0].co_name]
        elif event == "compile":
            what = [repr(args[0])[:200], str(args[1])]
        elif event == "import":
            what = [str(args[0]), str(args[1])]
        else:
            what = [repr(item)[:300] for item in args]
        note(event, what)
    elif event == "open":
        mode = isinstance(args[1], str) and set(args[1]) & set("wax+")
        if mode or args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            note("write", [str(args[0])])
    elif event in ("os.rename", "os.remove", "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.truncate", "shutil.move"):
        note("write", [str(item) for item in args[:2]])
sys.addaudithook(watch)
from opschema_cli.main import run
code = run(["lint", "--jobs", "1", "--output-format", "json", "--output-file", os.devnull, *sys.argv[3:], root])
modules = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
with open(report, "w") as stream:
    json.dump({"code": code, "modules": modules}, stream)
"""

TRAP = "import os\nos.environ['OPSCHEMA_TRAPPED'] = '1'\nopen(__file__ + '.trapped', 'w').close()\n"


def set_traps(root: Path) -> None:
    """Files that a careless tool would import, run or obey."""
    for name in ("conftest.py", "setup.py", "sitecustomize.py", "usercustomize.py", "yaml.py", "tilekit/trap.py"):
        (root / name).write_text(TRAP)
    for package in ("click", "libcst", "opschema_rules", "opschema_plugin"):
        (root / package).mkdir()
        (root / package / "__init__.py").write_text(TRAP)
    (root / "evil.pth").write_text("import os; os.system('touch trapped')\n")
    manifest = root / "tilekit" / "manifest" / "trap.yaml"
    manifest.write_text(
        "TrapFwdOp: !!python/object/apply:os.system ['touch trapped']\n"
        "FormulaFwdOp:\n  family: trap\n  ref_api: none\n  status: implemented\n"
        "  signature:\n    inputs: {x: {dtype: float16}}\n    outputs: {y: {dtype: same_as(x)}}\n"
        "    shape_rules:\n"
        '    - "().__class__.__mro__[1].__subclasses__()"\n'
        "    - \"__import__('os').system('touch trapped')\"\n"
        '    - "all(i >= 0 for i in range(10**12))"\n'
        '    - "(lambda: x)().gi_frame.f_back.f_builtins"\n'
        "  workloads: [{x_shape: [1], dtypes: [float16]}, {x_shape: [2], dtypes: [float16]}]\n"
        "  roofline: {func: os.system}\n"
        "  source: {kernel: a.py, op: tilekit/trap.py, test: b.py, bench: c.py}\n"
    )
    (root / ".git").mkdir(exist_ok=True)


PLUGINS = 'plugins = ["setup.py", "tilekit/trap.py", "yaml", "opschema_plugin"]\n'


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "plugins named, --no-plugins"])
def watched(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Path, dict[str, object]]:
    tmp_path = tmp_path_factory.mktemp("audit")
    root = tmp_path / "tree"
    shutil.copytree(FIXTURE, root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    set_traps(root)
    if request.param:
        (root / "opschema.toml").write_text(PLUGINS + (root / "opschema.toml").read_text())
    (root / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch trapped\n\thooksPath = hooks\n"
        '[alias]\n\tls-files = !touch trapped\n[filter "x"]\n\tclean = touch trapped\n\tsmudge = touch trapped\n'
    )
    (root / ".gitattributes").write_text("* filter=x\n")
    (tmp_path / "watch.py").write_text(WATCHER)
    report = tmp_path / "report.json"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OPSCHEMA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "watch.py"), str(root), str(report)]
    command += ["--no-plugins"] if request.param else []
    subprocess.run(command, cwd=root, env=environment, check=True, timeout=120)
    found: dict[str, object] = json.loads(report.read_text())
    lines = (tmp_path / "report.json.events").read_text().splitlines()
    found["events"] = [(event, what) for event, what, _ in map(json.loads, lines)]
    found["processes"] = {process for _, _, process in map(json.loads, lines)}
    return root, found


def test_nothing_of_the_tree_is_imported_run_started_or_written(watched: tuple[Path, dict[str, object]]) -> None:
    root, report = watched
    events: list[tuple[str, list[str]]] = report["events"]  # type: ignore[assignment]
    inside = str(root)
    assert report["code"] in (1, 2)
    assert events, "the hook saw nothing, so it proves nothing"
    assert len(report["processes"]) > 1, "the hook did not see the processes that parse"  # type: ignore[arg-type]
    assert not [
        what
        for event, what in events
        if event in ("exec", "compile", "import") and any(inside in word for word in what)
    ]
    modules: dict[str, str | None] = report["modules"]  # type: ignore[assignment]
    assert not {name: path for name, path in modules.items() if path and path.startswith(inside)}
    started = [
        what
        for event, what in events
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pty.spawn")
    ]
    assert all("git" in what[0] and "ls-files" in what[1] for what in started), started
    assert not [what for event, what in events if event == "socket.connect"]
    outside_cache = [what for event, what in events if event == "write" and str(root.parent / "cache") not in what[0]]
    assert [what for what in outside_cache if what[0] not in (os.devnull, str(root.parent / "report.json"))] == []
    assert not list(root.rglob("*trapped*"))


def test_expressions_of_the_tree_are_parsed_but_never_compiled_to_run(watched: tuple[Path, dict[str, object]]) -> None:
    _, report = watched
    events: list[tuple[str, list[str]]] = report["events"]  # type: ignore[assignment]
    # `ast.parse` raises the `compile` event under the file name `<unknown>`; code that runs raises `exec` under its own.
    assert any(what[1] == "<unknown>" for event, what in events if event == "compile")
    assert not [what for event, what in events if event == "exec" and what[0] == "<unknown>"]
