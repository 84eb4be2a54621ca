"""Specs of the golden harness against the directions of their entry."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.source.text import Span
from opschema_rules.pypto import proofs
from opschema_rules.pypto.model import EntryParam, SpecEntry, SpecItem
from opschema_rules.pypto.wrapping import head, lost, unstaged, wanted, wrap


@rule("PTO110", "golden-output-direction", severity="warning", fixable="unsafe", proof=proofs.SPECS)
def golden_output_direction(entry: SpecEntry) -> Iterator[Diagnostic]:
    """A parameter's direction does not match its `TensorSpec`, so data that the spec needs is not copied.

    The annotation of an entry's parameter becomes its direction in the orchestration's signature, and that decides what is
    copied: `pl.Tensor` to the device only, `pl.Out` back only, `pl.InOut` both ways. So for a spec with `is_output=True`
    whose parameter is a plain `pl.Tensor`, the host reads its old data back; for a spec with an `init_value` whose
    parameter is `pl.Out`, the kernel gets undefined memory while the golden function starts from the value. The compiler
    adds a direction if the parameter itself is passed to a kernel that writes it, but not after a `pl.reshape` or in a
    loop, so working code may fail after a change of the body; hence a warning. A `pl.Out` whose spec is not an output and
    has no value is a buffer between kernels, and valid.

    Specs are matched with the entry that they are passed with: `run_jit(fn=..., specs=...)`, `run(program=..., specs=...)`,
    or `define_tensors()` and `get_program()` of one test case. A parameter that a `@pl.jit.host` entry only passes on to
    one `@pl.jit` function counts for that function's parameter, too. A computed spec, direction or entry is not checked,
    nor is an output that stays on the device (`resident=`) of a `@pl.jit.host` entry, which the harness reads back itself.

    Bad:

    ```python examples/accumulate.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def accumulate(x: pl.Tensor[[8, 8], pl.FP32], total: pl.Tensor[[8, 8], pl.FP32]):
        flat = pl.reshape(total, [64])
        with pl.at(level=pl.Level.CORE_GROUP):
            flat[0:64] = pl.add(flat[0:64], pl.reshape(x, [64]))
        return total


    def build_specs():
        return [
            TensorSpec("x", [8, 8], torch.float32, init_value=torch.randn),
            TensorSpec("total", [8, 8], torch.float32, init_value=torch.randn, is_output=True),
        ]


    run_jit(fn=accumulate, specs=build_specs())
    ```

    Bad, the history of the cache is lost:

    ```python examples/attend.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def attend(cache: pl.Out[pl.Tensor[[8, 8], pl.FP32]], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]): ...


    run_jit(
        fn=attend,
        specs=[
            TensorSpec("cache", [8, 8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [1, 8], torch.float32, is_output=True),
        ],
    )
    ```

    Good:

    ```python examples/attend.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def attend(cache: pl.InOut[pl.Tensor[[8, 8], pl.FP32]], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]): ...


    @pl.jit
    def read(cache: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]): ...


    def build_specs():
        return [
            TensorSpec("cache", [8, 8], torch.float32, init_value=torch.randn, is_output=True),
            TensorSpec("y", [1, 8], torch.float32, is_output=True),
        ]


    def build_read_specs():
        return [
            TensorSpec("cache", [8, 8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [1, 8], torch.float32, is_output=True),
        ]


    run_jit(fn=attend, specs=build_specs())
    run_jit(fn=read, specs=build_read_specs())
    ```
    """
    for param in entry.params:
        if lost(entry, param):
            yield _lost(entry, param)
        elif unstaged(param):
            yield _unstaged(entry, param)


def _lost(entry: SpecEntry, param: EntryParam) -> Diagnostic:
    word = wanted(entry, param)
    annotation = param.param.annotation
    message = (
        f"`{param.param.name}` of `{entry.name}` is an input, but its spec is an output, which is copied back only if the "
        f"compiler finds the write by itself; declare it {_named(word)}"
    )
    place = entry.at(annotation if annotation is not None else param.param.span)
    related = [*(Related(item.place, "an output") for item in param.outputs), *_hosts(param)]
    return Diagnostic(message, place, tuple(related), _fix(entry, param, word), (entry.name,))


def _unstaged(entry: SpecEntry, param: EntryParam) -> Diagnostic:
    message = (
        f"`{param.param.name}` of `{entry.name}` is `pl.Out`, but its spec has an initial value, which reaches the device only "
        "if the compiler finds by itself that it is read; declare it `pl.InOut`, or drop the value"
    )
    related = [Related(item.value_place, "its initial value") for item in param.specs if item.has_init]
    return Diagnostic(
        message,
        entry.at(head(param) or param.param.span),
        (*related, *_hosts(param)),
        _fix(entry, param, wanted(entry, param)),
        (entry.name,),
    )


def _hosts(param: EntryParam) -> list[Related]:
    return [Related(place, "handed on from here") for place in param.hosts]


def _named(word: str | None) -> str:
    return f"`pl.{word}`" if word is not None else "`pl.Out`, or `pl.InOut` if it has an initial value"


def _fix(entry: SpecEntry, param: EntryParam, word: str | None) -> Fix | None:
    edit = wrap(entry, param, word) if word is not None else None
    if edit is None or word is None:
        return None
    why = {
        ("in", "Out"): "the parts of a `pl.Out` that the kernel does not write are undefined",
        ("out", "InOut"): "a caller that leaves a `pl.Out` to the runtime has to pass it then",
    }.get((param.direction or "", word), "")
    edits = (FileEdit(entry.file.path, edit),)
    return Fix(f"declare it `{entry.spelled[word]}`", edits, "unsafe" if why else "safe", why)


@rule("PTO124", "spec-order", severity="warning")
def spec_order(entry: SpecEntry) -> Iterator[Diagnostic]:
    """Specs in another order than the parameters that they are named after, or fewer or more than these.

    The harness passes tensors to a `@pl.jit` function or a program in the order of their specs; their names only matter to the
    golden function. If two specs are exchanged, each of the parameters gets the other's tensor, which is not noticed if their
    shapes agree. The parameters of a `@pl.jit.host` entry get their specs by name, so it is not checked.

    `run_jit()` calls a function with as many arguments as there are specs, and fails if it takes another number. Scalars and
    the number of specs are compared where the function has `@pl.jit` alone and parameters without defaults, the call has no
    `runtime_dir`, the specs are those of `golden`, and the file expects no error.

    Only lists that are written in the call, or returned at once by a function that it calls, are compared: a list that has a name
    may be changed before it is passed. The call has to be of the harness in `golden` or `pypto`, as another may pass tensors by
    name.

    Bad:

    ```python examples/divide.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def divide(x: pl.Tensor[[8], pl.FP32], by: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=divide,
        specs=[
            TensorSpec("by", [8], torch.float32, init_value=torch.randn),
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```

    Good:

    ```python examples/divide.py
    import pypto.language as pl
    import torch
    from golden import TensorSpec, run_jit


    @pl.jit
    def divide(x: pl.Tensor[[8], pl.FP32], by: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]): ...


    run_jit(
        fn=divide,
        specs=[
            TensorSpec("x", [8], torch.float32, init_value=torch.randn),
            TensorSpec("by", [8], torch.float32, init_value=torch.randn),
            TensorSpec("y", [8], torch.float32, is_output=True),
        ],
    )
    ```
    """
    params = {item.param.name: item for item in entry.params}
    for order in entry.lists if not entry.host else ():
        specs = order.items
        if order.counted and len(specs) != len(params):
            yield _unmatched(entry, specs)
            continue
        if not all(item.name in params for item in specs):
            specs = tuple(item for item in specs if not item.is_scalar)
        named = [item for item in specs if item.name in params]
        wanted = [name for name in params if any(item.name == name for item in named)]
        wrong = [pair for pair in zip(named, wanted, strict=False) if pair[0].name != pair[1]]
        if wrong and len(named) == len(wanted) == len(specs):
            spec, name = wrong[0]
            yield Diagnostic(
                f"specs are passed in their order: `{name}` of `{entry.name}` gets the tensor of the spec `{spec.name}`",
                Place(spec.file.path, spec.call.span),
                (Related(entry.at(params[name].param.span), "the parameter"),),
                ops=(entry.name,),
            )


def _unmatched(entry: SpecEntry, specs: tuple[SpecItem, ...]) -> Diagnostic:
    """Return a finding on a number of specs that differs from the number of parameters."""
    names = {item.name for item in specs}
    missing = [item for item in entry.params if item.param.name not in names][: len(entry.params) - len(specs)]
    lacks = f": none for `{missing[0].param.name}`" if missing else ""
    passed = f"{count(len(specs), 'spec')} {'is' if len(specs) == 1 else 'are'} passed"
    message = f"{passed}, and `{entry.name}` takes {count(len(entry.params), 'argument')}{lacks}"
    place = Place(specs[0].file.path, Span(specs[0].call.start, specs[-1].call.end))
    related = Related(entry.at(missing[0].param.span if missing else entry.span), "the parameter" if missing else "it")
    return Diagnostic(message, place, (related,), ops=(entry.name,))
