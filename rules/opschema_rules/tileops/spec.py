"""Demands of a tree's own specification.

The manifest format grew rule by rule; a tree is held to the rules that its own documents or validator state, and to
those whose keys its manifests use. Documents and validators are found by their vocabulary, wherever they lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Place, Severity
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.regular_files import content_digest
from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml import Node, YamlFile, scalar_value
from opschema_cli.suggestions import near_names
from opschema_rules.tileops.features import FEATURES, LATEST, pattern

VOCABULARY = ("shape_rules", "workloads", "roofline", "signature", "status")
"""Words that a file which specifies or validates manifests all uses."""


_WORD = re.compile(r"[\w-]+")


class Spec(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The demands that apply to one tree, and the files that state them; ``helpers`` are functions beside the manifest,
    ``places`` are the places in the tree that show a demand, and ``sentences`` are its statements on it.
    """

    known: frozenset[str]
    sources: tuple[str, ...] = ()
    text: str = ""
    helpers: frozenset[str] = frozenset()
    places: Mapping[str, Place] = msgspec.field(default_factory=dict)
    sentences: Mapping[str, str] = msgspec.field(default_factory=dict)

    def severity(self, feature: str, default: Severity) -> Severity:
        """Return the severity of a violated demand: an error if the specification says "must", a warning if it says "should"."""
        sentence = self.sentences.get(feature, "")
        if _MUST.search(sentence) is not None:
            return Severity.ERROR
        return Severity.WARNING if _SHOULD.search(sentence) is not None else default

    @cached_property
    def digest(self) -> str:
        """A digest that changes when the specification does."""
        return content_digest(
            f"{sorted(self.known)} {sorted(self.helpers)} {self.text}".encode("utf-8", "surrogatepass")
        )

    def knows(self, feature: str) -> bool:
        """Whether the tree's own specification, or config, demands ``feature``.

        Raises:
            KeyError: there is no such feature.
        """
        FEATURES[feature]
        return feature in self.known

    def mentions(self, word: str) -> bool:
        """Whether the tree's specification contains ``word`` as a word."""
        if _WORD.fullmatch(word):
            return word in self._words
        return word in self.text and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self.text) is not None

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.text))


def find_spec(
    project: Project, base: str, folder: str, entries: Sequence[tuple[YamlFile, Sequence[Node]]], asked: Iterable[str]
) -> Spec:
    """The specification of the tree at ``base`` whose manifest lies in ``folder``.

    ``entries`` are the entries of each manifest file; ``asked`` are features that config demands, ``latest`` all.
    """
    for name in asked:
        if name != "latest" and name not in FEATURES:
            close = near_names(name, FEATURES, 1)
            known = f"did you mean `{close[0]}`?" if close else f"known: latest, {', '.join(FEATURES)}"
            raise OpschemaError(f"tool.opschema.tileops: `spec` names no requirement `{name}`; {known}")
    sources: list[Source] = []
    helpers: set[str] = set()
    for path in _candidates(project, base, folder):
        source = project.source(path)
        if source is not None and path.endswith(".py") and path.startswith(folder + "/"):
            helpers.update(_FUNCTION.findall(source.text))
        if source is not None and all(word in source.text for word in VOCABULARY):
            sources.append(source)
    stated = _stated(project, sources)
    places = {name: place for name in FEATURES if (place := stated.get(name) or _used(name, entries)) is not None}
    return Spec(
        frozenset({*(LATEST if "latest" in asked else places), *asked}),
        tuple(source.path for source in sources),
        "\n".join(source.text for source in sources),
        frozenset(helpers),
        places,
        {
            name: _sentence(source.text, place.span)
            for name, place in stated.items()
            if (source := project.source(place.path)) is not None
        },
    )


_MUST = re.compile(r"\b(?:must|shall|required)\b", re.IGNORECASE)
_SHOULD = re.compile(r"\b(?:should|recommended)\b", re.IGNORECASE)
_STOP = re.compile(r"[.;:]\s|\n\s*\n|\n\s*[-*|]")


def _sentence(text: str, span: Span) -> str:
    """The sentence around a span."""
    before = [match.end() for match in _STOP.finditer(text, max(0, span.start - 1000), span.start)]
    after = _STOP.search(text, span.end, span.end + 1000)
    return text[before[-1] if before else max(0, span.start - 1000) : after.start() if after else span.end + 1000]


def _stated(project: Project, sources: Sequence[Source]) -> dict[str, Place]:
    """Places where documents and validators first state each of their demands."""
    found = project.readings(_STATEMENTS, (source.path for source in sources))
    return {
        feature: Place(path, Span(*span))
        for path, statements in reversed(found.items())
        for feature, span in statements.items()
    }


def _statements(text: str) -> dict[str, tuple[int, int]]:
    matches = {feature: pattern(feature).search(text) for feature in LATEST}
    return {feature: match.span() for feature, match in matches.items() if match is not None}


_STATEMENTS = Reading("tileops demands", _statements, dict[str, tuple[int, int]])


def _used(feature: str, entries: Iterable[tuple[YamlFile, Sequence[Node]]]) -> Place | None:
    """Return the first use of a demand's key in a manifest, if all its uses are correct."""
    path = FEATURES[feature].key.split(".")
    used = [(file, nodes) for file, nodes in entries if path[-1] and path[-1] in file.source.text]
    pairs = [(file, *pair) for file, nodes in used for node in nodes for pair in _at(file, node, path)]
    meant = all(value.kind == "scalar" and scalar_value(value) is True for _, _, value in pairs)
    return next((Place(file.path, key.span) for file, key, _ in pairs if meant), None)


def _at(file: YamlFile, node: Node, path: Sequence[str]) -> Iterator[tuple[Node, Node]]:
    """The keys and values at a path below an entry; aliases are followed."""
    for key, value in file.document.follow(node).pairs():
        if key.kind == "scalar" and path[0] in ("*", key.value):
            if len(path) == 1:
                yield key, file.document.follow(value)
            else:
                yield from _at(file, value, path[1:])


_FUNCTION = re.compile(r"^def[ \t]+(\w+)", re.MULTILINE)


def _candidates(project: Project, base: str, folder: str) -> list[str]:
    """Documents and scripts of the tree: neither the library's own code nor its tests."""
    package = folder
    while package and f"{package.rpartition('/')[0]}/__init__.py" in project.workspace.file_set:
        package = package.rpartition("/")[0]
    found: list[str] = []
    for path in project.workspace.under(base):
        name = path.rpartition("/")[2]
        if path.startswith(folder + "/") or not path.startswith(package + "/"):
            code = path.endswith(".py") and not name.startswith(("test_", "bench_", "conftest"))
            if path.endswith(".md") or code:
                found.append(path)
    return found
