"""Attributes and methods of FlyDSL's classes by their facts."""

from __future__ import annotations

from collections.abc import Iterator, Set
from enum import EnumMeta, IntFlag

import msgspec

from opschema_cli.source.python import Assign, Class, Function, Import, Param, Scope
from opschema_cli.source.resolution import HARMLESS_BASES, bindings_of
from opschema_cli.source.word_index import called_word

_ENUMERATIONS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
"""The enumeration classes of Python's ``enum`` module."""

_OF_ENUMERATIONS = frozenset(name for cls in (IntFlag, str, EnumMeta) for name in dir(cls))
"""Attributes that every enumeration has, whatever its body defines."""

_OF_CLASSES = frozenset(dir(type))
"""Attributes of every class."""

_ALIASING = frozenset({"_add_alias_", "_add_value_alias_", "setattr", "__setattr__"})
"""Methods and functions that add attributes to enumerations."""

_READING = frozenset({"isinstance", "issubclass", "len", "list", "tuple", "set", "sorted", "iter", "frozenset"})
"""Built-in functions that only read their arguments."""

_REGISTERING = frozenset({"register_value_caster", "register"})
"""Class decorators that return the class unchanged."""

_ON_CLASSES = frozenset({"classmethod", "staticmethod"})


class Signature(msgspec.Struct, frozen=True):
    """The parameters of a function, and the last words of the decorators that may change them."""

    decorators: tuple[str, ...]
    params: tuple[Param, ...]


def signature_of(function: Function) -> Signature:
    """Return the signature of a function, with all of its parameters."""
    return Signature(tuple(map(called_word, function.decorators)), function.params)


def method_signature(cls: Class, name: str) -> Signature | None:
    """Return the signature of a method that is called on its class; None if the class itself does not define it."""
    found = _own_function(cls, name) if _is_plain(cls) else None
    if found is None:
        return None
    written = signature_of(found)
    others = tuple(word for word in written.decorators if word not in _ON_CLASSES)
    return Signature(others, written.params["classmethod" in written.decorators :])


def constructor_signature(cls: Class) -> Signature | None:
    """Return the signature of a class's constructor, from its own `__init__`; None if the class has a base or customizes instance
    creation.
    """
    found = _own_function(cls, "__init__") if _is_plain(cls) and _has_no_base(cls) else None
    if found is None or "__new__" in cls.body.named:
        return None
    written = signature_of(found)
    return Signature(written.decorators, written.params[1:])


def result_signature(module: Scope, function: Function, name: str, changing: Set[str]) -> Signature | None:
    """Return the signature, without the instance, of a method of the object that a function returns. The function must only create
    an instance of a class of its module. ``changing`` are the classes whose attributes are written elsewhere.
    """
    returned = function.statements[0] if len(function.statements) == 1 and not function.decorators else None
    made = returned.exprs[0].callee if returned is not None and returned.kind == "return" and returned.exprs else ""
    for cls in _lineage_of(module, made) or ():
        alone = len(bindings_of(module, cls.name)) == 1 and cls.name not in changing
        if not alone or not _is_plain(cls) or "__getattribute__" in cls.body.named or _sets(cls, name):
            return None
        if name in cls.body.named:
            found = _own_function(cls, name)
            plain = found is not None and not found.decorators
            return Signature((), found.params[1:]) if found is not None and plain else None
    return None


def _is_plain(cls: Class) -> bool:
    """Whether a class is as its statement says: no keyword or decorator may change it."""
    return not cls.keywords and cls.sure and all(called_word(item) in _REGISTERING for item in cls.decorators)


def _has_no_base(cls: Class) -> bool:
    return all(item.kind == "name" and item.text in HARMLESS_BASES for item in cls.bases)


def _own_function(cls: Class, name: str) -> Function | None:
    """Return the only function of that name in the body of a class."""
    bound = cls.body.named.get(name, [])
    found = bound[0] if len(bound) == 1 else None
    return found if isinstance(found, Function) and found.sure else None


def _sets(cls: Class, name: str) -> bool:
    """Whether a method of a class sets an attribute of that name."""
    return any(item.target.endswith(f".{name}") for scope in cls.body.walk() for item in scope.assigns)


def members_of_class(cls: Class) -> frozenset[str] | None:
    """Return the attributes of a class without bases, decorators and keywords; None for any other class, or if its body may bind
    any name.
    """
    computed = any(call.callee in ("vars", "locals", "exec") for call in cls.body.calls)
    if cls.decorators or not _is_plain(cls) or not _has_no_base(cls) or computed:
        return None
    written = {item.target.rpartition(".")[2] for scope in cls.body.walk() for item in scope.assigns}
    return frozenset(cls.body.named) | written | _OF_CLASSES


# Enumerations


def members_of_enumeration(module: Scope, cls: Class) -> frozenset[str] | None:
    """Return the attributes of a plain Python enumeration; None for any other class."""
    body, plain = cls.body, not cls.decorators and not cls.keywords and cls.sure
    bound = all(isinstance(item, Assign | Function) for items in body.named.values() for item in items)
    computed = any(call.callee in ("vars", "locals", "exec") for call in body.calls) or "_ignore_" in body.named
    if not plain or not bound or computed or len(cls.bases) != 1 or not _is_enumeration(module, cls.bases[0].text):
        return None
    if _may_get_more(module, cls):
        return None
    written = {item.target.rpartition(".")[2] for scope in body.walk() for item in scope.assigns}
    return frozenset(body.named) | written | _OF_ENUMERATIONS


def _may_get_more(module: Scope, cls: Class) -> bool:
    """Whether the methods of an enumeration, or functions that its module passes it to, may add members."""
    if any(called_word(call.items[0]) in _ALIASING for scope in cls.body.walk() for call in scope.calls):
        return True
    passed = (call for call in module.calls if any(item.text == cls.name for item in call.items[1:]))
    return any(call.callee not in _READING for call in passed) or any(
        item.target.startswith(f"{cls.name}.") for item in module.items
    )


def _is_enumeration(module: Scope, base: str) -> bool:
    """Whether a name refers to one of Python's enumeration classes."""
    first, _, rest = base.partition(".")
    bound = bindings_of(module, first)
    found = bound[0] if len(bound) == 1 else None
    if not isinstance(found, Import) or found.guarded or found.level or found.module != "enum":
        return False
    return (found.attr or rest) in _ENUMERATIONS and bool(found.attr) is not bool(rest)


# Wrapped tensors


def members_of_result(module: Scope, wrapper: str) -> frozenset[str] | None:
    """Return the attributes of the class in the return annotation of a module's function."""
    function = module.function(wrapper)
    lineage = _lineage_of(
        module, function.returns.text if function is not None and function.returns is not None else ""
    )
    if lineage is None:
        return None
    return frozenset(name for cls in lineage for scope in cls.body.walk() for name in _bound(scope))


def _lineage_of(module: Scope, name: str) -> list[Class] | None:
    """Return a class of a module and its ancestors; None if not all of them are known."""
    classes = {item.name: item for item in module.classes}
    lineage = list(_lineage(classes, name, set())) if name in classes else [None]
    found = [cls for cls in lineage if cls is not None]
    return found if len(found) == len(lineage) else None


def _lineage(classes: dict[str, Class], name: str, seen: set[str]) -> Iterator[Class | None]:
    """Yield a class and its ancestors in a module; None stands for a class that may have any attribute."""
    if name in seen:
        return
    seen.add(name)
    yield classes[name]
    for base in classes[name].bases:
        text = base.text if base.kind == "name" else ""
        if text in classes:
            yield from _lineage(classes, text, seen)
        elif text not in HARMLESS_BASES:
            yield None


def _bound(scope: Scope) -> Iterator[str]:
    """Yield the functions of a scope, and the last words of its assignment targets."""
    yield from (item.name for item in scope.functions)
    yield from (item.target.rpartition(".")[2] for item in scope.assigns)
