"""Describes a tree's operators in ``opschema lint --show-settings``: the torch release, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.pack import Description, Fact
from opschema_rules.torchlib.compared_shapes import compared_pairs
from opschema_rules.torchlib.model import Tree

_HINT = (
    "Missing registrations are not reported where a registration cannot be followed. If the tree is for another torch, set"
    ' `torch = "2.6"` in `[tool.opschema.torchlib]`.'
)


def describe_tree(tree: Tree) -> Description:
    """The version, the operators, and each registration that cannot be followed, with its place."""
    whole = sum(operator.complete for operator in tree.operators)
    facts = [
        Fact("torch", str(tree.release), tree.release.doubt or tree.release.source),
        Fact("operators", str(len(tree.operators)), f"{whole} of them with all that is registered for them"),
    ]
    facts += _compared(tree)
    for place, reason in sorted(set(tree.unresolved), key=lambda item: (item[0].path, item[0].span, item[1])):
        facts.append(Fact("unresolved", _line(tree, place), reason))
    return Description("torch.library", facts, _HINT)


def _compared(tree: Tree) -> Iterator[Fact]:
    """Yield the number of fakes whose results are compared with those of kernels (REG212), and each other fake with the reason."""
    pairs = [pair for operator in tree.operators for pair in compared_pairs(operator)]
    unknown = [
        (pair.fake.place, pair.compared.reason)
        for pair in pairs
        if not pair.compared.taken and pair.compared.difference is None
    ]
    if pairs:
        count = f"{len(pairs) - len(unknown)} of {len(pairs)}"
        yield Fact("fakes", count, "the shapes and dtypes of their results are compared with those of kernels")
    for place, reason in sorted(set(unknown), key=lambda item: (item[0].path, item[0].span, item[1])):
        yield Fact("not compared", _line(tree, place), reason)


def _line(tree: Tree, place: Place) -> str:
    source = tree.project.source(place.path)
    return f"{place.path}:{source.position(place.span.start).line if source is not None else 1}"
