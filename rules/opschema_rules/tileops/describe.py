"""A manifest in ``opschema lint --show-settings``: the specification, the demands that hold, and the shapes that are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.pack import Description, Fact
from opschema_cli.project import Project
from opschema_rules.tileops.features import FEATURES, LATEST
from opschema_rules.tileops.model import Manifest
from opschema_rules.tileops.signature import statement
from opschema_rules.tileops.spec import VOCABULARY, Spec

_HINT = (
    "A requirement that is off is not checked, or only as a warning. If it applies here, name it in `spec` of"
    ' `[tool.opschema.tileops]`: `spec = [{example}]`, or `spec = ["latest"]` for all.'
)


def describe_spec(project: Project, folder: str, spec: Spec) -> Description:
    """Describe the documents and validators found, then every demand: if it is on, where that is shown; if it is off, what it
    is.
    """
    missing = f"no document or script uses all the words {', '.join(VOCABULARY)}"
    facts = [Fact("specification", path) for path in spec.sources] or [Fact("specification", "none", missing)]
    facts += [_demand(project, spec, name) for name in FEATURES]
    off = [name for name in FEATURES if name in LATEST and not spec.knows(name)]
    return Description(folder, facts, _HINT.format(example=f'"{off[0]}"') if off else "")


def describe_shapes(manifests: Iterable[Manifest]) -> Iterator[Fact]:
    """The number of implemented ops whose returned shapes are compared with the manifest (SHP113), and of their shape rules."""
    from opschema_rules.tileops.calls.outcomes import INFER, executed_outcome  # not at the top: it executes code

    known = [manifest for manifest in manifests if manifest.spec.knows("infer-shapes")]
    ops = [
        op
        for manifest in known
        for op in manifest.implementations
        if op.entry.implemented and not manifest.repeats(op.entry) and op.method(INFER) is not None
    ]
    outcomes = [executed_outcome(op) for op in ops]
    complete = sum(found.checked >= {item.name for item in found.op.entry.outputs} for found in outcomes)
    rules = {id(equation) for op in ops for equation in statement(op.entry).rules}
    decided = {id(equation) for found in outcomes for equation in found.rules} & rules
    if ops:
        yield Fact(
            "returned shapes", f"{complete} of {len(ops)}", "ops whose outputs are all compared with the manifest"
        )
        yield Fact("shape rules", f"{len(decided)} of {len(rules)}", "rules of these ops that are evaluated for a call")


def _demand(project: Project, spec: Spec, name: str) -> Fact:
    place = spec.places.get(name)
    source = project.source(place.path) if place is not None else None
    if place is not None and source is not None:
        return Fact(name, "on", f"{place.path}:{source.position(place.span.start).line}")
    return Fact(name, "on", "requested by `spec`") if spec.knows(name) else Fact(name, "off", FEATURES[name].meaning)
