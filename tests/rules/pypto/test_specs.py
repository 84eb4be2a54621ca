"""Specs paired with their entries, and what PTO110 says of the directions."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.pypto.detection import specifying
from opschema_rules.pypto.model import SpecEntry
from opschema_rules.pypto.pack import PACK
from opschema_rules.pypto.specs import read_entries

HEAD = """\
import pypto.language as pl
import torch
from golden import ScalarSpec, TensorSpec, run, run_jit

"""

ENTRY = """\
@pl.jit
def add(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
    ...

"""

SPECS = """\
def build_specs():
    return [
        TensorSpec("x", [8], torch.float32, init_value=torch.randn),
        ScalarSpec("n", torch.int32, 3),
        TensorSpec("y", [8], torch.float32, is_output=True),
    ]

"""


def lint(text: str, **others: str) -> Linted:
    files = {"run.py": HEAD + text, **{f"{name}.py": other for name, other in others.items()}}
    return lint_files([PACK], files, ["PTO110"])


def entries(text: str, **others: str) -> dict[str, dict[str, list[tuple[bool | None, bool | None]]]]:
    """Each entry's parameters that have specs: whether these are outputs and have an initial value."""
    linted = lint(text, **others)
    found: Iterable[SpecEntry] = read_entries(linted.project, list(specifying(linted.project)))
    return {
        entry.name: {
            item.param.name: [(spec.is_output, spec.has_init) for spec in item.specs]
            for item in entry.params
            if item.specs
        }
        for entry in found
    }


def places(linted: Linted) -> list[str]:
    """The text at each finding."""
    return [linted.text(item.place) for item in linted.diagnostics]


# -- pairing ---------------------------------------------------------------------------------------------------------------

FACTORY = """\
NAMES = ("x", "y")


def made(name, init_value=None, *, output=False):
    spec = TensorSpec(name, [8], torch.float32, init_value=init_value, is_output=output)
    return spec


"""


@pytest.mark.parametrize(
    "specs",
    [
        '[made("x", torch.randn), made("y", output=True)]',
        '[made(NAMES[0], init_value=torch.randn), made(name="y", output=True)]',
        '[made("x", torch.randn)] + [made("y", None, output=True)]',
    ],
)
def test_specs_that_a_function_makes(specs: str) -> None:
    text = f"{FACTORY}{ENTRY}specs = {specs}\nrun_jit(fn=add, specs=specs)\n"
    assert entries(text) == {"add": PAIR}


PAIR = {"x": [(False, True)], "y": [(True, False)]}


@pytest.mark.parametrize(
    "call",
    [
        "run_jit(fn=add, specs=build_specs())",
        "run_jit(add, build_specs())",
        "specs = build_specs()\nresult = run_jit(fn=add, specs=specs)",
        "specs = list(build_specs())\nspecs.append(ScalarSpec('m', torch.int32, 1))\nrun_jit(fn=add, specs=specs)",
        "fn, specs = add, build_specs()\nrun_jit(fn=fn, specs=specs)",
        "def both():\n    return build_specs(), 3\nspecs, more = both()\nrun_jit(fn=add, specs=specs)",
        "if __name__ == '__main__':\n    entry = add\n    run_jit(fn=entry, specs=build_specs(), golden_fn=None)",
        "from golden import run_jit as go\nresult = go(fn=add, specs=build_specs())",
    ],
)
def test_specs_meet_the_entry_that_they_are_passed_with(call: str) -> None:
    assert entries(ENTRY + SPECS + call) == {"add": PAIR}


@pytest.mark.parametrize(
    "call",
    [
        "run_jit(fn=add, specs={spec.name: spec for spec in build_specs()}.values())",
        "run_jit(fn=unknown, specs=build_specs())",
        "build_specs()\nadd.compile()",
        "def go(fn, specs):\n    run_jit(fn=fn, specs=specs)",
        "def pick(*a):\n    if a:\n        return build_specs()\n    return []\nrun_jit(fn=add, specs=pick())",
        "def loop():\n    return loop()\nrun_jit(fn=add, specs=loop())",
        "specs = specs\nrun_jit(fn=add, specs=specs)",
        "run_jit(*[add], specs=build_specs())",
    ],
)
def test_what_is_computed_meets_nothing(call: str) -> None:
    assert entries(ENTRY + SPECS + call) == {}


def test_alternatives_are_paired_by_the_branch_that_chooses_them() -> None:
    text = (
        ENTRY
        + SPECS
        + (
            "@pl.jit\ndef other(y: pl.Tensor[[8], pl.FP32]):\n    ...\n\n"
            "def build_other():\n    return [TensorSpec('y', [8], torch.float32, init_value=0.5)]\n\n"
            "for mode in range(2):\n"
            "    if mode:\n        fn, specs = add, build_specs()\n"
            "    else:\n        fn, specs = other, build_other()\n"
            "    run_jit(fn=fn, specs=specs)\n"
        )
    )
    assert entries(text) == {"add": PAIR, "other": {"y": [(False, True)]}}


def test_a_name_that_is_assigned_anew_means_the_last() -> None:
    text = (
        ENTRY
        + SPECS
        + (
            "@pl.jit\ndef other(y: pl.Tensor[[8], pl.FP32]):\n    ...\n\n"
            "def main():\n"
            "    fn = add\n"
            "    specs = build_specs()\n"
            "    run_jit(fn=fn, specs=specs)\n"
            "    fn = other\n"
            "    specs = [TensorSpec('y', [8], torch.float32, init_value=0.5)]\n"
            "    run_jit(fn=fn, specs=specs)\n"
            "    specs.append(TensorSpec('y', [8], torch.float32, is_output=True))\n"
        )
    )
    assert entries(text) == {"add": PAIR, "other": {"y": [(False, True)]}}


@pytest.mark.parametrize(
    "change",
    ["    specs += more\n", "    for specs in more:\n        pass\n", "    del specs\n", "    specs, *more = more\n"],
)
def test_a_name_that_becomes_something_else_is_not_known(change: str) -> None:
    assert (
        entries(ENTRY + SPECS + f"def main():\n    specs = build_specs()\n{change}    run_jit(fn=add, specs=specs)\n")
        == {}
    )


def test_one_name_of_two_fixtures_is_not_mixed_up() -> None:
    text = ENTRY + (
        "def build_a():\n    return [TensorSpec('y', [8], torch.float32, is_output=True)]\n"
        "def build_b():\n    return [TensorSpec('y', [8], torch.float32, init_value=1.0)]\n"
        "@pl.jit\ndef read(y: pl.Tensor[[8], pl.FP32]):\n    ...\n"
        "run_jit(fn=add, specs=build_a())\nrun_jit(fn=read, specs=build_b())\n"
    )
    assert entries(text) == {"add": {"y": [(True, False)]}, "read": {"y": [(False, True)]}}
    assert lint(text).codes() == []


def test_entries_and_builders_are_found_in_the_files_that_a_script_imports() -> None:
    kernel = "import pypto.language as pl\n" + ENTRY
    specs = "import torch\nfrom golden import ScalarSpec, TensorSpec\n" + SPECS
    files = {
        "models/a/kernel.py": kernel,
        "models/b/kernel.py": kernel.replace("pl.Out[pl.Tensor[[8], pl.FP32]]", "pl.Tensor[[8], pl.FP32]"),
        "models/b/inputs.py": specs,
        "models/b/run.py": HEAD + "from kernel import add\nfrom inputs import build_specs\nspecs = build_specs()\n"
        "specs.append(TensorSpec('z', [1], torch.int8))\nrun_jit(fn=add, specs=specs)\n",
    }
    linted = lint_files([PACK], files, ["PTO110"])
    assert [item.place.path for item in linted.diagnostics] == ["models/b/kernel.py"]
    assert [item.place.path for item in linted.diagnostics[0].related] == ["models/b/inputs.py"]


PROGRAM = """\
@pl.program
class Adder:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[8], pl.FP32], y: pl.Tensor[[8], pl.FP32]):
        ...

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
        ...

"""


@pytest.mark.parametrize(
    "call",
    [
        "run(program=Adder, specs=build_specs())",
        "def build():\n    return Adder\nrun(program=build(), specs=build_specs())",
        "class Case:\n    def define_tensors(self):\n        return build_specs()\n"
        "    def get_program(self):\n        return Adder\n",
    ],
)
def test_the_orchestration_of_a_program_is_its_entry(call: str) -> None:
    assert entries(PROGRAM + SPECS + call) == {"main": PAIR}


def test_a_program_whose_functions_a_level_places_is_left_alone() -> None:
    placed = PROGRAM.replace("type=pl.FunctionType.InCore", "level=pl.Level.HOST, role=pl.Role.Worker")
    assert entries(placed + SPECS + "run(program=Adder, specs=build_specs())") == {}


@pytest.mark.parametrize(
    ("spec", "is_output", "has_init"),
    [
        ("TensorSpec('y', [8], torch.float32, is_output=True)", True, False),
        ("TensorSpec('y', [8], torch.float32, None, True)", True, False),
        ("TensorSpec('y', [8], torch.float32, torch.randn, True)", True, True),
        ("TensorSpec('y', [8], torch.float32, init_value=0, is_output=True)", True, True),
        ("TensorSpec('y', [8], torch.float32, init_value=lambda: 1, is_output=True)", True, True),
        ("TensorSpec(name='y', shape=[8], dtype=torch.float32, init_value=make)", False, True),
        ("TensorSpec('y', [8], torch.float32, init_value=made(), is_output=FLAG)", None, True),
        ("TensorSpec('y', [8], torch.float32, init_value=perhaps(), is_output=True)", True, None),
        ("TensorSpec('y', [8], torch.float32, init_value=value, is_output=name == 'y')", None, None),
        ("TensorSpec('y', **fields)", None, None),
    ],
)
def test_what_a_spec_says(spec: str, is_output: bool | None, has_init: bool | None) -> None:
    helpers = (
        "def make():\n    return torch.ones(8)\n"
        "def made():\n    return torch.ones(8)\n"
        "def perhaps(a=None):\n    if a:\n        return torch.ones(8)\n    return None\n"
    )
    text = ENTRY + helpers + f"run_jit(fn=add, specs=[{spec}])\n"
    assert entries(text) == {"add": {"y": [(is_output, has_init)]}}


def test_what_is_written_on_specs_later_is_not_known() -> None:
    text = ENTRY + SPECS + "specs = build_specs()\nspecs[2].is_output = False\nrun_jit(fn=add, specs=specs)\n"
    assert entries(text) == {"add": {"x": [(None, True)], "y": [(None, False)]}}


@pytest.mark.parametrize(
    ("given", "outputs"),
    [
        (
            "[TensorSpec(n, s, torch.float32, init_value=torch.randn, is_output=n == 'y') for n, s in SHAPES]",
            [(True, True)],
        ),
        ("[TensorSpec(n, s, torch.float32, is_output=n == 'y') for n, s in SHAPES]", [(True, False)]),
        ("[TensorSpec(n, s, torch.float32, is_output=other == 'y') for n, s in SHAPES]", []),
        ("[TensorSpec(n, s, torch.float32, is_output=n != 'y') for n, s in SHAPES]", []),
        ("[TensorSpec(n, s, torch.float32, is_output=a < n == 'y') for n, s in SHAPES]", []),
        ("[spec for spec in build_specs()]", []),
    ],
)
def test_a_comprehension_tells_the_output_that_it_singles_out(given: str, outputs: list[tuple[bool, bool]]) -> None:
    found = entries(ENTRY + SPECS + f"run_jit(fn=add, specs={given})\n")
    assert found == {"add": {"y": outputs} if outputs else {}}


def test_what_is_appended_to_computed_specs_is_known() -> None:
    text = (
        ENTRY
        + SPECS
        + (
            "def more():\n"
            "    specs = [spec for spec in build_specs() if spec]\n"
            "    specs.extend([TensorSpec('y', [8], torch.float32, is_output=True), ScalarSpec('n', torch.int32, 1)])\n"
            "    return specs\n"
            "run_jit(fn=add, specs=more())\n"
        )
    )
    assert entries(text) == {"add": {"y": [(True, False)]}}


HOST = """\
@pl.jit
def rank(x: pl.Tensor[[8], pl.FP32], cache: pl.Tensor[[8], pl.FP32]):
    ...

@pl.jit.host
def world(x: pl.Tensor[[2, 8], pl.FP32], cache: pl.InOut[pl.Tensor[[2, 8], pl.FP32]]):
    cache.bind_dynamic(0, N)
    for r in pl.range(2):
        rank(x[r], cache[r], device=r)
    return cache

run_jit(fn=world, specs=[
    TensorSpec("x", [2, 8], torch.float32, init_value=torch.randn),
    TensorSpec("cache", [2, 8], torch.float32, init_value=torch.randn, is_output=True),
])
"""


def test_what_a_host_hands_on_counts_for_the_function_that_takes_it() -> None:
    assert entries(HOST)["rank"] == {"x": [(False, True)], "cache": [(True, True)]}
    linted = lint(HOST)
    assert places(linted) == ["pl.Tensor[[8], pl.FP32]"]
    assert [item.message for item in linted.diagnostics[0].related] == ["an output", "handed on from here"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return cache\n", "    show(cache)\n"),
        ("    return cache\n", "    cache = other\n"),
        ("    return cache\n", "    rank(cache[0], x[0])\n"),
        ("rank(x[r], cache[r], device=r)", "rank(x[r], *cache)"),
        ("rank(x[r], cache[r], device=r)", "rank(x[r], cache[r].view())"),
        ("rank(x[r], cache[r], device=r)", "unknown(x[r], cache[r])"),
        ("is_output=True)", "is_output=True, resident='stacked')"),
    ],
)
def test_what_a_host_does_more_with_is_left_alone(old: str, new: str) -> None:
    assert lint(HOST.replace(old, new)).codes() == []


@pytest.mark.parametrize("line", ["a = a + a", "a = list(a)", "a = f(a)", "a, b = a", "if a: a = b"])
def test_a_long_chain_of_names_takes_no_time(line: str) -> None:
    text = (
        ENTRY
        + "def f(a):\n    return a\na = [TensorSpec('y', [8], torch.float32, init_value=a)]\nb = a\n"
        + f"{line}\n" * 200
    )
    started = time.process_time()
    lint(text + "run_jit(fn=add, specs=a)\n" * 50)
    assert time.process_time() - started < 10


# -- PTO110 ----------------------------------------------------------------------------------------------------------------


def one(annotation: str, spec: str, *, before: str = "", decorator: str = "pl.jit") -> Linted:
    entry = f"@{decorator}\ndef add(y: {annotation}):\n    ...\n\n"
    return lint(f"{before}{entry}run_jit(fn=add, specs=[TensorSpec('y', [8], torch.float32, {spec})])\n")


TENSOR = "pl.Tensor[[8], pl.FP32]"


@pytest.mark.parametrize(
    ("annotation", "spec"),
    [
        (TENSOR, "init_value=torch.randn"),
        (f"pl.Out[{TENSOR}]", "is_output=True"),
        (f"pl.Out[{TENSOR}]", ""),
        (f"pl.InOut[{TENSOR}]", "init_value=torch.randn, is_output=True"),
        (f"pl.InOut[{TENSOR}]", "is_output=True"),
        (f"pl.InOut[{TENSOR}]", "init_value=torch.randn"),
        (TENSOR, "is_output=flag"),
        (f"pl.Out[{TENSOR}]", "init_value=value, is_output=True"),
        ("other.Tensor[[8], pl.FP32]", "is_output=True"),
        ("'pl.Tensor'", "is_output=True"),
        ("make(pl.Tensor)", "is_output=True"),
    ],
)
def test_what_moves_all_that_it_needs_is_right(annotation: str, spec: str) -> None:
    assert one(annotation, spec).codes() == []


def test_an_output_that_is_declared_an_input() -> None:
    linted = one(TENSOR, "init_value=torch.randn, is_output=True")
    (found,) = linted.diagnostics
    assert found.message == (
        "`y` of `add` is an input, but its spec is an output, which is copied back only if the compiler finds the write by "
        "itself; declare it `pl.InOut`"
    )
    assert linted.text(found.place) == TENSOR
    assert [(linted.text(item.place), item.message) for item in found.related] == [("True", "an output")]
    assert found.fix is not None
    assert found.fix.safety == "safe"


def test_an_initial_value_that_an_output_does_not_take() -> None:
    linted = one(f"pl.Out[{TENSOR}]", "init_value=torch.randn, is_output=True")
    (found,) = linted.diagnostics
    assert found.message == (
        "`y` of `add` is `pl.Out`, but its spec has an initial value, which reaches the device only if the compiler finds by "
        "itself that it is read; declare it `pl.InOut`, or drop the value"
    )
    assert linted.text(found.place) == "pl.Out"
    assert [(linted.text(item.place), item.message) for item in found.related] == [("torch.randn", "its initial value")]
    assert found.fix is not None
    assert found.fix.safety == "unsafe"


@pytest.mark.parametrize(
    ("imports", "annotation", "fixed"),
    [
        ("", TENSOR, f"pl.InOut[{TENSOR}]"),
        ("", f"pl.Out[{TENSOR}]", f"pl.InOut[{TENSOR}]"),
        ("import pypto.language as q\n", "q.Out[q.Tensor[[8], q.FP32]]", "pl.InOut[q.Tensor[[8], q.FP32]]"),
        ("KV = pl.Tensor[[8], pl.FP32]\n", "KV", "pl.InOut[KV]"),
        (
            "import pypto.language.distributed as pld\n",
            "pld.DistributedTensor[[8], pl.FP32]",
            "pl.InOut[pld.DistributedTensor[[8], pl.FP32]]",
        ),
    ],
)
def test_the_fix_changes_the_annotation_alone(imports: str, annotation: str, fixed: str) -> None:
    spec = "TensorSpec('y', [8], torch.float32, init_value=torch.randn, is_output=True)"
    text = HEAD + imports + f"@pl.jit\ndef add(y: {annotation}):\n    ...\n\nrun_jit(fn=add, specs=[{spec}])\n"
    texts, after = fix_files([PACK], {"run.py": text}, ["PTO110"], unsafe=True)
    assert texts == {"run.py": text.replace(f"y: {annotation}", f"y: {fixed}")}
    assert after.codes() == []


def test_a_name_that_says_out_is_reported_and_not_fixed() -> None:
    linted = one("CACHE", "init_value=torch.randn", before=f"CACHE = pl.Out[{TENSOR}]\n")
    assert [item.fix for item in linted.diagnostics] == [None]
    assert places(linted) == ["y"]


def test_names_imported_from_the_language_are_known_by_any_name() -> None:
    before = "from pypto.language import Tensor as T, jit, FP32\n"
    linted = one("T[[8], FP32]", "is_output=True", before=before, decorator="jit(auto_scope=False)")
    assert places(linted) == ["T[[8], FP32]"]


def test_a_resident_output_of_a_host_entry_is_read_back_by_the_harness() -> None:
    resident = "is_output=True, resident='stacked'"
    assert one(TENSOR, resident, decorator="pl.jit.host").codes() == []
    assert one(TENSOR, "is_output=True", decorator="pl.jit.host").codes() == ["PTO110"]


def test_a_function_that_is_spliced_into_others_is_no_entry() -> None:
    assert one(TENSOR, "is_output=True", decorator="pl.jit.inline").codes() == []


def test_a_suppression_on_the_function_covers_its_parameters() -> None:
    text = (
        "@pl.jit\n"
        "def add(  # opschema: ignore[PTO110] read back by hand\n"
        f"    y: {TENSOR},\n"
        "): ...\n\n"
        "run_jit(fn=add, specs=[TensorSpec('y', [8], torch.float32, is_output=True)])\n"
    )
    assert lint(text).codes() == []
    assert lint(text.replace("PTO110", "PTO109")).codes() == ["PTO110"]


@pytest.mark.parametrize(
    "text",
    [
        "run_jit(fn=, specs=[])",
        "run_jit(fn=add, specs=[TensorSpec()])\n@pl.jit\ndef add(*a, **k): ...\n",
        "run_jit(fn=add, specs=[TensorSpec(3, is_output=True), TensorSpec(*x), None, 3])\n@pl.jit\ndef add(y): ...\n",
        "@pl.jit\ndef add(add: pl.Tensor = 3): run_jit(add, add)\n",
        "class A(A):\n    def define_tensors(self): return []\n    def get_program(self): return A\n",
        "class A:\n    define_tensors = get_program = lambda self: [TensorSpec('x')]\n",
        "@pl.program\nclass P: ...\nrun(program=P, specs=[TensorSpec('x', is_output=True)])\n",
        "specs = [TensorSpec('y', [8], torch.float32)]\nspecs = specs + specs\nrun_jit(fn=specs, specs=specs)\n",
    ],
)
def test_hostile_input_is_passed_over(text: str) -> None:
    assert "OPS900" not in lint(text).codes()
    assert "PTO110" not in lint(text).codes()


# Order

RUN = "run_jit(fn=add, specs=build_specs())\n"
EXCHANGED = """\
def build_specs():
    return [
        TensorSpec("y", [8], torch.float32, is_output=True),
        ScalarSpec("n", torch.int32, 3),
        TensorSpec("x", [8], torch.float32, init_value=torch.randn),
    ]

"""


def orders(text: str) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {"run.py": HEAD + text}, ["PTO124"])
    return [(linted.text(item.place)[:15], item.message) for item in linted.diagnostics]


def test_specs_in_another_order() -> None:
    message = "specs are passed in their order: `x` of `add` gets the tensor of the spec `y`"
    case = "class Case:\n    def define_tensors(self):\n        return build_specs()\n"
    case += "    def get_program(self):\n        return add\n"
    displayed = EXCHANGED.replace("def build_specs():\n    return ", "run_jit(fn=add, specs=").replace("]\n\n", "])\n")
    for text in (EXCHANGED + RUN, EXCHANGED + case, displayed):
        assert orders(ENTRY + text) == [('TensorSpec("y",', message)]


def test_an_order_that_should_fail() -> None:
    text = EXCHANGED + RUN.replace("run_jit", "with pytest.raises(AssertionError):\n    run_jit")
    assert orders(ENTRY + text) == []


def test_specs_for_a_function_without_parameters() -> None:
    text = "@pl.jit\ndef add():\n    ...\n\n"
    assert [message for _, message in orders(text + SPECS + RUN)] == ["3 specs are passed, and `add` takes 0 arguments"]


def test_the_spec_of_a_scalar_in_another_place() -> None:
    lines = SPECS.splitlines(keepends=True)
    exchanged = "".join((*lines[:2], lines[3], lines[2], *lines[4:]))
    message = "specs are passed in their order: `x` of `add` gets the tensor of the spec `n`"
    assert orders(ENTRY + exchanged + RUN) == [('ScalarSpec("n",', message)]


SCALAR = '        ScalarSpec("n", torch.int32, 3),\n'
FEWER = SPECS.replace(SCALAR, "")


def test_a_spec_too_few_or_too_many() -> None:
    lines = SPECS.splitlines(keepends=True)
    for at, name in enumerate("xny", 2):
        fewer = "".join((*lines[:at], *lines[at + 1 :]))
        for run in (
            RUN,
            f"if __name__ == '__main__':\n    from golden import run_jit\n    r = {RUN}    if not r.passed: exit(1)\n",
        ):
            assert [message for _, message in orders(ENTRY + fewer + run)] == [
                f"2 specs are passed, and `add` takes 3 arguments: none for `{name}`"
            ]
    more = SPECS.replace("    ]", '        TensorSpec("z", [8], torch.float32),\n    ]')
    assert [message for _, message in orders(ENTRY + more + RUN)] == ["4 specs are passed, and `add` takes 3 arguments"]


@pytest.mark.parametrize(
    "text",
    [
        ENTRY.replace("]):", "], bias: pl.Scalar[pl.FP32] = 0.0):") + SPECS + RUN,
        ENTRY.replace("n: pl.Scalar[pl.INT32]", "*n") + SPECS.replace("ScalarSpec", "TensorSpec") + RUN,
        ENTRY.replace("]):", "], *, bias=None):") + SPECS + RUN,
        ENTRY.replace("@pl.jit", "@pl.jit.host") + FEWER + RUN,
        ENTRY.replace("@pl.jit", "@pl.jit.inline") + FEWER + RUN,
        ENTRY.replace("@pl.jit", '@pl.jit(static={"n": 3})') + FEWER + RUN,
        ENTRY.replace("@pl.jit", "@with_n(3)\n@pl.jit") + FEWER + RUN,
        ENTRY.replace("@pl.jit", "@pl.jit\n@with_n(3)") + FEWER + RUN,
        ENTRY + SPECS.replace("        ScalarSpec", "        *MORE,\n        ScalarSpec") + RUN,
        ENTRY + FEWER.replace("return", "return MORE +") + RUN,
        ENTRY + SPECS.replace('ScalarSpec("n", torch.int32, 3)', "number()") + RUN,
        ENTRY + SPECS.replace('ScalarSpec("n"', 'ScalarSpec("count"') + RUN,
        ENTRY + FEWER + RUN.replace("specs=", 'runtime_dir="build", specs='),
        ENTRY + FEWER + RUN.replace("())", "(), **options)"),
        ENTRY + FEWER + RUN.replace("run_jit(fn", "run(program"),
        ENTRY + FEWER + f"[{RUN.strip()} for add in (bound(3),)]\n",
        ENTRY + FEWER + f"go = lambda add: {RUN}",
        ENTRY + FEWER + f"def run_jit(fn, specs):\n    fn.compile(*specs, n=3)\n\n{RUN}",
        ENTRY + FEWER + "run_jit(add, build_specs(), *([None] * 6))\n",
        ENTRY + FEWER + f"run_jit(add, build_specs(), {'None, ' * 8} 'build')\n",
        ENTRY + FEWER + f"@unittest.expectedFailure\ndef test_add(self):\n    {RUN}",
        ENTRY + FEWER + f"with pytest.raises(TypeError):\n    {RUN}",
        ENTRY + FEWER + f"try:\n    {RUN}except TypeError:\n    pass\n",
        ENTRY + FEWER + f"@pytest.mark.xfail\ndef test_add():\n    {RUN}",
        ENTRY + FEWER + f"r = {RUN}assert not r.passed\n",
        ENTRY + FEWER + f"r = {RUN}assert r.passed is False\n",
        ENTRY + "add = with_n(add)\n" + FEWER + RUN,
        ENTRY + FEWER + RUN.replace("fn=add", "fn=bound(add, 3)"),
        ENTRY + "class TensorSpec(Base): ...\n" + FEWER + RUN,
        ENTRY + "from mine import TensorSpec\n" + FEWER + RUN,
        ENTRY + "TensorSpec = several\n" + FEWER + RUN,
        ENTRY + FEWER.replace('TensorSpec("x"', 'pair("x"') + RUN,
        ENTRY + FEWER + "class Case:\n    def define_tensors(self):\n        return build_specs()\n"
        "    def get_program(self):\n        return add\n",
        "@pl.program\nclass P:\n    @pl.function\n    def add(this, x: pl.Tensor[[8], pl.FP32]): ...\n\n"
        + FEWER
        + "run_jit(fn=P, specs=build_specs())\n",
    ],
)
def test_as_many_specs_as_are_taken_or_not_known(text: str) -> None:
    assert orders(text) == []


@pytest.mark.parametrize(
    "text",
    [
        ENTRY + SPECS + RUN,
        ENTRY.replace("@pl.jit", "@pl.jit.host") + EXCHANGED + RUN,
        ENTRY + EXCHANGED.replace('"x"', '"input"') + RUN,
        ENTRY + EXCHANGED.replace('"x"', "name") + RUN,
        ENTRY + EXCHANGED.replace("    ]\n", "    ][::-1]\n") + RUN,
        ENTRY + EXCHANGED.replace("def build", "@by_name\ndef build") + RUN,
        ENTRY + EXCHANGED.replace("return", "specs =") + "    fix(specs)\n    return specs\n" + RUN,
        ENTRY + EXCHANGED + "from mine import check\ncheck(fn=add, specs=build_specs())\n",
        ENTRY + EXCHANGED + "from mine import run\nrun(fn=add, specs=build_specs())\n",
        ENTRY + EXCHANGED + "def check(fn, specs):\n    fn(**{item.name: item for item in specs})\n"
        "check(fn=add, specs=build_specs())\n",
        ENTRY + EXCHANGED + "run_jit(fn=add if FORWARD else other, specs=build_specs())\n",
        ENTRY + EXCHANGED + "if FORWARD:\n    fn = add\nelse:\n    fn = other()\nrun_jit(fn=fn, specs=build_specs())\n",
    ],
)
def test_specs_in_order_or_not_known(text: str) -> None:
    assert orders(text) == []


@pytest.mark.parametrize(
    "change",
    [
        "specs[0], specs[2] = specs[2], specs[0]\n",
        "first, n, last = specs\nspecs[0] = last\nspecs[2] = first\n",
        "other = specs\nother.reverse()\n",
        "specs.sort(key=lambda item: item.name)\n",
        "specs.insert(0, specs.pop())\n",
        "fix(specs)\n",
        "for item, name in zip(specs, 'xny'):\n    item.name = name\n",
    ],
)
def test_specs_that_may_be_put_in_order(change: str) -> None:
    assert orders(f"{ENTRY}{EXCHANGED}specs = build_specs()\n{change}run_jit(fn=add, specs=specs)\n") == []


def test_a_spec_that_may_get_another_name() -> None:
    specs = (
        "first = TensorSpec('y', [8], torch.float32)\nfirst.name = 'x'\nlast = TensorSpec('x', [8], torch.float32)\n"
    )
    assert orders(f"{ENTRY}{specs}run_jit(fn=add, specs=[first, last])\n") == []
