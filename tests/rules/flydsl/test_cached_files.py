"""What is found in FlyDSL files is the same with and without the cache, whatever is edited; other files are not judged again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.traced_program import TracedProgram
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.code import FlyCode
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.pack import PACK

NAMES = ("m0", "m1", "m2", "m3", "m4")

HEAD = "import torch\nimport flydsl.compiler as flyc\nimport flydsl.expr as fx\n"

PARTS = (
    "@flyc.kernel\ndef fill{own}(A: fx.Tensor, n: fx.Int32{more}):\n    if n > {number}:\n        A[0] = helper(n)\n",
    "@flyc.kernel(known_block_size=(64, 1, {number}))\ndef fill{own}(A: fx.Tensor, m: int):\n    A[0] = 1\n",
    "@flyc.jit\ndef launch{own}(A: fx.Tensor, n: fx.Int32):\n    fill{other}(A, n).launch(grid=(1,), block=(64,))\n",
    "@flyc.jit\ndef launch{own}(A: fx.Tensor, n: fx.Constexpr[int]):\n    fill{other}(A, m=n)\n",
    "def make{own}(sizes):\n    @flyc.jit\n    def launch(A: fx.Tensor):\n        fill{other}(A, sizes[0]).launch(grid=(1,))\n"
    "    return launch\n",
    "held = make{other}([{number}, 2])\nheld(torch.empty(4))\n",
    "flyc.compile(launch{other}, torch.empty(4), {number}.5)\n",
    "traced = flyc.jit(helper)\n",
    "from pkg.m{other} import helper, fill{other}, launch{other}\n",
    "from pkg.m{other} import *\n",
    "from pkg.m{other} import fill{other} as fill{own}\n",
    "def run(x):\n    launch{other}(x, None)\n    for n in (1, {number}):\n        launch{other}(torch.empty(n), n)\n",
    "def helper(n):\n    return n + {number}\n",
    "def helper(n):\n    if n > {number}:\n        return 1\n    return 0\n",
    "M = {number}\n\n\n@flyc.jit\ndef launch{own}(A: fx.Tensor):\n    fill{other}(A, 1).launch(grid=(M // 4,), block=(64,))\n\n\n"
    "torch.empty(M)\n",
    "class Op:\n    def __init__(self, size):\n        self.size = size\n\n    @flyc.jit\n    def run(self, A: fx.Tensor):\n"
    "        fill{other}(A, self.size).launch(grid=(1,))\n",
    "from pkg.m{other} import Op\nOp.size = {number}\n",
    "from pkg.m{other} import Op as Base\n\n\nclass Op(Base):\n    def resize(self):\n        self.size = {number}\n",
    "def start(op: Op, A):\n    fill{other}(A, 1).launch(grid=(1,), block=(op.size, 1, 1))\n",
    "def test_it():\n    with pytest.raises(TypeError):\n        launch{other}(None)\n",
    "# a remark\n",
    "def (\n",
)
IMPORTS = ("from pkg.m{other} import fill{other}, launch{other}, make{other}\n",) * 3


def edits(seed: int, more: tuple[str, ...] = ()) -> Iterator[tuple[str, str | None]]:
    """Paths with their new texts; None deletes a file."""
    drawn = random.Random(seed)
    while True:
        own = drawn.randrange(len(NAMES))
        parts = drawn.sample((*PARTS[:-1], *more), k=drawn.randrange(1, 7)) + (
            [PARTS[-1]] if drawn.random() < 0.02 else []
        )
        words = {"own": own, "number": drawn.randrange(1, 4), "more": drawn.choice(("", ", k: fx.Int32"))}
        text = "".join(part.format(other=drawn.randrange(len(NAMES)), **words) for part in (*IMPORTS, *parts))
        yield f"pkg/m{own}.py", None if drawn.random() < 0.05 else HEAD + text


PACKAGE = {
    "flydsl/__init__.py": ("", "# nothing\n"),
    "flydsl/compiler/__init__.py": (
        "from .jit_function import jit, kernel, compile\nfrom .jit_argument import from_dlpack, from_torch_tensor\n",
        "from .jit_function import *\nfrom .jit_argument import *\n",
        "from .jit_function import jit, kernel\nfrom .jit_argument import from_dlpack\n",
    ),
    "flydsl/compiler/jit_function.py": (
        "def jit(f): return f\ndef kernel(*a, **k): return a\ndef compile(f, *a): return f\ndef _snapshot_refs(): pass\n",
        "def jit(f): return f\ndef kernel(*a, **k): return a\ndef compile(f, *a): return f\nimport enum\nenum.Enum\n",
        "def jit(f): return f\ndef kernel(*a, **k): return a\ndef compile(f, *a): return f\ndef _artifact_cache_key(asm): pass\n",
        "kernel = 1\njit = kernel\n",
    ),
    "flydsl/compiler/ast_rewriter.py": ("def scf_for_dispatch(): pass\n", "_could_be_dynamic = 1\n"),
    "flydsl/compiler/kernel_function.py": ("# exceeds the AMDGPU default\n", ""),
    "flydsl/compiler/jit_argument.py": (
        "class T:\n    def mark_layout_dynamic(self): pass\n\ndef from_dlpack(t) -> T: return T()\n"
        "def from_torch_tensor(t) -> T: return T()\n",
        "class T:\n    def mark_static(self): pass\n\ndef from_dlpack(t) -> T: return T()\n",
    ),
    "flydsl/expr/__init__.py": (
        "from .prims import *\nfrom .typing import Tensor, Int32, Constexpr\nfrom . import rocdl\n",
        "from .prims import helper, lane_id\nfrom .typing import *\n",
        "from .typing import Tensor, Int32\n",
    ),
    "flydsl/expr/prims.py": (
        "def helper(n):\n    return n\n\ndef lane_id(): pass\n",
        "def helper(n):\n    if n > 1:\n        return 1\n    return 0\n",
        "from flydsl.compiler import jit\n\n@jit\ndef helper(n): pass\n\ndef lane_id(): pass\n",
        "from flydsl.compiler import jit\n\ndef helper(n): pass\n\nlane_id = jit(helper)\n",
        "def traced(f): return f\n\n@traced\ndef helper(n, k=1): pass\n\nN = {number}\n",
    ),
    "flydsl/expr/typing.py": (
        "class Tensor: pass\nclass Int32: pass\nclass Constexpr: pass\n",
        "class Tensor: pass\nInt32 = Tensor\nConstexpr = None\n",
    ),
    "flydsl/expr/rocdl.py": (
        "def make_buffer_tensor(tensor, max_size=True): pass\n",
        "def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None): pass\n",
        "def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):\n"
        "    hasattr(num_records_bytes, 'ir_value')\n",
    ),
}
"""Variants of the modules of FlyDSL itself."""

OWN_PARTS = (
    "@flyc.kernel\ndef over{own}(A: fx.Tensor, n: fx.Int32):\n    fx.helper(n)\n    fx.lane_id()\n"
    "    b = fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=n * 4)\n",
    "@flyc.kernel\ndef two{own}(A: fx.Tensor, n: fx.Int32):\n    for i in range(n):\n        v = fx.gone(i)\n        A[i] = v\n",
    "def wrap{own}(x):\n    t = flyc.from_dlpack(x)\n    t.mark_static(dims=[1])\n    return flyc.from_torch_tensor(x)\n",
    "@flyc.jit\ndef big{own}(A: fx.Tensor):\n    over{own}(A, 3).launch(grid=(1,), block=(512,))\n",
    "from flydsl.expr import helper as h\n\n\n@flyc.jit\ndef own{own}(n: fx.Int32):\n    h(n)\n    h(n)\n",
)


def package_edits(drawn: random.Random) -> Iterator[tuple[str, str | None]]:
    """Modules of FlyDSL itself with other texts."""
    while True:
        path = drawn.choice(list(PACKAGE))
        text = drawn.choice(PACKAGE[path]) if drawn.random() < 0.3 else PACKAGE[path][0]
        yield path, f"# flydsl\n{text.replace('{number}', str(drawn.randrange(9)))}"


def lint(folder: Path, cache: Cache | None, version: str = "0.4.2") -> tuple[list[Diagnostic], Counter[str]]:
    """The findings, and how often each rule ran."""
    registry = Registry((PACK,))
    config = Config(pack_options={"flydsl": {"version": version}})
    stamp = "one" if cache is not None else ""
    project = Project(Workspace(folder), cache, stamp=stamp)
    outcome = run(Job(registry, resolve_settings(config, registry), stamp=stamp), project)
    assert not outcome.crashed, outcome.traces
    return outcome.diagnostics, Counter({code: timing.runs for code, timing in outcome.timings.items()})


def write(folder: Path, path: str, text: str | None) -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        place.unlink(missing_ok=True)
    else:
        place.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("seed", range(3))
def test_the_same_is_found_after_any_edit(tmp_path: Path, seed: int) -> None:
    cache, drawn = Cache(tmp_path / "cache.sqlite"), edits(seed)
    folder = tmp_path / "tree"
    write(folder, "pkg/__init__.py", "")
    seen: set[str] = set()
    for _ in range(60):
        write(folder, *next(drawn))
        cold, fresh = lint(folder, cache)[0], lint(folder, None)[0]
        assert cold == fresh
        seen.update(item.code for item in fresh)
    assert len(seen) > 6, seen


@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_found_after_any_edit_of_flydsl_itself(tmp_path: Path, seed: int) -> None:
    cache, drawn = Cache(tmp_path / "cache.sqlite"), edits(seed, OWN_PARTS * 2)
    folder, own = tmp_path / "tree", random.Random(seed)
    for path, texts in PACKAGE.items():
        write(folder, f"python/{path}", texts[0])
    write(folder, "pkg/__init__.py", "")
    seen: set[str] = set()
    changes = package_edits(own)
    for _ in range(70):
        path, text = next(drawn) if own.random() < 0.4 else next(changes)
        write(folder, path if path.startswith("pkg/") else f"python/{path}", text)
        cold, fresh = lint(folder, cache, "")[0], lint(folder, None, "")[0]
        assert cold == fresh
        seen.update(item.code for item in fresh)
    assert len(seen) > 5, seen


def test_a_change_in_flydsl_itself_concerns_files_only_through_answers(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    for path, texts in PACKAGE.items():
        write(tmp_path, f"python/{path}", f"# flydsl\n{texts[0]}")
    uses = ("fx.lane_id()", "fx.helper(n)", "fx.rocdl.make_buffer_tensor(A, max_size=False)")
    for at, use in enumerate(uses):
        write(tmp_path, f"k{at}.py", f"{HEAD}\n\n@flyc.kernel\ndef fill{at}(A: fx.Tensor, n: fx.Int32):\n    {use}\n")
    files = lint(tmp_path, cache, "")[1]["FLY213"]
    prims = "python/flydsl/expr/prims.py"
    write(tmp_path, prims, "# flydsl, changed\n" + PACKAGE["flydsl/expr/prims.py"][0] + "\nMORE = 3\n")
    assert lint(tmp_path, cache, "")[1]["FLY213"] == 1 < files  # the module itself
    write(tmp_path, prims, "# flydsl\n" + PACKAGE["flydsl/expr/prims.py"][1])
    found, runs = lint(tmp_path, cache, "")
    assert runs["FLY213"] == 3  # also those that use `lane_id`, which is removed, and `helper`, which decides now
    assert found == lint(tmp_path, None, "")[0]
    assert {item.place.path for item in found if item.code == "FLY207"} == {"k0.py"}


def test_what_flydsls_own_key_misses_follows_its_file(tmp_path: Path) -> None:
    cache, package = Cache(tmp_path / "cache.sqlite"), PACKAGE["flydsl/compiler/jit_function.py"]
    folder = tmp_path / "tree"
    for path, texts in PACKAGE.items():
        write(folder, f"python/{path}", f"# flydsl\n{texts[0]}")
    build = "def build(sizes: list):\n    @flyc.jit\n    def launch(A: fx.Tensor):\n        print(sizes)\n    return launch\n"
    write(folder, "k.py", f"{HEAD}\n{build}")
    for text, codes in ((package[0], ["FLY204"]), (package[2], []), (package[0], ["FLY204"])):
        write(folder, "python/flydsl/compiler/jit_function.py", f"# flydsl\n{text}")
        found = lint(folder, cache, "")[0]
        assert [item.code for item in found if item.code == "FLY204"] == codes
        assert found == lint(folder, None, "")[0]


def test_only_files_are_judged_again_that_a_change_concerns(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    kernel = "@flyc.kernel\ndef fill{0}(A: fx.Tensor):\n    A[0] = 1\n\n\n@flyc.jit\ndef launch{0}(A: fx.Tensor):\n    fill{0}(A)\n"
    for at in range(3):
        write(tmp_path, f"pkg/m{at}.py", HEAD + kernel.format(at))
    write(tmp_path, "pkg/__init__.py", "")
    write(tmp_path, "pkg/use.py", f"{HEAD}from pkg.m1 import launch1\n\nlaunch1(torch.empty(4))\n")
    first, runs = lint(tmp_path, cache)
    assert [item.code for item in first] == ["FLY213"] * 3
    assert runs["FLY213"] == 4
    write(tmp_path, "pkg/use.py", f"{HEAD}from pkg.m1 import launch1\n\nlaunch1(None)\n")
    found, runs = lint(tmp_path, cache)
    assert [item.code for item in found] == ["FLY213"] * 3 + ["FLY218"]
    assert runs["FLY213"] == 2  # `use` and the module whose launcher it calls
    assert lint(tmp_path, cache)[1]["FLY213"] == 0
    assert lint(tmp_path, cache, "0.1.8")[1]["FLY213"] == 4  # all rests on the release


def test_the_classes_below_one_are_found_without_reading_every_file(tmp_path: Path) -> None:
    classes = {
        "pkg/__init__.py": "",
        "pkg/op.py": "class Op:\n    pass\n\n\nBase = Op\n",
        "pkg/plain.py": "from pkg.op import Op\n\n\nclass Plain(Op):\n    pass\n",
        "pkg/renamed.py": "from pkg.plain import Plain as Other\n\n\nclass Renamed(Other):\n    pass\n",
        "pkg/dotted.py": "from pkg import op\n\n\nclass Dotted(op.Base):\n    pass\n",
        "pkg/inside.py": "from pkg.op import Op\n\n\ndef made():\n    class Inner(Op):\n        pass\n\n    return Inner\n",
        "pkg/namesake.py": "class Op:\n    pass\n\n\nclass Own(Op):\n    pass\n",
        "pkg/unrelated.py": "class Unrelated(dict):\n    pass\n",
    }
    for path, text in classes.items():
        write(tmp_path, path, HEAD + text)
    code = FlyCode(Project(Workspace(tmp_path)), FlydslOptions("0.4.2"))
    bodies = code.tree_of("pkg/op.py").bodies
    assert isinstance(bodies.program, TracedProgram)
    [ref] = (ClassRef(file, file.body.classes[0]) for file in [bodies.program.load("pkg/op.py")] if file is not None)
    names = [item.name for item in bodies.family(ref)]
    assert names == ["Op", "Dotted", "Plain", "Renamed"]
    assert names == [item.name for item in Bodies(code.program, bodies.paths).family(ref)]
    assert "pkg/unrelated.py" not in bodies.program.read


@pytest.mark.parametrize("above", ["lib/__init__.py", "lib/README.md"])
def test_a_change_of_flydsls_own_package_concerns_all(tmp_path: Path, above: str) -> None:
    """Also where a package lies around it, so that its modules have other names."""
    cache = Cache(tmp_path / "cache.sqlite")
    folder = tmp_path / "tree"
    write(folder, above, "")
    write(folder, "lib/flydsl/__init__.py", "")
    write(folder, "lib/flydsl/compiler/jit_argument.py", "def from_torch_tensor(t): pass\n")
    write(folder, "lib/flydsl/compiler/__init__.py", "def kernel(f): return f\ndef jit(f): return f\n")
    write(folder, "lib/flydsl/expr/__init__.py", "def foo_thing(a): pass\ndef bar_thing(a): pass\n")
    write(folder, "k.py", f"{HEAD}\n@flyc.kernel\ndef k(a):\n    fx.foo_thing(a)\n")
    before = lint(folder, cache, "")[0]
    assert "FLY207" not in {item.code for item in before}
    write(folder, "lib/flydsl/expr/__init__.py", "def bar_thing(a): pass\n")
    after = lint(folder, cache, "")[0]
    assert "FLY207" in {item.code for item in after}
    assert after == lint(folder, None, "")[0]
