"""A tree's operators in ``opschema lint --show-settings``: the torch release they are judged for, and what is not known."""

from __future__ import annotations

from opschema_cli.lint.pack import Description, Fact
from opschema_rules.torchlib.model import Tree

_HINT = (
    "Nothing is said of what may be missing where a registration cannot be followed. If the tree is for another torch, set"
    ' `torch = "2.6"` in `[tool.opschema.torchlib]`.'
)


def describe_tree(tree: Tree) -> Description:
    """The version, the operators, and each registration that cannot be followed, with its place."""
    whole = sum(operator.complete for operator in tree.operators)
    facts = [
        Fact("torch", str(tree.release), tree.release.doubt or tree.release.source),
        Fact("operators", str(len(tree.operators)), f"{whole} of them with all that is registered for them"),
    ]
    for place, reason in sorted(set(tree.unresolved), key=lambda item: (item[0].path, item[0].span, item[1])):
        source = tree.project.source(place.path)
        line = source.position(place.span.start).line if source is not None else 1
        facts.append(Fact("unresolved", f"{place.path}:{line}", reason))
    return Description("torch.library", facts, _HINT)
