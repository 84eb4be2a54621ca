"""Operator lists, sound and not, for the rules and for ExecuTorch's own code generator."""

from __future__ import annotations

ADD = """\
- op: add.out
  kernels:
    - arg_meta: null
      kernel_name: torch::executor::add_out
"""

SPECIAL = """\
- op: add.out
  type_alias:
    T0: [Double]
  dim_order_alias:
    D0: [0, 1, 2, 3]
  kernels:
    - arg_meta:
        self: [T0, D0]
        other: [T0, D0]
        out: [T0, D0]
      kernel_name: torch::executor::add_out
"""

OWN = """\
- func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: null
      kernel_name: kit::scale_out
"""

SOUND = {
    "an operator of ATen": ADD,
    "with its namespace": ADD.replace("add.out", "aten::add.out", 1),
    "a kernel for a dtype": SPECIAL,
    "an operator of its own": OWN,
    "both": ADD + OWN,
    "an operator that torchgen generates": ADD.replace("add.out", "expand_copy.out", 1),
    "fields of torchgen": OWN.replace("  kernels:", "  variants: function\n  tags: core\n  kernels:"),
    "a kernel without a namespace": ADD.replace("torch::executor::add_out", "add_out"),
    "a kernel in three namespaces": ADD.replace("torch::executor::", "a::b::c::"),
    "no kernels": ADD + "- op: sub.out\n",
    "an empty list of kernels": ADD + "- op: sub.out\n  kernels: []\n",
    "unused aliases": SPECIAL.replace("    T0: [Double]\n", "    T0: [Double]\n    T1: [Half, Float]\n"),
    "an empty dim order": SPECIAL.replace("[0, 1, 2, 3]", "[]"),
    "an empty arg_meta": ADD.replace("null", "{}"),
    "no arg_meta": ADD.replace("    - arg_meta: null\n      kernel_name", "    - kernel_name"),
    "no type of its own": OWN.replace("float factor", "SymInt[] factor"),
    "a functional operator": OWN.replace(
        "kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)", "kit::scale(Tensor x) -> Tensor"
    ),
    "nothing returned and a list of out tensors": OWN.replace(
        "Tensor(a!) out) -> Tensor(a!)", "Tensor(a!)[] out) -> ()"
    ),
    "several out arguments": OWN.replace(
        "Tensor(a!) out) -> Tensor(a!)", "Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))"
    ),
}

REFUSED = {
    "an unknown operator": ADD.replace("add.out", "add.outt", 1),
    "an operator without an overload": ADD.replace("add.out", "add", 1),
    "an operator of another namespace": ADD.replace("add.out", "kit::add.out", 1),
    "a repeated dtype": SPECIAL.replace("[Double]", "[Double, Double]"),
    "nothing returned and an out tensor": OWN.replace("-> Tensor(a!)", "-> ()"),
    "neither op nor func": OWN + ADD.replace("- op: add.out\n  kernels", "- kernels"),
    "both op and func": OWN + "  op: add.out\n",
    "op that is a number": ADD + ADD.replace("add.out", "1", 1),
    "an unknown field": ADD + "  flavour: sweet\n",
    "a misspelt field": ADD + ADD.replace("add.out", "sub.out", 1).replace("kernels:", "kernel:"),
    "the same operator twice": ADD + ADD,
    "the same name in two namespaces": ADD + OWN.replace("kit::scale.out", "kit::add.out"),
    "no kernel_name": OWN + ADD.replace("      kernel_name: torch::executor::add_out\n", ""),
    "an empty kernel_name": ADD.replace("torch::executor::add_out", ""),
    "a kernel in four namespaces": ADD.replace("torch::executor::", "a::b::c::d::"),
    "an undefined type alias": SPECIAL.replace("self: [T0, D0]", "self: [T1, D0]"),
    "a dtype in place of an alias": SPECIAL.replace("self: [T0, D0]", "self: [Double, D0]"),
    "an undefined dim order alias": SPECIAL.replace("self: [T0, D0]", "self: [T0, D1]"),
    "no aliases": SPECIAL.replace("  type_alias:\n    T0: [Double]\n", ""),
    "an alias alone": SPECIAL.replace("self: [T0, D0]", "self: [T0]"),
    "three aliases": SPECIAL.replace("self: [T0, D0]", "self: [T0, D0, D0]"),
    "an unknown dtype": SPECIAL.replace("[Double]", "[Half]"),
    "a dtype that is no list": SPECIAL.replace("[Double]", "Double"),
    "a dim order in a list": SPECIAL.replace("[0, 1, 2, 3]", "[[0, 1, 2, 3]]"),
    "a dim order of words": SPECIAL.replace("[0, 1, 2, 3]", "[zero, one]"),
    "two dtypes": SPECIAL.replace("[Double]", "[Double, Float]"),
    "two kernels": ADD + "    - arg_meta: null\n      kernel_name: torch::executor::fast_add_out\n",
    "two kernels for one dtype": SPECIAL + SPECIAL[SPECIAL.index("    - arg_meta") :],
    "a kernel for a dtype and one for all": SPECIAL + ADD[ADD.index("    - arg_meta") :],
    "an unknown type": OWN.replace("Tensor x", "Tensr x"),
    "a space too few": OWN.replace(", *, ", ",*, "),
    "no arrow": OWN.replace(" -> Tensor(a!)", ""),
    "two namespaces": OWN.replace("kit::scale", "kit::a::scale"),
    "a generator": OWN.replace("float factor", "Generator? factor"),
    "a device": OWN.replace("float factor", "Device factor"),
    "a list of bool": OWN.replace("float factor", "bool[] factor"),
    "nothing returned": OWN.replace(
        "kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)", "kit::scale(Tensor x) -> ()"
    ),
}
"""Lists that the code generator refuses."""

SILENT = {
    "an argument that there is not": (SPECIAL.replace("self: ", "input: "), "EXE304"),
    "an argument that is no tensor": (SPECIAL.replace("self: ", "alpha: "), "EXE304"),
    "arguments in another order": (
        SPECIAL.replace("self: ", "x: ").replace("other: ", "self: ").replace("x: ", "other: "),
        "EXE304",
    ),
    "a tensor too few": (SPECIAL.replace("        other: [T0, D0]\n", ""), "EXE304"),
    "a dim order that is no permutation": (SPECIAL.replace("[0, 1, 2, 3]", "[0, 1, 1, 3]"), "EXE303"),
    "a misspelt field of a kernel": (ADD.replace("arg_meta:", "arg_metas:"), "EXE102"),
    "an entry without kernels": (ADD + "- op: sub.out\n", "EXE106"),
}
"""Lists that the code generator takes, though they have no effect or another one; and the rule that reports them."""
