"""Uses of a module constant in kernels, and whether it could be passed at run time instead."""

from __future__ import annotations

from opschema_cli.migrate.codemods.scopes import is_write, module_uses
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.program import Folded
from opschema_cli.source.text import Place, Span
from opschema_rules.flydsl.migrations.constants import MOST, Constant, derived, uses
from opschema_rules.flydsl.migrations.references import References
from opschema_rules.flydsl.migrations.run_time import RunTime
from opschema_rules.flydsl.model import Traced


class Baked:
    """A constant, and the traced functions of its file that read it."""

    def __init__(
        self, bench: Workbench, references: References, constant: Constant, readers: tuple[Traced, ...]
    ) -> None:
        self.bench = bench
        self.references = references
        self.tree = references.tree
        self.constant = constant
        self.name = constant.name
        self.readers = readers

    def check_reads(self) -> None:
        """Check that only the readers read the constant in code that a kernel may run.

        Raises:
            LeftAlone: another module's function, a helper or what defines a reader reads it too.
        """
        with self.bench.on(self.constant.path) as rewrite:
            uses(rewrite, self.constant)
        for reference in self.references.of_constant(self.constant.path, self.constant.assign):
            through = self.references.traced_through(reference.body)
            if through is not None and self.tree.around(reference.body) is None:
                helper = next(item.function for item in reference.body.outward() if item.function is not None)
                raise LeftAlone(reference.place, f"`{helper.name}()` reads it, and `{through.title}()` runs that")
            if through is not None and through not in self.readers:
                reason = f"`{self.name}` is read here too, which `{through.title}()` runs when it is traced"
                raise LeftAlone(reference.place, reason)
        for span in self._reads(self.name):
            for traced in self.readers:
                start, end = traced.function.outer
                if start <= span.start < end and self._around(span) is not traced:
                    raise LeftAlone(Place(self.constant.path, span), f"`{traced.name}()` reads it where it is defined")

    def check_derived(self) -> None:
        """Check that no kernel reads a value computed from the constant.

        Raises:
            LeftAlone: one does.
        """
        path, file = self.constant.path, self.constant.file
        with self.bench.on(path) as rewrite:
            found = list(derived(self.tree, rewrite.tree, self.constant))
        for assign in found:
            own = [(self.tree.bodies.at(file, span.start), span) for span in self._reads(assign.target)]
            others = self.references.of_constant(path, assign)
            reads = [*own, *((item.body, item.use.span) for item in others if item.body.file.path != path)]
            for body, span in reads:
                through = self.references.traced_through(body)
                if through is not None:
                    reason = f"`{assign.target}` is computed from `{self.name}`, and `{through.title}()` reads it"
                    raise LeftAlone(body.at(span), reason)

    def check_flow(self) -> list[Span]:
        """Check what the readers do with the constant. Return the places of the byte counts that it is part of.

        Raises:
            LeftAlone: something needs it at compile time, is not known to do without, or would wrap.
        """
        with self.bench.on(self.constant.path) as rewrite:
            flow = RunTime(self.tree, self.constant.file, rewrite)
            read = uses(rewrite, self.constant)
            flow.check(item for item in read if self._around(rewrite.tree.span(item)) is not None)
        counts = sorted(set(flow.bytes))
        for item in self.tree.descriptors:
            count = item.num_records
            if count is not None and item.body.file is self.constant.file and count.span in counts:
                folded = self.tree.evaluator.fold(item.body, count)
                if isinstance(folded, Folded) and isinstance(folded.value, int) and folded.value > MOST:
                    reason = f"it is {folded.value}, more than 32 bits hold: compute it from `fx.Int64({self.name})`"
                    raise LeftAlone(item.body.at(count), reason)
        return counts

    def _reads(self, name: str) -> list[Span]:
        """Return the reads of a module variable in the constant's file."""
        with self.bench.on(self.constant.path) as rewrite:
            nodes = rewrite.tree
            return [nodes.span(node) for node in module_uses(nodes, name) if not is_write(nodes, node)]

    def _around(self, span: Span) -> Traced | None:
        return self.tree.around(self.tree.bodies.at(self.constant.file, span.start))
