"""The operator that a binding would be: its schema, its dispatch key and the C++ that registers its function."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence, Set

import msgspec

from opschema_cli.schema.cpp_inference import inferred_type, plain_type, refused_type, returned_types
from opschema_cli.schema.cpp_literals import of_cpp
from opschema_cli.schema.operator_schema import SchemaType
from opschema_cli.source.preprocessor import exclusive
from opschema_rules.bindings.functions import plain_function
from opschema_rules.bindings.migrations.function_bodies import FunctionBodies
from opschema_rules.bindings.migrations.tensor_memory import may_write, returns, writes
from opschema_rules.bindings.model import Binding, Parameter

COMPOSITE, EVERY_DEVICE = "CompositeImplicitAutograd", "CompositeExplicitAutograd"

_OUTPUT = re.compile(r"(?:out|output|result|dst|dest|grad_\w+_out)s?(?:put)?(?:_\w+)?|\w+_out(?:put)?")


class NotDerivableError(Exception):
    """A binding that cannot become an operator without a decision; its text is the reason."""


class DerivedOperator(msgspec.Struct, frozen=True):
    """An operator to define: its name with the overload, its schema without namespace, its dispatch key, and the argument of
    ``m.impl``.

    ``assumed`` are the tensors whose memory the function gets and that are taken to be read only. ``params`` are the parameters
    of a Python function that takes the same arguments.
    """

    binding: Binding
    full: str
    schema: str
    key: str
    function: str
    assumed: tuple[str, ...] = ()
    returns_nothing: bool = False
    params: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name without the overload."""
        return self.full.partition(".")[0]


def operator_name(binding: Binding) -> str:
    """The operator's name for a binding, with the name of its submodule as a prefix."""
    parts, module = [binding.name], binding.module
    while module.parent is not None:
        parts, module = [module.local, *parts], module.parent
    return "_".join(parts)


def overload_names(bindings: Sequence[Binding]) -> list[str]:
    """The names of overloads: the first has none, others that of a parameter which those before do not have, or of a type.

    Raises:
        NotDerivableError: they differ only in number types, where the dispatcher may call another overload than pybind11 does.
    """
    found: list[str] = []
    for index, binding in enumerate(bindings):
        before = [item for item in bindings[:index] if not exclusive(item.conditions, binding.conditions)]
        if any(_is_alike(item, binding) for item in before):
            raise NotDerivableError("its overloads differ only in the types of numbers")
        known = {name for other in before for name, _ in _typed(other)}
        there = {item for other in before for item in enumerate(_types(other))}
        words = [name for name, _ in _typed(binding) if name not in known]
        words += [re.sub(r"\W+", "", of) for at, of in enumerate(_types(binding)) if (at, of) not in there]
        words = [word for word in words if word.isidentifier() and word not in found and word != "default"]
        found.append("" if not before else words[0] if words else f"overload{index}")
    return found


def _typed(binding: Binding) -> list[tuple[str, str]]:
    """Return the names and schema types of a binding's parameters; a type is empty if there is none."""
    return [(item.name or item.cpp_name, str(_schema_type(item.type) or "")) for item in binding.parameters or ()]


def _types(binding: Binding) -> list[str]:
    return [of for _, of in _typed(binding)]


def _is_alike(one: Binding, other: Binding) -> bool:
    """Whether two overloads take the same number of arguments, of types that differ only between numbers."""
    types = _types(one), _types(other)
    return len(types[0]) == len(types[1]) and all(a == b or {a, b} <= _NUMBERS for a, b in zip(*types, strict=True))


_NUMBERS = {"int", "float", "bool", "Scalar", "complex", "SymInt"}


def derive(
    bodies: FunctionBodies, binding: Binding, full: str, mutates: Set[str], *, trust_const: bool = False
) -> DerivedOperator:
    """The operator of a binding, whose name with the overload is ``full``; without its dispatch key.

    ``mutates`` are the names of arguments that a person declares as mutated. With ``trust_const`` a ``const`` tensor is taken to
    be read only.

    Raises:
        NotDerivableError: it cannot be one, or a person must decide.
    """
    parameters, signature = binding.parameters, binding.signature
    if parameters is None or signature is None:
        raise NotDerivableError(binding.unresolved or "its `py::arg`s do not match the parameters of its function")
    if not takes_tensor(binding):
        raise NotDerivableError("it takes no tensor")
    local = bodies.locals.first(binding)
    if local:
        raise NotDerivableError(f"its function needs `{local}`, which may be known only where it is bound")
    body = bodies.of(binding)
    written, assumed = _mutated(binding, parameters, body, mutates, trust_const=trust_const)
    names = [item.name or item.cpp_name for item in parameters]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name) or names.count(name) > 1:
            raise NotDerivableError(f"`{name}` is not a valid argument name" if name else "an argument has no name")
    returned = returned_types(signature.returns)
    results = _returned(signature.returns, returned) if returned is not None else [None]
    if None in results:
        raise NotDerivableError(f"its return type, `{signature.returns or 'auto'}`, has no schema type")
    found = [str(item) for item in results]
    shared = _returned_tensor(body or "", parameters) if any("Tensor" in item for item in found) else ""
    if shared and found != ["Tensor"]:
        raise NotDerivableError(f"it returns `{shared}` itself, or a view of it, among other results")
    arguments, params, marks = _arguments(parameters, written, shared)
    shown = f"({', '.join(found)})" if len(found) != 1 else f"Tensor({marks[shared]})" if shared else found[0]
    return DerivedOperator(
        binding,
        full,
        f"{full}({arguments}) -> {shown}",
        "",
        _function(binding, parameters, signature.returns),
        assumed,
        not found,
        tuple(params),
    )


def takes_tensor(binding: Binding) -> bool:
    """Whether a binding is known to take a tensor."""
    return any(_is_tensor(item.type) for item in binding.parameters or ())


def with_keys(
    bodies: FunctionBodies, operators: Sequence[DerivedOperator], given: str
) -> Iterator[DerivedOperator | NotDerivableError]:
    """Yield operators with their dispatch keys, or why the key of one is not known. Those that only call operators of PyTorch have
    :data:`COMPOSITE`; ``given`` is the key that a person gives the others.
    """
    bodies.calls.learn(bodies.whole(item.binding) for item in operators)
    for item in operators:
        try:
            yield msgspec.structs.replace(item, key=_key(bodies, bodies.whole(item.binding), given))
        except NotDerivableError as error:
            yield error


def _key(bodies: FunctionBodies, body: str, given: str) -> str:
    called = bodies.calls.code(body) if body else None
    if called is not None and called.python:
        raise NotDerivableError(f"its code uses `{called.python}`, and an operator is called without the GIL")
    if called is not None and not called.differentiates:
        if called.accesses_memory:
            return given or EVERY_DEVICE
        if not called.doubt:
            return COMPOSITE
    if given:
        return given
    if called is None:
        why = "its definition is not found"
    elif called.differentiates:
        why = f"it applies `{called.differentiates}`, an autograd function of C++"
    else:
        why = f"its code has `{called.doubt}`, and it is not known what that does"
    raise NotDerivableError(f"{why}, so its dispatch key is not known; pass it as `-o key=`, such as `{EVERY_DEVICE}`")


def _is_tensor(written: str) -> bool:
    found = inferred_type(written)
    return found is not None and found.base == "Tensor"


def _schema_type(written: str) -> SchemaType | None:
    """Return the schema type of a C++ type, including one that torch rejects and that is replaced with another number type."""
    instead = refused_type(written)
    if instead and "size_t" not in written:
        return inferred_type(instead)
    found = inferred_type(written)
    return None if found is not None and found.items else found


def _returned(written: str, types: Sequence[SchemaType | None]) -> list[SchemaType | None]:
    if len(types) != 1 or types[0] is not None:
        return list(types)
    return [_schema_type(written)]


def _arguments(
    parameters: Sequence[Parameter], written: Set[str], shared: str
) -> tuple[str, list[str], dict[str, str]]:
    """The arguments of a schema, the parameters of a Python function that takes them, and the marks of the tensors that are
    ``written``, or ``shared`` with the result.
    """
    found: list[str] = []
    params: list[str] = []
    marks: dict[str, str] = {}
    optional = False
    for item in parameters:
        of = _schema_type(item.type) if item.kind not in ("vararg", "kwarg") else None
        if of is None:
            raise NotDerivableError(f"`{item.type}`, the type of `{item.name or item.cpp_name}`, has no schema type")
        if item.kind == "kwonly" and "*" not in found:
            found.append("*")
            params.append("*")
            optional = False
        if item.default is None and optional:
            raise NotDerivableError(f"`{item.name}` has no default, but follows an argument that has one")
        optional = optional or item.default is not None
        text = str(of)
        name = item.name or item.cpp_name
        if name in written or name == shared:
            marks[name] = chr(ord("a") + len(marks)) + "!" * (name in written)
            text = text.replace("Tensor", f"Tensor({marks[name]})", 1)
        default = f"={_default(item, of)}" if item.default is not None else ""
        found.append(f"{text} {name}{default}")
        params.append(f"{name}{default}")
    return ", ".join(found), params, marks


def _default(item: Parameter, of: SchemaType) -> str:
    value = of_cpp(item.default or "")
    if value is not None and value.kind == "None" and of.optional:
        return "None"
    base = of.inner if of.optional and of.inner is not None else of
    if value is not None and value.kind == "bool" and str(base) == "bool":
        return "True" if value.text == "true" else "False"
    if value is not None and value.kind in ("int", "float") and str(base) in ("int", "float"):
        number = re.sub(r"[uUlL']|(?<=[\d.])[fF]$", "", value.text)
        plain = re.fullmatch(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", number)
        if plain is not None:
            return number if str(base) == "int" or "." in number or "e" in number.lower() else f"{number}.0"
    if value is not None and value.kind == "str" and str(base) == "str" and value.text.startswith('"'):
        return value.text
    raise NotDerivableError(f"the default `{item.default}` of `{item.name}` cannot be written in a schema")


# Mutation


def _mutated(
    binding: Binding, parameters: Sequence[Parameter], body: str | None, mutates: Set[str], *, trust_const: bool
) -> tuple[frozenset[str], tuple[str, ...]]:
    """The tensors that a function writes, and those that it may write and is taken to read: a person names others, or trusts that
    they are ``const``.

    Raises:
        NotDerivableError: what it writes is not known.
    """
    signature = binding.signature
    void = signature is not None and plain_type(signature.returns) == "void"
    written: set[str] = set()
    assumed: list[str] = []
    open_: list[str] = []
    for index, item in enumerate(parameters):
        name, own = item.name or item.cpp_name, item.cpp_name or item.name
        if not _is_tensor(item.type):
            continue
        first = index == 0 and binding.name.endswith("_") and not binding.name.endswith("__")
        unclear = body is None or may_write(body, own)
        output = not mutates and _OUTPUT.fullmatch(own) is not None and (void or unclear)
        if name in mutates or first or output or (body is not None and writes(body, own)):
            written.add(name)
        elif unclear and (mutates or (trust_const and _is_const(item.type))):
            assumed.append(name)
        elif unclear:
            open_.append(name)
    if open_ or (void and not written and not mutates):
        names = ", ".join(f"`{name}`" for name in open_) or "any tensor"
        types = [item.type for item in parameters if (item.name or item.cpp_name) in open_]
        trust = ", or `-o trust-const=true` if no function here writes what it takes as `const`"
        raise NotDerivableError(
            f"it is not known whether it writes {names}; pass `-o mutates={binding.name}.ARGUMENT`, "
            f"or `-o mutates={binding.name}.` if it writes none"
            + (trust if types and all(map(_is_const, types)) else "")
        )
    return frozenset(written), tuple(assumed)


def _is_const(written: str) -> bool:
    return re.match(r"\s*const\b|.*\bconst\s*&", written) is not None


def _returned_tensor(body: str, parameters: Sequence[Parameter]) -> str:
    """Return the name of a parameter that a function returns itself or as a view; empty if there is none."""
    names = [(item.name or item.cpp_name, item.cpp_name or item.name) for item in parameters if _is_tensor(item.type)]
    return next((name for name, own in names if returns(body, own)), "")


# Registration


def _function(binding: Binding, parameters: Sequence[Parameter], returns: str) -> str:
    """Return the function argument of ``m.impl``: the function, or a lambda around it that takes the number types of a schema."""
    text = plain_function(binding)
    result = refused_type(returns)
    types = [_qualified(item.type) for item in parameters]
    changed = [refused_type(written) or _by_value(written) for written in types]
    name = re.sub(r"^&", "", text).strip()
    if not any(changed) and not result and re.fullmatch(r"[\w:]+", name):
        return f"&{name}"
    if text.lstrip("+").startswith("["):
        if not re.match(r"\+?\s*\[\s*\]", text):
            raise NotDerivableError("its lambda captures variables")
        if any(changed) or result:
            raise NotDerivableError(
                "its lambda takes or returns a type of number that operators do not have, such as `int`"
            )
        return text
    overload = re.search(r"\(\s*&?\s*([\w:]+)\s*\)\s*$", text)
    called = name if re.fullmatch(r"[\w:]+(?:<[^()]*>)?", name) else overload[1] if overload is not None else ""
    if not called:
        raise NotDerivableError("its function is not given by name")
    taken, passed = [], []
    for item, written, other in zip(parameters, types, changed, strict=True):
        own = item.cpp_name or item.name
        taken.append(f"{other or written} {own}")
        passed.append(_converted(own, written, other))
    arrow = f" -> {result}" if result else ""
    return f"[]({', '.join(taken)}){arrow} {{ return {called}({', '.join(passed)}); }}"


def _qualified(written: str) -> str:
    """Return a type with the namespaces of PyTorch and the standard library, which a ``using`` around its function may spare."""
    return _UNQUALIFIED.sub(lambda match: f"{'std' if match[0] in _OF_STD else 'at'}::{match[0]}", written)


_OF_STD = {"optional", "vector", "string", "tuple"}
_UNQUALIFIED = re.compile(
    r"(?<![\w:])(?:optional|vector|string|tuple|Tensor(?:List)?|(?:Int)?ArrayRef|Scalar(?:Type)?|Device|Layout|MemoryFormat)\b"
)


def _by_value(written: str) -> str:
    """The type to take in place of a reference that no operator can have; empty for others."""
    plain = _plain(written)
    changes = written.rstrip().endswith("&") and not re.search(r"\bconst\b", written) and not _TENSOR.fullmatch(plain)
    scalar = written.rstrip().endswith("&") and plain in ("bool", "int64_t", "double")
    return plain if changes or scalar else ""


_TENSOR = re.compile(r"(?:(?:at|torch)::)?Tensor")


def _converted(name: str, written: str, other: str) -> str:
    if not other or other == _plain(written):
        return name
    if "optional" in other:
        return f"{name}.has_value() ? {_plain(written)}(*{name}) : std::nullopt"
    if "vector" in other:
        return f"{_plain(written)}({name}.begin(), {name}.end())"
    if "ArrayRef" in other:
        raise NotDerivableError(f"no value of an operator can be converted to `{written}`")
    return f"static_cast<{_plain(written)}>({name})" if "string" not in other else f"std::string({name}).c_str()"


def _plain(written: str) -> str:
    return re.sub(r"\bconst\b|&", "", written).strip()
