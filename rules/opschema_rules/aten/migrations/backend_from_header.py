"""`backend-from-header`: the lists of a backend's YAML from the header that declared its kernels until now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.file_kinds import is_yaml
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.text import Source
from opschema_cli.source.yaml import YamlFile
from opschema_cli.source.yaml_compose import compose
from opschema_cli.source.yaml_edit import YamlEditError, render_scalar
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.backend import read_backend
from opschema_rules.aten.kernels import LISTS, default_class, read_operators
from opschema_rules.aten.migrations.backend_lists import Lists, backends
from opschema_rules.aten.migrations.header_declarations import Declaration, Header, declarations, read_header
from opschema_rules.aten.migrations.list_text import ListItem
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.proofs import DECLARED
from opschema_rules.aten.reference import References


class BackendFromHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``header`` declares the kernels, in the class ``class`` if it has several. ``backend`` is the name of the backend's
    dispatch key, ``output`` its YAML. ``cpp_namespace`` is taken from the class without it; ``autograd`` are the operators, by
    their names with or without overload, that go to that list.
    """

    header: str
    backend: str = ""
    cpp_namespace: str = ""
    output: str = ""
    autograd: list[str] = []
    owner: str = msgspec.field(default="", name="class")


class _Work(msgspec.Struct, frozen=True):
    """The migration's input: the backend's current YAML (``path`` is the place of a new one)."""

    path: str
    backend: BackendFile
    is_new: bool
    header: Header
    declared: Sequence[Declaration]

    @property
    def listed(self) -> set[str]:
        """Return the operators with a kernel in the current YAML."""
        return {item.name for item in self.backend.items if item.section in LISTS}

    def is_settled(self, item: Declaration) -> bool:
        """Whether the operator of a declaration is listed already, or one of those that it may be of."""
        return bool(self.listed.intersection(item.operators))


def find(draft: Draft, options: BackendFromHeader) -> Iterator[Site]:
    """The declarations whose operator is known and not listed yet."""
    work = _work(draft, options)
    for item in work.declared:
        if len(item.operators) == 1 and not work.is_settled(item):
            section = _section(item.operators[0], options)
            title = (
                f"list `{item.operators[0]}` under `{section}`{' and `symint`' if item.symint else ''} of {work.path}"
            )
            yield Site(item.method.place, title, item.operators, subject=item)


@migration(
    "backend-from-header",
    find=find,
    options=BackendFromHeader,
    anywhere=True,
    settled="every operator of the header is listed",
    proof=DECLARED,
)
def backend_from_header(draft: Draft, sites: Sequence[Site], options: BackendFromHeader) -> Iterator[Note]:
    """Derive the lists of a backend's YAML from the header that declares its kernels.

    Before torchgen generated their headers, backends kept the class with their kernels by hand, as pytorch/xla did its
    `aten_xla_type.h`. Each declaration in it is compared by name, types of arguments and type of the returned value with
    the kernels that torchgen would declare for PyTorch's operators. If one operator matches, it is listed under
    `supported`, and under `symint` if the kernel takes `c10::SymInt`; if none or several match, a note at the declaration
    gives the reason, and nothing is guessed.

    The YAML is created if it does not exist (`-o output=`, else `<backend>_native_functions.yaml`); in an existing one only
    the lists are completed. What a header does not contain must be given as options: the backend (`-o backend=XLA`), and
    the operators whose kernels replace autograd (`-o autograd=max_pool2d,max_pool3d`).

        opschema migrate backend-from-header -o header=torch_xla/csrc/aten_xla_type.h -o backend=XLA

    PyTorch's operators are those that the pack compares a backend with: of the tree, or of the installed torch. The closer
    that version is to the one that the header was written for, the fewer declarations remain unmatched.
    """
    work = _work(draft, options)
    chosen = [site.subject for site in sites if isinstance(site.subject, Declaration)]
    for item in work.declared:
        if item.reason and not work.is_settled(item):
            yield Note(item.method.place, item.reason)
    if work.is_new and chosen:
        draft.create(work.path, work.backend.file.source.text + _lists(chosen, options))
    elif chosen:
        yield from _complete(draft, work, chosen, options)
    draft.settle()


def _lists(chosen: Sequence[Declaration], options: BackendFromHeader) -> str:
    """The lists of a new file, in the header's order."""
    found: dict[str, dict[str, None]] = {"supported": {}, "symint": {}, "autograd": {}}
    for item in chosen:
        name = item.operators[0]
        found[_section(name, options)][name] = None
        if item.symint:
            found["symint"][name] = None
    blocks = (
        f"{section}:\n" + "".join(f"  - {name}\n" for name in names)
        for section, names in found.items()
        if names or section == "supported"
    )
    return "".join(blocks)


def _complete(draft: Draft, work: _Work, chosen: Sequence[Declaration], options: BackendFromHeader) -> Iterator[Note]:
    """Add to the lists of a file."""
    lists = Lists(work.backend)
    newline = work.backend.file.source.newline
    marked = {item.name for item in work.backend.section("symint")}
    try:
        for item in {item.operators: item for item in chosen}.values():
            name = item.operators[0]
            entry = ListItem(name, f"- {name}{newline}")
            lists.put(_section(name, options), entry)
            if item.symint and name not in marked:
                lists.put("symint", entry)
        draft.edit(work.path, lists.edits())
    except (YamlEditError, ValueError) as error:
        message = f"{work.path} is not completed: {error}"
        yield from (Note(item.method.place, message, leaves_site=True) for item in chosen)


def _section(name: str, options: BackendFromHeader) -> str:
    return "autograd" if {name, name.partition(".")[0]} & set(options.autograd) else "supported"


def _work(draft: Draft, options: BackendFromHeader) -> _Work:
    """Work of the migration.

    Raises:
        OptionError: an option does not fit the tree, or PyTorch's operators are not known.
    """
    references = next(item for item in draft.loaded.subjects if isinstance(item, References))
    path = _path(draft, options)
    backend = next((item for item in backends(draft) if item.path == path), None)
    if backend is not None and options.backend not in ("", backend.name):
        raise OptionError(f"-o backend={options.backend}: {path} is that of `{backend.name}`")
    if backend is None:
        _check_new(draft, path, options)
    known = backend or _new(path, "{}")
    reference = references.of_backend(known)
    if reference is None:
        raise OptionError(
            "PyTorch's operators are not known: install torch, or name a native_functions.yaml in the configuration"
        )
    operators = read_operators(draft.project, reference)
    header = read_header(draft.project, options.header, options.owner, operators)
    declared = list(declarations(header, operators, reference.origin))
    _check_autograd(declared, options)
    return _Work(path, backend or _new(path, _head(header, options)), backend is None, header, declared)


def _check_autograd(declared: Sequence[Declaration], options: BackendFromHeader) -> None:
    """Refuse names without a kernel in the header that are nearly a name with one.

    Raises:
        OptionError: with the nearest name.
    """
    names = {name for item in declared for name in item.operators}
    known = names | {name.partition(".")[0] for name in names} | {item.method.name for item in declared}
    for name in options.autograd:
        meant = did_you_mean(nearest(name, known)) if name not in known else ""
        if meant:
            raise OptionError(f"-o autograd={name}: the header declares no kernel of it{meant}")


def _path(draft: Draft, options: BackendFromHeader) -> str:
    """Path of the backend's YAML, existing or new."""
    own = [item.path for item in backends(draft) if item.name == options.backend or not options.backend]
    return options.output or (own[0] if len(own) == 1 else f"{options.backend.lower()}_native_functions.yaml")


def _check_new(draft: Draft, path: str, options: BackendFromHeader) -> None:
    """Refuse to create an invalid backend YAML.

    Raises:
        OptionError: see there.
    """
    if not options.backend.isidentifier():
        raise OptionError(f"-o backend={options.backend}: name the backend, as its dispatch key is called (`XLA`)")
    if draft.project.workspace.is_file(path):
        raise OptionError(f"-o output={path}: this is not the YAML of a backend")
    if not is_yaml(path) or path.startswith("/") or ".." in path.split("/"):
        raise OptionError(f"-o output={path}: this is not a path of a YAML file in the workspace")


def _head(header: Header, options: BackendFromHeader) -> str:
    """The first lines of a new file.

    Raises:
        OptionError: the namespace is not known.
    """
    namespace = options.cpp_namespace or header.namespace
    if not namespace:
        raise OptionError(f"`{header.name}` is in no namespace; name the kernels' one with -o cpp-namespace=")
    named = header.name == default_class(options.backend)
    values = {"backend": options.backend, "cpp_namespace": namespace, "class_name": "" if named else header.name}
    return "".join(f"{key}: {render_scalar(value)}\n" for key, value in values.items() if value)


def _new(path: str, text: str) -> BackendFile:
    """Return a file that does not exist yet."""
    found = read_backend(YamlFile(Source(path, text), compose(text)), None)
    assert found is not None  # the text is a mapping
    return found
