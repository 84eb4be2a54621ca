"""The tensors that a task makes or a graph gets, against those that the orchestration takes from them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.pypto.cpp_plain import plain
from opschema_rules.pypto.model import Program

_ASKS = re.compile(r"(?:\.|->)\s*(?:size|empty|\w+_count)\s*\(")


@rule("PTO125", "task-output", needs=(CPP,))
def task_output(program: Program) -> Iterator[Diagnostic]:
    """A tensor that the orchestration takes of a task's outputs or of a graph's arguments, and that is not there.

    `rt_submit_aiv_task()` returns the tensors that the runtime has made for the task: one for each `TensorCreateInfo` that was
    added with `add_output`, in this order. A tensor of the orchestration that is added as an output is not among them, nor are
    inputs. `get_ref()` with a larger index stops the program. `alloc_tensors()` returns one tensor for each of its arguments.

    Likewise the function of a graph (`rt_submit_graph`) gets the tensors of its `GraphTaskArgs`, and takes arbitrary memory beyond
    these. In a branch that is not reported.

    In a branch an output is a warning, and nothing if the file asks for the number of something (`size()`). Only plain code is
    checked: the payload and the outputs are local variables, and each use of them in the file is a statement of a few forms, such
    as `p.add_output(made);` and `const ChipTensor &c = outputs.get_ref(1);`. Each output is added by the name of a
    `TensorCreateInfo` or of a reference to one of the orchestration's tensors.

    Bad:

    ```cpp
    TensorCreateInfo made(shapes, 1, DataType::FLOAT32);
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(made);
    TaskOutputTensors outputs = rt_submit_aiv_task(0, p);
    const ChipTensor &c = outputs.get_ref(1);
    ```

    Good:

    ```cpp
    TensorCreateInfo made(shapes, 1, DataType::FLOAT32);
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(made);
    TaskOutputTensors outputs = rt_submit_aiv_task(0, p);
    const ChipTensor &c = outputs.get_ref(0);
    ```
    """
    part = program.orchestration
    if part is None or part.source is None or part.entry is None or not part.entry.beyond:
        return
    source = program.project.source(part.source)
    if source is None:
        return
    asks = _ASKS.search(source.text) is not None
    for item in part.entry.beyond:
        if (item.conditional and asks) or not plain(source.text).is_beyond(item):
            continue
        have = {0: "none", 1: "one"}.get(item.count, f"{item.count}")
        task = f"the orchestration takes output {item.index}, and the runtime makes {have} for this task"
        yield Diagnostic(
            task if item.outputs else f"the graph takes tensor {item.index}, and `{item.payload}` has {have}",
            Place(part.source, item.span),
            severity=Severity.WARNING if item.conditional else Severity.ERROR,
        )
