"""Validators and tests of a manifest whose entries no longer declare a carrier."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.text import Span
from opschema_rules.tileops.carve_outs import CarveOut, carve_outs, unguarding
from opschema_rules.tileops.demands import Demand, demands
from opschema_rules.tileops.manifest_checks import checks
from opschema_rules.tileops.migrations.drop_carrier.acceptance import accepts_params
from opschema_rules.tileops.migrations.drop_carrier.carve_outs import drop_carve_out
from opschema_rules.tileops.migrations.drop_carrier.documents import outdated
from opschema_rules.tileops.migrations.drop_carrier.exempting_tests import drop_exempting
from opschema_rules.tileops.migrations.drop_carrier.invariants import relax
from opschema_rules.tileops.migrations.drop_carrier.new_tests import add_tests
from opschema_rules.tileops.migrations.drop_carrier.schema_checks import add_demands, schema_check
from opschema_rules.tileops.model import Manifest, Validator


def validators(draft: Draft, manifest: Manifest) -> list[Validator]:
    """The validators of a manifest that may have an exception."""
    return [item for item in draft.loaded.everything() if isinstance(item, Validator) and item.manifest is manifest]


def drop_exceptions(draft: Draft, workbench: Workbench, manifest: Manifest, removed: set[str]) -> Iterator[Note]:
    """Take the exceptions for ops without tensors out of the validators; ``removed`` gets the flags' names."""
    for validator in validators(draft, manifest):
        for found in carve_outs(manifest.program, validator.file):
            try:
                with workbench.atomic():
                    removed.update(drop_carve_out(workbench, found))
            except LeftAlone as why:
                yield Note(found.body.at(found.test), f"the exception stays: {why.reason}")
                continue
            if not found.params:
                yield from _exempting(draft, workbench, manifest, found)
        for body, test in unguarding(manifest.program, validator.file):
            yield Note(
                body.at(test),
                "this distinguishes ops that take no tensor; if it makes an exception for them, remove that",
            )


def _exempting(draft: Draft, workbench: Workbench, manifest: Manifest, found: CarveOut) -> Iterator[Note]:
    """Remove the tests that assert an exception, or yield notes on them."""
    names = {body.function.name for body, _ in found.guards if body.function is not None}
    for path in dict.fromkeys(item.place.path for item in mentions(draft.project, names, _tests(draft))):
        file = draft.project.python(path)
        if file is not None:
            yield from drop_exempting(workbench, manifest.program, file, found)


def relax_demands(draft: Draft, workbench: Workbench, manifest: Manifest) -> Iterator[Note]:
    """Let validators and tests accept ``inputs: {}`` where an op has params, and have that tested."""
    relaxed: set[str] = set()
    demanding: dict[str, str] = {}
    asserting: set[str] = set()
    for file in checks(manifest):
        for demand in demands(manifest.program, file):
            try:
                with workbench.atomic():
                    relax(workbench, demand)
            except LeftAlone as why:
                yield Note(why.place, why.reason)
                continue
            yield from _claims(demand)
            relaxed.add(file.path)
            if demand.body.function is not None:
                asserting.add(demand.body.function.name)
                demanding[file.path] = demand.body.function.name
    yield from outdated(draft, manifest, asserting)
    for validator in validators(draft, manifest):
        path = validator.file.path
        if path not in relaxed and accepts_params(manifest.program, validator.file):
            continue
        check = schema_check(Bodies(manifest.program, [path]), path)
        name, added = demanding.get(path, ""), False
        if path not in relaxed and check is not None:
            name, added = check.function.name, add_demands(workbench, check)
        if path not in relaxed and not added:
            yield Note(validator.place, "no check here demands an output, and an input or a param; add one")
        if name:
            yield from _tested(draft, workbench, validator, name, rejected=added)


_CLAIM = re.compile(r"\bat least (?:1|one) (?:input|tensor)\b[^.\n]*", re.IGNORECASE)


def _claims(demand: Demand) -> Iterator[Note]:
    """Places where the docstring of a check still claims that it demands an input."""
    function, text = demand.body.function, demand.body.file.source.text
    if function is None:
        return
    start, end = function.end, min((item.start for item in demand.body.scope.uses), default=function.end)
    for match in _CLAIM.finditer(text, start, end):
        place = demand.body.at(Span(*match.span()))
        yield Note(place, f"`{match.group()}`: an op needs only params now; update this text")


def _tested(draft: Draft, workbench: Workbench, validator: Validator, check: str, *, rejected: bool) -> Iterator[Note]:
    """Add the tests to the module that tests a check most."""
    found = [item.place.path for item in mentions(draft.project, {check}, _tests(draft))]
    for path in sorted(set(found), key=lambda path: (-found.count(path), path)):
        with suppress(LeftAlone), workbench.atomic():
            if add_tests(workbench, path, check, rejected=rejected):
                return
    yield Note(validator.place, f"no test of `{check}()` shows how to test that it accepts `inputs: {{}}`; add one")


def _tests(draft: Draft) -> Collection[str]:
    names = ((path, path.rpartition("/")[2]) for path in draft.project.workspace.files)
    return [path for path, name in names if name.startswith("test_") and name.endswith(".py")]
