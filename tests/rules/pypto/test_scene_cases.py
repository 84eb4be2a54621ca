"""The decorator, the cases and the functions of scene tests, and arguments that the harness refuses."""

from __future__ import annotations

import time

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK

PATH = "program/test_add.py"
HARNESS = {
    "simpler_setup/scene_test.py": """\
_CASE_CONFIG_KEYS = frozenset({"aicpu_thread_num", "runtime_env"})
_RUNTIME_ENV_KEYS = frozenset({"ring_heap"})


class SceneTestLevel(IntEnum):
    CHIP = 2
    NODE = 3


class TaskArgsBuilder:
    def add_tensor(self, name, value):
        raise ValueError(f"TaskArgsBuilder: duplicate argument name {name!r}")
        raise ValueError(f"TaskArgsBuilder: argument name {name!r} conflicts with builder attributes/methods")

    @property
    def specs(self):
        return self._specs


def check(case, platform):
    known = set(config) - _CASE_CONFIG_KEYS, set(env) - _RUNTIME_ENV_KEYS
    return platform in case["platforms"], case["name"], case.get("params", {}), case.get("config"), case.get("manual")
""",
    "simpler_setup/platform_info.py": """\
PLATFORM_MAP: dict[str, tuple[str, str]] = {
    "a2a3": ("a2a3", "onboard"),
    "a2a3sim": ("a2a3", "sim"),
}
""",
    "src/a2a3/runtime/tensormap_and_ringbuffer/build_config.py": "",
}
TEXT = """\
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
{before}

@scene_test({decorator})
class TestAdd({base}):
    CALLABLE = {{
        "orchestration": {{"source": "orchestration/main.cpp", "function_name": "entry", "signature": [D.IN]}},
        "incores": [{{"func_id": 0, "source": "kernels/aiv/add.cpp", "core_type": "aiv"}}],
    }}
    CASES = [{case}]

    def generate_args(self, params):
        {makes}

    def compute_golden(self, args, params):
        {golden}
"""
DECORATOR = 'level=2, runtime="tensormap_and_ringbuffer"'
CASE = '{"name": "small", "platforms": ["a2a3sim", "a2a3"], "manual": ["a2a3sim"], "params": {"size": 8}}'
RIGHT = 'return TaskArgsBuilder(TensorArg("a", x), Scalar("n", params["size"]))'


def found(
    case: str = CASE,
    makes: str = RIGHT,
    golden: str = "args.a[:] = params['size']",
    decorator: str = DECORATOR,
    base: str = "SceneTestCase",
    before: str = "",
    change: tuple[str, str] = ("", ""),
    harness: dict[str, str] = HARNESS,
) -> list[tuple[str, str]]:
    text = TEXT.format(case=case, makes=makes, golden=golden, decorator=decorator, base=base, before=before)
    linted = lint_files([PACK], {PATH: text.replace(*change), **harness}, ["PTO126", "PTO129"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def test_a_right_test() -> None:
    assert found() == []
    assert found(decorator='2, "tensormap_and_ringbuffer"') == []


def test_platforms() -> None:
    message = "there is no platform `a2a3_sim`, so that no run selects it; did you mean `a2a3sim`?"
    assert found(CASE.replace('["a2a3sim", "', '["a2a3_sim", "')) == [('"a2a3_sim"', message)]
    other = "there is no platform `x`; there are `a2a3` and `a2a3sim`"
    assert found(CASE.replace('["a2a3sim"]', '["x"]')) == [('"x"', other)]
    assert found(CASE.replace('["a2a3sim", "', '["a2a3_sim", "'), harness={}) == []


@pytest.mark.parametrize("value", ["PLATFORMS", "[OTHER]", "['a2a3' + 'sim']", '"a2a3sim"'])
def test_platforms_that_are_not_written(value: str) -> None:
    assert found(CASE.replace('["a2a3sim", "a2a3"]', value)) == []


def test_the_decorator() -> None:
    names = "there is no runtime `ring`; there is `tensormap_and_ringbuffer`"
    assert found(decorator='level=2, runtime="ring"') == [('"ring"', names)]
    assert found(decorator=f"{DECORATOR[:6]}1{DECORATOR[7:]}") == [("1", "there is no level 1; use `2` or `3`")]
    assert found(decorator='level=LEVEL, runtime="tensormap_" + KIND') == []


def test_settings() -> None:
    message = "`config` of case `small` takes no `aicpu_threads`, and the file cannot be imported; did you mean `aicpu_thread_num`?"
    assert found(CASE.replace('"params"', '"config": {"aicpu_threads": 2}, "params"')) == [('"aicpu_threads"', message)]
    ring = "`runtime_env` of case `small` takes no `window`, and the file cannot be imported; it takes `ring_heap`"
    wrong = CASE.replace('"params"', '"config": {"runtime_env": {"window": 2}}, "params"')
    assert found(wrong) == [('"window"', ring)]
    assert found(wrong, before="import pytest\nwith pytest.raises(ValueError):\n    pass") == []
    older = (
        HARNESS["simpler_setup/scene_test.py"]
        .replace("_CASE_CONFIG_KEYS", "_KEYS")
        .replace("_RUNTIME_ENV_KEYS", "_ENV")
    )
    assert found(wrong, harness={**HARNESS, "simpler_setup/scene_test.py": older}) == []


def test_fields() -> None:
    message = "case `small` has no `platforms`, and cannot be selected: is `platform` a misspelling of it?"
    assert found(CASE.replace('"platforms"', '"platform"')) == [('"platform"', message)]
    case = CASE.replace('"name": "small", ', "")
    assert found(case) == [(case, "a case has no `name`, and cannot be selected")]
    unread = "`manuel` of case `small` is not read; did you mean `manual`?"
    assert found(CASE.replace('"manual"', '"manuel"')) == [('"manuel"', unread)]
    assert found(CASE.replace('"manual"', '"manual("')) == [('"manual("', unread.replace("manuel", "manual("))]


@pytest.mark.parametrize(
    "before", ['case["platforms"] = ALL', "TestAdd.CASES[0].update(ALL)", 'case.setdefault("platforms", [])']
)
def test_fields_that_other_code_may_set(before: str) -> None:
    assert found(CASE.replace('"platforms"', '"where"'), before=f"def prepare(case):\n    {before}\n") == []
    assert found('{"name": "small", **COMMON}') == []


def test_parameters() -> None:
    message = "`generate_args()` reads the parameter `sizes`, which case `small` does not have; did you mean `size`?"
    assert found(makes=RIGHT.replace('"size"', '"sizes"')) == [('params["sizes"]', message)]
    other = "`compute_golden()` reads the parameter `scale`, which case `small` does not have"
    assert found(golden='args.a[:] = 2 * params["scale"]') == [('params["scale"]', other)]
    assert found(golden='if params["scale"]:\n            args.a[:] = 2') == [('params["scale"]', other)]


@pytest.mark.parametrize(
    "golden",
    [
        'args.a[:] = params["scale"] if "scale" in params else 1',
        'if "scale" in params:\n            args.a[:] = params["scale"]',
        'params["scale"] = 2\n        args.a[:] = params["scale"]',
        'prepare(params)\n        args.a[:] = params["scale"]',
        'if not args.n:\n            return\n        args.a[:] = params["scale"]',
        'args.a[:] = "scale" in params and params["scale"]',
        'args.a[:] = [params["scale"] for _ in range(0)]',
        'try:\n            args.a[:] = params["scale"]\n        except KeyError:\n            pass',
        "args.a[:] = params.get('scale', 1)",
        'self.run = lambda: params["scale"]',
        'assert args.n, params["scale"]',
        'if not params.get("scale"):\n            pytest.skip()\n        args.a[:] = params["scale"]',
    ],
)
def test_parameters_that_may_be_there(golden: str) -> None:
    assert found(golden=golden) == []


@pytest.mark.parametrize("end", [") -> None:", "):  # noqa", ") :"])
def test_heads_of_functions_that_end_in_other_ways(end: str) -> None:
    head = "def compute_golden(self, args, params"
    passed = 'prepare(params)\n        args.a[:] = params["scale"]'
    assert found(golden=passed, change=(f"{head}):", head + end)) == []
    assert len(found(golden='args.a[:] = params["scale"]', change=(f"{head}):", head + end))) == 1


def test_parameters_of_tests_that_are_not_run_as_they_are() -> None:
    wrong = RIGHT.replace('"size"', '"sizes"')
    assert found(makes=wrong, base="Common") == []
    assert found(CASE.replace('{"size": 8}', "PARAMS"), wrong) == []
    assert found(CASE.replace('{"size": 8}', '{"size": 8, **MORE}'), wrong) == []
    assert found(golden='args.a[:] = params["scale"]', change=("    CASES", "    SKIP_GOLDEN = True\n    CASES")) == []
    assert found(makes=wrong, change=("@scene_test", "@pytest.mark.skip\n@scene_test")) == []


def test_functions() -> None:
    message = "`TestAdd` has no `compute_golden()`, and fails without it: is `compute_goldens` a misspelling of it?"
    assert found(change=("def compute_golden(", "def compute_goldens(")) == [("compute_goldens", message)]
    assert found(change=("def generate_args(", "def make(")) == [
        ("TestAdd", "`TestAdd` has no `generate_args()`, and fails without it")
    ]
    one = "`generate_args()` is called with `params`, and does not take it"
    assert found(change=("generate_args(self, params)", "generate_args(self)"), makes="return x") == [
        ("generate_args", one)
    ]
    assert found(change=("generate_args(self, params)", "generate_args(self, params, seed=1)")) == []


@pytest.mark.parametrize(
    "change",
    [
        ("    CASES", "    SKIP_GOLDEN = True\n    CASES"),
        ("    CASES", "    compute_golden = golden\n    CASES"),
        ("    def generate_args", "    def test_run(self, st_platform):\n        pass\n\n    def generate_args"),
    ],
)
def test_functions_that_need_not_be_there(change: tuple[str, str]) -> None:
    text = TEXT.replace("compute_golden", "other")
    text = text.format(case=CASE, makes=RIGHT, golden="pass", decorator=DECORATOR, base="SceneTestCase", before="")
    assert lint_files([PACK], {PATH: text.replace(*change), **HARNESS}, ["PTO129"]).codes() == []


def test_arguments_that_the_builder_refuses() -> None:
    args = "return TaskArgsBuilder({})".format
    twice = "two arguments have the name `a`, and `TaskArgsBuilder` rejects the second"
    assert found(makes=args('TensorArg("a", x), Scalar("a", 1)')) == [('Scalar("a", 1)', twice)]
    order = "a tensor follows a scalar, and `TaskArgsBuilder` rejects it: put all tensors first"
    assert found(makes=args('Scalar("n", 1), TensorArg("a", x)')) == [('TensorArg("a", x)', order)]
    member = "`TaskArgsBuilder` has a member `specs`, and rejects the argument"
    assert found(makes=args('TensorArg("specs", x)'), golden="pass") == [('TensorArg("specs", x)', member)]


@pytest.mark.parametrize(
    "makes",
    [
        'return TaskArgsBuilder(TensorArg("a", x), *more, TensorArg("a", x))',
        'return TaskArgsBuilder(*scalars, TensorArg("a", x))',
        "return TaskArgsBuilder(Scalar(name, 1), Scalar(name, 2))",
        'return TaskArgsBuilder(TensorArg("a", x)), TaskArgsBuilder(TensorArg("a", x))',
        'return TaskArgsBuilder(TensorArg("clone_a", x))',
    ],
)
def test_arguments_that_the_builder_takes(makes: str) -> None:
    assert found(makes=makes, golden="pass") == []


@pytest.mark.parametrize(
    ("case", "before"),
    [
        (", ".join(['{"name": "a"}'] * 6_000), ""),
        (CASE, "from simpler_setup import " + ", ".join(f"A{i}" for i in range(12_000))),
    ],
)
def test_many_cases_and_imports_take_linear_time(case: str, before: str) -> None:
    began = time.process_time()
    found(case, before=before)
    assert time.process_time() - began < 5


def test_names_of_arguments_in_older_harnesses() -> None:
    makes = 'return TaskArgsBuilder(TensorArg("specs", x), Scalar("specs", 1))'
    assert found(makes=makes, golden="pass", harness={}) == []
