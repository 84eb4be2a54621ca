"""A workspace with its files parsed: what packs load their subjects from.

Parsing goes through the content cache; cold Python files are parsed by worker processes. A file that
cannot be read or parsed becomes a diagnostic here, once, and reads as None everywhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from opschema_cli import __version__
from opschema_cli.cache import Cache
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.source.python import FACTS_VERSION, ModuleFacts, PythonFile
from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml import Document, YamlFile, YamlSyntaxError, compose
from opschema_cli.workspace import ReadError, Workspace

T = TypeVar("T")

POOL_THRESHOLD = 400_000
"""Characters of cold Python above which a second worker pays for its start."""

MAX_JOBS = 8

_PARSER_DIED = "the parser died of it or took too long; it nests deeply, or is generated"

UNREADABLE, YAML_SYNTAX, PYTHON_SYNTAX = "OPS101", "YML001", "OPS102"


class Project:
    """Parsed files of one workspace.

    ``jobs`` processes parse Python; with 0 it is parsed here, where hostile text can kill or stall the program.
    ``progress`` is told how many files of how many are parsed.
    """

    def __init__(
        self,
        workspace: Workspace,
        cache: Cache | None = None,
        jobs: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.workspace = workspace
        self.cache = cache or Cache(None)
        self.jobs = jobs
        self.progress = progress or (lambda done, total: None)
        self.problems: dict[tuple[str, str], Diagnostic] = {}
        self.inputs: set[str] = set()
        self._yaml: dict[str, YamlFile | None] = {}
        self._python: dict[str, PythonFile | None] = {}

    def with_overlay(self, overlay: Mapping[str, str | None]) -> Project:
        """The same project with these texts on top; what else was parsed stays parsed."""
        other = Project(self.workspace.with_overlay(overlay), self.cache, self.jobs, self.progress)
        other.inputs = self.inputs - overlay.keys()
        other.problems = {key: found for key, found in self.problems.items() if key[1] not in overlay}
        other._yaml = {path: file for path, file in self._yaml.items() if path not in overlay}
        other._python = {path: file for path, file in self._python.items() if path not in overlay}
        return other

    def source(self, path: str) -> Source | None:
        """A file's text; None, with a diagnostic, if it cannot be read."""
        self.inputs.add(path)
        try:
            return self.workspace.source(path)
        except ReadError as error:
            self._problem(UNREADABLE, path, f"this file cannot be read: {error.reason}", 0)
            return None

    def yaml(self, path: str) -> YamlFile | None:
        """A YAML file's tree; None, with a diagnostic, if it cannot be read or parsed."""
        if path not in self._yaml:
            self.load_yaml([path])
        return self._yaml[path]

    def python(self, path: str) -> PythonFile | None:
        """A Python file's facts; None, with a diagnostic, if it cannot be read or parsed."""
        if path not in self._python:
            self.load_python([path])
        return self._python[path]

    def load_yaml(self, paths: Iterable[str]) -> None:
        """Parse many YAML files, those in the cache from there."""
        wanted = [path for path in dict.fromkeys(paths) if path not in self._yaml]
        self._yaml.update(dict.fromkeys(wanted, None))
        sources = self._sources(wanted)
        kind = f"yaml/{__version__}"
        cached = self.cache.get(kind, (source.digest for source in sources))
        fresh: dict[str, bytes] = {}
        for source in sources:
            document = _decoded(cached.get(source.digest), Document)
            if document is None:
                try:
                    document = compose(source.text)
                except YamlSyntaxError as error:
                    self._problem(YAML_SYNTAX, source.path, f"this is not YAML: {error.reason}", error.span.start)
                    continue
                fresh[source.digest] = msgspec.msgpack.encode(document)
            self._yaml[source.path] = YamlFile(source, document)
        self.cache.put(kind, fresh)

    def load_python(self, paths: Iterable[str]) -> None:
        """Parse many Python files: cached ones from the cache, cold ones in worker processes."""
        wanted = [path for path in dict.fromkeys(paths) if path not in self._python]
        self._python.update(dict.fromkeys(wanted, None))
        sources = self._sources(wanted)
        kind = f"python/{__version__}/{FACTS_VERSION}/{sys.version_info[0]}.{sys.version_info[1]}"
        cached = self.cache.get(kind, (source.digest for source in sources))
        facts = {source.path: _decoded(cached.get(source.digest), ModuleFacts) for source in sources}
        cold = [source for source in sources if facts[source.path] is None]
        parsed = self._parse(cold)
        self.cache.put(kind, {source.digest: parsed[source.path] for source in cold})
        for source in sources:
            found = facts[source.path] or _decoded(parsed[source.path], ModuleFacts)
            if found is None or found.error:
                reason, offset = (found.error, found.error_at) if found else (_PARSER_DIED, 0)
                self._problem(PYTHON_SYNTAX, source.path, f"this is not Python: {reason}", offset)
            else:
                self._python[source.path] = PythonFile(source, found)

    def _parse(self, sources: list[Source]) -> dict[str, bytes]:
        if not sources:
            return {}
        # Not at the top: a run whose files are all cached imports neither libcst nor multiprocessing.
        from opschema_cli.source.python_workers import encoded_facts, parse_in_workers

        texts = [source.text for source in sources]
        many = sum(map(len, texts)) > POOL_THRESHOLD
        jobs = min(self.jobs, MAX_JOBS if many else 1)
        parsed = parse_in_workers(texts, jobs) if jobs else enumerate(map(encoded_facts, texts))
        done: dict[str, bytes] = {}
        for number, facts in parsed:
            done[sources[number].path] = facts
            self.progress(len(done), len(sources))
        return done

    def _sources(self, paths: Iterable[str]) -> list[Source]:
        return [source for source in map(self.source, paths) if source is not None]

    def _problem(self, code: str, path: str, message: str, offset: int) -> None:
        place = Place(path, Span(offset, offset))
        self.problems[code, path] = Diagnostic(message, place, code=code)


def _decoded(data: bytes | None, kind: type[T]) -> T | None:
    if data is None:
        return None
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
