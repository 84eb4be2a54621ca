"""Texts are handed out to the processes that parse so that all end at about the same time."""

from __future__ import annotations

from opschema_cli.source.parse_process import Parsed, Task
from opschema_cli.source.python_workers import Parsers


class _Worker:
    """A process that takes whatever it is given, and answers when it is asked."""

    starting = False
    takes_texts = True
    ran_out_of_time = False

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    @property
    def in_flight(self) -> int:
        return sum(len(task.text) for task in self.tasks)

    def give(self, task: Task, *, hurried: bool = False) -> bool:
        self.tasks.append(task)
        return True

    def result(self) -> tuple[Task, Parsed]:
        task = self.tasks.pop(0)
        return task, Parsed(task.key, b"")


def parsers(workers: list[_Worker]) -> Parsers:
    made = Parsers(len(workers), local=False)
    made._workers += workers  # type: ignore[arg-type]
    return made


def test_nobody_holds_many_of_the_last_texts() -> None:
    workers = [_Worker(), _Worker()]
    made = parsers(workers)
    made.submit({f"k{number}": f"x = {number}\n" for number in range(8)})
    assert [len(worker.tasks) for worker in workers] == [3, 2]
    made._take(workers[0])  # type: ignore[arg-type]
    made._take(workers[0])  # type: ignore[arg-type]
    made._hand_out()
    assert [len(worker.tasks) for worker in workers] == [2, 2], "the one that was quick gets the next"
    assert len(made._queue) == 2


def test_of_many_each_holds_a_share() -> None:
    workers = [_Worker(), _Worker()]
    made = parsers(workers)
    made.submit({f"k{number}": f"x = {number}\n" for number in range(100)})
    assert all(10 < len(worker.tasks) < 40 for worker in workers)
