"""PaddlePaddle/Paddle at a pinned commit: what is found there was judged, and seeded faults are reported.

``benchmarks.corpus`` does not unpack it, as its history is larger than that of all others; any checkout of that commit will do.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from opschema_cli.workspace import Workspace
from opschema_rules.paddle import grammar
from opschema_rules.paddle.pack import PACK
from tests.corpus.judging import findings
from tests.file_schemas import refused
from tests.rules.paddle.faults import FAULTS, missed

JUDGED = Path(__file__).with_name("judged") / "paddle-4b03158d.txt"

TOLERATED = 4
"""Faults of a round that may be missed: those of kernels that a macro declares."""


@pytest.fixture
def paddle(corpus: Path) -> Path:
    root = corpus / "paddle-4b03158d"
    if not root.is_dir():
        pytest.skip("paddle-4b03158d is not below OPSCHEMA_CORPUS")
    return root


def test_what_is_found_is_what_was_judged(paddle: Path) -> None:
    assert findings(PACK, paddle) == JUDGED.read_text().splitlines()


def test_the_schema_accepts_every_list(paddle: Path) -> None:
    found = refused(PACK, paddle)
    assert len(found) > 10
    assert not any(found.values()), found


@pytest.mark.parametrize("at", [0, 1, 2])
def test_faults_are_reported(paddle: Path, at: int) -> None:
    assert len(FAULTS) >= 40
    lost = missed(Workspace(paddle), "paddle/phi/ops/yaml", at=at)
    assert len(lost) <= TOLERATED, lost


SIGNS = ("(", ")", ",", " ", "=", "{", "}", "->", "Tensor", "int", "x", "[]", "Scalar(int)", " = 1", "@", "")


def changed(text: str, chance: random.Random) -> str:
    """A text with a character less, a sign more, two parts exchanged or a part twice."""
    at, parts = chance.randrange(len(text) + 1), text.split(",")
    kind = chance.randrange(4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + chance.choice(SIGNS) + text[at:]
    if kind == 2 and len(parts) > 1:
        one, other = chance.sample(range(len(parts)), 2)
        parts[one], parts[other] = parts[other], parts[one]
        return ",".join(parts)
    return text[:at] + text[at : at + 8] + text[at:]


def read(field: str, text: str) -> tuple[object, bool]:
    """The entries that the pack reads, and whether it reports an error."""
    if field == "args":
        args, errors = grammar.parse_args(text)
        return [(item.type, item.name, item.default) for item in args], bool(errors)
    if field == "output":
        outputs, errors = grammar.parse_outputs(text)
        return [(item.type, item.name) for item in outputs], bool(errors)
    if field == "forward":
        parsed = grammar.parse_forward(text)
        names = [item.name for item in parsed.args], [item.name for item in parsed.outputs]
        return (parsed.name.text if parsed.name is not None else None, *names), bool(parsed.errors)
    if field == "inplace":
        pairs, errors = grammar.parse_pairs(text)
        return {target.text: source.text for source, target in pairs}, bool(errors)
    if field in grammar.CALLS:
        call = grammar.parse_call(text) if grammar.CALLS[field].fullmatch(text.strip()) is not None else None
        return (call[0].text, "".join(",".join(item.text for item in call[1]).split())) if call else None, call is None
    kernels, errors = grammar.parse_kernels(text)
    return [item.name for item in kernels], bool(errors)


def read_by_paddle(parser: Any, field: str, text: str) -> object:
    """The entries that Paddle's parser reads. Its exceptions are passed on."""
    if field == "args":
        parts = parser.parse_input_and_attr("op", text)
        return [(item["typename"], item["name"], item.get("default_value")) for part in parts for item in part]
    if field == "output":
        return [(item["typename"], item["name"].split("@")[0]) for item in parser.parse_outputs("op", text)]
    if field == "forward":
        found = parser.parse_forward("op", text)
        args = [item["name"] for item in found["inputs"] + found["attrs"]]
        return found["name"], args, [item["name"].split("@")[0] for item in found["outputs"]]
    if field == "inplace":
        return parser.parse_inplace("op", text)
    if field in grammar.CALLS:
        words = parser.parse_invoke("op", text) if field == "invoke" else parser.parse_composite("op", text)
        function, args = words.values()
        return function, "".join(args.split())
    return parser.parse_kernel("op", {"func": text})["func"]


def written(root: Path) -> Iterator[tuple[str, str]]:
    """The texts of the entries that have a grammar of their own."""
    left_out = ("op_compat", "op_version", "extra", "exclude")
    for path in sorted((root / "paddle/phi/ops/yaml").rglob("*.yaml")):
        if any(word in path.name for word in left_out):
            continue
        for entry in yaml.safe_load(path.read_bytes()):
            texts = {**entry, "kernel": entry["kernel"].get("func") if isinstance(entry.get("kernel"), dict) else None}
            for field in ("args", "output", "forward", "inplace", "kernel", *grammar.CALLS):
                if isinstance(texts.get(field), str):
                    yield field, texts[field]


def test_what_paddles_own_parser_rejects_is_an_error_and_the_rest_is_read_alike(
    paddle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pack rejects more: the parser looks for patterns, and passes over what is around them."""
    monkeypatch.syspath_prepend(paddle / "paddle/fluid/operators/generator")
    parser = importlib.import_module("parse_utils")
    chance = random.Random(1)
    accepted = rejected = 0
    for field, text in written(paddle):
        for number, one in enumerate([text, *(changed(text, chance) for _ in range(6))]):
            found, faulty = read(field, one)
            try:
                theirs = read_by_paddle(parser, field, one)
            except Exception:  # whatever it raises ends the build
                rejected += 1
                assert faulty, (field, one)
                continue
            assert not faulty or number > 0, (field, one)
            assert faulty or found == theirs, (field, one)
            accepted += not faulty
    assert accepted > 10_000
    assert rejected > 500
