"""Extents that kernels bake in: given to them as parameters, and back."""

from __future__ import annotations

import ast
import os
import random
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.migrations.traced import run

CORPUS = Path(os.environ.get("OPSCHEMA_CORPUS", "."))
EXAMPLE = "examples/04-preshuffle_gemm.py"
OWN = (
    "__init__.py",
    "compiler/__init__.py",
    "compiler/jit_argument.py",
    "expr/__init__.py",
    "expr/rocdl/__init__.py",
    "expr/rocdl/universal.py",
)
LINES = HEAD.count("\n")

KERNEL = """\
M = 4096


@flyc.kernel
def k(A: fx.Tensor, C: fx.Tensor):
    fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * 2)


@flyc.jit
def launch(A: fx.Tensor, C: fx.Tensor, stream: fx.Stream = None):
    k(A, C).launch(grid=(M // 128, 1, 1), block=(256, 1, 1))


launch("a", "c")
"""


def files_of(text: str, **others: str) -> dict[str, str]:
    return {**example_files([("python", text)]), **{f"kit/{key}.py": other for key, other in others.items()}}


def migrate(name: str, files: dict[str, str], *options: str) -> Migrated:
    return migrate_files(PACK, name, files, options or ["names=M"])


def forward(text: str, *options: str, **others: str) -> Migrated:
    return migrate("extent-to-parameter", files_of(text, **others), *options)


def code(done: Migrated) -> str:
    return done.files[KERNELS_PATH].removeprefix(HEAD)


def there_and_back(files: dict[str, str], *options: str) -> dict[str, str]:
    """The files with the parameter; back again they are as they were, and all run alike."""
    done = migrate("extent-to-parameter", files, *options)
    assert done.notes() == []
    assert [item.status for item in done.result.sites] == ["migrated"] * len(done.result.sites) != []
    names = [item for item in options if item.startswith("names=")]
    back = migrate("parameter-to-extent", dict(done.files), *names)
    assert back.notes() == []
    assert back.files == files
    return done.files


def test_a_kernel_is_given_it() -> None:
    done = there_and_back(files_of(KERNEL))
    assert (
        done[KERNELS_PATH].removeprefix(HEAD)
        == """\
M_RUNTIME = 4096


@flyc.kernel
def k(A: fx.Tensor, C: fx.Tensor, M: fx.Int32):
    fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * 2)


@flyc.jit
def launch(A: fx.Tensor, C: fx.Tensor, M: fx.Int32, stream: fx.Stream = None):
    k(A, C, M).launch(grid=(M // 128, 1, 1), block=(256, 1, 1))


launch("a", "c", M_RUNTIME)
"""
    )
    log = [("k", {"grid": (32, 1, 1), "block": (256, 1, 1)}), ("bytes", "a", 8192)]
    assert run(files_of(KERNEL), "kit.kernels") == log
    assert run(done, "kit.kernels") == log


def test_the_constant_may_keep_its_name() -> None:
    done = forward(KERNEL, "names=M", "constant={}")
    assert code(done).startswith("M = 4096\n")
    assert code(done).endswith('launch("a", "c", M)\n')
    assert migrate("parameter-to-extent", done.files).files == files_of(KERNEL)


def _example(text: str) -> ast.Module:
    """A module without the constants that it assigns, which stand in other places; and their values."""
    tree = ast.parse(text)
    values: dict[str, object] = {}
    for node in list(tree.body):
        if isinstance(node, ast.Assign) and all(isinstance(item, ast.Constant) for item in _parts(node.value)):
            tree.body.remove(node)
            names = [item.id for item in _parts(node.targets[0]) if isinstance(item, ast.Name)]
            values |= dict(zip(names, (ast.literal_eval(item) for item in _parts(node.value)), strict=True))
    tree.body.append(ast.Expr(ast.Constant(str(sorted(values.items())))))
    return tree


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def revision(name: str) -> dict[str, str]:
    folder = CORPUS / "flydsl" / name
    if "OPSCHEMA_CORPUS" not in os.environ or not folder.is_dir():
        pytest.skip(f"OPSCHEMA_CORPUS has no flydsl/{name}")
    paths = (EXAMPLE, *(f"python/flydsl/{path}" for path in OWN))
    return {path: (folder / path).read_text(encoding="utf-8") for path in paths}


@pytest.mark.corpus
def test_as_the_human_did() -> None:
    before, human = revision("fd6ff00c"), revision("e5f41ee5")
    done = migrate("extent-to-parameter", before)
    assert ast.dump(_example(done.files[EXAMPLE])) == ast.dump(_example(human[EXAMPLE]))
    what = "has 32 bits now, and this FlyDSL wants 64: compute it from `fx.Int64(M)`"
    assert done.notes() == [f"{EXAMPLE}:30: `M * K * 2` {what}", f"{EXAMPLE}:32: `M * N * 2` {what}"]
    back = migrate("parameter-to-extent", done.files)
    assert (back.files, back.notes()) == (before, [])
    undone = migrate("parameter-to-extent", human)
    assert ast.dump(_example(undone.files[EXAMPLE])) == ast.dump(_example(before[EXAMPLE]))


@pytest.mark.parametrize(
    ("assigned", "after"),
    [
        ("M: int = 4096", "M_RUNTIME: int = 4096"),
        ("M = N = 4096", "M_RUNTIME = N = 4096"),
        ("(N, M) = (1, 4096)", "(N, M_RUNTIME) = (1, 4096)"),
        ("BM = 128\nM = 32 * BM  # rows", "BM = 128\nM_RUNTIME = 32 * BM  # rows"),
    ],
)
def test_constants(assigned: str, after: str) -> None:
    done = there_and_back(files_of(KERNEL.replace("M = 4096", assigned)))
    assert done[KERNELS_PATH].removeprefix(HEAD).startswith(after + "\n")


def test_several_in_their_order() -> None:
    text = KERNEL.replace("M = 4096", "M, N = 4096, 64").replace("* 2)", "* N * 2)")
    done = there_and_back(files_of(text), "names=N,M")
    assert "def k(A: fx.Tensor, C: fx.Tensor, M: fx.Int32, N: fx.Int32):" in done[KERNELS_PATH]
    assert 'launch("a", "c", M_RUNTIME, N_RUNTIME)' in done[KERNELS_PATH]


@pytest.mark.parametrize(
    ("signature", "call", "given"),
    [
        ("A: fx.Tensor, C: fx.Tensor, t: fx.TiledMma", 'k("a", "c", 3)', 'k("a", "c", M_RUNTIME, 3)'),
        ("A: fx.Tensor, C: fx.Tensor, t: fx.TiledMma", 'k("a", t=3, C="c")', 'k("a", t=3, C="c", M=M_RUNTIME)'),
        ("A: fx.Tensor, C: fx.Tensor, t: fx.TiledMma", 'k("a", C="c", t=3)', 'k("a", C="c", M=M_RUNTIME, t=3)'),
        ("A: fx.Tensor, *, C: fx.Tensor", 'k("a", C="c")', 'k("a", M_RUNTIME, C="c")'),
        ("*, A: fx.Tensor, C: fx.Tensor = None", 'k(C="c", A="a")', 'k(C="c", M=M_RUNTIME, A="a")'),
        ("A: fx.Tensor, /, t: fx.TiledMma = 1", 'k("a", 2)', 'k("a", M_RUNTIME, 2)'),
        ("A: fx.Tensor, *rest: fx.Tensor", 'k("a", *"cd")', 'k("a", M_RUNTIME, *"cd")'),
        ("A: fx.Tensor, **rest: fx.Tensor", 'k(**{"A": "a"})', 'k(**{"A": "a"}, M=M_RUNTIME)'),
        ("t: fx.TiledMma = 1, A: fx.Tensor = 'a'", "k()", "k(M_RUNTIME)"),
    ],
)
def test_calls(signature: str, call: str, given: str) -> None:
    text = f"""\
M = 4096


@flyc.kernel
def k({signature}):
    fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * 2)


{call}.launch(grid=(M, 1, 1))
"""
    files = files_of(text)
    done = migrate("extent-to-parameter", files)
    assert done.notes() == []
    assert f"{given}.launch(grid=(M_RUNTIME, 1, 1))\n" in code(done)
    assert run(done.files, "kit.kernels") == run(files, "kit.kernels") != []
    if "**{" not in call:
        assert migrate("parameter-to-extent", done.files).files == files


def test_several_launchers_of_one_kernel() -> None:
    text = (
        f"{KERNEL}\n\n"
        + """\
@flyc.jit
def other(A: fx.Tensor):
    def twice():
        k(A, A).launch(grid=(1, 1, 1))

    twice()


def main():
    other("x")
    k("y", "z").launch(grid=(M, 1, 1))


main()
"""
    )
    files = files_of(text)
    done = there_and_back(files)
    assert "def other(A: fx.Tensor, M: fx.Int32):\n    def twice():\n        k(A, A, M).launch" in done[KERNELS_PATH]
    assert 'other("x", M_RUNTIME)\n    k("y", "z", M_RUNTIME).launch(grid=(M_RUNTIME, 1, 1))' in done[KERNELS_PATH]
    assert run(done, "kit.kernels") == run(files, "kit.kernels")


@pytest.mark.parametrize(
    ("user", "after"),
    [
        (
            "from kit.kernels import M, launch\n\nprint(M)\nlaunch('a', 'c')\n",
            "from kit.kernels import M_RUNTIME, launch\n\nprint(M_RUNTIME)\nlaunch('a', 'c', M_RUNTIME)\n",
        ),
        (
            "from .kernels import M as rows, launch as go\n\ngo('a', 'c')\nprint(rows)\n",
            "from .kernels import M_RUNTIME as rows, launch as go\n\ngo('a', 'c', rows)\nprint(rows)\n",
        ),
        (
            "import kit.kernels as kernels\n\nkernels.launch('a', 'c')\nprint(kernels.M.bit_length())\n",
            "import kit.kernels as kernels\n\nkernels.launch('a', 'c', kernels.M_RUNTIME)\nprint(kernels.M_RUNTIME.bit_length())\n",
        ),
        (
            "from kit import kernels\n\n\ndef main(M):\n    kernels.launch(M, 'c')\n",
            "from kit import kernels\n\n\ndef main(M):\n    kernels.launch(M, 'c', kernels.M_RUNTIME)\n",
        ),
    ],
)
def test_callers_in_other_files(user: str, after: str) -> None:
    done = there_and_back(files_of(KERNEL, user=user))
    assert done["kit/user.py"] == after


BODY = "    fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * 2)\n"


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(0, M, 64):\n        pass\n",
        "    n = (M + 127) // 128 % 3\n    for i in range(n):\n        pass\n",
        "    if fx.thread_idx.x < M:\n        pass\n",
        "    tid = fx.thread_idx.x\n    row = tid * 4 + 1\n    if M - 1 > row:\n        pass\n",
        "    n: fx.Int64\n    n = fx.Int64(M) * 4\n",
        "    grid = (M // 128, 1, 1)\n    inner(A, 4).launch(grid=grid)\n",
        "    gx, gy = M // 128, 2\n    inner(A, 4).launch(grid=(gx, gy, 1))\n",
        "    def inner():\n        return fx.Int32(M)\n",
        "    inner(A, M)\n",
        "    x = [M for M in (1, 2)]\n    n = fx.Int32(M)\n",
    ],
)
def test_what_takes_numbers_of_run_time(body: str) -> None:
    inner = "@flyc.kernel\ndef inner(A: fx.Tensor, n: fx.Int32):\n    pass\n"
    text = f"M = 4096\n\n\n{inner}\n\n@flyc.kernel\ndef k(A: fx.Tensor):\n{body}"
    done = forward(text + "\n\nk(None).launch(grid=(1, 1, 1))\n")
    assert done.notes() == []
    assert body in code(done)


@pytest.mark.parametrize(
    ("body", "shown", "reason"),
    [
        ("    for i in fx.range_constexpr(M // 8):\n        pass\n", "M", "`fx.range_constexpr()` needs it"),
        ("    fx.make_layout(((16, M // 16), 4), (4, 1))\n", "M", "`fx.make_layout()` needs it"),
        ("    order = [M, 4]\n", "M", "it is an element here, and what reads it is not known"),
        ("    fx.make_layout(M, 1)\n", "M", "`fx.make_layout()` needs it"),
        ("    if fx.const_expr(M > 4):\n        pass\n", "M", "what it is compared with is known then, or may be"),
        ("    if M % 128:\n        pass\n", "M", "Python decides by it"),
        ("    n = 4 if M else 2\n", "M", "Python decides by it"),
        ("    x = [i for i in range(M)]\n", "M", "whether `range()` needs it is not known"),
        ("    n = M // 8\n    fx.range_constexpr(n)\n", "n", "`fx.range_constexpr()` needs it"),
        ("    name = f'rows{M}'\n", "M", "a string is made of it"),
        ("    n = M / 2\n", "M", "what reads it is not known"),
        ("    n = M.bit_length()\n", "M", "an attribute of it is read"),
        ("    n = A[M]\n", "M", "it is an index"),
        ("    n = min(M, 4)\n", "M", "whether `min()` needs it is not known"),
        ("    def f(n=M):\n        pass\n", "M", "a default is evaluated once"),
        ("    def f():\n        return M + 1\n", "M", "it is returned, and what reads it is not known"),
        ("    inner(A, 4, M)\n", "M", "`tile` of `inner()` is not a run-time number"),
        ("    inner(A, 4, M).launch(block=(M, 1, 1))\n", "M", "`tile` of `inner()` is not a run-time number"),
        ("    inner(A, 4, 4).launch(block=M)\n", "M", "`block=` of a launch is known only when it is compiled"),
        ("    A.n = M\n", "M", "it is not assigned to a local, and what reads it is not known"),
    ],
)
def test_what_needs_it_at_compile_time(body: str, shown: str, reason: str) -> None:
    text = (
        "M = 4096\n\n\n@flyc.kernel\ndef inner(A: fx.Tensor, n: fx.Int32, tile: fx.Constexpr[int]):\n    pass\n\n\n"
        f"@flyc.kernel\ndef k(A: fx.Tensor):\n{body}\n\nk(None).launch(grid=(1, 1, 1))\n"
    )
    done = forward(text)
    assert code(done) == text
    said = f"`{shown}` is needed at compile time: {reason}"
    assert [item.split(": ", 1)[1] for item in done.notes()] == [said, f"give `M` to `k()` by hand: elsewhere, {said}"]
    (place,) = [item.note.place for item in done.result.notes if item.note.message == said]
    assert done.files[KERNELS_PATH][place.span.start :].startswith(shown)
    assert [item.status for item in done.result.sites] == ["left"]


@pytest.mark.parametrize(
    "setting",
    [
        "kernels.M = 8192",
        'setattr(kernels, "M", 8192)',
        'def test(monkeypatch):\n    monkeypatch.setattr(kernels, "M", 8192)',
        'def test(monkeypatch):\n    monkeypatch.setattr("kit.kernels.M", 8192)',
        'import mock\n\nmock.patch("kit.kernels.M", 8192)',
        'import mock\n\nmock.patch.object(kernels, "M", 8192)',
    ],
)
def test_a_constant_that_is_set_from_outside_stays(setting: str) -> None:
    done = forward(KERNEL, use=f"import kit.kernels as kernels\n\n{setting}\n")
    assert code(done) == KERNEL
    assert done.notes()[0].endswith(f"`M` of {KERNELS_PATH} is set here")
    assert done.notes()[0].startswith("kit/use.py:")


@pytest.mark.parametrize("setting", ['setattr(other, "M", 1)', "other.M = 1", 'mock.patch("kit.others.M", 1)'])
def test_something_else_that_is_set_does_not_matter(setting: str) -> None:
    done = forward(KERNEL, use=f"import kit.kernels\nfrom kit import other\n\n{setting}\n")
    assert [item.status for item in done.result.sites] == ["migrated"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KERNEL + "\nM = 8192\n", "`M` is assigned more than once or conditionally"),
        (KERNEL.replace("M = 4096", "if x:\n    M = 4096"), "`M` is assigned more than once or conditionally"),
        (KERNEL.replace("M = 4096", "M = int(input())"), "`M` is not known to be an integer"),
        (KERNEL.replace("M = 4096", "M = True"), "`M` is not known to be an integer"),
        (KERNEL.replace("M = 4096", "M = 2**31"), "`M` has more than 32 bits"),
        (
            KERNEL.replace("M * 2)", "M * 2**20)"),
            "it is 4294967296, more than 32 bits hold: compute it from `fx.Int64(M)`",
        ),
        (KERNEL + "\n\ndef f():\n    global M\n", "M is declared global or nonlocal"),
        (
            KERNEL + "\nrun = launch\n",
            "`launch` is not called here but used as a value, so not all of its calls are known",
        ),
        (
            KERNEL.replace("@flyc.jit\ndef launch", "def launch") + "\nl2 = flyc.jit(launch)\n",
            "`launch` is not called here but used as a value, so not all of its calls are known",
        ),
        (
            KERNEL.replace("M // 128", "rows()") + "\n\ndef rows():\n    return M\n",
            "`rows()` reads it, and `launch()` runs that",
        ),
        (
            KERNEL.replace("M // 128", "BLOCKS") + "\nBLOCKS = M // 128\n",
            "`BLOCKS` is computed from `M`, and `launch()` reads it",
        ),
        (
            KERNEL.replace("M // 128", "BLOCKS") + "\nHALF = M // 2\nBLOCKS = HALF // 64\n",
            "`BLOCKS` is computed from `M`, and `launch()` reads it",
        ),
        (KERNEL.replace("stream: fx.Stream = None", "m=M"), "`launch()` reads it where it is defined"),
        (
            KERNEL.replace("@flyc.kernel", "@flyc.kernel(known_block_size=[M, 1, 1])"),
            "`k()` reads it where it is defined",
        ),
        (
            KERNEL.replace("    k(A", "    M = 4\n    k(A"),
            "`launch()` has a `M` of its own",
        ),
        (KERNEL.replace("M // 128", "M_RUNTIME") + "\nM_RUNTIME = 1\n", "`M_RUNTIME` is already a name in this module"),
        (KERNEL + "\nprint(f'{M=}')\n", "an f-string prints the name `M`"),
        (KERNEL.replace('launch("a", "c")', 'launch(*"ac")'), 'what `*"ac"` passes is not known'),
        (KERNEL + "\n\ndef f(M):\n    launch(M, M)\n", "`M` has no name here"),
        (
            KERNEL + "\n\nif x:\n    def launch(A):\n        pass\n",
            "`launch` is bound more than once, so its calls are not known",
        ),
        (
            KERNEL + "\n\nclass K:\n    @flyc.kernel\n    def k(self, A: fx.Tensor):\n        fx.Int32(M)\n",
            "`k()` is a method, so not all of its calls are known",
        ),
    ],
)
def test_what_is_left(text: str, reason: str) -> None:
    done = forward(text)
    assert code(done) == text
    assert done.result.changes == []
    assert any(item.note.message.endswith(reason) for item in done.result.notes), done.notes()
    assert [item.status for item in done.result.sites] == ["left"]


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (
            "from kernels import launch\n\nlaunch('a', 'c')\n",
            "this may be `launch()` of kit/kernels.py: its module is not found in the workspace",
        ),
        (
            "import kernels\n\nprint(kernels.M)\n",
            "this may be `M` of kit/kernels.py: its module is not found in the workspace",
        ),
        ("from kit.kernels import launch\n\nlaunch('a', 'c')\n", "`M` has no name here; import it from kit/kernels.py"),
        ("from kit.kernels import *\n\nlaunch('a', 'c')\nprint(M)\n", "`M` comes from `import *`"),
        ("def f():\n    from kit.kernels import M\n", "`M` is imported in a function or class"),
        (
            "import flydsl.compiler as flyc\nfrom kit.kernels import M\n\n\n@flyc.jit\ndef f():\n    print(M)\n",
            "`M` is read here too, which `f()` runs when it is traced",
        ),
        (
            "import flydsl.compiler as flyc\nfrom kit.kernels import k\n\n\n@flyc.jit\ndef f(A):\n    k(A, A)\n",
            "FlyDSL's `Int32` has no name here: import it",
        ),
    ],
)
def test_what_other_files_do(user: str, reason: str) -> None:
    done = forward(KERNEL, user=user)
    assert done.result.changes == []
    assert any(item.note.message.endswith(reason) for item in done.result.notes), done.notes()


@pytest.mark.parametrize(
    "user",
    [
        "from kit.kernels import M, launch\nlaunch(M M)\n",
        "from kit.user import M, launch\nlaunch('a')\nM = M\n",
        f"from kit.kernels import launch\n{'(' * 3000}launch('a', M){')' * 3000}\n",
        "class launch:\n    M = launch = k = 1\n    launch.M.k\n\nlaunch.launch.launch.M = lambda M: launch\n",
    ],
)
def test_files_that_say_nothing_are_no_obstacle(user: str) -> None:
    done = forward(KERNEL, user=user)
    assert done.notes() == []
    assert done.files["kit/user.py"] == user
    assert code(done).startswith("M_RUNTIME = 4096")


LATE = """\
@flyc.kernel
def k(A: fx.Tensor):
    fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=N * 2)
    fx.range_constexpr(M)


M = 128
N = 4096
k("a").launch(grid=(1, 1, 1))
"""


def test_one_is_left_and_one_is_not() -> None:
    done = forward(LATE, "names=M,N")
    assert "def k(A: fx.Tensor, N: fx.Int32):" in code(done)
    reason = "`M` is needed at compile time: `fx.range_constexpr()` needs it"
    assert done.notes() == [
        f"{KERNELS_PATH}:{LINES + 4}: {reason}",
        f"{KERNELS_PATH}:{LINES + 7}: give `M` to `k()` by hand: elsewhere, {reason}",
    ]
    assert [item.status for item in done.result.sites] == ["left", "migrated"]


def test_one_parameter_stays_and_one_does_not() -> None:
    other = 'ROWS = 4096\n\n\n@flyc.kernel\ndef j(A: fx.Tensor, M: fx.Int32):\n    pass\n\n\nj("a", 3)\n\n\n'
    done = migrate("parameter-to-extent", files_of(other + GIVEN.replace("ROWS = 4096\n", "")))
    assert code(done).startswith(other.replace("ROWS", "M", 1))
    assert sorted(item.status for item in done.result.sites) == ["left", "migrated"]
    assert next(item.note.message for item in done.result.notes) == "`3` is not a constant of a module"


def test_mentions_come_back() -> None:
    text = "# M is a multiple of 128\n" + KERNEL + '\nprint("M is large")\n'
    done = forward(text)
    what = "`M` is still mentioned here: the constant is `M_RUNTIME` now"
    assert done.notes() == [
        f"{KERNELS_PATH}:{LINES + 1}: {what}",
        f"{KERNELS_PATH}:{LINES + text.count(chr(10))}: {what}",
    ]


def test_names_that_no_kernel_reads() -> None:
    with pytest.raises(OpschemaError, match="no kernel reads `Q` of its own module"):
        forward(KERNEL, "names=Q")
    for option in ("constant=1{}", "constant=class", "constant="):
        with pytest.raises(OpschemaError, match="is not a Python name"):
            forward(KERNEL, "names=M", option)
    with pytest.raises(OpschemaError, match="no kernel has a number `Q` for a parameter"):
        migrate("parameter-to-extent", files_of(KERNEL), "names=Q")


GIVEN = """\
ROWS = 4096


@flyc.kernel
def k(A: fx.Tensor, M: fx.Int32):
    fx.rocdl.make_buffer_tensor(A, max_size=False, num_records_bytes=M * 2)


@flyc.jit
def launch(A: fx.Tensor, M: fx.Int32, stream: fx.Stream = None):
    k(A, M).launch(grid=(M // 128, 1, 1), block=(256, 1, 1))


launch("a", ROWS)
"""


def test_a_parameter_becomes_a_constant() -> None:
    done = migrate("parameter-to-extent", files_of(GIVEN))
    assert done.notes() == []
    assert code(done) == GIVEN.replace("ROWS", "M", 1).replace(", M: fx.Int32", "").replace("k(A, M)", "k(A)").replace(
        ", ROWS", ""
    )
    assert run(done.files, "kit.kernels") == run(files_of(GIVEN), "kit.kernels")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GIVEN.replace("ROWS)", "4096)"), "`4096` is not a constant of a module"),
        (
            GIVEN.replace('launch("a", ROWS)', 'def f():\n    rows = 4096\n    launch("a", rows)'),
            "`rows` is not a constant of a module",
        ),
        (GIVEN + 'COLUMNS = 3\nlaunch("b", COLUMNS)\n', "other calls pass `ROWS` here"),
        (GIVEN.replace("k(A, M)", "k(A, M // 2)"), "`launch()` passes something else as `M` than its own one"),
        (GIVEN.replace('launch("a", ROWS)', ""), "nothing calls `k()`, so there is no value to bake in"),
        (GIVEN.replace('launch("a", ROWS)', 'launch(*("a", ROWS))'), "what is passed here as `M` is not known"),
        (GIVEN.replace("M * 2", "M.to(fx.Int64) * 2"), "`M.to`: a constant is a plain number"),
        (GIVEN.replace("    k(A", "    M = M + 1\n    k(A"), "`launch()` writes `M`"),
        (
            GIVEN.replace("M * 2", "fx.arith.index_cast(1, M)"),
            "whether `fx.arith.index_cast()` takes a plain number is not known",
        ),
        (GIVEN.replace("M * 2", "half(M // 4)"), "whether `half()` takes a plain number is not known"),
        (GIVEN + "M = 3\n", "`M` is already a name in this module"),
        (GIVEN + "\n\ndef f(M):\n    return ROWS\n", "`M` is a local here"),
        (GIVEN.replace("M: fx.Int32, s", "M: fx.Int32 = 3, s"), "it has a default"),
        (GIVEN + "\nrun = k\n", "`k` is not called here but used as a value, so not all of its calls are known"),
        (GIVEN.replace("ROWS = 4096", "ROWS = 4096 if x else 2"), "`ROWS` is not known to be an integer"),
    ],
)
def test_parameters_that_stay(text: str, reason: str) -> None:
    done = migrate("parameter-to-extent", files_of(text))
    assert code(done) == text
    assert any(item.note.message.endswith(reason) for item in done.result.notes), done.notes()
    assert [item.status for item in done.result.sites] == ["left"]


def test_functions_of_one_name_stay() -> None:
    text = "@flyc.kernel\ndef k(A: fx.Tensor, M: fx.Int32):\n    fx.printf(A, M)\n\n\n"
    done = migrate("parameter-to-extent", files_of(text + text))
    assert [item.status for item in done.result.sites] == ["left", "left"]


def _generated(seed: int) -> str:
    """A module of kernels and launchers that read ``M``, written in many ways."""
    pick = random.Random(seed)
    end = "\n"

    def listed(items: list[str], opening: str) -> str:
        style = pick.choice(["line", "each", "each,", "hang", "pairs"]) if items else "line"
        notes = [pick.choice(["", "", "  # note"]) for _ in items]
        if style == "line":
            return f"{opening}({', '.join(items)}{pick.choice(['', ',']) if items else ''})"
        if style == "hang":
            return f"{opening}({f',{end}      '.join(items)})"
        if style == "pairs":
            lines = [", ".join(items[at : at + 2]) for at in range(0, len(items), 2)]
            return f"{opening}({end}    {f',{end}    '.join(lines)}{pick.choice(['', ','])}{end})"
        last = "," if style == "each," else ""
        commas = [","] * (len(items) - 1) + [last]
        above = [pick.choice(["", "", f"    # above{end}"]) for _ in items]
        rows = (
            f"{top}    {item}{comma}{note}{end}"
            for top, item, comma, note in zip(above, items, commas, notes, strict=True)
        )
        return f"{opening}({end}{''.join(rows)})"

    def call(name: str, tensors: list[str], rest: list[str]) -> str:
        named = pick.choice([False, False, True])
        given = [f"{item}={item!r}" if named else f"{item!r}" for item in tensors] + [f"{item}=1" for item in rest]
        return listed(given, name)

    constants = pick.choice(
        ["M = 4096", "M, N = 4096, 64", "N, M = 64, 32 * 128", "M: int = 4096  # rows", "M = (4096)"]
    )
    parts = [f"{constants}{end}BLOCK = 128{end}"]
    kernels: list[tuple[str, list[str], list[str]]] = []
    for number in range(pick.randint(1, 3)):
        tensors = [f"T{at}" for at in range(pick.randint(0, 3))]
        rest = pick.choice([[], ["stream"], ["tiled", "stream"]])
        annotated = [f"{item}: fx.Tensor" for item in tensors] + [f"{item}: fx.TiledMma" for item in rest]
        reads = pick.choice(
            ["fx.rocdl.make_buffer_tensor(0, max_size=False, num_records_bytes=M * 2)", "pass", "n = fx.Int64(M) * 2"]
        )
        parts.append(f"@flyc.kernel{end}{listed(annotated, f'def k{number}')}:{end}    {reads}{end}")
        kernels.append((f"k{number}", tensors, rest))
    for number in range(pick.randint(0, 2)):
        name, tensors, rest = pick.choice(kernels)
        optional = pick.choice([[], ["stream: fx.Stream = None"]])
        head = listed([*(f"{item}: fx.Tensor" for item in tensors), *optional], f"def launch{number}")
        body = f"    {call(name, tensors, rest)}.launch(grid=(M // BLOCK, 1, 1))"
        parts.append(f"@flyc.jit{end}{head}:{end}{body}{end}")
        parts.append(f"{call(f'launch{number}', tensors, [])}{end}")
    for name, tensors, rest in kernels:
        parts.append(f"{call(name, tensors, rest)}.launch(grid=(M // BLOCK, 1, 1), block=(BLOCK, 1, 1)){end}")
    parts.append(f"@flyc.jit{end}def reader(X: fx.Tensor):{end}    n = fx.Int64(M){end}{end}{end}reader(1){end}")
    return f"{end}{end}".join(parts)


@pytest.mark.parametrize("seed", range(60))
def test_generated_kernels_go_there_and_back(seed: int) -> None:
    text = _generated(seed)
    files = files_of(text)
    if seed % 4 == 0:
        files[KERNELS_PATH] = files[KERNELS_PATH].replace("\n", "\r\n")
    done = there_and_back(files)
    assert run(done, "kit.kernels") == run(files, "kit.kernels") != []
