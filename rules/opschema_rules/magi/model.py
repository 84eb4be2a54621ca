"""Subjects of this pack's rules: ops made by ``magi_register_custom_op``, and the tree that contains them.

What cannot be followed is None or :class:`Unresolved`, never a guess. Rules ask :attr:`MagiOp.contract` which contract holds.
"""

from __future__ import annotations

import re
from functools import cached_property

import msgspec

from opschema_cli.evaluation.annotations import Hints
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.evaluation.type_forms import TypeForm
from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import Unresolved
from opschema_rules.magi.calls import Calls, OpCall
from opschema_rules.magi.given import Callback, Meta, Mutates, callback_of, meta_of, mutates_of
from opschema_rules.magi.lowering import Lowerer
from opschema_rules.magi.registrations import Registration, Registrations, Written
from opschema_rules.magi.signature import Lowering
from opschema_rules.magi.version import Contract

_NOT_WORD = re.compile(r"[^a-zA-Z0-9_]")
_TRANSPARENT = frozenset({"torch.no_grad", "torch.enable_grad", "torch.inference_mode"})


class MagiTree(msgspec.Struct, eq=False, dict=True):
    """All ops of one workspace, and the code that reads them. ``stated`` is the contract in the tree.

    ``bare`` are functions under the decorator without a call: it takes them for a name, and registers nothing.
    """

    project: Project
    evaluator: Evaluator
    registrations: Registrations
    lowerer: Lowerer
    calls: Calls
    stated: Contract
    ops: list[MagiOp] = msgspec.field(default_factory=list)
    bare: list[Registration] = msgspec.field(default_factory=list)

    @property
    def bodies(self) -> Bodies:
        """The code."""
        return self.evaluator.bodies

    @cached_property
    def contract(self) -> Contract:
        """The contract in effect: the stated one, or the one that an op with a frozen dataclass needs."""
        if not self.stated.sure:
            for op in self.ops:
                if op.lowering.flattens and not op.fails_on_purpose:
                    return Contract("dataclasses", True, f"`{op.title}` takes a dataclass")
        return self.stated


class MagiOp(msgspec.Struct, eq=False, dict=True):
    """One op: a function and the decorator that registers it."""

    tree: MagiTree
    registration: Registration

    @property
    def body(self) -> Body:
        """The function's body; its parameters, and the scopes around it."""
        return self.registration.function

    @property
    def function_name(self) -> str:
        """The function's own name."""
        return self.body.function.name if self.body.function is not None else ""

    @property
    def params(self) -> tuple[Param, ...]:
        """The function's parameters."""
        return self.body.params

    @property
    def place(self) -> Place:
        """The place of the function's name."""
        function = self.body.function
        return self.body.at(function.span) if function is not None else self.registration.place

    @property
    def contract(self) -> Contract:
        """The contract that the decorator keeps."""
        return self.tree.contract

    @cached_property
    def fails_on_purpose(self) -> bool:
        """Whether it is registered where a test expects an error."""
        outer = self.registration.outer
        return expects_failure(self.tree.bodies, outer, self.registration.call.start)

    @property
    def title(self) -> str:
        """The name in findings: its qualified name, or its function's."""
        return self.name or self.function_name

    def argument(self, name: str) -> Written | Unresolved | None:
        """Return the argument of the decorator called ``name``; None if there is none."""
        return self.registration.arguments.get(name)

    # The name

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The qualified names that it may have; None when they are not known."""
        written = self.argument("name")
        if isinstance(written, Unresolved):
            return self.tree.evaluator.strings(self.registration.arguments.bound.get("name")).names
        if written is None or (written.expr.kind == "const" and written.expr.value is None):
            return frozenset({self.default_name}) if self.is_plain else None
        return self.tree.evaluator.texts(written.body, written.expr)

    @property
    def name(self) -> str | None:
        """Its one qualified name; None when it is not known or there are several."""
        return next(iter(self.names)) if self.names and len(self.names) == 1 else None

    @property
    def is_named(self) -> bool:
        """Whether a name is passed; otherwise it comes from the file and the function."""
        written = self.argument("name")
        return not (
            written is None
            or (isinstance(written, Written) and written.expr.kind == "const" and written.expr.value is None)
        )

    @property
    def default_name(self) -> str:
        """The name that it gets without one: the file's stem and the function's name."""
        stem = self.body.file.path.rpartition("/")[2].removesuffix(".py")
        return f"{_NOT_WORD.sub('_', stem)}::{self.function_name}"

    @cached_property
    def inner_decorators(self) -> tuple[Expr, ...]:
        """The function's decorators below the registering one, whose result the latter gets."""
        function, call = self.body.function, self.registration.call
        if function is None:
            return ()
        if not any(item.span == call.span for item in function.decorators):
            return function.decorators
        return tuple(item for item in function.decorators if item.start > call.start)

    @property
    def is_plain(self) -> bool:
        """Whether the decorator gets the function itself."""
        return not self.inner_decorators

    @property
    def signature_known(self) -> bool:
        """Whether the object that the decorator gets has the function's signature."""
        outer = self.body.parent or self.body
        names = [self.tree.bodies.external(outer, item.callee or item.text) for item in self.inner_decorators]
        return all(name in _TRANSPARENT for name in names)

    # The signature

    @cached_property
    def lowering(self) -> Lowering:
        """The lowering of its signature as the ``dataclasses`` contract does it, whatever contract holds."""
        if not self.signature_known:
            reason = "the effect of its other decorators is not known"
            return Lowering(self.body, (), None, (), (reason,), Hints({}, frozenset()))
        return self.tree.lowerer.lower(self.body, self.registered_at)

    @property
    def registered_at(self) -> int | None:
        """Its position in the module that registers it; None inside a function, which runs at an unknown time."""
        outer = self.registration.outer
        inside = any(body.function is not None for body in outer.outward())
        return None if inside or outer.file is not self.body.file else self.registration.call.start

    @property
    def returns(self) -> TypeForm | None:
        """The resolved return annotation; None without one."""
        return self.lowering.returns

    @property
    def output_count(self) -> int | None:
        """The number of returned values, by the annotation; None if that is not known or not fixed."""
        form = self.returns
        if form is None or not form.is_known or form.kind == "text":
            return None
        if form.kind == "none":
            return 0
        if form.kind == "generic" and form.name == "tuple":
            return len(form.args) if all(item.kind != "ellipsis" for item in form.args) else None
        return None if form.origin == "tuple" or form.name == "tuple" else 1

    # What comes with it

    @cached_property
    def mutates(self) -> Mutates | Unresolved:
        """``mutates_args``."""
        return mutates_of(self.tree.evaluator, self.argument("mutates_args"))

    @cached_property
    def meta(self) -> Meta | Unresolved:
        """``infer_output_meta_fn``."""
        return meta_of(self.tree.evaluator, self.argument("infer_output_meta_fn"))

    @cached_property
    def setup_context(self) -> Callback:
        """``setup_context_fn``; None if it is not passed."""
        return callback_of(self.tree.evaluator, self.argument("setup_context_fn"))

    @cached_property
    def backward(self) -> Callback:
        """``backward_fn``; None if it is not passed."""
        return callback_of(self.tree.evaluator, self.argument("backward_fn"))

    @cached_property
    def calls(self) -> list[OpCall]:
        """The calls of the op that are found, in every file that names it."""
        return self.tree.calls.of(self.registration, self.names)
