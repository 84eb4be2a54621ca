"""``python -m benchmarks.walkthroughs``: the time of each command of the tutorials, and of each step of a user of Neovim.

Each page that walks through a fixture starts in a fresh copy of it with an empty cache; its commands run as a reader types them,
each in a process of its own. ``--write`` writes ``docs/walkthrough-times.md`` and the times that the pages show. Wall time is the
median of the runs; processor time, which a busy machine changes less, includes child processes. ``--nvim`` is the command of
Neovim; it types the steps of ``tests/server/walkthrough.lua``, whose ends are the moments at which the editor shows the result.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from website.walkthrough import all_steps, copy_repository, repository

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TIMES = DOCS / "walkthrough-times.md"
SCRIPT = ROOT / "tests/server/walkthrough.lua"
NEOVIM_TREE, NEOVIM_FILE = "tilekit", "tilekit/manifest/elementwise.yaml"

_SECONDS = re.compile(r"\b\d+\.\d\d s\b")


class Taken(msgspec.Struct, frozen=True):
    """The seconds that a command took, of wall time and of the processor, and what it printed."""

    wall: float
    processor: float
    output: str


def pages() -> Iterator[Path]:
    """The pages that walk through a repository: the first page, then the tutorials."""
    for path in (DOCS / "README.md", *sorted(DOCS.rglob("*/*.md"))):
        if repository(path.read_text(encoding="utf-8")):
            yield path


def walk(text: str, environment: Mapping[str, str]) -> list[Taken]:
    """The times of the commands of a page, in a copy of its repository."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "kit"
        copy_repository(repository(text), folder)
        own = {**environment, "OPSCHEMA_CACHE_DIR": str(Path(name) / "cache")}
        return [_taken(step.command, folder, own) for step in all_steps(text)]


def _taken(command: str, folder: Path, environment: Mapping[str, str]) -> Taken:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"$ {command}\n{done.stderr}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall, processor, done.stdout + done.stderr)


def neovim(nvim: str, environment: Mapping[str, str]) -> list[tuple[str, float]]:
    """The steps of the user of Neovim, with the seconds until the editor showed the result of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / NEOVIM_TREE
        copy_repository([NEOVIM_TREE], folder)
        own = {
            **environment,
            "OPSCHEMA_CACHE_DIR": str(Path(name) / "cache"),
            "XDG_STATE_HOME": name,
            "WALK_PYTHON": sys.executable,
            "WALK_ROOT": str(folder),
            "WALK_FILE": str(folder / NEOVIM_FILE),
        }
        command = [nvim, "--clean", "--headless", "-c", f"luafile {SCRIPT}", "-c", "cquit"]
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=120)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        steps = [item for item in found if "ms" in item]
        if len(steps) != 3 or not all(item["done"] for item in steps):
            raise SystemExit(f"{nvim}: {done.stdout}{done.stderr}")
        names = (
            f"open `{NEOVIM_FILE}` with an empty cache: its findings are shown",
            "type `fp16` for a dtype: the error is shown",
            "apply the quick fix: the error disappears",
        )
        return [(name, item["ms"] / 1000) for name, item in zip(names, steps, strict=True)]


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--nvim", default=shutil.which("nvim"), help="the command of Neovim")
    parser.add_argument(
        "--write", action="store_true", help="write the page of times, and the times that the pages show"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        environment = _with_opschema(Path(name))
        subprocess.run(
            ["opschema", "--version"], env=environment, check=True, capture_output=True
        )  # compiles the modules
        walks = {path: [walk(path.read_text("utf-8"), environment) for _ in range(options.runs)] for path in pages()}
        typed = [neovim(options.nvim, environment) for _ in range(options.runs)] if options.nvim else []
    text = _page(walks, typed, options.runs)
    print(text)
    if options.write:
        if not options.nvim:
            raise SystemExit("--write needs Neovim (--nvim): the page has its times as well")
        TIMES.write_text(text, encoding="utf-8")
        for path, runs in walks.items():
            _write_times(path, _median_run(runs))


def _write_times(path: Path, run: Sequence[Taken]) -> None:
    """Write the times of a run to a page, and to the README, which shows outputs of the first page."""
    text = path.read_text(encoding="utf-8")
    new = _with_times(text, run)
    path.write_text(new, encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for before, after in zip(all_steps(text), all_steps(new), strict=True):
        readme = readme.replace(before.output, after.output) if _SECONDS.search(before.output) else readme
    (ROOT / "README.md").write_text(readme, encoding="utf-8")


def _with_opschema(folder: Path) -> dict[str, str]:
    """The environment in which ``opschema`` is this checkout, run by this Python."""
    command = folder / "opschema"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m opschema_cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": f"{ROOT}:{ROOT / 'rules'}", "PATH": f"{folder}:{kept['PATH']}"}


def _median_run(runs: Sequence[Sequence[Taken]]) -> Sequence[Taken]:
    return sorted(runs, key=lambda run: sum(item.wall for item in run))[len(runs) // 2]


def _page(
    walks: Mapping[Path, Sequence[Sequence[Taken]]], typed: Sequence[Sequence[tuple[str, float]]], runs: int
) -> str:
    lines = [
        "# Times of the walkthroughs",
        "",
        "Each walkthrough starts in a fresh copy of its repository with an empty cache. Its commands run in order, each in a new",
        "process; only `opschema` commands are timed. Seconds are wall time; processor time includes child processes.",
        f"Median of {runs} runs. {_machine()}.{_busy()} Written by `python -m benchmarks.walkthroughs --write`.",
        "",
        "| walkthrough | command | seconds | processor |",
        "|---|---|---|---|",
    ]
    for path, found in walks.items():
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ").removeprefix("Tutorial: ")
        title = "First page" if path == DOCS / "README.md" else title[0].upper() + title[1:]
        link = f"[{title}]({path.relative_to(DOCS).as_posix()})"
        for number, step in enumerate(all_steps(text)):
            if step.command.startswith("opschema "):
                wall, processor = (
                    statistics.median(getattr(run[number], name) for run in found) for name in ("wall", "processor")
                )
                lines.append(f"| {link} | `{step.command}` | {wall:.2f} | {processor:.2f} |")
                link = ""
        total = (
            statistics.median(sum(getattr(item, name) for item in run) for run in found)
            for name in ("wall", "processor")
        )
        lines.append(f"| | all | {next(total):.2f} | {next(total):.2f} |")
    if typed:
        lines += [
            "",
            "## Neovim",
            "",
            "Neovim, set up as in [editors](editors.md#neovim), in the repository of the TileOPs tutorial. The time is measured",
            "from the user's action to the result on the screen.",
            "",
            "| step | seconds |",
            "|---|---|",
        ]
        for number, (name, _) in enumerate(typed[0]):
            lines.append(f"| {name} | {statistics.median(run[number][1] for run in typed):.2f} |")
    return "\n".join(lines) + "\n"


def _machine() -> str:
    """The machine, in words."""
    names = re.findall(r"(?m)^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    model = re.sub(r"\s+", " ", names[0]) if names else platform.machine()
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def _busy() -> str:
    """A warning about wall times if the machine is busy."""
    load = os.getloadavg()[0]
    busy = load > 1.5 * (os.cpu_count() or 1)
    return f" The machine was busy (load {load:.0f}), so wall times are too high." if busy else ""


def _with_times(text: str, run: Sequence[Taken]) -> str:
    """A page with the times of a run in the outputs that it shows."""
    at = 0
    for step, taken in zip(all_steps(text), run, strict=True):
        start = text.index(f"$ {step.command}\n", at)
        end = start + len(f"$ {step.command}\n{step.output}")
        shown, found = text[start:end], _SECONDS.findall(taken.output)
        if found and len(_SECONDS.findall(shown)) == len(found):
            times = iter(found)
            shown = _SECONDS.sub(lambda _, times=times: next(times), shown)
        text = text[:start] + shown + text[end:]
        at = start + len(shown)
    return text


if __name__ == "__main__":
    main()
