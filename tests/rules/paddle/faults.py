"""Faults that are put into Paddle's operator YAML, each of another kind, and the rules that report them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.paddle.pack import PACK


class Fault(msgspec.Struct, frozen=True):
    """A replacement in a file: ``before`` is a regular expression, ``code`` the rule that reports it. A ``path`` without an
    extension is one of a file of YAML in the folder of these.
    """

    kind: str
    path: str
    before: str
    after: str
    code: str


_GRADIENT = r"(?m)^  forward : (\w+) ?\(Tensor x, (Tensor \w+)"

FAULTS = [
    Fault("misspelt field", "ops", r"(?m)^  inplace ?:", "  inplce:", "PDL102"),
    Fault("misspelt field of kernel", "ops", r"    data_type : x", "    data_typ : x", "PDL102"),
    Fault("misspelt field of infer_meta", "backward", r"    param ?: \[x, ", "    params : [x, ", "PDL102"),
    Fault("misspelt field of data_transform", "ops", r"    skip_transform :", "    skip_transforms :", "PDL102"),
    Fault("no output", "ops", r"(?m)^  output : Tensor\(out\)\n(?=  infer_meta)", "", "PDL101"),
    Fault("no forward", "backward", r"(?m)^  forward : .*\n(?=  args : \(Tensor x, Tensor out_grad\))", "", "PDL101"),
    Fault("no infer_meta", "ops", r"(?m)^  infer_meta :\n    func : \w+\n(?=  kernel)", "", "PDL101"),
    Fault("unknown type", "ops", r"(?m)(^  args : \(Tensor x, )int axis", r"\1integer axis", "PDL103"),
    Fault("type of Python", "ops", r"(?m)(^  args : \(.*)str data_format", r"\1string data_format", "PDL103"),
    Fault("no parenthesis", "ops", r"(?m)^  args : \((Tensor x, Tensor y)\)", r"  args : (\1", "PDL103"),
    Fault("attribute before tensor", "ops", r"\(Tensor x, Tensor y, (int axis[^,)]*)\)", r"(Tensor x, \1, Tensor y)", "PDL103"),
    Fault("default before none", "fused_ops",
          r"(?m)(^  args : .*?)(bool \w+) = ?\w+, (\w+ \w+ ?= ?[^,)]+)\)", r"\1\3, \2)", "PDL103"),
    Fault("two arguments of a name", "ops", r"(?m)^  args : \(Tensor x, Tensor y\)", "  args : (Tensor x, Tensor x)", "PDL103"),
    Fault("unknown type of output", "ops", r"(?m)^  output : Tensor\(out\), Tensor\(", "  output : Tensor(out), Tensr(", "PDL103"),
    Fault("missing arrow", "backward", r"(?m)^(  forward : \w+ ?\(Tensor x, int .*\)) -> ", r"\1 > ", "PDL103"),
    Fault("parentheses in forward", "backward", r"(?m)^(  forward : .*, )Scalar (\w+)", r"\1Scalar(int) \2", "PDL103"),
    Fault("unknown kind of tensor", "ops", r"\{selected_rows -> ", "{select_rows -> ", "PDL103"),
    Fault("unknown input of inplace", "ops", r"(?m)^(  inplace ?: \()x -> ", r"\1input_x -> ", "PDL104"),
    Fault("unknown output of inplace", "fused_ops", r"(?m)^(  inplace ?: \(\w+ -> )\w+\)", r"\1outs)", "PDL104"),
    Fault("unknown optional", "ops", r"(?m)^(  optional ?: )bias$", r"\1biases", "PDL104"),
    Fault("unknown intermediate", "ops", r"(?m)^(  intermediate ?: )(\w+)$", r"\1\2s", "PDL104"),
    Fault("unknown no_need_buffer", "backward", r"(?m)^(  no_need_buffer ?: )x$", r"\1input_x", "PDL104"),
    Fault("unknown skip_transform", "ops", r"(    skip_transform : )(\w+)\b", r"\1\2s", "PDL104"),
    Fault("unknown name in composite", "backward", r"(?m)^(  composite ?: \w+\(x, )out_grad", r"\1grad_of_out", "PDL104"),
    Fault("default of Python", "ops", r"(?m)(^  args : .*bool \w+ ?= ?)false", r"\1False", "PDL105"),
    Fault("string without quotes", "ops", r'(?m)(^  args : .*str data_format ?= ?)"NCHW"', r"\1NCHW", "PDL105"),
    Fault("list without braces", "ops", r"(?m)(^  args : .*int\[\] \w+ ?= ?)\{1, 1\}", r"\g<1>1", "PDL105"),
    Fault("fraction for an integer", "ops", r"(?m)(^  args : .*int axis ?= ?)-1", r"\g<1>0.5", "PDL105"),
    Fault("data type without its class", "ops", r"(?m)(^  args : .*DataType \w+ ?= ?)DataType::", r"\1", "PDL105"),
    Fault("list without size", "backward", r"(?m)(^  output : Tensor\[\]\(x_grad\))\{x.size\(\)\}", r"\1", "PDL106"),
    Fault("unknown parameter of kernel", "ops", r"(    func : [a-z_]+\n    param ?: \[)(\w+)", r"\1\2_in", "PDL201"),
    Fault("unknown parameter of infer_meta", "backward", r"(InferMeta\n    param ?: \[)x\]", r"\1inputs]", "PDL201"),
    Fault("unknown data_type", "ops", r"(    data_type : )x\n", r"\1input_x\n", "PDL201"),
    Fault("dispatch with another number", "ops",
          r"\{selected_rows -> selected_rows\}", "{selected_rows, dense -> selected_rows}", "PDL202"),
    Fault("dispatch without kinds", "ops", r"(\w+_sr) ?\{selected_rows[^}]*\}", r"\1", "PDL202"),
    Fault("another type of attribute", "ops", r"(?m)(^  args : \(Tensor x, )float (\w+)", r"\1double \2", "PDL203"),
    Fault("attribute that the kernel lacks", "ops",
          r"(?m)^(  args : \(Tensor x, Tensor y)\)(?=\n  output : Tensor\(out\)\n)", r"\1, bool flag)", "PDL203"),
    Fault("parameters in another order", "ops",
          r"(    func : \w+InferMeta\n    param ?: \[)(\w+), (\w*ax[ei]s|shape|k|dtype)\b", r"\1\3, \2", "PDL203"),
    Fault("required tensor made optional", "backward",
          r"(?m)^(  args : \(Tensor x, Tensor out_grad.*\)\n)", r"\1  optional : out_grad\n", "PDL203"),
    Fault("unknown infer_meta", "backward", r"(    func : )UnchangedInferMeta", r"\1UnchangdInferMeta", "PDL204"),
    Fault("unknown kernel", "ops", r"(  kernel :\n    func : )(tril_triu|trace|unfold)\n", r"\1x\2\n", "PDL204"),
    Fault("unknown gradient", "ops", r"(?m)^(  backward : \w+)_grad$", r"\1_gard", "PDL301"),
    Fault("gradient of another operator", "backward",
          r"(?m)^  forward : ((?!floor)\w+) ?\(Tensor x\)", "  forward : floor (Tensor x)", "PDL301"),
    Fault("operator without gradient", "sparse_ops", r"(?m)^  backward : \w+_grad\n", "", "PDL301"),
    Fault("another type in forward", "backward", r"(?m)(^  forward : .*)int axis", r"\1int64_t axis", "PDL302"),
    Fault("an output too many", "backward", r"(?m)(^  forward : .* -> Tensor\(out\))$", r"\1, Tensor(mask)", "PDL302"),
    Fault("swapped inputs in forward", "backward",
          r"(?m)(^  forward : \w+ ?\()Tensor x, Tensor y", r"\1Tensor y, Tensor x", "PDL302"),
    Fault("input of no operator", "backward", r"(?m)(^  args : \(Tensor x, )Tensor out_grad", r"\1Tensor output_grad", "PDL303"),
    Fault("output of no input", "backward", r"(?m)^  output : Tensor\(x_grad\)$", "  output : Tensor(input_grad)", "PDL303"),
    Fault("attribute of no operator", "backward", r"(?m)(^  args : .*)int axis\)", r"\1int dim)", "PDL303"),
    Fault("declared twice", "ops", r"(?m)^- op : cosh$", "- op : sinh", "PDL401"),
    Fault("declared in two files", "inconsistent/static_ops", r"(?m)^- op : barrier$", "- op : lgamma", "PDL401"),
    Fault("unknown argument of op_compat", "op_compat",
          r"(?m)(^- op : \w+\n  backward : \w+\n  inputs :\n    )x : X", r"\1xx : X", "PDL402"),
    Fault("unknown gradient in op_compat", "op_compat", r"(?m)^(- op : [b-z]\w+\n  backward : \w+)_grad$", r"\1_grads", "PDL402"),
    Fault("unknown attribute in int_array", "op_compat", r"(  int_array ?:\n    )(\w+) ?:", r"\1\2_list :", "PDL402"),
    Fault("unknown operator of op_version", "op_version", r"(?m)^- op : (\w+)$", r"- op : \1_old", "PDL403"),
    Fault("attribute without default", "op_version",
          r'(        - add_attr : \w+\n          comment : .*\n)          default : .*\n', r"\1", "PDL403"),
    Fault("unknown operator in invoke", "backward", r"(?m)^(  invoke : )concat\(", r"\1concatt(", "PDL304"),
    Fault("argument too few in invoke", "ops", r"(?m)^(  invoke : full)\(shape, 1, ", r"\1(shape, ", "PDL304"),
    Fault("argument too many in invoke", "backward", r"(?m)^(  invoke : global_\w+\(.*)\)", r"\1, true)", "PDL304"),
    Fault("exchanged arguments in invoke", "backward", r"(?m)^(  invoke ?: \w+)\((grad_x_grad), (axis)\)", r"\1(\3, \2)", "PDL304"),
    Fault("unknown argument in invoke", "backward", r"(?m)^(  invoke : \w+)\(out_grad, axis\)", r"\1(out_grad, dim)", "PDL304"),
    Fault("unknown function in invoke", "ops", r"(?m)^(  invoke : copy)_to_impl\(", r"\1_impl(", "PDL304"),
    Fault("value of another type in invoke", "ops", r"(?m)^(  invoke : full_like\(x), 0, dtype", r"\1, dtype, 0", "PDL304"),
    Fault("no call in invoke", "backward", r"(?m)^(  invoke : conj)\(out_grad\)", r"\1", "PDL103"),
    Fault("no call in composite", "backward", r"(?m)^(  composite ?: tanh_grad)\(.*\)", r"\1", "PDL103"),
    Fault("unknown trait", "ops", r"(?m)^(  traits : paddle::dialect::Forward)OnlyTrait$", r"\1Trait", "PDL205"),
    Fault("unknown interface", "inconsistent/static_ops", r"(?m)^(  interfaces : paddle::dialect::Infer)SymbolicShapeInterface$",
          r"\1SymbolShapeInterface", "PDL205"),
    Fault("interface without its function", "ops",
          r"(?m)^(- op : (?:yolo_loss|warprnnt|sequence_pool|matrix_nms)\n(?:  .*\n)+)",
          r"\1  interfaces : paddle::dialect::ParseKernelKeyInterface\n", "PDL205"),
    Fault("attribute that a kernel of the old graph takes", "legacy/static_ops",
          r"(?m)^(  args ?: \(Tensor ids, Tensor scores, int beam_size), int end_id", r"\1", "PDL203"),
    Fault("another type in the old graph", "legacy/static_ops", r"(?m)(^  args : .*)int groups=1", r"\1float groups=1", "PDL203"),
    Fault("argument too few in Python", "python/paddle/tensor/math.py", r"_C_ops\.(stanh)\(x, scale_a, ", r"_C_ops.\1(x, ",
          "PDL501"),
    Fault("argument too many in Python", "python/paddle/tensor/math.py", r"_C_ops\.(multiplex)\(inputs, ", r"_C_ops.\1(inputs, 0, ",
          "PDL501"),
    Fault("default left out in Python", "python/paddle/tensor/manipulation.py", r"_C_ops\.(flip|roll)\((\w+), [^()]*\)",
          r"_C_ops.\1(\2)", "PDL501"),
    Fault("in-place call with an argument too many", "python/paddle/tensor/math.py", r"_C_ops\.(erfinv)_\(x\)", r"_C_ops.\1_(x, 1)",
          "PDL501"),
    Fault("unknown excluded operator", "legacy/ops_exclude", r"(?m)^- (\w+)$", r"- \1xx", "PDL404"),
    Fault("unknown tensor for oneDNN", "inconsistent/onednn_ops_extra", r"(data_format_tensors : )(\w+)", r"\1\2s", "PDL404"),
]  # fmt: skip
"""One of each kind; the regular expression names its first place, or a later one."""


def findings(workspace: Workspace, cache: Cache) -> Counter[tuple[str, str, str]]:
    """The findings in a workspace, without their places."""
    registry = Registry((PACK,))
    outcome = run(Job(registry, resolve_settings(Config(), registry)), Project(workspace, cache))
    return Counter((item.code, item.place.path, f"{item.message} {item.ops}") for item in outcome.diagnostics)


def missed(workspace: Workspace, folder: str, faults: Sequence[Fault] = FAULTS, at: int = 0) -> list[str]:
    """The kinds of the faults that no rule reports, all of them put into a tree, in different entries; ``at`` is the number of
    the place in each file that is taken. One without a place counts as missed.
    """
    cache = Cache.for_workspace(workspace.root)
    before = findings(workspace, cache)
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    lost: list[str] = []
    for fault in faults:
        path = fault.path if "." in fault.path else f"{folder}/{fault.path}.yaml"
        text = texts.get(path) or workspace.source(path).text
        used = {_operator(name) for name in names.values()}
        places = [
            place for place in re.finditer(fault.before, text) if _operator(_entry(path, text, place)) not in used
        ]
        if not places:
            lost.append(f"{fault.kind} has no place")
            continue
        place = places[at % len(places)]
        names[fault.kind] = _entry(path, text, place)
        texts[path] = text[: place.start()] + place.expand(fault.after) + text[place.end() :]
    new = findings(workspace.with_overlay(texts), cache) - before
    for fault in faults:
        name = names.get(fault.kind)
        hints = {name, *re.findall(r"\w+", fault.after)} if fault.code == "PDL401" else {name}
        if name and not any(code == fault.code and any(f"{one}" in words for one in hints) for code, _, words in new):
            lost.append(f"{fault.kind}: {fault.path}: {name}")
    return lost


def _entry(path: str, text: str, place: re.Match[str]) -> str:
    """The name of the entry that a place is in; in Python, of the operator that it calls."""
    if path.endswith(".py"):
        return place[1]
    heads = re.findall(r"(?m)^- (?:(?:backward_)?op *: *)?(\w+)", text[: place.end()])
    return str(heads[-1])


def _operator(name: str) -> str:
    """The operator that an entry or its gradient is of."""
    return re.sub(r"(?:_(?:double|triple|grad))+$", "", name)
