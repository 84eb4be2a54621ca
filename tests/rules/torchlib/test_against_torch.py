"""The pack's findings against torch itself: the same modules are linted, and imported and called for real.

What torch takes and handles rightly has no error finding; what it refuses, or gets wrong without a word, has a finding of a rule
that is for that. ``FINDS`` says which rule is for what: a rule that comes is entered there, and one that goes breaks the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK
from tests.rules.torchlib.cases import make
from tests.rules.torchlib.oracle import Case, Fault, judge
from tests.rules.torchlib.semantics import probes

ARGUMENTS = ("arguments", "wrong-value", "wrong-metadata", "body")


def _of(phase: str, *kinds: str) -> frozenset[tuple[str, str]]:
    return frozenset((phase, kind) for kind in kinds)


#: The faults that a rule reports, by phase and kind: of several rules for a fault, one must tell of it.
FINDS: Mapping[str, frozenset[tuple[str, str]]] = {
    "REG101": _of("registration", "missing-annotation"),
    "REG102": _of("registration", "parameter-kind"),
    "REG103": _of("registration", "parameter-type", "tuple-parameter"),
    "REG104": _of("registration", "return-type"),
    "REG105": _of("registration", "string-annotation", "parameter-type", "return-type"),
    "REG106": _of("registration", "default-value"),
    "REG108": _of("registration", "mutates-args"),
    "REG109": _of("registration", "mutates-schema"),
    "REG110": _of("registration", "schema-text", "schema-form"),
    "REG111": _of("registration", "name"),
    "REG112": _of("registration", "namespace"),
    "REG113": _of("registration", "duplicate"),
    "REG114": _of("registration", "tag"),
    "REG115": _of("registration", "keyword-only-tensor"),
    "REG116": _of("registration", "no-device", "device-type") | _of("real", "index"),
    "REG118": _of("registration", "unknown-op"),
    "REG120": _of("registration", "name"),
    "REG119": _of("registration", "namespace", "device-type"),
    "REG121": _of("registration", "no-function"),
    "REG122": _of("registration", "registering-call"),
    "REG201": _of("fake", *ARGUMENTS),
    "REG202": _of("real", *ARGUMENTS),
    "REG203": _of("real", *ARGUMENTS),
    "REG204": _of("vmap", *ARGUMENTS),
    "REG205": _of("fake", "wrong-metadata") | _of("real", "wrong-value") | _of("vmap", "wrong-value"),
    "REG209": _of("registration", "composite-fake"),
    "REG210": _of("fake", "returned-value", "wrong-count") | _of("real", "returned-value") | _of("process", "died"),
    "REG211": _of("fake", "body"),
    "REG301": _of("backward", "gradient-count", "gradient-value"),
    "REG302": _of("backward", "arguments"),
    "REG303": _of("backward", "arguments"),
    "REG304": _of("backward", "unpacking"),
    "REG306": _of("registration", "non-functional"),
    "REG307": _of("backward", "gradient-value"),
    "REG308": _of("backward", "saved-value"),
    "REG401": _of("real", "call-arguments"),
    "REG402": _of("real", "alias"),
    "REG403": _of("real", "undeclared-mutation"),
}

#: What a rule may rightly tell of beside that, where torch's words do not say what is wrong.
ALSO: Mapping[str, frozenset[tuple[str, str]]] = {
    "REG106": _of("registration", "schema-text"),
    "REG107": _of("real", "call-arguments") | _of("fake", "call-arguments") | _of("registration", "schema-text"),
    "REG108": _of("registration", "registering-call"),
    "REG110": _of("registration", "unknown-op"),
    "REG111": _of("registration", "schema-text", "unpacking"),
    "REG115": _of("registration", "tag"),
    "REG303": _of("registration", "registering-call"),
    "REG206": _of("fake", "no-fake"),
    "REG207": _of("registration", "duplicate"),
    "REG208": _of("registration", "duplicate"),
    "REG210": _of("real", "wrong-value"),
}

#: Faults that no reader of the text can be sure of, by the case's title: why.
UNSEEN: Mapping[str, str] = {
    "call None, 1": "None passes for a Tensor; it is the body that fails",
    "fake None for the default": "functions take None for whatever they like",
    "kernel None for the default": "functions take None for whatever they like",
    "kernel None for the keyword default": "functions take None for whatever they like",
    "vmap None for the default": "functions take None for whatever they like",
    "result x.contiguous()": "a copy or not, as the argument is laid out",
    "kernel result x.contiguous()": "a copy or not, as the argument is laid out",
    "result x.to(torch.float32)": "a copy or not, as the argument's dtype is",
    "kernel result x.to(torch.float32)": "a copy or not, as the argument's dtype is",
    "result x.reshape(-1)": "a copy or not, as the argument is laid out",
    "kernel result x.reshape(-1)": "a copy or not, as the argument is laid out",
    "backward to a list g, None": "`None` may be meant where no tensor of the list needs a gradient",
    "backward to a list g, []": "an empty list may be meant for an empty one",
    "fake of Tuple[Tensor, Tensor] gives torch.empty_like(x), None": "operators return `None` for what they do not make",
}

#: Faults that no rule is for, by the case's title: why.
WITHOUT_RULE: Mapping[str, str] = {
    "type 'List[str'": "an annotation in quotes that is not a Python",
    "default int 2**70": "how large a computed number is is not told",
    "result None as Tensor": "a kernel that returns nothing where `return` says so: it may be a branch that is never taken",
    "result x.clone() as Tuple[Tensor, Tensor]": "whether `x.clone()` is a tensor is known by name alone",
    "result x.clone() as List[Tensor]": "whether `x.clone()` is a tensor is known by name alone",
    "result x.clone() as None": "whether `x.clone()` is a tensor is known by name alone",
    "result x.clone() as tuple[Tensor]": "whether `x.clone()` is a tensor is known by name alone",
    "result 1.5 as int": "values are not typed",
    "fake override": "`allow_override=False` is not read",
    "Meta override": "`allow_override=False` is not read",
    "fake of nothing": "the namespace may be another package's",
    "autograd of nothing": "the namespace may be another package's",
    "vmap of nothing": "the namespace may be another package's",
    "call x, *[1, 'q', None, True, 0.5]": "unpacked arguments are not counted",
}

pytestmark = pytest.mark.skipif(
    not version("torch").startswith("2.13."), reason="what is written down is of torch 2.13"
)


@cache
def cases() -> dict[str, Case]:
    return {case.name: case for case in make()}


@cache
def verdicts() -> dict[str, list[Fault]]:
    """What torch makes of the cases, and of the probes of what is written down."""
    return judge([*cases().values(), *probes()])


@cache
def findings() -> dict[str, list[Diagnostic]]:
    """The findings of each case; all stand in one tree, each in a namespace of its own."""
    files = {_path(case): case.source for case in cases().values()}
    linted = lint_files([PACK], {**files, "requirements.txt": f"torch=={version('torch')}\n"})
    found: dict[str, list[Diagnostic]] = {name: [] for name in cases()}
    for item in linted.diagnostics:
        found.setdefault(item.place.path.removeprefix("kit/").removesuffix(".py"), []).append(item)
    return found


def _path(case: Case) -> str:
    return f"kit/{case.name}.py"


def _shown(case: Case, said: str) -> str:
    """A disagreement: what is said, and the source that it is about."""
    faults = "\n".join(f"  torch, {fault.phase}: {fault.kind}: {fault.message}" for fault in verdicts()[case.name])
    told = "\n".join(f"  opschema: {item.code}: {item.message}" for item in findings()[case.name])
    return "\n".join(
        filter(None, [f"{case.name} ({case.title}): {said}", faults or "  torch: fine", told, case.source])
    )


def _meant(code: str) -> frozenset[tuple[str, str]]:
    return FINDS.get(code, frozenset()) | ALSO.get(code, frozenset())


def _false_alarms() -> Iterator[str]:
    for name, case in cases().items():
        faults = {(fault.phase, fault.kind) for fault in verdicts()[name]}
        for item in findings()[name]:
            if item.severity is Severity.ERROR and not faults & _meant(item.code):
                yield _shown(case, f"{item.code} is " + ("a false alarm" if _meant(item.code) else "not in FINDS"))


def _missed() -> Iterator[str]:
    for name, case in cases().items():
        codes = {item.code for item in findings()[name]}
        for fault in verdicts()[name]:
            meant = {code for code, kinds in FINDS.items() if (fault.phase, fault.kind) in kinds}
            told = any((fault.phase, fault.kind) in _meant(code) for code in codes)
            if meant and not told and case.title not in UNSEEN and case.title not in WITHOUT_RULE:
                yield _shown(
                    case, f"nothing tells of {fault.phase} {fault.kind} (meant for {', '.join(sorted(meant))})"
                )


def _agree(disagreements: list[str]) -> None:
    if disagreements:
        pytest.fail(f"{len(disagreements)} disagreements with torch:\n\n" + "\n\n".join(disagreements), pytrace=False)


def test_what_torch_handles_rightly_has_no_error() -> None:
    _agree(list(_false_alarms()))


def test_what_torch_refuses_or_gets_wrong_is_found() -> None:
    _agree(list(_missed()))


def test_every_finding_is_in_a_case() -> None:
    assert not [item.message for name, items in findings().items() if name not in cases() for item in items]


def test_every_rule_that_is_relied_on_is_there() -> None:
    codes = {rule.code for rule in PACK.rules}
    assert FINDS.keys() <= codes


def test_every_rule_relied_on_finds_something() -> None:
    found = {item.code for items in findings().values() for item in items}
    assert FINDS.keys() <= found


def test_the_oracle_knows_what_torch_says() -> None:
    unknown = [(name, fault) for name, faults in verdicts().items() for fault in faults if fault.kind == "other"]
    assert not unknown


def test_torch_does_as_is_written_down() -> None:
    wrong = [(case.title, fault.message) for case in probes() for fault in verdicts()[case.name]]
    assert not wrong
