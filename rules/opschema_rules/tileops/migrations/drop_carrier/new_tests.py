"""The test that a schema check accepts ``inputs: {}``, written beside and like the check's other tests."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.workbench import Workbench
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span

ACCEPTED = "test_signature_inputs_may_be_empty_when_params_present"
REJECTED = "test_signature_without_inputs_and_params_is_rejected"


class _Model(msgspec.Struct, frozen=True):
    """A test of the check: how it makes an entry (``helper``) and how it calls the check."""

    test: cst.FunctionDef
    helper: str
    call: cst.Call


def add_tests(workbench: Workbench, path: str, check: str, *, rejected: bool) -> bool:
    """Add tests of ``check`` to a test module, and let its helper pass on an empty mapping; whether there is a model for it."""
    with workbench.on(path) as rewrite:
        tree = rewrite.tree
        helpers = {
            name: node
            for name in _helpers(tree)
            for node in tree.definitions(name)
            if isinstance(node, cst.FunctionDef)
        }
        models = [
            model for call in tree.calls(check) if not rewrite.is_gone(call) for model in _models(tree, call, helpers)
        ]
        if not models or tree.definitions(ACCEPTED):
            return False
        _mend(rewrite, helpers[models[0].helper])
        home = Counter(id(tree.parent(model.test)) for model in models).most_common(1)[0][0]
        block = next(
            parent for model in models if (parent := tree.parent(model.test)) is not None and id(parent) == home
        )
        last = [
            item
            for item in block.children
            if isinstance(item, cst.FunctionDef) and _has(item, models) and not rewrite.is_gone(item)
        ][-1]
        _insert(rewrite, last, models[0], rejected=rejected)
    return True


def _has(function: cst.FunctionDef, models: list[_Model]) -> bool:
    return any(model.test is function for model in models)


def _helpers(tree: PythonTree) -> Iterator[str]:
    """The module's functions that make an entry of its inputs, outputs and params."""
    for node in tree.module.body:
        if isinstance(node, cst.FunctionDef):
            params = [*node.params.params, *node.params.kwonly_params]
            if {"inputs", "outputs", "params"} <= {item.name.value for item in params}:
                yield node.name.value


def _models(tree: PythonTree, call: cst.Call, helpers: dict[str, cst.FunctionDef]) -> Iterator[_Model]:
    test = tree.enclosing(call, cst.FunctionDef)
    plain = len(call.args) == 2 and not any(arg.keyword or arg.star for arg in call.args)
    if test is None or test.decorators or not test.name.value.startswith("test") or not plain:
        return
    if not isinstance(call.args[0].value, cst.SimpleString):
        return
    known = {item.name.value for item in test.params.params}
    root = call.func
    while isinstance(root, cst.Attribute):
        root = root.value
    if isinstance(root, cst.Name) and known <= {"self", root.value}:
        for node in tree.walk(test):
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in helpers:
                yield _Model(test, node.func.value, call)
                return


def _mend(rewrite: Rewrite, helper: cst.FunctionDef) -> None:
    """Write ``inputs or {...}``, which takes an empty mapping for none, as a test for None."""
    names = {item.name.value for item in (*helper.params.params, *helper.params.kwonly_params)}
    for node in rewrite.tree.walk(helper):
        if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
            left, right = node.left, node.right
            filled = isinstance(right, cst.Dict) and bool(right.elements)
            if isinstance(left, cst.Name) and left.value in names and filled:
                end, start = rewrite.tree.outer(left).end, rewrite.tree.outer(right).start
                rewrite.replace(Span(end, start), f" if {left.value} is not None else ")


_TEST = """\
def {name}({params}):
    \"\"\"{doc}\"\"\"
    entry = {helper}(
        inputs={{}},
        outputs={{"output": {{"dtype": "float16 | float32"}}}},
        params={declared},
    )
    assert {call} {sign} []
"""

_ACCEPTING = {
    "name": ACCEPTED, "doc": "``inputs: {}`` is accepted where there are params.",
    "declared": '{"dtype": {"type": "torch.dtype"}}', "sign": "==",
}  # fmt: skip
_REJECTING = {
    "name": REJECTED, "doc": "A signature needs an input or a param.", "declared": "{}", "sign": "!=",
}  # fmt: skip


def _insert(rewrite: Rewrite, last: cst.FunctionDef, model: _Model, *, rejected: bool) -> None:
    """Write the tests below the last one of the same check, apart as functions are there."""
    tree = rewrite.tree
    indent = tree.indent(tree.span(last).start)
    known = {
        "params": ", ".join(item.name.value for item in model.test.params.params),
        "helper": model.helper,
        "call": f"{tree.code(model.call.func)}({tree.code(model.call.args[0].value)}, entry)",
    }
    tests = [_TEST.format(**known, **parts) for parts in ([_ACCEPTING, _REJECTING] if rejected else [_ACCEPTING])]
    text = "".join(("\n" if indent else "\n\n") + textwrap.indent("\n" + test, indent).rstrip("\n") for test in tests)
    end = tree.span(last).end
    rewrite.replace(Span(end, end), text.replace("\n", "\r\n" if "\r\n" in tree.text else "\n"))
