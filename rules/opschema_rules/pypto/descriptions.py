"""Reads descriptions of programs: ``kernel_config.py`` and classes with ``CALLABLE``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.evaluation.values import BoundArgument, EnumMember, ExternalName, Value
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program as Modules
from opschema_cli.source.python import Expr
from opschema_rules.pypto.fixed_lists import is_fixed
from opschema_rules.pypto.model import Contract, Declared, Direction, Kernel, OrchestrationPart, Program, Signature
from opschema_rules.pypto.records import Record, bound, fields_of, record_of, records_of
from opschema_rules.pypto.scenes import read_scene
from opschema_rules.pypto.templates import ENDING, template_of

_ENUM = "ArgDirection"
_ADDED = re.compile(r"""\b(?:KERNELS|incores["']\])\s*(?:\.\s*(?:append|extend|insert|update)\b|\+=)""")
_SET = re.compile(
    r"""\[\s*["'](?:signature|arg_index)["']\s*\]\s*(?:\+=|=(?!=)|\.\s*(?:append|extend|insert|pop)\b)|\bsetdefault\(\s*["'](?:signature|arg_index)["']"""
)
_KERNEL = ("source", "core_type")
_DIRECTIONS = {item.value: item for item in Direction}


def read_programs(project: Project, paths: Iterable[str], contract: Contract) -> list[Program]:
    """The programs that some Python files describe."""
    known = list(paths)
    bodies = Bodies(Modules(project.workspace.files, project.python, known), known)
    reader = _Reader(project, bodies, TreeEvaluator(bodies), contract)
    found: dict[tuple[str, int], Program] = {}
    for file in reader.bodies.files:
        for body in reader.bodies.of(file):
            for program in reader.programs(body):
                found.setdefault((program.file.path, program.span.start), program)
    return list(found.values())


class _Reader(msgspec.Struct, frozen=True):
    project: Project
    bodies: Bodies
    evaluator: Evaluator
    contract: Contract

    def programs(self, body: Body) -> Iterator[Program]:
        """The programs that one body describes."""
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
        """The parts of a list of callables that several classes of a file have."""
        listed = fields_of(value).get("callables")
        if listed is not None and listed[1].kind == "name":
            yield from self._followed(body, listed[1]).walk()

    def _followed(self, body: Body, value: Expr) -> Expr:
        """The expression of the same file that a name stands for."""
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
        program.whole = complete and not _adds_kernels(body.file.source.text)
        if keys[0] in fields:
            program.orchestration = self._orchestration(body, program, fields[keys[0]][1])
        return program

    def _kernel(self, body: Body, program: Program, item: Record) -> Kernel:
        number = item.fields["func_id"][1].value if "func_id" in item.fields else None
        func_id = number if isinstance(number, int) and not isinstance(number, bool) else None
        (source, missing), signature = self._source(body, item.fields), self._signature(body, item)
        written = item.computed is None
        kernel = Kernel(program, item.expr, item.fields, source, signature, func_id, missing=missing, written=written)
        kernel.indexes = self._indexes(body, item)
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

    # -- sources -------------------------------------------------------------------------------------------------------

    def _source(self, body: Body, fields: Mapping[str, tuple[Expr, Expr]]) -> tuple[str | None, str]:
        """The workspace path of a source, None when it is not known or not there; and that of one that is not there."""
        if "source" not in fields:
            return None, ""
        expr = fields["source"][1]
        path = self._path(body, expr, MAX_CALLS)
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

    def _path(self, body: Body, expr: Expr, hops: int) -> str | None:
        """A path relative to the file's own folder, as strings, ``str(...)`` and ``pathlib`` write it."""
        if hops < 0:
            return None
        if expr.kind == "call" and expr.callee in ("str", "Path", "pathlib.Path", "os.fspath") and len(expr.items) == 2:
            return "__file__" if expr.items[1].text == "__file__" else self._path(body, expr.items[1], hops)
        if expr.kind == "call" and expr.callee.endswith("os.path.join") and not any(expr.keywords):
            return _joined(self._path(body, item, hops) for item in expr.items[1:])
        if expr.kind == "binary" and expr.text == "/":
            return _joined(self._path(body, item, hops) for item in expr.items)
        if expr.kind == "name" and expr.text == "__file__":
            return "__file__"
        above = self._above(body, expr, hops)
        if above is not None:
            return above
        if expr.kind == "name" and "." not in expr.text:
            values = (body.binder(expr.text) or self.bodies.module(body.file)).values(expr.text)
            if values is not None and len(values) == 1 and values[0].kind != "const":
                return self._path(self.bodies.module(body.file), values[0], hops - 1)
        found = self.evaluator.texts(body, expr)
        return min(found) if found is not None and len(found) == 1 else None

    def _above(self, body: Body, expr: Expr, hops: int) -> str | None:
        """``Path(__file__).resolve().parent``, and what is written of it in other ways."""
        if expr.kind == "call" and len(expr.items) == 1 and expr.items[0].kind == "attribute":
            attribute = expr.items[0]
            return self._path(body, attribute.items[0], hops) if attribute.text in ("resolve", "absolute") else None
        if expr.kind == "attribute" and expr.text == "parent":
            inner = self._path(body, expr.items[0], hops)
            return None if inner is None else "." if inner == "__file__" else posixpath.join(inner, "..")
        if expr.kind == "name" and expr.text.endswith(".parent"):
            inner = self._path(body, Expr("name", expr.start, expr.end, expr.text.removesuffix(".parent")), hops)
            return None if inner is None else "." if inner == "__file__" else posixpath.join(inner, "..")
        return None

    # -- signatures ----------------------------------------------------------------------------------------------------

    def _signature(self, body: Body, record: Record) -> Signature | None:
        fields = record.fields
        if _sets_signatures(body.file.source.text):
            return Signature(next(iter(fields.values()))[1], None, "statements of the file set it")
        if record.computed is not None:
            return self._of_computed(record, record.computed)
        if "signature" not in fields:
            return None
        expr = fields["signature"][1]
        slots = [self._declared(body, item) for item in expr.items] if expr.kind in ("list", "tuple") else [None]
        known = tuple(slot for slot in slots if slot is not None)
        refused = tuple(item for item in expr.items if self._is_refused(body, item)) if expr.kind == "list" else ()
        if refused:
            return Signature(expr, None, "an entry of it is no direction", refused=refused)
        if len(known) != len(slots):
            return self._computed(expr, bound(self.evaluator, body, expr))
        enum = known[0].expr.text.rpartition(".")[0] if known else ""
        return Signature(expr, known, "", enum)

    def _of_computed(self, record: Record, computed: Mapping[str, BoundArgument]) -> Signature:
        """The signature of a computed dict; of one without a signature it is not known."""
        if "signature" not in computed:
            return Signature(record.expr, None, "its dict is computed")
        return self._computed(record.fields["signature"][1], computed["signature"])

    def _computed(self, expr: Expr, argument: BoundArgument) -> Signature:
        """A signature that is not a list of directions: a sum, a comprehension, a call that makes one."""
        values = self.evaluator.values(argument)
        items = self.evaluator.elements(argument.frame, values[0]) if len(values) == 1 else None
        if items is None:
            return Signature(expr, None, "it is computed")
        directions = [self._direction(item) for item in items]
        known = tuple(Declared(item, expr, False) for item in directions if item is not None)
        return (
            Signature(expr, known) if len(known) == len(items) else Signature(expr, None, "an entry of it is not known")
        )

    def _indexes(self, body: Body, record: Record) -> tuple[int, ...] | None:
        """The numbers in a kernel's ``arg_index``, however they are computed; None when there are none or they are not known."""
        if "arg_index" not in record.fields:
            return None
        expr = record.fields["arg_index"][1]
        argument = record.computed["arg_index"] if record.computed is not None else bound(self.evaluator, body, expr)
        values = self.evaluator.values(argument)
        items = self.evaluator.elements(argument.frame, values[0]) if len(values) == 1 else None
        found = [self._number(item) for item in items or ()]
        known = tuple(item for item in found if item is not None)
        return known if items is not None and len(known) == len(found) else None

    def _number(self, item: BoundArgument) -> int | None:
        values = self.evaluator.values(item)
        word = constant(values[0]) if len(values) == 1 else None
        return word[0] if word and isinstance(word[0], int) and not isinstance(word[0], bool) else None

    def _direction(self, item: BoundArgument) -> Direction | None:
        """The direction that an element of a computed list is."""
        declared = self._declared(item.frame.body, item.expr) if item.expr is not None else None
        if declared is not None:
            return declared.direction
        found = {_named(value) for value in self.evaluator.values(item)}
        return found.pop() if len(found) == 1 else None

    def _declared(self, body: Body, expr: Expr) -> Declared | None:
        """One direction: ``D.IN``, where ``D`` is the runtime's enum under whatever name."""
        owner, _, name = expr.text.rpartition(".")
        if expr.kind != "name" or not owner or name not in _DIRECTIONS:
            return None
        return Declared(_DIRECTIONS[name], expr) if self._is_enum(body, owner) else None

    def _is_refused(self, body: Body, expr: Expr) -> bool:
        """Whether an entry is no direction: a constant, or a name that the runtime's enum does not have."""
        owner, _, name = expr.text.rpartition(".")
        unknown = expr.kind == "name" and owner and name not in _DIRECTIONS and self._is_enum(body, owner)
        return bool(unknown) or (expr.kind == "const" and isinstance(expr.value, str))

    def _is_enum(self, body: Body, owner: str) -> bool:
        """Whether a name is the enum: by its own name, or imported from the runtime, the tree itself or under a condition."""
        full = self.bodies.external(body, owner)
        if full.rpartition(".")[2] == _ENUM or owner.rpartition(".")[2] == _ENUM:
            return True
        first = owner.partition(".")[0]
        module = self.bodies.module(body.file)
        imported = [item for item in (*body.scope.imports, *module.scope.imports) if item.name == first]
        return bool(imported) and all(item.attr == _ENUM for item in imported)


def _is_unnumbered(record: Record) -> bool:
    """Whether a dict is that of a kernel without a number."""
    return record.computed is None and "func_id" not in record.fields and not record.fields.keys().isdisjoint(_KERNEL)


def _named(value: Value) -> Direction | None:
    """The direction that a member of the runtime's enum is."""
    full = f"{value.ref.name}.{value.name}" if isinstance(value, EnumMember) else ""
    owner, _, name = (value.name if isinstance(value, ExternalName) else full).rpartition(".")
    return _DIRECTIONS.get(name) if owner.rpartition(".")[2] == _ENUM else None


@lru_cache(maxsize=16)
def _adds_kernels(text: str) -> bool:
    return _ADDED.search(text) is not None


@lru_cache(maxsize=16)
def _sets_signatures(text: str) -> bool:
    return _SET.search(text) is not None


def _joined(parts: Iterable[str | None]) -> str | None:
    found = list(parts)
    known = [part for part in found if part is not None]
    return posixpath.join(*known) if known and len(known) == len(found) else None


def _is_scene(body: Body) -> bool:
    """Whether a class is one that runs by itself, in its own folder: one below ``@scene_test(...)``."""
    decorators = body.cls.decorators if body.cls is not None else ()
    return any((item.callee or item.text).rpartition(".")[2] == "scene_test" for item in decorators)


def _runtime_of(body: Body) -> str:
    """The runtime that a scene is for, as its decorator says: ``@scene_test(level=2, runtime="host_build_graph")``."""
    for decorator in body.cls.decorators if body.cls is not None else ():
        named = decorator.keyword("runtime")
        if named is not None and isinstance(named.value, str):
            return named.value
    return ""
