"""`derive-signatures`: kernels' signatures from what the orchestration submits them with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import CPP, Place
from opschema_cli.migrate.codemods.rewrite import Refused
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.python_tree import TreeError
from opschema_rules.pypto import proofs
from opschema_rules.pypto.claims import width
from opschema_rules.pypto.migrations.demands import Demand, Doubt, demands
from opschema_rules.pypto.migrations.enum_name import EnumNames
from opschema_rules.pypto.migrations.layout import edits_of, line_width
from opschema_rules.pypto.migrations.scopes import PROGRAMS
from opschema_rules.pypto.model import Kernel, Program


class DeriveSignatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """With `incomplete-only=true` only missing signatures and those that are too short or too long are derived; one that has
    its length keeps its directions.
    """

    incomplete_only: bool = False


def find(draft: Draft, options: DeriveSignatures) -> Iterator[Site]:
    """The kernels whose signature is missing or wrong."""
    for program in draft.loaded.subjects:
        for item in demands(program) if isinstance(program, Program) else ():
            complete = isinstance(item, Demand) and len(item.directions) == width(item.kernel)
            if not (options.incomplete_only and complete):
                kernel = item.kernel
                verb = "declare" if not width(kernel) else "correct"
                yield Site(
                    _place(kernel), f"{verb} the signature of {kernel.title}", (kernel.title,), _codes(item), item
                )


def _place(kernel: Kernel) -> Place:
    return kernel.at(kernel.signature.expr) if kernel.signature is not None else kernel.place


def _codes(item: Demand | Doubt) -> tuple[str, ...]:
    if not width(item.kernel):
        return ("PTO101",)
    complete = isinstance(item, Demand) and len(item.directions) == width(item.kernel)
    return ("PTO103",) if complete else ("PTO102",)


@migration(
    "derive-signatures",
    find=find,
    options=DeriveSignatures,
    scope=PROGRAMS,
    settled="every signature that can be derived is declared so",
    proof=proofs.RECORDED,
    needs=(CPP,),
)
def derive_signatures(draft: Draft, sites: Sequence[Site], options: DeriveSignatures) -> Iterator[Note]:
    """Fill in or correct the signatures of kernels from what the orchestration submits them with.

    Each task of a kernel tells which tensors it gets and how: `add_input` is `IN`, `add_output` is `OUT`, `add_inout` is `INOUT`.
    A tensor added by `add_no_dep` may have any direction: what is declared for it stays, else it is `INOUT`, as pypto's code
    generator writes it. Scalars have no place in a signature; those that stand at its end stay there.

    Which kernel of a task declares what depends on the tree's runtime, as the rule `signature-short` tells:

    - in a current runtime the longest signature of a task speaks for all its kernels. It is corrected, and so are others of
      its length; where none has any, all of them get the entire list, and where one has it, those without stay without;
    - where entries name their slots (`arg_index`), each kernel's are corrected as it names them, and what is new gets its
      `arg_index` too;
    - where signatures are counted together, their entries follow each other through the payload; where none has any, the
      first kernel of the task that runs in it once (the cube core's before those of vector cores) gets all.

    Signatures that are right for the tree's runtime are not touched, nor those of a task of whose kernels none is reported by
    `signature-missing`, `signature-short`, `signature-direction` or `scalar-position`: `opschema lint` lists before what is
    changed, wherever in the tree it is, and `--only` changes less. A kernel is left as it is, with a note that says why, where
    its signature is
    missing or has the wrong length and

    - a task of it is not known, or the orchestration may submit it in ways that are not;
    - the branches before a task, or two of its tasks, add a tensor in different ways;
    - nothing shows which of a task's kernels is to declare which of its tensors.

    Files that do not import the enum yet do so afterwards.

        opschema migrate derive-signatures
        opschema migrate derive-signatures -o incomplete-only=true --only tests/st --apply
    """
    names = EnumNames(draft, [item for item in draft.loaded.subjects if isinstance(item, Program)])
    longest = line_width(draft.project)
    for site in sites:
        item = site.subject
        if isinstance(item, Doubt):
            path, line = item.task.orchestration.source or "", _line(draft, item)
            yield Note(site.place, f"{site.title} by hand: {item.reason} ({path}:{line})", leaves_site=True)
        elif isinstance(item, Demand):
            try:
                edits = edits_of(item, names.of(item.kernel.program), longest)
            except (Refused, TreeError) as error:
                yield Note(site.place, f"{site.title} by hand: {error}", leaves_site=True)
                continue
            if edits:
                names.use(item.kernel.program)
                draft.edit(item.kernel.program.file.path, edits)
            else:
                signature = item.kernel.signature
                is_computed = signature is not None and signature.is_computed
                reason = "its signature is computed" if is_computed else "its dict takes no more fields"
                yield Note(site.place, f"{site.title} by hand: {reason}", leaves_site=True)


def _line(draft: Draft, item: Doubt) -> int:
    source = draft.project.source(item.task.orchestration.source or "")
    return source.position(item.task.submit.span.start).line if source is not None else 0
