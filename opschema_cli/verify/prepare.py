"""Makes a run: the plans of the tree after, where each op was before, the device, the shard."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from opschema_cli.errors import OpschemaError, install_command
from opschema_cli.lint.settings import pack_options
from opschema_cli.session import Session
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_cli.verify.compute_sanitizer import Tool
from opschema_cli.verify.model import Limits, Plan, Search, Target
from opschema_cli.verify.notes import notes_on
from opschema_cli.verify.op_names import OpNames, op_names
from opschema_cli.verify.plan_names import on_backend, operator_of
from opschema_cli.verify.removed_coverage import lost_plans, mark_removed
from opschema_cli.verify.results import Header, Version, run_key
from opschema_cli.verify.run import CPU_LABEL, Run
from opschema_cli.verify.sanitizers import check_sanitizer
from opschema_cli.verify.shards import shard_of
from opschema_cli.verify.table_plans import module_files, table_plans

Device = Literal["auto", "cpu", "cuda"]


class Tree(msgspec.Struct, frozen=True):
    """One of the compared trees, with its identity."""

    session: Session
    version: Version


class Asked(msgspec.Struct, frozen=True):
    """The user's choices for a run: ops (none: all), limits, device, shard, seconds for one cell on one side, and the sanitizer
    tool for workers. ``renamed`` maps current names of ops to earlier ones; ``expected`` names ops, and dtypes of ops
    (``Op[float16]``), that may be removed. ``imports`` are imported to register operators; if None, only packs plan. ``label``
    is that of the device if cells run on other machines.
    """

    ops: Sequence[str] = ()
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    limits: Limits = msgspec.field(default_factory=Limits)
    device: Device = "auto"
    shard: tuple[int, int] = (1, 1)
    seconds: float = 120.0
    sanitizer: Tool | None = None
    expected: Collection[str] = ()
    imports: Sequence[str] | None = None
    label: str = ""


def prepare(
    plans: Sequence[Plan],
    after: Tree,
    before: Tree | None,
    asked: Asked,
    folder: Path,
    every: Collection[str] | None = None,
    earlier: Sequence[Plan] | None = None,
) -> Run:
    """The run of one shard of plans, which are of the tree after; ``every`` are the names of all ops there, if removed ops are
    wanted too. ``earlier`` are the plans of the tree before, where they are known already (:func:`earlier_plans`).

    Raises:
        OpschemaError: the recipes cannot be read, an op is not known under the name that it is said to have had, there is no
            PyTorch, or no such device.
    """
    if earlier is None:
        earlier = earlier_plans(plans, before.session, asked, every) if before is not None else []
    if before is not None:
        _check_renamed(before.session, earlier, asked)
    places = _places(plans, earlier, asked)
    undeclared = {} if before is None else _undeclared(plans, places, before.session)
    notes = tuple(notes_on(plans, places, None if every is None else {*every, *asked.renamed.values()}))
    plans = mark_removed(plans, places, asked.expected)
    if every is not None:
        plans = [*plans, *lost_plans({*every, *asked.renamed.values()}, earlier, asked.expected)]
    number, count = asked.shard
    mine = shard_of(plans, number, count)
    cells = tuple(name for plan in mine for name in plan.names)
    sides = (before.version if before is not None else None, after.version)
    header = Header(
        run=run_key(plans, *sides, asked.renamed),
        shard=number,
        shards=count,
        total=sum(len(plan.names) for plan in plans),
        before=sides[0],
        after=sides[1],
        device=asked.label or device_label(asked.device),
        cells=cells,
        renamed=dict(asked.renamed),
        notes=(*notes, *_undeclared_notes(undeclared)),
    )
    if asked.sanitizer is not None and not asked.label:
        check_sanitizer(asked.sanitizer, "cpu" if header.device == CPU_LABEL else "cuda")
    places |= undeclared
    absent = {} if before is None else {plan.op: _absence(places.get(plan.op)) for plan in mine}
    return Run(
        header=header,
        plans=tuple(mine),
        compared=before is not None,
        before={plan.op: _before(places[plan.op], plan) for plan in mine if absent.get(plan.op) == ""},
        absent={op: reason for op, reason in absent.items() if reason},
        folder=str(folder),
        seconds=asked.seconds,
        sanitizer=asked.sanitizer,
    )


def make_plans(session: Session, ops: Sequence[str], limits: Limits) -> list[Plan]:
    """The plans of all packs that find something in a tree, with the recipes that its configuration names."""
    project = session.project()
    options = pack_options(session.config, session.registry)
    place = _recipe(session)
    found: list[Plan] = []
    registry = session.registry_for(project)
    registry.check_needed()
    for pack in registry.packs:
        for plan in pack.plans(project, options[pack.name], ops, limits) if pack.plans is not None else ():
            target = msgspec.structs.replace(plan.target, recipe=place)
            found.append(msgspec.structs.replace(plan, target=target))
    return found


def plans_of(session: Session, asked: Asked) -> list[Plan]:
    """Return the plans of the requested ops, by their names in the operator table.

    Raises:
        OpschemaError: one of them is not known or has no plan, or there is no plan at all.
    """
    plans = make_plans(session, asked.ops, asked.limits)
    planned = {plan.op for plan in plans}
    if not planned.issuperset(asked.ops):
        names = op_names(session)
        ops = names.meant(asked.ops, planned)
        plans = make_plans(session, ops, asked.limits)
        found = _from_table(session, names, set(ops).difference(plan.op for plan in plans), asked)
        plans += _with_samples(session, names, found)
        planned = {plan.op for plan in plans}
        names.check_planned(ops, planned)
    if not plans:
        names = op_names(session)
        plans = _with_samples(session, names, _from_table(session, names, None, asked))
        planned = {plan.op for plan in plans}
        if all(plan.unplanned for plan in plans):
            raise names.nothing_planned(next((reason for plan in plans for reason in plan.unplanned.values()), ""))
    for new, old in asked.renamed.items():
        if new not in planned:
            close = did_you_mean(near_name(new, planned))
            raise OpschemaError(f"`{old}={new}` renames none of the ops that are verified{close}")
    return plans


def _from_table(session: Session, names: OpNames, ops: Collection[str] | None, asked: Asked) -> list[Plan]:
    """The plans of operators that no pack plans, of those with these names or of all."""
    if asked.imports is None:
        return []
    wanted = None if ops is None else {operator_of(op) for op in ops}
    operators = [item for item in names.unplanned() if wanted is None or item.name in wanted]
    recipe = _recipe(session)
    found = table_plans(session, operators, [*session.config.verify.imports, *asked.imports])
    return [
        msgspec.structs.replace(plan, target=msgspec.structs.replace(plan.target, recipe=recipe))
        for plan in found
        if ops is None or plan.op in ops or operator_of(plan.op) in ops
    ]


def _with_samples(session: Session, names: OpNames, plans: list[Plan]) -> list[Plan]:
    """The plans, with the calls that the tests of the tree make of their operators."""
    sought = {plan.op for plan in plans if plan.search is not None and not plan.unplanned}
    if not sought:
        return plans
    from opschema_cli.verify.search.argument_names import argument_names
    from opschema_cli.verify.search.from_tests import samples_from_tests
    from opschema_cli.verify.search.source_values import source_values

    wanted = {operator_of(op) for op in sought}
    operators = [item for item in names.unplanned() if item.name in wanted]
    samples = samples_from_tests(session.project(), operators)
    values = {item.name: source_values(item, session.workspace) for item in reversed(operators)}
    parameters = {item.name: argument_names(item, session.workspace) for item in reversed(operators)}

    def with_hints(search: Search, name: str) -> Search:
        return msgspec.structs.replace(
            search, samples=samples.get(name, {}), values=values[name], names=parameters[name]
        )

    return [
        msgspec.structs.replace(plan, search=with_hints(plan.search, operator_of(plan.op)))
        if plan.search is not None and plan.op in sought
        else plan
        for plan in plans
    ]


def _recipe(session: Session) -> str:
    recipe = session.config.verify.recipe
    with session.config.placed(recipe):
        return str(session.workspace.locate(recipe)) if recipe else ""


def earlier_plans(plans: Sequence[Plan], before: Session, asked: Asked, every: Collection[str] | None) -> list[Plan]:
    """Return the plans of the tree before, for all ops or for the requested ones."""
    ops = [asked.renamed.get(plan.op, plan.op) for plan in plans] if every is None else ()
    found = make_plans(before, ops, asked.limits)
    if any(plan.target.operator for plan in plans):
        found += _from_table(before, op_names(before), None if every is not None else set(ops), asked)
    return found


def with_kernels(asked: Asked, earlier: Sequence[Plan]) -> Asked:
    """Add the earlier names of kernels for a backend if their operators are renamed."""
    known = {plan.op for plan in earlier}
    more = {on_backend(new): on_backend(old) for new, old in asked.renamed.items() if on_backend(old) in known}
    return msgspec.structs.replace(asked, renamed={**asked.renamed, **more}) if more else asked


def _check_renamed(before: Session, earlier: Sequence[Plan], asked: Asked) -> None:
    """Check that the tree before can run the ops that are said to have had another name.

    Raises:
        OpschemaError: it lacks one, or has no plan for it.
    """
    planned = {plan.op for plan in earlier}
    if not planned.issuperset(asked.renamed.values()):
        try:
            op_names(before).check_planned(asked.renamed.values(), planned)
        except OpschemaError as error:
            raise OpschemaError(f"the tree before: {error}") from None


def _places(plans: Sequence[Plan], earlier: Sequence[Plan], asked: Asked) -> dict[str, Plan]:
    """The plans of the tree before, by the names that their ops have after."""
    found = {plan.op: plan for plan in earlier}
    names = {plan.op: asked.renamed.get(plan.op, plan.op) for plan in plans}
    return {new: found[old] for new, old in names.items() if old in found}


def _undeclared(plans: Sequence[Plan], places: Mapping[str, Plan], before: Session) -> dict[str, Plan]:
    """The plans of ops that only the tree after declares, with the code of the tree before where that has their module."""
    files = before.workspace.file_set
    root = str(before.workspace.root)
    return {
        plan.op: msgspec.structs.replace(plan, target=msgspec.structs.replace(plan.target, root=root))
        for plan in plans
        if plan.op not in places and not files.isdisjoint(module_files(plan.target))
    }


def runnable_before(plans: Sequence[Plan], earlier: Sequence[Plan], asked: Asked) -> dict[str, Plan]:
    """The plans of the tree before, by the names that their ops have after, of those that can be run there."""
    return {op: plan for op, plan in _places(plans, earlier, asked).items() if not _absence(plan)}


def _undeclared_notes(undeclared: Mapping[str, Plan]) -> Iterator[str]:
    """Notes on ops that only the tree after declares; whether it has an operator of torch.library, an import says."""
    for op, plan in undeclared.items():
        if not plan.target.operator:
            yield f"{op}: only the tree after declares it; both sides are called so"


def _absence(plan: Plan | None) -> str:
    """The reason why an op cannot be run in the tree before; empty if it can."""
    if plan is None:
        return "the tree before does not declare this op"
    if plan.target.module or (plan.target.operator and not plan.unplanned):
        return ""
    return next(iter(plan.unplanned.values()), "it has no cell there")


def _before(plan: Plan, after: Plan) -> Target:
    """The target of an op in the tree before; it is called by today's recipe."""
    return msgspec.structs.replace(plan.target, recipe=after.target.recipe)


def device_kinds(device: Device) -> int:
    """Return the number of device kinds: two with a GPU, as far as that can be detected without PyTorch."""
    return 2 if device == "cuda" or (device == "auto" and Path("/dev/nvidiactl").exists()) else 1


def device_label(device: Device) -> str:
    """The label of a device in results: the GPU's name, or ``cpu-sim``.

    Raises:
        OpschemaError: PyTorch is not installed, cannot be loaded, or sees no GPU though one is asked for.
    """
    warnings.filterwarnings("ignore", "Failed to initialize NumPy")  # nothing here needs it
    try:
        import torch

        torch.zeros(())
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise OpschemaError(f"PyTorch cannot be loaded: {error}") from error
        raise OpschemaError(f"`opschema verify` needs PyTorch: {install_command('verify')}") from None
    except Exception as error:  # a broken installation fails in any way
        raise OpschemaError(f"PyTorch cannot be loaded: {type(error).__name__}: {error}") from error
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return CPU_LABEL
    if not torch.cuda.is_available():
        raise OpschemaError("PyTorch sees no GPU here; --device cpu runs on the CPU")
    return str(torch.cuda.get_device_name())
