"""The arguments that a scene test passes, against those that its orchestration takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.pypto.cpp_plain import plain
from opschema_rules.pypto.harness import harness_of
from opschema_rules.pypto.model import OrchestrationPart, Program
from opschema_rules.pypto.rules.limits import expected_at
from opschema_rules.pypto.scene_classes import BuiltArgument, built_arguments
from opschema_rules.pypto.scenes import Scene


@rule("PTO126", "scene-arguments", needs=(CPP,))
def scene_arguments(program: Program) -> Iterator[Diagnostic]:
    """A scene test whose `generate_args()` does not return what its orchestration takes.

    The orchestration gets the tensors and scalars of `TaskArgsBuilder(...)` in their order. A tensor without an entry in the
    orchestration's `signature` is rejected. `orch_args.tensor(i)` and `orch_args.scalar(i)` beyond the last argument are
    arbitrary memory, and a run with fewer arguments than `expected_arg_count` fails, where the tree's runtime checks it. The
    golden function finds the arguments by their names. `TaskArgsBuilder` itself refuses a tensor behind a scalar and, in newer
    harnesses, a name that another argument or one of its own members has; this is checked in all tests that do not expect errors.

    Otherwise only plain tests on one chip (`level=2`) are checked: the class has nothing but its `CALLABLE`, its `CASES`,
    constants, the two functions and `compare_outputs()`, `generate_args()` returns a list of `TensorArg` and `Scalar`, and both
    functions are straight lines of code. The golden function may do nothing with its arguments but read them and set their items.
    What the orchestration takes counts in a declaration such as `int n = orch_args.scalar(0);` outside of branches, loops and
    macros, and only if it never asks for the number of its arguments.

    Bad:

    ```python program/test_add.py
    import torch
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {
            "orchestration": {
                "source": "orchestration/main.cpp",
                "function_name": "aicpu_orchestration_entry",
                "signature": [D.IN, D.IN, D.OUT],
            },
            "incores": [
                {
                    "func_id": 0,
                    "source": "kernels/aiv/add.cpp",
                    "core_type": "aiv",
                    "signature": [D.IN, D.IN, D.OUT],
                },
            ],
        }
        CASES = [{"name": "small"}]

        def generate_args(self, params):
            return TaskArgsBuilder(
                TensorArg("a", torch.ones(8)),
                TensorArg("b", torch.ones(8)),
                TensorArg("bias", torch.ones(8)),
                TensorArg("c", torch.zeros(8)),
            )
    ```

    Good:

    ```python program/test_add.py
    import torch
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {
            "orchestration": {
                "source": "orchestration/main.cpp",
                "function_name": "aicpu_orchestration_entry",
                "signature": [D.IN, D.IN, D.OUT],
            },
            "incores": [
                {
                    "func_id": 0,
                    "source": "kernels/aiv/add.cpp",
                    "core_type": "aiv",
                    "signature": [D.IN, D.IN, D.OUT],
                },
            ],
        }
        CASES = [{"name": "small"}]

        def generate_args(self, params):
            return TaskArgsBuilder(
                TensorArg("a", torch.ones(8)),
                TensorArg("b", torch.ones(8)),
                TensorArg("c", torch.zeros(8)),
            )
    ```
    """
    yield from _refused(program)
    scene, part = program.scene, program.orchestration
    if scene is None or program.listed:
        return
    for name, span in scene.unknown:
        names = [item.name for item in scene.arguments]
        hint = did_you_mean(near_name(name, names, 0.6)) or f"; it passes {listed(names)}"
        message = f"`generate_args()` passes no argument `{name}`{hint}"
        yield Diagnostic(message, Place(program.file.path, span))
    if part is not None:
        yield from _without_entry(part, scene)
        yield from _not_passed(program, part, scene)
        yield from _too_few(program, part, scene)


def _refused(program: Program) -> Iterator[Diagnostic]:
    """Yield findings on arguments that `TaskArgsBuilder` rejects with an error when they are added."""
    members = harness_of(program.project).members
    for arguments in built_arguments(program.file, program.owner, members) if program.owner is not None else ():
        seen: dict[str, BuiltArgument] = {}
        scalar: BuiltArgument | None = None
        for item in arguments:
            first = seen.setdefault(item.name, item)
            if scalar is not None and not item.is_scalar:
                message = "a tensor follows a scalar, and `TaskArgsBuilder` rejects it: put all tensors first"
                yield _of_argument(program, item, message, scalar, "the scalar")
                break
            if members and item.name and first is not item:
                message = f"two arguments have the name `{item.name}`, and `TaskArgsBuilder` rejects the second"
                yield _of_argument(program, item, message, first, "the first one")
            elif item.name in members:
                yield _of_argument(
                    program, item, f"`TaskArgsBuilder` has a member `{item.name}`, and rejects the argument"
                )
            scalar = item if item.is_scalar and scalar is None else scalar


def _of_argument(
    program: Program, item: BuiltArgument, message: str, other: BuiltArgument | None = None, what: str = ""
) -> Diagnostic:
    path = program.file.path
    related = (Related(Place(path, other.expr.span), what),) if other is not None else ()
    return Diagnostic(message, Place(path, item.expr.span), related)


def _without_entry(part: OrchestrationPart, scene: Scene) -> Iterator[Diagnostic]:
    """Yield a finding on the first tensor without an entry in the orchestration's signature."""
    slots, tensors = part.signature.slots if part.signature is not None else None, scene.of("tensor")
    if (
        part.signature is None
        or slots is None
        or not scene.within.start <= part.signature.expr.start < scene.within.end
    ):
        return
    if part.signature.expr.kind == "list" and len(tensors) > len(slots):
        first = tensors[len(slots)]
        yield Diagnostic(
            f"`generate_args()` passes {count(len(tensors), 'tensor')}, and the orchestration's `signature` has "
            f"{count(len(slots), 'entry', 'entries')}: `{first.name}` is rejected",
            part.at(first.expr),
            (part.related(part.signature.expr, "the signature"),),
        )


def _not_passed(program: Program, part: OrchestrationPart, scene: Scene) -> Iterator[Diagnostic]:
    """Yield findings on the last tensor and the last scalar that the orchestration always takes, if the test does not pass them."""
    slots = part.signature.slots if part.signature is not None else None
    passed = {kind: len(scene.of(kind)) for kind in _KINDS}
    beyond = [item for item in part.entry.needed if item.index >= passed[item.kind]] if part.entry is not None else []
    text = _text(program, part) if beyond else ""
    known = [item for item in beyond if text and plain(text).is_argument(item.span)]
    for kind in _KINDS:
        item = max((item for item in known if item.kind == kind), key=lambda item: item.index, default=None)
        if item is not None and (slots is None or kind == "scalar" or item.index < len(slots)):
            yield Diagnostic(
                f"`generate_args()` passes {count(passed[kind], kind)}, and the orchestration takes {kind} {item.index}",
                part.at(scene.call.items[0]),
                (Related(Place(part.source or "", item.span), "taken here"),),
            )


def _too_few(program: Program, part: OrchestrationPart, scene: Scene) -> Iterator[Diagnostic]:
    """Yield a finding on a test that passes fewer arguments than the configuration beside the orchestration expects."""
    passed, expected = len(scene.arguments), part.entry.expected if part.entry is not None else -1
    if expected <= passed or "config_name" in part.fields or not (_text(program, part) and _is_counted(program)):
        return
    at = expected_at(program, part, expected)
    if at is not None:
        yield Diagnostic(
            f"`generate_args()` passes {count(passed, 'argument')}, and `expected_arg_count` is {expected}: the run fails",
            part.at(scene.call.items[0]),
            (Related(at, "the expected number"),),
        )


def _text(program: Program, part: OrchestrationPart) -> str:
    """Return the text of an orchestration; empty if it may check its number of arguments."""
    source = program.project.source(part.source) if part.source is not None else None
    return source.text if source is not None and _ASKS.search(source.text) is None else ""


def _is_counted(program: Program) -> bool:
    """Whether the tree's runtime of a program compares the number of arguments with the expected one."""
    ending = f"/runtime/{program.runtime}/aicpu/aicpu_executor.cpp"
    workspace = program.project.workspace
    executors = [path for path in workspace.files if program.runtime and path.endswith(ending)]
    return bool(executors) and all(_COMPARES.search(workspace.peek(path)) for path in executors)


_KINDS: tuple[Literal["tensor", "scalar"], ...] = ("tensor", "scalar")
_ASKS = re.compile(r"\b(?:tensor|scalar|arg)\w*_count\s*\(|\bsize\s*\(")
_COMPARES = re.compile(rb"<\s*(?:\w+\.)?expected_arg_count\b")
