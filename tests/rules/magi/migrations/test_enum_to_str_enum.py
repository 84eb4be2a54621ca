"""Enumerations that ops take become strings; what compares them by identity compares them by value."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK

LINES = HEAD.count("\n")
ENUM = """\
class Mode(Enum):  # how
    A = "a"
    B = "b"
"""
MIXED = ENUM.replace("(Enum)", "(str, Enum)")
OP = """\


@magi_register_custom_op("kit::f")
def f(x: Tensor, mode: Mode) -> Tensor:
    if mode is Mode.A:  # the first
        return x.clone()
    return x * 2
"""
EQUAL = OP.replace("mode is Mode.A", "mode == Mode.A")


def migrate(text: str, **others: str) -> Migrated:
    files = {**example_files([("python", text)]), **{f"kit/{name}.py": other for name, other in others.items()}}
    return migrate_files(PACK, "enum-to-str-enum", files)


def code(done: Migrated) -> str:
    return done.files[OPS_PATH].removeprefix(HEAD)


def test_the_class_and_the_op() -> None:
    done = migrate(ENUM + OP)
    assert code(done) == MIXED + EQUAL
    assert done.notes() == []
    assert done.sites() == [f"{OPS_PATH}:{LINES + 1}: make the members of `Mode` strings"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m is not Mode.A", "m != Mode.A"),
        ("m is  not\tMode.A", "m !=\tMode.A"),
        ("Mode.A is m", "Mode.A == m"),
        ("(m) is(Mode.A)", "(m) ==(Mode.A)"),
        ("m is Mode.A is not Mode.B", "m == Mode.A != Mode.B"),
        ("m is Mode('a')", "m == Mode('a')"),
        ("m is Mode['A']", "m == Mode['A']"),
        ("m is FIRST", "m == FIRST"),
        ("mode is m", "mode == m"),
        ("maybe is m", "maybe == m"),
        ("[v for v in m if v is Mode.A]", "[v for v in m if v == Mode.A]"),
        ("m if m is Mode.A else None", "m if m == Mode.A else None"),
        ("(lambda m: m is Mode.A)(m)", "(lambda m: m == Mode.A)(m)"),
        ("m is None", "m is None"),
        ("mode is None", "mode is None"),
        ("mode is not None", "mode is not None"),
        ("type(m) is Mode", "type(m) is Mode"),
        ("m is Other.A", "m is Other.A"),
        ("m is Mode.A.value", "m is Mode.A.value"),
        ("(lambda mode: mode is m)(m)", "(lambda mode: mode is m)(m)"),
        ("[mode is m for mode in m]", "[mode is m for mode in m]"),
        ('"m is Mode.A"', '"m is Mode.A"'),
    ],
)
def test_comparisons(before: str, after: str) -> None:
    more = "\n\nFIRST = Mode.A\n\n\nclass Other(Enum):\n    A = 1\n\n\ndef g(m, mode: Mode, maybe: Optional[Mode] = None):\n"
    done = migrate(f"{ENUM}{OP}{more}    return {before}\n")
    assert code(done) == f"{MIXED}{EQUAL}{more}    return {after}\n"


def test_other_files_and_other_names() -> None:
    others = {
        "a": "from kit.ops import Mode as M\n\nKIND = M\n\n\ndef g(m):\n    return m is M.A\n",
        "b": "from kit import ops\n\n\ndef g(m):\n    return m is ops.Mode.B\n",
        "c": "from kit.a import KIND\n\n\ndef g(m):\n    return m is KIND.B\n",
        "d": "from elsewhere import Mode\n\n\ndef g(m):\n    return m is Mode.A\n",
        "e": "def g(m):\n    from kit.ops import Mode\n\n    return m is not Mode.A\n",
    }
    done = migrate(ENUM + OP, **others)
    assert done.files["kit/a.py"] == others["a"].replace(" is ", " == ")
    assert done.files["kit/b.py"] == others["b"].replace(" is ", " == ")
    assert done.files["kit/c.py"] == others["c"].replace(" is ", " == ")
    assert done.files["kit/d.py"] == others["d"]
    assert done.files["kit/e.py"] == others["e"].replace(" is not ", " != ")


def test_a_field_of_a_dataclass() -> None:
    cfg = "\n\n@dataclass(frozen=True)\nclass Cfg:\n    mode: Mode\n"
    op = OP.replace("mode: Mode", "cfg: Cfg").replace("mode is Mode.A", "cfg.mode is other")
    done = migrate(ENUM + cfg + op)
    assert code(done) == MIXED + cfg + op.replace("cfg.mode is other", "cfg.mode == other")


@pytest.mark.parametrize(
    ("enum", "said"),
    [
        (ENUM.replace("(Enum)", "(Named, Enum)"), "`Mode` has other bases than `Enum`"),
        (ENUM.replace("(Enum)", "((Enum))"), "`Mode` has other bases than `Enum`"),
        (
            ENUM.rstrip() + "\n\n    def __eq__(self, other):\n        return self is other\n\n\n",
            "`Mode` defines `__eq__()`, which a plain string does not have",
        ),
        (ENUM.replace('"b"', '""'), "`Mode.B` would be false, as an empty string"),
    ],
)
def test_enumerations_that_stay(enum: str, said: str) -> None:
    text = "class Named:\n    def label(self):\n        return 1\n\n\n" + enum + OP
    done = migrate(text)
    assert code(done) == text
    assert done.notes()[0].endswith(said)
    assert done.sites()[0].endswith("(left)")


@pytest.mark.parametrize("enum", [ENUM.replace('"b"', "1"), MIXED])
def test_enumerations_that_are_no_sites(enum: str) -> None:
    done = migrate(enum + OP)
    assert code(done) == enum + OP
    assert done.sites() == []


def test_what_a_plain_string_lacks_is_noted() -> None:
    helper = "\n\ndef helper(kind: Mode) -> str:\n    return kind.name + kind.upper()\n"
    op = OP.replace("x * 2", "x * len(helper(mode)) * len(mode.value) * isinstance(mode, Mode)")
    done = migrate(ENUM + helper + op)
    assert code(done) == MIXED + helper + op.replace("mode is", "mode ==")
    assert done.notes() == [
        f"{OPS_PATH}:{LINES + 14}: inside of an op `mode` is a plain string: `mode.value` means something else there",
        f"{OPS_PATH}:{LINES + 14}: inside of an op `mode` is a plain string: `isinstance(mode, Mode)` means something else there",
        f"{OPS_PATH}:{LINES + 7}: inside of an op `kind` is a plain string: `kind.name` means something else there",
    ]


def test_questions_whether_something_is_a_string_are_noted() -> None:
    more = "\n\ndef g(m):\n    return isinstance(m, (int, str)), isinstance(m, int)\n"
    done = migrate(ENUM + OP + more)
    assert done.notes() == [
        f"{OPS_PATH}:{LINES + 14}: this asks whether something is a string, which members of the enumeration now are"
    ]


@pytest.mark.parametrize(
    ("params", "enum", "noted"),
    [
        ("mode: Mode = Mode.A, k: int = 1", ENUM, True),
        ("k: int = 1, mode: Mode = Mode.A", ENUM, False),
        (
            "mode: Mode = Mode.A, k: int = 1",
            f"{ENUM.rstrip()}\n\n    def __str__(self):\n        return self.value\n\n\n",
            False,
        ),
    ],
)
def test_a_default_that_is_printed_otherwise_is_noted(params: str, enum: str, *, noted: bool) -> None:
    done = migrate(enum + OP.replace("mode: Mode", params))
    told = "Python 3.11 stores this default as 'Mode.A'; calls that omit it but pass a later argument get this"
    assert [note.partition(": ")[2] for note in done.notes()] == [told] * noted


def test_an_enumeration_of_another_file() -> None:
    modes = "import enum\n\n\nclass Mode(enum.Enum):\n    A = 'a'\n\n\ndef first(mode):\n    return mode is Mode.A\n"
    files = {**example_files([("python", "from kit.modes import Mode\n" + OP)]), "kit/modes.py": modes}
    done = migrate_files(PACK, "enum-to-str-enum", files)
    assert done.files == {
        **files,
        OPS_PATH: files[OPS_PATH].replace("mode is Mode.A", "mode == Mode.A"),
        "kit/modes.py": modes.replace("(enum.Enum)", "(str, enum.Enum)").replace("mode is Mode.A", "mode == Mode.A"),
    }
