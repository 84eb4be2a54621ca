"""`pybind-to-torch-library`: bound functions become operators of torch.library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from opschema_cli.cpp_missing import FunctionSearch
from opschema_cli.lint.diagnostic import CPP
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Scope, Site, migration
from opschema_cli.project import Project
from opschema_cli.source.text import Edit, Span
from opschema_rules.bindings.definitions import function_use
from opschema_rules.bindings.imports import Extensions, Guards, Loaders, Target
from opschema_rules.bindings.inline import Inline
from opschema_rules.bindings.migrations.callers import Rewritten, merged, rewrite_callers
from opschema_rules.bindings.migrations.cpp_edits import rewrite_cpp
from opschema_rules.bindings.migrations.derived import (
    DerivedOperator,
    NotDerivableError,
    derive,
    operator_name,
    overload_names,
    takes_tensor,
    with_keys,
)
from opschema_rules.bindings.migrations.fakes import add_fakes, write_fakes
from opschema_rules.bindings.migrations.function_bodies import FunctionBodies
from opschema_rules.bindings.migrations.leftovers import (
    defined_operators,
    mentioned,
    read_by_cpp,
    star_imported,
    unparsed,
)
from opschema_rules.bindings.model import Alias, Binding, Module
from opschema_rules.bindings.proofs import BUILT


class ToTorchLibrary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """``namespace`` is the namespace of the operators, by default the package of the extension. ``key`` is the dispatch key of
    kernels that access memory. ``mutates`` lists tensors that functions write (``scale.out``), beyond those that their code shows.
    With ``trust_const``, functions are assumed not to write tensors that they take as ``const``.
    """

    namespace: str = ""
    key: str = ""
    mutates: list[str] = []
    trust_const: bool = False


def find(draft: Draft, options: ToTorchLibrary) -> Iterator[Site]:
    """The bindings that may become operators."""
    if options.namespace and not options.namespace.isidentifier():
        raise OptionError(f"`namespace`: `{options.namespace}` is not a valid name")
    bound = Counter((item.path, item.step.span) for item in _bindings(draft))
    for binding in _bindings(draft):
        if bound[binding.path, binding.step.span] > 1:  # by a function that is given two modules
            continue
        if not any(map(_is_blocked, binding.module.by_name.get(binding.name, ()))) and not _is_kept_by_alias(binding):
            title = f"define `{_namespace(binding.module, options)}::{operator_name(binding)}`"
            yield Site(binding.place, title, (binding.qualified,), subject=binding)


@migration(
    "pybind-to-torch-library",
    find=find,
    options=ToTorchLibrary,
    scope=Scope((Binding,), "no bound function was read in this tree"),
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

    TORCH_LIBRARY_IMPL(acme, CompositeImplicitAutograd, m) {
      m.impl("scale", &scale);
    }
    ```

    The binding is removed, and Python calls `torch.ops.acme.scale`. The module itself stays, since importing it loads the
    operators: an import that is used for nothing else is marked with `# noqa: F401`. The C++ functions stay unchanged. Operators
    have only the number types `int64_t` and `double`, so a function with `int` or `float` is registered through a lambda that
    converts them.

    - **Mutation.** A tensor is declared as mutated if the code writes it in place (`x.mul_()`, `x[0] = ...`), if it is the first
      argument of a function whose name ends in `_`, or if it is named like an output. If the function accesses the memory of
      another tensor or passes it to another function, the function is not migrated until you name the tensors that it writes
      (`-o mutates=f.x,f.y`; `-o mutates=f.` if there are none). In C++ a function can write to a `const at::Tensor&`. If no
      function of your tree does, pass `-o trust-const=true`: a note then lists the `const` tensors whose memory is accessed.
    - **Aliases of arguments.** A function that returns an argument or a view of one gets a schema that says so
      (`f(Tensor(a!) x) -> Tensor(a!)`). `torch.compile` refuses such an operator unless it is `CompositeImplicitAutograd`: let it
      return a copy, or nothing.
    - **Dispatch key.** The migration follows the functions and macros that a function calls. If all that they do is call operators
      of PyTorch, the operator is registered as `CompositeImplicitAutograd`: it stays differentiable and works on every device, as
      before. If any of them accesses the memory of tensors, it is registered as `CompositeExplicitAutograd`: it is called for
      every device, as before, and autograd does not differentiate it. If it runs on one device only, `-o key=CUDA` says so.
    - **Fake kernels.** `torch.compile` needs a fake kernel for each operator that is not `CompositeImplicitAutograd`. The migration
      writes a file `_fakes.py` beside the module, with one to fill in for each. Import the file once you have done so.
    - **Overloads, aliases, conditions, submodules.** The overloads of a name become overloads of the operator (`shift`,
      `shift.by`), together or not at all. Overloads that differ only in number types stay bindings, since the dispatcher might
      choose another one than pybind11. An alias (`m.attr("mul") = m.attr("scale")`) is removed, and its callers call the operator
      instead. A function that is bound under an `#ifdef` is defined under the same condition. `t` of the submodule `s` becomes
      the operator `s_t`.

    Each function is migrated completely or not at all. A function in a macro, a chain of calls, a loop or an `if`, or
    bound with nanobind, is skipped. A function stays a binding, with a note that says why, if

    - a type or default cannot be written in a schema,
    - its dispatch key is not known: nothing shows that it accesses memory, and it does something of unknown effect, such as to call
      a function that the tree does not define or to write a global variable; or it applies an autograd function of C++
      (`-o key=` sets the key),
    - it needs a name that only the block with the binding knows (a constant, `using namespace`), or its lambda captures variables,
    - it, or a function of the tree that it calls, uses Python, such as `py::gil_scoped_release`: an operator is called without the
      GIL,
    - a use cannot be rewritten: an import in an unusual form, code where `torch` is not the module, or a loader that gets the
      name as a string,
    - Python code replaces the function (`_C.f = ...`, `monkeypatch.setattr(_C, "f", ...)`) or looks it up by a string
      (`hasattr(_C, "f")`), or C++ reads it from the module (`m.attr("f")`),
    - a file imports the module with `*`,
    - the tree already defines an operator with this name, or two modules would define it.

        opschema migrate pybind-to-torch-library -o namespace=acme
    """
    chosen = [site.subject for site in sites if isinstance(site.subject, Binding)]
    modules = [item for item in draft.loaded.subjects if isinstance(item, Module) and item.parent is None]
    loaders = Loaders(draft.project, modules, Inline(draft.project).modules)
    extensions = loaders.extensions
    found: dict[int, DerivedOperator] = {}
    yield from _skipped(draft, chosen)
    yield from _derive(draft, chosen, options, found)
    yield from _leave_unknown(loaders, found)
    yield from _leave_replaced(extensions, found)
    yield from _leave_taken(draft.project, found, options)
    files: dict[str, list[Edit]] = {}
    fakes: dict[str, list[str]] = {}
    spaces: dict[str, tuple[list[DerivedOperator], list[Alias]]] = {}
    left: set[int] = set()
    for module in list({id(item.binding.module): item.binding.module for item in found.values()}.values()):
        own = {key: item for key, item in found.items() if item.binding.module is module}
        namespace = _namespace(module, options)
        rewritten = list(rewrite_callers(extensions, own, namespace))
        refused = {name for _, changed in rewritten for name in changed.refused}
        if refused:
            for key in [key for key, item in own.items() if item.binding.name in refused]:
                left.add(key)
                yield _stays(own.pop(key).binding, "not all uses of it can be rewritten")
            rewritten = list(rewrite_callers(extensions, own, namespace))
        if own:
            for file, changed in rewritten:
                files.setdefault(file.path, []).extend(changed.edits)
            names = {item.binding.name for item in own.values()}
            aliases = [item for item in module.aliases if _aliased(module, item) in names]
            operators, removed = spaces.setdefault(namespace, ([], []))
            operators += own.values()
            removed += aliases
            _drop_from_stub(draft, extensions, module, names | {item.name for item in aliases})
            add_fakes(extensions, module, list(own.values()), namespace, fakes)
            yield from _notes(own.values(), rewritten)
    for namespace, (operators, removed) in spaces.items():
        rewrite_cpp(draft, operators, removed, namespace)
    edited = {path: [item.span for item in edits] for path, edits in files.items()}
    yield from unparsed(draft.project, extensions.paths)
    yield from mentioned(
        draft.project, [item.binding for item in found.values() if id(item.binding) not in left], edited
    )
    for path, edits in files.items():
        draft.edit(path, merged(edits))
    yield from write_fakes(draft, fakes)
    draft.settle()


def _stays(binding: Binding, why: str) -> Note:
    return Note(binding.place, f"`{binding.name}` stays a binding: {why}", leaves_site=True)


def _derive(
    draft: Draft, chosen: Sequence[Binding], options: ToTorchLibrary, found: dict[int, DerivedOperator]
) -> Iterator[Note]:
    """Add the operators of bindings to ``found``; the overloads of a name all or none."""
    bodies = FunctionBodies(draft.project, FunctionSearch(draft.project, list(map(function_use, _bindings(draft)))))
    known = {id(item) for item in chosen}
    firsts: dict[tuple[int, str], Binding] = {}
    for item in chosen:
        firsts.setdefault((id(item.module), item.name), item)
    groups: list[list[DerivedOperator]] = []
    for first in firsts.values():
        overloads = first.module.by_name[first.name]
        mutates = {item.partition(".")[2] for item in options.mutates if item.partition(".")[0] == first.name}
        operators: list[DerivedOperator] = []
        binding = first
        try:
            other = next((item for item in overloads if id(item) not in known), None)
            if other is not None:
                raise NotDerivableError(f"another overload of it is not migrated ({other.path})")
            for binding, overload in zip(overloads, overload_names(overloads), strict=True):
                full = ".".join(filter(None, (operator_name(binding), overload)))
                operators.append(derive(bodies, binding, full, mutates, trust_const=options.trust_const))
        except NotDerivableError as error:
            yield from _overloads_stay(binding, str(error), [item for item in overloads if id(item) in known])
        else:
            groups.append(operators)
    keyed = with_keys(bodies, [item for group in groups for item in group], options.key)
    for group in groups:
        results = list(islice(keyed, len(group)))
        for operator, result in zip(group, results, strict=True):
            if isinstance(result, NotDerivableError):
                yield from _overloads_stay(operator.binding, str(result), [item.binding for item in group])
                break
        else:
            found.update((id(item.binding), item) for item in results if isinstance(item, DerivedOperator))


def _overloads_stay(binding: Binding, why: str, overloads: Iterable[Binding]) -> Iterator[Note]:
    """Yield the notes on a binding that stays, and on the other overloads of its name."""
    yield _stays(binding, why)
    yield from (_stays(item, "another overload of it cannot be migrated") for item in overloads if item is not binding)


def _leave_unknown(loaders: Loaders, found: dict[int, DerivedOperator]) -> Iterator[Note]:
    """Leave the bindings of modules whose callers are not known."""
    built = {id(module) for modules in loaders.builders.values() for module in modules or ()}
    unnamed = [item for item in loaders.extensions.unnamed if id(item) not in built]
    for key, item in list(found.items()):
        module = item.binding.module.root
        others = [one for one in unnamed if one is not module and item.binding.name in one.known]
        why = ""
        if not module.name and id(module) not in built:
            why = "the Python name of its module is not known"
        elif module.name and others:
            why = f"a module whose Python name is not known also has it ({others[0].path})"
        if why:
            yield _stays(item.binding, f"{why}; set `modules` in `[tool.opschema.bindings]`")
            del found[key]


def _leave_replaced(extensions: Extensions, found: dict[int, DerivedOperator]) -> Iterator[Note]:
    """Leave the bindings that Python replaces in their module (as tests do), looks up by a string, or imports with `*`, and those
    that C++ reads from the module.
    """
    guards, starred = Guards(extensions), star_imported(extensions)
    for key, item in list(found.items()):
        module = item.binding.module
        aliases = [one.name for one in module.aliases if _aliased(module, one) == item.binding.name]
        targets = [Target((module,), name) for name in (item.binding.name, *aliases)]
        why = ""
        if any(map(guards.is_replaced, targets)):
            why = "Python code replaces it in the module"
        elif any(map(guards.is_asked, targets)):
            why = "Python code looks it up by a string, such as with `hasattr`"
        elif id(module) in starred:
            why = "its module is imported with `*`"
        elif read_by_cpp(extensions.project, item.binding, len(aliases)):
            why = "C++ reads it from the module (`attr`)"
        if why:
            yield _stays(item.binding, why)
            del found[key]


def _leave_taken(project: Project, found: dict[int, DerivedOperator], options: ToTorchLibrary) -> Iterator[Note]:
    """Leave the bindings whose operator already exists or would be defined by two modules."""
    spaces = {_namespace(item.binding.module, options) for item in found.values()}
    known = {space: defined_operators(project, space) for space in spaces}
    owners: dict[tuple[str, str], set[tuple[int, str]]] = {}
    for item in found.values():
        name = (_namespace(item.binding.module, options), item.name)
        owners.setdefault(name, set()).add((id(item.binding.module), item.binding.name))
    for key, item in list(found.items()):
        name = (_namespace(item.binding.module, options), item.name)
        taken = name[1] in known[name[0]]
        if taken or len(owners[name]) > 1:
            shown = "::".join(name)
            yield _stays(
                item.binding,
                f"the operator `{shown}` already exists" if taken else f"two modules would define `{shown}`",
            )
            del found[key]


def _notes(found: Iterable[DerivedOperator], rewritten: Sequence[tuple[object, Rewritten]]) -> Iterator[Note]:
    used = {name for _, item in rewritten for name in item.uses}
    for operator in found:
        binding = operator.binding
        if operator.assumed:
            names = ", ".join(f"`{name}`" for name in operator.assumed)
            yield Note(binding.place, f"`{binding.name}` is assumed not to write {names}; check this")
        if operator.name not in used:
            yield Note(binding.place, f"no caller of `{binding.name}` was found in this tree")
    for place in (place for _, item in rewritten for place in item.passed_on):
        yield Note(place, "the module is passed to other code here, whose calls are not rewritten")


# Sites


def _bindings(draft: Draft) -> Iterator[Binding]:
    return (item for item in draft.loaded.subjects if isinstance(item, Binding))


def _form(binding: Binding) -> str:
    """Return the form of a binding that cannot be removed where it is written; empty if it can be."""
    if binding.step.branch:
        return "made in a branch or a loop"
    return "" if binding.step.call.end else "part of a longer expression"


def _skipped(draft: Draft, chosen: Iterable[Binding]) -> Iterator[Note]:
    """Yield notes on the bindings whose form keeps them, in the modules of those that may become operators; a macro may make many,
    which have none.
    """
    modules = {id(item.module.root) for item in chosen}
    for item in _bindings(draft):
        if id(item.module.root) in modules and item.exact and _form(item) and takes_tensor(item):
            yield Note(item.place, f"`{item.name}` stays a binding: it is {_form(item)}")


def _is_blocked(binding: Binding) -> bool:
    """Whether a binding is not a candidate: in a macro, strings or a branch, or made with nanobind."""
    return (
        not binding.exact
        or bool(_form(binding))
        or binding.module.library != "pybind11"
        or not operator_name(binding).isidentifier()
    )


def _is_kept_by_alias(binding: Binding) -> bool:
    """Whether an alias hides a binding, or cannot be removed with it."""
    module = binding.module
    for item in module.aliases:
        simple = item.step.call.end and not item.step.branch and item.step.conditions == binding.conditions
        if item.name == binding.name or (_aliased(module, item) == binding.name and not simple):
            return True
    return False


def _aliased(module: Module, alias: Alias) -> str:
    """Return the name of the binding that an alias refers to, possibly through other aliases; empty if there is none."""
    bindings = module.by_name.get(alias.name, ())
    return bindings[0].name if bindings and bindings[0].name != alias.name else ""


def _namespace(module: Module, options: ToTorchLibrary) -> str:
    return options.namespace or re.sub(r"\W+_*", "_", module.root.name or module.root.shown).removesuffix("_C").strip(
        "_"
    )


# Files


def _drop_from_stub(draft: Draft, extensions: Extensions, module: Module, names: set[str]) -> None:
    for file in (file for file, known in extensions.stubs() if known is module):
        for function in file.body.functions:
            if function.name in names:
                text, outer = file.source.text, function.outer
                start = text.rfind("\n", 0, outer.start) + 1
                end = text.find("\n", outer.end)
                draft.edit(file.path, [Edit(Span(start, end + 1 if end >= 0 else len(text)), "")])
