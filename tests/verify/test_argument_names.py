"""Names of arguments of operators whose schema torch infers from a C++ function."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from opschema_cli.commands.plugins import open_workspace
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.verify.model import Call, Input
from opschema_cli.verify.prepare import Asked, plans_of
from opschema_cli.verify.search.argument_names import Names
from opschema_cli.verify.search.finder import find_calls

KERNEL = """
#include <torch/library.h>

#define KIT_API
torch::Tensor gather(torch::Tensor, torch::Tensor, torch::optional<torch::Tensor>);

KIT_API torch::Tensor gather(const torch::Tensor& src,  // the parts
                             torch::Tensor indptr = {}, std::map<int, int> by = std::map<int, int>({})) {
  return src;
}

TORCH_LIBRARY(kit, m) {
  m.def("gather", &gather);
}
"""


def inferred() -> OperatorSchema:
    found = parse_schema("kit::gather(Tensor _0, Tensor _1, Tensor? _2) -> Tensor _0").schema
    assert found is not None
    return found


def test_the_names_are_those_of_the_definition(tmp_path: Path) -> None:
    (tmp_path / "kit.cpp").write_text(KERNEL)
    (tmp_path / "opschema.toml").write_text("")
    with closing(open_workspace(tmp_path, no_plugins=True, cache=False)) as session:
        (plan,) = plans_of(session, Asked(ops=["kit::gather"], imports=("kit.so",)))
    assert plan.search is not None
    assert plan.search.names == ("src", "indptr", "by")


def test_calls_are_found_by_these_names_and_made_by_those_of_the_schema() -> None:
    names = Names(inferred(), ("src", "indptr", "out"))
    asked: list[Call] = []

    def refusal(call: Call) -> str:
        asked.append(call)
        return ""

    found = names.back(find_calls(names.schema, {}, names.asked(refusal)).calls[0]).call
    assert [(item.name, item.ascending) for item in found.inputs] == [("_0", False), ("_1", True)]
    assert found == asked[0]
    sample = Call(inputs=(Input(name="_1", shape=(3,), dtype="int64"),), params={"_2": None})
    forth = names.forth({"sample": sample})["sample"]
    assert ([item.name for item in forth.inputs], forth.params) == (["indptr"], {"out": None})


def test_names_that_do_not_fit_are_not_used() -> None:
    assert Names(inferred(), ("src", "indptr")).schema == inferred()
    assert Names(inferred(), ("src", "src", "out")).schema == inferred()
    named = parse_schema("kit::gather(Tensor a, Tensor b, Tensor? c) -> Tensor").schema
    assert named is not None
    assert Names(named, ("src", "indptr", "out")).schema == named
