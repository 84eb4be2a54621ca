"""A manifest in ``opschema lint --show-settings``: its tree's specification, and the demands that hold."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Fact
from opschema_cli.project import Project
from opschema_rules.tileops.features import FEATURES, LATEST
from opschema_rules.tileops.spec import VOCABULARY, Spec

_HINT = (
    "A requirement that is off is not checked, or only as a warning. If it applies here, name it in `spec` of"
    ' `[tool.opschema.tileops]`: `spec = [{example}]`, or `spec = ["latest"]` for all.'
)


def describe_spec(project: Project, folder: str, spec: Spec) -> Description:
    """The documents and validators that were found, then every demand: on, and where it shows; or off, and what it is."""
    missing = f"no document or script uses all the words {', '.join(VOCABULARY)}"
    facts = [Fact("specification", path) for path in spec.sources] or [Fact("specification", "none", missing)]
    facts += [_demand(project, spec, name) for name in FEATURES]
    off = [name for name in FEATURES if name in LATEST and not spec.knows(name)]
    return Description(folder, facts, _HINT.format(example=f'"{off[0]}"') if off else "")


def _demand(project: Project, spec: Spec, name: str) -> Fact:
    place = spec.places.get(name)
    source = project.source(place.path) if place is not None else None
    if place is not None and source is not None:
        return Fact(name, "on", f"{place.path}:{source.position(place.span.start).line}")
    return Fact(name, "on", "asked for by `spec`") if spec.knows(name) else Fact(name, "off", FEATURES[name].meaning)
