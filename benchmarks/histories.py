"""Counts the breaking changes that ``opschema diff`` finds in the histories of public repositories.

    git clone --bare https://github.com/tile-ai/TileOPs repositories/tile-ai+TileOPs.git    # likewise the others of HISTORIES
    python -m benchmarks.histories repositories results                  # all; or some: `... results TileOPs xla`
    python -m benchmarks.histories --table results                       # the figures of what was counted

Each commit that changes files of operators is compared with its first parent, up to the last 200. `results` has a file for each
repository with a line of JSON for each commit; commits that it has are not compared again. Nothing is checked out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LAST = 200


@dataclass(frozen=True)
class History:
    """A repository, the pathspecs of the files that have its operators, and the configuration with which it is compared. With
    ``words``, an extended regular expression, only files count that match it at HEAD.
    """

    name: str
    paths: tuple[str, ...]
    config: str = ""
    words: str = ""


HISTORIES = (
    History(
        "tile-ai+TileOPs",
        (
            "ops_manifest.yaml",
            "tileops/ops_manifest.yaml",
            ":(glob)tileops/manifest/*.yaml",
            ":(glob)src/tileops/manifest/*.yaml",
        ),
    ),
    History(
        "pytorch+FBGEMM",
        ("fbgemm_gpu", ":!*/test/*", ":!*/bench/*"),
        words=r"m\.def\(|TORCH_LIBRARY|library\.(custom_op|define|Library)|lib\.define\(",
    ),
    # The kernels of simpler are those of its tests and examples.
    History("hw-native-sys+simpler", ("*.py", "*.cpp"), "[diff]\nprivate = []\n"),
    History("pytorch+xla", ("codegen/xla_native_functions.yaml", "xla_native_functions.yaml")),
    History("SandAI-org+MagiCompiler", (".",)),
    History("cennn+MagiCompiler", (".",)),
)
"""The histories, by owner and name of their repositories."""

Line = dict[str, object]


def commits(repository: Path, history: History) -> list[tuple[str, str]]:
    """The last commits that change files of operators, newest first, each with its subject; not a first one, without parent."""
    paths: Sequence[str] = history.paths
    if history.words:
        lines = asked(repository, "grep", "-lE", history.words, "HEAD", "--", *paths)
        paths = [line.removeprefix("HEAD:") for line in lines]
    lines = asked(
        repository, "log", f"--max-count={LAST}", "--min-parents=1", "--format=%h%x09%s", "HEAD", "--", *paths
    )
    found = [line.partition("\t") for line in lines]
    return [(commit, subject) for commit, _, subject in found]


def asked(repository: Path, *query: str) -> list[str]:
    """The lines of an answer of git."""
    answer = subprocess.run(["git", "-C", str(repository), *query], check=True, capture_output=True, text=True)
    return answer.stdout.splitlines()


def compared(tree: Path, commit: str, subject: str) -> Line:
    """The result of one comparison; ``seconds`` are of wall time."""
    command = [sys.executable, "-m", "opschema_cli", "diff", f"{commit}~1..{commit}", "--output-format", "json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    answer = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    seconds = round(time.perf_counter() - started, 2)
    line: Line = {"commit": commit, "subject": subject, "exit": answer.returncode, "seconds": seconds}
    if not answer.stdout.startswith("{"):
        return {**line, "failure": answer.stderr.strip()}
    report = json.loads(answer.stdout)
    return {**line, "findings": report["diagnostics"], "unclear": report["summary"]["unresolved"]}


def counted(repositories: Path, results: Path, history: History) -> None:
    """Compare each commit of a history that ``results`` lacks."""
    repository = repositories / f"{history.name}.git"
    tree, output = results / history.name, results / f"{history.name}.jsonl"
    if not tree.is_dir():
        # A tree without files, beside the objects of the repository: both sides are commits.
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", repository, tree], check=True)
    (tree / "opschema.toml").write_text(history.config)
    known = {line["commit"] for line in read(output)}
    todo = [pair for pair in commits(repository, history) if pair[0] not in known]
    with output.open("a") as stream:
        for number, (commit, subject) in enumerate(reversed(todo), 1):
            line = compared(tree, commit, subject)
            print(f"{history.name} {number}/{len(todo)} {commit} {line['seconds']} s", flush=True)
            stream.write(json.dumps(line) + "\n")
            stream.flush()


def read(output: Path) -> list[Line]:
    """The results of a history."""
    return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []


def breaking(line: Line) -> list[str]:
    """The kinds of the breaking changes of a commit."""
    findings = line.get("findings", [])
    assert isinstance(findings, list)
    return [item["name"] for item in findings if item["severity"] == "error"]


def figures(results: Path) -> Iterator[str]:
    """A line for each history."""
    for history in HISTORIES:
        lines = read(results / f"{history.name}.jsonl")
        kinds = Counter(kind for line in lines for kind in breaking(line))
        seconds = sum(float(str(line["seconds"])) for line in lines)
        failed = sum("failure" in line for line in lines)
        broken = sum(bool(breaking(line)) for line in lines)
        shown = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
        yield (
            f"{history.name}: {len(lines)} commits ({failed} failed), {broken} with {kinds.total()} breaking changes"
            f"{f' ({shown})' if shown else ''}, {seconds:.0f} s"
        )


def main() -> None:
    """Count, or print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("folders", nargs="+", metavar="FOLDER|NAME")
    chosen = parser.parse_args()
    if chosen.table:
        print("\n".join(figures(Path(chosen.folders[0]))))
        return
    repositories, results, *names = chosen.folders
    Path(results).mkdir(parents=True, exist_ok=True)
    for history in HISTORIES:
        if not names or any(name in history.name for name in names):
            counted(Path(repositories).resolve(), Path(results).resolve(), history)


if __name__ == "__main__":
    main()
