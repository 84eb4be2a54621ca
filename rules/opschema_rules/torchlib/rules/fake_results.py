"""Shapes and dtypes that a fake returns, against those of the kernel, for the same inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.word_search import WordSearch
from opschema_rules.torchlib.compared_shapes import Disagreement, compared_pairs
from opschema_rules.torchlib.model import Operator, Registration, Tree


@rule("REG212", "fake-result", severity="warning")
def fake_result(operator: Operator) -> Iterator[Diagnostic]:
    """A fake returns other shapes or dtypes than the kernel.

    `torch.compile` plans memory and strides by the results of the fake; if the kernel returns something else, compiled code
    fails, or reads invalid memory. opschema interprets both functions on shapes and dtypes alone, with the results of
    torch's own functions and of the fakes of operators that they call through `torch.ops`, for inputs that the schema
    allows: tensors of several ranks and dtypes with different sizes, flags both true and false, optional tensors both
    present and absent. Nothing in the tree is run.

    A difference is reported only if every input that both functions accept shows it, whatever its ranks and dtypes. Sizes
    are multiples of 256, as some kernels accept no others. A size of a result counts only if both sides compute it from the
    same sizes, or from those of one tensor: which sizes of different tensors always agree is not known. It must also differ
    where each size is a multiple of the others: `heads // groups * groups` may always be `heads`. A kernel that
    TileLang compiles (`@tilelang.jit(out_idx=...)`) returns what the parameters of its `prim_func` are annotated with, and
    takes tensors of the annotated shapes, whose sizes follow from numbers that are not taken to be equal. Nothing is
    reported for results of other packages and other compiled kernels.

    Bad:

    ```python
    @torch.library.custom_op("kit::gate", mutates_args=())
    def gate(x: Tensor) -> Tensor:
        out = torch.empty(x.shape[0], x.shape[1] // 2, dtype=x.dtype, device=x.device)
        run(x, out)
        return out


    @gate.register_fake
    def _(x):
        return torch.empty_like(x)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::gate", mutates_args=())
    def gate(x: Tensor) -> Tensor:
        out = torch.empty(x.shape[0], x.shape[1] // 2, dtype=x.dtype, device=x.device)
        run(x, out)
        return out


    @gate.register_fake
    def _(x):
        return x.new_empty((x.shape[0], x.shape[1] // 2))


    @torch.library.custom_op("kit::rows", mutates_args=())
    def rows(x: Tensor, index: Tensor) -> Tensor:
        return torch.empty(x.shape[0], 8)


    @rows.register_fake
    def _(x, index):
        return torch.empty(index.shape[0], 8)  # both may always have as many rows
    ```
    """
    for pair in compared_pairs(operator):
        found = pair.compared.difference
        if found is not None and not (_may_be_of_default_dtype(found) and _sets_default_dtype(operator.tree)):
            yield _reported(operator, pair.fake, pair.kernel, found)


_DEFAULT_DTYPES = frozenset({"float32", "complex64"})
_SETS_DEFAULT = re.compile(rb"^(?:torch\.)?set_default_(?:dtype|tensor_type)\(", re.MULTILINE)


def _may_be_of_default_dtype(found: Disagreement) -> bool:
    """Whether results differ in dtype, and one of them has a dtype that follows from torch's default unless code sets another."""
    dtypes = {text.strip("`").partition("[")[0] for text in (found.fake, found.kernel)}
    return len(dtypes) > 1 and not dtypes.isdisjoint(_DEFAULT_DTYPES)


@cached_on_argument
def _sets_default_dtype(tree: Tree) -> bool:
    """Whether a Python file sets torch's default dtype when it is imported."""
    paths = (path for path in tree.project.workspace.files if is_python(path))
    words = frozenset({"set_default_dtype", "set_default_tensor_type"})
    found = WordSearch(tree.project, "default dtype", words).files(paths)
    return any(_SETS_DEFAULT.search(tree.project.workspace.peek(path)) for path in found)


def _reported(operator: Operator, fake: Registration, kernel: Body, found: Disagreement) -> Diagnostic:
    return Diagnostic(
        f"the fake of `{operator.title}` returns {found.fake}{found.result} where the kernel returns {found.kernel}, for"
        f" `{found.input}`; compiled code relies on the fake",
        fake.place,
        related=(Related(_named(kernel), "the kernel"),),
        ops=(operator.title,),
    )


def _named(body: Body) -> Place:
    assert body.function is not None  # a kernel is a function
    return body.at(body.function.span)
