"""Scalars that are passed as one type and read as another."""

from __future__ import annotations

import re

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK
from opschema_rules.pypto.scalar_reads import scalar_reads
from tests.scaling import Work, check_linear

PATH = "program/kernels/aiv/add.cpp"
FLOAT = "float x = from_u64<float>(static_cast<uint64_t>(args[2]));"
CONVERTED = "float x = static_cast<float>(args[2]);"
INTEGER = "const int32_t x = static_cast<int32_t>(args[2]);\nuse(4 * x);"
RAW = "uint64_t x = static_cast<uint64_t>(args[2]);"
TEST = """\
import ctypes
import torch
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestAdd(SceneTestCase):
    CALLABLE = {{
        "orchestration": {{
            "source": "orchestration/main.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.OUT],
        }},
        "incores": [{{"func_id": 0, "source": "kernels/aiv/add.cpp", "core_type": "aiv"}}],
    }}
    CASES = [{{"name": "one", "params": {{"n": 3}}}}, {{"name": "two", "params": {{"n": 4}}}}]

    def generate_args(self, params):
        n = int(params["n"])
        return TaskArgsBuilder(TensorArg("a", torch.ones(8)), TensorArg("c", torch.ones(8)), Scalar("n", {scalar}))
"""


def kernel(read: str, before: str = "") -> str:
    head = 'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {'
    tensors = "use(reinterpret_cast<__gm__ ChipTensor *>(args[0]), reinterpret_cast<__gm__ ChipTensor *>(args[1]));"
    return f"{before}\n{head}\n{tensors}\n{read}\nuse(x);\n}}\n"


def body(scalar: str, before: str = "") -> str:
    lines = ["CoreTaskArgs p;", "p.add_input(orch_args.tensor(0).ref());", "p.add_output(orch_args.tensor(1).ref());"]
    return "\n".join([before, *lines, f"p.add_scalar({scalar});", "rt_submit_aiv_task(0, p);"])


def found(scalar: str, read: str, before: str = "", above: str = "") -> list[str]:
    files = {**PACK.example([("cpp", body(scalar, before))]), PATH: kernel(read, above)}
    return [item.message for item in lint_files([PACK], files, ["PTO135"]).diagnostics]


def in_test(
    scalar: str, orchestration: str, read: str = RAW, head: str = "", text: str = TEST
) -> list[tuple[str, str]]:
    source = f'{head}extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {{\n{orchestration}\n}}\n'
    files = {
        "program/test_add.py": text.format(scalar=scalar),
        "program/orchestration/main.cpp": source,
        PATH: kernel(read),
    }
    linted = lint_files([PACK], files, ["PTO135"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


WHAT = "`args[2]` of kernel 0 (`add`) is "
END = ": it gets another number"


@pytest.mark.parametrize(
    ("scalar", "read", "message"),
    [
        ("1.0", FLOAT, "a `double`, and the kernel takes its bits for a `float`"),
        ("2", FLOAT, "an integer, and the kernel takes its bits for a `float`"),
        ("1.5f", INTEGER, "a `float`, and the kernel takes it for an integer"),
        ("scale", INTEGER, "a `float`, and the kernel takes it for an integer"),
        ("-1e-3f", CONVERTED, "a `float`, and the kernel converts it like an integer"),
        ("from_u64<float>(orch_args.scalar(0))", CONVERTED, "a `float`, and the kernel converts it like an integer"),
        ("scale", "float x = args[2];", "a `float`, and the kernel converts it like an integer"),
    ],
)
def test_types_that_differ(scalar: str, read: str, message: str) -> None:
    assert found(scalar, read, "float scale = 0.5f;") == [f"{WHAT}{message}{END}"]


def test_a_constant_of_the_file() -> None:
    files = {**PACK.example([("cpp", body("N"))]), PATH: kernel(FLOAT)}
    files["program/orchestration/main.cpp"] = "constexpr int N = 16;\n" + files["program/orchestration/main.cpp"]
    (item,) = lint_files([PACK], files, ["PTO135"]).diagnostics
    assert item.message == f"{WHAT}an integer, and the kernel takes its bits for a `float`{END}"


@pytest.mark.parametrize(
    ("scalar", "read"),
    [
        ("1.0f", FLOAT),
        ("3", INTEGER),
        ("3", CONVERTED),
        ("0", FLOAT),
        ("0.0f", INTEGER),
        ("0x3f800000", FLOAT),
        ("0.5f", RAW),
        ("to_u64(0.5f)", FLOAT),
        ("static_cast<int32_t>(0.5f)", CONVERTED),
        ("0.5f", f"if (mode) {{ {CONVERTED} }}"),
        ("0.5f", f"if (done) return;\n{CONVERTED}"),
        ("0.5f", f"// {CONVERTED}\n{FLOAT}"),
        ("0.5f", "float x = static_cast<float>(args[2] >> 32);"),
        ("0.5f", f"{INTEGER}\nfloat y = *reinterpret_cast<const float *>(&x);"),
        ("0.5f", f"{INTEGER}\nfloat y = from_u64<float>(x);"),
        ("0.5f", f"{FLOAT}\nint y = static_cast<int>(args[2]);"),
        ("0.5f", "union { uint32_t u; float f; } x;\nx.u = static_cast<uint32_t>(args[2]);"),
    ],
)
def test_types_that_agree_or_are_not_known(scalar: str, read: str) -> None:
    assert found(scalar, read) == []


@pytest.mark.parametrize(
    "read",
    [
        "uint32_t x = static_cast<uint32_t>(args[2]);\nuse(x * 2, reinterpret_cast<float &>(x));",
        "uint32_t x = static_cast<uint32_t>(args[2]);\nuse(x * 2, (float &)x);",
        "const int32_t x = static_cast<int32_t>(args[2]);\nfloat y = bits_to_float(x);",
        "uint32_t x = static_cast<uint32_t>(args[2]);\nout[0] = x;",
        "int32_t x = static_cast<int32_t>(args[2]);\nbool negative = x < 0;",
        "uint32_t x = static_cast<uint32_t>(args[2]);\nint exponent = (x >> 23) & 0xff;",
    ],
)
def test_bits_of_a_float_in_an_integer(read: str) -> None:
    assert found("0.5f", read) == []


@pytest.mark.parametrize(
    "read",
    [
        f"#if 0\n{FLOAT}\n#endif\nint x = 1;",
        f"#ifdef LEGACY\n{FLOAT}\n#endif\nint x = 1;",
        "float x = 1.0f;\nif (args[3]) x = from_u64<float>(args[2]);",
        "float x = 1.0f;\nif (args[3]) x = 2.0f; else x = from_u64<float>(args[2]);",
        "float x = args[3] ? from_u64<float>(args[2]) : 0.0f;",
        "bool x = args[3] && from_u64<float>(args[2]) > 0;",
        "float x = 0;\nfor (int i = 0; i < args[3]; i++) x += from_u64<float>(args[2]);",
        "float x = 0;\nif (args[3]) goto done;\nx = from_u64<float>(args[2]);\ndone:\nx++;",
        "float x = 0;\nswitch (args[3]) case 1: x = from_u64<float>(args[2]);",
        "float x = fixed::from_u64<float>(args[2]);",
        "WHEN_SCALED(float x = from_u64<float>(args[2]));",
    ],
)
def test_a_float_that_may_not_be_read(read: str) -> None:
    assert found("2", read, above="#define WHEN_SCALED(code)") == []


def test_a_function_of_the_kernel_that_converts() -> None:
    own = "template <typename T> __aicore__ T from_u64(uint64_t v) { return static_cast<T>(v); }"
    assert found("2", FLOAT, above=own) == []


def test_arguments_of_another_function_or_under_another_name() -> None:
    other = "\nstatic __aicore__ void other(__gm__ float *args) { float y = args[2]; }\n"
    renamed = kernel("__gm__ float *args = reinterpret_cast<__gm__ float *>(raw[1]);\nfloat x = args[2];")
    for text in (kernel("int x = 0;") + other, renamed.replace("int64_t *args", "int64_t *raw")):
        files = {**PACK.example([("cpp", body("0.5f"))]), PATH: text}
        assert lint_files([PACK], files, ["PTO135"]).codes() == []


@pytest.mark.parametrize(
    ("scalar", "before", "read"),
    [
        ("zero", "float zero = 0.0f;", INTEGER),
        ("zero", "float zero{};", INTEGER),
        ("static_cast<float>(0)", "", INTEGER),
        ("(float)0", "", INTEGER),
        ("h", "float *h = buffer;", INTEGER),
        ("h", "float h[4];", INTEGER),
        ("x", "#ifdef EXACT\nfloat x = 0.5f;\n#else\nint x = 3;\n#endif", INTEGER),
    ],
)
def test_zeros_pointers_and_conditions(scalar: str, before: str, read: str) -> None:
    assert found(scalar, read, before) == []


@pytest.mark.parametrize(
    "constant",
    [
        "constexpr float N = 2;",
        "static const double N = 2;",
        "namespace { constexpr float N = 2; }",
        "using Real = float;\nconstexpr Real N = 2;",
        "#ifdef FAST\n#define N 2\n#else\n#define N 0.5f\n#endif",
    ],
)
def test_a_constant_that_is_a_real_number(constant: str) -> None:
    files = {**PACK.example([("cpp", body("N"))]), PATH: kernel(FLOAT)}
    files["program/orchestration/main.cpp"] = f"{constant}\n{files['program/orchestration/main.cpp']}"
    assert lint_files([PACK], files, ["PTO135"]).codes() == []


def test_a_runtime_that_converts_scalars_to_integers() -> None:
    header = "struct Arg {\n    void add_scalar(uint64_t v) { scalars[n++] = v; }\n};\n"
    files = {**PACK.example([("cpp", body("2.5"))]), PATH: kernel(INTEGER), "src/runtime/pto_types.h": header}
    assert lint_files([PACK], files, ["PTO135"]).codes() == []


def test_bits_that_a_helper_of_the_kernel_takes_for_a_float() -> None:
    helper = "__aicore__ float bits(uint32_t v) { union { uint32_t u; float f; } c; c.u = v; return c.f; }"
    assert found("0.5f", INTEGER, above=helper) == []


def test_a_variable_of_another_block_has_another_type() -> None:
    assert found("x", INTEGER, before="{ float x = 0.5f; use(x); }\nint x = 3;") == []


def test_alternatives() -> None:
    files = {**PACK.example([("cpp", body("0.5f").replace("p.add_scalar(0.5f);", EITHER))]), PATH: kernel(INTEGER)}
    assert lint_files([PACK], files, ["PTO135"]).codes() == []


EITHER = "if (orch_args.scalar(1)) {\np.add_scalar(0.5f);\n} else {\np.add_scalar(1);\n}"


NUMBER = "int32_t n = static_cast<int32_t>(orch_args.scalar(0));\nfor (int i = 0; i < n; i++) {}"


def test_a_test_passes_what_the_orchestration_does_not_read() -> None:
    message = "scalar `n` is a `float`, and the orchestration takes it for an integer"
    assert in_test("ctypes.c_float(n)", f"{NUMBER}\n{body('7')}") == [('Scalar("n", ctypes.c_float(n))', message + END)]
    real = "float n = from_u64<float>(orch_args.scalar(0));"
    message = "scalar `n` is an integer, and the orchestration takes its bits for a `float`"
    for scalar in ("ctypes.c_int64(n)", "3", 'ctypes.c_int32(params["n"])'):
        assert in_test(scalar, f"{real}\n{body('7')}") == [(f'Scalar("n", {scalar})', message + END)]


def test_a_scalar_that_the_orchestration_passes_on() -> None:
    message = "scalar `n` is a `float`, and kernel 0 (`add`) takes it for an integer"
    for scalar, before in (("orch_args.scalar(0)", ""), ("n", "uint64_t n = orch_args.scalar(0);")):
        assert in_test("0.5", body(scalar, before), INTEGER) == [('Scalar("n", 0.5)', message + END)]
        assert in_test("0.5", body(scalar, before), FLOAT) == []


@pytest.mark.parametrize(
    ("scalar", "orchestration", "read"),
    [
        ("ctypes.c_float(0)", f"{NUMBER}\n{body('7')}", RAW),
        ("ctypes.c_int64(n)", f"{NUMBER}\n{body('7')}", RAW),
        ("ctypes.c_float(n)", f"{NUMBER}\n{body('n')}", FLOAT),
        ("ctypes.c_int32(bits_of(0.5))", f"float n = from_u64<float>(orch_args.scalar(0));\n{body('7')}", RAW),
        ("ctypes.c_float(n)", body("n", "uint64_t n = orch_args.scalar(0);\nn = n + 1;"), INTEGER),
        ("ctypes.c_float(n)", body("static_cast<uint8_t>(orch_args.scalar(0))"), INTEGER),
        ("ctypes.c_float(n)", f"if (orch_args.scalar(1) == 0) {{ {NUMBER} use(n); }}\n{body('7')}", RAW),
    ],
)
def test_scalars_of_a_test_that_may_be_right(scalar: str, orchestration: str, read: str) -> None:
    assert in_test(scalar, orchestration, read) == []


@pytest.mark.parametrize(
    ("scalar", "before", "after", "read"),
    [
        ("3", "float n = orch_args.scalar(0);", "n", FLOAT),
        ("0.5", "bool n = orch_args.scalar(0);", "n", INTEGER),
        ("0.5", "uint8_t n = orch_args.scalar(0);", "n", INTEGER),
        ("3", "float n;\nn = orch_args.scalar(0);", "n", FLOAT),
        ("3", "uint64_t n = orch_args.scalar(0);", "(float)n", FLOAT),
        ("0.5", "uint64_t n = orch_args.scalar(0);", "(bool)n", INTEGER),
        ("3", "uint64_t n = orch_args.scalar(0);", "converted(n)", FLOAT),
        ("3", "auto n = converted(orch_args.scalar(0));", "n", FLOAT),
        ("3", "auto n = cast(orch_args.scalar(0));", "n", FLOAT),
    ],
)
def test_a_scalar_that_the_orchestration_converts(scalar: str, before: str, after: str, read: str) -> None:
    head = "static float converted(uint64_t v) { return v; }\nstatic float cast(float v) { return v; }\n"
    assert in_test(scalar, body(after, before), read, head) == []
    inner = f"static void add(const ChipTaskArgs &orch_args, float n) {{\n{body('n')}\n}}\n"
    assert in_test("3", "add(orch_args, orch_args.scalar(0));", FLOAT, inner) == []


@pytest.mark.parametrize(
    "before",
    ['params["n"] = bits(0.5)', "params.update(n=bits(0.5))", "params = bits(params)", "encode(params)"],
)
def test_a_case_that_a_test_changes(before: str) -> None:
    text = TEST.replace("n = int(", f"{before}\n        n = int(")
    assert in_test("ctypes.c_int32(n)", f"{REAL}\n{body('7')}", text=text) == []


@pytest.mark.parametrize(
    ("scalar", "old", "new"),
    [
        ("ctypes.c_float(z)", "n = int(", "z = 0.0\n        n = int("),
        ('ctypes.c_float(params["z"])', '"params": {{', '"params": {{"z": 0.0, '),
        ("ctypes.c_float(n)", "import ctypes\n", "from helpers import ctypes\n"),
    ],
)
def test_floats_that_are_zero_or_no_floats(scalar: str, old: str, new: str) -> None:
    assert in_test(scalar, f"{NUMBER}\n{body('7')}", text=TEST.replace(old, new)) == []


def test_a_scalar_that_may_not_be_read() -> None:
    for read in (f"#ifdef OLD\n{NUMBER}\n#endif", "int n = 0;\nif (orch_args.scalar(1)) n = orch_args.scalar(0);"):
        assert in_test("ctypes.c_float(n)", f"{read}\n{body('7')}") == []
    own = f"def int(value):\n    return 0x3f800000\n\n\n{TEST}"
    assert in_test("ctypes.c_int32(n)", f"{REAL}\n{body('7')}", text=own) == []


REAL = "float n = from_u64<float>(orch_args.scalar(0));"


def test_reading_many_scalars_takes_linear_time() -> None:
    def prepare(count: int) -> Work:
        reads = "".join(
            f"int32_t v{n} = static_cast<int32_t>(args[{n}]);\nuse(v{n} * 2, &w{n});\n" for n in range(count)
        )
        text = f"void kernel_entry(int64_t *args) {{\n{reads}}}\n"
        argument = re.compile(r"args\[(\d+)\]")
        assert len(scalar_reads(text, 0, argument)) == count
        return lambda: scalar_reads(text, 0, argument)

    check_linear(prepare, 200)
