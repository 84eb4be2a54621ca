"""Schema strings: text that torch cannot parse."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.text import Edit, Span
from opschema_rules.torchlib.model import Definition, Operator
from opschema_rules.torchlib.proofs import REGISTRATION
from opschema_rules.torchlib.python_strings import read_plain

_FORM = re.compile(r"\(.*\) -> .*")


@rule("REG110", "schema-string", fixable="safe", needs=(CPP,), proof=REGISTRATION)
def schema_string(operator: Operator) -> Iterator[Diagnostic]:
    """A schema string that torch cannot read.

    `define`, `custom_op(schema=...)` and `m.def` take a schema as text, which is read when the module is imported or the
    library is loaded: types are `Tensor`, `int`, `SymInt`, `float`, `bool`, `str`, `Scalar`, `ScalarType`, `Device` and so
    on, `T?` and `T[]` of these. All errors in a string are shown, each at its place. Errors that torch accepts, such as two
    arguments with one name, are warnings. `torch.library.define` takes the name separately, and then a schema on one line
    that contains ` -> `.

    Bad:

    ```python
    torch.library.define("kit::scale", "(tensor x, Float factor) -> Tensor")
    ```

    Bad (the name twice):

    ```python
    torch.library.define("kit::scale", "scale(Tensor x, float factor) -> Tensor")
    ```

    Bad:

    ```cpp csrc/ops.cpp
    TORCH_LIBRARY(kit, m) {
      m.def("scale(Tensor x, float factor -> Tensor");
    }
    ```

    Good:

    ```python
    torch.library.define("kit::scale", "(Tensor x, float factor=1.0, *, ScalarType? dtype=None) -> Tensor")
    lib = torch.library.Library("kit", "FRAGMENT")
    lib.define("scale_(Tensor(a!) x, float factor) -> Tensor(a!)")
    ```
    """
    definition = operator.definition
    if not definition.explicit and definition.api != "cpp":
        return
    text = _text(operator)
    errors = text.errors if text is not None else definition.errors
    for error in errors:
        if text is not None or error.kind not in ("name", "overload-name"):
            yield _diagnostic(operator, text, error)
    if text is not None and not errors:
        yield from _form(operator, text)


class _Text(msgspec.Struct, frozen=True):
    """A schema's text as written in a file."""

    path: str
    literal: Literal
    errors: tuple[SchemaError, ...]
    schema: OperatorSchema | None

    def place(self, span: Span) -> Place:
        return Place(self.path, self.literal.span(span))

    def edit(self, edit: Edit) -> FileEdit | None:
        """Return an edit of the value in the file; None if the value is not written there character by character."""
        span = self.literal.span(edit.span)
        plain = span.end - span.start == edit.span.end - edit.span.start
        quotes = any(mark in edit.replacement for mark in "\"'\\\n")
        return None if quotes or not plain else FileEdit(self.path, Edit(span, edit.replacement))


def _text(operator: Operator) -> _Text | None:
    definition = operator.definition
    if definition.literal is not None:
        schema = definition.schema if isinstance(definition.schema, OperatorSchema) else None
        return _Text(definition.written.path, definition.literal, definition.errors, schema)
    source = operator.tree.project.source(definition.written.path)
    literal = read_plain(source, definition.written.span) if source is not None and definition.api != "cpp" else None
    if literal is None:
        return None
    parsed = parse_schema(literal.value)
    same = len(parsed.errors) == len(definition.errors) and (parsed.schema is None) == _is_unread(definition)
    if not same or _is_cut(operator, parsed.schema):
        return None
    return _Text(definition.written.path, literal, parsed.errors, parsed.schema)


def _is_cut(operator: Operator, written: OperatorSchema | None) -> bool:
    """Whether the text names the operator, and code removes the name before torch gets it."""
    schema = operator.definition.schema
    if written is None or not written.name or not isinstance(schema, OperatorSchema):
        return False
    plain = {name.removesuffix(".default") for name in operator.names or ()}
    return _is_apart(operator) and schema.qualified_name in plain


def _is_apart(operator: Operator) -> bool:
    """Whether the operator is named by another argument than its schema."""
    definition = operator.definition
    if definition.api == "custom_op" or definition.body is None or definition.call is None:
        return definition.api == "custom_op"
    callee = operator.tree.bodies.external(definition.body, definition.call.callee)
    # `define(library, "name(...) -> ...")` takes both from one string
    return callee == "torch.library.define" and definition.name_place not in (None, definition.written)


def _is_unread(definition: Definition) -> bool:
    return not isinstance(definition.schema, OperatorSchema)


def _diagnostic(operator: Operator, text: _Text | None, error: SchemaError) -> Diagnostic:
    edit = text.edit(error.edit) if text is not None and error.edit is not None else None
    severity = Severity.ERROR if error.refused else Severity.WARNING
    place = text.place(error.span) if text is not None else operator.definition.written
    fix = (
        Fix(f"write `{error.edit.replacement}`" if error.edit and error.edit.replacement else "remove it", (edit,))
        if edit
        else None
    )
    return Diagnostic(
        f"the schema of `{operator.title}`: {error.message}", place, (), fix, (operator.title,), severity=severity
    )


def _form(operator: Operator, text: _Text) -> Iterator[Diagnostic]:
    """Check the form that ``custom_op`` and ``torch.library.define`` demand of a readable schema."""
    definition = operator.definition
    if text.schema is None or definition.body is None or definition.call is None or definition.api == "cpp":
        return
    is_apart = _is_apart(operator)
    if is_apart and text.schema.name:
        message = f"the schema names the operator (`{text.schema.qualified_name}`), which is named before it: leave the name out"
        edit = text.edit(Edit(text.schema.name_span, ""))
        fix = Fix("leave the name out", (edit,)) if edit is not None else None
        yield Diagnostic(message, text.place(text.schema.name_span), (), fix, (operator.title,))
    elif is_apart and definition.api == "define" and not _FORM.fullmatch(text.literal.value):
        spelled = str(replace(text.schema, name="", namespace="", overload=""))
        edit = text.edit(Edit(Span(0, len(text.literal.value)), spelled)) if len(text.literal.runs) == 1 else None
        fix = Fix(f"write `{spelled}`", (edit,)) if edit is not None else None
        message = (
            "`torch.library.define` takes a schema on one line, `(...) -> ...`, with a space before and after `->`"
        )
        yield Diagnostic(message, definition.written, (), fix, (operator.title,))
