"""An input under another name."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.rename_input import rename_input
from tests.rules.tileops.migrations.drafts import CODE, TEST, YAML, Migrated, files, migrate

RENAME: Migration = rename_input


def renamed(texts: dict[str, str], old: str = "x", new: str = "input", op: str = "") -> Migrated:
    return migrate(texts, RENAME, old=old, new=new, op=op)


def test_all_of_the_entry_that_speaks_of_the_input() -> None:
    done = renamed(files())
    assert done.lines(YAML) == [
        'input: {dtype: "float16 | float32"}',
        'y: {dtype: "same_as(input)"}',
        '- "y.shape == input.shape"',
        '- {input_shape: [4, 8], dtypes: [float16], label: "small"}',
        '- {input_shape: [1024, 1024], dtypes: [float16, float32], label: "large"}',
        'N: "product(input.shape)"',
    ]
    assert done.notes == []


def test_parameters_of_the_methods_and_their_uses() -> None:
    done = renamed(files())
    assert done.lines(CODE) == [
        "def _infer_output_shapes(self, input_shape):",
        'return {"y": input_shape}',
        "def _validate_dtypes(self, input):",
        "def forward(self, input: torch.Tensor) -> torch.Tensor:",
        'return self.kernel_map["example"](input, self.eps)',
    ]


def test_combos_static_dimensions_and_shapes() -> None:
    signature = """\
signature:
  inputs:
    x: {dtype: "float16 | float32", shape: "[x, x.shape[1]]"}
  outputs:
    y: {dtype: "same_as(x)", shape: same_as(x)}
  dtype_combos:
    - {x: float16, y: "same_as(x)"}
  static_dims:
    D: "x.shape[1]"
  shape_rules:
    - "x.ndim == 2 and x > 1"
"""
    done = renamed(files(("yaml", signature)))
    assert done.lines(YAML)[:6] == [
        'input: {dtype: "float16 | float32", shape: "[x, input.shape[1]]"}',
        'y: {dtype: "same_as(input)", shape: same_as(input)}',
        '- "input.ndim == 2 and x > 1"',
        '- {input: float16, y: "same_as(input)"}',
        'D: "input.shape[1]"',
        '- {input_shape: [4, 8], dtypes: [float16], label: "small"}',
    ]


def test_a_roofline_variable_of_the_same_name_keeps_it() -> None:
    roofline = 'roofline:\n  vars:\n    x: "x.numel()"\n  flops: "2 * x"\n  bytes: "x * elem_bytes"\n'
    done = renamed(files(("yaml", roofline)))
    assert [line for line in done.lines(YAML) if "numel" in line or "flops" in line] == ['x: "input.numel()"']
    assert 'flops: "2 * x"' in done.text(YAML)


def test_arguments_by_name() -> None:
    text = """\
from kit.ops.example import ExampleFwdOp


def test_example(x, run):
    op = ExampleFwdOp(eps=0.5)
    op(x=x)
    op.forward(x=x)
    ExampleFwdOp()(x=x)
    op._infer_output_shapes(x_shape=(1,))
    run(x=x)
    dict(x=x)


class Case:
    def __init__(self):
        self.op = ExampleFwdOp()

    def run(self, x):
        return self.op(x=x)
"""
    done = renamed(files(tests__test_example=text))
    assert done.lines(TEST) == [
        "op(input=x)",
        "op.forward(input=x)",
        "ExampleFwdOp()(input=x)",
        "op._infer_output_shapes(input_shape=(1,))",
        "return self.op(input=x)",
    ]
    assert done.notes == []


def test_a_call_of_the_inherited_method() -> None:
    op = """\
class ExampleBase(Op):
    def forward(self, x):
        return x


class ExampleFwdOp(ExampleBase):
    def forward(self, x):
        return super().forward(x=x)


class OtherFwdOp(ExampleBase):
    pass
"""
    texts = files(("python", op))
    texts[YAML] += "\n" + texts[YAML].replace("ExampleFwdOp", "OtherFwdOp")
    assert "return super().forward(input=input)" in renamed(texts).text(CODE)


def test_an_op_that_cannot_be_followed_is_noted() -> None:
    text = (
        "from kit.ops.example import ExampleFwdOp\n\n\ndef check(op, x):\n    assert ExampleFwdOp\n    return op(x=x)\n"
    )
    done = renamed(files(tests__test_example=text))
    assert done.text(TEST) == text
    assert done.said == [(TEST, 6, "this may call an op whose `x` is now `input`")]


def test_another_class_keeps_its_argument() -> None:
    text = """\
from kit.ops.example import ExampleFwdOp


class Other:
    def forward(self, x):
        return x


def test_example(x):
    assert ExampleFwdOp
    op = Other()
    op.forward(x=x)
"""
    done = renamed(files(tests__test_example=text))
    assert done.text(TEST) == text
    assert done.notes == []


SHARED = """\
class ExampleBase(Op):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.kernel_map["example"](x)


class ExampleFwdOp(ExampleBase):
    pass


class TwinFwdOp(ExampleBase):
    pass
"""


def twins() -> dict[str, str]:
    texts = files(("python", SHARED))
    texts[YAML] += "\n" + texts[YAML].replace("ExampleFwdOp", "TwinFwdOp")
    return texts


def test_a_shared_method_is_renamed_for_all() -> None:
    assert "def forward(self, input:" in renamed(twins()).text(CODE)


def test_an_op_keeps_the_name_where_another_op_shares_its_method_and_keeps_it() -> None:
    done = renamed(twins(), op="ExampleFwdOp")
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]
    said = "`ExampleFwdOp` keeps `x`: `forward()` is also that of `TwinFwdOp`, which would keep `x`"
    assert [note for _, _, note in done.said] == [said]


def test_keys_that_code_reads_from_rows() -> None:
    bench = 'for row in load_workloads("ExampleFwdOp"):\n    make(row["x_shape"])\n'
    done = renamed(files(benchmarks__bench_example=bench))
    assert done.text("benchmarks/bench_example.py") == bench.replace("x_shape", "input_shape")


def test_a_file_that_builds_rows_of_its_own_keeps_its_keys() -> None:
    """Its entry has an input of the old name; whether it means this op's rows too is for a person to see."""
    text = (
        'ENTRY = {"name": "ExampleFwdOp", "workloads": [{"x_shape": [1]}]}\nprint(ENTRY["workloads"][0]["x_shape"])\n'
    )
    done = renamed(files(("python tests/test_rows.py", text)))
    assert done.text("tests/test_rows.py") == text
    assert [note.place.path for note in done.notes] == ["tests/test_rows.py"]


def test_messages_docstrings_and_comments() -> None:
    op = '''\
class ExampleFwdOp(Op):
    def forward(self, query: torch.Tensor) -> torch.Tensor:
        """Run it.

        Args:
            query: What to run; ``query`` is read.
        """
        # query.dtype was checked
        if not query.is_cuda:
            raise ValueError(f"query must be on a device, not {query.device}")
        raise ValueError("no query")
'''
    texts = files(("python", op))
    texts[YAML] = texts[YAML].replace("x: {dtype", "query: {dtype").replace("x.", "query.").replace("x_", "query_")
    texts[YAML] = texts[YAML].replace("same_as(x)", "same_as(query)")
    done = renamed(texts, "query", "q")
    assert done.lines(CODE) == [
        "def forward(self, q: torch.Tensor) -> torch.Tensor:",
        "q: What to run; ``q`` is read.",
        "# q.dtype was checked",
        "if not q.is_cuda:",
        'raise ValueError(f"q must be on a device, not {q.device}")',
    ]
    assert done.said == [(CODE, 17, "this says `query`, which is now `q`")]


@pytest.mark.parametrize(
    ("parameters", "new", "reason"),
    [
        ("x: torch.Tensor, input=None", "input", "`forward()` takes `input` too"),
        ("x: torch.Tensor", "N", "`roofline.vars` has a variable `N`"),
        ("x: torch.Tensor", "y", "it declares `y` already"),
        ("x: torch.Tensor", "eps", "it declares `eps` already"),
    ],
)
def test_a_new_name_that_the_op_has_already(parameters: str, new: str, reason: str) -> None:
    texts = files()
    texts[CODE] = texts[CODE].replace("x: torch.Tensor", parameters)
    done = renamed(texts, new=new)
    assert done.texts == {}
    assert [note for _, _, note in done.said] == [f"`ExampleFwdOp` keeps `x`: {reason}"]


def test_partial_calls_and_dicts_that_are_unpacked() -> None:
    test = """\
import functools
from functools import partial
from kit.ops.example import ExampleFwdOp

op = ExampleFwdOp()
functools.partial(op, x=1)
partial(op.forward, x=1)
partial(other, x=1)
op(**values)
op(**dict(x=1))


def call(**kwargs):
    return op(**kwargs)
"""
    texts = files()
    texts[TEST] = test
    done = renamed(texts)
    after = test.replace("partial(op, x", "partial(op, input").replace("forward, x", "forward, input")
    assert done.text(TEST) == after
    assert done.said == [(TEST, line, "this may pass `x`, which is now `input`") for line in (9, 10)]


def test_a_name_that_the_method_uses_already_is_left_to_a_person() -> None:
    op = "class ExampleFwdOp(Op):\n    def forward(self, x):\n        input = 1\n        return x + input\n"
    done = renamed(files(("python", op)))
    assert done.texts == {}
    assert [note for _, _, note in done.said] == ["`ExampleFwdOp` keeps `x`: forward() uses input already"]


def test_a_renaming_that_the_code_could_not_follow_is_completed_in_the_manifest() -> None:
    op = "class ExampleFwdOp(Op):\n    def forward(self, x):\n        input = 1\n        return x + input\n"
    texts = files(("python", op))
    texts[YAML] = (
        texts[YAML].replace("x: {dtype", "input: {dtype").replace("(x", "(input").replace("x.shape", "input.shape")
    )
    done = renamed(texts)
    assert [line.partition(":")[0] for line in done.lines(YAML)] == ["- {input_shape", "- {input_shape"]
    assert done.text(CODE) == texts[CODE]
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]


def test_a_renaming_left_half_done_is_completed() -> None:
    texts = files()
    texts[YAML] = (
        texts[YAML].replace("x: {dtype", "input: {dtype").replace("(x", "(input").replace("x.shape", "input.shape")
    )
    done = renamed(texts)
    assert done.lines(YAML) == [
        '- {input_shape: [4, 8], dtypes: [float16], label: "small"}',
        '- {input_shape: [1024, 1024], dtypes: [float16, float32], label: "large"}',
    ]
    assert "def forward(self, input:" in done.text(CODE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"old": "x", "new": "self"}, "`self` is not a name for an input"),
        ({"old": "x", "new": "product"}, "`product` is not a name for an input"),
        ({"old": "x", "new": "y", "op": "ExampleFwdOp"}, "`ExampleFwdOp` declares `y` already"),
        ({"old": "q", "new": "r"}, "no op that is named has an input `q`"),
        ({"old": "x", "new": "in"}, "`in` is not a name for an input"),
        ({"old": "x", "new": "a-b"}, "`a-b` is not a name for an input"),
        ({"old": "x", "new": "input", "op": "Exampel*"}, "no op is called `Exampel*`"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        renamed(files(), **options)
    assert str(error.value).startswith(message)


BINDING = """\
class BindingOp(Op):
    def bind(self, **inputs):
        self._validate_dtypes(**inputs)

    def note(self, **words):
        print(words)


class ExampleFwdOp(BindingOp):
    def forward(self, x):
        return self._run(x)

    def _run(self, value):
        self.bind(x=value)
        self.note(x=value)
        return value
"""


def test_a_method_that_hands_inputs_on_by_name_gets_the_new_one() -> None:
    done = renamed(files(("python", BINDING)))
    assert "self.bind(input=value)" in done.lines(CODE)
    assert "        self.note(x=value)\n" in done.text(CODE)


def test_labels_of_values_in_messages() -> None:
    op = """\
class ExampleFwdOp(Op):
    def _infer_output_shapes(self, x_shape):
        # x_shape is not empty
        if len(x_shape) < self.x:
            raise ValueError(f"x {x_shape}, x_shape={x_shape!r}, {self.x} x {x_shape}, x {self.x}")
        return {"y": x_shape}

    def forward(self, x):
        x_shape = tuple(x.shape)  # x_shape is local
        raise ValueError(f"bad x: {x.ndim}; x = {self.kernel(x_shape)}, x_shape={x_shape}")

    def eval_roofline(self, x_shape):
        return self.cache[f"x{x_shape}"], getattr(self, f"{self.name}.x_shape"), "2 x 3"
"""
    done = renamed(files(("python", op)))
    assert done.lines(CODE) == [
        "def _infer_output_shapes(self, input_shape):",
        "# input_shape is not empty",
        "if len(input_shape) < self.x:",
        'raise ValueError(f"input {input_shape}, input_shape={input_shape!r}, {self.x} x {input_shape}, x {self.x}")',
        'return {"y": input_shape}',
        "def forward(self, input):",
        "x_shape = tuple(input.shape)  # x_shape is local",
        'raise ValueError(f"bad input: {input.ndim}; input = {self.kernel(x_shape)}, x_shape={x_shape}")',
        "def eval_roofline(self, input_shape):",
        'return self.cache[f"x{input_shape}"], getattr(self, f"{self.name}.x_shape"), "2 x 3"',
    ]


FORMULAS = "kit/perf/formulas.py"
BY_FUNC = 'roofline:\n  func: "kit.perf.formulas.example_roofline"\n'


def by_func(formulas: str, *fences: tuple[str, str], **more: str) -> dict[str, str]:
    return files(("yaml", BY_FUNC), (f"python {FORMULAS}", formulas), *fences, **more)


def test_a_roofline_function_reads_the_new_name() -> None:
    formulas = """\
def example_roofline(op=None, **row):
    data = vars(op) if op else row
    if "x_shape" in data:
        m, k = data["x_shape"]
    return getattr(op, "x_shape", None), data.get("x_shape"), vars(op)["x_shape"], op.x_shape, data["weight_shape"]


def other_roofline(op):
    return op.x_shape
"""
    done = renamed(by_func(formulas))
    first, other = formulas.split("\n\n\n")
    assert done.text(FORMULAS) == first.replace("x_shape", "input_shape") + "\n\n\n" + other
    assert done.notes == []


def test_parameters_of_a_roofline_function_and_calls_that_name_them() -> None:
    formulas = "def example_roofline(x_shape, dtype):\n    return len(x_shape), 1\n"
    test = "from kit.perf.formulas import example_roofline\n\n\ndef test_it():\n    example_roofline(x_shape=(1,), dtype=1)\n"
    done = renamed(by_func(formulas, tests__test_formulas=test))
    assert done.text(FORMULAS) == formulas.replace("x_shape", "input_shape")
    assert done.lines("tests/test_formulas.py") == ["example_roofline(input_shape=(1,), dtype=1)"]
    assert done.notes == []


def test_a_roofline_function_that_other_ops_share_stays() -> None:
    texts = by_func("def example_roofline(op):\n    return op.x_shape\n")
    texts[YAML] += "\n" + texts[YAML].replace("ExampleFwdOp", "TwinFwdOp").replace("implemented", "spec-only")
    done = renamed(texts, op="ExampleFwdOp")
    assert FORMULAS not in done.texts
    assert done.said == [
        (FORMULAS, 1, "`example_roofline()` is left unchanged: `TwinFwdOp` share it and have `x`"),
    ]


@pytest.mark.parametrize(
    ("read", "op"),
    [
        ('op["x_shape"]', "class ExampleFwdOp(Op):\n    def forward(self, x):\n        self.x_shape = x.shape\n"),
        ('op["x_shape"]', "class ExampleFwdOp(Op):\n    def forward(self, x):\n        self.note(x_shape=x.shape)\n"),
        ('SIZES["x_shape"]', "class ExampleFwdOp(Op):\n    pass\n"),
        ('read(op, "x_shape")', "class ExampleFwdOp(Op):\n    pass\n"),
        ('{"x_shape": op}', "class ExampleFwdOp(Op):\n    pass\n"),
    ],
)
def test_what_a_roofline_function_may_mean_otherwise_is_noted(read: str, op: str) -> None:
    formulas = f"SIZES = {{}}\n\n\ndef example_roofline(op):\n    return {read}, 1\n"
    done = renamed(by_func(formulas, ("python", op)))
    assert FORMULAS not in done.texts
    assert (FORMULAS, 5, "this reads `x_shape`; the input is now `input`") in done.said


def test_a_roofline_function_that_is_not_of_the_workspace() -> None:
    texts = files(("yaml", 'roofline:\n  func: "elsewhere.example_roofline"\n'))
    assert renamed(texts).notes == []
    texts = files(("yaml", "roofline:\n  func: 3\n"))
    assert renamed(texts).notes == []


@pytest.mark.parametrize(
    "formulas",
    [
        "class example_roofline:\n    def __init__(self, x_shape):\n        pass\n",
        "example_roofline = lambda x_shape: (x_shape, 1)\n",
    ],
)
def test_a_roofline_that_is_no_function_is_noted(formulas: str) -> None:
    done = renamed(by_func(formulas))
    assert FORMULAS not in done.texts
    said = "`example_roofline` may read `x_shape`, which is now `input_shape`; it is not a function that is known"
    assert [message for path, _, message in done.said if path == YAML] == [said]


def test_a_roofline_function_that_its_module_hands_on() -> None:
    other = "def example_roofline(x_shape):\n    return x_shape\n"
    formulas = "from kit.perf.other import example_roofline\n"
    done = renamed(by_func(formulas, ("python kit/perf/other.py", other)))
    assert done.text("kit/perf/other.py") == other.replace("x_shape", "input_shape")


# Methods that a hook or a factory makes

HOOKED = """\
class Base(Op):
    second = ""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls._validate_dtypes is Base._validate_dtypes or cls.second:
            cls._validate_dtypes = generated(cls)
        if "second" in cls.__dict__:
            cls.forward = with_name(cls.forward, cls.second)

    def _infer_output_shapes(self, x_shape):
        return {"y": x_shape}

    def forward(self, x):
        return x


class ExampleFwdOp(Base):
    def _validate_dtypes(self, x):
        assert x.dtype


class OtherFwdOp(OTHER):
    second = "z"
"""
OTHER_ENTRY = """
OtherFwdOp:
  status: implemented
  signature: {inputs: {z: {dtype: float16}}, outputs: {y: {dtype: float16}}}
  workloads: []
  source: {op: kit/ops/example.py}
"""


def test_a_method_that_a_hook_may_replace_takes_the_new_name_too() -> None:
    texts = files(("python", HOOKED.replace("OTHER", "Op")))
    texts[YAML] += OTHER_ENTRY
    done = renamed(texts)
    assert "    def _validate_dtypes(self, input):\n        assert input.dtype\n" in done.text(CODE)
    assert "    def forward(self, input):\n        return input\n" in done.text(CODE)
    assert done.notes == []


def test_a_method_from_which_a_hook_makes_that_of_another_op_keeps_its_name() -> None:
    texts = files(("python", HOOKED.replace("OTHER", "Base")))
    texts[YAML] += OTHER_ENTRY
    done = renamed(texts)
    assert done.texts == {}
    reason = "`forward()` of `OtherFwdOp` may be made from this one at run time"
    assert [message for _, _, message in done.said] == [f"`ExampleFwdOp` keeps `x`: {reason}"]
    done = renamed(texts, old="z", new="w")
    assert done.texts == {}
    assert [message for _, _, message in done.said] == ["`OtherFwdOp` keeps `z`: its `forward()` is made at run time"]


def test_a_method_that_a_factory_makes_keeps_its_name() -> None:
    op = (
        "class ExampleFwdOp(Op):\n    _validate_dtypes = checks('float16')\n\n"
        "    def forward(self, x):\n        self._validate_dtypes(x=x)\n        return x\n"
    )
    done = renamed(files(("python", op)))
    assert done.texts == {}
    reason = "its `_validate_dtypes()` is made at run time"
    assert [message for _, _, message in done.said] == [f"`ExampleFwdOp` keeps `x`: {reason}"]


def test_keys_by_which_the_roofline_reads_the_call_are_noted() -> None:
    op = (
        "class ExampleFwdOp(Op):\n    def forward(self, x):\n        return self.run('x', x)\n\n"
        '    def eval_roofline(self):\n        return self.bound["x"].numel(), self.bound["xs"]\n'
    )
    done = renamed(files(("python", op)))
    assert done.said == [(CODE, 12, "this reads `x`; the input is now `input`")]
