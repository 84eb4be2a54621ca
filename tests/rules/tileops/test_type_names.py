"""Names in the types of params that no type has."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import OP, example_files
from opschema_rules.tileops.pack import PACK
from opschema_rules.tileops.type_names import is_slip, wrong_names

YAML = "kit/manifest/example.yaml"


def files(kind: str, **others: str) -> dict[str, str]:
    param = f'signature:\n  params:\n    eps: {{type: "{kind}", default: 0.5}}\n'
    return {**example_files([("yaml", param)]), **others}


def lint(kind: str, **others: str) -> Linted:
    return lint_files([PACK], files(kind, **others), ["MAN204"])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


NO_TYPE = "`{}` in the type of `eps` is not a type that Python or the tree knows; did you mean `{}`?"


@pytest.mark.parametrize(
    ("kind", "wrong", "meant"),
    [
        ("flaot", "flaot", "float"),
        ("flot | None", "flot", "float"),
        ("list[itn]", "itn", "int"),
        ("tuple[ints, ...]", "ints", "int"),
        ("Optinal[int]", "Optinal", "Optional"),
        ("Boool | int", "Boool", None),
        ("boool | int", "boool", "bool"),
        ("Callable[[flaot], int]", "flaot", "float"),
        ("torch.dytpe", "torch.dytpe", "torch.dtype"),
        ("typing.Optinal[int]", "typing.Optinal", "typing.Optional"),
        ("Annotated[flaot, flott]", "flaot", "float"),
    ],
)
def test_a_misspelt_type(kind: str, wrong: str, meant: str | None) -> None:
    assert found(lint(kind)) == ([(wrong, NO_TYPE.format(wrong, meant))] if meant else [])
    texts, after = fix_files([PACK], files(kind), ["MAN204"], unsafe=True)
    assert (f'type: "{kind.replace(wrong, meant, 1)}"' in texts[YAML]) if meant else not texts
    assert after.codes() == []


def test_a_function_is_no_type() -> None:
    message = "`any` in the type of `eps` is a function of Python, not a type; did you mean `Any`?"
    assert found(lint("any | None")) == [("any", message)]
    assert found(lint("any", **{"kit/ops/example.py": f"from kit.types import any\n\n\n{OP}"})) == []


@pytest.mark.parametrize(
    "kind",
    [
        "int | float | Number | dtype | torch.dtype | Tensor | torch.Tensor | None",
        "Sequence[int] | collections.abc.Mapping[str, int] | typing.Any",
        "Mode",
        "Node",
        "uint8_t | index_t | point | string",
        "Literal['flaot', flaot]",
        "'flaot'",
        "np.flaot",
        "flaot.float",
        "flaot |",  # MAN201's
        "torch.float",
    ],
)
def test_types_and_names_that_may_be_types(kind: str) -> None:
    assert found(lint(kind)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("kit/ops/example.py", "class Floats:\n    pass\n\n\n" + OP),
        ("kit/types.py", "Floats = list[float]\n"),
        ("kit/other.py", "from jaxtyping import Float as Floats\n"),
    ],
)
def test_a_name_that_the_tree_has(path: str, text: str) -> None:
    assert [wrong.meant for wrong in wrong_names("Floats")] == []
    assert [wrong.meant for wrong in wrong_names("floats")] == ["float"]
    assert lint("floats").codes() == ["MAN204"]
    assert lint("floats", **{path: text.replace("Floats", "floats")}).codes() == []


def test_older_trees_are_not_held_to_it() -> None:
    assert lint("flaot", **{"opschema.toml": ""}).codes() == []


def test_short_names_are_close_by_chance() -> None:
    assert is_slip("nit", "int")
    assert not any(is_slip(word, "int") for word in ("in", "inf", "ant", "point", "index"))
    assert not is_slip("int", "int")
