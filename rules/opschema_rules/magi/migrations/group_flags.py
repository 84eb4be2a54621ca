"""`group-flags`: parameters of an op into one frozen dataclass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.resolution import FunctionRef, Resolution, Unresolved
from opschema_cli.source.text import Place
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.magi.given import Lambda
from opschema_rules.magi.migrations.group_calls import GroupedCalls
from opschema_rules.magi.migrations.group_functions import group_backward, group_meta, group_op, group_setup, known
from opschema_rules.magi.migrations.group_strings import NamedInStrings
from opschema_rules.magi.migrations.grouping import Grouping, is_name
from opschema_rules.magi.migrations.scopes import OPS
from opschema_rules.magi.migrations.trees import meaning, meant_ops, naming, tree_of
from opschema_rules.magi.model import MagiOp, MagiTree
from opschema_rules.magi.proofs import PROGRAMS
from opschema_rules.magi.signature import Branch


class GroupFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``op`` is the op's qualified name or its function's, ``flags`` lists the parameters, ``name`` is the dataclass,
    ``parameter`` the op's name for it.
    """

    op: str
    flags: tuple[str, ...]
    name: str
    parameter: str = "cfg"


def find(draft: Draft, options: GroupFlags) -> Iterator[Site]:
    """The op that takes the parameters one by one."""
    tree = tree_of(draft)
    wrong = next((name for name in (options.name, options.parameter) if not is_name(name)), None)
    if wrong is not None:
        raise OptionError(f"`{wrong}` is not a name")
    op = _meant(tree, options.op) if tree is not None else None
    if op is None or tree is None:
        return
    missing = [name for name in options.flags if all(item.name != name for item in op.params)]
    if not missing and options.flags:
        if tree.contract.surely("plain"):
            raise OptionError(f"the decorator of this tree takes no dataclasses: {tree.contract.source}")
        flags = quoted(options.flags)
        group = Grouping(op, frozenset(options.flags), options.name, options.parameter)
        yield Site(op.place, f"group {flags} of `{op.title}` into `{options.name}`", (op.title,), (), group)
    elif not _is_grouped(op, options) and not draft.changes:
        raise OptionError(f"`{op.title}` has no parameter `{missing[0]}`" if missing else "`flags` names no parameter")


def _meant(tree: MagiTree, name: str) -> MagiOp | None:
    ops = meant_ops(tree)
    found = [op for op in ops if name == op.name] or [op for op in ops if name == op.function_name]
    if len(found) > 1:
        raise OptionError(f"there are {len(found)} ops `{name}`; give the qualified name of one")
    if not found:
        names = sorted({text for op in ops for text in (op.title, op.function_name)})
        raise OptionError(f"there is no op `{name}`" + did_you_mean(near_name(name, names)))
    return found[0]


def _is_grouped(op: MagiOp, options: GroupFlags) -> bool:
    """Whether the op takes such a dataclass already."""
    node = op.lowering.node(options.parameter)
    named = isinstance(node, Branch) and node.dataclass.name == options.name
    fields = {child.name for child in node.children} if isinstance(node, Branch) else set()
    return named and bool(options.flags) and fields >= set(options.flags)


@migration(
    "group-flags",
    find=find,
    options=GroupFlags,
    scope=OPS,
    settled="no op takes these parameters one by one",
    proof=PROGRAMS,
)
def group_flags(draft: Draft, sites: Sequence[Site], options: GroupFlags) -> Iterator[Note]:
    """Group parameters of an op into one frozen dataclass.

    The dataclass is written above the op, its fields with the parameters' types, defaults and comments, those with a default last.
    The op takes it in the place of the first of them, and reads `cfg.flag` where it read `flag`. So do its meta function, which is
    called by name, and its setup function, whose `inputs` are one for each parameter of the op; its backward function returns one
    gradient less for each flag but one. Calls pass `Cfg(flag=...)`, and import it where they import the op; calls of
    `torch.ops.ns.op` pass `cfg__flag`. If all flags have defaults, the dataclass is the parameter's default.

    Either all of that is done, or nothing, with a note at the place that prevents it:

    - a field with a default would come before a lowered parameter without one (MAG312);
    - a parameter is a tensor, is assigned in the op, or has a default that a schema cannot hold;
    - a call unpacks `*` or `**`, or would evaluate its arguments in another order; the op is used other than by a call
      (passed on, stored in a table), is looked up by a string (`getattr(torch.ops.ns, "op")`), or calls itself;
    - a meta, setup or backward function is used elsewhere too, is not known, or does not do with its parameters, its inputs and its
      gradients what can be followed: names as the op's, one unpacking or constant places, one tuple with `None` for each flag.

    Notes list other mentions of the op's qualified name, lookups by its name in something that is not known, and those through
    `attrgetter`, `methodcaller`, `globals()`, `vars(ops).get(...)`, `setattr` and the like.

        opschema migrate group-flags -o op=kit::attention -o flags=causal,scale,window -o name=AttentionFlags -o parameter=flags
    """
    tree = tree_of(draft)
    assert tree is not None
    workbench = Workbench(draft)
    for site in sites:
        assert isinstance(site.subject, Grouping)
        try:
            with workbench.atomic():
                _group(workbench, site.subject)
                workbench.check()
        except LeftAlone as found:
            yield from left(site, found)
        else:
            yield from NamedInStrings(workbench, site.subject).notes()
    workbench.commit()


def _group(workbench: Workbench, group: Grouping) -> None:
    op = group.op
    group.refuse()
    meta = op.meta
    if isinstance(meta, Unresolved):
        raise LeftAlone(op.place, f"its `infer_output_meta_fn` is not known: {meta.reason}")
    setup, backward = known(op.setup_context, group, "setup_context_fn"), known(op.backward, group, "backward_fn")
    functions = [item for item in (op.body, meta.function, setup) if isinstance(item, Body)]
    for body in [*functions[1:], *([backward] if backward is not None else [])]:
        _refuse_shared(workbench, group, body)
    group_op(workbench, group)
    if isinstance(meta.function, Body | Lambda):
        group_meta(workbench, group, meta.function)
    if setup is not None:
        group_setup(workbench, group, setup)
    if backward is not None:
        group_backward(workbench, group, backward)
    NamedInStrings(workbench, group).refuse()
    GroupedCalls(workbench, group, functions).rewrite()


def _refuse_shared(workbench: Workbench, group: Grouping, body: Body) -> None:
    """A function that comes with the op may not be used for anything else."""
    function = body.function
    assert function is not None
    call = group.op.registration.call

    def is_it(found: Resolution) -> bool:
        return isinstance(found, FunctionRef) and found.function is function

    for file in naming(workbench.draft, group.op.tree.bodies, function.name, is_it):
        tree = workbench.tree(file.path)
        for node in [*tree.names(function.name), *tree.attributes(function.name)]:
            start = tree.span(node).start
            ours = file is group.op.registration.outer.file and call.start <= start < call.end
            other = not ours and start != function.start and tree.enclosing(node, cst.ImportAlias) is None
            if other and is_it(meaning(group.op.tree.bodies, file, tree, node)):
                reason = f"`{function.name}()`, which comes with the op, is used here too"
                raise LeftAlone(Place(file.path, tree.span(node)), reason)
