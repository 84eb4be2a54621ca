"""Load the operators registered with ``torch.library``, each with all that is registered for it."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import NotUnderstood
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.project import Project
from opschema_rules.torchlib.aten_tables import files_of
from opschema_rules.torchlib.detection import TorchlibOptions, cpp_sources, sources
from opschema_rules.torchlib.dispatcher_calls import dispatcher_calls
from opschema_rules.torchlib.graph import graph_of
from opschema_rules.torchlib.model import AtenKernel, Operator, Tree
from opschema_rules.torchlib.operators import plain_name
from opschema_rules.torchlib.stray_uses import hub_uses, stray_uses


def load(project: Project, options: TorchlibOptions) -> Loaded:
    """All operators of the workspace."""
    tree = read_tree(project, options)
    operators = [item for item in tree.operators if not _is_of_magi(item)]
    loaded = Loaded(ops=len(operators), partly=sum(not item.complete for item in operators))
    loaded.subjects += [*operators, *tree.strays, tree, *tree.functions]
    loaded.subjects += stray_uses(project, tree, sources(project, options))
    loaded.subjects += hub_uses(project, tree, sources(project, options))
    loaded.subjects += dispatcher_calls(project, tree, filter(is_cpp, cpp_sources(project, options)))
    kernels = list(_aten_kernels(tree))
    loaded.subjects += kernels
    loaded.ops += len({item.name for item in kernels})
    loaded.files += files_of(tree.of_torch)
    loaded.unresolved += [NotUnderstood(place, reason) for place, reason in tree.unresolved]
    loaded.entries += [entry for operator in operators for entry in _entries(operator)]
    return loaded


def _aten_kernels(tree: Tree) -> Iterable[AtenKernel]:
    """The kernels for operators of torch itself that the tree does not define."""
    own = {plain_name(name) for operator in tree.operators for name in operator.names or ()}
    for item in tree.cpp_registrations:
        namespace, _, name = plain_name(item.name).partition("::")
        if namespace == "aten" and plain_name(item.name) not in own:
            yield AtenKernel(tree, name, item.registration, item.conditions)
    for stray in tree.of_torch:
        registration = stray.registration
        if registration.language == "python" and registration.role == "kernel":
            yield AtenKernel(tree, plain_name(stray.name).removeprefix("aten::"), registration)


def _is_of_magi(operator: Operator) -> bool:
    """Whether MagiCompiler's decorator, in the tree itself, makes the operator: the pack ``magi`` judges it."""
    body, call = operator.definition.body, operator.definition.call
    named = call is not None and call.callee.rpartition(".")[2] == "magi_register_custom_op"
    return named or (body is not None and f"/{body.file.path}".endswith("/magi_compiler/_magi_register_custom_op.py"))


def _entries(operator: Operator) -> Iterable[Entry]:
    body = operator.definition.function
    if body is not None and body.function is not None:
        names = sorted(operator.names or ())
        yield Entry(body.file.path, body.function.span, body.function.outer, names[0] if len(names) == 1 else "")


def read_tree(project: Project, options: TorchlibOptions) -> Tree:
    """Return the operators of a workspace, with their registrations."""
    return graph_of(project, options).tree
