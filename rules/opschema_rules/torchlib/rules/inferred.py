"""Signatures that ``infer_schema`` refuses: kinds of parameters, types, annotations."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit
from opschema_rules.torchlib.model import Operator, Problem, ProblemKind
from opschema_rules.torchlib.proofs import REGISTRATION
from opschema_rules.torchlib.spelling import spelled_in

_TAKEN = "torch takes Tensor, int, float, bool, str, dtype, device and Number, lists of tensors and numbers, and most as Optional"
_RETURNED = "torch takes None, Tensor, List[Tensor], int, float, bool, Number and tuples of those"


@rule("REG101", "missing-annotation")
def missing_annotation(operator: Operator) -> Iterator[Diagnostic]:
    """A function without the annotations from which its schema is derived.

    Without `schema=`, `custom_op`, `triton_op` and `infer_schema` derive the schema from the annotations; each parameter
    needs one, and so does the return value (`-> None` if there is none). Without it, torch raises when the module is
    imported.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor) -> Tensor:
        return x * factor
    ```

    Bad (no return annotation):

    ```python
    @torch.library.custom_op("kit::clear", mutates_args=("x",))
    def clear(x: Tensor):
        x.zero_()
    ```

    Good (an explicit schema, and annotations):

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=(), schema="(Tensor x, float factor) -> Tensor")
    def scale(x, factor):
        return x * factor


    @torch.library.custom_op("kit::clear", mutates_args=("x",))
    def clear(x: Tensor) -> None:
        x.zero_()
    ```
    """
    for item in _of_kind(operator, "annotation"):
        yield _found(operator, item, f"`{item.name}` needs an annotation: the schema is made of it")
    for item in _of_kind(operator, "return-annotation"):
        yield _found(operator, item, "the return value needs an annotation: the schema is built from it")


@rule("REG102", "parameter-kind")
def parameter_kind(operator: Operator) -> Iterator[Diagnostic]:
    """A function with a kind of parameter that a schema cannot express.

    A schema has arguments that are passed by position or name, and arguments that are passed by name. `*args`, `**kwargs`
    and parameters before `/` raise when the module is imported. Use a list for several tensors.

    Bad:

    ```python
    @torch.library.custom_op("kit::add_all", mutates_args=())
    def add_all(*xs: Tensor) -> Tensor:
        return sum(xs)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::add_all", mutates_args=())
    def add_all(xs: List[Tensor], *, factor: float = 1.0) -> Tensor:
        return sum(xs) * factor
    ```
    """
    words = {"vararg": "`*{}`", "kwarg": "`**{}`", "posonly": "`{}`, before `/`,"}
    for item in _of_kind(operator, "kind"):
        shown = words.get(item.written, "`{}`").format(item.name)
        yield _found(operator, item, f"{shown} can be no argument of a schema: torch refuses the function")


@rule("REG103", "parameter-type", fixable="safe", by_release=True, proof=REGISTRATION)
def parameter_type(operator: Operator) -> Iterator[Diagnostic]:
    """A parameter of a type that a schema cannot have.

    `infer_schema` knows these types: `Tensor`, `int`, `float`, `bool`, `str`, `torch.dtype`, `torch.device`,
    `torch.types.Number`; lists and sequences of tensors and numbers; and `Optional` of most of these. A tuple, a `dict`, a
    class, `List[str]` or `Union[int, float]` raises when the module is imported. Which spellings it knows depends on the
    release: `list[int]` and `Sequence` of `collections.abc` since torch 2.7, `Optional[List[Tensor]]` since 2.15. The
    release is read from the tree's requirements. Classes are not reported if the tree registers opaque types.

    Bad:

    ```python
    @torch.library.custom_op("kit::pad", mutates_args=())
    def pad(x: Tensor, sizes: Tuple[int, int]) -> Tensor:
        return torch.nn.functional.pad(x, list(sizes))
    ```

    Bad:

    ```python
    @torch.library.custom_op("kit::select", mutates_args=())
    def select(x: Tensor, options: dict) -> Tensor:
        return x.clone()
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::pad", mutates_args=())
    def pad(x: Tensor, sizes: List[int], masks: list[Optional[Tensor]], dtype: Optional[torch.dtype] = None) -> Tensor:
        return torch.nn.functional.pad(x, list(sizes))
    ```
    """
    for item in _of_kind(operator, "type"):
        do = f"write `{item.instead}`" if item.instead else _TAKEN
        who = f"torch {operator.tree.release}" if item.instead else "torch"
        message = f"{who} takes no `{item.written}` as an argument (`{item.name}`): {do}"
        yield _found(operator, item, message, _respelled(operator, item))
    for item in _of_kind(operator, "tuple"):
        do = f"write `{item.instead}`, which takes tuples as well" if item.instead else _TAKEN
        message = f"torch takes no tuple as an argument (`{item.name}: {item.written}`): {do}"
        yield _found(operator, item, message, _respelled(operator, item, "the function gets a list then"))


@rule("REG104", "return-type", by_release=True)
def return_type(operator: Operator) -> Iterator[Diagnostic]:
    """A return type that a schema cannot have.

    An operator returns nothing, tensors, a list of tensors, numbers, or a tuple of a fixed number of these.
    `Optional[Tensor]`, `Tuple[Tensor, ...]`, `List[int]` or `str` raises when the module is imported.

    Bad:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> Tuple[Tensor, ...]:
        return tuple(part.clone() for part in x)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::split", mutates_args=())
    def split(x: Tensor) -> List[Tensor]:
        return [part.clone() for part in x]


    @torch.library.custom_op("kit::top", mutates_args=())
    def top(x: Tensor) -> Tuple[Tensor, int]:
        return x[0].clone(), 1
    ```
    """
    for item in _of_kind(operator, "return-type"):
        yield _found(operator, item, f"torch takes no `{item.written}` as the return type of an operator: {_RETURNED}")


@rule("REG105", "string-annotation")
def string_annotation(operator: Operator) -> Iterator[Diagnostic]:
    """An annotation in quotes with a name that the module does not have.

    An annotation that is a string, as all are with `from __future__ import annotations`, is evaluated when the operator is
    defined, with only the module's names: a name that is local to a factory, or imported only for type checkers, is not
    found.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: "Tensr", factor: float) -> Tensor:
        return x * factor
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: "Tensor", factor: "float") -> "Tensor":
        return x * factor
    ```
    """
    for item in _of_kind(operator, "string-annotation"):
        yield _found(operator, item, f"the module has no name for all of `{item.written}`, in which torch evaluates it")


def _of_kind(operator: Operator, kind: ProblemKind) -> list[Problem]:
    return [item for item in operator.definition.problems if item.kind == kind]


def _found(operator: Operator, item: Problem, message: str, fix: Fix | None = None) -> Diagnostic:
    return Diagnostic(message, item.place, fix=fix, ops=(operator.title,))


def _respelled(operator: Operator, item: Problem, why_unsafe: str = "") -> Fix | None:
    function = operator.definition.function
    if not item.instead or function is None or function.file.path != item.place.path:
        return None
    text = spelled_in(operator.tree, function.parent or function, item.instead)
    if text is None:
        return None
    edit = FileEdit(item.place.path, Edit(item.place.span, text))
    return Fix(f"write `{text}`", (edit,), "unsafe" if why_unsafe else "safe", why_unsafe)
