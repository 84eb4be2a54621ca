"""Orchestrations at random: what fills payloads, in branches and loops, through functions of the file, and submits them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tests.rules.pypto import paths
from tests.rules.pypto.paths import Block, Function, Id, Program, Statement, Tensor

Loops: TypeAlias = Literal["any", "open", "counted"]

KINDS = ("in", "in", "out", "inout", "no_dep")
FIELDS = ("aic_kernel_id", "aiv0_kernel_id", "aiv1_kernel_id")


@dataclass
class Seen:
    """The names that a place sees, by kind: ``args``, ``pointer``, ``tensor``, ``id``, ``mixed``; of loops ``counter``, and
    ``turn`` where these turn a known number of times.
    """

    names: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    entry: bool = True
    looping: bool = False
    breaking: bool = False
    returns: str = ""
    depth: int = 0

    def inner(self, *, looping: bool = False, breaking: bool = False) -> Seen:
        looping, breaking = looping or self.looping, breaking or self.breaking
        return replace(
            self, names=dict(self.names), own=set(), depth=self.depth + 1, looping=looping, breaking=breaking
        )

    def all(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.names.items() if kind in kinds]

    def declare(self, name: str, kind: str) -> None:
        self.names[name] = kind
        self.own.add(name)


class Generator:
    """Programs of one seed; each feature is in some of them. ``loops`` leaves out some: ``open`` those that turn a known number
    of times, ``counted`` what hangs on a number that is not known.
    """

    def __init__(self, seed: int, *, loops: Loops = "any") -> None:
        self.random = random.Random(seed)
        self.loops = loops
        self.functions: list[Function] = []
        self.numbers = 0

    def program(self) -> Program:
        self.functions = []
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self.functions.append(self.function())
        seen = Seen()
        for name in "abc":
            seen.declare(name, "tensor")
        body = [self.declared_args(seen), *self.block(seen, self.random.randint(4, 9))]
        body += [self.submit_of(seen, name) for name in sorted(seen.own & set(seen.all("args")))]
        return Program(self.functions, body)

    def function(self) -> Function:
        kind = self.random.choice(("args&", "args&", "args*", "args", "makes", "picks", "graph"))
        name, seen = f"help{len(self.functions)}", Seen(entry=False)
        if kind == "picks":
            parameters = [("tensor", "x"), ("tensor", "y")]
            body: Block = [paths.If([[paths.give("x")]], False), paths.give("y")]
            return Function(name, parameters, body, "const ChipTensor &")
        seen.declare("x", "tensor")
        if kind == "graph":
            seen.declare("y", "tensor")
            first = [
                paths.declare_tensor(name, paths.given(at), "const ChipTensor &{} = {};")
                for at, name in enumerate("xy")
            ]
            body = [*first, self.declared_args(seen), *self.block(seen, self.random.randint(2, 4))]
            return Function(name, [("graph", "args")], body)
        if kind == "makes":
            seen.returns = "p"
            seen.declare("p", "args")
            body = [paths.declare_args("p"), *self.block(seen, self.random.randint(1, 4)), paths.give("p")]
            return Function(name, [("tensor", "x")], body, "CoreTaskArgs")
        seen.declare("p", "pointer" if kind == "args*" else "args")
        seen.declare("k", "id")
        return Function(name, [(kind, "p"), ("tensor", "x"), ("id", "k")], self.block(seen, self.random.randint(1, 4)))

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, seen: Seen, size: int) -> Block:
        block: Block = []
        for _ in range(size):
            block.append(self.statement(seen))
            if getattr(block[-1], "text", "") in ("break;", "continue;", "return;", "return p;"):
                break
        return block

    def statement(self, seen: Seen) -> Statement:
        makers = {
            self.added: 9,
            self.submitted: 4,
            self.declared_args: 2,
            self.scalars: 2,
            self.reset: 1,
            self.tensor: 2,
            self.assigned: 1,
            self.number: 1,
            self.touched: 1,
            self.mixed: 1,
            self.called: 3 if self.functions else 0,
            self.decided: 2 if seen.depth < 3 and self.known(seen) else 0,
            self.branch: 3 if seen.depth < 3 else 0,
            self.loop: 2 if seen.depth < 3 else 0,
            self.switch: 1 if seen.depth < 2 else 0,
            self.scoped: 1 if seen.depth < 3 else 0,
            self.left: 1 if seen.depth else 0,
            self.rare: 1 if self.random.random() < 0.15 else 0,
        }
        maker = self.random.choices(list(makers), list(makers.values()))[0]
        return maker(seen)

    def fresh(self, seen: Seen, pool: str) -> str:
        """A name for a variable that this block does not declare yet; it may hide one of a block around it."""
        free = [name for name in pool if name not in seen.own]
        self.numbers += 1
        return self.random.choice(free) if free else f"{pool[0]}{self.numbers}"

    def declared_args(self, seen: Seen) -> Statement:
        others = seen.all("args")
        name = self.fresh(seen, "pqr")
        others = [other for other in others if other != name]
        how = self.random.random()
        text = self.random.choice(("CoreTaskArgs {};", "CoreTaskArgs {}{{}};", "CoreTaskArgs {} = CoreTaskArgs();"))
        made = paths.declare_args(name, text)
        if others and how < 0.2:
            text = self.random.choice(("CoreTaskArgs {} = {};", "CoreTaskArgs {}({});", "auto {} = {};"))
            made = paths.copy_args(name, self.random.choice(others), text)
        elif others and how < 0.3:
            made = paths.refer(name, [self.random.choice(others)])
        seen.declare(name, "args")
        return made

    def added(self, seen: Seen) -> Statement:
        name = self.random.choice(seen.all("args", "pointer") or [""])
        if not name:
            return self.declared_args(seen)
        dot = "->" if seen.names[name] == "pointer" else "."
        if self.random.random() < 0.15:
            return paths.add_created(name, dot=dot)
        many = self.random.choice((1, 1, 1, 2))
        return paths.add(name, self.random.choice(KINDS), [self.tensor_of(seen) for _ in range(many)], dot=dot)

    def scalars(self, seen: Seen) -> Statement:
        names = seen.all("args")
        if not names:
            return self.declared_args(seen)
        how = self.random.choice(("listed", "listed", "counted", "open"))
        return paths.add_scalars(self.random.choice(names), self.random.choice((1, 1, 2, 3)), how)

    def reset(self, seen: Seen) -> Statement:
        names = seen.all("args")
        return paths.reset(self.random.choice(names)) if names else self.declared_args(seen)

    def assigned(self, seen: Seen) -> Statement:
        names = seen.all("args")
        if not names:
            return self.declared_args(seen)
        name = self.random.choice(names)
        others = [other for other in names if other != name]
        return paths.assign_args(name, self.random.choice(["", *others]))

    def tensor(self, seen: Seen) -> Statement:
        changeable = [name for name in seen.all("tensor") if name in "tu"]
        if changeable and self.random.random() < 0.4:
            return paths.assign_tensor(self.random.choice(changeable), self.tensor_of(seen))
        tensor, name = self.tensor_of(seen), self.fresh(seen, "tu")
        if tensor.text == name or f"{name}." in tensor.text or f"{name} " in tensor.text or f" {name})" in tensor.text:
            tensor = paths.named("x" if "x" in seen.names else "a")
        seen.declare(name, "tensor")
        return paths.declare_tensor(name, tensor, self.random.choice(("ChipTensor {} = {};", "auto {} = {};")))

    def number(self, seen: Seen) -> Statement:
        names = [name for name in seen.all("id") if name in "kl"]
        if names and self.random.random() < 0.5:
            how = self.random.choice(("=", "=", "+=", "++"))
            return paths.change_number(self.random.choice(names), how, self.random.randint(1, 7))
        name = self.fresh(seen, "kl")
        seen.declare(name, "id")
        return paths.declare_number(name, self.random.randint(1, 7))

    def mixed(self, seen: Seen) -> Statement:
        names = seen.all("mixed")
        if names and self.random.random() < 0.5:
            return paths.set_kernel(self.random.choice(names), self.random.choice(FIELDS), self.id_of(seen))
        name = self.fresh(seen, "mw")
        ids = [self.id_of(seen) for _ in range(self.random.choice((0, 2, 3)))]
        if any(item.text == name for item in ids):
            ids = []
        seen.declare(name, "mixed")
        return paths.declare_mixed(name, ids)

    def touched(self, seen: Seen) -> Statement:
        return paths.Touch(self.tensor_of(seen), self.random.choice(("read", "read", "written")))

    def submitted(self, seen: Seen) -> Statement:
        names = seen.all("args", "pointer")
        if not names:
            return self.declared_args(seen)
        return self.submit_of(seen, self.random.choice(names))

    def submit_of(self, seen: Seen, name: str) -> Statement:
        taken = f"*{name}" if seen.names[name] == "pointer" else name
        mixed = seen.all("mixed")
        kernel = self.random.choice(mixed) if mixed and self.random.random() < 0.4 else self.id_of(seen)
        return paths.Submit(name, kernel, taken=taken)

    def called(self, seen: Seen) -> Statement:
        function = self.random.choice(self.functions)
        if function.parameters[0][0] == "graph":
            return paths.Graph(function, [self.tensor_of(seen), self.tensor_of(seen)])
        if function.returns == "CoreTaskArgs":
            given, name = self.tensor_of(seen), self.fresh(seen, "pqr")
            seen.declare(name, "args")
            return paths.call(function, [given], name)
        if function.returns != "void":
            pair, name = [self.tensor_of(seen), self.tensor_of(seen)], self.fresh(seen, "vw")
            if any(name in item.text for item in pair):
                pair = [paths.own(0), paths.own(1)] if seen.entry else [paths.named("x"), paths.named("x")]
            seen.declare(name, "tensor")
            return paths.call(function, pair, name)
        names = seen.all("args")
        if not names:
            return self.declared_args(seen)
        return paths.call(function, [self.random.choice(names), self.tensor_of(seen), self.id_of(seen)])

    def known(self, seen: Seen) -> list[str]:
        """The names of numbers; where loops are counted, of those alone that are always known."""
        return (
            seen.all("turn")
            if self.loops == "counted"
            else []
            if self.loops == "open"
            else seen.all("turn", "counter", "id")
        )

    def decided(self, seen: Seen) -> Statement:
        blocks = [self.block(seen.inner(), self.random.randint(1, 2)) for _ in range(self.random.choice((1, 2)))]
        name, sign = self.random.choice(self.known(seen)), self.random.choice(("==", "!=", "<", ">"))
        return paths.Decided(name, sign, self.random.randint(0, 3), blocks)

    def branch(self, seen: Seen) -> Statement:
        blocks = [self.block(seen.inner(), self.random.randint(1, 3)) for _ in range(self.random.choice((1, 2, 2, 3)))]
        if self.random.random() < 0.15 and (self.loops == "any" or not seen.looping):
            self.numbers += 1
            return paths.Compiled(blocks[:2], self.numbers)
        return paths.If(blocks, len(blocks) > 1 and self.random.random() < 0.7)

    def loop(self, seen: Seen) -> Statement:
        inner = seen.inner(looping=True, breaking=True)
        kind = self.random.choice(("for", "for", "while", "do" if self.loops == "any" else "while"))
        counter, times, start, step = "", -1, 0, 1
        if kind == "for":
            counter = self.random.choice("ij")
            if self.loops != "open" and self.random.random() < (0.8 if self.loops == "counted" else 0.4):
                times, start, step = self.random.choice(
                    ((2, 0, 1), (2, 0, 1), (3, 1, 1), (2, 3, -1), (2, 0, 2), (0, 1, 1))
                )
            inner.declare(counter, "counter" if times < 0 else "turn")
        return paths.Loop(kind, self.block(inner, self.random.randint(1, 4)), counter, times, start, step)

    def switch(self, seen: Seen) -> Statement:
        cases = []
        for _ in range(self.random.randint(1, 3)):
            braced = self.random.random() < 0.5
            block = self.block(seen.inner(breaking=True), self.random.randint(1, 2))
            cases.append((block, True if _declares(block) else braced, self.random.random() < 0.25))
        return paths.Switch(cases, self.random.random() < 0.5)

    def scoped(self, seen: Seen) -> Statement:
        head = self.random.choice(("", "PTO2_SCOPE()"))
        return paths.Scoped(self.block(seen.inner(), self.random.randint(1, 3)), head)

    def left(self, seen: Seen) -> Statement:
        if seen.looping and self.random.random() < 0.5:
            return paths.leave("continue")
        if seen.breaking:
            return paths.leave("break")
        return paths.give(seen.returns) if seen.returns and seen.names["p"] == "args" else paths.leave("return")

    def rare(self, seen: Seen) -> Statement:
        """A reference to one of two, or a lambda that fills a payload."""
        names = seen.all("args")
        if len(names) > 1 and self.random.random() < 0.5:
            free = [name for name in "gh" if name not in seen.own]
            if free:
                pair = self.random.sample(names, 2)
                seen.declare(free[0], "args")
                return paths.refer(free[0], pair)
        lambdas = seen.all("lambda")
        if lambdas:
            return paths.call_lambda(self.random.choice(lambdas))
        if not names or "fill" in seen.own:
            return self.added(seen)
        filled = paths.add(self.random.choice(names), "in", [paths.named("x" if "x" in seen.names else "a")])
        seen.declare("fill", "lambda")
        return paths.lambda_that("fill", filled)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def tensor_of(self, seen: Seen) -> Tensor:
        tensors = [paths.named(name) for name in seen.all("tensor")]
        way = self.random.random()
        if way < 0.06 and len(tensors) > 1:
            return paths.either(*self.random.sample(tensors, 2))
        if way < 0.12:
            return paths.made()
        if way < 0.2 and seen.entry:
            return paths.own(self.random.randint(0, 4))
        counters = seen.all("turn") if self.loops == "counted" else seen.all("counter", "turn")
        if way < 0.24 and seen.entry and counters:
            return paths.counted(self.random.choice(counters))
        found = self.random.choice(tensors)
        return paths.view(found) if way > 0.8 else found

    def id_of(self, seen: Seen) -> Id:
        names = seen.all("id", "counter", "turn")
        way = self.random.random()
        if names and way < 0.3:
            return paths.variable(self.random.choice(names))
        number = self.random.randint(1, 7)
        return paths.macro(number) if way < 0.6 else paths.literal(number)


def _declares(block: Block) -> bool:
    """Whether a block declares a variable, as no case without braces may."""
    return any(
        getattr(item, "text", "").startswith(("CoreTaskArgs", "ChipTensor", "auto", "int", "Mixed", "const"))
        for item in block
    )
