"""A small model of orchestrations: statements that write themselves as C++ and that run, one way through after the other.

A run asks :meth:`Machine.choose` wherever the program itself could go several ways; all answers together are all paths.
Loops run zero to two times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

MOST = 2
"""How often a loop runs at most."""

Argument: TypeAlias = int
"""A tensor: the orchestration's own by its index, -1 for any other."""


@dataclass(frozen=True)
class Added:
    """What is added to a payload: a tensor with its kind (``in``, ...), or a scalar."""

    kind: str
    argument: Argument = -1
    created: bool = False


@dataclass
class Args:
    """A payload; copies are other objects."""

    slots: list[Added] = field(default_factory=list)


Kernels: TypeAlias = "dict[str, int]"
"""The kernels of a task, by the field of ``MixedKernels``."""

Value: TypeAlias = "Args | Argument | Kernels | list[Args] | Lambda"


@dataclass(frozen=True)
class Submitted:
    """One call of a submit as it happened: its line, the ids of its kernels, its payload, and which of the orchestration's own
    tensors anything had used or written before.
    """

    line: int
    kernels: tuple[int, ...]
    slots: tuple[Added, ...]
    used: frozenset[Argument] = frozenset()
    written: frozenset[Argument] = frozenset()


@dataclass(frozen=True)
class Touched:
    """One read or write of a tensor of the orchestration's by itself."""

    line: int
    argument: Argument
    how: str


class TooManyPathsError(Exception):
    """The program has more paths than were asked for."""


class Machine:
    """One run: it follows ``script`` and then takes the first of each choice. ``undefined`` are the orchestration's own tensors
    that are read before anything writes them, ``changed`` those that are written.
    """

    def __init__(self, script: Sequence[int]) -> None:
        self.script = script
        self.taken: list[int] = []
        self.choices: list[int] = []
        self.compiled: dict[int, int] = {}
        self.submitted: list[Submitted] = []
        self.touched: list[Touched] = []
        self.used: set[Argument] = set()
        self.written: set[Argument] = set()
        self.undefined: set[Argument] = set()
        self.changed: set[Argument] = set()

    def submit(self, line: int, kernels: tuple[int, ...], slots: Sequence[Added]) -> None:
        used, written = frozenset(self.used), frozenset(self.written)
        self.submitted.append(Submitted(line, kernels, tuple(slots), used, written))
        self.undefined |= {slot.argument for slot in slots if slot.kind in ("in", "inout")} - self.written
        self.changed |= {slot.argument for slot in slots if slot.kind in ("out", "inout")}
        for slot in slots:
            self.use(slot.argument, writes=slot.kind in ("out", "no_dep"))

    def use(self, argument: Argument, *, writes: bool) -> None:
        self.used.add(argument)
        if writes:
            self.written.add(argument)

    def choose(self, ways: int) -> int:
        at = len(self.taken)
        self.choices.append(ways)
        self.taken.append(self.script[at] if at < len(self.script) else 0)
        return self.taken[at]


class Names:
    """Variables of a block, and of those around it."""

    def __init__(self, around: Names | None = None) -> None:
        self.around = around
        self.own: dict[str, Value] = {}

    def holder(self, name: str) -> Names:
        scope = self
        while name not in scope.own:
            assert scope.around is not None, name
            scope = scope.around
        return scope

    def get(self, name: str) -> Value:
        return self.holder(name).own[name]

    def args(self, name: str) -> Args:
        found = self.get(name)
        assert isinstance(found, Args)
        return found

    def number(self, name: str) -> int:
        found = self.get(name)
        assert isinstance(found, int)
        return found


class BreakError(Exception):
    """``break``."""


class ContinueError(Exception):
    """``continue``."""


class ReturnError(Exception):
    """``return``, with what is returned."""

    def __init__(self, value: Value | None = None) -> None:
        super().__init__()
        self.value = value


class Writer:
    """Writes lines; :attr:`line` is the number of the next."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    @property
    def line(self) -> int:
        return len(self.lines) + 1

    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text if not text.startswith("#") else text)


@dataclass
class Statement:
    """A statement."""

    def write(self, out: Writer) -> None:
        raise NotImplementedError

    def run(self, machine: Machine, names: Names) -> None:
        raise NotImplementedError


Block: TypeAlias = "list[Statement]"


def run_block(block: Block, machine: Machine, names: Names) -> None:
    inner = Names(names)
    for statement in block:
        statement.run(machine, inner)


def write_block(block: Block, out: Writer) -> None:
    out.depth += 1
    for statement in block:
        statement.write(out)
    out.depth -= 1


# Tensors


@dataclass(frozen=True)
class Tensor:
    """An expression that is a tensor: ``text`` as written, ``value`` as it runs."""

    text: str
    value: Callable[[Machine, Names], Argument]


def named(name: str) -> Tensor:
    return Tensor(name, lambda machine, names: names.number(name))


def own(index: int) -> Tensor:
    return Tensor(f"orch_args.tensor({index}).ref()", lambda machine, names: index)


def counted(name: str) -> Tensor:
    return Tensor(f"orch_args.tensor({name}).ref()", lambda machine, names: names.number(name))


def given(index: int) -> Tensor:
    """A tensor of the arguments of a graph."""
    return Tensor(f"args.tensor({index}).ref()", lambda machine, names: names.args("args").slots[index].argument)


def view(tensor: Tensor) -> Tensor:
    return Tensor(f"{tensor.text}.view(shapes, offsets)", tensor.value)


def made() -> Tensor:
    return Tensor("make_tensor(shapes, 2)", lambda machine, names: -1)


def either(first: Tensor, second: Tensor) -> Tensor:
    ways = (first, second)
    return Tensor(
        f"(n > 4 ? {first.text} : {second.text})", lambda machine, names: ways[machine.choose(2)].value(machine, names)
    )


# Plain statements


@dataclass
class Plain(Statement):
    """One line, and what it does."""

    text: str
    does: Callable[[Machine, Names], None] = lambda machine, names: None

    def write(self, out: Writer) -> None:
        out.put(self.text)

    def run(self, machine: Machine, names: Names) -> None:
        self.does(machine, names)


def declare_args(name: str, text: str = "CoreTaskArgs {};") -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.own[name] = Args()

    return Plain(text.format(name), does)


def copy_args(name: str, other: str, text: str = "CoreTaskArgs {} = {};") -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.own[name] = Args(list(names.args(other).slots))

    return Plain(text.format(name, other), does)


def refer(name: str, others: Sequence[str]) -> Statement:
    """``CoreTaskArgs &r = p;`` or ``= n > 1 ? p : q;``."""

    def does(machine: Machine, names: Names) -> None:
        names.own[name] = names.get(others[machine.choose(len(others)) if len(others) > 1 else 0])

    written = others[0] if len(others) == 1 else f"n > 1 ? {others[0]} : {others[1]}"
    return Plain(f"CoreTaskArgs &{name} = {written};", does)


def assign_args(name: str, other: str) -> Statement:
    """``p = q;``; an empty other is a fresh object."""

    def does(machine: Machine, names: Names) -> None:
        names.args(name).slots = list(names.args(other).slots) if other else []

    return Plain(f"{name} = {other or 'CoreTaskArgs()'};", does)


def reset(name: str) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.args(name).slots = []

    return Plain(f"{name}.reset();", does)


def add(name: str, kind: str, tensors: Sequence[Tensor], *, dot: str = ".") -> Plain:
    method = {"in": "add_input", "out": "add_output", "inout": "add_inout", "no_dep": "add_no_dep"}[kind]

    def does(machine: Machine, names: Names) -> None:
        names.args(name).slots += [Added(kind, tensor.value(machine, names)) for tensor in tensors]

    return Plain(f"{name}{dot}{method}({', '.join(tensor.text for tensor in tensors)});", does)


def add_created(name: str, *, dot: str = ".") -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.args(name).slots.append(Added("out", created=True))

    return Plain(f"{name}{dot}add_output(info);", does)


def add_scalars(name: str, count: int, how: str) -> Statement:
    """Add scalars: ``listed``, ``counted`` by a constant, or ``open``, where the program alone knows how many."""
    texts = {
        "listed": f"{name}.add_scalar({', '.join(['n'] * count)});",
        "counted": f"{name}.add_scalars(numbers, {count});",
        "open": f"{name}.add_scalars(numbers, n);",
    }

    def does(machine: Machine, names: Names) -> None:
        many = count if how != "open" else machine.choose(3)
        names.args(name).slots += [Added("scalar")] * many

    return Plain(texts[how], does)


def declare_tensor(name: str, tensor: Tensor, text: str = "ChipTensor {} = {};") -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.own[name] = tensor.value(machine, names)

    return Plain(text.format(name, tensor.text), does)


def assign_tensor(name: str, tensor: Tensor) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.holder(name).own[name] = tensor.value(machine, names)

    return Plain(f"{name} = {tensor.text};", does)


def declare_number(name: str, value: int) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        names.own[name] = value

    return Plain(f"int {name} = {value};", does)


def change_number(name: str, how: str, by: int = 1) -> Statement:
    """``k = 3;``, ``k += 3;``, ``k++;``."""

    def does(machine: Machine, names: Names) -> None:
        holder = names.holder(name)
        holder.own[name] = by if how == "=" else names.number(name) + (by if how == "+=" else 1)

    return Plain(f"{name}++;" if how == "++" else f"{name} {how} {by};", does)


@dataclass
class Touch(Statement):
    """``get_tensor_data(t, ...)`` or ``set_tensor_data``."""

    tensor: Tensor
    how: str
    line: int = 0

    def write(self, out: Writer) -> None:
        self.line = out.line
        call = "get_tensor_data<int>" if self.how == "read" else "set_tensor_data<int>"
        out.put(f"{call}({self.tensor.text}, 1, offsets);")

    def run(self, machine: Machine, names: Names) -> None:
        argument = self.tensor.value(machine, names)
        machine.touched.append(Touched(self.line, argument, self.how))
        if self.how == "read":
            machine.undefined |= {argument} - machine.written
        else:
            machine.changed.add(argument)
        machine.use(argument, writes=self.how == "written")


# Kernels and submits


@dataclass(frozen=True)
class Id:
    """An expression that is the id of a kernel."""

    text: str
    value: Callable[[Names], int]


def literal(value: int) -> Id:
    return Id(str(value), lambda names: value)


def macro(value: int) -> Id:
    return Id(f"FUNC_{value}", lambda names: value)


def variable(name: str) -> Id:
    return Id(name, lambda names: names.number(name))


def declare_mixed(name: str, ids: Sequence[Id]) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        fields = ("aic_kernel_id", "aiv0_kernel_id", "aiv1_kernel_id")
        names.own[name] = {where: item.value(names) for where, item in zip(fields, ids, strict=False)}

    given = f" = {{{', '.join(item.text for item in ids)}}}" if ids else ""
    return Plain(f"MixedKernels {name}{given};", does)


def set_kernel(name: str, where: str, kernel: Id) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        found = names.get(name)
        assert isinstance(found, dict)
        found[where] = kernel.value(names)

    return Plain(f"{name}.{where} = {kernel.text};", does)


@dataclass
class Submit(Statement):
    """A submit of a payload, for one kernel or several."""

    name: str
    kernel: Id | str
    result: str = ""
    taken: str = ""
    line: int = 0

    def write(self, out: Writer) -> None:
        self.line = out.line
        kept = f"TaskOutputTensors {self.result} = " if self.result else ""
        if isinstance(self.kernel, str):
            out.put(f"{kept}rt_submit_task({self.kernel}, {self.taken or self.name});")
        else:
            out.put(f"{kept}rt_submit_aiv_task({self.kernel.text}, {self.taken or self.name});")

    def run(self, machine: Machine, names: Names) -> None:
        if isinstance(self.kernel, str):
            found = names.get(self.kernel)
            assert isinstance(found, dict)
            ids = tuple(sorted(found.values()))
        else:
            ids = (self.kernel.value(names),)
        machine.submit(self.line, ids, names.args(self.name).slots)


# Branches and loops


@dataclass
class If(Statement):
    """``if``, ``else if``, ``else``: one block each; ``other`` tells that the last is an ``else``."""

    blocks: list[Block]
    other: bool

    def write(self, out: Writer) -> None:
        for index, block in enumerate(self.blocks):
            last = self.other and index == len(self.blocks) - 1
            head = "{" if last and index else f"if (n > {index}) {{"
            out.put(f"}} else {head}" if index else head)
            write_block(block, out)
        out.put("}")

    def run(self, machine: Machine, names: Names) -> None:
        way = machine.choose(len(self.blocks) + (0 if self.other else 1))
        if way < len(self.blocks):
            run_block(self.blocks[way], machine, names)


@dataclass
class Decided(Statement):
    """``if`` of a number that is known: ``if (i == 1) {``, ``if (i > 0) {``, with or without ``else``."""

    name: str
    sign: str
    other: int
    blocks: list[Block]

    def write(self, out: Writer) -> None:
        out.put(f"if ({self.name} {self.sign} {self.other}) {{")
        for index, block in enumerate(self.blocks):
            if index:
                out.put("} else {")
            write_block(block, out)
        out.put("}")

    def run(self, machine: Machine, names: Names) -> None:
        value = names.number(self.name)
        holds = {"==": value == self.other, "!=": value != self.other, "<": value < self.other, ">": value > self.other}
        way = 0 if holds[self.sign] else 1
        if way < len(self.blocks):
            run_block(self.blocks[way], machine, names)


@dataclass
class Compiled(Statement):
    """``#ifdef``, with or without ``#else``: the same way whenever it comes by."""

    blocks: list[Block]
    number: int

    def write(self, out: Writer) -> None:
        out.put(f"#ifdef WITH_{self.number}")
        for index, block in enumerate(self.blocks):
            if index:
                out.put("#else")
            out.put("{")
            write_block(block, out)
            out.put("}")
        out.put("#endif")

    def run(self, machine: Machine, names: Names) -> None:
        if self.number not in machine.compiled:
            machine.compiled[self.number] = machine.choose(2)
        way = machine.compiled[self.number]
        if way < len(self.blocks):
            run_block(self.blocks[way], machine, names)


@dataclass
class Scoped(Statement):
    """A block, plain or below a macro: ``PTO2_SCOPE() {``."""

    block: Block
    head: str = ""

    def write(self, out: Writer) -> None:
        out.put(f"{self.head} {{".strip())
        write_block(self.block, out)
        out.put("}")

    def run(self, machine: Machine, names: Names) -> None:
        run_block(self.block, machine, names)


@dataclass
class Loop(Statement):
    """``for``, ``while``, ``do``; ``counter`` is a name that the body sees, which ``times`` makes a constant loop that counts
    from ``start`` by ``step``.
    """

    kind: str
    block: Block
    counter: str = ""
    times: int = -1
    start: int = 0
    step: int = 1

    def write(self, out: Writer) -> None:
        name, sign = self.counter, "<" if self.step > 0 else ">"
        limit = str(self.start + self.times * self.step) if self.times >= 0 else "n"
        by = {1: f"{name}++", -1: f"--{name}"}.get(self.step, f"{name} += {self.step}")
        heads = {
            "for": f"for (int {name} = {self.start}; {name} {sign} {limit}; {by}) {{",
            "while": "while (n > 3) {",
            "do": "do {",
        }
        out.put(heads[self.kind])
        write_block(self.block, out)
        out.put("} while (n > 3);" if self.kind == "do" else "}")

    def run(self, machine: Machine, names: Names) -> None:
        times = (
            self.times if self.times >= 0 else machine.choose(MOST + 1) if self.kind != "do" else 1 + machine.choose(2)
        )
        for turn in range(times):
            inner = Names(names)
            if self.counter:
                inner.own[self.counter] = self.start + turn * self.step
            try:
                run_block(self.block, machine, inner)
            except BreakError:
                return
            except ContinueError:
                continue


@dataclass
class Switch(Statement):
    """``switch``: blocks with whether each is in braces and whether it falls through; the last may be the default."""

    cases: list[tuple[Block, bool, bool]]
    default: bool

    def write(self, out: Writer) -> None:
        out.put("switch (n) {")
        for index, (block, braced, falls) in enumerate(self.cases):
            last = self.default and index == len(self.cases) - 1
            label = "default:" if last else f"case {index}:"
            out.put(label + (" {" if braced else ""))
            write_block([*block, *([] if falls else [Plain("break;")])], out)
            if braced:
                out.put("}")
        out.put("}")

    def run(self, machine: Machine, names: Names) -> None:
        way = machine.choose(len(self.cases) + (0 if self.default else 1))
        try:
            for block, _, falls in self.cases[way:]:
                run_block(block, machine, names)
                if not falls:
                    return
        except BreakError:
            return


@dataclass
class Graph(Statement):
    """``rt_submit_graph(&layer, g)``, with arguments of its own."""

    function: Function
    tensors: list[Tensor]

    def write(self, out: Writer) -> None:
        added = ", ".join(tensor.text for tensor in self.tensors)
        out.put(f"{{ GraphTaskArgs g0; g0.add_inout({added}); rt_submit_graph(&{self.function.name}, g0); }}")

    def run(self, machine: Machine, names: Names) -> None:
        inner = Names()
        inner.own["args"] = Args([Added("inout", tensor.value(machine, names)) for tensor in self.tensors])
        try:
            for statement in self.function.body:
                statement.run(machine, inner)
        except ReturnError:
            return


def leave(how: str) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        raise {"break": BreakError, "continue": ContinueError, "return": ReturnError}[how]()

    return Plain(f"{how};", does)


def give(name: str) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        raise ReturnError(names.get(name))

    return Plain(f"return {name};", does)


# Functions


@dataclass
class Function:
    """A function of the file. Parameters are ``(kind, name)``: ``args&``, ``args*``, ``args``, ``tensor``, ``graph``, ``id``."""

    name: str
    parameters: list[tuple[str, str]]
    body: Block = field(default_factory=list)
    returns: str = "void"

    def write(self, out: Writer) -> None:
        types = {
            "args&": "CoreTaskArgs &",
            "args*": "CoreTaskArgs *",
            "args": "CoreTaskArgs ",
            "tensor": "const ChipTensor &",
            "graph": "const GraphTaskArgs &",
            "id": "int ",
        }
        given = ", ".join(types[kind] + name for kind, name in self.parameters)
        out.put(f"static {self.returns} {self.name}({given}) {{")
        out.put("    TensorCreateInfo info(shapes, 2, DataType::FLOAT32);")
        write_block(self.body, out)
        out.put("}")
        out.put("")


@dataclass(frozen=True)
class Lambda:
    """A lambda with the names that it sees."""

    block: tuple[Statement, ...]
    names: Names


def call(function: Function, given: Sequence[str | Tensor | Id], result: str = "") -> Statement:
    """A call; ``result`` is the variable that is declared with what it returns."""

    def does(machine: Machine, names: Names) -> None:
        inner = Names()
        for (kind, name), item in zip(function.parameters, given, strict=True):
            if isinstance(item, Tensor):
                inner.own[name] = item.value(machine, names)
            elif isinstance(item, Id):
                inner.own[name] = item.value(names)
            else:
                held = names.args(item)
                inner.own[name] = Args(list(held.slots)) if kind == "args" else held
        returned: Value | None = None
        try:
            for statement in function.body:
                statement.run(machine, inner)
        except ReturnError as end:
            returned = end.value
        if result:
            assert returned is not None
            names.own[result] = Args(list(returned.slots)) if isinstance(returned, Args) else returned

    written = [
        ("&" if kind == "args*" else "") + item if isinstance(item, str) else item.text
        for (kind, _), item in zip(function.parameters, given, strict=True)
    ]
    declared = {"CoreTaskArgs": f"CoreTaskArgs {result} = ", "const ChipTensor &": f"const ChipTensor &{result} = "}
    return Plain(f"{declared[function.returns] if result else ''}{function.name}({', '.join(written)});", does)


def lambda_that(name: str, statement: Plain) -> Statement:
    """``auto fill = [&]() { p.add_input(a); };``"""

    def does(machine: Machine, names: Names) -> None:
        names.own[name] = Lambda((statement,), names)

    return Plain(f"auto {name} = [&]() {{ {statement.text} }};", does)


def call_lambda(name: str) -> Statement:
    def does(machine: Machine, names: Names) -> None:
        found = names.get(name)
        assert isinstance(found, Lambda)
        for statement in found.block:
            statement.run(machine, Names(found.names))

    return Plain(f"{name}();", does)


@dataclass
class Program:
    """A file: functions before the entry, whose tensors ``a``, ``b``, ``c`` are the first three of its arguments."""

    functions: list[Function]
    body: Block

    def text(self) -> str:
        out = Writer()
        out.put('#include "pto_orchestration_api.h"')
        for value in range(1, 8):
            out.put(f"#define FUNC_{value} {value}")
        out.put("extern int n;")
        for function in self.functions:
            function.write(out)
        out.put('extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {')
        for index, name in enumerate("abc"):
            out.put(f"    const ChipTensor &{name} = orch_args.tensor({index}).ref();")
        out.put("    TensorCreateInfo info(shapes, 2, DataType::FLOAT32);")
        write_block(self.body, out)
        out.put("}")
        return "\n".join(out.lines) + "\n"

    def paths(self, most: int) -> Iterable[Machine]:
        """All runs.

        Raises:
            TooManyPathsError: there are more than ``most``.
        """
        waiting: list[list[int]] = [[]]
        count = 0
        while waiting:
            count += 1
            if count > most:
                raise TooManyPathsError
            script = waiting.pop()
            machine = self._run(script)
            for at in range(len(script), len(machine.taken)):
                waiting += [[*machine.taken[:at], way] for way in range(1, machine.choices[at])]
            yield machine

    def _run(self, script: list[int]) -> Machine:
        machine, names = Machine(script), Names()
        names.own.update({"a": 0, "b": 1, "c": 2})
        try:
            for statement in self.body:
                statement.run(machine, names)
        except ReturnError:
            pass
        return machine
