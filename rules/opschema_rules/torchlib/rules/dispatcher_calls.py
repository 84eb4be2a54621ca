"""Look-ups of operators in C++ against their schemas."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.suggestions import did_you_mean
from opschema_rules.torchlib.model import DispatcherCall, Operator
from opschema_rules.torchlib.rules.cpp_kernels import mismatch_words
from opschema_rules.torchlib.stray_uses import misspelt_names


@rule("REG512", "dispatcher-call", needs=(CPP,))
def dispatcher_call(call: DispatcherCall) -> Iterator[Diagnostic]:
    """An operator that C++ looks up by a wrong name, or calls with another signature than its schema.

    `findSchemaOrThrow` raises if there is no such operator or overload, and `typed<...>()` if its type is not that of the
    operator's kernels. Both happen when the code runs. A type in `decltype` is not compared. Code under `#if`, in bodies of macros,
    or in functions that catch or expect errors is not checked. Since other packages may define operators in the namespaces of the
    tree, names are reported if they are a slip in the name of an operator of the tree, or another overload of one.

    Bad:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor, bool clamp) { return x; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor, bool clamp=False) -> Tensor", &scale); }

    at::Tensor twice(const at::Tensor& x) {
      static auto op = c10::Dispatcher::singleton()
                           .findSchemaOrThrow("kit::scale", "")
                           .typed<at::Tensor(const at::Tensor&, double)>();
      return op.call(x, 2.0);
    }
    ```

    Good:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor, bool clamp) { return x; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor, bool clamp=False) -> Tensor", &scale); }

    at::Tensor twice(const at::Tensor& x) {
      static auto op = c10::Dispatcher::singleton()
                           .findSchemaOrThrow("kit::scale", "")
                           .typed<at::Tensor(const at::Tensor&, double, bool)>();
      return op.call(x, 2.0, false);
    }
    ```
    """
    title = f"{call.name}.{call.overload}" if call.overload else call.name
    operators = call.tree.by_name.get(title, ())
    if not operators:
        yield from _unknown(call, title)
    elif call.signature is not None:
        found = [_mismatch(call, title, operator) for operator in operators]
        if all(found):
            yield Diagnostic(
                f"{found[0]}: this raises",
                call.place,
                related=(Related(operators[0].definition.written, "its schema"),),
                ops=(title,),
            )


def _unknown(call: DispatcherCall, title: str) -> Iterator[Diagnostic]:
    if call.tree.may_be_defined(title):
        return
    overloads = [name for name in call.tree.by_name if name.partition(".")[0] == call.name]
    meant = misspelt_names(call.tree)[call.name.replace("::", ".")]
    if overloads or meant:
        known = overloads[0] if overloads else meant
        yield Diagnostic(
            f"nothing defines `{title}`, so that this raises{did_you_mean(known)}",
            call.place,
            related=tuple(Related(item.place, "its definition") for item in call.tree.by_name.get(known, ())[:1]),
            ops=(known,),
        )


def _mismatch(call: DispatcherCall, title: str, operator: Operator) -> str:
    """Return the first difference between the type and an operator's schema; empty if there is none, or the schema is not known."""
    schema = operator.definition.schema
    if call.signature is None or not isinstance(schema, OperatorSchema) or operator.definition.errors:
        return ""
    if schema.name_only or schema.vararg or schema.varret:
        return ""
    found = call.signature.mismatches(schema)
    return mismatch_words(title, schema, call.signature, found[0]).replace("`typed<>()`", "`typed<>`") if found else ""
