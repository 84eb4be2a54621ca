"""Matches the operators of a backend's YAML with the methods of its class, by name and types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from opschema_cli.project import Project
from opschema_cli.source.preprocessor import exclusive
from opschema_cli.suggestions import may_be_near, near_names
from opschema_rules.aten.kernel_drift import fits, is_same, is_twin, likeness
from opschema_rules.aten.kernel_search import has_cpp, in_other_namespace, of_other_name
from opschema_rules.aten.kernel_tree import ClassMethods, Method, find_class
from opschema_rules.aten.kernels import (
    DIALECTS,
    LISTS,
    Asked,
    BackendKernels,
    Missing,
    Operators,
    UncheckedKernels,
    class_of,
    read_operators,
)
from opschema_rules.aten.model import BackendFile


def read_kernels(
    project: Project, backends: Sequence[BackendFile], files: Sequence[str] = ()
) -> Iterator[BackendKernels | UncheckedKernels]:
    """Yield the kernels of each backend; with ``files`` (paths or patterns), only those in these files.

    Where several files list operators of one class, none of them is judged.
    """
    judged = [item for item in backends if item.dialect in DIALECTS and class_of(item)]
    shared = Counter(map(class_of, judged))
    for backend in judged:
        if backend.reference is None or shared[class_of(backend)] > 1:
            continue
        methods = find_class(project, class_of(backend), backend.text_of("cpp_namespace"), files)
        operators = read_operators(project, backend.reference)
        if methods.defined:
            yield _Matching(backend, methods, operators).match()
        elif has_cpp(project, files):
            asked = [item for item in asked_of(backend, operators)[0] if not item.generated]
            yield _unchecked(project, backend, asked, files, taken=shared.keys())


def _unchecked(
    project: Project, backend: BackendFile, asked: list[Asked], files: Sequence[str], *, taken: Collection[str]
) -> UncheckedKernels:
    """A backend without a class of kernels, and the class that may be meant: none that another backend has."""
    name, kernels = class_of(backend), {item.name for item in asked}
    moved = in_other_namespace(project, name, kernels, files)
    alike = of_other_name(project, kernels, files, taken=taken) if moved is None else None
    return UncheckedKernels(backend, name, asked, moved, alike)


def asked_of(backend: BackendFile, operators: Operators) -> tuple[list[Asked], set[str]]:
    """Return the kernels that a backend's YAML requires, and the names of those without further details."""
    symint = {item.name for item in backend.section("symint")}
    known: dict[str, Asked] = {}
    vague: set[str] = set()
    for item in (item for section in LISTS for item in backend.section(section)):
        operator = operators.get(item.name)
        signature = operator.signature(symint=item.name in symint) if operator is not None else None
        # A structured kernel is not a method.
        if operator is not None and signature is not None and item.options is None:
            known[item.name] = Asked(item, operator, signature, item.section == "full_codegen")
        else:
            name = item.name.partition(".")[0]
            vague |= {f"{name}{out}{suffix}" for out in ("", "_out") for suffix in ("", "_symint")}
    return list(known.values()), vague


_Fits: TypeAlias = Callable[[Asked, Method], bool]


_MOST_PAIRS = 10_000
"""Pairs of an operator and a method of one name up to which they are compared with each other."""

_MOST_NEAR = 500
"""Maximum number of methods with other names to search for one that an operator lacks."""


class _Matching:
    def __init__(self, backend: BackendFile, methods: ClassMethods, operators: Operators) -> None:
        self.methods = methods
        self.found = BackendKernels(backend, methods.name, operators)
        self.found.asked, self.vague = asked_of(backend, operators)

    def match(self) -> BackendKernels:
        found = self.found
        asked, defined = _by_name(found.asked), _by_name(self.methods.defined)
        without: list[Asked] = []
        unclaimed: list[Method] = []
        for name in asked | defined:
            wanting, left = self._match_name(name, asked.get(name, []), defined.get(name, []))
            without += wanting
            unclaimed += left
        self._miss(without, unclaimed)
        declared = {item.name for item in self.methods.declared}
        unlisted = (item for item in unclaimed if item.name not in declared and item.name not in self.vague)
        # What is like the name of an operator that is not known is the kernel of the one that is meant.
        found.unlisted += [item for item in unlisted if not may_be_near(item.name, self.vague, 0.75)]
        return found

    def _match_name(self, name: str, asked: list[Asked], methods: list[Method]) -> tuple[list[Asked], list[Method]]:
        """Pair the operators and methods of one name; those that are left."""
        if len(asked) * len(methods) > _MOST_PAIRS:  # which of them belong together is not worth the time
            return [], []
        wanting, generated = _parted(asked)
        paired: list[Method] = []
        for fit in (self._is_same, self._may_be_same):
            wanting, methods = self._pair(wanting, methods, fit, paired)
        methods = [item for item in methods if not _is_other_version(item, paired)]
        twice = [(item, method) for item in generated for method in methods if self._is_same(item, method)]
        self.found.repeated += [(item, method) for item, method in twice if _is_certain(method)]
        methods = [item for item in methods if item not in [method for _, method in twice]]
        if name in self.vague or name in self.methods.perhaps:
            return [], []
        self._drift(wanting, methods)
        return wanting, [] if generated else [item for item in methods if _is_certain(item)]

    def _drift(self, wanting: list[Asked], methods: list[Method]) -> None:
        """Remove the pairs that belong together in spite of their types from both lists, most similar ones first."""
        while wanting and methods:
            asked, method = max(((one, other) for one in wanting for other in methods), key=_likeness)
            wanting.remove(asked)
            methods.remove(method)
            if _is_certain(method):
                self.found.drifted.append((asked, method))

    def _is_same(self, asked: Asked, method: Method) -> bool:
        return is_same(asked.signature, method.written, any_version=not self.found.certain)

    def _may_be_same(self, asked: Asked, method: Method) -> bool:
        return method.written.unsure or fits(asked.signature, method.written, any_version=not self.found.certain)

    def _pair(
        self, wanting: list[Asked], methods: list[Method], fit: _Fits, paired: list[Method]
    ) -> tuple[list[Asked], list[Method]]:
        """Pair the operators that fit a method; those of both that are left. ``paired`` gets the methods."""
        left: list[Asked] = []
        for asked in wanting:
            method = next((item for item in methods if fit(asked, item)), None)
            if method is None:
                left.append(asked)
                continue
            self.found.paired.append((asked, method))
            paired.append(method)
            methods = [item for item in methods if item is not method]
        return left, methods

    def _miss(self, without: list[Asked], unclaimed: list[Method]) -> None:
        """Collect the missing kernels; if most are missing, the kernels are elsewhere, except for those that only lack a suffix."""
        kernels = [item for item in self.found.asked if not item.generated]
        if not self.methods.complete:
            return
        most = 2 * len(without) > len(kernels)
        known = {item.name for item in unclaimed}
        for asked in without:
            twins = _twins(asked)
            near = next((item for item in unclaimed if item.name in twins), None) if twins & known else None
            if near is None and not most:
                near = _near(asked, unclaimed)
            if near is not None:
                unclaimed.remove(near)
            if most and near is None:
                self.found.unwritten.append(asked)
            else:
                self.found.missing.append(Missing(asked, near))


_Named = TypeVar("_Named", Asked, Method)


def _by_name(items: Iterable[_Named]) -> dict[str, list[_Named]]:
    found: dict[str, list[_Named]] = {}
    for item in items:
        found.setdefault(item.name, []).append(item)
    return found


def _parted(asked: Iterable[Asked]) -> tuple[list[Asked], list[Asked]]:
    """The operators whose kernels have to be written, and those whose kernels are generated."""
    items = list(asked)
    return [item for item in items if not item.generated], [item for item in items if item.generated]


def _is_certain(method: Method) -> bool:
    """Whether a method is known in full, and compiled in every build: others may be for another version of PyTorch."""
    return not method.written.unsure and not method.written.conditions


def _is_other_version(method: Method, paired: Sequence[Method]) -> bool:
    """Whether a method is only compiled where a paired one is not, or is that one for another build."""
    return any(
        exclusive(method.written.conditions, other.written.conditions)
        or (method.path != other.path and is_twin(method.written, other.written))
        for other in paired
    )


def _likeness(pair: tuple[Asked, Method]) -> float:
    return likeness(pair[0].signature, pair[1].written)


def _near(asked: Asked, methods: Sequence[Method]) -> Method | None:
    """A method that is meant to be an operator's kernel, by a name that is close to it."""
    alike = [item for item in methods[:_MOST_NEAR] if fits(asked.signature, item.written)]
    close = near_names(asked.name, [item.name for item in alike], 1)
    return next((item for item in alike if item.name in close), None)


def _twins(asked: Asked) -> set[str]:
    """The kernel's name with and without ``_symint``."""
    return {f"{asked.name}_symint", asked.name.removesuffix("_symint")}
