"""Exceptions of validators for ops without tensor inputs, demands for an input, and what only resembles them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

SCRIPT = "scripts/check_manifest.py"
VOCABULARY = "# shape_rules, workloads, roofline, signature, status\nimport inspect\n\n\n"

ENTRY = """\
signature:
  inputs:
    like: {dtype: "float16 | float32", shape: "[]"}
  outputs:
    y: {dtype: "same_as(like)", shape: "[n]"}
  params:
    n: {type: int}
  shape_rules: ["n > 0"]
workloads:
  - {like_shape: [], n: 4, dtypes: [float16], label: "small"}
  - {like_shape: [], n: 1024, dtypes: [float32], label: "large"}
roofline: {flops: "n", bytes: "n * elem_bytes"}
"""

CLASS = """\
class ExampleFwdOp(Op):
    def __init__(self, n: int, *, kernel_map=None):
        self.n = n

    def forward(self) -> torch.Tensor:
        return self.kernel_map["example"](self.n)
"""


def lint(script: str, select: str, **files: str) -> Linted:
    texts = {**example_files([]), SCRIPT: VOCABULARY + textwrap.dedent(script), **files}
    return lint_files([PACK], texts, [select])


def found(script: str) -> list[str]:
    linted = lint(script, "CAR105")
    return [" ".join(linted.text(item.place).split()) for item in linted.diagnostics]


TEST = 'entry["ref_api"] == "none" and len(names) == 0'


def check(body: str, names: str = "list(inspect.signature(cls.forward).parameters)[1:]") -> str:
    return f"def check(entry, cls, errors):\n    names = {names}\n" + textwrap.indent(textwrap.dedent(body), "    ")


def test_helpers_behind_helpers() -> None:
    script = """\
        def positional(cls):
            signature = inspect.signature(cls.forward)
            return [name for name, item in signature.parameters.items() if name != "self"]


        def lone(entry, taken):
            return entry.get("ref_api") == "none" and taken == []


        def check(entry, cls, errors):
            names = positional(cls)
            if lone(entry, names):
                return errors
            if names != list(entry["signature"]["inputs"]):
                errors.append("order")
            return errors
    """
    assert found(script) == ['entry.get("ref_api") == "none" and taken == []']


def test_a_flag_that_is_passed_on() -> None:
    script = """\
    def positional(cls):
        return list(inspect.signature(cls.forward).parameters)[1:]


    def check_order(entry, names, *, synth=False):
        errors = []
        if not synth:
            if names != list(entry["signature"]["inputs"]):
                errors.append("order")
        return errors


    def check(entry, cls):
        names = positional(cls)
        # Nothing to line up.
        alone = (
            entry.get("ref_api") == "none"
            and names is not None
            and len(names) == 0
        )
        return check_order(entry, names, synth=alone)
    """
    linted = lint(script, "CAR105")
    (item,) = linted.diagnostics
    assert linted.text(item.place).startswith('entry.get("ref_api") == "none"')
    assert linted.text(item.place).endswith("len(names) == 0")
    assert [(linted.text(other.place), other.message) for other in item.related] == [
        ("synth", "`synth` passes the exception on"),
        ("not synth", "a check is skipped"),
    ]
    assert item.severity.value == "warning"


EXCEPTIONS = {
    "early-return": f"if {TEST}:\n    return errors\n",
    "empty-list": f"if {TEST}:\n    return []\n",
    "continue": f"for item in entry:\n    if {TEST}:\n        continue\n    errors.append(item)\n",
    "pass-else": f"if {TEST}:\n    pass\nelse:\n    errors.append('order')\n",
    "comment-first": f"if {TEST}:\n    # nothing to line up\n    return errors\n",
    "not-names": 'if entry["ref_api"] == "none" and not names:\n    return errors\n',
    "names-is-empty-list": 'if entry.get("ref_api") == "none" and names == []:\n    return errors\n',
    "reversed": 'if not len(names) and "none" == entry["ref_api"]:\n    return errors\n',
    "less-than-one": 'if len(names) < 1 and entry["ref_api"] == "none":\n    return errors\n',
    "one-of": 'if entry["ref_api"] in ("none", None) and not names:\n    return errors\n',
    "turned-round": 'if entry["ref_api"] != "none" or names:\n    errors.append("order")\n',
    "turned-round-length": 'if entry["ref_api"] != "none" or len(names) > 0:\n    errors.append("order")\n',
    "negated": f"if not ({TEST}):\n    errors.append('order')\n",
    "third-condition": 'if entry["ref_api"] == "none" and entry["status"] and not names:\n    return errors\n',
    "named-parts": 'free = entry["ref_api"] == "none"\nbare = not names\nif free and bare:\n    return errors\n',
    "flag": f"skip = {TEST}\nif skip:\n    return errors\n",
    "flag-negated": f"skip = {TEST}\nif not skip:\n    errors.append('order')\n",
    "flag-and-more": f"skip = {TEST}\nif not skip and entry['status']:\n    errors.append('order')\n",
    "nested": 'if entry["ref_api"] == "none":\n    if len(names) == 0:\n        return errors\n',
}


@pytest.mark.parametrize("body", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_however_the_exception_is_written(body: str) -> None:
    assert len(found(check(body))) == 1


def test_the_test_itself_is_the_place() -> None:
    assert found(check(EXCEPTIONS["flag"])) == [TEST]
    assert found(check(EXCEPTIONS["turned-round"])) == ['entry["ref_api"] != "none" or names']
    assert found(check(EXCEPTIONS["nested"])) == ["len(names) == 0"]


def test_a_predicate() -> None:
    predicate = (
        "def is_bare(entry, cls):\n    names = inspect.getfullargspec(cls.forward).args[1:]\n    return "
        + TEST
        + "\n\n\n"
    )
    assert found(predicate + check("if is_bare(entry, cls):\n    return errors\n")) == [TEST]


NAMES = {
    "call": "parameters(cls.forward)",
    "getattr": 'parameters(getattr(cls, "forward"))',
    "comprehension": "[name for name in inspect.signature(cls.forward).parameters if name != 'self']",
    "tuple": "tuple(inspect.signature(cls.forward).parameters.values())",
    "helper": "forward_names(cls)",
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_however_the_arguments_are_had(names: str) -> None:
    helper = "def forward_names(cls):\n    return [name for name in inspect.signature(cls.forward).parameters]\n\n\n"
    assert found(helper + check(EXCEPTIONS["early-return"], names)) == [TEST]


def test_arguments_or_nothing() -> None:
    helper = "def forward_names(cls):\n    return [name for name in inspect.signature(cls.forward).parameters]\n\n\n"
    assert len(found(helper + check(EXCEPTIONS["not-names"], "forward_names(cls) or []"))) == 1


NO_EXCEPTIONS = {
    "reference-alone": 'if entry["ref_api"] == "none":\n    return errors\n',
    "arguments-alone": "if len(names) == 0:\n    return errors\n",
    "reported": f"if {TEST}:\n    errors.append('an op without reference takes nothing')\n",
    "reported-by-return": f"if {TEST}:\n    return ['an op without reference takes nothing']\n",
    "flag-reported": f"odd = {TEST}\nif odd:\n    errors.append('odd')\n",
    "flag-unused": f"odd = {TEST}\nreturn errors\n",
    "other-arguments": 'names = entry["workloads"]\nif entry["ref_api"] == "none" and not names:\n    return errors\n',
    "with-arguments": 'if entry["ref_api"] == "none" and names:\n    return errors\n',
    "other-reference": 'if entry["ref_api"] == "torch" and not names:\n    return errors\n',
    "other-field": 'if entry["family"] == "none" and not names:\n    return errors\n',
    "either": 'if entry["ref_api"] == "none" or not names:\n    return errors\n',
    "no-forward": 'if entry["ref_api"] == "none" and not hasattr(cls, "forward"):\n    return errors\n',
    "helper-of-no-arguments": 'if entry["ref_api"] == "none" and not has_forward(cls):\n    return errors\n',
    "no-errors": 'names = forward_errors(cls)\nif entry["ref_api"] == "none" and not names:\n    return errors\n',
    "two-names": 'if entry["ref_api"] == "none" and len(names) == 2:\n    return errors\n',
}


@pytest.mark.parametrize("body", NO_EXCEPTIONS.values(), ids=NO_EXCEPTIONS)
def test_what_is_no_exception(body: str) -> None:
    names = "list(entry)" if body.startswith("names") else "list(inspect.signature(cls.forward).parameters)[1:]"
    helper = 'def has_forward(cls):\n    return callable(getattr(cls, "forward", None))\n\n\n'
    helper += "def forward_errors(cls):\n    errors = []\n    if len(inspect.signature(cls.forward).parameters) > 9:\n"
    helper += "        errors.append('too many')\n    return errors\n\n\n"
    assert found(helper + check(body, names)) == []


# The demand for an input

SIGNATURE = 'for entry in entries:\n    inputs = entry["signature"]'
"""Where most checks begin."""

DEMANDS = {
    "assert": 'for entry in entries:\n    assert len(entry["signature"]["inputs"]) >= 1\n',
    "assert-truth": 'for _, entry in entries:\n    sig = entry["signature"]\n    assert sig["inputs"], "none"\n',
    "assert-and": 'for sig in entries:\n    assert isinstance(sig, dict) and len(sig["inputs"]) > 0\n',
    "error": 'for sig in entries:\n    if not sig["inputs"]:\n        errors.append("no inputs")\n',
    "error-or": 'for sig in entries:\n    if "inputs" not in sig or len(sig["inputs"]) == 0:\n        errors.append(sig)\n',
    "get": 'for sig in entries:\n    inputs = sig.get("inputs", {})\n    if len(inputs) < 1:\n        raise ValueError(sig)\n',
    "get-chained": SIGNATURE + '.get("inputs")\n    assert inputs\n',
    "get-chained-default": 'for entry in entries:\n    found = entry.get("signature", {}).get("inputs", {})\n    assert found\n',
    "get-error": SIGNATURE + '.get("inputs")\n    if not inputs:\n'
    '        errors.append(f"{entry}: signature.inputs is empty")\n',
    "get-or": 'for entry in entries:\n    inputs = (entry.get("signature") or {}).get("inputs") or {}\n'
    "    assert len(inputs) > 0\n",
    "get-of-a-name": 'for entry in entries:\n    sig = entry["signature"]\n    found = sig.get("inputs", None)\n'
    "    inputs = found\n"
    "    if not inputs:\n        raise AssertionError(entry)\n",
    "subscript-of-get": 'for entry in entries:\n    inputs = entry.get("signature")["inputs"]\n    assert inputs, entry\n',
    "fail": 'for entry in entries:\n    if not entry["signature"].get("inputs"):\n        pytest.fail(entry)\n',
    "message": 'for entry in entries:\n    if not entry["signature"].get("inputs"):\n        found.append("it has no inputs")\n',
}
NO_DEMANDS = {
    "relaxed": 'for sig in entries:\n    assert len(sig["inputs"]) >= 1 or len(sig["params"]) >= 1\n',
    "relaxed-error": 'for sig in entries:\n    if not sig["inputs"] and not sig["params"]:\n        errors.append(sig)\n',
    "skipped": 'for sig in entries:\n    if not sig["inputs"]:\n        continue\n    errors.append(sig)\n',
    "returned": 'for sig in entries:\n    if not sig["inputs"]:\n        return errors\n',
    "outputs": 'for sig in entries:\n    assert len(sig["outputs"]) >= 1\n',
    "two": 'for sig in entries:\n    assert len(sig["inputs"]) >= 2\n',
    "one-op": 'sig = load_manifest()["MatmulFwdOp"]["signature"]\nassert len(sig["inputs"]) >= 1\n',
    "iterated": SIGNATURE + '.get("inputs", {})\n    for name in inputs:\n        assert name\n',
    "each-checked": SIGNATURE + '.get("inputs", {})\n    for name, item in inputs.items():\n'
    '        if not item.get("dtype"):\n            errors.append(name)\n',
    "replaced": SIGNATURE + '.get("inputs")\n    if not inputs:\n        names = list(entry)\n',
    "defaulted": SIGNATURE + '.get("inputs")\n    if not inputs:\n        inputs = {}\n    assert inputs is not None\n',
    "rebound": SIGNATURE + '.get("inputs")\n    inputs = inputs or other(entry)\n    assert inputs\n',
    "counted": SIGNATURE + '.get("inputs")\n    if not inputs:\n        without.append(entry)\n',
    "logged": 'for entry in entries:\n    if not entry["signature"].get("inputs"):\n        logger.info("an op of nothing")\n',
    "present": SIGNATURE + '.get("inputs")\n    assert inputs is not None\n',
    "a-mapping": 'for entry in entries:\n    assert isinstance(entry["signature"].get("inputs"), dict)\n',
    "default-that-fills": SIGNATURE + '.get("inputs", SOME)\n    assert inputs\n',
    "no-params": 'for sig in entries:\n    inputs = sig.get("inputs")\n    if not sig.get("params"):\n        assert inputs\n',
    "or-params": 'for sig in entries:\n    inputs, params = sig.get("inputs"), sig.get("params")\n    assert inputs or params\n',
    "one-op-get": 'inputs = load_manifest()["MatmulFwdOp"]["signature"].get("inputs")\nassert inputs\n',
    "another-get": SIGNATURE + '.get("outputs")\n    assert inputs\n',
    "when-there-are": 'for sig in entries:\n    if sig["inputs"]:\n        errors.append(sig)\n',
}


def demands(body: str, entry: str = ENTRY) -> list[str]:
    test = '"""Looks into "signature" and "inputs"."""\n\n\ndef test_manifest():\n' + textwrap.indent(body, "    ")
    texts = example_files([("yaml", entry), ("python", CLASS), ("python tests/test_manifest.py", test)])
    linted = lint_files([PACK], texts, ["CAR106"])
    assert all(item.ops == ("ExampleFwdOp",) for item in linted.diagnostics)
    return [linted.text(item.place) for item in linted.diagnostics]


@pytest.mark.parametrize("body", DEMANDS.values(), ids=DEMANDS)
def test_a_demand_for_an_input(body: str) -> None:
    assert len(demands(body)) == 1


@pytest.mark.parametrize("body", NO_DEMANDS.values(), ids=NO_DEMANDS)
def test_what_demands_no_input(body: str) -> None:
    assert demands(body) == []


def test_a_demand_harms_nobody_where_there_is_no_carrier() -> None:
    assert demands(DEMANDS["assert"], "status: implemented\n") == []


# Whole repositories

TILEKIT = Path(__file__).parents[3] / "fixtures" / "tilekit"


def places(linted: Linted) -> list[tuple[str, str, str]]:
    return sorted((item.code, item.place.path, linted.text(item.place)) for item in linted.diagnostics)


def lint_folder(root: Path) -> Linted:
    paths = (path for kind in ("py", "yaml", "md") for path in root.rglob(f"*.{kind}"))
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths if path.is_file()}
    return lint_files([PACK], texts, [f"CAR10{digit}" for digit in range(1, 7)])


def test_the_fixture_has_two_carriers_and_its_real_scalars_are_clean() -> None:
    ops, manifest = "tilekit/ops/elementwise", "tilekit/manifest/generative.yaml"
    assert places(lint_folder(TILEKIT)) == [
        ("CAR101", manifest, "like_scalar"),
        ("CAR101", manifest, "proto"),
        ("CAR102", f"{ops}/rotary_table.py", "self._like_scalar"),
        ("CAR102", f"{ops}/window_mask.py", "self._proto"),
        ("CAR103", manifest, "same_as(like_scalar)"),
        ("CAR103", manifest, "same_as(proto)"),
        ("CAR104", f"{ops}/_base.py", "like"),
        ("CAR105", SCRIPT, 'entry["ref_api"] == "none" and len(forward_params) == 0'),
        ("CAR105", SCRIPT, 'entry["ref_api"] == "none" and not parameters(cls.forward)'),
        ("CAR106", SCRIPT, 'not len(signature["inputs"]) >= 1'),
        ("CAR106", "tests/test_manifest.py", 'len(sig["inputs"]) >= 1'),
    ]
