"""Parameters and fields that are tuples become lists, and so do the tuples that are passed."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK

LINES = HEAD.count("\n")
OP = """\
@magi_register_custom_op("kit::pad")
def pad(x: Tensor, by: tuple[int, int]) -> Tensor:  # both sides
    left, right = by
    return torch.nn.functional.pad(x, [left, right])
"""


def migrate(text: str, **others: str) -> Migrated:
    files = {**example_files([("python", text)]), **{f"kit/{name}.py": other for name, other in others.items()}}
    return migrate_files(PACK, "tuple-to-list", files)


def code(done: Migrated) -> str:
    return done.files[OPS_PATH].removeprefix(HEAD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tuple[int, int]", "list[int]"),
        ("tuple[int, ...]", "list[int]"),
        ("tuple[Tensor, Tensor, Tensor]", "list[Tensor]"),
        ("tuple[torch.Tensor, Tensor]", "list[torch.Tensor]"),
        ("Optional[tuple[float, float]]", "Optional[list[float]]"),
        ("tuple[bool, bool] | None", "list[bool] | None"),
        ('"tuple[int, int]"', '"list[int]"'),
        ("'Optional[tuple[int, int]]'", "'Optional[list[int]]'"),
        ("tuple[\n    int,\n    int,\n]", "list[int]"),
        ("tuple[(int, int)]", "list[int]"),
        ("tuple[\n    int,  # left\n    int,\n]", None),
        ("tuple[int, float]", None),
        ("tuple[str, str]", None),
        ("Pair", None),
    ],
)
def test_annotations(before: str, after: str | None) -> None:
    alias = "Pair = tuple[int, int]\n\n\n"
    text = alias + OP.replace("tuple[int, int]", before)
    done = migrate(text)
    if after is None:
        assert code(done) == text
        assert done.sites()[0].endswith("make `by` a list (left)")
    else:
        assert code(done) == alias + OP.replace("tuple[int, int]", after)
        assert done.notes() == []


def test_an_import_that_nothing_uses_any_more_goes() -> None:
    text = "from typing import Tuple\n\n\n" + OP.replace("tuple[", "Tuple[")
    assert code(migrate(text)) == OP.replace("tuple[int, int]", "list[int]")
    kept = text + "\n\ndef g(y: Tuple[int, int]): ...\n"
    assert code(migrate(kept)).startswith("from typing import Tuple\n")
    other = "from typing import Tuple\n\n\n" + OP
    assert code(migrate(other)).startswith("from typing import Tuple\n")


def test_callers() -> None:
    calls = """\
from kit.ops import pad


def g(x, both):
    pad(x, (1, 2))
    pad(x, by=(1, 2,))
    pad(
        x,
        (
            1,  # left
            2,
        ),
    )
    pad(x, both)
    pad(x, (0, 0) + both)
    pad(x, ())
    pad(x, (*both, 1))
    print((1, 2))
    torch.ops.kit.pad(x, (3, 4))
"""
    done = migrate(OP, use="import torch\n" + calls)
    expected = calls.replace("pad(x, (1, 2))", "pad(x, [1, 2])").replace("by=(1, 2,)", "by=[1, 2,]")
    expected = (
        expected.replace("        (\n", "        [\n")
        .replace("        ),\n", "        ],\n")
        .replace("(x, ())", "(x, [])")
        .replace("(*both, 1)", "[*both, 1]")
    )
    expected = expected.replace("kit.pad(x, (3, 4))", "kit.pad(x, [3, 4])")
    assert done.files["kit/use.py"] == "import torch\n" + expected


def test_a_default_goes_and_calls_pass_it() -> None:
    text = OP.replace("by: tuple[int, int]", "by: tuple[int, int] = (0, 1)")
    calls = "\n\ndef g(x, rest):\n    pad(x)\n    pad(x, (1, 1))\n    pad(*rest)\n"
    done = migrate(text + calls)
    assert code(done) == OP.replace("tuple[int, int]", "list[int]") + calls.replace(
        "pad(x)", "pad(x, by=[0, 1])"
    ).replace("(1, 1)", "[1, 1]")
    assert done.notes() == [f"{OPS_PATH}:{LINES + 10}: this may pass `by`, which is a list now"]


def test_two_defaults_go() -> None:
    text = (
        "@magi_register_custom_op()\ndef f(a: tuple[int, int] = (1, 2), b: tuple[int, int] = (3, 4)) -> Tensor: ...\n"
    )
    done = migrate(text + "\n\nf()\nf((5, 6))\nf(b=(5, 6))\n")
    calls = "f(a=[1, 2], b=[3, 4])\nf([5, 6], b=[3, 4])\nf(b=[5, 6], a=[1, 2])\n"
    assert code(done).endswith(f"def f(a: list[int], b: list[int]) -> Tensor: ...\n\n\n{calls}")


def test_a_default_of_none_stays() -> None:
    text = OP.replace("by: tuple[int, int]", "by: tuple[int, int] | None = None")
    assert code(migrate(text)) == text.replace("tuple[int, int]", "list[int]")


def test_a_default_that_cannot_go() -> None:
    text = OP.replace("by: tuple[int, int]", "eps: float = 0.0, by: tuple[int, int] = (0, 1)")
    done = migrate(text)
    assert code(done) == text
    assert "by has no default and would follow eps" in done.notes()[0]


def test_a_field_and_what_is_passed_as_it() -> None:
    cfg = "@dataclass(frozen=True)\nclass Cfg:\n    by: tuple[int, int] = (0, 1)\n    n: int = 0\n\n\n"
    op = OP.replace("by: tuple[int, int]", "cfg: Cfg").replace("= by", "= cfg.by")
    calls = "\n\ndef g(x):\n    return pad(x, Cfg((1, 2), 3)), pad(x, cfg=Cfg(by=(4, 5)))\n"
    done = migrate(cfg + op + calls)
    fields = cfg.replace("tuple[int, int] = (0, 1)", "list[int] = field(default_factory=lambda: [0, 1])")
    assert code(done) == fields + op + calls.replace("(1, 2)", "[1, 2]").replace("(4, 5)", "[4, 5]")
    assert done.notes() == []


def test_field_is_imported_where_it_is_not() -> None:
    head = (
        '"""Ops."""\n\nfrom dataclasses import dataclass\n\nimport torch\n'
        "from magi_compiler import magi_register_custom_op\n\n\n"
    )
    text = head + (
        "@dataclass(frozen=True)\nclass Cfg:\n    by: tuple[int, int] = (0, 1)\n\n\n"
        "@magi_register_custom_op()\ndef f(x: torch.Tensor, cfg: Cfg) -> torch.Tensor:\n    return x * cfg.by[0]\n"
    )
    done = migrate_files(PACK, "tuple-to-list", {"kit/ops.py": text})
    assert done.files["kit/ops.py"] == text.replace("import dataclass\n", "import dataclass, field\n").replace(
        "tuple[int, int] = (0, 1)", "list[int] = field(default_factory=lambda: [0, 1])"
    )


def test_the_meta_function_says_the_same() -> None:
    meta = "def meta(x, by: tuple[int, int]):\n    return x.new_empty(x.shape[0] + by[0] + by[1])\n\n\n"
    op = OP.replace('"kit::pad"', '"kit::pad", infer_output_meta_fn=meta')
    assert code(migrate(meta + op)) == (meta + op).replace("tuple[int, int]", "list[int]")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("by + (0,)", "by + (0,)"),
        ("(0,) + by", "(0,) + by"),
        ("by[1:] + (0,)", "by[1:] + (0,)"),
        ("by[:1][:1] == (1,)", "by[:1][:1] == (1,)"),
        ("by[1:] + [0], by[0] == 1", None),
        ("by == (1, 1)", "by == (1, 1)"),
        ("(1, 1) != by", "(1, 1) != by"),
        ("by in seen", "by in seen"),
        ("seen[by]", "seen[by]"),
        ("{by: 1}", "by: 1"),
        ("{by}", "by"),
        ("isinstance(by, tuple)", "isinstance(by, tuple)"),
        ("hash(by)", "hash(by)"),
        ("'%d' % by", "'%d' % by"),
        ("by[0] + by[1]", None),
        ("by is None", None),
        ("by + [0]", None),
        ("len(by), [*by], sum(by), x.permute(by), x.view(*by)", None),
        ("[by for by in seen if by == (1, 1)]", None),
    ],
)
def test_uses_that_a_list_does_not_allow(line: str, said: str | None) -> None:
    text = OP.replace("    return", f"    print({line})\n    return")
    done = migrate(text)
    assert code(done) == text.replace("tuple[int, int]", "list[int]")
    notes = [f"{OPS_PATH}:{LINES + 4}: `by` is a list now: `{said}` means something else"]
    assert done.notes() == (notes if said else [])


def test_uses_of_a_field_by_methods_and_other_functions_are_noted() -> None:
    method = "    def sides(self, by):\n        return (0,) + self.by, by + (1,)\n\n"
    method += "    def names(self):\n        return locals()\n\n\n"
    cfg = f"@dataclass(frozen=True)\nclass Cfg:\n    by: tuple[int, int]\n\n{method}"
    reads = "\n\ndef first(cfg: Cfg, other: int):\n    return table[cfg.by], other.by == (1, 1), cfg.by[0]\n"
    done = migrate(cfg + OP.replace("by: tuple[int, int]", "cfg: Cfg").replace("= by", "= cfg.by") + reads)
    assert sorted(done.notes()) == [
        f"{OPS_PATH}:{LINES + 6}: `self.by` is a list now: `(0,) + self.by` means something else",
        f"{OPS_PATH}:{LINES + 19}: `cfg.by` is a list now: `table[cfg.by]` means something else",
    ]


def test_a_hash_of_the_dataclass_is_noted() -> None:
    cfg = "import functools\n\n\n@dataclass(frozen=True)\nclass Cfg:\n    by: tuple[int, int]\n\n\n"
    op = OP.replace("by: tuple[int, int]", "cfg: Cfg").replace("= by", "= cfg.by")
    done = migrate(cfg + op + "\n\n@functools.lru_cache\ndef plan(cfg: Cfg): ...\n\n\ncache = {}\nself.cache = cache\n")
    assert done.notes() == [f"{OPS_PATH}:{LINES + 15}: a `Cfg` with a list in `by` has no hash"]


def test_lists_and_ops_that_are_to_fail_are_no_sites() -> None:
    assert migrate(OP.replace("tuple[int, int]", "list[int]")).sites() == []
    assert migrate(OP.replace("-> Tensor", "-> tuple[Tensor, Tensor]").replace("tuple[int, int]", "int")).sites() == []


def test_a_field_of_another_file() -> None:
    head = "from dataclasses import dataclass\n\n\n"
    config = head + "@dataclass(frozen=True)\nclass Cfg:\n    by: tuple[int, int]\n\n\nSMALL = Cfg((1, 1))\n"
    op = OP.replace("by: tuple[int, int]", "cfg: Cfg").replace("= by", "= cfg.by")
    files = {**example_files([("python", "from kit.config import Cfg\n\n\n" + op)]), "kit/config.py": config}
    done = migrate_files(PACK, "tuple-to-list", files)
    assert done.files == {
        **files,
        "kit/config.py": config.replace("tuple[int, int]", "list[int]").replace("(1, 1)", "[1, 1]"),
    }
