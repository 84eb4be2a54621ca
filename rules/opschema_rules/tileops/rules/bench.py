"""An entry's declaration of its benchmark, against the benchmark's code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.readings import Reading
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.model import Manifest, OpEntry

WORKLOADS = ("load_workloads", "workloads_to_params")
"""Functions that return the workload rows of the op named in their first argument."""

What = Literal["workloads", "roofline"]
_EACH: tuple[What, What] = ("workloads", "roofline")

REPORTS = ("ManifestBenchmark",)
"""Classes that report the roofline of the op that their first argument names."""


@rule("BEN101", "bench-declared", pure=True)
def bench_declared(entry: OpEntry) -> Iterator[Diagnostic]:
    """An implemented op does not declare that its benchmark is driven by the manifest.

    Without `bench_manifest_driven: true`, it is not checked whether the benchmark uses the manifest's workloads and
    roofline. An implemented op that names a benchmark must declare it. This is checked if the tree's specification requires
    it.

    Bad:

    ```yaml
    source:
      bench_manifest_driven: false
    ```

    Good, without a benchmark:

    ```yaml
    status: spec-only
    source:
      bench_manifest_driven: false
    ```
    """
    flag = entry.get("source", "bench_manifest_driven")
    if entry.doubtful("source", "bench_manifest_driven"):
        return
    if not entry.implemented or not entry.text_at("source", "bench") or not entry.manifest.spec.knows("bench-declared"):
        return
    key = entry.key_of("source", "bench_manifest_driven") or entry.key_of("source", "bench")
    if key is not None and (flag is None or entry.data_at("source", "bench_manifest_driven") is False):
        stated = (
            "says `bench_manifest_driven: false`" if flag is not None else "does not say `bench_manifest_driven: true`"
        )
        text = f"the entry is implemented and {stated}, so nothing holds its benchmark to the manifest"
        yield Diagnostic(text, entry.at(flag if flag is not None else key), ops=(entry.name,))


@rule("BEN102", "bench-workloads")
def bench_workloads(manifest: Manifest) -> Iterator[Diagnostic]:
    """A benchmark does not take its workloads from the op's entry.

    The file that `source.bench` names must call `load_workloads` or `workloads_to_params` with the op's name, so that what
    is measured is what the manifest declares. The name may be written in the call or be a constant of the module. If the
    file passes on the op's name in other ways, or the argument is computed, nothing is reported.

    An error with `bench_manifest_driven: true`. Without it a warning, for implemented ops of trees whose specification
    demands the declaration.

    Bad:

    ```python benchmarks/bench_example.py
    from kit.manifest import load_workloads

    for workload in load_workloads("AnotherFwdOp"):
        op = make(workload)
        op.eval_roofline()
    ```

    Bad, in a comment:

    ```python benchmarks/bench_example.py
    from kit.manifest import load_workloads

    # rows = load_workloads("ExampleFwdOp")
    for shape in [(1, 2), (3, 4)]:
        op = make(shape)
        op.eval_roofline()
    ```

    Good:

    ```python benchmarks/bench_example.py
    from benchmarks.benchmark_base import ManifestBenchmark, workloads_to_params

    NAME = "ExampleFwdOp"


    def run():
        for shape, dtype in workloads_to_params(
            NAME,
        ):
            ManifestBenchmark(NAME, make(shape, dtype)).run()
    ```

    Good, passed on:

    ```python benchmarks/bench_example.py
    from kit.manifest import load_workloads


    def run(name):
        for workload in load_workloads(name):
            make(workload).eval_roofline()


    run("ExampleFwdOp")
    ```
    """
    for case in _failing(manifest, "workloads"):
        name = case.entry.name
        text = (
            f"`{case.node.value}` never calls `load_workloads` with `{name}`, so its workloads are not the manifest's"
        )
        yield _diagnostic(case, text)


@rule("BEN103", "bench-roofline")
def bench_roofline(manifest: Manifest) -> Iterator[Diagnostic]:
    """A benchmark does not report the op's roofline.

    The file that `source.bench` names must call `eval_roofline()` on an op, or make a `ManifestBenchmark` with the op's
    name; figures that are computed elsewhere are not what the manifest declares. If the file passes on the op's name in
    other ways, nothing is reported.

    An error with `bench_manifest_driven: true`. Without it a warning, for implemented ops of trees whose specification
    demands the declaration.

    Bad:

    ```python benchmarks/bench_example.py
    from kit.manifest import load_workloads

    for workload in load_workloads("ExampleFwdOp"):
        make(workload)
    ```

    Good:

    ```python benchmarks/bench_example.py
    from kit.manifest import load_workloads

    for workload in load_workloads("ExampleFwdOp"):
        flops, moved = make(workload).eval_roofline()
    ```
    """
    for case in _failing(manifest, "roofline"):
        yield _diagnostic(case, f"`{case.node.value}` never evaluates the roofline of `{case.entry.name}`")


def _diagnostic(case: _Case, text: str) -> Diagnostic:
    entry = case.entry
    driven = entry.data_at("source", "bench_manifest_driven") is True
    related = (Related(Place(case.path, Span(0, 0)), "the benchmark"),)
    severity = entry.severity if driven else Severity.WARNING
    return Diagnostic(text, entry.at(case.node), related, ops=(entry.name,), severity=severity)


def is_driven(entry: OpEntry) -> bool:
    """Whether each benchmark of an entry is known to take the op's workloads and roofline from the manifest."""
    manifest = entry.manifest
    found = [(node, manifest.locate(path)) for node, path in entry.source_paths("bench")]
    cases = [_Case(entry, path, node) for node, path in found if path is not None]
    readings = manifest.project.readings(_READING, (case.path for case in cases))
    does = [_does(what, case, readings) is True for case in cases for what in _EACH]
    return bool(cases) and len(cases) == len(found) and all(does)


class _Case(msgspec.Struct, frozen=True):
    """An entry whose benchmark is to be held to the manifest, that file's workspace path, and its node."""

    entry: OpEntry
    path: str
    node: Node


def _cases(manifest: Manifest) -> Iterator[_Case]:
    # Without the demand to declare it, `bench_manifest_driven: false` opts out.
    optional = not manifest.spec.knows("bench-declared")
    for entry in manifest.entries if manifest.spec.knows("bench-workloads") else ():
        driven = entry.data_at("source", "bench_manifest_driven") is True
        if (not driven and (optional or not entry.implemented)) or manifest.repeats(entry):
            continue
        if entry.unnamed:  # another rule's finding; a benchmark cannot use what is not there
            continue
        for node, written in entry.source_paths("bench"):
            path = manifest.locate(written) if written.endswith(".py") else None
            if path is not None:
                yield _Case(entry, path, node)


def _failing(manifest: Manifest, what: What) -> Iterator[_Case]:
    """The entries whose benchmark does not do it."""
    found = list(_cases(manifest))
    manifest.project.claim(case.path for case in found)
    readings = manifest.project.readings(_READING, (case.path for case in found))
    cases = [(case, _does(what, case, readings)) for case in found]
    manifest.project.load_python(sorted({case.path for case, does in cases if does is None}))
    for case, does in cases:
        file = manifest.project.python(case.path) if does is None else None
        if does is False or (file is not None and not _may_do(manifest, file, case.entry.name, what)):
            yield case


_CALL = re.compile(
    rf"\b({'|'.join((*WORKLOADS, *REPORTS))})\s*\(\s*(?:\w+\s*=\s*)?(?:(['\"])(\w+)\2|(\w+))\s*[,)]|\.(eval_roofline)\s*\("
)
_CONSTANT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:(['\"])(\w+)\2[ \t]*(?:#.*)?$)?", re.MULTILINE)


class _Reading(msgspec.Struct):
    """Facts from the text of a benchmark: its ops, and whether it evaluates a roofline itself."""

    workloads: set[str] = msgspec.field(default_factory=set)
    roofline: set[str] = msgspec.field(default_factory=set)
    evaluates: bool = False


def _does(what: What, case: _Case, readings: Mapping[str, _Reading]) -> bool | None:
    """Whether a benchmark does it for an op; None if the text alone does not show it."""
    found, name = readings.get(case.path), case.entry.name
    if found is None:
        return None
    if name in found.workloads if what == "workloads" else found.evaluates or name in found.roofline:
        return True
    words = WORKLOADS if what == "workloads" else (*REPORTS, "eval_roofline")
    source = case.entry.manifest.project.source(case.path)
    text = source.text if source is not None else ""
    return None if name in text or any(word in text for word in words) else False


def _read(text: str) -> _Reading:
    """Reads a benchmark by its text: most are plain, and parsing them all would cost more than the entire run."""
    found = _Reading()
    constants: dict[str, set[str]] = {}
    for name, _, value in _CONSTANT.findall(text):
        constants.setdefault(name, set()).add(value)
    for match in _CALL.finditer(text):
        start = match.start()
        line = text[text.rfind("\n", 0, start) + 1 : start]
        if "#" in line or text.count('"""', 0, start) % 2 or text.count("'''", 0, start) % 2:
            continue
        function, _, literal, name, evaluates = match.groups()
        ops = {literal} if literal else constants.get(name or "", set())
        if evaluates:
            found.evaluates = True
        elif len(ops) == 1:
            (found.roofline if function in REPORTS else found.workloads).update(ops)
    return found


_READING = Reading("tileops benchmarks", _read, _Reading)


def _may_do(manifest: Manifest, file: PythonFile, name: str, what: What) -> bool:
    """Whether a parsed benchmark does it for an op, or may: a name that goes other ways cannot be followed."""
    helpers = WORKLOADS if what == "workloads" else REPORTS
    scopes = list(file.body.walk())
    if what == "roofline" and any(use.name.endswith(".eval_roofline") for scope in scopes for use in scope.uses):
        return True
    named = [_argument(manifest, file, call) for call in _calls(file) if _last(call) in helpers]
    # The name as a string of the code beyond the calls that are understood.
    strings = sum(scope.strings.count(name) for scope in scopes)
    others = [call for call in _calls(file) if _last(call) in (*WORKLOADS, *REPORTS) and _last(call) not in helpers]
    firsts = [call.items[1] for call in others if len(call.items) > 1]
    spoken_for = sum(first.value == name for first in firsts)
    for constant, assigns in file.assigns.items():
        if len(assigns) == 1 and assigns[0].value is not None and assigns[0].value.value == name:
            reads = sum(use.name == constant for scope in scopes for use in scope.uses)
            spoken_for += reads == sum(first.kind == "name" and first.text == constant for first in firsts)
    return name in named or strings > spoken_for or (None in named and name in file.source.text)


def _calls(file: PythonFile) -> Iterator[Expr]:
    for scope in file.body.walk():
        yield from scope.calls


def _last(call: Expr) -> str:
    return call.callee.rpartition(".")[2]


def _argument(manifest: Manifest, file: PythonFile, call: Expr) -> object:
    """Return the op that a call names; None if that is computed."""
    folded = manifest.evaluator.fold(file, call.items[1]) if len(call.items) > 1 else None
    return folded.value if isinstance(folded, Folded) else None
