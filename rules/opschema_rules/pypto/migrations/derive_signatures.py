"""`derive-signatures`: derives kernels' signatures from the arguments with which the orchestration submits them."""

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
    """With `incomplete-only=true` only missing signatures and those of the wrong length are derived; others keep their
    directions.
    """

    incomplete_only: bool = False


def find(draft: Draft, options: DeriveSignatures) -> Iterator[Site]:
    """Yield the kernels with a missing or wrong signature."""
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
    """Fill in or correct the signatures of kernels from the tensors that the orchestration submits them with.

    Each task of a kernel shows its tensors and their directions: `add_input` is `IN`, `add_output` is `OUT`, `add_inout` is
    `INOUT`. A tensor added by `add_no_dep` may have any direction: what is declared for it stays, else it is `INOUT`, as
    pypto's code generator writes it. Scalars do not belong in a signature; those at its end are kept.

    Which kernel of a task declares which tensors depends on the tree's runtime, see the rule `signature-short`:

    - in a current runtime the longest signature of a task counts for all its kernels. It is corrected, and so are others of
      its length; if none has any, all of them get the entire list, and if one has it, those without a signature do not get
      one;
    - if entries name their slots (`arg_index`), each kernel's entries are corrected accordingly, and new entries get an
      `arg_index` too;
    - where signatures are counted together, their entries follow each other through the payload; where none has any, the
      first kernel of the task that runs in it once (the cube core's before those of vector cores) gets all.

    Signatures that are right for the tree's runtime are not changed, nor those of a task if none of its kernels is reported
    by `signature-missing`, `signature-short`, `signature-direction` or `scalar-position`: `opschema lint` lists beforehand
    what will be changed, and `--only` restricts it. A kernel is left unchanged, with a note that gives the reason, if its
    signature is missing or has the wrong length and

    - one of its tasks is not known, or the orchestration may submit it in unknown ways;
    - the branches before a task, or two of its tasks, add a tensor in different directions;
    - it is not known which of a task's kernels must declare which of its tensors.

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
