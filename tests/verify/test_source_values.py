"""Values that the code of an operator compares its arguments with."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from opschema_cli.commands.plugins import open_workspace
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.verify.model import Call
from opschema_cli.verify.prepare import Asked, plans_of
from opschema_cli.verify.search.finder import find_calls

OPS = """
import torch

torch.library.define("kit::pack", "(Tensor x, int block, str kind, bool fast, str other, float scale) -> Tensor")


@torch.library.register_fake("kit::pack")
def _(x, block, kind, fast, other, scale):
    torch._check(block in [4096, 64, 128], lambda: f"invalid block {block}")
    torch._check(kind in ("nf4", "fp4"))
    torch._check_is_size(block)
    if fast == True or other.kind == "no" or scale == 0.25 or other in known(["no"]):
        pass
    return x.new_empty(x.shape)


@torch.library.impl("kit::pack", "CPU")
def pack(x, block, kind, fast, other, scale):
    if kind != "nf4" and kind not in {"int4"} and block != 2**3:
        raise ValueError(kind)
    return x * 2


def elsewhere(kind):
    return kind == "not of the operator"
"""


def test_values_that_code_compares_arguments_with_are_tried_first(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/__init__.py").write_text("")
    (tmp_path / "kit/ops.py").write_text(OPS)
    (tmp_path / "opschema.toml").write_text("")
    with closing(open_workspace(tmp_path, no_plugins=True, cache=False)) as session:
        (plan,) = plans_of(session, Asked(ops=["kit::pack"], imports=()))
    assert plan.search is not None
    values = {name: set(found) for name, found in plan.search.values.items()}
    assert values["block"] >= {4096, 64, 128}
    assert values["kind"] == {"nf4", "fp4", "int4"}
    assert (values["scale"], values.keys() & {"fast", "other"}) == ({0.25}, set())

    def refusal(call: Call) -> str:
        right = call.params["block"] in (4096, 64, 128) and call.params["kind"] == "nf4"
        return "" if right else f"invalid block {call.params['block']}"

    schema = parse_schema(
        "kit::pack(Tensor x, int block, str kind, bool fast, str other, float scale) -> Tensor"
    ).schema
    assert schema is not None
    assert find_calls(schema, {}, refusal, hints=plan.search.values).calls
    assert not find_calls(schema, {}, lambda call: "" if call.params["kind"] == "nf4" else "not nf4").calls
