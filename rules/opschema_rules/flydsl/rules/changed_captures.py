"""Captured variables that change between two launches."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.flydsl.changed_captures import changed_captures
from opschema_rules.flydsl.code import FlyFile


@rule("FLY225", "changed-capture", pure=True)
def changed_capture(file: FlyFile) -> Iterator[Diagnostic]:
    """A captured variable that changes between two launches.

    What a function under `@flyc.jit` captures is compiled into the code. Up to 0.4.2 FlyDSL computes the cache key of
    captured values once, before the first launch, and never looks at the contents of lists, dicts and sets. So a launch after
    the variable has changed silently runs the code for the old value. Variables of the module are different: FlyDSL raises
    `RuntimeError` if they change. From 0.5.0 on every launch is traced again, so nothing is reported where FlyDSL may be that
    new.

    Pass the value as a parameter that is an `fx.Constexpr`, or build a new function for each value, in a factory that
    gets the value as a number or a tuple. A change is only reported if it is before a call of the function, in a function
    that changes the variable by one of its own parameters, or in a loop by the loop's variable.

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def build(tile: int):
        stages = [2]

        @flyc.kernel
        def scale(A: fx.Tensor):
            print(tile, stages[0])

        @flyc.jit
        def launch(A: fx.Tensor):
            scale(A).launch(grid=(1, 1, 1), block=(64, 1, 1))

        def run(A, count):
            stages[0] = count
            launch(A)

        return run
    ```

    Bad:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def measure(A):
        threads = 64

        @flyc.kernel
        def scale(A: fx.Tensor):
            print(A)

        @flyc.jit
        def launch(A: fx.Tensor):
            scale(A).launch(grid=(1, 1, 1), block=(threads, 1, 1))

        for count in (64, 128, 256):
            threads = count
            launch(A)
    ```

    Good:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def build(tile: int):
        seen = []

        @flyc.kernel
        def scale(A: fx.Tensor, stages: fx.Constexpr[int]):
            print(tile, stages)

        @flyc.jit
        def launch(A: fx.Tensor, stages: fx.Constexpr[int]):
            scale(A, stages).launch(grid=(1, 1, 1), block=(64, 1, 1))

        def run(A, count):
            seen.append(count)
            launch(A, count)

        return run
    ```

    Good, a function is built for each value:

    ```toml
    [flydsl]
    version = "0.4.2"
    ```

    ```python
    def measure(A):
        for threads in (64, 128, 256):

            @flyc.kernel
            def scale(A: fx.Tensor):
                print(A)

            @flyc.jit
            def launch(A: fx.Tensor):
                scale(A).launch(grid=(1, 1, 1), block=(threads, 1, 1))

            launch(A)
    ```
    """
    tree = file.tree
    for item in changed_captures(tree):
        name, title = item.cell.name, item.traced.title
        message = (
            f"`{name}` changes with `{item.varies}` before a launch, and `{title}` captures it: its cache key is computed once, so "
            f"the code for the old value runs; pass it as an `fx.Constexpr`"
        )
        yield Diagnostic(
            message, item.body.at(item.statement.span), (Related(item.traced.place, "captures it"),), ops=(title,)
        )
