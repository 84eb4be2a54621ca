"""Answers questions about the words of all files of a tree from the files' indexes, and records each question.

What follows from code of several files is cached with the files that were read and the questions that were asked for it. A change
of another file matters only if it changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy

from opschema_cli.source.word_index import aliased, joined_aliases
from opschema_rules.flydsl.file_index import FileIndex
from opschema_rules.flydsl.forwarding import COMPILE

Answer = tuple[str, ...]
"""Paths or words, in file order or sorted; for a yes/no question, empty means no."""


class Words:
    """The words of a tree. ``package`` are the files of FlyDSL itself in it, which is taken not to lead back to others.
    ``settings`` are the indexes of files that may set names of others. ``note`` is given the name of every question that is asked;
    :meth:`state` answers it by that name.
    """

    def __init__(
        self,
        indexes: Mapping[str, FileIndex],
        package: Iterable[str] = (),
        settings: Iterable[FileIndex] = (),
        note: Callable[[str], None] = lambda question: None,
    ) -> None:
        self.indexes = indexes
        self._package = frozenset(package)
        self._settings = list(settings)
        self._note = note
        self._answers: dict[str, Answer] = {}
        self._sets: dict[str, frozenset[str]] = {}
        self._inverted: dict[str, dict[str, list[str]]] = {}
        self._places = {path: place for place, path in enumerate(indexes)}
        self._aliases = joined_aliases(index.words for index in indexes.values())

    def noting(self, note: Callable[[str], None]) -> Words:
        """Return a copy that records its questions elsewhere."""
        other = copy(self)
        other._note = note
        return other

    def calling(self, word: str, home: str) -> list[str]:
        """Return the files that may call a function of the file ``home`` by this last word, that file first."""
        found = self._ask(f"calling {word}")
        if home in self._package:
            found = (*found, *self._ask(f"calling-package {word}"))
        return list(dict.fromkeys([home, *found]))

    def passing(self, word: str, home: str, callees: Iterable[str]) -> list[str]:
        """Return the files that may pass such a function or its result as the first argument to a function with one of these last
        words, the file ``home`` first.
        """
        found = self._ask(f"passing {word} {' '.join(sorted(callees))}")
        return [home, *(path for path in found if path != home)]

    def is_passed(self, word: str, callees: Iterable[str]) -> bool:
        """Whether a file may pass a function of another file as the first argument to a function with one of these last words,
        under any of its names.
        """
        named = " ".join(sorted(callees))
        return any(self._ask(f"passing {other} {named}") for other in self.aliased([word]))

    def inheriting(self, name: str) -> list[str]:
        """Return the files that may have a subclass of a class of this name."""
        return list(self._ask(f"inheriting {name}"))

    def aliased(self, words: Iterable[str]) -> frozenset[str]:
        """Return words together with their aliases in any file."""
        return self._ask_set(f"aliased {' '.join(sorted(words))}")

    def sized(self) -> frozenset[str]:
        """Return the functions with a parameter ``max_size``, under all their names."""
        return self._ask_set("sized")

    def compiling(self) -> frozenset[str]:
        """Return ``compile`` and the helpers that compile a function passed to them, under all their names."""
        return self._ask_set("compiling")

    def is_taking(self, word: str) -> bool:
        """Whether a function of this name is called with an argument whose kind a cache key may ignore."""
        return bool(self._ask(f"taking {word}"))

    def is_deciding(self, word: str) -> bool:
        """Whether a function of this name may use a parameter in a Python decision."""
        return bool(self._ask(f"deciding {word}"))

    def is_replaced(self, word: str) -> bool:
        """Whether a file sets a name of another module with this last word; functions in tests only do so for themselves."""
        return bool(self._ask(f"replaced {word}"))

    def in_order(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that belong to the tree, in its order."""
        return sorted((path for path in set(paths) if path in self._places), key=self._places.__getitem__)

    def state(self, question: str) -> str:
        """Return the answer to a question, as text."""
        return "\0".join(self._answer(question))

    def _ask(self, question: str) -> Answer:
        self._note(question)
        return self._answer(question)

    def _ask_set(self, question: str) -> frozenset[str]:
        if question not in self._sets:
            self._sets[question] = frozenset(self._answer(question))
        self._note(question)
        return self._sets[question]

    def _answer(self, question: str) -> Answer:
        found = self._answers.get(question)
        if found is None:
            found = self._answers[question] = self._find(*question.partition(" ")[::2])
        return found

    def _find(self, kind: str, word: str) -> Answer:
        match kind:
            case "aliased":
                return tuple(sorted(aliased(word.split(), self._aliases)))
            case "sized":
                return tuple(sorted(aliased(self._inversion(kind, lambda index: index.sized), self._aliases)))
            case "compiling":
                helpers = (name for index in self.indexes.values() for name in index.forwarding)
                return tuple(sorted(aliased([COMPILE, *helpers], self._aliases)))
            case "calling":
                return tuple(self._inversion(kind, lambda index: index.calling).get(word, ()))
            case "calling-package":
                return tuple(self._inversion(kind, lambda index: index.calling_package).get(word, ()))
            case "passing":
                passed, *callees = word.split()
                paths = self._inversion(kind, lambda index: index.passing).get(passed, ())
                return tuple(path for path in paths if not set(callees).isdisjoint(self.indexes[path].passing[passed]))
            case "inheriting":
                return self._inheriting(word)
            case "replaced":
                return (word,) if word in self._replaced else ()
            case "taking":
                return (word,) if word in self._inversion(kind, lambda index: index.taking) else ()
        return (word,) if word in self._deciding else ()

    def _inheriting(self, name: str) -> Answer:
        paths = self._inversion("inheriting", lambda index: index.bases)
        found: set[str] = set()
        known = aliased([name], self._aliases)
        waiting = list(known)
        while waiting:
            word = waiting.pop()
            found.update(paths.get(word, ()))
            classes = {item for path in paths.get(word, ()) for item in self.indexes[path].bases[word]}
            fresh = aliased(classes, self._aliases) - known
            known |= fresh
            waiting += fresh
        return tuple(self.in_order(found))

    def _inversion(self, kind: str, words: Callable[[FileIndex], Iterable[str]]) -> dict[str, list[str]]:
        """Return the files by each word of this kind that they contain."""
        if kind not in self._inverted:
            found = self._inverted[kind] = {}
            for path, index in self.indexes.items():
                for word in words(index):
                    found.setdefault(word, []).append(path)
        return self._inverted[kind]

    @property
    def _replaced(self) -> frozenset[str]:
        if "replaced" not in self._sets:
            own = ((path, index) for path, index in self.indexes.items() if path not in self._package)
            found = [index.replacing_first if _is_test(path) else index.replacing for path, index in own]
            found += [item for index in self._settings for item in (index.replacing, index.computing)]
            self._sets["replaced"] = frozenset(word for item in found for word in item)
        return self._sets["replaced"]

    @property
    def _deciding(self) -> frozenset[str]:
        if "deciding" not in self._sets:
            names = {name for index in self.indexes.values() for name in index.deciding}
            self._sets["deciding"] = aliased(names, self._aliases)
        return self._sets["deciding"]


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py")
