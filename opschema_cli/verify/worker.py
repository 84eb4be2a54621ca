"""The process that runs the cells of one op on one side: ``python -m opschema_cli.verify.worker``.

It reads requests from standard input and answers on standard output; both are moved away before the op is imported, whose own
output goes to standard error. A process that is no longer fit for another cell says so and ends.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Protocol

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.phrases import listed
from opschema_cli.verify.binding import UnboundError
from opschema_cli.verify.child_processes import COMPILE_SECONDS
from opschema_cli.verify.loading import (
    AbsentError,
    HarnessError,
    MissingPackageError,
    RefusedError,
    deliberate,
    described,
    forget_start_folder,
    imported_names,
    place_in_harness,
    printable,
    raised_in,
    same_anywhere,
    see_tree,
)
from opschema_cli.verify.model import Ran
from opschema_cli.verify.plan_names import operator_of
from opschema_cli.verify.preloading import slow_package
from opschema_cli.verify.protocol import Done, Load, Loaded, Run, Survey, Surveyed, read_request, write
from opschema_cli.verify.recipes import UNREADABLE, Recipe, find_recipe

UNFIT = 86
"""The exit status of a process that ended itself after its last answer."""

_SPARE_SECONDS = 60
_GRACE = 5.0


class Side(Protocol):
    """Runs cells in this process: an op or the reference."""

    def run(self, request: Run) -> Ran:
        """Run a cell. Raises the op's exceptions and :class:`RefusedError`."""
        ...

    def blames_op(self, error: BaseException) -> bool:
        """Whether the op or a recipe, and not the harness, is responsible for an exception."""
        ...


def main() -> int:
    """Serve until there are no more requests."""
    requests, replies = _streams()
    _report_stacks()
    _forget_core_dumps()
    forget_start_folder()
    load = read_request(requests)
    if isinstance(load, Survey):
        write(replies, _survey(load))
    if not isinstance(load, Load):
        return 0
    loaded, side = _load(load)
    write(replies, loaded)
    while side is not None and (request := read_request(requests)) is not None:
        assert isinstance(request, Run)
        _alarm(request.seconds + COMPILE_SECONDS + _SPARE_SECONDS)
        done = _run(side, request, load)
        write(replies, done)
        if done.last:
            return UNFIT
        _alarm(0)
    return 0


def _report_stacks() -> None:
    """Have Python's stacks written when the process is killed; C's, which Python 3.14 adds, would push them out of the report."""
    if sys.version_info >= (3, 14):
        faulthandler.enable(all_threads=True, c_stack=False)
    else:
        faulthandler.enable(all_threads=True)


def _streams() -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output for the harness alone; the op reads nothing, and its output goes to standard error."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, replies


def _survey(survey: Survey) -> Surveyed:
    from opschema_cli.verify.registered import import_target

    missing: dict[int, str] = {}
    absent: dict[int, str] = {}
    for index, target in enumerate(survey.targets):
        try:
            import_target(target)
        except MissingPackageError as error:
            missing[index] = str(error)
        except AbsentError as error:
            absent[index] = str(error)
        except (Exception, SystemExit):  # it is imported again in a process of its own, where that is reported
            continue
    return Surveyed(missing=missing, absent=absent)


def _load(load: Load) -> tuple[Loaded, Side | None]:
    _limit(load.memory)
    seconds: dict[str, float] = {}
    try:
        side = _side(load, seconds)
    except (RefusedError, OpschemaError) as error:
        absent, missing = isinstance(error, AbsentError), isinstance(error, MissingPackageError)
        return Loaded(status="refused", detail=str(error), seconds=seconds, absent=absent, missing=missing), None
    except HarnessError as error:
        return Loaded(status="failed", detail=str(error), seconds=seconds), None
    except MemoryError:
        return Loaded(status="died", detail="out of memory, importing the op", seconds=seconds), None
    except (Exception, SystemExit) as error:
        detail = f"importing {listed(imported_names(load.target))}: {described(error, load.target.root)}"
        return Loaded(status="raised", detail=detail, seconds=seconds), None
    package = slow_package(seconds["import"]) if "import" in seconds else ""
    return msgspec.structs.replace(getattr(side, "loaded", Loaded()), seconds=seconds, package=package), side


def _side(load: Load, seconds: dict[str, float]) -> Side:
    """Import torch, and the op or the reference.

    Raises:
        RefusedError: see :func:`opschema_cli.verify.registered.import_target`; or it is the reference's side and the recipes raise.
        HarnessError: the recipes cannot be read.
        Exception: whatever the op's import raises.
    """
    from opschema_cli.verify.acceptance import Acceptance
    from opschema_cli.verify.reference import Reference
    from opschema_cli.verify.registered import import_target
    from opschema_cli.verify.runner import Runner

    see_tree(load.target)
    if load.side == "reference":
        return Reference(load, _recipe(load))
    try:
        recipe = _recipe(load)
    except (RefusedError, OpschemaError) as error:
        import_target(load.target)  # if this is what fails, it is what there is to say
        raise HarnessError(f"{UNREADABLE}: {error}") from error
    started = time.monotonic()
    try:
        op = import_target(load.target)
    finally:
        seconds["import"] = time.monotonic() - started
    runner = Runner(op, load, recipe)
    return Acceptance(runner, op, load.op) if load.side in ("search", "search-before") else runner


def _recipe(load: Load) -> Recipe:
    if not load.target.recipe:
        return Recipe()
    path = Path(load.target.root, load.target.recipe)
    try:
        return find_recipe(path, operator_of(load.op))
    except OpschemaError as error:
        raise OpschemaError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        raise RefusedError(f"{path} raises {described(error, str(path.parent))}") from error


def _run(side: Side, request: Run, load: Load) -> Done:
    """Run a cell. No exception of the op ends this process, but a cell that leaves the process unfit is its last one."""
    from opschema_cli.verify.devices import context_lost, out_of_memory, release_memory

    cell = request.cell.id
    try:
        ran = side.run(request)
    except (RefusedError, UnboundError, OpschemaError) as error:
        return Done(ran=Ran(cell=cell, status="refused", detail=printable(str(error))))
    except HarnessError as error:
        return Done(ran=Ran(cell=cell, status="failed", detail=str(error)))
    except (Exception, SystemExit) as error:
        detail = described(error, load.target.root)
        if out_of_memory(error):
            return Done(ran=Ran(cell=cell, status="died", detail=f"out of memory: {detail}"), last=True)
        if context_lost(request.device):
            return Done(ran=Ran(cell=cell, status="died", detail=f"{detail}\nthe CUDA context is lost"), last=True)
        if not side.blames_op(error):
            return Done(ran=Ran(cell=cell, status="failed", detail=f"{detail}\n{place_in_harness(error)}"))
        error_text, where = same_anywhere(error, load.target.root), raised_in(error, load.target.root)
        meant = deliberate(error, load.target.root)
        return Done(ran=Ran(cell=cell, status="raised", detail=detail, error=error_text, place=where, deliberate=meant))
    lost = context_lost(request.device)
    if not lost:
        release_memory(request.device)
    return Done(ran=ran, last=lost)


def _alarm(seconds: float) -> None:
    """Have the system end this process even if nobody is left who would: nothing that hangs outlives the harness."""
    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds))


def _forget_core_dumps() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(memory: int) -> None:
    if memory and sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _end_with_the_harness() -> None:
    """End this process and all that it started soon after the other end of standard input is closed, even within an op.

    Forked workers do not need it: the forkserver ends them.
    """
    requests = os.dup(0)

    def watch() -> None:
        hung_up = select.poll()
        hung_up.register(requests, 0)
        hung_up.poll()
        time.sleep(_GRACE)  # one that is idle ends by itself
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    if hasattr(select, "poll"):
        _end_with_the_harness()
    status = main()
    sys.stderr.flush()
    os._exit(status)
