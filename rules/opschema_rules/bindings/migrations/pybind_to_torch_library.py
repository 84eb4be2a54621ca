"""`pybind-to-torch-library`: bound functions become operators of torch.library."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from opschema_cli.cpp_units import CppUnits
from opschema_cli.lint.diagnostic import CPP, Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Scope, Site, migration
from opschema_cli.project import Project
from opschema_cli.source.text import Edit, Span
from opschema_rules.bindings.definitions import FunctionSearch
from opschema_rules.bindings.guards import Guards
from opschema_rules.bindings.imports import Extensions, Target
from opschema_rules.bindings.inline import Inline
from opschema_rules.bindings.migrations.callers import Rewritten, merged, rewrite_callers
from opschema_rules.bindings.migrations.derived import COMPOSITE, DerivedOperator, NotDerivableError, derive
from opschema_rules.bindings.migrations.leftovers import defined_operators, mentioned, star_imported, unparsed
from opschema_rules.bindings.model import Binding, Module
from opschema_rules.bindings.proofs import BUILT
from opschema_rules.torchlib.cpp_build import Build


class ToTorchLibrary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``namespace`` is the namespace of the operators, by default the package of the extension. ``key`` is the dispatch key of
    kernels that access memory. ``mutates`` lists tensors that functions write (``scale.out``), beyond those that their code shows.
    """

    namespace: str = ""
    key: str = ""
    mutates: list[str] = []


def find(draft: Draft, options: ToTorchLibrary) -> Iterator[Site]:
    """The bindings that may become operators."""
    if options.namespace and not options.namespace.isidentifier():
        raise OptionError(f"`namespace`: `{options.namespace}` is not a valid name")
    for binding in _bindings(draft):
        if not _blocked(binding):
            title = f"define `{_namespace(binding.module, options)}::{binding.name}`"
            yield Site(binding.place, title, (binding.qualified,), subject=binding)


@migration(
    "pybind-to-torch-library",
    find=find,
    options=ToTorchLibrary,
    scope=Scope((Binding,), "no function is bound with pybind11 in this tree"),
    settled="no bound function takes tensors",
    needs=(CPP,),
    proof=BUILT,
)
def pybind_to_torch_library(draft: Draft, sites: Sequence[Site], options: ToTorchLibrary) -> Iterator[Note]:
    """Turn functions that pybind11 binds into operators of torch.library.

    For each `m.def("f", &f, ...)` with a tensor argument, the schema is derived from the C++ signature and the `py::arg`s:

    ```cpp
    TORCH_LIBRARY(acme, m) {
      m.def("scale(Tensor x, float factor=1.0, *, Tensor? bias=None) -> Tensor");
    }

    TORCH_LIBRARY_IMPL(acme, CPU, m) {
      m.impl("scale", &scale);
    }
    ```

    The binding is removed, and Python calls `torch.ops.acme.scale`. The module itself stays, since importing it loads the
    operators. The C++ functions stay unchanged. Operators have only the number types `int64_t` and `double`, so a function with
    `int` or `float` is registered through a lambda that converts them.

    - **Mutation.** A tensor is declared as mutated if the code writes it in place (`x.mul_()`, `x[0] = ...`), if it is the first
      argument of a function whose name ends in `_`, or if it is named like an output. If the function accesses the memory of
      another tensor or passes it to another function, and the parameter is not `const`, the function is not migrated until you
      name the tensors that it writes (`-o mutates=f.x,f.y`; `-o mutates=f.` if there are none). A note lists `const` tensors whose
      memory is accessed.
    - **Dispatch key.** A function that accesses memory or calls other functions of the tree is registered for one dispatch key:
      `CUDA` for a `CUDAExtension` or CUDA sources, otherwise `CPU` (`-o key=CUDA` sets it). Autograd does not differentiate such an
      operator. A function that only calls operators of PyTorch is registered as `CompositeImplicitAutograd`: it stays
      differentiable and works on every device, as before.
    - **Fake kernels.** `torch.compile` needs a fake kernel for each operator that is not `CompositeImplicitAutograd`. The migration
      writes a file `_fakes.py` beside the module, with one to fill in for each. Import the file once you have done so.

    A function is skipped if it has overloads or an alias, or if it is bound under a condition, in a macro or in a submodule. It
    is skipped with a note if a type or default cannot be written in a schema, or if an import cannot be rewritten. Each function
    is migrated completely or not at all.

        opschema migrate pybind-to-torch-library -o namespace=acme
    """
    chosen = [site.subject for site in sites if isinstance(site.subject, Binding)]
    search = FunctionSearch(draft.project, list(_bindings(draft)))
    found: dict[int, DerivedOperator] = {}
    for binding in chosen:
        mutates = {item.partition(".")[2] for item in options.mutates if item.partition(".")[0] == binding.name}
        try:
            device = options.key or _device(draft.project, binding.module)
            found[id(binding)] = derive(search, binding, mutates, device)
        except NotDerivableError as error:
            yield Note(binding.place, f"`{binding.name}` stays a binding: {error}", leaves_site=True)
    modules = [item for item in draft.loaded.subjects if isinstance(item, Module) and item.parent is None]
    extensions = Extensions(draft.project, modules, Inline(draft.project).modules)
    yield from _leave_unknown(extensions, found)
    yield from _leave_replaced(extensions, found)
    yield from _leave_taken(draft.project, found, options)
    files: dict[str, list[Edit]] = {}
    fakes: dict[str, list[str]] = {}
    defined: set[str] = set()
    left: set[int] = set()
    for module in list({id(item.binding.module): item.binding.module for item in found.values()}.values()):
        own = {key: item for key, item in found.items() if item.binding.module is module}
        namespace = _namespace(module, options)
        rewritten = list(rewrite_callers(extensions, {key: item.binding for key, item in own.items()}, namespace))
        refused = {name for _, changed in rewritten for name in changed.refused}
        if refused:
            for key in [key for key, item in own.items() if item.binding.name in refused]:
                binding = own.pop(key).binding
                left.add(key)
                message = f"`{binding.name}` stays a binding: not all uses of it can be rewritten"
                yield Note(binding.place, message, leaves_site=True)
            rewritten = list(rewrite_callers(extensions, {key: item.binding for key, item in own.items()}, namespace))
        if own:
            for file, changed in rewritten:
                files.setdefault(file.path, []).extend(changed.edits)
            _rewrite_cpp(draft, list(own.values()), namespace, defined)
            _drop_from_stub(draft, extensions, module, {item.binding.name for item in own.values()})
            _add_fakes(extensions, module, list(own.values()), namespace, fakes)
            yield from _notes(own.values(), rewritten)
    edited = {path: [item.span for item in edits] for path, edits in files.items()}
    yield from unparsed(draft.project, extensions.paths)
    yield from mentioned(
        draft.project, [item.binding for item in found.values() if id(item.binding) not in left], edited
    )
    for path, edits in files.items():
        draft.edit(path, merged(edits))
    yield from _write_fakes(draft, fakes)
    draft.settle()


def _leave_unknown(extensions: Extensions, found: dict[int, DerivedOperator]) -> Iterator[Note]:
    """Leave the bindings of modules whose callers are not known."""
    built = {id(module) for modules in extensions.builders.values() for module in modules or ()}
    for key, item in list(found.items()):
        module = item.binding.module
        if not module.name and id(module) not in built:
            message = (
                f"`{item.binding.name}` stays a binding: the Python name of its module is not known; "
                "set `modules` in `[tool.opschema.bindings]`"
            )
            yield Note(item.binding.place, message, leaves_site=True)
            del found[key]


def _leave_replaced(extensions: Extensions, found: dict[int, DerivedOperator]) -> Iterator[Note]:
    """Leave the bindings that Python sets in their module, as a test does with a substitute, or that `*` imports."""
    guards, starred = Guards(extensions), star_imported(extensions)
    for key, item in list(found.items()):
        replaced = guards.is_replaced(Target((item.binding.module,), item.binding.name))
        if replaced or id(item.binding.module) in starred:
            why = "Python sets it in the module" if replaced else "its module is imported with `*`"
            message = f"`{item.binding.name}` stays a binding: {why}"
            yield Note(item.binding.place, message, leaves_site=True)
            del found[key]


def _leave_taken(project: Project, found: dict[int, DerivedOperator], options: ToTorchLibrary) -> Iterator[Note]:
    """Leave the bindings whose operator exists, or another module would define as well."""
    spaces = {_namespace(item.binding.module, options) for item in found.values()}
    known = {space: defined_operators(project, space) for space in spaces}
    names = Counter((_namespace(item.binding.module, options), item.binding.name) for item in found.values())
    for key, item in list(found.items()):
        name = (_namespace(item.binding.module, options), item.binding.name)
        taken = name[1] in known[name[0]]
        if names[name] > 1 or taken:
            why = f"`{'::'.join(name)}` exists" if taken else f"two modules would define `{'::'.join(name)}`"
            message = f"`{item.binding.name}` stays a binding: {why}"
            yield Note(item.binding.place, message, leaves_site=True)
            del found[key]


def _notes(found: Iterable[DerivedOperator], rewritten: Sequence[tuple[object, Rewritten]]) -> Iterator[Note]:
    used = {name for _, item in rewritten for name in item.uses}
    for operator in found:
        binding = operator.binding
        if operator.assumed:
            names = ", ".join(f"`{name}`" for name in operator.assumed)
            yield Note(binding.place, f"`{binding.name}` is assumed not to write {names}; check this")
        if binding.name not in used:
            yield Note(binding.place, f"no caller of `{binding.name}` was found in this tree")
    for place in (place for _, item in rewritten for place in item.passed_on):
        yield Note(place, "the module is passed on here; calls through it are not rewritten")


# Sites


def _bindings(draft: Draft) -> Iterator[Binding]:
    return (item for item in draft.loaded.subjects if isinstance(item, Binding))


def _blocked(binding: Binding) -> bool:
    """Whether a binding is no candidate: in a macro, a submodule or strings, under a condition, or one of several of its name."""
    step, module = binding.step, binding.module
    single = len(module.by_name.get(binding.name, ())) == 1
    aliased = any(item.target == binding.name or item.name == binding.name for item in module.aliases)
    known = binding.exact and bool(step.call.end) and not step.branch and not step.conditions and module.parent is None
    return not (known and single and not aliased and module.library == "pybind11" and binding.name.isidentifier())


def _namespace(module: Module, options: ToTorchLibrary) -> str:
    return options.namespace or re.sub(r"\W+_*", "_", module.name or module.shown).removesuffix("_C").strip("_")


def _device(project: Project, module: Module) -> str:
    """The dispatch key of the extension that a module is: by the function that builds it, and its sources."""
    build = Build(project, {})
    names = build.targets(module.path)
    setups = (path for path in project.workspace.files if posixpath.basename(path) == "setup.py")
    called = {name for path in setups for name in _CUDA.findall(project.workspace.peek(path).decode(errors="replace"))}
    if module.name in called:
        return "CUDA"
    cuda = [path for path in project.workspace.files if path.endswith((".cu", ".cuh")) and names & build.targets(path)]
    return "CUDA" if cuda or module.path.endswith(".cu") else "CPU"


_CUDA = re.compile(r"""\bCUDAExtension\(\s*(?:name\s*=\s*)?["']([\w.]+)["']""")


# Files


def _rewrite_cpp(draft: Draft, operators: Sequence[DerivedOperator], namespace: str, defined: set[str]) -> None:
    """Remove the bindings, and put the definitions behind their blocks; ``defined`` are the namespaces that have a block."""
    if any(
        re.search(rf"\bTORCH_LIBRARY\(\s*{namespace}\s*,", draft.project.workspace.peek(path).decode(errors="replace"))
        for path in draft.project.workspace.files
        if path.endswith((".cpp", ".cu", ".cc", ".h", ".hpp"))
    ):
        defined.add(namespace)
    units = CppUnits(draft.project)
    blocks: dict[tuple[str, int], list[DerivedOperator]] = {}
    for item in operators:
        blocks.setdefault((item.binding.path, item.binding.block_end), []).append(item)
    for (path, end), items in blocks.items():
        text = draft.text(path)
        draft.edit(path, _removals(text, [item.binding.step.call for item in items]))
        main = path == items[0].binding.module.path and namespace not in defined
        macro = "TORCH_LIBRARY" if main else "TORCH_LIBRARY_FRAGMENT"
        defined |= {namespace} if main else set()
        draft.edit(path, [Edit(Span(end, end), _definitions(items, namespace, macro))])
        if not any(_INCLUDES.search(draft.project.workspace.peek(item)) for item in units.files(path)):
            first = re.search(r"(?m)^[ \t]*#[ \t]*include", text)
            at = first.start() if first is not None else 0
            draft.edit(path, [Edit(Span(at, at), "#include <torch/library.h>\n")])


_INCLUDES = re.compile(rb"#\s*include\s*[<\"]torch/(?:extension|library|all|torch)\.h[>\"]")


def _removals(text: str, calls: Sequence[Span]) -> Iterator[Edit]:
    """Remove statements, each with its line if nothing else stands there."""
    spans: list[Span] = []
    for call in sorted(calls, key=lambda item: item.start):
        end = text.find(";", call.end) + 1
        if spans and not text[spans[-1].end : call.start].strip(" \t"):
            spans[-1] = Span(spans[-1].start, end)
        else:
            spans.append(Span(call.start, end))
    for start, end in spans:
        line = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        ends_line = after >= 0 and not text[end:after].strip()
        if ends_line and not text[line:start].strip():
            yield Edit(Span(line, after + 1), "")
        elif ends_line:
            yield Edit(Span(len(text[:start].rstrip(" \t")), after), "")
        else:
            yield Edit(Span(start, end + len(text[end:]) - len(text[end:].lstrip(" \t"))), "")


def _definitions(items: Sequence[DerivedOperator], namespace: str, macro: str) -> str:
    lines = ["", "", f"{macro}({namespace}, m) {{"]
    lines += [f'  m.def("{_escaped(item.schema)}");' for item in items]
    lines.append("}")
    for key in dict.fromkeys(item.key for item in items):
        lines += ["", f"TORCH_LIBRARY_IMPL({namespace}, {key}, m) {{"]
        lines += [f'  m.impl("{item.binding.name}", {item.function});' for item in items if item.key == key]
        lines.append("}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _drop_from_stub(draft: Draft, extensions: Extensions, module: Module, names: set[str]) -> None:
    for path, modules in extensions.by_path.items():
        plain = f"{path.removesuffix('.py').removesuffix('/__init__')}.pyi"
        file = draft.project.python(plain) if module in modules and draft.project.workspace.is_file(plain) else None
        for function in file.body.functions if file is not None else ():
            if function.name in names and file is not None:
                text, outer = file.source.text, function.outer
                start = text.rfind("\n", 0, outer.start) + 1
                end = text.find("\n", outer.end)
                draft.edit(plain, [Edit(Span(start, end + 1 if end >= 0 else len(text)), "")])


def _add_fakes(
    extensions: Extensions,
    module: Module,
    operators: Sequence[DerivedOperator],
    namespace: str,
    fakes: dict[str, list[str]],
) -> None:
    """Add the fakes of operators with a dispatch key of their own to the texts of files."""
    home = next((path for path, modules in extensions.by_path.items() if module in modules), "")
    own = [item for item in operators if item.key != COMPOSITE] if home else []
    if not own:
        return
    path = posixpath.join(posixpath.dirname(home.removesuffix("/__init__.py")), "_fakes.py")
    last = module.name.rpartition(".")[2]
    loads = f"from . import {last}  # noqa: F401" if "." in module.name else f"import {last}  # noqa: F401"
    parts = fakes.setdefault(path, [])
    parts.insert(0, f"{loads}\n")
    for item in own:
        names = [one.name or one.cpp_name for one in item.binding.parameters or ()]
        does = "return None" if item.returns_nothing else f"raise NotImplementedError({_TO_FILL!r})"
        parts.append(
            f'\n\n@torch.library.register_fake("{namespace}::{item.binding.name}")\n'
            f"def _{item.binding.name}({', '.join(names)}):\n    {does}\n"
        )


_TO_FILL = "return empty tensors of the right shapes"


def _write_fakes(draft: Draft, fakes: dict[str, list[str]]) -> Iterator[Note]:
    for path, parts in fakes.items():
        if draft.project.workspace.is_file(path):
            yield Note(Place(path, Span(0, 0)), "add fake kernels for the new operators here")
        else:
            head = '"""Fake kernels of operators, to be filled in and imported."""\n\nimport torch\n\n'
            draft.create(path, head + "".join(parts))
