"""The table of results: the functions of torch that return one tensor, return a view, or do not write in place.

``python -m benchmarks.torch_results`` writes it from an installed torch.
"""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

import msgspec

from opschema_cli.installed_tables import installed_table

TABLE = Path(__file__).with_name("results.json")


class Results(msgspec.Struct, frozen=True, dict=True):
    """Names, separated by spaces.

    ``functions`` (under ``torch.``) and ``methods`` return one tensor in every overload; of methods ``fresh`` never return what
    they are passed or a view of it, ``views`` always return a view of the tensor, ``unwritten`` (``t_``) write no element of it,
    and ``reshaping`` may change its shape. ``metadata`` are attributes and methods that depend on no element.
    """

    torch: str
    functions: str
    methods: str
    fresh: str
    views: str
    unwritten: str
    reshaping: str
    metadata: str

    @cached_property
    def names(self) -> dict[str, frozenset[str]]:
        """The names of each field."""
        return {name: frozenset(getattr(self, name).split()) for name in self.__struct_fields__}


@cache
def torch_results() -> Results:
    """The table.

    Raises:
        OpschemaError: its file is missing or damaged.
    """
    return installed_table(TABLE, Results)


def torch_names(field: str) -> frozenset[str]:
    """The names of a field of the table."""
    return torch_results().names[field]
