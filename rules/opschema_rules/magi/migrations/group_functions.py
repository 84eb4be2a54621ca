"""The functions of an op whose parameters are grouped: the op itself, its meta, setup and backward functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.docstrings import rename_docstring_parameter
from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import all_parameters, is_write, local_uses
from opschema_cli.migrate.codemods.signatures import drop_parameter, parameter
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Body
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Span
from opschema_rules.magi.given import Lambda
from opschema_rules.magi.migrations.grouping import Grouping
from opschema_rules.magi.migrations.spelling import of_dataclasses
from opschema_rules.magi.migrations.trees import is_inner, meta_body


def group_op(workbench: Workbench, group: Grouping) -> None:
    """Write the dataclass above the op, and its parameter into the op."""
    body = group.op.body
    with workbench.on(body.file.path) as rewrite:
        tree = rewrite.tree
        for node in tree.names(group.name):
            raise Refused([Problem(tree.span(node).start, f"{group.name} is used here already")])
        function = function_node(tree, body)
        maker = of_dataclasses(group.op.tree, rewrite, body.parent or body, "dataclass")
        at = tree.top(function_node(tree, home_of(tree, group)))
        rewrite.replace(Span(at, at), _dataclass(rewrite, function, group, maker))
        _sign(rewrite, function, group, group.declaration)
        for flag in group.flags:
            rename_docstring_parameter(rewrite, function, flag.name, f"{group.parameter}.{flag.name}")


def home_of(tree: PythonTree, group: Grouping) -> Body:
    """The function above which the dataclass is written: the meta function, where that comes first and has it all, or the op."""
    op, meta = group.op.body, meta_body(group.op)
    if meta is None or meta.file is not op.file or _name_span(meta).start > _name_span(op).start:
        return op
    start = tree.top(function_node(tree, meta))
    exprs = [item for flag in group.flags for item in (flag.annotation, flag.default) if item is not None]
    names = {part.text.partition(".")[0] for expr in exprs for part in expr.walk() if part.kind == "name"}
    scope = op.file.body
    bound = [(item.name, item.start) for item in scope.imports]
    bound += [(item.name, item.start) for item in scope.classes]
    bound += [(item.name, item.start) for item in scope.functions]
    bound += [(item.target, item.start) for item in scope.assigns]
    later = any(name in names and at >= start for name, at in bound)
    return op if later or tree.indent(_name_span(meta).start) else meta


def _dataclass(rewrite: Rewrite, function: cst.FunctionDef, group: Grouping, maker: str) -> str:
    tree = rewrite.tree
    newline, indent = tree.module.default_newline, tree.indent(tree.span(function).start)
    step = tree.module.default_indent
    lines = [f"@{maker}(frozen=True)", f"class {group.name}:", f'{step}"""Flags of `{function.name.value}()`."""', ""]
    for flag in group.fields:
        node = parameter(rewrite, function, flag.name)
        comment = _comment(tree, node)
        lines.append(f"{step}{_text(tree, node)}{f'  {comment}' if comment else ''}")
    blank = [""] if indent else ["", ""]
    return "".join(f"{indent}{line}{newline}" if line else newline for line in [*lines, *blank])


def _text(tree: PythonTree, node: cst.CSTNode) -> str:
    start, end = element_span(tree, node)
    return tree.text[start:end]


def _comment_span(tree: PythonTree, node: cst.Param) -> Span:
    """Return the span of the comment after a parameter on a line of its own, with the space before it."""
    start, end = element_span(tree, node)
    at = tree.span(node.comma).end if isinstance(node.comma, cst.Comma) else end
    rest = tree.text[at : tree.line_end(at)].rstrip("\r\n")
    alone = not tree.text[tree.line_start(start) : start].strip() and rest.lstrip().startswith("#")
    return Span(at, at + len(rest)) if alone else Span(at, at)


def _comment(tree: PythonTree, node: cst.Param) -> str:
    start, end = _comment_span(tree, node)
    return tree.text[start:end].strip()


def _sign(rewrite: Rewrite, function: cst.FunctionDef, group: Grouping, declaration: str) -> None:
    """Write the new parameter in the first one's place, take the others out, and read fields where they were read."""
    tree = rewrite.tree
    _refuse_taken(tree, function, group.parameter)
    present = [item for item in all_parameters(function.params) if item.name.value in group.names]
    for param in present:
        read_field(rewrite, function, param.name.value, group.parameter)
    for param in present[1:]:
        drop_parameter(rewrite, function, param.name.value)
    if present:
        rewrite.replace(element_span(tree, present[0]), declaration)
        comment = _comment_span(tree, present[0])
        if comment.start < comment.end:
            rewrite.replace(comment, "")


def _refuse_taken(tree: PythonTree, function: cst.FunctionDef, name: str) -> None:
    for node in tree.names(name, function):
        raise Refused([Problem(tree.span(node).start, f"{function.name.value}() uses {name} already")])


def read_field(rewrite: Rewrite, function: cst.FunctionDef, name: str, holder: str, field: str = "") -> list[cst.Name]:
    """Write ``holder.name`` for a local's uses, except its bindings; these are returned if ``field`` is given.

    Raises:
        Refused: the function assigns it, or an f-string prints its name.
    """
    tree = rewrite.tree
    bound: list[cst.Name] = []
    for use in local_uses(rewrite, function, name):
        prints = (item for item in tree.ancestors(use) if isinstance(item, cst.FormattedStringExpression))
        if any(item.equal is not None for item in prints):
            raise Refused([Problem(tree.span(use).start, f"an f-string prints the name {name}")])
        if is_write(tree, use):
            bound.append(use)
        else:
            rewrite.replace(tree.span(use), f"{holder}.{field or name}")
    if bound and not field:
        raise Refused([Problem(tree.span(bound[0]).start, f"{function.name.value}() assigns {name}")])
    return bound


# Meta


def group_meta(workbench: Workbench, group: Grouping, meta: Body | Lambda) -> None:
    """Give a meta function the parameter that the op has."""
    names = set(meta.params) if isinstance(meta, Lambda) else {item.name for item in meta.params}
    path = meta.written.body.file.path if isinstance(meta, Lambda) else meta.file.path
    span = meta.written.expr.span if isinstance(meta, Lambda) else _name_span(meta)
    kinds = () if isinstance(meta, Lambda) else [item.kind for item in meta.params]
    if names != {item.name for item in group.op.params} or any(kind not in ("normal", "kwonly") for kind in kinds):
        raise LeftAlone(Place(path, span), "the meta function has other parameters than the op, and is called by name")
    with workbench.on(path) as rewrite:
        if isinstance(meta, Lambda):
            _sign_lambda(rewrite, group, rewrite.tree.find(span, cst.Lambda))
        else:
            function = function_node(rewrite.tree, meta)
            declaration = _declaration(rewrite.tree, group, meta, function)
            if "=" not in declaration:
                _refuse_defaults(rewrite.tree, function.params, group)
            _sign(rewrite, function, group, declaration)
            for flag in group.flags:
                rename_docstring_parameter(rewrite, function, flag.name, f"{group.parameter}.{flag.name}")


def _name_span(body: Body) -> Span:
    assert body.function is not None
    return body.function.span


def _refuse_defaults(tree: PythonTree, params: cst.Parameters, group: Grouping) -> None:
    """Check that no parameter without a default follows one with a default."""
    for param in params.params:
        if param.name.value in group.names:
            return
        if param.default is not None:
            reason = f"in the meta function {group.parameter} has no default and would follow {param.name.value}, which has one"
            raise Refused([Problem(tree.span(param).start, reason)])


def _declaration(tree: PythonTree, group: Grouping, meta: Body, function: cst.FunctionDef) -> str:
    """The parameter of a meta function: with type and default where the dataclass is known."""
    params = [item for item in all_parameters(function.params) if item.name.value in group.names]
    typed = any(item.annotation is not None for item in params)
    if meta.file is not group.op.body.file:
        return group.parameter
    above = _name_span(meta).start < _name_span(group.op.body).start
    if above and home_of(tree, group) is not meta:
        return f'{group.parameter}: "{group.name}"' if typed else group.parameter
    default = f"{group.name}()" if group.has_default and all(item.default is not None for item in params) else ""
    if typed:
        return f"{group.parameter}: {group.name}{f' = {default}' if default else ''}"
    return f"{group.parameter}={default}" if default else group.parameter


def _sign_lambda(rewrite: Rewrite, group: Grouping, node: cst.Lambda) -> None:
    tree = rewrite.tree
    params = list(node.params.params)
    at = [index for index, item in enumerate(params) if item.name.value in group.names]
    if len(at) != len(group.flags) or len(all_parameters(node.params)) != len(params):
        raise Refused([Problem(tree.span(node).start, "the lambda has keyword-only parameters")])
    _refuse_defaults(tree, node.params, group)
    if tree.names(group.parameter, node):
        raise Refused([Problem(tree.span(node).start, f"the lambda uses {group.parameter} already")])
    rewrite.replace(element_span(tree, params[at[0]]), group.parameter)
    if at[1:]:
        rewrite.drop(params, *at[1:])
    for name in group.names:
        for use in tree.names(name, node.body):
            if not is_inner(tree, use, name, node):
                rewrite.replace(tree.span(use), f"{group.parameter}.{name}")


# Autograd


def group_setup(workbench: Workbench, group: Grouping, setup: Body) -> None:
    """Adapt a setup function to the new arguments of the op in its ``inputs``.

    Raises:
        LeftAlone: it uses them otherwise than by one unpacking, or by constant places.
    """
    with workbench.on(setup.file.path) as rewrite:
        tree, function = rewrite.tree, function_node(rewrite.tree, setup)
        if len(setup.params) != 3 or any(item.kind != "normal" for item in setup.params):
            raise Refused([Problem(tree.span(function.name).start, "it does not take a context, inputs and output")])
        name = setup.params[1].name
        _refuse_taken(tree, function, group.parameter)
        for use in local_uses(rewrite, function, name):
            above = tree.parent(use)
            if isinstance(above, cst.Assign) and above.value is use and len(above.targets) == 1:
                _unpack(rewrite, function, group, above.targets[0].target)
            elif isinstance(above, cst.Subscript) and above.value is use:
                _index(rewrite, group, above, name)
            else:
                raise Refused(
                    [Problem(tree.span(use).start, f"what {function.name.value}() does with {name} is not known")]
                )


def _unpack(rewrite: Rewrite, function: cst.FunctionDef, group: Grouping, target: cst.BaseExpression) -> None:
    tree, names = rewrite.tree, [item.name for item in group.op.params]
    elements = list(target.elements) if isinstance(target, cst.Tuple | cst.List) else []
    if _takes_only_others(rewrite, function, elements, names, group):
        return
    plain = all(isinstance(item, cst.Element) and isinstance(item.value, cst.Name) for item in elements)
    if len(elements) != len(names) or not plain:
        raise Refused([Problem(tree.span(target).start, f"it does not unpack the {len(names)} inputs one by one")])
    at = [index for index, name in enumerate(names) if name in group.names]
    read = False
    for index in at:
        local = elements[index].value
        assert isinstance(local, cst.Name)
        read = _field_of(rewrite, function, group, local, names[index]) or read
    rewrite.replace(tree.span(elements[at[0]].value), group.parameter if read else "_")
    if at[1:]:
        rewrite.drop(elements, *at[1:], singleton_comma=isinstance(target, cst.Tuple))


def _takes_only_others(
    rewrite: Rewrite,
    function: cst.FunctionDef,
    elements: Sequence[cst.BaseElement],
    names: Sequence[str],
    group: Grouping,
) -> bool:
    """Whether it takes inputs in front of the flags, and the rest by a star that nothing reads."""
    last = elements[-1] if elements else None
    if not isinstance(last, cst.StarredElement) or not isinstance(last.value, cst.Name):
        return False
    reads = [use for use in local_uses(rewrite, function, last.value.value) if not is_write(rewrite.tree, use)]
    return not reads and not group.names & set(names[: len(elements) - 1])


def _field_of(rewrite: Rewrite, function: cst.FunctionDef, group: Grouping, local: cst.Name, flag: str) -> bool:
    """Read a field where a local that the inputs were unpacked to was read; whether one was."""
    tree = rewrite.tree
    uses = local_uses(rewrite, function, local.value)
    reads = [use for use in uses if not is_write(tree, use)]
    writes = [use for use in uses if is_write(tree, use)]
    if reads and len(writes) != 1:
        raise Refused([Problem(tree.span(writes[0]).start, f"{function.name.value}() assigns {local.value}")])
    if reads:
        read_field(rewrite, function, local.value, group.parameter, flag)
    return bool(reads)


def _index(rewrite: Rewrite, group: Grouping, node: cst.Subscript, inputs: str) -> None:
    tree, names = rewrite.tree, [item.name for item in group.op.params]
    text = "".join(tree.code(node.slice[0]).split())
    number = int(text) if re.fullmatch(r"-?[0-9]{1,5}", text) else None
    if number is None or len(node.slice) != 1 or not -len(names) <= number < len(names):
        raise Refused([Problem(tree.span(node).start, f"which of {inputs} it takes is not known")])
    name = names[number]
    place = group.originals.index(group.parameter if name in group.names else name)
    place -= len(group.originals) if number < 0 else 0
    field = f".{name}" if name in group.names else ""
    written = f"{inputs}[{place}]{field}"
    if written != tree.code(node):
        rewrite.replace(tree.span(node), written)


def group_backward(workbench: Workbench, group: Grouping, backward: Body) -> None:
    """Return one gradient for the dataclass instead of one for each flag.

    Raises:
        LeftAlone: what it returns is not written out, or has a gradient for a flag.
    """
    names = [item.name for item in group.op.params]
    at = [index for index, name in enumerate(names) if name in group.names]
    with workbench.on(backward.file.path) as rewrite:
        tree, function = rewrite.tree, function_node(rewrite.tree, backward)
        for node in tree.walk(function):
            if isinstance(node, cst.Return) and tree.enclosing(node, cst.FunctionDef) is function:
                _gradients(rewrite, group, node, at, len(names))


def _gradients(rewrite: Rewrite, group: Grouping, node: cst.Return, at: Sequence[int], count: int) -> None:
    tree, value = rewrite.tree, node.value
    elements = list(value.elements) if isinstance(value, cst.Tuple) else []
    if len(elements) != count or any(isinstance(item, cst.StarredElement) for item in elements):
        raise Refused([Problem(tree.span(node).start, f"it does not return the {count} gradients one by one")])
    for index in at:
        gradient = elements[index].value
        if not (isinstance(gradient, cst.Name) and gradient.value == "None"):
            raise Refused([Problem(tree.span(gradient).start, f"it has a gradient for {group.op.params[index].name}")])
    if at[1:]:
        rewrite.drop(elements, *at[1:], singleton_comma=True)


def known(found: Body | Lambda | Unresolved | None, group: Grouping, what: str) -> Body | None:
    """Return a function registered with the op; None if there is none.

    Raises:
        LeftAlone: it is a lambda, or not known.
    """
    if found is None or isinstance(found, Body):
        return found
    reason = found.reason if isinstance(found, Unresolved) else "it is a lambda"
    raise LeftAlone(group.op.place, f"its `{what}` is not rewritten: {reason}")
