"""Dependencies that the compile cache ignores: captured values, helpers in other folders, instance attributes."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname

from opschema_cli.evaluation.closures import Cell
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_rules.flydsl.code import FlyCode, FlyFile
from opschema_rules.flydsl.helpers import Helper, helpers_of, names_folders
from opschema_rules.flydsl.instances import baked_attributes
from opschema_rules.flydsl.stale_captures import StaleCapture, stale_captures


@rule("FLY204", "closure-capture", severity="warning", pure=True)
def closure_capture(file: FlyFile) -> Iterator[Diagnostic]:
    """A captured value that changes the compiled code but not its cache key.

    A function under `@flyc.jit` is compiled once for each cache key, and the artifact is kept on the disk. Up to FlyDSL
    0.4.2 the key holds the source of the function and of what it captures, and the captured values that are numbers,
    strings, `None`, tuples, classes or members of enumerations. It does not hold lists, dicts, sets, bytes, dtypes and
    devices of torch, and instances of classes, frozen dataclasses too. Two builds that differ in nothing else have the same
    key: the second one, in this process or in another, silently runs the code of the first. From 0.5.0 on the key is the
    traced program, so nothing is reported where FlyDSL may be that new.

    A capture of a kernel or a helper counts as a capture of the function that launches it. Not reported are values that
    derive from what the key holds, constants, values that are the same for every caller in the workspace, and unknown
    values.

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def build(sizes: list):
        @flyc.kernel
        def scale(A: fx.Tensor):
            tile = sizes[0]

        @flyc.jit
        def launch(A: fx.Tensor):
            scale(A).launch(grid=(1, 1, 1), block=(64, 1, 1))

        return launch
    ```

    Bad, the number of stages is only read from the instance:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    from dataclasses import dataclass


    @dataclass(frozen=True)
    class Config:
        tile: int
        stages: int


    def build(config: Config):
        tile = config.tile

        @flyc.jit
        def launch(A: fx.Tensor):
            for _ in range(config.stages):
                print(tile)

        return launch
    ```

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def build(dtype: torch.dtype):
        @flyc.jit
        def launch(A: fx.Tensor):
            wide = dtype == torch.float32

        return launch
    ```

    Good, a tuple is part of the key, and so are the numbers that a list is made of:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def build(order: tuple, tile: int):
        tiles = [tile, 2 * tile]

        @flyc.jit
        def launch(A: fx.Tensor):
            print(order, tiles, tile)

        return launch
    ```

    Good, the tag represents what is not part of the key:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def build(dtype: torch.dtype, sizes: list):
        tag = (str(dtype), *sizes)

        @flyc.jit
        def launch(A: fx.Tensor):
            _ = tag
            print(dtype, sizes)

        return launch
    ```
    """
    helpers_of(file)  # kept for FLY205, which would decode the file once more in a process that did not run these rules
    for item in stale_captures(file.tree):
        yield _missed(item)


def _missed(item: StaleCapture) -> Diagnostic:
    name, title = item.cell.name, item.traced.title
    read = f"`{name}.{item.attribute}`" if item.attribute else f"`{name}`"
    holder = f"of `{name}`, " if item.attribute else ""
    varies = "" if item.root == item.cell else f", made from `{item.root.name}`"
    instead = item.uncached.instead.format(name)
    if item.attribute:
        instead = f"capture `{item.attribute}` of it by itself"
    message = (
        f"{read}, {holder}{item.uncached.words}{varies}, is not part of the cache key of `{title}`: "
        f"builds that differ only in it share one artifact on disk; {instead}"
    )
    place = item.body.at(Span(item.use.start, item.use.end))
    related = [Related(item.cell.binder.at(_bound(item.cell)), "the captured value")]
    if item.root != item.cell:
        related.append(Related(item.root.binder.at(_bound(item.root)), "the value that it depends on"))
    related.append(Related(item.traced.place, "whose key does not contain it"))
    return Diagnostic(message, place, tuple(related), ops=(title,))


def _bound(cell: Cell) -> Span:
    """Return the place where a variable is bound."""
    param = next((item for item in cell.binder.params if item.name == cell.name), None)
    if param is not None:
        return param.span
    return next(item.span for item in cell.binder.scope.assigns if item.target == cell.name)


@rule("FLY205", "cross-dir-helper", severity="info")
def cross_dir_helper(code: FlyCode) -> Iterator[Diagnostic]:
    """A helper in another folder, traced into a function whose cache key does not see it.

    Up to FlyDSL 0.4.2 the key of a compiled function holds its source, that of the kernels it launches, and that of the
    plain functions they call by name, if these lie in the folder of the compiled function. A helper in another folder, or
    called as an attribute of its module, is traced like the rest, but after an edit of it the old artifact is run, until the
    cache is cleared or FlyDSL changes its version. The environment variable `FLYDSL_EXTRA_SOURCE_DIRS` names folders whose
    files count for every key; where the workspace names any, nothing is reported. There is one finding for each folder of
    helpers. From 0.5.0 on the key is the traced program, so nothing is reported where FlyDSL may be that new.

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python kit/common/math.py
    def double(x):
        return x + x
    ```

    ```python
    from kit.common.math import double


    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32):
        print(double(n))


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        scale(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
    ```

    Good:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python kit/math.py
    def double(x):
        return x + x
    ```

    ```python
    from kit.math import double


    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32):
        print(double(n))


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        scale(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
    ```
    """
    folders: dict[str, list[Helper]] = {}
    for item in (item for file in code.files for item in helpers_of(file)):
        folders.setdefault(dirname(item.target.path), []).append(item)
    if folders and not names_folders(code):
        for folder, found in sorted(folders.items()):
            yield _unseen(folder, found)


def _unseen(folder: str, found: list[Helper]) -> Diagnostic:
    first = min(found, key=lambda item: (item.call.path, item.call.span.start))
    others = len({item.target for item in found}) - 1
    more = f", and so are {others} more in its folder" if others > 1 else ", and so is another one" if others else ""
    named = folder or "."
    why = "called as an attribute of its module" if "." in first.callee else f"a function of `{named}`"
    message = (
        f"`{first.callee}`, {why}, is traced into `{first.title}`, whose cache key does not contain its source{more}: "
        f"after an edit the old artifact runs; name `{named}` in `FLYDSL_EXTRA_SOURCE_DIRS`"
    )
    related = (Related(first.target, "the helper"), Related(first.into, "whose key it is"))
    return Diagnostic(message, first.call, related, ops=tuple(sorted({item.title for item in found})))


@rule("FLY220", "instance-state", severity="warning", pure=True)
def instance_state(file: FlyFile) -> Iterator[Diagnostic]:
    """An instance attribute that a method under `@flyc.jit` compiles into the code.

    Up to FlyDSL 0.4.2 the cache key of a compiled method contains the type of `self`, but not its attributes. Attributes that
    the method and its kernels read are constants of the code, so another instance of the class, even in the same process,
    runs the code of the first one. From 0.5.0 on the key is the traced program, so nothing is reported where FlyDSL may be
    that new.

    The rule reports attributes that `__init__` or a dataclass sets from its arguments. It does not report class attributes,
    or attributes that callers also pass as arguments.

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @flyc.kernel
        def kernel(self, A: fx.Tensor):
            print(self.factor)

        @flyc.jit
        def run(self, A: fx.Tensor):
            self.kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))
    ```

    Good:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    class Scale:
        threads = 64

        def __init__(self, factor):
            self.factor = factor

        @flyc.kernel
        def kernel(self, A: fx.Tensor, factor: fx.Constexpr[int]):
            print(factor)

        @flyc.jit
        def run(self, A: fx.Tensor, factor: fx.Constexpr[int]):
            self.kernel(A, factor).launch(grid=(1, 1, 1), block=(self.threads, 1, 1))

        def __call__(self, A):
            self.run(A, self.factor)
    ```
    """
    tree = file.tree
    for item in baked_attributes(tree):
        message = (
            f"`self.{item.attribute}` is baked into what `{item.traced.title}` compiles, but its cache key only contains the type "
            "of `self`: instances that differ in it run the first one's code; pass it as `fx.Constexpr`"
        )
        related = (
            Related(item.body.at(item.written.span), "where instances get it"),
            Related(item.traced.place, "whose key it is"),
        )
        yield Diagnostic(message, item.body.at(item.use.span), related, ops=(item.traced.title,))
