"""Functions of ``torch.library`` in the release of torch that a tree is for."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.requirements import Version, dotted
from opschema_cli.source.guarded_code import asked_attributes, may_be_skipped
from opschema_cli.source.python import Expr
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.aten.torchgen_table import known_releases, torchgen_of
from opschema_rules.torchlib.api_table import functions_of, parameters, releases_with, takes
from opschema_rules.torchlib.model import NEWEST, ApiCall, Definition, Operator, Tree


@rule("REG122", "unavailable-function")
def unavailable_function(tree: Tree) -> Iterator[Diagnostic]:
    """A function of `torch.library`, an argument of one, or a tag that the tree's release of torch does not have.

    The release is the one that `--torch` names, else the newest that the tree's requirements admit, else one that its CI or
    lock files pin. The call raises `AttributeError` or `TypeError` when the module is imported. A call under a condition, such
    as a comparison of versions, or behind one that leaves the module, is not reported; nor is one whose error is expected.

    Bad:

    ```text requirements.txt
    torch==2.6.0
    ```

    ```python
    import torch


    @torch.library.custom_op("demo::twice", mutates_args=(), tags=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x


    torch.library.register_autocast("demo::twice", "cuda", torch.float16)
    ```

    Good:

    ```text requirements.txt
    torch==2.8.0
    ```

    ```python
    import torch


    @torch.library.custom_op("demo::twice", mutates_args=(), tags=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x


    torch.library.register_autocast("demo::twice", "cuda", torch.float16)
    ```
    """
    known = functions_of(tree.torch) if not tree.release_doubt else {}
    for call in tree.api_calls if known else ():
        found = list(_unavailable(tree, call, known.get(call.name)))
        if found and not _is_doubtful(call):
            yield from found
    for operator in tree.operators if known else ():
        yield from _missing_tags(tree, operator)


def _unavailable(tree: Tree, call: ApiCall, text: str | None) -> Iterator[Diagnostic]:
    """Yield findings on parts of a call that the release does not have; ``text`` holds the parameters of its function."""
    if text is None:
        yield from _missing(tree, call)
        return
    for name, place in call.keywords:
        if not takes(text, name):
            yield _refused(tree, call, text, name, place)


def _is_doubtful(call: ApiCall) -> bool:
    """Whether a call may be for other releases, or for a function that the tree itself adds to torch."""
    name = call.name.rpartition(".")[2]
    asked = asked_attributes(next(reversed([*call.body.outward()])))
    added = any(item.name == name and item.is_set for item in asked)
    return added or may_be_skipped(call.body, call.place.span.start)


def _missing(tree: Tree, call: ApiCall) -> Iterator[Diagnostic]:
    releases = releases_with(call.name)
    if releases:
        yield Diagnostic(f"{_torch(tree)} has no `{call.name}`; {_since(tree, releases)}", call.place)


def _missing_tags(tree: Tree, operator: Operator) -> Iterator[Diagnostic]:
    """Tags in the definition of an operator that only other releases have."""
    definition = operator.definition
    for tag, expr in _written_tags(definition) if not definition.conditional else ():
        having = [version for version in known_releases() if tag in (torchgen_of(version).tags or ())]
        body = definition.body if having and tree.torch not in having else None
        if body is not None and not may_be_skipped(body, expr.start):
            message = f"{_torch(tree)} has no `torch.Tag.{tag}`; {_since(tree, having)}"
            yield Diagnostic(message, body.at(expr), ops=(operator.title,))


def _written_tags(definition: Definition) -> Iterator[tuple[str, Expr]]:
    """The tags that are written in the call itself; a variable may hold those that the release has."""
    given = definition.call.keyword("tags") if definition.call is not None else None
    for item in (given.elements or (given,)) if given is not None else ():
        word = item.text.rpartition(".")[2] if item.kind in ("name", "attribute") else ""
        if ".Tag." in f".{item.text}" and word in (definition.tags or ()):
            yield word, item


def _refused(tree: Tree, call: ApiCall, text: str, name: str, place: Place) -> Diagnostic:
    releases = releases_with(call.name, name)
    hint = f"; {_since(tree, releases)}" if releases else did_you_mean(near_name(name, sorted(parameters(text) or ())))
    return Diagnostic(f"`{call.name}` of {_torch(tree)} takes no keyword `{name}`{hint}", place)


def _torch(tree: Tree) -> str:
    """The release with the file or option that names it."""
    source = tree.release.source
    return f"torch {tree.release}" if source == NEWEST else f"torch {tree.release} ({source})"


def _since(tree: Tree, releases: list[Version]) -> str:
    if releases[0] > tree.torch:
        return f"torch {dotted(releases[0])} is the first that does"
    return f"torch {dotted(max(item for item in releases if item < tree.torch))} is the last that does"
