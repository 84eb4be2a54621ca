"""Programs that code builds by calls of the runtime."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK
from tests.scaling import Work, check_linear

HEAD = """\
import os
from pathlib import Path
from simpler.task_interface import ArgDirection, ChipCallable, CoreCallable
from simpler_setup.kernel_compiler import KernelCompiler

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = Path(__file__).resolve().parent / "kernels"
D = ArgDirection
"""
PLAIN = """
def build(platform):
    kc = KernelCompiler(platform=platform)
    kernel = kc.compile_incore(source_path=os.path.join(HERE, "kernels/add.cpp"), core_type="aiv")
    if not platform.endswith("sim"):
        kernel = extract_text_section(kernel)
    orch = kc.compile_orchestration(runtime_name="tensormap_and_ringbuffer", source_path=str(FOLDER / "orch.cpp"))
    core = CoreCallable.build(signature=[D.IN, D.OUT], binary=kernel)
    return ChipCallable.build(signature=[D.IN, D.OUT], func_name="entry", binary=orch, children=[(0, core)])
"""
HELPERS = """
def build_one(kernel_name, func_name, signature):
    sources = (FOLDER / "other.cpp", FOLDER / kernel_name)
    kc = KernelCompiler(platform="a2a3")

    def compiled(source):
        binary = kc.compile_incore(str(source))
        return binary if SIM else extract_text_section(binary)

    children = ((0, CoreCallable.build(signature=signature, binary=compiled(sources[1]))),)
    orch = kc.compile_orchestration("tensormap_and_ringbuffer", FOLDER / "orch.cpp")
    return ChipCallable.build(signature=signature, func_name=func_name, binary=orch, children=list(children))


def build():
    return build_one("add.cpp", "entry", signature=[D.IN, D.OUT])
"""
KERNEL = """\
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    __gm__ ChipTensor *b = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    int n = static_cast<int>(args[2]);
    use(a, b, n);
}
"""
ORCHESTRATION = """\
extern "C" void entry(const ChipTaskArgs &orch_args) {
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_output(orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, p);
}
"""
MESSAGE = (
    "kernel 0 (`add`) uses `args[2]`, and this task passes 2 arguments: it reads the value that an earlier task left"
)


def found(code: str, orchestration: str = ORCHESTRATION, select: str = "PTO116") -> list[str]:
    kernels = {"work/kernels/add.cpp": KERNEL, "work/kernels/other.cpp": KERNEL.replace("args[2]", "args[1]")}
    files = {"work/main.py": code, "work/kernels/orch.cpp": orchestration, **kernels}
    return [item.message for item in lint_files([PACK], files, [select]).diagnostics]


NESTED = (
    HELPERS.replace('build_one("add.cpp", "entry",', 'build_two("entry",')
    + """

def build_two(func_name, signature):
    return build_one("add.cpp", func_name, signature)
"""
)


@pytest.mark.parametrize("code", [PLAIN, HELPERS, NESTED])
def test_a_kernel_that_reads_more_than_its_task_passes(code: str) -> None:
    assert found(HEAD + code) == [MESSAGE]


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ('"kernels/add.cpp"', "name"),
        ("(0, core)", "(number, core)"),
        ("[(0, core)]", "children"),
        ("(0, core)", "(1, core)"),
        (
            "kernel = extract_text_section(kernel)",
            'kernel = kc.compile_incore(os.path.join(HERE, "kernels/other.cpp"))',
        ),
        ("binary=orch", "binary=other"),
        ('func_name="entry"', 'func_name="other"'),
    ],
)
def test_programs_that_are_not_known(there: str, instead: str) -> None:
    assert there in PLAIN
    assert found(HEAD + PLAIN.replace(there, instead)) == []


def test_files_that_expect_errors() -> None:
    assert found(f"{HEAD}{PLAIN}\ndef test():\n    with pytest.raises(RuntimeError):\n        run(build())\n") == []


def test_a_kernel_that_may_be_added_later() -> None:
    orchestration = ORCHESTRATION.replace("(0, p)", "(3, p)")
    whole = found(HEAD + PLAIN, orchestration, "PTO108")
    changed = PLAIN.replace("children=[(0, core)]", "children=kernels").replace(
        "    return ChipCallable", "    kernels = [(0, core)]\n    kernels.append((3, core))\n    return ChipCallable"
    )
    assert (len(whole), found(HEAD + changed, orchestration, "PTO108")) == (1, [])


def test_many_names_for_one_binary() -> None:
    """A chain of names is followed only so far, in linear time."""
    chain = "".join(f"    k{n} = k{n - 1} if platform else extract_text_section(k{n - 1})\n" for n in range(1, 400))
    code = PLAIN.replace("    core = ", f"    k0 = kernel\n{chain}    core = ").replace("binary=kernel", "binary=k399")
    assert found(HEAD + code) == []


@pytest.mark.parametrize(
    "lines",
    [
        "kernels = [(0, core)]\n    register(kernels)",
        "kernels = [(0, core)]\n    also = kernels\n    also.append((3, core))",
        "kernels = [(0, core)]\n    kernels.insert(0, (3, core))",
    ],
)
@pytest.mark.parametrize("passed", ["kernels", "list(kernels)"])
def test_a_list_of_kernels_that_may_be_changed(lines: str, passed: str) -> None:
    code = PLAIN.replace("[(0, core)]", passed).replace(
        "    return ChipCallable", f"    {lines}\n    return ChipCallable"
    )
    assert found(HEAD + code, ORCHESTRATION.replace("(0, p)", "(3, p)"), "PTO108") == []
    kept = code.replace(lines, "kernels = [(0, core)]")
    assert len(found(HEAD + kept, ORCHESTRATION.replace("(0, p)", "(3, p)"), "PTO108")) == 1


def test_a_signature_that_may_be_changed() -> None:
    for fill in ("fill(sig)", "sig.append(D.OUT)"):
        code = PLAIN.replace("signature=[D.IN, D.OUT]", "signature=sig")
        code = code.replace("    core = ", f"    sig = [D.IN]\n    {fill}\n    core = ")
        assert [found(HEAD + code, select=rule) for rule in ("PTO101", "PTO102", "PTO114")] == [[], [], []]


def test_a_signature_with_a_name_is_known_to_be_passed_on() -> None:
    code = PLAIN.replace("CoreCallable.build(signature=[D.IN, D.OUT]", "CoreCallable.build(signature=sig")
    code = code.replace("    core = ", "    sig = [D.IN]\n    core = ")
    head = HEAD.replace("from simpler.", "from runtime.")
    assert len(found(head + code, select="PTO102")) == 1
    assert found(head + code.replace("    core = ", "    also = sig\n    core = "), select="PTO102") == []


def test_another_class_and_an_error_that_is_expected() -> None:
    assert found(f"{HEAD}{PLAIN}\n\nclass ChipCallable:\n    build = staticmethod(dict)\n") == []
    expects = "\ndef test():\n    try:\n        run(build('a5'))\n    except RuntimeError:\n        return\n    assert False\n"
    assert found(f"{HEAD}{PLAIN}{expects}") == []


def test_many_functions_that_build_programs_take_linear_time() -> None:
    def prepare(count: int) -> Work:
        code = HEAD + "".join(PLAIN.replace("def build(", f"def build{at}(") for at in range(count))
        return lambda: found(code)

    check_linear(prepare, 10)
