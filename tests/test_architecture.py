"""The house's order: imports run one way, and a run imports only what it needs."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "opschema_cli"
TILEKIT = ROOT / "fixtures/tilekit"

# Each room, and the rooms that it may import; `annotations` may name more, for they are not imported at run time.
ROOMS = {
    "__main__": {"main"},
    "main": {
        "commands",
        "crash_report",
        "crash_traces",
        "errors",
        "interrupts",
        "reporters",
        "suggestions",
        "versions",
    },
    "commands": {
        *("file_kinds", "regular_files", "root"),
        *(
            "operators",
            "session",
            "project",
            "reporters",
            "lint",
            "migrate",
            "config",
            "workspace",
            "write",
            "transaction",
            "git",
        ),
        *("source", "verify", "errors", "phrases", "permissions", "plugins", "suggestions"),
        *("diff", "cache", "git_objects", "gitignore", "revision_workspace", "crash_report", "server"),
    },
    "server": {
        *("errors", "file_kinds", "lint", "migrate", "operators", "project", "reporters", "root", "schema", "session"),
        *("source", "workspace"),
    },
    "diff": {
        "file_kinds",
        "config",
        "config_places",
        "operators",
        "schema",
        "source",
        "errors",
        "phrases",
        "suggestions",
    },
    "verify": {
        *("session", "lint", "operators", "project", "evaluation", "schema", "source", "workspace", "git", "cache"),
        *("git_objects", "file_listing", "errors", "phrases", "suggestions"),
    },
    "testing": {"authoring", "lint", "migrate", "project", "workspace", "config", "source"},
    "proof": {"testing", "lint", "source"},
    "session": {
        *(
            "lint",
            "plugins",
            "project",
            "cache",
            "config",
            "transaction",
            "workspace",
            "source",
            "errors",
            "file_kinds",
        ),
        "root",
    },
    "operators": {"schema", "source", "suggestions", "errors"},
    "reporters": {"operators", "lint", "verify", "source", "errors", "phrases", "sequences"},
    "versions": {"cache", "errors", "lint"},
    "crash_report": {"versions"},
    "crash_traces": set(),
    "phrases": set(),
    "slips": set(),
    "suggestions": set(),
    "sequences": set(),
    "cached_on_argument": set(),
    "migrate": {"file_kinds", "authoring", "lint", "project", "config", "workspace", "source", "errors", "suggestions"},
    "lint": {
        *("file_kinds", "regular_files", "importing_files", "operators"),
        *(
            "plugins",
            "project",
            "readings",
            "cache",
            "config",
            "config_places",
            "gitignore",
            "workspace",
            "schema",
            "source",
            "errors",
        ),
        *("interrupts", "phrases", "suggestions", "authoring", "crash_traces"),
    },
    "project": {"file_kinds", "regular_files", "cache", "readings", "worker_readings", "lint", "workspace", "source"},
    "readings": {"cache", "source"},
    "worker_readings": {"readings", "source"},
    "code_values": {"cache", "project", "readings", "regular_files", "source"},
    "word_search": {"project", "readings", "source"},
    "cpp_units": {"file_kinds", "project", "readings", "source", "word_search"},
    "cpp_pasting": {"project", "readings"},
    "importing_files": {"project", "readings", "source", "word_search"},
    "cpp_generators": {"file_kinds", "project", "readings", "word_search"},
    "cpp_definitions": {
        *("cpp_generators", "cpp_pasting", "cpp_units", "file_kinds", "project", "readings", "source", "word_search")
    },
    "cpp_missing": {"cpp_definitions", "cpp_units", "file_kinds", "project", "schema", "source", "suggestions"},
    "extension_modules": {"evaluation", "file_kinds", "importing_files", "project", "source"},
    "requirements": {"readings", "workspace"},
    "write": {"file_kinds", "regular_files", "transaction", "read_only", "workspace", "source", "errors", "interrupts"},
    "read_only": set(),
    "transaction": {"regular_files", "cache", "user_key", "errors"},
    "git": {"file_listing", "git_answer", "errors"},
    "git_answer": set(),
    "git_objects": {"file_listing", "git", "errors"},
    "revision_workspace": {"git_objects", "regular_files", "workspace"},
    "config": {"regular_files", "root", "cache", "config_places", "errors", "suggestions"},
    "config_places": {"regular_files", "errors"},
    "schema": {"source", "sequences", "phrases", "suggestions"},
    "workspace": {"source", "file_kinds", "file_listing", "gitignore", "links", "memory", "regular_files", "errors"},
    "memory": set(),
    "file_listing": {"git_answer", "gitignore", "regular_files", "errors"},
    "root": {"regular_files", "errors"},
    "file_kinds": set(),
    "links": set(),
    "regular_files": set(),
    "gitignore": {"errors", "globs"},
    "globs": set(),
    "cache": {"user_key"},
    "user_key": {"private"},
    "private": set(),
    "permissions": {"private", "errors"},
    "plugins": {"regular_files", "permissions", "workspace", "errors"},
    "evaluation": {"source", "installed_tables", "cached_on_argument"},
    "installed_tables": {"errors"},
    "source": {"errors", "interrupts"},
    "interrupts": set(),
    "errors": set(),
    "authoring": set(),
    "api": {"errors", "lint", "migrate", "project", "readings", "source"},
}
REPORTERS_MAY = {
    *("opschema_cli.lint.diagnostic", "opschema_cli.source.text", "opschema_cli.__version__"),
    *("opschema_cli.verify.model", "opschema_cli.verify.results", "opschema_cli.errors", "opschema_cli.phrases"),
    *("opschema_cli.sequences", "opschema_cli.operators"),
}


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """The trees of a thousand modules take a quarter of a gigabyte."""
    yield
    parsed.cache_clear()


def modules(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


@cache
def imports(path: Path) -> tuple[str, ...]:
    """The dotted names that a module imports, at its top or later; not those that only type checkers see."""
    return tuple(_imports(path, _run(parsed(path))))


@cache
def all_imports(path: Path) -> tuple[str, ...]:
    """The dotted names that a module imports, those that only type checkers see included."""
    return tuple(_imports(path, ast.walk(parsed(path))))


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of a tree but for those that only type checkers see."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        hidden = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        left += node.orelse if hidden else ast.iter_child_nodes(node)


def _imports(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0, f"{path}: a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_name(path: Path) -> str:
    """The dotted name of a module; a package's own file has the package's name."""
    folder = ROOT / "rules" if path.is_relative_to(ROOT / "rules") else ROOT
    return ".".join(part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__")


def room_of(name: str) -> str:
    """The room of an engine module's dotted name: `opschema_cli.lint.fix` is in `lint`."""
    return [*name.split("."), ""][1]


def engine_imports() -> list[tuple[str, str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), path.relative_to(ENGINE).parts[0].removesuffix(".py"), name)
        for path in modules(ENGINE)
        for name in imports(path)
    ]


def test_imports_of_the_engine_run_one_way() -> None:
    found = [
        f"{path} imports {name}"
        for path, room, name in engine_imports()
        if room_of(name) in ROOMS and name.startswith("opschema_cli.") and room_of(name) not in {room, *ROOMS[room]}
    ]
    assert found == []


def test_what_parses_knows_of_lint_only_the_data_of_diagnostics() -> None:
    names = {name for _, room, name in engine_imports() if room == "project" and room_of(name) == "lint"}
    assert all(name.startswith("opschema_cli.lint.diagnostic") for name in names)


def test_every_room_has_its_line_above() -> None:
    rooms = {path.relative_to(ENGINE).parts[0].removesuffix(".py") for path in modules(ENGINE)}
    assert rooms - {"__init__"} == set(ROOMS)


def test_no_two_rooms_import_each_other() -> None:
    pairs = [(room, other) for room, others in ROOMS.items() for other in others if room in ROOMS[other]]
    assert set(pairs) == {("lint", "project"), ("project", "lint")}, "project makes diagnostics, see above"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither at their top, nor later, nor for type checkers."""
    files = [*modules(ENGINE), *modules(ROOT / "rules/opschema_rules"), *modules(ROOT / "benchmarks")]
    names = {module_name(path): path for path in files}
    imported = {name: {other for other in all_imports(path) if other in names} - {name} for name, path in names.items()}
    circle: list[str] = []
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


MOST_LINES = 400


def test_long_modules_say_why_they_are_one_module() -> None:
    code = [path for folder in ("opschema_cli", "rules") for path in modules(ROOT / folder)]
    texts = {path: path.read_text(encoding="utf-8") for path in code}
    long = {path: text for path, text in texts.items() if text.count("\n") > MOST_LINES}
    docs = {path: ast.get_docstring(ast.parse(text)) or "" for path, text in long.items()}
    assert [path for path, doc in docs.items() if "one module because" not in " ".join(doc.split())] == []


def test_the_engine_never_imports_a_pack() -> None:
    found = [f"{path} imports {name}" for path, _, name in engine_imports() if name.startswith("opschema_rules")]
    assert found == []


BUILDS_ON = {
    "bindings": {"aten", "torchlib"},
    "executorch": {"aten", "torchlib"},
    "magi": {"torchlib"},
    "paddle": {"aten"},
    "tileops": {"torchlib"},
    "torchlib": {"aten"},
}
"""Packs that need the subjects of another: Magi ops are operators of torch.library, which may be operators of torch itself."""

SHARED = {"TORCH_RELEASES", "shipped"}
"""Names and modules of the package that holds the packs, which all of them may import."""


def test_packs_import_none_that_they_do_not_build_on_nor_the_engines_edge() -> None:
    rules = ROOT / "rules/opschema_rules"
    edge = {"commands", "main", "session", "reporters", "write", "transaction", "git", "cache"}
    found = []
    for path in modules(rules):
        pack = path.relative_to(rules).parts[0]
        for name in imports(path):
            if name.startswith("opschema_rules.") and name.split(".")[1] not in {
                pack,
                *BUILDS_ON.get(pack, ()),
                *SHARED,
            }:
                found.append(f"{path} imports {name}")
            if name.startswith("opschema_cli.") and room_of(name) in edge:
                found.append(f"{path} imports {name}")
    assert found == []


def test_reporters_read_diagnostics_and_text_and_no_more() -> None:
    found = [
        f"{path} imports {name}"
        for path, room, name in engine_imports()
        if room == "reporters" and name.startswith("opschema_cli.") and room_of(name) != "reporters"
        if not any(name == allowed or name.startswith(allowed + ".") for allowed in REPORTERS_MAY)
    ]
    assert found == []


def test_verify_show_and_list_read_the_operator_table_and_plans_of_a_pack_and_no_more() -> None:
    commands = [ENGINE / "commands" / f"{name}.py" for name in ("list", "operators", "show", "verified", "verify")]
    folders = [
        ENGINE / "operators",
        ENGINE / "reporters/operators",
        ENGINE / "reporters/verification",
        ENGINE / "verify",
    ]
    code = [*commands, ENGINE / "lint/operators.py", *(path for folder in folders for path in modules(folder))]
    read = {name for path in code for name in re.findall(r"\bpack\.(\w+)", path.read_text(encoding="utf-8"))}
    assert read == {"name", "operators", "plans"}


def test_nothing_imports_what_a_linter_must_not() -> None:
    slow = ("torch", "libcst.matchers", "libcst.codemod", "libcst.metadata")
    code = [*modules(ENGINE), *modules(ROOT / "rules")]
    found = [(path, name) for path in code for name in imports(path) if name.startswith(slow)]
    assert {path.relative_to(ENGINE).parts[0] for path, name in found if name.startswith("torch")} == {"verify"}
    assert [(path, name) for path, name in found if not name.startswith("torch")] == []


def test_plans_and_results_need_no_torch() -> None:
    plain = ("model", "protocol", "binding", "recipes", "sides", "workers", "results", "run", "shards", "judge")
    code = [ENGINE / "verify" / f"{name}.py" for name in plain]
    assert [path for path in code for name in imports(path) if name.partition(".")[0] == "torch"] == []


_WHOLE = re.compile(r"\Z|.*\b(?:Base)?Exception\b")


def test_exceptions_are_caught_whole_only_where_foreign_code_runs() -> None:
    found: dict[str, int] = {}
    for path in [*modules(ENGINE), *modules(ROOT / "rules")]:
        for node in ast.walk(parsed(path)):
            caught = ast.unparse(node.type) if isinstance(node, ast.ExceptHandler) and node.type else ""
            if isinstance(node, ast.ExceptHandler) and _WHOLE.match(caught):
                reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in node.body)
                found[path.relative_to(ROOT).as_posix()] = found.get(path.relative_to(ROOT).as_posix(), 0) + (
                    not reraises
                )
    assert (
        {path: count for path, count in found.items() if count}
        == {
            "opschema_cli/main.py": 1,  # the one error boundary
            "opschema_cli/lint/execute.py": 3,  # a pack that loads, a rule that looks for candidates, and one that runs
            "opschema_cli/lint/recognition.py": 1,  # a pack that is asked whether a file is its own
            "opschema_cli/lint/forked_run.py": 1,  # all that runs in the forked process; it runs again here, where it is reported
            "opschema_cli/migrate/engine.py": 2,  # a pack's migrations that are imported, a migration that runs
            "opschema_cli/lint/registry.py": 2,  # a plugin that is imported, a pack that looks for its files
            "opschema_cli/lint/loading.py": 1,  # an installed pack that is imported
            "opschema_cli/server/worker.py": 1,  # a run of the server that fails, which must not end it
            "opschema_cli/lint/collisions.py": 2,  # a pack that is asked for its rules, and imported to place one
            "opschema_cli/verify/prepare.py": 1,  # torch that is installed and cannot be imported
            "opschema_cli/verify/worker.py": 4,  # the op that is surveyed, imported and run, and the recipes
            "opschema_cli/verify/own_gradients.py": 2,  # an op that is asked for a gradient, and its backward, in a worker
            "opschema_cli/verify/loading.py": 1,  # an exception of an op that is asked for its message, in a worker
            "opschema_cli/verify/acceptance.py": 1,  # a fake kernel that a search calls, in a worker
            "opschema_cli/verify/compilation.py": 1,  # an operator that is compiled, in a worker
            "opschema_cli/verify/gradients.py": 2,  # an operator that is called in float64, and its formula, in a worker
            "opschema_cli/verify/methods.py": 1,  # a method of an op, in a worker
            "opschema_cli/verify/operators.py": 2,  # a fake kernel, and torch's own tests of an operator, in a worker
            "opschema_cli/verify/preloading.py": 1,  # a package of the tree, in a process of its own
            "opschema_cli/verify/registered.py": 1,  # a function of the tree that compiles an operator, in a worker
        }
    )


# What a run imports

RUN = """
import json, sys
from opschema_cli.main import run
code = run(sys.argv[1:])
sys.stdout.flush()
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def imported_by(folder: Path, *args: str) -> tuple[int, set[str]]:
    environment = {**os.environ, "OPSCHEMA_CACHE_DIR": str(folder.parent / "cache")}
    process = subprocess.run(
        [sys.executable, "-c", RUN, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    code, names = json.loads(process.stderr.splitlines()[-1])
    return code, set(names)


@pytest.fixture(scope="module")
def tilekit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(TILEKIT, tmp_path_factory.mktemp("architecture") / "tilekit"))


def test_a_cold_run_imports_no_torch_and_parses_elsewhere(tilekit: Path) -> None:
    _, names = imported_by(tilekit, "lint", "--no-cache")
    assert "opschema_rules.tileops.pack" in names
    assert not {name.partition(".")[0] for name in names} & {"torch", "tilekit", "numpy", "libcst"}
    assert not any(name.startswith(("opschema_cli.migrate", "opschema_rules.tileops.migrations.")) for name in names)


def test_a_warm_run_imports_no_parser(tilekit: Path) -> None:
    first, _ = imported_by(tilekit, "lint")
    second, names = imported_by(tilekit, "lint")
    assert second == first
    tops = {name.partition(".")[0] for name in names}
    assert not tops & {"libcst", "multiprocessing", "concurrent", "ruamel", "_ruamel_yaml", "jsonschema_rs"}


def test_help_and_version_import_no_rule(tilekit: Path) -> None:
    for option in ("--help", "--version"):
        code, names = imported_by(tilekit, option)
        assert code == 0
        assert not any(name.startswith(("opschema_rules", "opschema_cli.lint", "msgspec", "rich")) for name in names)


NEWER = {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}
"""What regular expressions know since Python 3.11; the oldest Python that is served refuses a module that uses it."""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="an older Python refuses them when they are imported")
def test_regular_expressions_are_those_of_the_oldest_python() -> None:
    patterns = [item for path in (*modules(ENGINE), *modules(ROOT / "rules")) for item in _patterns(path)]
    assert len(patterns) > 200
    assert [place for place, pattern in patterns if _needs_newer(pattern)] == []
    assert all(map(_needs_newer, (r"a*+b", rb"(x|(?>y))")))


def _patterns(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """The regular expressions that a module writes out, each with its place."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
            parts = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
            yield from ((f"{path}:{node.lineno}", part) for part in parts if isinstance(part, str | bytes))


def _needs_newer(pattern: str | bytes) -> bool:
    """Whether a regular expression, or a part of one, needs a newer Python."""
    from re import _parser as parser  # type: ignore[attr-defined]

    try:
        return any(name in repr(parser.parse(pattern)) for name in NEWER)
    except re.error:  # a part that is none by itself
        return False


def test_an_alias_is_a_string_only_where_it_must_be() -> None:
    """Python 3.10 leaves a string inside another type as it is, and msgspec then refuses the type."""
    names = frozenset(dir(builtins))
    found = [
        f"{path.relative_to(ROOT)}: {node.target.id}"
        for path in [*modules(ENGINE), *modules(ROOT / "rules")]
        for node in parsed(path).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and ast.unparse(node.annotation) == "TypeAlias"
        for parts in [list(ast.walk(ast.parse(node.value.value, mode="eval")))]
        if not any(isinstance(part, ast.BinOp) for part in parts)
        and all(part.id in names for part in parts if isinstance(part, ast.Name))
    ]
    assert found == []
