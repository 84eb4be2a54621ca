"""``opschema verify --init``: a file of recipes to fill in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from opschema_cli.commands.output import ProgressBar, write_text
from opschema_cli.commands.plugins import open_workspace
from opschema_cli.commands.verify_options import VerifyOptions
from opschema_cli.errors import EXIT_CLEAN, OpschemaError
from opschema_cli.phrases import count, listed
from opschema_cli.reporters.escape import visible
from opschema_cli.session import Session
from opschema_cli.verify.model import Call, Limits, Plan
from opschema_cli.verify.plan_names import operator_of
from opschema_cli.verify.prepare import Asked, device_label, plans_of
from opschema_cli.verify.recipe_text import Draft, arguments_of_call, arguments_of_schema, first_call, recipes_text
from opschema_cli.verify.recipes import ops_with_recipes
from opschema_cli.verify.run import CPU_LABEL
from opschema_cli.verify.scratch import scratch_folder
from opschema_cli.verify.search.candidates import unmakable
from opschema_cli.verify.sides import version_of
from opschema_cli.workspace import ReadError

if TYPE_CHECKING:
    from opschema_cli.schema.operator_schema import OperatorSchema
    from opschema_cli.verify.search.planning import SearchResult

_FILE = "opschema_recipes.py"
_WORDS = "ref|reference|naive|native|torch|pytorch|eager|golden|python"
_MOST_FUNCTIONS = 4


def write_recipes(options: VerifyOptions) -> int:
    """Write recipes of the named ops, from the results of a search.

    Raises:
        OpschemaError: an op is not known, none can be imported, the file exists or cannot be written.
    """
    _check_options(options)
    with ExitStack() as stack:
        session = stack.enter_context(
            closing(open_workspace(options.after or Path.cwd(), no_plugins=options.no_plugins))
        )
        path = _checked_path(session, options)
        asked = Asked(options.ops, limits=Limits(cells=1), device=options.device, imports=options.imports)
        plans = [_without_recipe(plan) for plan in plans_of(session, asked) if operator_of(plan.op) == plan.op]
        drafts = list(_drafts(plans, session, options, stack.enter_context(scratch_folder())))
        if not drafts:
            raise OpschemaError("nothing was written: none of the ops can be imported")
        write_text(recipes_text(drafts), path)
        _report(session, path, drafts)
    return EXIT_CLEAN


def _check_options(options: VerifyOptions) -> None:
    others = {
        "--before": options.before,
        "--merge": options.merge,
        "--shard": options.shard,
        "--results": options.results,
        "--run-file": options.run_file,
        "--ray": options.ray,
        "--list": options.list_only,
    }
    wrong = next((name for name, value in others.items() if value), None)
    if wrong is not None:
        raise click.UsageError(f"{wrong} does not go with --init")
    if not options.ops:
        raise click.UsageError("--init takes the names of one or more ops")


def _checked_path(session: Session, options: VerifyOptions) -> Path:
    """The file to write: the one that is asked for, or that the configuration names, or a new one at the root.

    Raises:
        OpschemaError: it exists.
    """
    name = session.config.verify.recipe or _FILE
    path = options.output_file or Path(session.workspace.locate(name))
    if path.exists():
        known = ops_with_recipes(path)
        lines = [f"`{op}` on line {known[op]}" for op in options.ops if op in known]
        already = f", with a recipe of {' and '.join(lines)}" if lines else ""
        raise OpschemaError(
            f"{_shown(path)} exists{already}, and is not overwritten; --output-file FILE writes to another file"
        )
    if not path.parent.is_dir():
        raise OpschemaError(f"{_shown(path)} cannot be written: there is no folder {_shown(path.parent)}")
    return path


def _without_recipe(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, target=msgspec.structs.replace(plan.target, recipe=""))


def _drafts(plans: Sequence[Plan], session: Session, options: VerifyOptions, folder: Path) -> Iterator[Draft]:
    """Yield the known facts about each op; those that cannot be imported are reported."""
    from opschema_cli.verify.search.planning import search, search_workers

    label = device_label(options.device)
    device = "cpu" if label == CPU_LABEL else "cuda"
    with (
        search_workers(folder, device, label, version_of(session.root, ".")) as workers,
        ProgressBar("searching", "operators", quiet=0, lines=True) as progress,
    ):
        for number, plan in enumerate(plans, 1):
            if plan.search is None:
                yield _declared(plan, session)
            elif plan.unplanned:
                _report_unusable(plan.op, next(iter(plan.unplanned.values())))
            elif (found := search(plan, device, workers)).schema is None:
                _report_unusable(plan.op, found.found.reason)
            else:
                yield _found(plan, found.schema, found, session)
            progress(number, len(plans), plan.op)


def _found(plan: Plan, schema: OperatorSchema, found: SearchResult, session: Session) -> Draft:
    calls: dict[str, Call] = {}
    for item in found.found.calls:  # flags and dtypes are varied again when a recipe's calls are run
        if not item.row.startswith("values-"):
            calls.setdefault(item.row, item.call)
    return Draft(
        op=plan.op,
        declaration=found.text,
        calls=calls,
        reason=found.found.reason,
        sample=first_call(schema),
        order=tuple(item.name for item in schema.arguments),
        unmakable=tuple(item.name for item in schema.arguments if unmakable(item)),
        arguments=arguments_of_schema(schema),
        reference=found.reference,
        functions=_similar_functions(session, plan.op),
    )


def _declared(plan: Plan, session: Session) -> Draft:
    """Return a pack's knowledge about an op whose calls a manifest declares."""
    call = plan.cells[0].call if plan.cells else Call(inputs=())
    inputs = ", ".join(item.name for item in call.inputs)
    return Draft(
        op=plan.op,
        declaration=f"inputs {inputs or 'unknown'}; its calls are those of its workload rows",
        arguments=arguments_of_call(call),
        reference=f"`{plan.reference}`" if plan.reference else "",
        functions=_similar_functions(session, plan.op),
        is_searched=False,
    )


def _report_unusable(op: str, reason: str) -> None:
    click.echo(f"opschema: no recipe for {visible(op)}: {visible(reason)}", err=True)


def _similar_functions(session: Session, op: str) -> tuple[str, ...]:
    """Return functions of the tree whose names suggest that they are references of an op, with their places."""
    base = re.escape(op.partition("::")[2].partition(".")[0] or op)
    pattern = re.compile(rf"^def ((?:_?(?:{_WORDS})_{base}|{base}_(?:{_WORDS}))(?:_impl)?)\(", re.MULTILINE)
    texts = ((path, _text(session, path)) for path in session.workspace.files if path.endswith(".py"))
    found = (
        f"`{match[1]}` ({path}:{len(text[: match.start()].splitlines()) + 1})"
        for path, text in texts
        if base in text
        for match in pattern.finditer(text)
    )
    return tuple(islice(found, _MOST_FUNCTIONS))


def _text(session: Session, path: str) -> str:
    try:
        return session.workspace.peek_source(path).text
    except ReadError:
        return ""


def _report(session: Session, path: Path, drafts: Sequence[Draft]) -> None:
    lacking = [draft.op for draft in drafts if draft.is_searched and not draft.calls]
    click.echo(f"wrote {_shown(path)}: {count(len(drafts), 'recipe')}")
    if lacking:
        click.echo(f"no call was found for {visible(listed(lacking))}; write one in the file")
    name = _relative(session, path)
    if session.config.verify.recipe != name:
        config = session.config_path
        table = "[tool.opschema.verify]" if config is not None and config.name == "pyproject.toml" else "[verify]"
        where = config.name if config is not None else "opschema.toml"
        click.echo(f'to use it, add this to {where}:\n\n{table}\nrecipe = "{name}"')


def _relative(session: Session, path: Path) -> str:
    return Path(os.path.relpath(path, session.root)).as_posix()


def _shown(path: Path) -> str:
    """Return a path as a message shows it: relative to the current folder, if it is inside it."""
    relative = os.path.relpath(path)
    return visible(str(path) if relative.startswith("..") else relative)
