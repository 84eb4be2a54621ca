"""``opschema verify``."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from opschema_cli.commands.output import ProgressBar, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.commands.verify_options import VerifyOptions
from opschema_cli.commands.verify_report import report
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, OpschemaError, install_command
from opschema_cli.phrases import some
from opschema_cli.reporters.escape import visible
from opschema_cli.verify.compute_sanitizer import TOOLS
from opschema_cli.verify.gathering import ResultOptions
from opschema_cli.verify.kernel_caches import clear_caches
from opschema_cli.verify.model import Limits, Plan
from opschema_cli.verify.prepare import (
    Asked,
    Tree,
    device_kinds,
    device_label,
    earlier_plans,
    plans_of,
    prepare,
    runnable_before,
    with_kernels,
)
from opschema_cli.verify.results import Results, merge, read_results
from opschema_cli.verify.run import CPU_LABEL, SUFFIX, Run, write_run
from opschema_cli.verify.scratch import scratch_folder
from opschema_cli.verify.shards import parse_shard

if TYPE_CHECKING:
    from opschema_cli.verify.cluster import Cluster

_TX = re.compile(r"(?:\d+\*)?(?:popen|ssh=[^/]|socket=[^/]|vagrant_ssh=[^/])")
_PATH = click.Path(path_type=Path)
_DEFAULTS = Limits()


@click.command(short_help="Run ops before and after a change, and compare their results.")
@click.argument("ops", nargs=-1, metavar="[OP]... | --merge FILE...")
@click.option("--before", metavar="REV|DIR", help="The tree to compare with: a git revision or a folder.")
@click.option("--after", type=_PATH, metavar="DIR", help="The tree to verify [the current one].")
@click.option(
    "--expect-removed",
    multiple=True,
    metavar="OP|OP[DTYPE]",
    help="An op or a dtype that the change removes on purpose.",
)
@click.option("--renamed", multiple=True, metavar="OLD=NEW", help="The op NEW is called OLD in the tree before.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option(
    "--cells",
    type=click.IntRange(1),
    default=_DEFAULTS.cells,
    show_default=True,
    help="Maximum number of cells of one op.",
)
@click.option(
    "--elements",
    type=click.IntRange(1),
    default=_DEFAULTS.row_elements,
    show_default=True,
    help="Skip workload rows with a tensor of more elements.",
)
@click.option(
    "--large-tensors",
    is_flag=True,
    help="Also call each op once with a tensor of more than 2^31 elements, where memory allows.",
)
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(0.1),
    default=120.0,
    show_default=True,
    help="Time limit of one cell, in seconds.",
)
@click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="PATH|MODULE",
    help="Import this first: a built extension, a folder of them, or a module that registers operators.",
)
@click.option("--sanitizer", is_flag=True, help="Run under AddressSanitizer on the CPU, compute-sanitizer on a GPU.")
@click.option("--sanitizer-tool", type=click.Choice(TOOLS), help="The tool of compute-sanitizer; implies --sanitizer.")
@click.option("--clear-caches", is_flag=True, help="First remove compiled kernels that earlier runs kept.")
@click.option("--jobs", type=click.IntRange(1), help="Number of processes that run cells in parallel [1].")
@click.option(
    "--tx",
    multiple=True,
    metavar="SPEC",
    help="Run in this pytest-xdist environment, e.g. popen//env:CUDA_VISIBLE_DEVICES=1.",
)
@click.option("--ray", metavar="auto|ADDRESS", help="Run on the nodes of this Ray cluster.")
@click.option(
    "--gpu-share",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="With --ray: the part of a GPU that one op takes.",
)
@click.option("--shard", metavar="I/N", help="Run only this part of the ops.")
@click.option("--results", type=_PATH, metavar="FILE", help="Write the results to this file, for --merge.")
@click.option(
    "--resume", is_flag=True, help="Continue an earlier run of the same cells, whose results are in the --results file."
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first cell that fails.")
@click.option("--strict", is_flag=True, help="Fail if an op has no cell that was checked.")
@click.option("--merge", is_flag=True, help="Merge the given results of all shards into one report.")
@click.option("--init", is_flag=True, help="Write a file with draft recipes for these ops.")
@click.option("--list", "list_only", is_flag=True, help="Print the cells without running them.")
@click.option(
    "--run-file", type=_PATH, metavar="FILE", help="Write the run to this file, for pytest, without running it."
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output-file", type=_PATH, help="Write the report to this file.")
@click.option("--junit", type=_PATH, metavar="FILE", help="Also write JUnit XML to this file.")
@click.option("--report", type=_PATH, metavar="DIR", help="Also write a page with error histograms to this folder.")
@click.option(
    "--earlier",
    type=_PATH,
    multiple=True,
    metavar="FILE",
    help="With --report: show the trend since these results of earlier runs, the oldest first. Repeatable.",
)
@no_plugins_option
def verify(**options: object) -> int:
    """Run ops before and after a change, cell by cell, and report whether their results differ.

    A cell is an op, a workload row, a dtype and a shape derived from the row. Outputs of both sides are compared bit by bit,
    then with a float64 reference. Without --before, outputs are compared with the reference only. This runs the code of both
    trees.

    Exits 1 on a regression or a crash, if a tree cannot be imported or nothing was checked, or when a shard or cell is missing.
    """
    chosen = VerifyOptions(**options)  # type: ignore[arg-type]
    _check_installed(chosen)
    _check_earlier(chosen)
    _check_places(chosen)
    if chosen.merge:
        return _merge(chosen)
    if chosen.init:
        from opschema_cli.commands.verify_init import write_recipes

        return write_recipes(chosen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a job that is cancelled leaves nothing behind, either
    started = time.perf_counter()
    if chosen.clear_caches:
        clear_caches()
    with ExitStack() as stack:
        cluster = _cluster(chosen, stack)
        run = _prepare(chosen, stack, cluster)
        if chosen.run_file is not None:
            _write_run(run, chosen, chosen.run_file)
            return EXIT_CLEAN
        if chosen.list_only:
            write_text("".join(f"{cell}\n" for cell in run.header.cells), chosen.output_file)
            return EXIT_CLEAN
        results = _run(run, chosen) if cluster is None else _run_on(cluster, run, chosen)
    report(results, chosen, time.perf_counter() - started)
    if results.unwritten:
        raise OpschemaError("\n".join(results.unwritten))
    return _exit_code(results, chosen)


def _exit_code(results: Results, options: VerifyOptions) -> int:
    failed = results.failed or results.unimported or results.unchecked
    unchecked = results.unchecked_ops if options.strict else []
    if unchecked:
        click.echo(f"opschema: --strict: nothing was checked of {visible(some(unchecked, 8))}", err=True)
    return EXIT_FINDINGS if failed or unchecked else EXIT_CLEAN


def _check_installed(options: VerifyOptions) -> None:
    """Refuse options that need a package that is not installed.

    Raises:
        OpschemaError: it names the package.
    """
    runs = not (options.merge or options.init or options.list_only or options.run_file)
    wanted = {
        "torch": not options.merge,
        "pytest": runs,
        "xdist": runs and ((options.jobs or 1) > 1 or bool(options.tx)),
        "jinja2": options.report is not None,
    }
    for module, needed in wanted.items():
        if needed and find_spec(module) is None:
            raise OpschemaError(f"this needs `{module}`, which is not installed: {install_command('verify')}")


def _check_places(options: VerifyOptions) -> None:
    """Refuse, before anything is run, outputs that could not be written and places where nothing can run.

    Raises:
        OpschemaError: it names the file or folder.
        click.UsageError: a number of seconds is none, or a place of pytest-xdist.
    """
    if not math.isfinite(options.seconds):
        raise click.UsageError(f"--timeout takes a number of seconds, not {options.seconds}")
    for spec in options.tx:
        if not _TX.match(spec):
            raise click.UsageError(
                f"--tx takes popen, ssh=HOST or socket=HOST:PORT, and //KEY=VALUE after it, not `{spec}`"
            )
    if options.resume and options.results is None:
        raise click.UsageError("--resume goes with --results FILE")
    files = (options.results, options.junit, options.output_file, options.run_file)
    for path in (path for path in files if path is not None):
        place = path if path.exists() else path.absolute().parent
        if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
            raise OpschemaError(f"{path} cannot be written: {'it is a folder' if path.is_dir() else _no_place(place)}")
    if options.report is not None:
        try:
            options.report.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OpschemaError(f"{options.report} cannot be written: {error.strerror or error}") from None


def _check_earlier(options: VerifyOptions) -> None:
    """Refuse earlier results that no page shows or that cannot be read."""
    if options.earlier and options.report is None:
        raise click.UsageError("--earlier goes with --report DIR")
    for path in options.earlier:
        read_results(path)


def _no_place(place: Path) -> str:
    return f"{place} may not be written" if place.exists() else f"there is no folder {place}"


def _write_run(run: Run, options: VerifyOptions, path: Path) -> None:
    """Write a run that survives this process.

    Raises:
        OpschemaError: it cannot be written, or the tree before does not outlive it.
    """
    if not path.name.endswith(SUFFIX):
        raise OpschemaError(f"{path}: pytest knows the file by its suffix; call it `{path.stem}{SUFFIX}`")
    if options.before is not None and not Path(options.before).is_dir():
        raise OpschemaError(f"with --run-file, --before is a folder: git worktree add FOLDER {options.before}")
    write_run(msgspec.structs.replace(run, folder=""), path)


def _cluster(options: VerifyOptions, stack: ExitStack) -> Cluster | None:
    """Return the Ray cluster to run on, if one is requested.

    Raises:
        click.UsageError: another option does not go with it.
        OpschemaError: Ray is not installed, or there is no such cluster.
    """
    if options.ray is None:
        return None
    others = {"--jobs": options.jobs, "--tx": options.tx, "--junit": options.junit, "--run-file": options.run_file}
    wrong = next((name for name, value in others.items() if value), None)
    if wrong is not None:
        raise click.UsageError(f"{wrong} does not go with --ray")
    if find_spec("ray") is None:
        raise OpschemaError(f"--ray needs `ray`, which is not installed: {install_command('cluster')}")
    from opschema_cli.verify.cluster import connected

    return stack.enter_context(connected(options.ray))


def _result_options(options: VerifyOptions, progress: ProgressBar) -> ResultOptions:
    return ResultOptions(options.results, options.resume, progress, options.fail_fast)


def _run_on(cluster: Cluster, run: Run, options: VerifyOptions) -> Results:
    with ProgressBar("verifying", "cells", quiet=0, lines=True) as progress:
        results, again = cluster.run_cells(run, share=options.gpu_share, options=_result_options(options, progress))
    if again:
        names = ", ".join(dict.fromkeys(again))
        click.echo(f"opschema: a node of the cluster was lost; checked again elsewhere: {visible(names)}", err=True)
    return results


def _prepare(options: VerifyOptions, stack: ExitStack, cluster: Cluster | None) -> Run:
    from opschema_cli.verify.sides import tree_of, version_of

    root = options.after or Path.cwd()
    session = stack.enter_context(closing(open_workspace(root, no_plugins=options.no_plugins)))
    before = None
    if options.before is not None:
        tree, version = stack.enter_context(tree_of(session.root, options.before))
        other = stack.enter_context(closing(open_workspace(tree, no_plugins=options.no_plugins, cache=False)))
        before = Tree(other, version)
    folder = stack.enter_context(scratch_folder())
    asked = Asked(
        options.ops,
        _renamed(options),
        Limits(
            cells=options.cells,
            row_elements=options.elements,
            devices=device_kinds(options.device),
            large=options.large_tensors,
        ),
        options.device,
        parse_shard(options.shard) if options.shard is not None else (1, 1),
        options.seconds,
        options.sanitizer_tool or ("memcheck" if options.sanitizer else None),
        options.expect_removed,
        options.imports,
        cluster.device(options.device, options.gpu_share) if cluster is not None else "",
    )
    after = Tree(session, version_of(session.root, str(options.after or ".")))
    plans = plans_of(session, asked)
    every = None if options.ops else {plan.op for plan in plans}
    earlier = earlier_plans(plans, before.session, asked, every) if before is not None else []
    asked = with_kernels(asked, earlier)
    plans = _searched(plans, earlier, (before, after), asked, folder, options)
    return prepare(plans, after, before, asked, folder, every, earlier)


def _searched(
    plans: list[Plan],
    earlier: list[Plan],
    trees: tuple[Tree | None, Tree],
    asked: Asked,
    folder: Path,
    options: VerifyOptions,
) -> list[Plan]:
    """Return the plans, with cells for operators whose calls were searched for."""
    if not any(plan.search for plan in plans):
        return plans
    from opschema_cli.verify.search.planning import search_workers, with_cells

    label = asked.label or device_label(asked.device)
    device = "cpu" if label == CPU_LABEL else "cuda"
    before, after = trees
    version = before.version if before is not None else None
    text = options.output_format == "text"
    with (
        search_workers(folder, device, label, after.version, version) as workers,
        ProgressBar("searching", "operators", enabled=text, quiet=0, lines=True) as progress,
    ):
        there = runnable_before(plans, earlier, asked)
        return with_cells(plans, there, asked.limits, device, workers, progress)


def _renamed(options: VerifyOptions) -> dict[str, str]:
    """Return the old names of ops by the new ones.

    Raises:
        click.UsageError: an option is not a pair of names, or there is no tree before.
    """
    found: dict[str, str] = {}
    for pair in options.renamed:
        old, _, new = pair.partition("=")
        if not old or not new or new in found:
            raise click.UsageError(f"--renamed takes OLD=NEW, once for each NEW, not `{pair}`")
        found[new] = old
    if found and options.before is None:
        raise click.UsageError("--renamed goes with --before")
    if options.expect_removed and options.before is None:
        raise click.UsageError("--expect-removed goes with --before")
    return found


def _run(run: Run, options: VerifyOptions) -> Results:
    from opschema_cli.verify.session import run_cells

    jobs: list[str] = []
    if options.jobs is not None and options.jobs > 1 and not options.tx:
        jobs = ["-n", str(options.jobs)]
    for spec in options.tx:
        jobs += ["--tx", spec]
    with ProgressBar("verifying", "cells", quiet=0, lines=True) as progress:
        return run_cells(run, jobs=jobs, junit=options.junit, options=_result_options(options, progress))


def _merge(options: VerifyOptions) -> int:
    others = (
        *(options.before, options.after, options.renamed, options.expect_removed),
        *(options.shard, options.list_only, options.run_file),
    )
    if not options.ops or any(others):
        raise click.UsageError("--merge takes the files of results of all shards, and nothing else")
    whole, lacks = merge([read_results(Path(path)) for path in options.ops])
    report(whole, options, sum(cell.seconds.get("whole", 0.0) for cell in whole.cells.values()))
    for reason in lacks:
        click.echo(f"opschema: {visible(reason)}", err=True)
    return _exit_code(whole, options)
