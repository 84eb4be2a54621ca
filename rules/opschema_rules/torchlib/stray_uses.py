"""Undefined names after ``torch.ops`` or in registrations: those that are clearly misspellings of the tree's operators, and
those that other packages may define.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.file_kinds import is_cpp, is_python, is_yaml
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.slips import is_slip, slip_keys
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, Use
from opschema_cli.word_search import WordSearch
from opschema_rules.torchlib.hub_kernels import hub_kernels, modules_of_kernels
from opschema_rules.torchlib.model import Operator, StrayRegistration, StrayUse, Tree
from opschema_rules.torchlib.ops_words import BEHIND_OPS
from opschema_rules.torchlib.values import OpName

_OF_TORCH = frozenset({"aten", "prim", "prims", "higher_order"})
_NOT_OURS = frozenset(
    {"aten", "prim", "prims", "profiler", "c10d", "c10d_functional", "_c10d_functional", "onnx", "quantized", "torch"}
    | {
        "torchvision",
        "torchaudio",
        "torchao",
        "xformers",
        "vllm",
        "_C",
        "sgl_kernel",
        "fbgemm",
        "flash_attn",
        "inductor",
    }
    | {"npu", "mkldnn", "_quantized", "sparse", "higher_order", "rngprims", "debugprims", "custom_ops", "mylib"}
)
"""Namespaces in which others than the tree define operators, or may."""


def may_be_of_others(stray: StrayRegistration) -> bool:
    """Whether another package, or a library without sources, may define the operator of a registration: in a well-known namespace,
    in one where most are defined elsewhere, or in a tree that loads such a library. Misspellings of the tree's names, and C++
    beside definitions in that namespace, do not count.
    """
    namespace, name = stray.name.partition("::")[0], stray.name.partition(".")[0]
    others = namespace in _NOT_OURS or namespace in _defined_elsewhere(stray.tree) or _loads_prebuilt(stray.tree)
    if not others or misspelt_names(stray.tree)[name.replace("::", ".")]:
        return False
    registration = stray.registration
    return registration.language == "python" or (registration.place.path, namespace) not in _defining_files(stray.tree)


_FEW = 2
"""Names without a definition that are rather mistakes than operators of another package."""


@cached_on_argument
def _defined_elsewhere(tree: Tree) -> frozenset[str]:
    """The namespaces in which more operators have registrations but no definition than the tree defines: in compiled code that it
    does not hold, for one.
    """
    lost = Counter(name.partition("::")[0] for name in {item.name.partition(".")[0] for item in tree.strays})
    own = {name.partition(".")[0] for operator in tree.operators for name in operator.names or ()}
    defined = Counter(name.partition("::")[0] for name in own)
    return frozenset(namespace for namespace, count in lost.items() if count > max(_FEW, defined[namespace]))


_IMPORTED_EXTENSION = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(?!torch\b)[^#\n]*\b(_C(?:_\w+)?)\b", re.MULTILINE)


def _imported_extensions(data: bytes) -> list[str]:
    """The modules that a Python file imports under a name that torch's extensions have: ``_C``, or one that begins with ``_C_``."""
    return sorted({name.decode() for name in _IMPORTED_EXTENSION.findall(data)}) if b"_C" in data else []


_EXTENSIONS: Reading[bytes, list[str]] = Reading("torchlib imports of extensions", _imported_extensions, list[str])


@cached_on_argument
def _loads_prebuilt(tree: Tree) -> bool:
    """Whether the Python of a tree without C++ loads a library with ``load_library``, or imports an extension."""
    paths = tree.project.workspace.files
    if any(map(is_cpp, paths)):
        return False
    python = [path for path in paths if is_python(path)]
    if any("load_library" in names for _, names in tree.project.scan(BEHIND_OPS, python)):
        return True
    modules = {path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2] for path in python}
    return any(not modules.issuperset(names) for _, names in tree.project.scan(_EXTENSIONS, python))


@cached_on_argument
def _defining_files(tree: Tree) -> frozenset[tuple[str, str]]:
    """The C++ files that define operators, each with their namespaces."""
    operators = (item for item in tree.operators if item.definition.api == "cpp")
    return frozenset((item.place.path, name.partition("::")[0]) for item in operators for name in item.names or ())


def stray_uses(project: Project, tree: Tree, paths: Iterable[str]) -> Iterator[StrayUse]:
    """The uses in some files of operators that nothing defines, and that have nearly the name of another."""
    meant = misspelt_names(tree)
    found: dict[str, set[str]] = {}
    registered = {item.name.replace("::", ".") for item in tree.strays}
    shared: set[str] = set()
    for path, names in project.scan(BEHIND_OPS, paths):
        for name in {".".join(item.split(".")[:2]) for item in names} - registered:
            if meant[name]:
                found.setdefault(path, set()).add(name)
            elif "." in name and not meant.is_known(name):
                shared.add(name.partition(".")[0])
    wrong = {name for names in found.values() for name in names}
    wrong -= _written_elsewhere(project, wrong)
    project.load_python(sorted(path for path, names in found.items() if names & wrong))
    for path in sorted(found):
        file = project.python(path) if found[path] & wrong else None
        for body in tree.bodies.of(file) if file is not None else ():
            for name, use in _uses(tree.bodies, body, found[path] & wrong):
                if tree.bodies.external(body, use.name) == use.name:
                    yield _stray_use(tree, name, body, use, shared=name.partition(".")[0] in shared)


def hub_uses(project: Project, tree: Tree, paths: Iterable[str]) -> Iterator[StrayUse]:
    """Yield the same uses in packages of Hub kernels: misspelt names after the generated ``ops``."""
    meant = misspelt_names(tree)
    namespaces = {kernel.package: kernel.namespace for kernel in hub_kernels(project)}
    found: list[tuple[str, Body, Use]] = []
    for path in modules_of_kernels(project, paths):
        file = project.python(path)
        namespace = next(namespaces[folder] for folder in map(str, PurePosixPath(path).parents) if folder in namespaces)
        for body in tree.bodies.of(file) if file is not None else ():
            named = (
                (f"{namespace}.{use.name.split('.')[1]}", use) for use in body.scope.uses if use.name.startswith("ops.")
            )
            found += ((name, body, use) for name, use in named if meant[name])
    wrong = {name for name, _, _ in found}
    wrong -= _written_elsewhere(project, wrong)
    for name, body, use in found:
        if name in wrong and _is_ops(tree, body, use, name) and not allows_any_error(tree.bodies, body, use.start):
            yield _stray_use(tree, name, body, use, shared=False)


def _stray_use(tree: Tree, name: str, body: Body, use: Use, *, shared: bool) -> StrayUse:
    """Return the use of a misspelt name, whose namespace may be ``shared`` with operators that the tree does not define."""
    meant = misspelt_names(tree)[name]
    return StrayUse(tree, name.replace(".", "::"), meant, body.at(use.span), not shared and not _is_plural(name, meant))


def _is_ops(tree: Tree, body: Body, use: Use, name: str) -> bool:
    """Whether the first word of a use can only be the namespace of an operator."""
    values = tree.evaluator.evaluate(tree.evaluator.frames.assumed(body), Expr("name", use.start, use.start + 3, "ops"))
    return list(values) == [OpName((name.partition(".")[0],))]


def is_for_another_build(tree: Tree, path: str, operator: str) -> bool:
    """Whether a Python file is for a build that the tree does not hold, with other definitions in an operator's namespace: of the
    names there that it uses, no definition of half or more is known, and of at least two.
    """
    start = f"{operator.partition('::')[0]}."
    read = (names for _, names in tree.project.scan(BEHIND_OPS, [path]))
    used = {".".join(item.split(".")[:2]) for names in read for item in names if item.startswith(start)}
    known = misspelt_names(tree)
    unknown = sum(not known.defines(name) and not known[name] for name in used)
    return unknown >= max(2, len(used) / 2)


_DEVICES = frozenset({"xpu", "hpu", "npu", "mps", "musa", "mlu", "gcu", "tpu", "xla"})
_WORD = re.compile(r"[a-z]+")


def is_for_another_device(operator: Operator, body: Body, at: int) -> bool:
    """Whether code is for a device, by its path or a condition around it, for which no C++ of the tree has a kernel of an operator:
    another package defines it there.
    """
    around = (item.expr for item in body.scope.conditions if item.body.start <= at < item.body.end)
    texts = [body.file.path, *map(body.file.text, around)]
    named = {word for text in texts for word in _WORD.findall(text.lower())} & _DEVICES
    keys = {key for item in operator.registrations for key in item.keys or ()}
    return bool(named) and not any(part in key.lower() for part in (*named, "privateuse") for key in keys)


class Meant(dict[str, str]):
    """Return the only operator whose name differs by one typo from an undefined dotted name; empty if there is none."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self._known = {name.partition(".")[0] for name in tree.by_name}
        self._by_key: dict[str, set[str]] = {}
        for name in self._known:
            for key in _keys(name):
                self._by_key.setdefault(key, set()).add(name)

    def defines(self, dotted: str) -> bool:
        """Whether the tree is known to define an operator with a dotted name."""
        return dotted.replace(".", "::") in self._known

    def is_known(self, dotted: str) -> bool:
        """Whether the tree defines, or may define, an operator by a dotted name."""
        return self.defines(dotted) or self._tree.may_be_defined(dotted.replace(".", "::"))

    def __missing__(self, dotted: str) -> str:
        self[dotted] = found = self._find(dotted.replace(".", "::"))
        return found

    def _find(self, name: str) -> str:
        namespace, _, own = name.partition("::")
        ours = namespace in self._tree.namespaces and namespace not in _OF_TORCH
        if not ours or not own or own.startswith("__") or name in self._known or self._tree.may_be_defined(name):
            return ""
        near = {other for key in _keys(name) for other in self._by_key.get(key, ())}
        near = {other for other in near if other.startswith(f"{namespace}::") and is_slip_of_name(own, other)}
        return near.pop() if len(near) == 1 else ""


@cached_on_argument
def misspelt_names(tree: Tree) -> Meant:
    """The operators of a tree by names that nothing defines."""
    return Meant(tree)


def _keys(name: str) -> set[str]:
    """Return keys such that two names with one typo between them share one."""
    namespace, _, own = name.partition("::")
    return {f"{namespace}::{key}" for key in (*slip_keys(own), _joined(own))}


def is_slip_of_name(name: str, known: str) -> bool:
    """Whether a name is clearly a misspelling of a qualified operator: a typo, underscores inside, or a plural."""
    known = known.partition("::")[2]
    if len(name) == len(known) and name[:-1] == known[:-1]:
        return name.lower() == known.lower()  # `gemv` is not `gemm`
    return is_slip(name, known) or _joined(name) == _joined(known) or _is_plural(name, known)


def _is_plural(name: str, known: str) -> bool:
    """Whether of two names, qualified or not, one is the plural of the other, which may well be another operator."""
    short, long = sorted((re.split(r"::|\.", item)[-1] for item in (name, known)), key=len)
    return long == f"{short}s" and _LONG_END.search(short) is not None


_LONG_END = re.compile(r"[a-z]{4}[a-rt-z]$")
_INNER = re.compile(r"(?<=[a-z])_(?=[a-z])")


def _joined(name: str) -> str:
    """A name without the underscores between its letters."""
    return _INNER.sub("", name.lower())


def _written_elsewhere(project: Project, names: Collection[str]) -> set[str]:
    """Return those dotted names whose last words also occur in C++, YAML or a Python string: something may define them."""
    words = frozenset(name.partition(".")[2] for name in names)
    if not words:
        return set()
    paths = [path for path in project.workspace.files if is_cpp(path) or is_yaml(path) or is_python(path)]
    found = WordSearch(project, "unknown operators", words).files(paths)
    written = {word for path, held in found.items() for word in held if _may_define(project, path, word)}
    return {name for name in names if name.partition(".")[2] in written}


def _may_define(project: Project, path: str, word: str) -> bool:
    """Whether a file has a word at the head of a string, as an argument in C++, which a macro may define, or as an attribute that
    Python sets.
    """
    if is_yaml(path):
        return True
    before = rb"""["'(,]\s*""" if is_cpp(path) else rb"""["']"""
    own = re.escape(word).encode()
    named = before + rb"""(?:\w+(?:::|\.))*%s\b|\.%s\s*=(?!=)""" % (own, own)
    return re.search(named, project.workspace.peek(path)) is not None


def _uses(bodies: Bodies, body: Body, names: Iterable[str]) -> Iterator[tuple[str, Use]]:
    """Yield the uses of some names after ``torch.ops`` in a body, except in code that allows errors."""
    wanted: Mapping[str, str] = {f"torch.ops.{name}": name for name in names}
    uses = [(wanted.get(".".join(use.name.split(".")[:4])), use) for use in body.scope.uses]
    yield from ((name, use) for name, use in uses if name is not None and not allows_any_error(bodies, body, use.start))
