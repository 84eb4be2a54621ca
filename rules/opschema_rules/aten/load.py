"""Load the files of PyTorch's code generator and their entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Missing, NotUnderstood, Place
from opschema_cli.lint.loaded import Loaded
from opschema_cli.phrases import some
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.backend import read_backend
from opschema_rules.aten.deprecated import read_deprecated
from opschema_rules.aten.derivatives import read_derivatives
from opschema_rules.aten.detection import AtenOptions, files_of
from opschema_rules.aten.dialects import OF_OTHERS
from opschema_rules.aten.drift import copies_of_backend, copies_of_native
from opschema_rules.aten.kernel_matching import read_kernels
from opschema_rules.aten.lazy_nodes import read_lazy_nodes
from opschema_rules.aten.model import REFERENCE, BackendFile, NativeFile, TagsFile
from opschema_rules.aten.native import is_before_known, is_of_other_generator, read_native, read_tags
from opschema_rules.aten.reference import References
from opschema_rules.aten.releases import Torchgens

OLDER = "it is for a PyTorch older than all releases that opschema knows, so it is not checked"
OF_ANOTHER = "it lists the kernels of a backend that torchgen takes none of there: another generator reads it"


def load(project: Project, options: AtenOptions) -> Loaded:
    """All of torchgen's files in the workspace, and their entries."""
    files = list(files_of(project, options))
    loaded = Loaded(files=[file.path for _, file in files])
    tags = [read_tags(file) for kind, file in files if kind == "tags"]
    torchgens = Torchgens(project, options.installed_torch, options.torch)
    torchgens.check()
    natives = [
        read_native(file, _of_tags(tags, file.path), torchgens.of_native(file))
        for kind, file in files
        if kind == "native"
    ]
    for listed in tags:
        loaded.subjects += [listed, *listed.entries]
    for native in natives:
        reason = OLDER if is_before_known(native) else OF_ANOTHER if is_of_other_generator(native) else ""
        if reason:
            loaded.unresolved.append(NotUnderstood(Place(native.path, Span(0, 0)), reason))
            continue
        loaded.subjects += [native, *native.entries]
        loaded.entries += [entry.stretch for entry in native.entries]
    references = References(torchgens, natives, options.native_functions)
    loaded.subjects += filter(None, (copies_of_native(native, references.of_copy(native)) for native in natives))
    loaded.subjects.append(references)
    for kind, file in files:
        operators = references.of_derivatives(file) if kind in _OF_AUTOGRAD else None
        if kind in _OF_AUTOGRAD and _is_for_older(torchgens, file, operators):
            loaded.unresolved.append(NotUnderstood(Place(file.path, Span(0, 0)), OLDER))
            continue
        if kind == "derivatives":
            derivatives = read_derivatives(file, operators, torchgens.of_derivatives(file.path, operators))
            loaded.subjects += [derivatives, *derivatives.entries]
            loaded.entries += [entry.stretch for entry in derivatives.entries]
        if kind == "deprecated":
            loaded.subjects.append(read_deprecated(file, operators))
        backend = read_backend(file, None) if kind == "backend" else None
        if backend is not None:
            backend.reference = references.of_backend(backend)
            backend.torchgen = torchgens.of_backend(backend.path, backend.reference)
            loaded.subjects += filter(None, [copies_of_backend(backend)])
            loaded.subjects.append(backend)
    backends = [item for item in loaded.subjects if isinstance(item, BackendFile)]
    loaded.missing += _without_reference(backends)
    loaded.ops = len(_operators(natives, backends))
    if backends:
        loaded.late.append(lambda: read_kernels(project, backends, options.kernels))
        loaded.late.append(lambda: read_lazy_nodes(project, backends, options.kernels))
    return loaded


_OF_AUTOGRAD = ("derivatives", "deprecated")


def _is_for_older(torchgens: Torchgens, file: YamlFile, operators: NativeFile | None) -> bool:
    """Whether a file of autograd's generator belongs to a release that is older than all known ones."""
    return torchgens.is_before_known(file.path) or (operators is not None and is_before_known(operators))


def _without_reference(backends: Iterable[BackendFile]) -> Iterator[Missing]:
    """The missing source where PyTorch's operators are not known."""
    paths = [backend.path for backend in backends if backend.reference is None and backend.items]
    if paths:
        reason = (
            f"PyTorch's operators are not known, by which {some(paths, 2)} {'is' if len(paths) == 1 else 'are'} judged"
        )
        hint = (
            "name a release with `--torch`, install torch beside opschema, or name its native_functions.yaml in"
            " `tool.opschema.aten.native-functions`"
        )
        yield Missing(REFERENCE, reason, hint)


def _operators(natives: Iterable[NativeFile], backends: Iterable[BackendFile]) -> set[str]:
    """The names of the operators that files list: each once, though several lists and files name it."""
    entries = {entry.name for native in natives for entry in native.entries}
    return entries.union(item.name for backend in backends for item in backend.items if item.section not in OF_OTHERS)


def _of_tags(tags: list[TagsFile], path: str) -> TagsFile | None:
    """The tags of the native_functions.yaml at ``path``: those beside it, or the only ones."""
    folder = path.rpartition("/")[0]
    beside = [item for item in tags if item.path.rpartition("/")[0] == folder]
    return (beside or tags)[0] if len(beside or tags) == 1 else None
