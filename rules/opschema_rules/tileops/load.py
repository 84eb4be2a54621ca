"""Load TileOPs-style manifests, with the op files that their entries name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.lint.diagnostic import NotUnderstood, Place
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.program import Program
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.tileops.carve_outs import may_carve_out
from opschema_rules.tileops.detection import TileopsOptions, manifest_files
from opschema_rules.tileops.model import (
    Implementations,
    Manifest,
    ManifestFile,
    OpEntry,
    OpImplementation,
    Validator,
    entries_node,
    is_op_name,
)
from opschema_rules.tileops.mutated_inputs import with_operators
from opschema_rules.tileops.spec import Spec, find_spec


def load(project: Project, options: TileopsOptions) -> Loaded:
    """All manifests of the workspace as subjects."""
    loaded = Loaded()
    for folder, paths in manifest_files(project, options).items():
        _load_manifest(project, options, folder, _parsed(project, paths), loaded)
        loaded.files += paths
    return loaded


def specs(project: Project, options: TileopsOptions) -> Iterator[tuple[str, Spec]]:
    """The folder of each manifest, and the specification that holds for it."""
    for folder, paths in manifest_files(project, options).items():
        files = _parsed(project, paths)
        base = _base(project, folder, [path for file in files for path in _op_paths(file)])
        yield folder, _spec(project, base, folder, files, options)


def _parsed(project: Project, paths: Sequence[str]) -> list[YamlFile]:
    project.load_yaml(paths)
    return [file for file in map(project.yaml, paths) if file is not None]


def _load_manifest(
    project: Project, options: TileopsOptions, folder: str, files: list[YamlFile], loaded: Loaded
) -> None:
    written = [path for file in files for path in _op_paths(file)]
    base = _base(project, folder, written)
    spec = _spec(project, base, folder, files, options)
    package = _op_files(project, base, written)
    scripts = _scripts(project, spec.sources)
    # A validator is larger than any op file: in one batch with them it is parsed beside them, not after.
    project.load_python([*package, *scripts, *_constant_modules(project, package)])
    project.claim([*package, *scripts])
    program = Program(project.workspace.files, project.python, package)
    manifest = Manifest(project, folder, base, files, spec, program, unresolved=loaded.unresolved)
    for file in files:
        loaded.subjects.append(ManifestFile(manifest, file))
        manifest.entries += _entries(manifest, file)
    loaded.subjects.append(manifest)
    for entry in manifest.entries:
        loaded.entries.append(Entry(entry.file.path, entry.key.span, entry.node.span, entry.name))
        loaded.subjects.append(entry)
    loaded.late.append(lambda: _implementations(manifest, scripts))
    loaded.joint.append(lambda shared: with_operators(manifest, project, shared))
    loaded.ops += len(manifest.entries)
    holding = {entry.file.path for entry in manifest.entries}
    loaded.unresolved += [
        NotUnderstood(Place(file.path, Span(0, 0)), "this file of the manifest holds no entries of operators")
        for file in files
        if file.path not in holding and file.root is not None
    ]


def _spec(project: Project, base: str, folder: str, files: Iterable[YamlFile], options: TileopsOptions) -> Spec:
    owners = [(file, entries_node(file)) for file in files]
    entries = [(file, [value for _, value in owner.pairs()]) for file, owner in owners if owner is not None]
    return find_spec(project, base, folder, entries, options.spec)


def _implementations(
    manifest: Manifest, scripts: Iterable[str]
) -> Iterator[OpImplementation | Implementations | Validator]:
    yield from manifest.implementations
    yield Implementations(manifest, manifest.implementations)
    for script in filter(None, map(manifest.project.python, scripts)):
        yield Validator(manifest, script)


def _scripts(project: Project, sources: Iterable[str]) -> list[str]:
    """The validators among the files that state the specification whose code a rule has to look at."""
    found = project.readings(_CARVES_OUT, (path for path in sources if path.endswith(".py")))
    return [path for path, carves_out in found.items() if carves_out]


_IMPORT = re.compile(r"(?m)^from ([\w.]+) import ([^\n(]+|\([^)]*\))")
_CONSTANT = re.compile(r"\b[A-Z][A-Z\d]*_[A-Z\d_]*\b")


def _modules_of_constants(text: str) -> set[str]:
    return {module for module, names in _IMPORT.findall(text) if _CONSTANT.search(names)}


_CONSTANT_MODULES = Reading("tileops modules of constants", _modules_of_constants, set[str])
_CARVES_OUT = Reading("tileops carve-outs", may_carve_out, bool)


def _constant_modules(project: Project, package: Sequence[str]) -> list[str]:
    """Return the modules outside the package from which it imports constants, such as defaults: they will be requested."""
    modules = set[str]().union(*project.readings(_CONSTANT_MODULES, package).values())
    tails = {f"/{module.replace('.', '/')}.py" for module in modules if not module.startswith(".")}
    return [path for path in project.workspace.files if any(f"/{path}".endswith(tail) for tail in tails)]


def _entries(manifest: Manifest, file: YamlFile) -> Iterable[OpEntry]:
    owner = entries_node(file)
    for key, value in owner.pairs() if owner is not None else ():
        if is_op_name(key):
            yield OpEntry(manifest, file, key.value, key, file.document.follow(value))


def _op_paths(file: YamlFile) -> list[str]:
    root = file.root
    tops = [root, root.get("ops")] if root is not None else []
    found: list[str] = []
    for top in tops:
        for _, value in top.pairs() if top is not None else ():
            found += _scalars(value.get("source", "op"))
    return found


def _scalars(node: Node | None) -> list[str]:
    items = [] if node is None else node.items if node.is_sequence else [node]
    return [item.value for item in items if item.kind == "scalar" and item.value]


def _base(project: Project, folder: str, written: Sequence[str]) -> str:
    """Return the folder that the entries' paths start from: the ancestor below which most of them exist."""
    candidates = [folder]
    while candidates[-1] not in (".", ""):
        candidates.append(candidates[-1].rpartition("/")[0] or ".")
    files = project.workspace.file_set
    best = Counter[str]()
    for base in candidates:
        prefix = "" if base == "." else base + "/"
        best[base] = sum(prefix + path in files or f"{prefix}src/{path}" in files for path in set(written))
    top = max(best.values(), default=0)
    # Of equals the outermost, which is the repository itself.
    return next(base for base in reversed(candidates) if best[base] == top)


def _op_files(project: Project, base: str, written: Sequence[str]) -> list[str]:
    """The Python files beside and below those that implement ops: where classes and their bases live."""
    folders: set[str] = set()
    for path in set(written):
        for prefix in ("" if base == "." else base + "/", "src/" if base == "." else base + "/src/"):
            if prefix + path in project.workspace.file_set:
                folders.add((prefix + path).rpartition("/")[0] or ".")
    tops = {folder for folder in folders if not any(folder.startswith(other + "/") for other in folders)}
    found = [path for folder in tops for path in project.workspace.under(folder, ".py")]
    return sorted({path for path in found if not path.rpartition("/")[2].startswith(("test_", "conftest"))})
