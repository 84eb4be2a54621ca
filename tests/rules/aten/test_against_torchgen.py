"""The pack's findings against torchgen itself: the same mutated trees are read by torchgen and linted.

What torchgen refuses has an error finding at the mutated characters; an error finding of what it takes is one of
``ONLY_OURS``, which says why the rule is right. ``OPSCHEMA_MUTANTS`` is how many are tried, ``OPSCHEMA_SEED`` which.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.source.text import Place
from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.mutated_cases import cases
from tests.rules.aten.mutations import Mutant, Range, mutants
from tests.rules.aten.oracle import (
    BACKEND,
    DERIVATIVES,
    NATIVE,
    RELEASE,
    TAGS,
    Refusal,
    emission_refusal,
    installed,
    refusal,
)
from tests.rules.aten.plots import families, plot, with_backend

pytestmark = pytest.mark.skipif(RELEASE != "2.13", reason="what is written down is of torch 2.13")

COUNT = int(os.environ.get("OPSCHEMA_MUTANTS", "40"))
SEED = int(os.environ.get("OPSCHEMA_SEED", "20261121"))

#: Errors that torchgen does not see, by code and a pattern of the message: why they are errors all the same.
ONLY_OURS: tuple[tuple[str, str, str], ...] = (
    ("ATN102", "`__line__`", "torchgen keeps an entry's line under this key, over whatever is written there"),
    ("ATN132", "has no kernel|is the name of", "an empty kernel gives C++ that calls nothing; `__line__` is dropped"),
    ("ATN133", "not a name of a C\\+\\+ function", "torchgen pastes the kernel's name into C++ as it is"),
    ("ATN134", "", "a dispatch key that comes twice in keys with commas: the last one wins"),
    ("ATN153", "not a name of a class|is empty", "torchgen pastes the name of the base class into C++ as it is"),
    (
        "ATN162",
        "cannot be replaced|argument of the kernel|declared twice|has no argument",
        "the kernel would not compile",
    ),
    ("ATN154", "is not a name of an operator", "torchgen takes any characters for a name; Python and C++ do not"),
    ("ATN201", "", "torchgen's patterns take any characters for a name or a default"),
    ("ATN202", "", "torchgen's patterns take a space for a part of a name or a default"),
    ("ATN203", "", "torchgen takes any characters for a name; Python and C++ do not"),
    ("ATN204", "", "a type of torchgen's own that the dispatcher's schemas have not"),
    ("ATN206", "", "torchgen pastes defaults into C++ as they are, in any order"),
    ("ATN207", "two arguments are called", "C++ does not compile"),
    (
        "ATN301",
        "with another schema",
        "torchgen compares the operators of two entries only where a dispatch key has kernels of both",
    ),
    ("ATN305", "", "torchgen looks at the kernels of a group's out variant only"),
    ("ATN332", "", "`autogen` of what is never generated is not compared with anything"),
    ("ATN334", "", "torchgen reads `autogen` into a set"),
    ("ATN402", "no dispatch key|empty text|blank text", "the entry gives no derivative, without a word"),
    ("ATN404", "", "torchgen drops what stands beside `dispatch`"),
    ("ATN407", "", "torchgen takes the last of several entries, and drops the others"),
    ("ATN409", "", "the out variant's entry becomes the functional one's, since both have one signature"),
    ("ATN411", "", "`result0` of a single output is never written, and of several names one that is right is enough"),
    ("ATN412", "", "a name twice in a key gives two assignments; the last one wins"),
    ("ATN421", "", "the gradient of an output that is said to have none is not there when it runs"),
    ("ATN424", "", "C++ does not compile: the mask is declared only for formulas of several arguments"),
    ("ATN428", "", "C++ does not compile"),
    ("ATN432", "is for outputs", "C++ does not compile: the word is only replaced in forward formulas"),
    ("ATN434", "", "the formula of an output that is said to have no derivative is dropped"),
    (
        "ATN441",
        "a list with a boolean|this must be a boolean|a condition in C",
        "torchgen asks only whether a value counts as true, and takes an empty list for none given",
    ),
    (
        "ATN501",
        "no name in C\\+\\+|describes the meaning of the tag|empty text",
        "C++ does not compile; a tag without a word of explanation",
    ),
    ("ATN502", "", "torchgen reads the tags into a set"),
    ("ATN503", "", "torchgen never looks at other fields"),
    ("ATN603", "is none|is a name, and", "torchgen pastes the names into C++ as they are"),
    (
        "ATN605",
        "",
        "read by `gen_lazy_tensor` only, which refuses it; a mapping or text passes for a list of its parts",
    ),
    ("ATN606", "", "read by `gen_lazy_tensor` only, or never looked up (`symint`)"),
    ("ATN611", "", "names in `symint` and `ir_gen` are never looked up"),
    ("ATN612", "", "names in `symint` and `ir_gen` are never looked up"),
    ("ATN613", "", "torchgen reads the lists into a mapping by operator"),
    ("ATN622", "", "names in `symint` are looked up only for what is in another list"),
    ("ATN631", "", "read by `gen_lazy_tensor` only, which refuses it"),
    ("ATN621", "", "names in `symint` are looked up only for what is in another list"),
)

#: What torchgen refuses and no rule can see, by a pattern of torchgen's words: why.
UNSEEN: Mapping[str, str] = {
    "'dict' object has no attribute 'endswith'": "items that are mappings are what PyTorch PR #172539 brings",
}

#: Faults between two places, by a pattern of torchgen's words: how far off the other place may be, and which it is.
ELSEWHERE: tuple[tuple[str, int, str], ...] = (
    (
        "Error: while |Error: did not find|Error: mapping values|Error: block|Error: found",
        2,
        "where libyaml stops reading",
    ),
    ("control characters are not allowed", 2, "the file is binary"),
    ("^KeyError: '(name|tag)|[Mm]issed 'func'|You must provide a value", 1, "the entry that a field is missing in"),
    ("[Ee]xpected to be dict: None|has no attribute 'pop'", 1, "the entry that all fields are missing in"),
    ("unknown dispatch key|leftover entries", 1, "a field that a changed line makes a part of another"),
    ("an out= operator that we could not find any other variants of", 2, "the out variant that has lost its partner"),
    ("The codegen expects to be able to generate", 2, "`autogen` of the entry that it is generated for"),
    ("Generated NativeFunctions should have been", 2, "`autogen` of the entry that it is generated for"),
    ("is marked as a structured_delegate pointing to", 2, "the entry that delegates"),
    ("structured and unstructured functions", 2, "another entry of the group"),
    ("functional variant is required", 2, "another entry of the group"),
    ("delegates to .* but its actual delegate", 2, "the entry that delegates"),
    ("appears to be a view_copy operator", 1, "the entry that lacks the tag"),
    ("appears to be a new operator that aliases", 2, "the view that has no copy"),
    ("must either both have Composite", 1, "the table that the kernel is missing in, or is too many in"),
    ("dispatch entry, but there was no dispatch table", 1, "the operator that lacks the table"),
    ("Expected metadata for view_copy kernel", 1, "the copy that lacks a kernel"),
    ("kernel or non-modifying function|^AssertionError: $", 2, "the operator that writes and is in no group"),
    ("number of forward derivatives implemented|=False for inplace", 1, "the outputs that another key tells of"),
    (
        "we expect them to not be returned",
        1,
        "`autogen`, which asks for a variant whose out arguments take the letters in turn",
    ),
    ("incomplete tensor options args", 1, "the arguments that are a factory's"),
    ("tag missing for", 1, "the name or argument that asks for a tag"),
    ("Invalid cpp_no_default_args", 1, "the list that names an argument"),
    ("illegal tag", 3, "where a tag is used that tags.yaml has no longer"),
    ("has an argument named|to not be both an input", 3, "the entry of derivatives.yaml"),
    ("could not find ATen function for schema", 3, "the copy of the schema in derivatives.yaml"),
    ("There's a formula for", 3, "the entry of derivatives.yaml"),
    ("should have a differentiability info", 3, "the operator over lists that uses the derivative of another"),
    ("foreach_arg_type|'strides_or_error", 3, "the same, or the derivative"),
    (
        "definition of gradient as|Cannot use auto_|at least one differentiable|No differentiable input",
        1,
        "a formula made of others",
    ),
    ("is using the base name of the", 1, "the key of a formula or its name, either of which makes it a forward one"),
    ("we found an out schema", 2, "the out variant that has no Python signature to go with"),
    ("dtype in tensor_options_args", 1, "the operator that is said to be a factory"),
    ("attempted to define symint kernel", 3, "the list that names the operator, or its kernel"),
    ("Found an invalid operator name", 3, "a list that names the operator"),
)

Verdict: TypeAlias = Literal["both accept", "both refuse", "missed", "only ours", "misplaced", "crashed"]


class Judged(NamedTuple):
    """A mutant, torchgen's complaint and our findings; ``far`` is how far off the nearest error is: 0 at the mutated
    characters or in the fields that they are in, 1 in the entry, 2 in the file, 3 in another file.
    """

    mutant: Mutant
    refusal: Refusal | None
    findings: list[Diagnostic]
    verdict: Verdict
    far: int

    def __str__(self) -> str:
        mutant = self.mutant
        said = f"{self.refusal.phase}: {self.refusal.kind}: {self.refusal.message}" if self.refusal else "takes it"
        lines = [f"{self.verdict} ({mutant.path}, {mutant.kind}, distance {self.far})", f"  torchgen {said[:500]}"]
        lines += [
            f"  opschema {item.severity.value} {item.code} at {item.place.path}:{item.place.span.start} "
            f"{_shown(mutant.files, item.place)}: {item.message}"
            for item in self.findings
        ]
        for change, region in zip(mutant.changes, mutant.regions, strict=True):
            lines.append(f"  at {region.start}: -> {change.text[:300]!r}")
        lines += [_context(mutant.text, place) for place in mutant.entries[:2] or mutant.regions[:2]]
        return "\n".join(lines)


def _shown(files: Mapping[str, str], place: Place) -> str:
    return repr(files.get(place.path, "")[place.span.start : place.span.end][:80])


def _context(text: str, place: Range) -> str:
    lines = text[place.start : place.end].splitlines()[:25]
    return "\n".join(f"    | {line[:220]}" for line in lines)


def by_hand() -> Iterator[Mutant]:
    """Mutants that are written down."""
    for case in cases():
        yield case.mutant()


def trees(count: int, seed: int) -> Iterator[Mutant]:
    """Mutants of small trees."""
    chance = random.Random(seed)
    names = sorted(families())
    rare = [name for name in names if any(word in block.text for block in families()[name] for word in RARE)]
    for _ in range(count):
        path = chance.choices([NATIVE, DERIVATIVES, BACKEND, TAGS], [60, 20, 16, 4])[0]
        taken = chance.sample(rare if chance.random() < 0.2 else names, 2)
        files = with_backend(taken, chance) if path == BACKEND else plot(taken)
        if path != DERIVATIVES and chance.random() < 0.7:  # they take torchgen longer than all the rest
            del files[DERIVATIVES]
        yield next(mutants(files, path, chance))


RARE = ("precomputed", "ufunc_inner_loop", "cpp_no_default_args", "category_override", "manual_", "(a!)[]", "autogen")
"""Features that few entries have."""


def judge(mutant: Mutant, *, emission: bool = False, lowest: Severity = Severity.ERROR) -> Judged:
    """Both verdicts. ``emission`` asks torchgen's writing code about everything, else only about what we alone refuse;
    findings of the severity ``lowest`` and above are refusals of ours.
    """
    refused = refusal(mutant.files)
    linted = lint_files([PACK], {**mutant.files, "requirements.txt": f"torch=={RELEASE}\n"})
    errors = [item for item in linted.diagnostics if item.severity.rank >= lowest.rank]
    if refused is None and (emission or not all(map(only_ours, errors))):
        refused = emission_refusal(mutant.files)
    far = min((_distance(mutant, item) for item in errors), default=9)
    return Judged(mutant, refused, linted.diagnostics, _verdict(refused, errors, far), far)


def only_ours(item: Diagnostic) -> bool:
    """Whether torchgen is known not to see it."""
    return any(item.code == code and re.search(pattern, item.message) for code, pattern, _ in ONLY_OURS)


def _verdict(refused: Refusal | None, errors: list[Diagnostic], far: int) -> Verdict:
    if any(item.code.startswith("OPS9") for item in errors):
        return "crashed"
    if refused is None:
        return "both accept" if all(map(only_ours, errors)) else "only ours"
    if not errors:
        return (
            "both refuse"
            if any(re.search(known, f"{refused.kind}: {refused.message}") for known in UNSEEN)
            else "missed"
        )
    return "misplaced" if far > _allowed(refused) else "both refuse"


def _allowed(refused: Refusal) -> int:
    """How far off a finding may be."""
    said = f"{refused.kind}: {refused.message}"
    return max((far for pattern, far, _ in ELSEWHERE if re.search(pattern, said)), default=0)


def _distance(mutant: Mutant, item: Diagnostic) -> int:
    """How far a finding is from the mutated characters, the nearest of its sides in the file."""
    sides = [item.place, *(other.place for other in item.related)] if item.place.path == mutant.path else [item.place]
    return min(_off(mutant, place) for place in sides)


def _off(mutant: Mutant, place: Place) -> int:
    if place.path != mutant.path:
        return 3
    span = Range(place.span.start, place.span.end)
    if any(span.touches(near) for near in (*mutant.regions, *mutant.fields)):
        return 0
    return 1 if any(span.touches(near) for near in mutant.entries) else 2


def _agree(judged: list[Judged], *wrong: Verdict) -> None:
    found = [item for item in judged if item.verdict in wrong]
    if found:
        shown = "\n\n".join(map(str, found[:20]))
        pytest.fail(f"{len(found)} of {len(judged)} mutants are {' or '.join(wrong)}:\n\n{shown}", pytrace=False)


@cache
def judged() -> list[Judged]:
    return [judge(mutant) for mutant in (*by_hand(), *trees(COUNT, SEED))]


def test_no_rule_crashes() -> None:
    _agree(judged(), "crashed")


def test_what_torchgen_refuses_is_an_error() -> None:
    _agree(judged(), "missed")


def test_the_error_stands_at_what_was_changed() -> None:
    _agree(judged(), "misplaced")


def test_what_torchgen_takes_is_an_error_only_where_it_is_blind() -> None:
    _agree(judged(), "only ours")


def test_every_blindness_is_met() -> None:
    codes = {item.code for one in judged() for item in one.findings if one.refusal is None}
    assert {code for code, _, _ in ONLY_OURS} <= codes


def test_the_mutants_are_of_both_kinds() -> None:
    refused = sum(1 for item in judged() if item.refusal is not None)
    assert len(judged()) // 2 < refused < len(judged())


def test_nothing_is_found_in_a_plot() -> None:
    chance = random.Random(SEED)
    for _ in range(40):
        names = chance.sample(sorted(families()), 12)
        found = [item for item in lint_files([PACK], with_backend(names, chance)).diagnostics if item.code not in LEGAL]
        assert found == [], names


LEGAL = {"ATN615"}
"""Notes on what is as it should be, in a backend's file that lists whatever there is."""


def test_a_broken_entry_hides_no_other() -> None:
    """A rule finds the same in an entry next to a broken one as in the entry alone."""
    behind = len(plot(())[NATIVE])
    mutants_of = [item for item in judged() if _is_whole(item, behind)]
    for one, other in zip(mutants_of[::2], mutants_of[1::2], strict=False):
        files = {**one.mutant.files, NATIVE: one.mutant.text.rstrip() + "\n\n" + other.mutant.text[behind:]}
        found = Counter(_alone(lint_files([PACK], files).diagnostics))
        assert Counter([*_alone(one.findings), *_alone(other.findings)]) <= found, files[NATIVE]


def _is_whole(item: Judged, behind: int) -> bool:
    """Whether a mutant's file is native_functions.yaml, changed in an entry, and still YAML."""
    mutant = item.mutant
    inside = mutant.path == NATIVE and all(place.start > behind for place in mutant.regions)
    return inside and item.verdict == "both refuse" and bool(_alone(item.findings)) and "*" not in mutant.kind


def _alone(findings: list[Diagnostic]) -> list[tuple[str, str]]:
    """The findings in single entries."""
    return [(item.code, item.message) for item in findings if re.match("ATN[12]", item.code)]


@pytest.mark.parametrize("number", range(2))
def test_the_whole_file(number: int) -> None:
    """The same with all of PyTorch's operators, and no derivatives, which takes torchgen a second."""
    files = {name: installed(name) for name in (NATIVE, TAGS)}
    _agree([judge(next(mutants(files, NATIVE, random.Random(SEED + number))))], "missed", "misplaced", "crashed")


@pytest.mark.corpus
@pytest.mark.skipif("OPSCHEMA_CORPUS" not in os.environ, reason="OPSCHEMA_CORPUS is not set")
def test_the_file_of_pytorch_xla() -> None:
    path = Path(os.environ["OPSCHEMA_CORPUS"]) / "aten/xla-head/codegen/xla_native_functions.yaml"
    if not path.is_file():
        pytest.skip("aten/xla-head is not below OPSCHEMA_CORPUS")
    drawn = mutants({BACKEND: path.read_text(encoding="utf-8")}, BACKEND, random.Random(SEED))
    # Nothing says that the installed torch is the one that it is written for, so that its findings are warnings.
    found = [judge(next(drawn), lowest=Severity.WARNING) for _ in range(min(80, max(20, COUNT // 10)))]
    _agree(found, "missed", "misplaced", "only ours", "crashed")
