"""How many artifacts FlyDSL keeps for several sizes and captured values, and that the rules say the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from packaging.version import Version

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.key import PROGRAM_SINCE
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.key_oracle import RELEASES, release_of
from tests.rules.flydsl.trace_oracle import errors

LINKER = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        -o) out=$2; shift ;;
        -*) ;;
        *) object=$1 ;;
    esac
    shift
done
cp "$object" "$out"
"""
"""Stands in for ROCm's linker, which no machine without ROCm has: the artifact is the object file."""

SIZES = """\
@flyc.kernel
def scale(A: fx.Tensor):
    rows = fx.rocdl.make_buffer_tensor(A, max_size=False)


@flyc.jit
def launch(A: fx.Tensor):
    scale(A).launch(grid=(1, 1, 1), block=(64, 1, 1))


def use():
    for rows in (128, 256, 512):
        a = torch.empty(rows, 64)
        launch({})
"""

CAPTURES = """\
def build({}):
    @flyc.kernel
    def scale(A: fx.Tensor):
        pass

    @flyc.jit
    def launch(A: fx.Tensor):
        scale(A).launch(grid=(1, 1, 1), block=({}, 1, 1))

    return launch


def use():
    a = torch.empty(64, 64)
    for value in ({}):
        launch = build(value)
        launch(a)
"""

CHANGED = """\
def build():
    value = {}

    @flyc.kernel
    def scale(A: fx.Tensor):
        pass

    @flyc.jit
    def launch({}):
        scale(A).launch(grid=(1, 1, 1), block=({}, 1, 1))

    def run(a, size):
        {}

    return run


def use():
    a = torch.empty(64, 64)
    run = build()
    for size in (64, 128):
        run(a, size)
"""


FACTORY = """\
class Config:
    threads = 32


def build(config, *, copy=None):
    {before}

    @flyc.kernel
    def scale(A: fx.Tensor):
        pass

    @flyc.jit
    def launch({takes}):
        scale(A).launch(grid=(1, 1, 1), block=({read}, 1, 1))

    return launch


def use():
    a = torch.empty(64, 64)
    config = {value}
    launch = build(config)
    {host}
"""
LOOP = "for size in (64, 128):\n        {}\n        {}"


def built(
    value: str,
    read: str,
    host: str,
    before: str = "pass",
    takes: str = "A: fx.Tensor",
    change: str = "",
    call: str = "launch(a)",
) -> str:
    """A program whose factory keeps what its caller changes, before each launch of a loop, or between launches."""
    host = LOOP.format(host, call) if not change else f"launch(a)\n    {change}\n    launch(a)"
    return FACTORY.format(value=value, read=read, host=host, before=before, takes=takes)


def changed(value: str, read: str, run: str, takes: str = "A: fx.Tensor") -> str:
    """A program that changes what a launcher captures before each of two launches."""
    return CHANGED.format(value, takes, read, run)


COUNT = """\
def run():
    import os, pathlib, tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLYDSL_RUNTIME_ENABLE_CACHE"] = "1"
        os.environ["FLYDSL_RUNTIME_CACHE_DIR"] = folder
        use()
        raise ValueError(len(list(pathlib.Path(folder).rglob("*.pkl"))))
"""


TWICE = """\
def use():
    a = torch.empty(4, 1)
    t = flyc.from_torch_tensor(a).mark_layout_dynamic(leading_dim=1)
    t.mark_layout_dynamic(leading_dim=0)
"""


UNREAD = """\
@flyc.kernel
def scale(A: fx.Tensor):
    pass


@flyc.jit
def launch(A: fx.Tensor, mode: fx.Constexpr[int]):
    scale(A).launch(grid=(1, 1, 1), block=(64, 1, 1))


def use():
    for mode in (1, 2):
        launch(torch.empty(64, 64), mode)
"""

MODULE = """\
threads = 64


@flyc.kernel
def scale(A: fx.Tensor):
    pass


@flyc.jit
def launch(A: fx.Tensor):
    scale(A).launch(grid=(1, 1, 1), block=(threads, 1, 1))


def use():
    global threads
    launch(torch.empty(64, 64))
    threads = 128
    try:
        launch(torch.empty(64, 64))
    except RuntimeError:
        pass
"""


class Program(msgspec.Struct, frozen=True):
    """A program, the artifacts that it leaves or its error, and the rules that report it.

    ``traced`` is what it leaves if the key is the traced program, as it is from 0.5.0 on, where that differs.
    """

    text: str
    leaves: int | str
    named: str = ""
    traced: int | None = None

    def error(self, release: Version) -> str:
        """The error that it ends with."""
        leaves = self.traced if self.traced is not None and release >= PROGRAM_SINCE else self.leaves
        return leaves if isinstance(leaves, str) else f"ValueError: {leaves}"

    def codes(self, release: Version) -> list[str]:
        """The rules that report it."""
        return [code for code in self.named.split() if release < PROGRAM_SINCE or code not in OF_COMPUTED_KEYS]


OF_COMPUTED_KEYS = frozenset({"FLY204", "FLY225"})
"""The rules that report nothing where the key is the traced program."""

PROGRAMS = {
    "static sizes": Program(SIZES.format("flyc.from_torch_tensor(a)"), 3, "FLY208"),
    "a dynamic size": Program(SIZES.format("flyc.from_torch_tensor(a).mark_shape_dynamic(0)"), 1),
    "a dynamic layout": Program(SIZES.format("flyc.from_torch_tensor(a).mark_layout_dynamic()"), 1),
    "plain tensors": Program(SIZES.format("a"), 1),
    "lists": Program(
        CAPTURES.format("sizes: list", "sizes[0]", "[64], [128]"), 1, "FLY204", 2
    ),  # the second one is stale
    "tuples": Program(CAPTURES.format("sizes: tuple", "sizes[0]", "(64,), (128,)"), 2),
    "two leading dimensions": Program(TWICE, "RuntimeError: Leading dimension must have stride 1", "FLY210"),
    "lists in a loop": Program(CAPTURES.format("sizes", "sizes[0]", "[64, 2], [128, 4]"), 1, "FLY204", 2),
    "items of a table": Program(CAPTURES.format("sizes", "sizes['a']", "{'a': 64}, {'a': 128}"), 1, "FLY204", 2),
    "tuples in a loop": Program(CAPTURES.format("sizes", "sizes[0]", "(64, 2), (128, 4)"), 2),
    "a changed list": Program(changed("[32]", "value[0]", "value[0] = size; launch(a)"), 1, "FLY225", 2),
    "a longer list": Program(changed("[]", "value[-1]", "value.append(size); launch(a)"), 1, "FLY225", 2),
    "a changed dict": Program(changed("{'a': 32}", "value['a']", "value['a'] = size; launch(a)"), 1, "FLY225", 2),
    "a changed number": Program(changed("32", "value", "nonlocal value; value = size; launch(a)"), 1, "FLY225", 2),
    "a changed list with a constant": Program(
        changed("[32]", "max(value[0], n)", "value[0] = size; launch(a, size)", "A: fx.Tensor, n: fx.Constexpr[int]"), 2
    ),
    "a changed list that none captures": Program(changed("[32]", "64", "value[0] = size; launch(a)"), 1),
    "a constant that nothing reads": Program(UNREAD, 2, traced=1),
    "a changed variable of the module": Program(MODULE, 1, traced=2),  # up to 0.4.2 it raises
    "a factory's dict": Program(built("{'a': 32}", "config['a']", "config['a'] = size"), 1, "FLY204", 2),
    "a factory's list": Program(built("[32]", "config[0]", "config[0] = size"), 1, "FLY204", 2),
    "a factory's longer list": Program(built("[32]", "config[-1]", "config.append(size)"), 1, "FLY204", 2),
    "a factory's instance": Program(built("Config()", "config.threads", "config.threads = size"), 1, "", 2),
    "a factory's updated dict": Program(built("{'a': 32}", "config['a']", "config.update(a=size)"), 1, "FLY204", 2),
    "a local of a factory": Program(
        built("{'a': 32}", "chosen['a']", "config['a'] = size", before="chosen = config"), 1, "FLY204", 2
    ),
    "a dict between two launches": Program(
        built("{'a': 32}", "config['a']", "", change="config['a'] = 128"), 1, "FLY204", 2
    ),
    "a list between two launches": Program(built("[32]", "config[-1]", "", change="config.append(64)"), 1, "FLY204", 2),
    "a dict that stays": Program(built("{'a': 32}", "config['a']", "pass"), 1),
    "another item": Program(built("{'a': 32, 'b': 1}", "config['a']", "config['b'] = size"), 1, "FLY204"),
    "another attribute": Program(built("Config()", "config.threads", "config.warps = size"), 1),
    "a list whose first item is read": Program(built("[32]", "config[0]", "config.append(size)"), 1, "FLY204"),
    "a number of the dict": Program(built("{'a': 32}", "first", "config['a'] = size", before="first = config['a']"), 1),
    "a copy of the dict": Program(
        built("{'a': 32}", "own['a']", "config['a'] = size", before="own = dict(config)"), 1, "FLY204"
    ),
    "another dict": Program(built("{'a': 32}", "config['a']", "config = {'a': size}"), 1, "FLY204"),
    "the same again": Program(built("{'a': 32}", "config['a']", "", change="config['a'] = 32"), 1, "FLY204"),
    "a dict with tensors of two types": Program(
        built(
            "{'a': 32}",
            "config['a']",
            "config['a'] = size",
            call="launch(torch.empty(64, 64, dtype=torch.float16 if size == 64 else torch.float32))",
        ),
        2,
        "FLY204",
    ),
    "a dict with a constant": Program(
        built(
            "{'a': 32}",
            "config['a'] + 0 * n",
            "config['a'] = size",
            takes="A: fx.Tensor, n: fx.Constexpr[int]",
            call="launch(a, size)",
        ),
        2,
        "FLY204",
    ),
    "a dict of a new launcher": Program(
        built("{'a': 32}", "config['a'] + 0 * (copy or 0)", "config['a'] = size", call="build(config, copy=size)(a)"),
        2,
        "FLY204",
    ),
    "numbers": Program(CAPTURES.format("size: int", "size", "64, 128"), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("release", ["0.4.2", "0.5.0"])
def test_what_the_rules_say(name: str, release: str) -> None:
    program = PROGRAMS[name]
    files = {**BASE_FILES, "opschema.toml": f'[flydsl]\nversion = "{release}"\n', KERNELS_PATH: HEAD + program.text}
    linted = lint_files([PACK], files, ["FLY204", "FLY208", "FLY210", "FLY225"])
    assert sorted(linted.codes()) == program.codes(Version(release)), [item.message for item in linted.diagnostics]


@pytest.mark.parametrize("folder", RELEASES)
def test_flydsl_leaves_as_many_artifacts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "def from_torch_tensor(" not in (folder / "flydsl/compiler/jit_argument.py").read_text():
        pytest.skip("a FlyDSL before 0.2.2 has other keys")
    linker = tmp_path / "llvm" / "bin" / "ld.lld"
    linker.parent.mkdir(parents=True)
    linker.write_text(LINKER, encoding="utf-8")
    linker.chmod(0o755)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    found = errors(folder, [f"{HEAD}{item.text}\n\n{COUNT}" for item in PROGRAMS.values()])
    release = release_of(folder)
    assert dict(zip(PROGRAMS, found, strict=True)) == {name: item.error(release) for name, item in PROGRAMS.items()}
