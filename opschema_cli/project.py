"""A workspace with its parsed files, from which packs load their subjects.

Parsing goes through the content cache; cold Python files are parsed by worker processes. A file that
cannot be read or parsed becomes a diagnostic here, once, and reads as None everywhere else. It is one module because it is
one class: all kinds of files share its records of inputs, problems and missing parsers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from opschema_cli import __version__
from opschema_cli.cache import Cache, decoded
from opschema_cli.file_kinds import is_python, is_yaml
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Missing, Place
from opschema_cli.readings import Reading, Readings, Shelf
from opschema_cli.regular_files import content_digest
from opschema_cli.source.python import FACTS_VERSION, ModuleFacts, PythonFile
from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml import Document, Node, YamlFile, YamlSyntaxError
from opschema_cli.source.yaml_compose import compose
from opschema_cli.worker_readings import WorkerReadings
from opschema_cli.workspace import ReadError, Workspace

if TYPE_CHECKING:
    from opschema_cli.source.cpp import CppTree
    from opschema_cli.source.python_tree import PythonTree
    from opschema_cli.source.python_workers import Parsers

T = TypeVar("T")
C = TypeVar("C")

_STORED_AT_ONCE = 50
"""Texts whose facts are put into the cache together; until then they are held twice, packed and unpacked."""

_PAUSE = 0.003
"""Seconds for which the texts that workers hold keep them busy."""

_PYTHON = f"python/{__version__}/{FACTS_VERSION}/{sys.version_info[0]}.{sys.version_info[1]}"

_PARSER_DIED = "this is not Python: the parser died of it or took too long; it nests deeply, or is generated"
_READER_DIED = "the process that read it died of it, or took too long"
_REFUSED = (
    "this file was not parsed, since the run has spent too much time on other files that nest deeply or are generated; "
    "exclude those"
)

SHORT = 100_000
"""Characters up to which a text is parsed sooner than a worker has started."""

UNREADABLE, YAML_SYNTAX, PYTHON_SYNTAX, CPP_UNREAD = "OPS101", "YML001", "OPS102", "OPS103"
NOT_CHECKED = "OPS104"


class Project:
    """Parsed files of one workspace.

    ``parsers`` gives the processes that parse Python; without, it is parsed here, where hostile text can kill or stall
    the program. :attr:`with_trees` has them send the trees as well, for :meth:`tree`. ``progress`` is told how many files
    of how many are parsed. ``stamp`` identifies the code of the packs, under which their readings are cached; empty, they
    are not. ``as_implemented`` names operators to judge as if they were implemented. :attr:`missing` collects the files that
    were not parsed since their parser is not installed. :attr:`checkpoint` is called again and again during a run, which it may
    end by an exception.
    """

    def __init__(
        self,
        workspace: Workspace,
        cache: Cache | None = None,
        parsers: Callable[[], Parsers] | None = None,
        progress: Callable[[int, int], None] | None = None,
        stamp: str = "",
        as_implemented: frozenset[str] = frozenset(),
    ) -> None:
        self.workspace = workspace
        self.cache = cache or Cache(None)
        self.parsers = parsers
        self.progress = progress or (lambda done, total: None)
        self.checkpoint: Callable[[], None] = lambda: None
        self.stamp = stamp
        self.as_implemented = as_implemented
        self.problems: dict[tuple[str, str], Diagnostic] = {}
        self.missing: list[Missing] = []
        self.inputs: set[str] = set()
        self.claimed: set[str] = set()
        self.with_trees = False
        self._yaml: dict[str, YamlFile | None] = {}
        self._guessed: dict[str, YamlFile | None] = {}
        self._python: dict[str, PythonFile | None] = {}
        self._cpp: dict[str, CppTree | None] = {}
        self._readings = Readings(self.cache, stamp)
        self._elsewhere = WorkerReadings()
        self._awaited: dict[str, list[Source]] = {}
        self._fresh: dict[str, bytes] = {}
        self._expected: dict[str, bytes] = {}
        self._of_files: set[str] = set()
        self._trees: dict[str, bytes] = {}
        self._cold = self._done = 0
        self._when_parsed: list[tuple[set[str], Callable[[], None]]] = []
        self._when_settled: list[Callable[[], None]] = []
        self._lenient: set[str] = set()
        self._fed = 0.0

    def with_overlay(self, overlay: Mapping[str, str | None]) -> Project:
        """Return a copy of the project with these texts as its overlay. It shares all other parsed files, including those still
        being parsed.
        """
        self.settle()
        other = self._without(self.workspace.with_overlay(overlay), overlay.keys())
        other.inputs = self.inputs - overlay.keys()
        other.missing = self.missing
        other.claimed = self.claimed
        other.problems = {key: found for key, found in self.problems.items() if key[1] not in overlay}
        return other

    def updated(self, overlay: Mapping[str, str | None], changed: Iterable[str]) -> Project:
        """Return the project for the next run, with another overlay and ``changed`` files. It keeps the other parsed files.
        Files that could not be read or parsed are reported again when requested. See :meth:`Workspace.updated`.
        """
        self.settle()
        unknown = {
            path for files in (self._yaml, self._python, self._cpp) for path, file in files.items() if file is None
        }
        return self._without(self.workspace.updated(overlay, changed), unknown.union(changed))

    def _without(self, workspace: Workspace, left_out: Collection[str]) -> Project:
        """A project of another workspace that shares all parsed files but some."""
        other = Project(workspace, self.cache, self.parsers, self.progress, self.stamp, self.as_implemented)
        other.checkpoint = self.checkpoint
        other._readings = self._readings
        other._guessed = {path: file for path, file in self._guessed.items() if path not in left_out}
        other._yaml = {path: file for path, file in self._yaml.items() if path not in left_out}
        other._python = {path: file for path, file in self._python.items() if path not in left_out}
        other._cpp = {path: tree for path, tree in self._cpp.items() if path not in left_out}
        other._expected = self._expected
        other._trees = self._trees
        other._lenient = self._lenient
        return other

    def continue_in_fork(self, cache: Cache, parsers: Callable[[], Parsers]) -> None:
        """Go on in a forked process, with a cache and parsers of its own. What is parsed stays so.

        Raises:
            RuntimeError: something is being parsed, which only the process that has the parsers will know.
        """
        if self._awaited:
            raise RuntimeError(f"{len(self._awaited)} texts are being parsed")
        self.cache, self.parsers = cache, parsers
        self._readings.cache = cache
        self._readings.forget_fresh()
        self.progress = lambda done, total: None

    def expect(self, text: str) -> None:
        """Let workers parse the probable new text of a Python file in the background."""
        digest = content_digest(text.encode("utf-8", "surrogatepass"))
        if not self._knows(digest):
            self._expect(text, digest)

    def expect_file(self, path: str) -> None:
        """Parse a Python file ahead of a later request by this project or, through the cache, by another process. A short file
        is parsed immediately in this process, which can crash; use this only in an expendable process.
        """
        # Not at the top: other processes leave it to workers.
        from opschema_cli.source.parsing import plain_facts

        with suppress(ReadError):  # told to who asks
            source = self.workspace.source(path)
            if not self._knows(source.digest):
                facts = plain_facts(source.text) if len(source.text) <= SHORT else b""
                if facts:
                    self._expected[source.digest] = facts
                    self.cache.put(_PYTHON, {source.digest: facts})
                else:
                    self._of_files.add(source.digest)
                    self._expect(source.text, source.digest)

    def _knows(self, digest: str) -> bool:
        return digest in self._expected or digest in self.cache.get(_PYTHON, [digest])

    def _expect(self, text: str, digest: str) -> None:
        if self.parsers is not None:
            self._awaited.setdefault(digest, [])
            self.parsers().submit({digest: text})
            self.pump()

    def claim(self, paths: Iterable[str]) -> None:
        """Record that files belong to the linted ones: an unreadable or unparsable one is reported."""
        self.claimed.update(paths)

    def source(self, path: str) -> Source | None:
        """A file's text; None, with a diagnostic, if it cannot be read."""
        return self._source_of(path, self.workspace.source)

    def _source_of(self, path: str, read: Callable[[str], Source]) -> Source | None:
        self.inputs.add(path)
        try:
            return read(path)
        except ReadError as error:
            self._problem(UNREADABLE, path, f"this file cannot be read: {error.reason}", 0)
            return None

    def scan(self, scan: Reading[bytes, T], paths: Iterable[str]) -> Iterator[tuple[str, T]]:
        """Yield each of these files with the result of a scan. The scan receives an empty text for an unreadable file."""
        return self._values(
            scan, paths, self.workspace.digest, lambda path: self._read_with(scan, path, self.workspace.peek(path))
        )

    def readings(self, reading: Reading[str, T], paths: Iterable[str]) -> dict[str, T]:
        """The values of a reading for those of these files that can be read."""
        return self._source_values(reading, paths, lambda source: source.text)

    def _read_with(self, reading: Reading[C, T], path: str, content: C) -> T:
        """The value of a reading for a content, after those that are computed along with it."""
        for other in reading.along:
            shelf, digest = self._readings.of(other), self.workspace.digest(path)
            if shelf.get(digest) is None:
                shelf.put(digest, other.read(content))
        return reading.read(content)

    def file_readings(self, reading: Reading[PythonFile, T], files: Iterable[PythonFile]) -> dict[str, T]:
        """The values of a reading for each of these files."""
        given = {file.path: file for file in files}
        return dict(
            self._values(reading, given, lambda path: given[path].source.digest, lambda path: reading.read(given[path]))
        )

    def python_readings(self, reading: Reading[PythonFile, T], paths: Iterable[str]) -> dict[str, T]:
        """The values of a reading for those of these Python files that parse; only files whose value is not known are parsed."""
        asked = list(dict.fromkeys(paths))
        self.inputs.update(asked)
        shelf = self._readings.of(reading)
        self.load_python(path for path in asked if shelf.get(self.workspace.digest(path)) is None)

        def value_of(path: str) -> T | None:
            file = self.python(path)
            found = shelf.get(self.workspace.digest(path))  # which may have come with the file
            return reading.read(file) if found is None and file is not None else found

        return dict(self._values(reading, asked, self.workspace.digest, value_of))

    def cpp_readings(self, reading: Reading[CppTree, T], paths: Iterable[str]) -> dict[str, T]:
        """The values of a reading for those of these C++ files that can be read and parsed; their trees are not kept. A Python file
        counts with the C++ in its strings (:mod:`opschema_cli.source.inline_cpp`).
        """
        return self._source_values(reading, paths, self._parsed_cpp, cpp=True)

    def _source_values(
        self, reading: Reading[C, T], paths: Iterable[str], parse: Callable[[Source], C | None], *, cpp: bool = False
    ) -> dict[str, T]:
        """The values of a reading for texts of files, as ``parse`` makes them. Texts whose value is known are not read, and none is
        kept.
        """
        asked = list(dict.fromkeys(paths))
        self.inputs.update(asked)
        if self.parsers is not None and (cpp or reading.costly):
            shelf = self._readings.of(reading)
            unknown = {digest: path for path in asked if shelf.get(digest := self.workspace.digest(path)) is None}
            texts = ((digest, text) for digest, path in unknown.items() if (text := self._peek_text(path, cpp=cpp)))
            readings, wait = (reading, *reading.along), partial(self._collect, wait=True)
            self._elsewhere.compute(self.parsers, readings, texts, wait, cpp=cpp)

        def value_of(path: str) -> T | None:
            source = self._source_of(path, self.workspace.peek_source)
            if source is None or self._is_deadly(source):
                return None
            content = parse(source)
            return self._read_with(reading, path, content) if content is not None else None

        return dict(self._values(reading, asked, self.workspace.digest, value_of))

    def _peek_text(self, path: str, *, cpp: bool) -> str:
        """Return the text of a file, or with ``cpp`` its C++; return an empty text if there is none, or the file cannot be read."""
        with suppress(ReadError):
            source = self.workspace.peek_source(path)
            return (_cpp_of(source) or "") if cpp else source.text
        return ""

    def _is_deadly(self, source: Source) -> bool:
        if source.digest not in self._elsewhere.deadly:
            return False
        self._problem(CPP_UNREAD, source.path, f"this C++ is not read: {_READER_DIED}", 0)
        return True

    def _values(
        self,
        reading: Reading[Any, T],
        paths: Iterable[str],
        digest: Callable[[str], str],
        read: Callable[[str], T | None],
    ) -> Iterator[tuple[str, T]]:
        """The values of a reading for files, by their digests; files without any are left out."""
        shelf = self._readings.of(reading)
        for path in paths:
            self.feed()
            found = shelf.get(digest(path))
            if found is None:
                found = read(path)
                if found is not None:
                    shelf.put(digest(path), found)  # which may be another, now that the file is read
            if found is not None:
                yield path, found

    def shelf(self, name: str, kind: type[T]) -> Shelf[T]:
        """Values that are cached by keys of the caller's choice, under a name that is unique among all readings."""
        return self._readings.shelf(name, kind)

    def hand_over_readings(self) -> dict[str, dict[str, bytes]]:
        """The values of readings and shelves that are not stored yet, encoded, for another process that stores them."""
        fresh = self._readings.fresh()
        self._readings.forget_fresh()
        return fresh

    def take_readings(self, fresh: Mapping[str, Mapping[str, bytes]]) -> None:
        """Add those of another process."""
        self._readings.take(fresh)

    def save_readings(self) -> None:
        """Store the values of readings for later runs."""
        self._readings.save()

    def yaml(self, path: str) -> YamlFile | None:
        """A YAML file's tree; None, with a diagnostic, if it cannot be read or parsed."""
        if path not in self._yaml:
            self.load_yaml([path])
        return self._yaml[path]

    def guess_yaml(self, path: str) -> YamlFile | None:
        """The tree of a YAML file that may be anything; None if it cannot be read or parsed, which is not reported."""
        if path in self._yaml:
            return self._yaml[path]
        if path not in self._guessed:
            self._guessed[path] = None
            with suppress(ReadError):
                source = self.workspace.source(path)
                self._guessed.update((path, file) for file in self._composed([source], lambda *_: None))
        return self._guessed[path]

    def python(self, path: str) -> PythonFile | None:
        """A Python file's facts, once they are there; None, with a diagnostic, if it cannot be read or parsed."""
        if path not in self._python:
            self.load_python([path])
        source = self.source(path) if self._awaited else None
        while source is not None and source.digest in self._awaited:
            self._collect(wait=True)
        return self._python[path]

    def starlark(self, paths: Iterable[str]) -> dict[str, PythonFile]:
        """Facts of files of Bazel or Buck, whose language is nearly a part of Python; those that do not parse are left out,
        and not reported.
        """
        asked = list(paths)
        self._lenient.update(asked)
        self.load_python(asked)
        return {path: file for path in asked if (file := self.python(path)) is not None}

    def cpp(self, path: str) -> CppTree | None:
        """A C++ file's tree, errors and all; None, with a diagnostic, if it cannot be read or parsed."""
        if path not in self._cpp:
            source = self.source(path)
            self._cpp[path] = self._parsed_cpp(source) if source is not None else None
        return self._cpp[path]

    def _parsed_cpp(self, source: Source) -> CppTree | None:
        # Not at the top: most runs read no C++.
        from opschema_cli.source.cpp import CppError, CppUnavailableError, parse_cpp

        text = _cpp_of(source)
        if text is None:
            return None
        try:
            return parse_cpp(text)
        except CppUnavailableError as error:
            self.missing.append(Missing(CPP, str(error), error.hint, (source.path,), error.name or ""))
        except CppError as error:
            self._problem(CPP_UNREAD, source.path, f"this C++ is not read: {error.reason}", error.span.start)
        return None

    def why_unread(self, path: str) -> str:
        """Return the reason, for a message, why a requested file is not available."""
        problems = (item.message for item in self.problems.values() if item.place.path == path)
        missing = (f"{item.reason}: {item.hint}" for item in self.missing if path in item.files)
        return [*problems, *missing, "it cannot be read"][0]

    def tree(self, path: str) -> PythonTree:
        """Return a Python file's tree for rewriting: the one parsed with its facts, if any.

        Raises:
            ReadError: the file cannot be read.
            TreeError: it does not parse.
        """
        # Not at the top: it imports libcst, which a run that rewrites nothing does without.
        from opschema_cli.source.python_tree import PythonTree

        source = self.workspace.source(path)
        packed = self._trees.get(source.digest)
        return PythonTree.unpacked(source.text, packed) if packed else PythonTree.parse(source.text)

    def yaml_root(self, path: str) -> Node | None:
        """Return the root of a YAML file, or None if the file is not YAML, is empty or does not parse."""
        file = self.yaml(path) if is_yaml(path) else None
        return file.root if file is not None else None

    def parses(self, path: str) -> bool:
        """Whether a file parses. Files that are neither YAML nor Python never do."""
        if is_yaml(path):
            return self.yaml(path) is not None
        return not is_python(path) or self.python(path) is not None

    def load_yaml(self, paths: Iterable[str]) -> None:
        """Parse many YAML files, those in the cache from there."""
        wanted = [path for path in dict.fromkeys(paths) if path not in self._yaml]
        self._yaml.update((path, self._guessed.get(path)) for path in wanted)
        self.inputs.update(wanted)
        sources = self._sources(path for path in wanted if self._yaml[path] is None)
        self._yaml.update((file.path, file) for file in self._composed(sources, self._not_yaml))

    def _not_yaml(self, source: Source, error: YamlSyntaxError) -> None:
        if source.path in self.workspace.provided or os.path.isabs(source.path):  # not a file of the tree
            reason = f"`{source.path}` is not read, and what is compared with it is not checked: {error.reason}"
            self._problem(NOT_CHECKED, source.path, reason, error.span.start)
        else:
            self._problem(YAML_SYNTAX, source.path, f"this is not YAML: {error.reason}", error.span.start)

    def _composed(
        self, sources: Sequence[Source], refused: Callable[[Source, YamlSyntaxError], None]
    ) -> Iterator[YamlFile]:
        """Yield the trees of texts, from the cache where possible. ``refused`` is called for each text that is not valid YAML."""
        kind = f"yaml/{__version__}"
        cached = self.cache.get(kind, (source.digest for source in sources))
        fresh: dict[str, bytes] = {}
        for source in sources:
            self.feed()
            document = decoded(cached.get(source.digest), Document)
            if document is None:
                try:
                    document = compose(source.text)
                except YamlSyntaxError as error:
                    refused(source, error)
                    continue
                fresh[source.digest] = msgspec.msgpack.encode(document)
            yield YamlFile(source, document)
        self.cache.put(kind, fresh)

    def load_python(
        self, paths: Iterable[str], *, ahead: bool = False, first: bool = False, along: tuple[str, ...] = ()
    ) -> None:
        """Have many Python files parsed: cached ones from the cache, cold ones by workers while the caller goes on.

        What is wanted ``ahead`` is parsed after all that is wanted now, or ``first`` with it; cached files are left until somebody
        asks for them.
        ``along`` are readings of these files that will be asked for, as :class:`opschema_cli.lint.pack.Speed` has them.
        """
        asked = list(dict.fromkeys(paths))
        wanted = [path for path in asked if path not in self._python]
        if len(wanted) < len(asked) and (first or not ahead):
            self._hurry(asked)
        if ahead:
            stored = self.cache.stored(_PYTHON, map(self.workspace.digest, wanted))
            wanted = [path for path in wanted if self.workspace.digest(path) not in stored]
        self._python.update(dict.fromkeys(wanted, None))
        sources = self._sources(wanted)
        cached = self.cache.get(_PYTHON, (source.digest for source in sources))
        cold: list[Source] = []
        for source in sources:
            facts = decoded(cached.get(source.digest), ModuleFacts)
            if facts is None:
                cold.append(source)
            else:
                self._keep(source, facts)
        if cold:
            self._parse(cold, ahead=ahead and not first, along=along)

    def _hurry(self, paths: Iterable[str]) -> None:
        """Move some files that are being parsed ahead of those that nobody waits for."""
        digests = {self.workspace.digest(path) for path in paths} if self._awaited else set()
        texts = {digest: self._awaited[digest][0].text for digest in digests if self._awaited.get(digest)}
        if texts and self.parsers is not None:
            self.parsers().submit(texts, with_trees=self.with_trees)

    def _parse(self, cold: list[Source], *, ahead: bool, along: tuple[str, ...]) -> None:
        self._cold += len(cold)
        for source in cold:
            self._awaited.setdefault(source.digest, []).append(source)
        if self.parsers is not None:
            wanted = {source.digest: source.text for source in cold}
            expected = wanted.keys() & self._expected.keys()
            texts = {digest: text for digest, text in wanted.items() if digest not in expected}
            self.parsers().submit(texts, with_trees=self.with_trees, ahead=ahead, along=along)
            for digest in expected:
                self._arrived(digest, self._expected.pop(digest))
            return
        # Not at the top: a run whose files are all cached does without.
        from opschema_cli.source.parsing import encoded_facts

        for source in cold:
            self._arrived(source.digest, encoded_facts(source.text))

    def pump(self) -> None:
        """Take finished results from the workers, give them new work, and run the callbacks whose files are parsed. Call it
        often during other work.
        """
        self.checkpoint()
        self.feed()
        self._go_on()

    def feed(self) -> None:
        """Take finished results from the workers and give them new work, at most once every few milliseconds. Callbacks are left
        to :meth:`pump`.
        """
        if self._awaited and time.perf_counter() >= self._fed + _PAUSE:
            self._collect(wait=False)
            self._fed = time.perf_counter()

    def when_parsed(self, paths: Iterable[str], then: Callable[[], None]) -> None:
        """Call ``then`` when some requested files are parsed: immediately if they are, and otherwise from :meth:`pump` or
        :meth:`settle`, but never during a wait for a single file.
        """
        digests = set(map(self.workspace.digest, paths))
        self._when_parsed.append((digests.intersection(self._awaited), then))
        self._go_on()

    def when_settled(self, then: Callable[[], None]) -> None:
        """Call ``then`` when every requested file is parsed and all callbacks of :meth:`when_parsed` have run."""
        self._when_settled.append(then)
        self._go_on()

    def _go_on(self) -> None:
        while (ready := next((item for item in self._when_parsed if not item[0]), None)) is not None:
            self._when_parsed.remove(ready)
            ready[1]()
        while self._when_settled and not self._awaited and not self._when_parsed:
            self._when_settled.pop(0)()

    @property
    def settled(self) -> bool:
        """Whether every requested file is parsed."""
        return not self._awaited

    def settle(self) -> None:
        """Wait until every requested file is parsed, so that all problems are known."""
        self._go_on()
        while self._awaited:
            self._collect(wait=True)
            self._go_on()

    def _collect(self, *, wait: bool) -> None:
        found = self.parsers().collect(wait=wait) if self.parsers is not None else []
        for parsed in found:
            values = self._elsewhere.take(parsed)
            if values is not None:
                self._readings.take(values)
                continue
            if parsed.tree:
                self._trees[parsed.key] = parsed.tree
            self._readings.take({name: {parsed.key: value} for name, value in parsed.values.items()})
            self._arrived(parsed.key, parsed.facts, refused=parsed.refused)
        if wait and not found:  # the workers were stopped
            self._elsewhere.forget()
            for digest in list(self._awaited):
                self._arrived(digest, b"")

    def _arrived(self, digest: str, data: bytes, *, refused: bool = False) -> None:
        """Store the facts of a text. Refused texts are not cached, so that the next run tries them again."""
        sources = self._awaited.pop(digest, [])
        for awaited, _ in self._when_parsed:
            awaited.discard(digest)
        if not refused:
            if sources or digest in self._of_files:
                self._fresh[digest] = data
            if not sources:
                self._expected[digest] = data
        for source in sources:
            if refused:
                self._problem(PYTHON_SYNTAX, source.path, _REFUSED, 0)
            else:
                self._keep(source, decoded(data, ModuleFacts))
            self._done += 1
            self.progress(self._done, self._cold)
        if not self._awaited or len(self._fresh) >= _STORED_AT_ONCE:
            self.cache.put(_PYTHON, self._fresh)
            self._fresh = {}

    def _keep(self, source: Source, found: ModuleFacts | None) -> None:
        if found is None or found.error:
            message = f"this is not Python: {found.error}" if found is not None else _PARSER_DIED
            self._problem(PYTHON_SYNTAX, source.path, message, found.error_at if found is not None else 0)
        else:
            self._python[source.path] = PythonFile(source, found)

    def _sources(self, paths: Iterable[str]) -> list[Source]:
        return [source for source in map(self.source, paths) if source is not None]

    def take_problems(self, problems: Iterable[Diagnostic]) -> None:
        """Add the problems of files that were read elsewhere."""
        self.problems.update(((item.code, item.place.path), item) for item in problems)

    def _problem(self, code: str, path: str, message: str, offset: int) -> None:
        is_template = "{{" in path and code in (PYTHON_SYNTAX, YAML_SYNTAX)  # `{{cookiecutter.name}}/ops.py`
        if path in self._lenient or is_template:
            return
        place = Place(path, Span(offset, offset))
        self.problems[code, path] = Diagnostic(message, place, code=code)


def _cpp_of(source: Source) -> str | None:
    """Return the text of a C++ file, or the C++ in the strings of a Python file, or None if there is none."""
    # Not at the top: most runs read no C++.
    from opschema_cli.source.inline_cpp import inline_cpp

    return inline_cpp(source.text) if is_python(source.path) else source.text
