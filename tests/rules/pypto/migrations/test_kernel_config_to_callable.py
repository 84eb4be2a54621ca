"""`kernel-config-to-callable`: what becomes of an old test, and which are left to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.config import load_config
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Task, migrate_all
from opschema_cli.migrate.options import fill
from opschema_cli.project import Project
from opschema_cli.testing import Migrated, migrate_files
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.pack import PACK

CONFIG, GOLDEN, TEST = (
    "st/multi-add/kernels/kernel_config.py",
    "st/multi-add/golden.py",
    "st/multi-add/test_multi_add.py",
)

CONFIG_TEXT = '''\
# Copyright
"""Kernels of the adder.

Two of them.
"""

from pathlib import Path

from simpler.task_interface import ArgDirection as D  # of the runtime

_ROOT = Path(__file__).parent

# The orchestration
ORCHESTRATION = {
    "source": str(_ROOT / "orchestration" / "main.cpp"),
    "function_name": "aicpu_orchestration_entry",
    "signature": [D.IN, D.OUT],  # x, y
}

KERNELS = [
    # vector
    {"func_id": 0, "name": "ADD", "source": str(_ROOT / "aiv" / "add.cpp"), "core_type": "aiv", "signature": [D.IN, D.OUT]},
    {
        "func_id": 1,
        "source": str(_ROOT / ".." / ".." / "common" / "copy.cpp"),
        "core_type": "aiv",
    },
]

# Few threads suffice
RUNTIME_CONFIG = {
    "runtime": "tensormap_and_ringbuffer",
    "aicpu_thread_num": 4,  # three and one
    "block_dim": 3,
}
'''

GOLDEN_TEXT = '''\
# Copyright
"""y = x + 1."""

import torch
from goldens import compute_golden, run_golden_test

__outputs__ = ["y"]
RTOL = 1e-3
ATOL = 1e-3

SIZE = 16

# What it runs on
ALL_CASES = {
    "Small": {"n": SIZE},
    # for benchmarks
    "Large": {
        "n": 2**20,
    },
}

DEFAULT_CASE = "Small"


def generate_inputs(params: dict) -> list:
    return [("x", torch.ones(params["n"])), ("y", torch.zeros(params["n"]))]


if __name__ == "__main__":
    run_golden_test(ALL_CASES, DEFAULT_CASE, generate_inputs)
'''

TEST_TEXT = '''\
# Copyright
"""y = x + 1."""

import torch
from goldens import compute_golden
from simpler.task_interface import ArgDirection as D  # of the runtime

from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIZE = 16


def generate_inputs(params: dict) -> list:
    return [("x", torch.ones(params["n"])), ("y", torch.zeros(params["n"]))]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestMultiAdd(SceneTestCase):
    """Kernels of the adder.

    Two of them.
    """

    RTOL = 1e-3
    ATOL = 1e-3

    CALLABLE = {
        # The orchestration
        "orchestration": {
            "source": "kernels/orchestration/main.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.OUT],  # x, y
        },
        "incores": [
            # vector
            {"func_id": 0, "name": "ADD", "source": "kernels/aiv/add.cpp", "core_type": "aiv", "signature": [D.IN, D.OUT]},
            {
                "func_id": 1,
                "source": "../common/copy.cpp",
                "core_type": "aiv",
            },
        ],
    }

    # Few threads suffice
    # three and one
    # What it runs on
    CASES = [
        {
            "name": "Small",
            "platforms": ["a2a3sim", "a2a3"],
            "config": {"aicpu_thread_num": 4, "block_dim": 3},
            "params": {"n": SIZE},
        },
        # for benchmarks
        {
            "name": "Large",
            "platforms": ["a2a3sim", "a2a3"],
            "config": {"aicpu_thread_num": 4, "block_dim": 3},
            "params": {
                "n": 2**20,
            },
            "manual": True,
        },
    ]

    def generate_args(self, params):
        specs = []
        for name, value in generate_inputs(params):
            if isinstance(value, torch.Tensor):
                specs.append(TensorArg(name, value))
            else:
                specs.append(Scalar(name, value))
        return TaskArgsBuilder(*specs)

    def compute_golden(self, args, params):
        tensors = {spec.name: spec.value for spec in args.specs if isinstance(spec, TensorArg)}
        compute_golden(tensors, params)
        for name, value in tensors.items():
            getattr(args, name)[:] = value


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
'''

MAIN = """\
extern "C" {
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &orch_args) {
    return PTO2OrchestrationConfig{.expected_arg_count = %d};
}
void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {
    CoreTaskArgs p;
    %s
    rt_submit_aiv_task(0, p);
}
}
"""

SOURCES = {
    "st/multi-add/kernels/orchestration/main.cpp": "",
    "st/multi-add/kernels/aiv/add.cpp": "",
    "st/common/copy.cpp": "",
}


def migrate(config: str = CONFIG_TEXT, golden: str | None = GOLDEN_TEXT, **more: str) -> Migrated:
    """Migrate one old test; ``more`` are files whose dots in the path are written ``__``."""
    files = {**SOURCES, CONFIG: config, **{path.replace("__", "."): text for path, text in more.items()}}
    if golden is not None:
        files[GOLDEN] = golden
    return migrate_files(PACK, "kernel-config-to-callable", files, ["platforms=a2a3sim,a2a3"])


def reason(done: Migrated) -> str:
    """Why the one test was left, as it was."""
    assert CONFIG in done.files
    assert TEST not in done.files or "scene_test" not in done.files[TEST]
    assert len(done.sites()) == 1
    assert done.sites()[0].endswith("(left)")
    (note,) = done.notes()
    place, _, message = note.partition(": by hand: ")
    assert place.startswith(CONFIG)
    return message


def test_an_old_test_becomes_a_scene_test() -> None:
    done = migrate()
    assert done.files == {**SOURCES, TEST: TEST_TEXT}
    assert done.notes() == []


def test_the_page_shows_what_is_done() -> None:
    (page,) = (item.doc for item in PACK.all_migrations() if item.name == "kernel-config-to-callable")
    before, after = (part.partition("\n```")[0] for part in page.split("```python\n")[1:])
    files = {
        "bgemm/kernels/kernel_config.py": f"{before}\n",
        "bgemm/kernels/orchestration/bgemm.cpp": "",
        "bgemm/kernels/aic/gemm.cpp": "",
        "bgemm/golden.py": GOLDEN_TEXT.replace("ATOL = 1e-3\n", ""),
    }
    done = migrate_files(PACK, "kernel-config-to-callable", files, ["platforms=a5"])
    assert f"{after}\n" in done.files["bgemm/test_bgemm.py"]
    assert done.notes() == []


def test_windows_line_ends_stay() -> None:
    done = migrate(CONFIG_TEXT.replace("\n", "\r\n"), GOLDEN_TEXT.replace("\n", "\r\n"))
    assert done.files[TEST] == TEST_TEXT.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("framework", "names"),
    [
        (
            "class TensorArg: ...\nclass Scalar: ...\nMANUAL = 'manual'\n",
            "Scalar, SceneTestCase, TaskArgsBuilder, TensorArg",
        ),
        (
            "class Tensor: ...\nclass Scalar: ...\nMANUAL = 'manual'\n",
            "Scalar, SceneTestCase, TaskArgsBuilder, Tensor,",
        ),
    ],
)
def test_names_are_those_of_the_trees_harness(framework: str, names: str) -> None:
    text = f"class SceneTestCase: ...\nclass TaskArgsBuilder: ...\n{framework}".replace("'", '"')
    done = migrate(**{"harness/scene__py": text})
    assert f"from harness import {names}" in done.files[TEST]


def test_a_harness_that_knows_no_manual_cases_is_told() -> None:
    done = migrate(**{"harness/scene__py": "class SceneTestCase: ...\nclass TaskArgsBuilder: ...\nclass Tensor: ...\n"})
    assert '"manual"' not in done.files[TEST]
    assert done.notes() == [f"{TEST}:48: only the default one ran; the tree's scene tests run all of their cases"]


def test_settings_that_are_not_there_are_those_of_the_old_runner() -> None:
    config = CONFIG_TEXT.partition("# Few threads")[0]
    golden = GOLDEN_TEXT.partition("# What it runs on")[0] + "\n\ndef generate_inputs(params):\n    return []\n"
    text = migrate(config, golden).files[TEST]
    assert '@scene_test(level=2, runtime="host_build_graph")' in text
    case = '"name": "default",\n            "platforms": ["a2a3sim", "a2a3"],\n            '
    assert f'{case}"config": {{"aicpu_thread_num": 3, "block_dim": 24}},\n            "params": {{}},\n' in text
    assert '"manual"' not in text


def test_torch_is_imported_where_it_is_not() -> None:
    golden = GOLDEN_TEXT.replace("import torch\n", "").replace(
        "from goldens import", "from goldens import generate_inputs as made,"
    )
    text = migrate(golden=golden).files[TEST]
    assert (
        "from goldens import generate_inputs as made, compute_golden\nimport torch\nfrom simpler.task_interface" in text
    )


def test_the_environment_goes_along() -> None:
    config = CONFIG_TEXT + '\n# small\nRUNTIME_ENV = {\n    "RING_HEAP": "1024",\n    "DATA_DIR": "data",\n}\n'
    done = migrate(config)
    expected = '    # small\n    RUNTIME_ENV = {\n        "RING_HEAP": "1024",\n        "DATA_DIR": "data",\n    }\n\n    CALLABLE'
    assert f"    ATOL = 1e-3\n{expected}" in done.files[TEST]
    assert done.notes() == [f"{TEST}:27: paths in it were relative to the folder of `kernel_config.py`"]


def test_what_a_person_has_to_look_at_is_told() -> None:
    config = CONFIG_TEXT.replace('"block_dim": 3,', '"block_dim": 3,\n    "rounds": 10,').replace(
        "[D.IN, D.OUT],  #", "[D.INOUT, D.OUT],  #"
    )
    done = migrate(
        config, **{"st/multi-add/README__md": "See golden.py and kernels/kernel_config.py; not other/golden.py\n"}
    )
    assert '"rounds"' not in done.files[TEST]
    assert done.notes() == [
        f"{TEST}:29: `__outputs__` named 1 tensors; a scene test compares the 2 that this declares as outputs",
        f"{TEST}:48: it ran 10 times; a scene test runs as often as `--rounds` says",
        f"st/multi-add/README.md:1: `{GOLDEN}` is still mentioned here; it is `{TEST}` now",
        f"st/multi-add/README.md:1: `{CONFIG}` is still mentioned here; it is `{TEST}` now",
    ]


UNSIGNED = CONFIG_TEXT.replace('    "signature": [D.IN, D.OUT],  # x, y\n', "")


@pytest.mark.parametrize(
    ("expected", "body", "signature"),
    [
        (2, "p.add_input(orch_args.tensor(0).ref()); p.add_inout(orch_args.tensor(1).ref());", "D.IN, D.INOUT"),
        (1, "p.add_inout(orch_args.tensor(0).ref());", "D.INOUT"),
        (2, "p.add_inout(orch_args.tensor(0).ref());", ""),
        (1, "p.add_output(orch_args.tensor(0).ref());", ""),
        (1, "p.add_inout(orch_args.tensor(0).ref()); p.add_input(made(orch_args));", ""),
        (1, "p.add_inout(orch_args.tensor(1).ref());", ""),
    ],
)
def test_a_missing_signature_is_written_where_it_is_certain(expected: int, body: str, signature: str) -> None:
    main = {"st/multi-add/kernels/orchestration/main__cpp": MAIN % (expected, body)}
    done = migrate(UNSIGNED, **main)
    head = '"function_name": "aicpu_orchestration_entry",\n'
    if signature:
        assert f'{head}            "signature": [{signature}],\n' in done.files[TEST]
    else:
        assert f"{head}        }}" in done.files[TEST]
    told = any("the orchestration has no signature" in note for note in done.notes())
    assert told is not bool(signature)


def test_the_enum_of_a_signature_that_is_written_is_imported() -> None:
    lines = [line for line in UNSIGNED.splitlines(keepends=True) if "ArgDirection" not in line]
    config = "".join(lines).replace(', "signature": [D.IN, D.OUT]', "")
    main = {"st/multi-add/kernels/orchestration/main__cpp": MAIN % (1, "p.add_inout(orch_args.tensor(0).ref());")}
    text = migrate(config, **main).files[TEST]
    assert "\nfrom simpler.task_interface import ArgDirection as D\n" in text
    assert '"signature": [D.INOUT],' in text


def test_values_stay_as_they_are_written() -> None:
    golden = GOLDEN_TEXT.replace("RTOL = 1e-3\nATOL = 1e-3", "ATOL = (\n    1e-3 +\n    1e-4\n)\nRTOL = ATOL").replace(
        '"n": SIZE', '"n": SIZE, "tol": RTOL'
    )
    text = migrate(golden=golden).files[TEST]
    assert "    ATOL = (\n        1e-3 +\n        1e-4\n    )\n    RTOL = ATOL\n" in text
    assert '"params": {"n": SIZE, "tol": RTOL},' in text


def test_what_runs_the_script_need_not_be_imported() -> None:
    golden = GOLDEN_TEXT.replace("import compute_golden, run_golden_test", "import compute_golden")
    assert migrate(golden=golden).files[TEST] == TEST_TEXT


def test_a_variable_of_a_function_takes_no_name() -> None:
    golden = GOLDEN_TEXT.replace("    return [", "    D = 2\n    params[D] = D\n    return [")
    assert TEST in migrate(golden=golden).files


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            '"source": str(_ROOT / "aiv" / "add.cpp")',
            '"source": str(_ROOT / "aiv" / "gone.cpp")',
            "a source that is not known",
        ),
        ("KERNELS = [", "KERNELS = made() or [", "not all of its kernels are known"),
        ('"func_id": 1,', '"func_id": next_id(),', "not all of its kernels are known"),
        ('"core_type": "aiv", ', '"core_type": CORE, ', "it takes `CORE` from outside of its dicts"),
        ('"core_type": "aiv", ', '"core_type": f"{1}", ', "a value in its dicts is computed"),
        ('"name": "ADD"', '"name": """A\nB"""', "it has a string of several lines"),
        ("# Few threads", "print(KERNELS)\n# Few threads", "line 30 of it does more than describe a program"),
        ("# Few threads", "KERNELS.append({})\n# Few threads", "not all of its kernels are known"),
        ("# Few threads", "ORCHESTRATION = {}\n# Few threads", "`ORCHESTRATION` is set more than once"),
        ('"block_dim": 3', '"block_dim": 3 * 8', "`RUNTIME_CONFIG` is not all constants"),
        ('"runtime": "tensormap_and_ringbuffer"', '"runtime": None', "its runtime is not known"),
        ("_ROOT = Path", "X = 1; _ROOT = Path", "it has several statements in one line"),
    ],
)
def test_a_description_that_says_more_is_left(old: str, new: str, why: str) -> None:
    assert old in CONFIG_TEXT
    assert why in reason(migrate(CONFIG_TEXT.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("    run_golden_test(ALL_CASES", "    print()\n    run_golden_test(ALL_CASES", "does more than to define"),
        ("    return [", "    params = ALL_CASES[DEFAULT_CASE]\n    return [", "uses `ALL_CASES`"),
        ("    return [", '    print(params["name"])\n    return [', "may ask for the name of its case"),
        ("import torch\n", "import numpy as np\nimport torch\n", "may return NumPy arrays"),
        ("import compute_golden, ", "import ", "has no `compute_golden`"),
        ("-> list:\n", "-> dict:\n", "it is not certain that `generate_inputs` of `golden.py` returns a list"),
        ("def generate_inputs", "def other", "it is not certain that `generate_inputs` of `golden.py` returns a list"),
        ('"Small": {"n"', '**MORE, "Small": {"n"', "the cases of `golden.py` are not all written out"),
        ('DEFAULT_CASE = "Small"', 'DEFAULT_CASE = "Other"', "the cases of `golden.py` are not all written out"),
        ("SIZE = 16", "SIZE = D = 16", "has a `D` of its own"),
        ("SIZE = 16", "Scalar = SIZE = 16", "has a `Scalar` of its own"),
        ("    return [", "    print(D)\n    return [", "has a `D` of its own"),
        ("SIZE = 16", "TENSOR_ORDER = []\nSIZE = 16", "uses `TENSOR_ORDER`"),
        ("SIZE = 16", "SIZE = (16", "does not parse"),
        ('"Small": {"n"', '"Small": {"text": """a\nb""", "n"', "`golden.py` has a string of several lines"),
        ('"Small": {"n"', '"Small": {"out": __outputs__, "n"', "uses `__outputs__`"),
    ],
)
def test_a_golden_that_needs_more_is_left(old: str, new: str, why: str) -> None:
    assert old in GOLDEN_TEXT
    assert why in reason(migrate(golden=GOLDEN_TEXT.replace(old, new, 1)))


def test_without_a_golden_there_is_no_test_to_make() -> None:
    assert reason(migrate(golden=None)) == "there is no `golden.py` beside its folder"


@pytest.mark.parametrize("other", ["st/multi-add/kernel_config.py", "st/multi-add/more/kernel_config.py"])
def test_a_golden_of_two_descriptions_stays(other: str) -> None:
    root = "Path(__file__).parent"
    again = CONFIG_TEXT.replace(root, f'{root} / "kernels"' if other.count("/") == 2 else f'{root} / ".." / "kernels"')
    done = migrate(**{other: again})
    assert done.files[CONFIG] == CONFIG_TEXT
    assert sorted(note.partition(": by hand: ")[2] for note in done.notes()) == [
        f"`{GOLDEN}` is the one of `{path}` too" for path in sorted([CONFIG, other])
    ]


def test_the_golden_beside_a_description_is_its_own() -> None:
    files = {path.replace("kernels/", ""): text for path, text in {**SOURCES, CONFIG: CONFIG_TEXT}.items()}
    more = {"st/golden.py": GOLDEN_TEXT, GOLDEN: GOLDEN_TEXT}
    config = files["st/multi-add/kernel_config.py"].replace('/ ".." / ".." /', '/ ".." /')
    files = {**files, **more, "st/multi-add/kernel_config.py": config}
    done = migrate_files(PACK, "kernel-config-to-callable", files, ["platforms=a2a3sim,a2a3"])
    assert done.files[TEST] == TEST_TEXT.replace('"kernels/', '"')
    assert done.files["st/golden.py"] == GOLDEN_TEXT


@pytest.mark.parametrize("name", ["test_multi_add.py", "test_other.py"])
def test_a_test_that_is_there_stays(name: str) -> None:
    done = migrate(**{f"st/multi-add/{name}": "CALLABLE = None\n"})
    assert reason(done) == f"there is a test already, `st/multi-add/{name}`"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", "the same"),
        (', "name": "ADD"', "", "the same"),
        ("[D.IN, D.OUT]},", "[D.IN, D.INOUT]},", "something else"),
        ('"func_id": 1', '"func_id": 2', "something else"),
        ("kernels/aiv/add.cpp", "../common/copy.cpp", "something else"),
    ],
)
def test_what_a_test_that_is_there_says_is_told(old: str, new: str, said: str) -> None:
    assert old in TEST_TEXT
    done = migrate(**{"st/multi-add/test_it.py": TEST_TEXT.replace(old, new, 1) if old else TEST_TEXT})
    assert reason(done) == f"there is a test already, `st/multi-add/test_it.py`; its `CALLABLE` says {said}"


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("ci/run.sh", "run st/multi-add/golden.py\n", 1),
        ("ci/run.yml", "\n- ./st/multi-add/kernels/kernel_config.py\n", 2),
        ("st/multi-add/again.py", "from golden import generate_inputs\n", 1),
        ("st/again/kernels/other.py", 'PATH = "../../multi-add/kernels/kernel_config.py"\n', 1),
    ],
)
def test_what_code_refers_to_stays(path: str, text: str, line: int) -> None:
    assert reason(migrate(**{path: text})) == f"`{path}`, line {line}, refers to it"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ci/run.sh", 'run "${folder}/kernels/kernel_config.py" golden.py\n'),
        ("ci/run.py", "import golden\nfrom pack.golden import x\nFILES = ['other/golden.py']\n"),
    ],
)
def test_what_is_said_of_such_files_in_general_keeps_none(path: str, text: str) -> None:
    done = migrate(**{path: text})
    assert TEST in done.files
    assert done.notes() == []


def test_platforms_are_names() -> None:
    files = {**SOURCES, CONFIG: CONFIG_TEXT, GOLDEN: GOLDEN_TEXT}
    for given in ("", "a2a3 sim", 'a"'):
        with pytest.raises(OpschemaError, match="expected names of platforms"):
            migrate_files(PACK, "kernel-config-to-callable", files, [f"platforms={given}"])


@pytest.mark.parametrize("inside", [True, False])
def test_links_stay_with_what_they_lead_to(tmp_path: Path, *, inside: bool) -> None:
    root = tmp_path / "tree"
    for path, text in {**SOURCES, CONFIG: CONFIG_TEXT, GOLDEN: GOLDEN_TEXT}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (tmp_path / "golden.py").write_text("")
    (root / "st" / "other").mkdir()
    (root / "st" / "other" / "golden.py").symlink_to(root / GOLDEN if inside else tmp_path / "golden.py")
    registry = Registry((PACK,))
    (record,) = (item for item in PACK.all_migrations() if item.name == "kernel-config-to-callable")
    options = fill([record], ["platforms=a5"])[record.name]
    task = Task(record, options, lambda project: PACK.load(project, PyptoOptions()))
    draft = Draft(Project(Workspace(root)), task.load)
    config, _ = load_config(root)
    result = migrate_all(draft, [task], Ground(registry, resolve_settings(config, registry), Choice()))[0]
    messages = [left.note.message for left in result.notes]
    assert messages == ([f"by hand: `st/other/golden.py` is a link to `{GOLDEN}`"] if inside else [])
    assert draft.project.workspace.is_file(TEST) is not inside
