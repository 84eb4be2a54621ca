"""Reads descriptions of programs: ``kernel_config.py``, classes with ``CALLABLE``, and code that builds a callable."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program as Modules
from opschema_cli.source.python import Expr
from opschema_rules.pypto.built_programs import BUILDS, BuiltPrograms
from opschema_rules.pypto.description_changes import may_change
from opschema_rules.pypto.fixed_lists import is_fixed
from opschema_rules.pypto.model import Contract, Kernel, OrchestrationPart, Program, Signature
from opschema_rules.pypto.records import Record, fields_of, record_of, records_of
from opschema_rules.pypto.scenes import read_scene
from opschema_rules.pypto.signature_reading import Signatures
from opschema_rules.pypto.source_paths import path_of
from opschema_rules.pypto.templates import ENDING, template_of

_ADDED = re.compile(r"""\b(?:KERNELS|incores["']\])\s*(?:\.\s*(?:append|extend|insert|update)\b|\+=)""")
_KERNEL = ("source", "core_type")


def read_programs(project: Project, paths: Iterable[str], contract: Contract) -> list[Program]:
    """Return the programs that some Python files describe."""
    known = list(paths)
    bodies = Bodies(Modules(project.workspace.files, project.python, known), known)
    evaluator = TreeEvaluator(bodies)
    signatures = Signatures(bodies, evaluator)
    reader = _Reader(project, bodies, evaluator, contract, signatures)
    built = BuiltPrograms(project, bodies, evaluator, contract, signatures)
    found: dict[tuple[str, int], Program] = {}
    for file in reader.bodies.files:
        builds = BUILDS in file.source.text
        for body in reader.bodies.of(file):
            for program in (*reader.programs(body), *(built.of(body) if builds else ())):
                found.setdefault((program.file.path, program.span.start), program)
    return list(found.values())


class _Reader(msgspec.Struct, frozen=True):
    project: Project
    bodies: Bodies
    evaluator: Evaluator
    contract: Contract
    signatures: Signatures

    def programs(self, body: Body) -> Iterator[Program]:
        """Yield the programs that one body describes."""
        if body.function is not None:
            return
        if body.cls is None:
            yield from self._of_module(body)
        for assign in body.scope.assigns:
            if assign.target == "CALLABLE" and assign.value is not None:
                name = body.cls.name if body.cls is not None else "CALLABLE"
                value = self._followed(body, assign.value)
                for expr in (*value.walk(), *self._shared(body, value)):
                    fields = fields_of(expr)
                    if "incores" in fields:
                        program = self._program(body, "class", name, expr, fields, ("orchestration", "incores"))
                        program.listed = expr is not value
                        yield program

    def _of_module(self, body: Body) -> Iterator[Program]:
        found = {item.target: item for item in body.scope.assigns if item.target in ("KERNELS", "ORCHESTRATION")}
        kernels = found.get("KERNELS")
        if kernels is None or kernels.value is None or not all(item.sure for item in found.values()):
            return
        fields = {
            item.target: (Expr("name", item.start, item.end), item.value) for item in found.values() if item.value
        }
        program = self._program(body, "module", "KERNELS", kernels.value, fields, ("ORCHESTRATION", "KERNELS"))
        runtime = next((item.value for item in body.scope.assigns if item.target == "RUNTIME_CONFIG"), None)
        named = fields_of(runtime).get("runtime") if runtime is not None else None
        if named is not None and isinstance(named[1].value, str):
            program.runtime = named[1].value
        yield program

    def _shared(self, body: Body, value: Expr) -> Iterator[Expr]:
        """Yield the parts of a list of callables that several classes of a file share."""
        listed = fields_of(value).get("callables")
        if listed is not None and listed[1].kind == "name":
            yield from self._followed(body, listed[1]).walk()

    def _followed(self, body: Body, value: Expr) -> Expr:
        """Return the expression of the same file that a name refers to."""
        found = self.evaluator.origin(body, value)
        return found.expr if found.expr is not None and found.frame.body.file is body.file else value

    def _program(
        self,
        body: Body,
        form: Literal["module", "class"],
        name: str,
        expr: Expr,
        fields: Mapping[str, tuple[Expr, Expr]],
        keys: tuple[str, str],
    ) -> Program:
        base = body.file.path.rpartition("/")[0]
        program = Program(self.project, body.file, form, name, expr.span, base, self.contract)
        program.runtime, program.owner = _runtime_of(body), body.cls
        program.scene = read_scene(body.file, body.cls) if body.cls is not None else None
        records, is_complete = records_of(self.evaluator, body, fields[keys[1]][1])
        known = [item for item in records if "func_id" in item.fields]
        program.kernels = [self._kernel(body, program, item) for item in known]
        program.unnumbered = [self._kernel(body, program, item) for item in records if _is_unnumbered(item)]
        identified = all(item.func_id is not None for item in program.kernels)
        complete = is_complete and identified and len(known) == len(records)
        program.whole = complete and not _adds_kernels(body.file.source.text) and not may_change(body.file)
        if keys[0] in fields:
            program.orchestration = self._orchestration(body, program, fields[keys[0]][1])
        return program

    def _kernel(self, body: Body, program: Program, item: Record) -> Kernel:
        number = item.fields["func_id"][1].value if "func_id" in item.fields else None
        func_id = number if isinstance(number, int) and not isinstance(number, bool) else None
        (source, missing), signature = self._source(body, item.fields), self._signature(body, item)
        written = item.computed is None
        kernel = Kernel(program, item.expr, item.fields, source, signature, func_id, missing=missing, written=written)
        kernel.indexes = self.signatures.indexes(body, item)
        field = item.fields["arg_index"][1] if written and "arg_index" in item.fields else None
        kernel.fixed = field is not None and is_fixed(self.bodies.of(body.file), field)
        return kernel

    def _orchestration(self, body: Body, program: Program, expr: Expr) -> OrchestrationPart | None:
        item = record_of(self.evaluator, body, expr)
        if item is None or "source" not in item.fields:
            return None
        fields, written = item.fields, item.computed is None
        function = fields["function_name"][1].value if "function_name" in fields else ""
        (source, missing), signature = self._source(body, fields), self._signature(body, item)
        name = function if isinstance(function, str) else ""
        return OrchestrationPart(program, expr, fields, source, signature, name, missing=missing, written=written)

    def _signature(self, body: Body, item: Record) -> Signature | None:
        """Return the signature of a dict; None if it has none."""
        if may_change(body.file):
            return Signature(item.expr, None, "code of the file may change it")
        return self.signatures.of_record(body, item)

    # -- sources -------------------------------------------------------------------------------------------------------

    def _source(self, body: Body, fields: Mapping[str, tuple[Expr, Expr]]) -> tuple[str | None, str]:
        """Return the workspace path of a source, None if it is unknown or missing; and the path of a missing one."""
        if "source" not in fields:
            return None, ""
        expr = fields["source"][1]
        path = path_of(self.evaluator, self.evaluator.frames.at(body), expr)
        if path is None or path.startswith("/"):
            return None, ""
        full = posixpath.normpath(posixpath.join(body.file.path.rpartition("/")[0], path))
        if full.startswith(".."):
            return None, ""
        if self.project.workspace.is_file(full):
            return full, ""
        if body.file.path.endswith(ENDING):
            return template_of(self.project.workspace, body.file.path, full), ""
        anchored = path.startswith("./") and expr.kind != "const" and "__file__" in body.file.source.text
        return None, full if anchored or _is_scene(body) else ""


def _is_unnumbered(record: Record) -> bool:
    """Whether a dict describes a kernel without a number."""
    return record.computed is None and "func_id" not in record.fields and not record.fields.keys().isdisjoint(_KERNEL)


@lru_cache(maxsize=16)
def _adds_kernels(text: str) -> bool:
    is_named = "KERNELS" in text or 'incores"]' in text or "incores']" in text
    return is_named and _ADDED.search(text) is not None


def _is_scene(body: Body) -> bool:
    """Whether a class is a scene test of its own, in its own folder: one below ``@scene_test(...)``."""
    decorators = body.cls.decorators if body.cls is not None else ()
    return any((item.callee or item.text).rpartition(".")[2] == "scene_test" for item in decorators)


def _runtime_of(body: Body) -> str:
    """Return the runtime in a scene's decorator: ``@scene_test(level=2, runtime="host_build_graph")``."""
    for decorator in body.cls.decorators if body.cls is not None else ():
        named = decorator.keyword("runtime")
        if named is not None and isinstance(named.value, str):
            return named.value
    return ""
