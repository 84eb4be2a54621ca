"""Operators that a registration which is not understood may be for, and those that it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.main import run
from tests.rules.torchlib.operators_of import tree_of

CMAKE = """
set(ATTENTION "attention")
file(GLOB ATTENTION_SOURCES "csrc/${ATTENTION}/*.cpp")
add_library(${ATTENTION} SHARED ${ATTENTION_SOURCES})
add_library(routing SHARED csrc/routing/ops.cpp csrc/routing/kernels.cpp)
"""


def _block(namespace: str, *calls: str) -> str:
    return f"TORCH_LIBRARY_FRAGMENT({namespace}, m) {{ {' '.join(calls)} }}\n"


def _operators(start: str) -> list[str]:
    return [f'm.def("{start}_{word}(Tensor x) -> Tensor");' for word in ("first", "second")]


PYTHON = "import torch\nlib = torch.library.Library('{0}', 'DEF')\nlib.define('{0}_first(Tensor x) -> Tensor')\n"
FILES = {
    "CMakeLists.txt": CMAKE,
    "csrc/attention/ops.cpp": _block("attention", *_operators("attention")),
    "csrc/routing/ops.cpp": _block("routing", *_operators("routing")),
    "csrc/loose/ops.cpp": _block("loose", *_operators("loose")),
    "kit/__init__.py": "",
    "kit/ops.py": PYTHON.format("kit"),
    "other/pyproject.toml": "",
    "other/kit/ops.py": PYTHON.format("other"),
}
UNKNOWN = "TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {{ {} }}"
LOOP = "import torch\nfor name in load():\n    {}\n"


@pytest.mark.parametrize(
    ("path", "text", "unknown"),
    [
        ("csrc/routing/kernels.cpp", UNKNOWN.format('m.impl("routing_first", &f);'), "routing_first"),
        ("csrc/routing/kernels.cpp", UNKNOWN.format("m.impl(name, &f);"), "kit_first routing_first routing_second"),
        (
            "csrc/routing/kernels.cpp",
            UNKNOWN.format("m.impl(name(loose_first), &f);"),
            "kit_first loose_first routing_first routing_second",
        ),
        ("csrc/loose/kernels.cpp", UNKNOWN.format("m.impl(name, &f);"), "kit_first loose_first loose_second"),
        ("csrc/routing/kernels.cpp", "void add(torch::Library& m) { m.impl(\"loose_first\", &f); }", "loose_first"),
        ("csrc/routing/kernels.cpp", "TORCH_LIBRARY_IMPL(loose, CUDA, m) { m.impl(name, &f); }", "loose_first loose_second"),
        ("kit/more.py", LOOP.format("torch.library.register_fake(f'attention::{name}', f)"), "attention_first attention_second"),
        ("kit/more.py", LOOP.format("torch.library.register_fake(f'kit::kit_second_{name}', f)"), ""),
        ("kit/more.py", LOOP.format("torch.library.Library(name, 'IMPL').impl('routing_first', f)"), "routing_first"),
        ("kit/more.py", LOOP.format("torch.library.define(name, '(Tensor x) -> Tensor')"), ""),
        ("kit/more.py", LOOP.format("torch.library.impl(name, 'routing_first', 'XLA')(f)"), "routing_first"),
        ("kit/more.py", "import torch, elsewhere\ntorch.library.impl(elsewhere.LIB, 'routing_first', 'XLA')(f)", "routing_first"),
        ("other/kit/more.py", "import torch, elsewhere\ntorch.library.impl(elsewhere.NAME, 'cpu', f)", "other_first"),
        ("other/kit/more.py", LOOP.format("torch.library.register_fake(name, f)"), "other_first"),
        ("other/kit/more.py", LOOP.format("torch.library.register_fake(names['kit_first'], f)"), "kit_first other_first"),
    ],
)  # fmt: skip
def test_a_gap_weakens_the_operators_that_it_may_be_for(path: str, text: str, unknown: str) -> None:
    tree = tree_of({**FILES, path: text})
    found = {name.partition("::")[2] for item in tree.operators if not item.complete for name in item.names or ()}
    assert " ".join(sorted(found)) == unknown
    assert tree.unresolved


@pytest.mark.parametrize(
    ("gap", "stays"),
    [
        ("torch.library.define(name, '(Tensor x) -> Tensor')", False),
        ("torch.library.define(f'kit::{name}', '(Tensor x) -> Tensor')", False),
        ("torch.library.define(f'kit::unlike_{name}', '(Tensor x) -> Tensor')", True),
        ("torch.library.custom_op(name, f, mutates_args=())", False),
        ("torch.library.register_fake(name, f)", True),
    ],
)
def test_what_may_define_an_operator_hides_that_nothing_does(gap: str, stays: bool) -> None:
    code = "def f(x: torch.Tensor) -> torch.Tensor: ...\ntorch.library.register_fake('kit::missing', f)\n"
    tree = tree_of({"ops.py": f"{PYTHON.format('kit')}{code}", "more.py": LOOP.format(gap) + "def f(x): ...\n"})
    assert [item.name for item in tree.strays] == ["kit::missing"] * stays


def test_a_build_file_is_an_input_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.chdir(root)
    block = 'TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m) { m.def("first(Tensor x) -> Tensor"); }'
    (root / "ops.cpp").write_text(block)
    (root / "fakes.py").write_text("import torch\ntorch.library.register_fake('kit::first', lambda x, y: x)\n")

    def found(build: str) -> tuple[int, int]:
        (root / "CMakeLists.txt").write_text(f"define_gpu_extension_target({build} SOURCES ops.cpp)")
        code = run(["lint"])
        return code, capsys.readouterr().out.count("REG201")

    assert [found(build) for build in ("other", "kit", "kit", "other")] == [(0, 0), (1, 1), (1, 1), (0, 0)]


def test_a_build_function_that_is_not_defined() -> None:
    block = 'TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m) { m.impl("first", &f); }'
    files = {"csrc/ops.cpp": block, "CMakeLists.txt": "company_extension(_C csrc/ops.cpp)"}
    reasons = {reason for _, reason in tree_of(files).unresolved}
    assert (
        "its namespace is not known: it is built by `company_extension()` in CMakeLists.txt, which no file here defines"
        in reasons
    )
    files["company.cmake"] = (
        "function(company_extension name)\nadd_library(${name} ${ARGN})\n"
        "target_compile_definitions(${name} PRIVATE TORCH_EXTENSION_NAME=${name})\nendfunction()"
    )
    assert not tree_of(files).unresolved
