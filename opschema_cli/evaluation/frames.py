"""Evaluation frames, each created once: of modules, classes, called functions, and functions evaluated without a call."""

from __future__ import annotations

from opschema_cli.evaluation.limits import MAX_CALLS, MAX_FRAMES
from opschema_cli.evaluation.values import (
    Arguments,
    BoundArgument,
    ClassValue,
    Frame,
    Func,
    Instance,
    Items,
    Site,
    Table,
    Unknown,
)
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import PythonFile
from opschema_cli.source.resolution import ClassKey
from opschema_cli.source.text import Span


class Frames:
    """The frames of one tree."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self._modules: dict[str, Frame] = {}
        self._classes: dict[Body, Frame] = {}
        self._assumed: dict[tuple[Body, ClassKey | None], Frame] = {}
        self._entered: dict[tuple[Frame, Span, Func], Frame | None] = {}

    def module(self, file: PythonFile) -> Frame:
        """Return the frame of a module."""
        if file.path not in self._modules:
            self._modules[file.path] = Frame(self.bodies.module(file))
        return self._modules[file.path]

    def at(self, where: Body | ClassRef | PythonFile) -> Frame:
        """Return the frame of code evaluated without its calls."""
        if isinstance(where, PythonFile):
            return self.module(where)
        body = self.bodies.cls(where) if isinstance(where, ClassRef) else where
        return self.assumed(body) if body is not None else self.module(where.file)

    def of_class(self, body: Body, parent: Frame) -> Frame:
        """Return the frame of a class body."""
        if body not in self._classes:
            self._classes[body] = Frame(body, parent)
        return self._classes[body]

    def entered(self, callee: Func, arguments: Arguments, makes: ClassRef | None = None) -> Frame | None:
        """Return the frame of a followed call; None if the chain is too long. A constructor ``makes`` an object of a class, and
        may read attributes that it has set.
        """
        key = (arguments.frame, arguments.call.span, callee)
        if key not in self._entered:
            deep = arguments.frame.depth >= MAX_CALLS or len(self._entered) >= MAX_FRAMES
            site = Site(arguments.frame, arguments.call)
            bindings = bind(callee, arguments)
            frame = self._entered[key] = None if deep else Frame(callee.body, callee.frame, bindings, site)
            if makes is not None and callee.body.this:
                bindings[callee.body.this] = BoundArgument(arguments.frame, None, (Instance(makes, frame),))
        return self._entered[key]

    def assumed(self, body: Body, owner: ClassRef | None = None) -> Frame:
        """Return the frame of a body evaluated without its calls. Of the parameters, only the object of a method is known: an
        instance of ``owner``, or of the class that defines the method.
        """
        if body.parent is None:
            return self.module(body.file)
        if body.cls is not None:
            return self.of_class(body, self.assumed(body.parent))
        key = (body, owner.key if owner is not None else None)
        if key not in self._assumed:
            parent = self.assumed(body.parent, owner)
            known = {item.name: BoundArgument(parent) for item in body.params} | _this(body, parent, owner)
            self._assumed[key] = Frame(body, parent, known, None, True)
        return self._assumed[key]


def _this(body: Body, parent: Frame, owner: ClassRef | None) -> dict[str, BoundArgument]:
    """Return the object that a method is called on."""
    owner = owner or body.owner
    if not body.this or owner is None or body.method is not body or body.function is None:
        return {}
    is_class = "classmethod" in body.function.decorator_names
    return {body.this: BoundArgument(parent, None, (ClassValue(owner) if is_class else Instance(owner),))}


def bind(callee: Func, arguments: Arguments) -> dict[str, BoundArgument]:
    """Bind the parameters of a followed call."""
    plain = [item for item in callee.body.params if item.kind in ("posonly", "normal")]
    bound = dict(zip((item.name for item in plain), arguments.positional, strict=False))
    words = dict(arguments.keywords)
    for param in callee.body.params:
        if param.kind == "vararg":
            bound[param.name] = BoundArgument(arguments.frame, None, (Items(arguments.positional[len(plain) :]),))
        elif param.kind != "kwarg" and param.name not in bound:
            default = BoundArgument(callee.frame, param.default) if param.default is not None else None
            lost = BoundArgument(arguments.frame, None, (Unknown("the call is not known to pass it"),))
            unset = default if default is not None and not arguments.open else lost
            bound[param.name] = words.pop(param.name, unset)
    kwarg = next((item.name for item in callee.body.params if item.kind == "kwarg"), None)
    if kwarg is not None:
        bound[kwarg] = BoundArgument(arguments.frame, None, (Table(tuple(words.items()), arguments.open),))
    return bound
