"""`rename-api`: renames FlyDSL's names to those of a newer release."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import libcst as cst
import msgspec
from packaging.version import InvalidVersion, Version

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions, texts_with
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.api_renames import RENAMED, Renamed
from opschema_rules.flydsl.contract import RELEASES
from opschema_rules.flydsl.migrations.api_uses import ApiUse, api_uses, method_uses
from opschema_rules.flydsl.migrations.scopes import TREE
from opschema_rules.flydsl.migrations.trees import tree_of
from opschema_rules.flydsl.model import FlyTree


class RenameApi(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``to`` is the target release of FlyDSL, such as `0.4.2`; default: the newest known one."""

    to: str = ""


def find(draft: Draft, options: RenameApi) -> Iterator[Site]:
    """Yield the uses of names that were renamed by then, outside FlyDSL's own files."""
    rows = _rows(options)
    tree = tree_of(draft)
    if tree is None:
        return
    own = set(tree.package.paths)
    for file in tree.bodies.files:
        if file.path in own:
            continue
        found = list(api_uses(tree, file, rows))
        for row in rows:
            if row.is_method and row.word in file.source.text:
                found += method_uses(draft.tree(file.path), file.path, row)
        for use in found:
            yield Site(use.place, f"rename `{use.row.word}` to `{use.row.new_word}`", (), (), use)


def _rows(options: RenameApi) -> list[Renamed]:
    """Return the renames up to the release.

    Raises:
        OpschemaError: it is none.
    """
    try:
        release = Version(options.to) if options.to else max(RELEASES)
    except InvalidVersion:
        raise OpschemaError(f"-o to={options.to}: a release is expected, such as {max(RELEASES)}") from None
    return [row for row in RENAMED if row.by(release)]


@migration(
    "rename-api",
    find=find,
    options=RenameApi,
    scope=TREE,
    settled="no name that was renamed is used",
    proof=proofs.TRACED,
)
def rename_api(draft: Draft, sites: Sequence[Site], options: RenameApi) -> Iterator[Note]:
    """Rename FlyDSL names that have changed, such as `from_dlpack` of a torch tensor to `from_torch_tensor`.

    The names are those of a small table with the release that brought each, `opschema_rules/flydsl/api_renames.py`; `to` is
    the target release. Uses are found through imports, whatever their local names; methods that FlyDSL looks up, such as
    `__fly_values__`, wherever they are defined, read or written as a string. FlyDSL's own files stay unchanged.

    A use is left unchanged, with a note, if the new name means something other than the old one in the FlyDSL that the code
    is written for, if it is bound to something else in the file, or if the code around chooses between both names or
    releases. Since 0.2.2 `from_dlpack` accepts any tensor that
    supports DLPack: from then on it is renamed only if its argument is certainly a torch tensor.

    Notes list differences in detail, and mentions in comments, docstrings and other texts.

        opschema migrate rename-api -o to=0.2.2
    """
    rows = _rows(options)
    tree = tree_of(draft)
    assert tree is not None
    bench = Workbench(draft)
    done: list[ApiUse] = []
    private: list[tuple[Place, str]] = []
    for site in sites:
        assert isinstance(site.subject, ApiUse)
        try:
            _check(tree, site.subject, rows)
            with bench.atomic(), bench.on(site.place.path) as rewrite:
                _rename(rewrite, site.subject)
                private += _private(rewrite.tree, site.subject)
            done.append(site.subject)
        except LeftAlone as found:
            yield from left(site, found)
    bench.commit()
    since = draft.revision
    draft.settle()
    for use in done:
        if use.row.remark and len(use.row.eras) == len(_ALL):
            yield Note(draft.forward(use.place, since), f"`{use.row.new_word}` differs: {use.row.remark}")
    for place, name in private:
        yield Note(draft.forward(place, since), f"`{name}` is private: what has the new name may not have it")
    yield from _mentions(draft, done, set(tree.package.paths))


_ALL = Renamed("", "", "0").eras


def _check(tree: FlyTree, use: ApiUse, rows: Sequence[Renamed]) -> None:
    """Check that the new name means here what the old one means.

    Raises:
        LeftAlone: it may not.
    """
    row = use.row
    if use.chosen:
        raise LeftAlone(use.place, f"the code around chooses between `{row.word}` and `{row.new_word}`")
    further = next((item for item in rows if item.old == row.new and not item.same), None)
    if not row.same or further is not None:
        raise LeftAlone(use.place, f"`{(further or row).new_word}` is used in another way: {(further or row).remark}")
    allowed = set(row.eras) | ({_CURRENT} if row.tensors else set())
    if row.eras != _ALL and not tree.contract.surely(*allowed):
        known = tree.contract.name if tree.contract.source else "any"
        raise LeftAlone(use.place, f"this may be code for FlyDSL of the era `{known}`: {row.remark}")


_CURRENT = max(_ALL)


def _rename(rewrite: Rewrite, use: ApiUse) -> None:
    """Write the new name.

    Raises:
        LeftAlone: the file binds it to something else.
    """
    tree, new = rewrite.tree, use.row.new_word
    if use.imported is None or use.imported.name != use.imported.attr:
        rewrite.replace(use.word, new)
        return
    statement = tree.statement(tree.find(use.word, cst.Name))
    bound = [node for node in tree.names(new) if tree.enclosing(node, cst.ImportAlias) is not None]
    beside = [node for node in bound if tree.statement(node) is statement]
    taken = [node for node in tree.names(new) if not beside or node not in (*beside, *_reads(tree, new))]
    if taken:
        raise LeftAlone(Place(use.path, tree.span(taken[0])), f"`{new}` is bound to something else here")
    if beside and isinstance(statement, cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
        names = list(statement.names)
        rewrite.drop(names, next(at for at, item in enumerate(names) if tree.span(item).start == use.word.start))
    else:
        rewrite.replace(use.word, new)
    for span in use.reads:
        rewrite.replace(span, new)


def _private(tree: PythonTree, use: ApiUse) -> Iterator[tuple[Place, str]]:
    """Yield the private attributes that are read from the renamed object, or from the result of calling it."""
    names = use.reads if use.imported is not None else () if use.row.is_method else (use.word,)
    for span in names:
        node: cst.CSTNode | None = tree.find(span, cst.Name)
        child, above = node, tree.parent(node) if node is not None else None
        while isinstance(above, cst.Call | cst.Attribute) and child in (getattr(above, "func", None), *_parts(above)):
            if isinstance(above, cst.Attribute) and above.attr is not child and above.attr.value.startswith("_"):
                if not above.attr.value.endswith("__"):
                    yield Place(use.path, tree.span(above.attr)), above.attr.value
                break
            child, above = above, tree.parent(above)


def _parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    return iter((node.value, node.attr) if isinstance(node, cst.Attribute) else ())


def _reads(tree: PythonTree, name: str) -> list[cst.Name]:
    """Return the reads of a name, without its bindings and declarations."""
    binders = (cst.AssignTarget, cst.Param, cst.FunctionDef, cst.ClassDef, cst.ImportAlias, cst.NameItem, cst.AsName)
    return [node for node in tree.names(name) if not isinstance(tree.parent(node), binders)]


def _mentions(draft: Draft, done: Sequence[ApiUse], own: Collection[str]) -> Iterator[Note]:
    """Remaining mentions of old names: in texts of the changed files; for removed names, in all other files too."""
    changed = {use.path for use in done}
    dropped = {use.row.word for use in done if use.row.removed}
    for word in sorted({use.row.word for use in done}):
        paths = [source.path for source in texts_with(draft.project, {word}) if source.path not in own]
        paths = [path for path in paths if path in changed or word in dropped]
        for found in mentions(draft.project, [word], paths):
            if not is_python(found.place.path) or not _is_code(draft, found.place):
                yield Note(found.place, f"`{word}` is still mentioned here")


def _is_code(draft: Draft, place: Place) -> bool:
    """Whether the name at a place is code and not text."""
    try:
        draft.tree(place.path).find(place.span, cst.Name)
    except (LookupError, TreeError):
        return False
    return True
