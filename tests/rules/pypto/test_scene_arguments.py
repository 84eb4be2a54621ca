"""The arguments that scene tests pass, against what their orchestrations take."""

from __future__ import annotations

import time

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK

PATH, SOURCE = "program/test_add.py", "program/orchestration/main.cpp"
EXECUTOR = "src/a5/runtime/tensormap_and_ringbuffer/aicpu/aicpu_executor.cpp"
COMPARES = {EXECUTOR: "if (actual_arg_count < cfg.expected_arg_count) { fail(); } // ORCH_ENTRY_SYMBOL\n"}
HEAD = """\
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
{before}

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestAdd(SceneTestCase):
    CALLABLE = {{
        "orchestration": {{
            "source": "orchestration/main.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.IN, D.OUT],
        }},
        "incores": [{{"func_id": 0, "source": "kernels/aiv/add.cpp", "core_type": "aiv"}}],
    }}
    CASES = [{{"name": "small"}}]

    def generate_args(self, params):
        {makes}

    def compute_golden(self, args, params):
        {golden}
"""
A, B, C, N = ('TensorArg("a", x)', 'TensorArg("b", x)', 'TensorArg("c", x)', 'Scalar("n", 3)')
WRITTEN = 'CASES = [{"name": "small"}]'
RIGHT = f"return TaskArgsBuilder({A}, {B}, {C}, {N})"
BODY = "const ChipTensor &c = orch_args.tensor(2).ref();\nint n = static_cast<int>(orch_args.scalar(0));"
CONFIG = """\
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &orch_args) {
    return PTO2OrchestrationConfig{%s};
}
"""


def found(
    makes: str = RIGHT,
    golden: str = "args.c[:] = args.a + args.b * args.n",
    *,
    body: str = BODY,
    expected: str = ".expected_arg_count = 4",
    before: str = "",
    runtime: dict[str, str] = COMPARES,
    change: tuple[str, str] = ("", ""),
) -> list[tuple[str, str]]:
    text = HEAD.format(makes=makes, golden=golden, before=before).replace(*change)
    config, entry = CONFIG % expected, f"void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {{\n{body}\n}}\n"
    files = {PATH: text, SOURCE: f'extern "C" {{\n{config}{entry}}}\n', "program/kernels/aiv/add.cpp": "", **runtime}
    linted = lint_files([PACK], files, ["PTO126"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def builder(*arguments: str) -> str:
    return f"return TaskArgsBuilder({', '.join(arguments)})"


def test_a_tensor_without_an_entry() -> None:
    message = "`generate_args()` passes 4 tensors, and the orchestration's `signature` has 3 entries: `c` is rejected"
    assert found(builder(A, 'TensorArg("bias", x)', B, C, N)) == [(C, message)]


def test_a_test_with_its_own_comparison_and_a_local_function() -> None:
    made = builder(A, B, C, "TensorArg('d', zeros())", N)
    compares = "    def compare_outputs(self, *args):\n        show(args)\n\n    def compute_golden"
    makes, change = (
        f"def zeros():\n            return torch.zeros(8)\n\n        {made}",
        ("    def compute_golden", compares),
    )
    assert [place for place, _ in found(makes, change=change)] == ["TensorArg('d', zeros())"]


@pytest.mark.parametrize(
    "before", ["def TensorArg(*args):", "def z():\n            raise ValueError", "def z(n):\n            yield n"]
)
def test_a_local_function_that_may_matter(before: str) -> None:
    made = builder(A, B, C, "TensorArg('d', x)", N)
    makes = f"{before}\n            return make()\n\n        {made}"
    assert found(makes) == []


@pytest.mark.parametrize(
    "change",
    [
        ("    def compute_golden", "    SKIP_GOLDEN = True\n\n    def compute_golden"),
        (WRITTEN, "CASES = [{'name': 'a', 'skip_golden': True}]"),
        (WRITTEN, "CASES = cases()"),
        (WRITTEN, "CASES = [case for case in ALL]"),
        (WRITTEN, "CASES = [{'name': 'a', **COMMON}]"),
    ],
)
def test_a_golden_function_that_is_not_called(change: tuple[str, str]) -> None:
    assert found(golden="args.c[:] = args.bb", change=change) == []


def test_a_signature_that_other_code_may_change() -> None:
    makes, change = builder(A, B, C, 'TensorArg("d", x)', N), ('"signature": [D.IN, D.IN, D.OUT]', '"signature": SIG')
    assert found(makes, before="SIG = [D.IN, D.IN, D.OUT]\nextend(SIG)\n", change=change) == []


def test_arguments_that_are_not_passed() -> None:
    few = "`generate_args()` passes {} arguments, and `expected_arg_count` is 4: the run fails"
    tensor = "`generate_args()` passes 2 tensors, and the orchestration takes tensor 2"
    assert found(builder(A, B, N), "pass") == [("TaskArgsBuilder", tensor), ("TaskArgsBuilder", few.format(3))]
    scalar = "`generate_args()` passes 0 scalars, and the orchestration takes scalar 0"
    assert found(builder(A, B, C), "pass") == [("TaskArgsBuilder", scalar), ("TaskArgsBuilder", few.format(3))]
    assert found(builder(A, B, C), "pass", runtime={}) == [("TaskArgsBuilder", scalar)]


def test_a_golden_function_that_reads_what_is_not_passed() -> None:
    message = "`generate_args()` passes no argument `bb`; did you mean `b`?"
    assert found(golden="args.c[:] = args.a + args.bb") == [("args.bb", message)]
    marked = ("@scene_test", "@pytest.mark.device_count(1)\n@scene_test")
    assert found(golden="args.c[:] = args.a + args.bb", change=marked) == [("args.bb", message)]


@pytest.mark.parametrize(
    "golden",
    [
        "args.c[:] = args.clone().a + len(args.specs) + len(args.tensor_names())",
        "args.c[:] = len(args.specs)",
        "names = args.tensor_names\n        args.c[:] = args.clone",
        "args.c[:] = getattr(args, 'd')",
        "args.d = args.a\n        args.c[:] = args.d",
        "args = make(args)\n        args.d[:] = 1",
        "self.run = lambda args: args.d",
        "args.c[:] = sum(args.d for args in params)",
        "for args in params:\n            use(args.d)",
        "for i, args in enumerate(params): use(args.d)",
        "with make() as args:\n            use(args.d)",
        "i, args = params\n        use(args.d)",
        "args, i = params\n        use(args.d)",
        "args: Any = params\n        use(args.d)",
        "use(args := params, args.d)",
        "if hasattr(args, 'd'):\n            use(args.d)",
        "if params['bias']:\n            use(args.d)",
        "use(args.d if params['bias'] else args.a)",
        "try:\n            use(args.d)\n        except AttributeError:\n            pass",
        "def inner(args):\n            return args.d",
        "args.c[:] = args._data['a']",
        "args._data['d'] = 3\n        use(args.d)",
        "vars(args)['d'] = 3\n        use(args.d)",
        "object.__setattr__(args, 'd', 3)\n        use(args.d)",
        "args.d, e = 1, 2\n        use(args.d)",
        "(e, args.d) = 1, 2\n        use(args.d)",
        "(\n            args.d,\n            e,\n        ) = 1, 2\n        use(args.d)",
        "args.d: int = 1\n        use(args.d)",
        "extend(args)\n        use(args.d)",
        "with suppress(AttributeError):\n            use(args.d)",
        "if not params: return\n        use(args.d)",
        "return\n        use(args.d)",
        "while params.get('d'):\n            use(args.d)",
        "match params:\n            case 1: use(args.d)",
    ],
)
def test_golden_functions_that_read_what_there_is(golden: str) -> None:
    assert found(golden=golden) == []


@pytest.mark.parametrize(
    "makes",
    [
        RIGHT,
        "specs = [1]\n        return TaskArgsBuilder(*specs)",
        f"made = TaskArgsBuilder({A})\n        return made",
        f"made = TaskArgsBuilder({A})\n        made.add_tensor('b', x)\n        return made",
        f"if params['x']:\n            return TaskArgsBuilder({A})\n        {RIGHT}",
        builder(A, "tensor('b')"),
        builder(A, "TensorArg(name, x)"),
        f"return other.TaskArgsBuilder({A})",
        f"return build(TaskArgsBuilder({A}))",
    ],
)
def test_arguments_that_are_right_or_not_known(makes: str) -> None:
    assert found(makes) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("const ChipTensor &t = orch_args.tensor(2).ref();\nif (x) { uint64_t x = orch_args.scalar(3); }", ""),
        ("for (int i = 0; i < n; i++) { uint64_t x = orch_args.scalar(3); }", ""),
        ("if (orch_args.scalar(0) == 1) { return; }\nuint64_t x = orch_args.scalar(3);", ""),
        ("if (orch_args.scalar_count() < 4) { return; }\nuint64_t x = orch_args.scalar(3);", ""),
        ("int last = orch_args.scalar_count() - 1;\nuint64_t x = orch_args.scalar(3);", ".expected_arg_count = 9"),
        ("use(orch_args.scalar(at));", ".expected_arg_count = 3"),
        ("#ifdef WITH_BIAS\nuint64_t x = orch_args.scalar(3);\n#endif", ""),
        ('LOG_INFO("%d", orch_args.scalar(3));', ""),
        ("assert(orch_args.scalar(3));\nTRACE(orch_args.scalar(4));", ""),
        ("x ? use(orch_args.scalar(3)) : use(1);\ny && uint64_t x = orch_args.scalar(4);", ""),
        ("auto late = [&]() { uint64_t x = orch_args.scalar(3); };", ""),
        ("if (x) goto end;\nuint64_t x = orch_args.scalar(3);\nend:\nuse(1);", ""),
        ("trace(orch_args.scalar(3));\nopt(0, orch_args.scalar(3));", ""),
        ("when(x) uint64_t y = orch_args.scalar(3);", ""),
        ("IF_BIAS use(orch_args.scalar(3));", ""),
        ("WHEN(x) { uint64_t y = orch_args.scalar(3); }", ""),
        ("RETURN_IF(x);\nuint64_t y = orch_args.scalar(3);", ""),
        ("std::abort();\nuint64_t y = orch_args.scalar(3);", ""),
        ("try { check(); uint64_t y = orch_args.scalar(3); } catch (...) { }", ""),
        ("const_cast<ChipTaskArgs &>(orch_args).add_scalar(3);\nuint64_t y = orch_args.scalar(3);", ""),
        ("uint64_t y = orch_args.scalar(K);", ""),
        ("", ".expected_arg_count = 0"),
        ("", ".expected_arg_count = 9 - 5"),
        ("", ".expected_arg_count = COUNT"),
        ("", ".expected_arg_count = x ? 9 : 4"),
        ("const ChipTensor &t = orch_args.tensor(3).ref();", ""),
    ],
)
def test_an_orchestration_that_may_take_what_is_passed(body: str, expected: str) -> None:
    assert found(body=body, expected=expected) == []


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("", ("level=2", "level=3")),
        ("", ("level=2, ", "")),
        ("", ("(SceneTestCase):", "(Base):")),
        ("", ("(SceneTestCase):", "(Mixin, SceneTestCase):")),
        ("", ("    def generate_args", "    @cached\n    def generate_args")),
        ("", ("    def compute_golden", "    def _run_and_validate_l2(self): ...\n\n    def compute_golden")),
        ("def more(args):\n    args.add_scalar('n', 1)\n", ("", "")),
        ("def fails():\n    with pytest.raises(ValueError):\n        run()\n", ("", "")),
        ("TaskArgsBuilder = made()\n", ("", "")),
        ("", ("from simpler_setup import", "from mine import")),
        ("", ('"orchestration": {', '"orchestration": run_dag, "callables": {')),
        ("", ("    def generate_args", "    CALLABLE = add_bias(CALLABLE)\n\n    def generate_args")),
        ("", ("    def generate_args", "    CALLABLE['orchestration'].update(SIG)\n\n    def generate_args")),
        ("", ("    def generate_args", "    _run_and_validate_l2 = custom\n\n    def generate_args")),
        ("", ("    def generate_args", "    def build_callable(self, platform): ...\n\n    def generate_args")),
        ("", ("    def generate_args", "    def test_run(self): ...\n\n    def generate_args")),
        ("", ("    def compute_golden", "    generate_args = traced(generate_args)\n\n    def compute_golden")),
        ("def patch(cls):\n    cls.CALLABLE['orchestration']['signature'].append(D.OUT)\n", ("", "")),
        ("def late():\n    TestAdd.generate_args = other\n", ("", "")),
        ("def late():\n    patch(TestAdd)\n", ("", "")),
        ("", ("        return Task", "        set_signature(self, 4)\n        return Task")),
        ("", ("        return Task", "        from mine import TensorArg\n        return Task")),
        ("", ("        return Task", "        raise NotImplementedError\n        return Task")),
        ("class TaskArgsBuilder(Base): ...\n", ("", "")),
        ("def scene_test(**options): ...\n", ("", "")),
        ("from mine import SceneTestCase\n", ("", "")),
        ("from mine import *\n", ("", "")),
        ("", ("(SceneTestCase):", "(mine.SceneTestCase):")),
        ("", ("@scene_test", "@pytest.mark.xfail(strict=True)\n@scene_test")),
        ("", ("@scene_test", "@pytest.mark.skipif(True, reason='slow')\n@scene_test")),
        ("", ("@scene_test", "@pytest.mark.usefixtures('patched')\n@scene_test")),
        ("", ("@scene_test", "@pytest.mark.expected_failure\n@scene_test")),
        ("", ("@scene_test", "@traced\n@scene_test")),
        ("pytestmark = pytest.mark.xfail\n", ("", "")),
        ("", ("        pass\n", "        pass\n\n\nclass TestAdd(Base):\n    pass\n")),
        ("", (f"    {WRITTEN}\n", "")),
        ("", (WRITTEN, "CASES = []")),
        ("", ("class TestAdd(", "class Addition(")),
    ],
)
def test_a_class_that_may_pass_other_arguments(before: str, change: tuple[str, str]) -> None:
    assert found(builder(A, B, C, 'TensorArg("d", x)'), "pass", before=before, change=change) == []


@pytest.mark.parametrize("text", ["", "int expected_arg_count = cfg.expected_arg_count;\n"])
def test_a_runtime_that_does_not_compare_the_number(text: str) -> None:
    body = "const ChipTensor &t = orch_args.tensor(0).ref();"
    assert found(builder(A, B, C), "pass", body=body, runtime={EXECUTOR: text} if text else {}) == []
    assert len(found(builder(A, B, C), "pass", body=body)) == 1


def test_many_tests_in_a_file_end_in_time() -> None:
    head, _, test = HEAD.partition("\n@scene_test")
    test = f"\n@scene_test{test}".format(makes=RIGHT, golden="args.c[:] = args.q")
    many = "".join(test.replace("TestAdd", f"TestAdd{at}") for at in range(600))
    files = {PATH: head.format(before="") + many, SOURCE: BODY, "program/kernels/aiv/add.cpp": ""}
    start = time.process_time()
    assert len(lint_files([PACK], files, ["PTO126"]).diagnostics) == 600
    assert time.process_time() - start < 5


def test_words_in_strings_and_comments() -> None:
    makes = f"# the case for skipping it\n        return TaskArgsBuilder({A}, {B}, {C}, Scalar('case', 3))"
    golden = (
        'args.c[:] = args.a  # if it is one, and not the other\n        log("for each")\n        args.c[:] = args.z'
    )
    (item,) = found(makes, golden)
    assert item == ("args.z", "`generate_args()` passes no argument `z`; it passes `a`, `b`, `c` and `case`")
    assert found(makes, golden.replace("log(", "return log(")) == []
