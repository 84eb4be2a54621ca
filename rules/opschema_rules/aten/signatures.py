"""Variants of one operator: their kind and their signature, as in ``torchgen.model.FunctionSchema``."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from opschema_cli.schema.operator_schema import AliasInfo, Argument, OperatorSchema, Return, SchemaType
from opschema_cli.schema.schema_torchgen import AUGMENTED

VariantKind: TypeAlias = Literal["functional", "inplace", "out", "mutable", "scratch"]
"""``torchgen.model.SchemaKind``."""

OPTIONS = (("dtype", "ScalarType"), ("layout", "Layout"), ("device", "Device"), ("pin_memory", "bool"))
"""The arguments that make a ``TensorOptions``, with their types."""


class BaseName(NamedTuple):
    """An operator's name without overload, in parts: ``add_`` is ``add`` in place, ``__iand__`` is ``and`` too."""

    base: str
    inplace: bool = False
    dunder: bool = False
    functional: bool = False

    def __str__(self) -> str:
        if self.dunder:
            return f"__{'i' if self.inplace else ''}{self.base}__"
        return self.base + ("_" if self.inplace else "_functional" if self.functional else "")


@lru_cache(maxsize=8192)
def base_name(name: str) -> BaseName:
    """The parts of an operator's name (``torchgen.model.BaseOperatorName.parse``)."""
    inner = name[2:-2]
    if inner and name == f"__{inner}__" and "_" not in inner:
        inplace = inner in AUGMENTED
        return BaseName(inner[1:] if inplace else inner, inplace, dunder=True)
    if name.endswith("_") and len(name) > 1:
        return BaseName(name[:-1], inplace=True)
    if name.endswith("_functional"):
        return BaseName(name.removesuffix("_functional"), functional=True)
    return BaseName(name)


def full_name(schema: OperatorSchema) -> str:
    """The name with the overload, as torchgen knows the operator: without a namespace."""
    return f"{schema.name}.{schema.overload}" if schema.overload else schema.name


def kind_of(schema: OperatorSchema) -> VariantKind:
    """Variant kind of an operator, by how it returns its result."""
    if base_name(schema.name).inplace:
        return "inplace"
    outs = out_arguments(schema)
    if outs:
        return "scratch" if any(item.name.startswith("_scratch_") for item in outs) else "out"
    return "mutable" if any(item.is_write for item in behind_self(schema)) else "functional"


def out_arguments(schema: OperatorSchema) -> tuple[Argument, ...]:
    """Keyword-only arguments that are written."""
    return tuple(item for item in schema.arguments if item.kwarg_only and item.is_write)


def self_argument(schema: OperatorSchema) -> Argument | None:
    """The positional argument ``self``."""
    return next((item for item in schema.arguments if item.name == "self" and not item.kwarg_only), None)


def behind_self(schema: OperatorSchema) -> tuple[Argument, ...]:
    """Return the positional arguments after ``self``; all of them if there is none."""
    positional = schema.positional
    at = next((index for index, item in enumerate(positional) if item.name == "self"), -1)
    return positional[at + 1 :]


def options_of(schema: OperatorSchema) -> tuple[Argument, ...]:
    """``dtype``, ``layout``, ``device`` and ``pin_memory`` where they follow each other: a ``TensorOptions``."""
    if schema.argument("pin_memory") is None:
        return ()
    items = [item for item in schema.kwarg_only if not item.is_write]
    for at in range(len(items) - len(OPTIONS) + 1):
        four = items[at : at + len(OPTIONS)]
        if all(
            item.name == name and type_text(item.type) in (of, f"{of}?")
            for item, (name, of) in zip(four, OPTIONS, strict=True)
        ):
            return tuple(four)
    return ()


def is_tensor_like(of: SchemaType) -> bool:
    """Whether its innermost type is ``Tensor``."""
    return of.base == "Tensor"


def type_text(of: SchemaType) -> str:
    """Return the type as written, without alias annotations; cached, as a file has thousands of them."""
    inner = of.inner
    if inner is None:
        return of.name if not of.items else str(of)
    text = type_text(inner)
    return f"{text}?" if of.optional else f"{text}[{'' if of.size is None else of.size}]"


def view_base(base: str) -> str:
    """The name of the view that an operator called ``base`` copies, and ``base`` itself of any other."""
    if base.endswith("_copy"):
        return base.replace("_copy", "")
    return base.replace("scatter", "inverse") if base.endswith("_scatter") else base


SignatureKey: TypeAlias = tuple[BaseName, str, str, str]
"""Equal for two schemas if their torchgen signatures are: name, positional arguments, others, returns."""


def signed(schema: OperatorSchema, *, may_write: bool = True) -> tuple[VariantKind, SignatureKey]:
    """Its kind, and its signature without building it; one pass, for the thousands of a file.

    ``may_write`` is false where it is known that nothing is written, for no `!` stands in it.
    What is dropped is what variants of one operator differ in: overload, out arguments, annotations, ``TensorOptions`` and
    names of returns; what is written and not returned counts as returned.
    """
    positional: list[str] = []
    others: list[str] = []
    writes = False
    options: tuple[Argument, ...] = ()
    for item in schema.arguments:
        of = item.type
        if item.name == "dtype" and item.kwarg_only:
            options = options or options_of(schema)
        written = may_write and (of.alias is not None or of.inner is not None) and item.is_write
        writes = writes or written
        text = f"{of.name or type_text(of)} {item.name}={item.default or ''}"
        if not item.kwarg_only:
            positional.append(text)
        elif not written and item not in options:
            others.append(text)
    name = base_name(schema.name)
    if schema.overload == "p" and schema.name == "bernoulli":  # torchgen's Note [bernoulli.p schema]
        positional = [text.replace("float p=", "float p=0.5") for text in positional]
    returns = [item.type.name or type_text(item.type) for item in schema.returns]
    returns += [type_text(item.type) for item in written_unreturned(schema)] if writes else ()
    kind = kind_of(schema) if writes or name.inplace else "functional"
    return kind, (BaseName(name.base, dunder=name.dunder), ", ".join(positional), ", ".join(others), ", ".join(returns))


def signature_key(schema: OperatorSchema) -> SignatureKey:
    """The signature, without building it."""
    return signed(schema)[1]


def view_key(key: SignatureKey) -> SignatureKey:
    """The key of ``torchgen``'s ``view_signature``, which a view and the operator that copies it have in common."""
    return key[0]._replace(base=view_base(key[0].base)), *key[1:]


def written_unreturned(schema: OperatorSchema) -> list[Argument]:
    """Arguments that are written and not returned, in torchgen's order: ``self``, out arguments, positional ones after ``self``."""
    written = schema.mutated
    if not written:
        return []
    returned = [item.alias for item in schema.returns]
    own = self_argument(schema)
    ordered = [*([own] if own is not None else ()), *out_arguments(schema), *behind_self(schema)]
    return [item for item in ordered if item.is_write and item.alias not in returned]


# -- schemas that torchgen makes ---------------------------------------------------------------------------------------


def functional_of(schema: OperatorSchema) -> OperatorSchema:
    """Return the functional operator that torchgen generates for one that writes."""
    name = base_name(schema.name)
    made = BaseName(name.base, dunder=name.dunder, functional=kind_of(schema) == "mutable")
    returns = [_bare_return(item) for item in schema.returns]
    returns += [Return(_annotated(item.type), name=f"{item.name}_out") for item in written_unreturned(schema)]
    return OperatorSchema(str(made), _signature_arguments(schema), tuple(returns), overload=schema.overload)


def out_of(schema: OperatorSchema) -> OperatorSchema | None:
    """Return the out variant that torchgen generates for an operator; None if it cannot."""
    kind = kind_of(schema)
    if kind == "inplace":
        arguments, returns = _out_of_self(schema)
    elif not schema.returns or not all(map(_is_fresh, schema.returns)):
        return None
    else:
        outs, returns = _out_of_returns(schema)
        own = _signature_arguments(schema) if kind == "functional" else _nowhere(schema.arguments)
        arguments = (*own, *outs)
    return OperatorSchema(out_name(schema), arguments, returns, overload=out_overload(schema))


def _is_fresh(item: Return) -> bool:
    """Whether it is a tensor, or tensors, other than an argument to write."""
    return is_tensor_like(item.type) and not (item.alias is not None and item.alias.write)


def out_name(schema: OperatorSchema) -> str:
    """The name, without overload, of the out variant of an operator."""
    name = base_name(schema.name)
    return str(BaseName(name.base, dunder=name.dunder))


def out_overload(schema: OperatorSchema) -> str:
    """The overload of the out variant of an operator."""
    return f"{schema.overload}_out" if schema.overload else "out"


def _out_of_self(schema: OperatorSchema) -> tuple[tuple[Argument, ...], tuple[Return, ...]]:
    own = self_argument(schema)
    if own is None:
        return schema.arguments, schema.returns
    items = [_bare(item) if item is own else item for item in schema.arguments]
    return (*_nowhere(items), Argument("out", own.type, kwarg_only=True)), tuple(
        Return(item.type, name=item.name) for item in schema.returns
    )


def _out_of_returns(schema: OperatorSchema) -> tuple[list[Argument], tuple[Return, ...]]:
    """Return the out arguments for the results, and the out variant's results: these arguments, if all are plain tensors."""
    used = {name for item in schema.arguments if item.alias is not None for name in item.alias.before}
    letters = [letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in used]
    outs = [
        Argument(
            "out" if len(schema.returns) == 1 else f"out{index}",
            _annotated(item.type, AliasInfo((letter,), write=True)),
            kwarg_only=True,
        )
        for index, (item, letter) in enumerate(zip(schema.returns, letters, strict=False))
    ]
    plain = all(type_text(item.type) == "Tensor" for item in schema.returns)
    return outs, tuple(Return(item.type) for item in outs) if plain else ()


def _signature_arguments(schema: OperatorSchema) -> tuple[Argument, ...]:
    """The arguments of the signature: without out arguments, ``TensorOptions`` and annotations."""
    dropped = (*options_of(schema), *out_arguments(schema))
    kept = [item for item in schema.arguments if item not in dropped]
    return tuple(_bare(item) for item in kept)


def _nowhere(arguments: tuple[Argument, ...] | list[Argument]) -> tuple[Argument, ...]:
    """The arguments of a schema that is written nowhere."""
    return tuple(Argument(item.name, item.type, default=item.default, kwarg_only=item.kwarg_only) for item in arguments)


def _bare(item: Argument) -> Argument:
    """The argument without annotation, written nowhere."""
    return Argument(item.name, _annotated(item.type), default=item.default, kwarg_only=item.kwarg_only)


def _bare_return(item: Return) -> Return:
    return Return(_annotated(item.type), name=item.name)


def _annotated(of: SchemaType, alias: AliasInfo | None = None) -> SchemaType:
    """The type with another annotation of its innermost type, or without any."""
    if alias is None and of.annotation is None:
        return of
    if of.inner is not None:
        return replace(of, inner=_annotated(of.inner, alias), alias=None)
    return of.aliased(alias)
