"""Inputs in YAML: manifests of the pack `tileops`, and torchgen's files."""

from __future__ import annotations

from tests.hostile.growth.model import Files, Kind

MANIFEST = "kit/manifest/ops.yaml"
NATIVE = "aten/native_functions.yaml"
BACKEND = "backend/kit.yaml"
DERIVATIVES = "autograd/derivatives.yaml"


def numbered(n: int, line: str) -> str:
    """``line`` with each number below ``n`` in the place of its ``#``."""
    return "".join(line.replace("#", str(number)) for number in range(n))


def entry(name: str = "AFwdOp", **parts: str) -> str:
    """An entry of a manifest, sound but for its ``parts``."""
    given = {
        "inputs": '{x: {dtype: "float16 | float32"}}',
        "outputs": '{output: {dtype: "same_as(x)"}}',
        "params": "{scale: {type: float, default: 1.0}}",
        "rules": '["output.shape == x.shape"]',
        "combos": "[{x: float16}]",
        "workloads": "[{x_shape: [16, 4096], dtypes: [float16], label: wide}, {x_shape: [1, 16], dtypes: [float32], label: one}]",
        "vars": '{N: "product(x.shape)"}',
        "flops": '"2 * N"',
        "map": "{a: AKernel}",
        "more": "",
        **parts,
    }
    return (
        f"{name}:\n  family: generated\n  ref_api: none\n  status: implemented\n"
        f"  signature:\n    inputs: {given['inputs']}\n    outputs: {given['outputs']}\n    params: {given['params']}\n"
        f"    shape_rules: {given['rules']}\n    dtype_combos: {given['combos']}\n"
        f"  workloads: {given['workloads']}\n"
        f'  roofline:\n    vars: {given["vars"]}\n    flops: {given["flops"]}\n    bytes: "2 * N * elem_bytes"\n'
        f"  source:\n    kernel: kit/kernels.py\n    kernel_map: {given['map']}\n    op: kit/ops.py\n    test: tests/test_a.py\n"
        f"    bench: benchmarks/bench_a.py\n    bench_manifest_driven: true\n{given['more']}"
    )


def manifest(text: str, ops: str = "class AFwdOp:\n    def forward(self, x): return x\n") -> Files:
    """A tree with one manifest."""
    return {
        "opschema.toml": '[tileops]\nspec = ["latest"]\n',
        MANIFEST: text,
        "kit/ops.py": ops,
        "kit/kernels.py": "class AKernel: pass\n",
    }


def native(text: str) -> Files:
    """A tree with a native_functions.yaml and tags."""
    return {NATIVE: text, "aten/tags.yaml": "- tag: core\n  desc: x\n"}


def backend(text: str, functions: int = 1) -> Files:
    """A tree with the YAML of a backend, and the functions that it may name."""
    known = numbered(functions, "- func: f#(Tensor self) -> Tensor\n\n")
    return {**native(known), BACKEND: f"backend: XLA\ncpp_namespace: kit\n{text}"}


def derivatives(text: str, functions: int = 1) -> Files:
    """A tree with derivatives.yaml, and the functions that it may name."""
    known = numbered(functions, "- func: f#(Tensor self, Tensor other) -> Tensor\n\n")
    return {**native(known), DERIVATIVES: text}


def _listed(n: int, item: str) -> str:
    return "[" + numbered(n, f"{item}, ") + "]"


def _mapped(n: int, item: str) -> str:
    return "{" + numbered(n, f"{item}, ") + "}"


TILEOPS: dict[str, Kind] = {
    "entries": Kind(lambda n: manifest("".join(entry(f"A{i}FwdOp") for i in range(n))), 100),
    "entries with errors": Kind(lambda n: manifest("".join(entry(f"A{i}FwdOp", more="  colour: 1\n") for i in range(n))), 100),
    "one entry twice and more": Kind(lambda n: manifest(entry() * n), 100),
    "empty entries": Kind(lambda n: manifest(entry() + numbered(n, "B#FwdOp: {}\n")), 200),
    "unknown keys of an entry": Kind(lambda n: manifest(entry(more=numbered(n, "  colour#: 1\n"))), 4000),
    "near-miss keys of an entry": Kind(lambda n: manifest(entry(more=numbered(n, "  workload#: 1\n"))), 4000),
    "duplicate keys of an entry": Kind(lambda n: manifest(entry(more="  colour: 1\n" * n)), 8000),
    "duplicate keys of different names": Kind(lambda n: manifest(entry(more=numbered(n, "  c#: 1\n") * 2)), 4000),
    "duplicate keys of the file": Kind(lambda n: manifest(entry() + "a: {}\n" * n), 8000),
    "null keys of an entry": Kind(lambda n: manifest(entry(more="  ? []\n  : 1\n" * n)), 4000),
    "inputs": Kind(lambda n: manifest(entry(inputs=_mapped(n, "x#: {dtype: float16}"))), 500),
    "outputs": Kind(lambda n: manifest(entry(outputs=_mapped(n, "y#: {dtype: same_as(x)}"))), 500),
    "params": Kind(lambda n: manifest(entry(params=_mapped(n, "p#: {type: int, default: 1}"))), 500),
    "unknown fields of an input": Kind(lambda n: manifest(entry(inputs="{x: " + _mapped(n, "d#: float16") + "}")), 4000),
    "same_as in a chain": Kind(
        lambda n: manifest(entry(inputs="{x: {dtype: float16}, x0: {dtype: same_as(x)}, " + "".join(f"x{i + 1}: {{dtype: same_as(x{i})}}, " for i in range(n)) + "}")), 400,
    ),
    "same_as the wrong way": Kind(
        lambda n: manifest(entry(inputs="{" + "".join(f"x{i}: {{dtype: same_as(x{i + 1})}}, " for i in range(n)) + "}")), 400,
    ),
    "dtypes of an input": Kind(lambda n: manifest(entry(inputs="{x: {dtype: '" + " | ".join(["float16"] * n) + "'}}")), 4000),
    "unknown dtypes of an input": Kind(lambda n: manifest(entry(inputs="{x: {dtype: '" + numbered(n, "float# | ") + "int8'}}")), 1000),
    "dtype combos": Kind(lambda n: manifest(entry(combos=_listed(n, "{x: float#}"))), 1000),
    "the same dtype combo": Kind(lambda n: manifest(entry(combos="[" + "{x: float16}, " * n + "]")), 1000),
    "keys of a dtype combo": Kind(lambda n: manifest(entry(combos="[" + _mapped(n, "x#: float16") + "]")), 1000),
    "shape rules": Kind(lambda n: manifest(entry(rules=_listed(n, '"output.shape[0] == x.shape[0] + # - #"'))), 300),
    "one shape rule's terms": Kind(lambda n: manifest(entry(rules='["' + " and ".join(f"x.ndim != {i + 9}" for i in range(n)) + '"]')), 400),
    "names in shape rules": Kind(lambda n: manifest(entry(rules=_listed(n, '"N# == x.shape[0] + #"'))), 300),
    "shapes in a chain": Kind(
        lambda n: manifest(entry(rules="[" + "".join(f'"N{i + 1} == N{i} + 1", ' for i in range(n)) + ' "N0 == x.shape[0]"]')), 200,
    ),
    "workload rows": Kind(lambda n: manifest(entry(workloads=_listed(n, "{x_shape: [#, 4096], dtypes: [float16], label: l#}"))), 300),
    "equal workload rows": Kind(lambda n: manifest(entry(workloads=_listed(n, "{x_shape: [1, 4096], dtypes: [float16], label: l}"))), 300),
    "keys of a workload row": Kind(lambda n: manifest(entry(workloads="[" + _mapped(n, "k#: 1") + "]")), 1000),
    "dtypes of a workload row": Kind(lambda n: manifest(entry(workloads="[{x_shape: [1], dtypes: " + _listed(n, "float#") + "}]")), 1000),
    "dimensions of a workload row": Kind(lambda n: manifest(entry(workloads="[{x_shape: " + _listed(n, "1#") + ", dtypes: [float16]}]")), 4000),
    "dimensions of a declared shape": Kind(lambda n: manifest(entry(inputs="{x: {dtype: float16, shape: '[" + numbered(n, "D#, ") + "]'}}")), 1000),
    "roofline variables": Kind(lambda n: manifest(entry(vars='{N: "1", ' + numbered(n, 'V#: "x.shape[0] + #", ') + "}")), 300),
    "roofline variables in a chain": Kind(
        lambda n: manifest(entry(vars='{N: "1", V0: "1", ' + "".join(f'V{i + 1}: "V{i} + 1", ' for i in range(n)) + "}")), 300,
    ),
    "kernels of an entry": Kind(lambda n: manifest(entry(map=_mapped(n, "k#: K#Kernel"))), 1000),
    "comments": Kind(lambda n: manifest("# a comment\n" * n + entry()), 20_000),
    "blank lines": Kind(lambda n: manifest("\n" * n + entry()), 100_000),
    "a long scalar": Kind(lambda n: manifest(entry(more="  colour: " + "x" * n + "\n")), 1_000_000),
    "a long formula": Kind(lambda n: manifest(entry(flops='"' + "1+" * n + '1"')), 100_000),
    "a long type": Kind(lambda n: manifest(entry(params="{a: {type: '" + "int | " * n + "int'}}")), 4000),
    "a deep type": Kind(lambda n: manifest(entry(params="{a: {type: '" + "list[" * n + "int" + "]" * n + "'}}")), 4000),
    "a long key": Kind(lambda n: manifest(entry(more="  ? " + "x" * n + "\n  : 1\n")), 200_000),
    "a long name": Kind(lambda n: manifest(entry("A" + "b" * n)), 500),
    "a block scalar": Kind(lambda n: manifest(entry(more="  colour: |\n" + "    line\n" * n)), 50_000),
    "quotes to fold": Kind(lambda n: manifest(entry(more="  colour: 'a\n" + "\n    b" * n + "'\n")), 20_000),
    "anchors": Kind(lambda n: manifest(entry() + numbered(n, "a#: &a# {b: 1}\n")), 4000),
    "aliases": Kind(lambda n: manifest(entry() + "a: &a {b: 1}\n" + numbered(n, "a#: *a\n")), 2000),
    "aliases of a large value": Kind(lambda n: manifest(entry() + f"a: &a [{'1, ' * 100}]\n" + numbered(n, "a#: *a\n")), 500),
    "merged mappings": Kind(lambda n: manifest(entry() + "a0: &a0 {b: 1}\n" + "".join(f"a{i + 1}: &a{i + 1}\n  <<: *a{i}\n  k{i}: 1\n" for i in range(n))), 80),
    "merges of one mapping": Kind(lambda n: manifest(entry() + "a: &a {b: 1}\nc:\n" + "  <<: *a\n" * n), 4000),
    "aliases merged in a list": Kind(lambda n: manifest(entry() + "a: &a {b: 1}\nc:\n  <<: [" + "*a, " * n + "]\n"), 4000),
    "entries of one alias": Kind(lambda n: manifest("AFwdOp: &a\n" + entry().partition("\n")[2] + numbered(n, "A#FwdOp: *a\n")), 50),
    "a list of manifests": Kind(lambda n: {f"kit/manifest/m{i}.yaml": entry(f"A{i}FwdOp") for i in range(n)} | {"kit/ops.py": "class AFwdOp: pass\n"}, 100),
    "a sequence of scalars": Kind(lambda n: manifest(entry() + "a: [" + "1, " * n + "]\n"), 40_000),
    "nested flow lists": Kind(lambda n: manifest(entry() + "a: [" + ("[" * 90 + "]" * 90 + ", ") * n + "]\n"), 200),
    "text that is not YAML": Kind(lambda n: manifest(entry() + "a: [" + "x:y, " * n + "]\n"), 20_000),
    "tabs": Kind(lambda n: manifest(entry() + "\t\n" * n), 50_000),
}  # fmt: skip

ATEN: dict[str, Kind] = {
    "functions": Kind(lambda n: native(numbered(n, "- func: f#(Tensor self) -> Tensor\n  variants: function\n\n")), 300),
    "one function twice and more": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n\n" * n), 300),
    "overloads": Kind(lambda n: native(numbered(n, "- func: f.o#(Tensor self) -> Tensor\n\n")), 300),
    "in-place functions": Kind(lambda n: native(numbered(n, "- func: f#_(Tensor(a!) self) -> Tensor(a!)\n\n")), 300),
    "out functions": Kind(lambda n: native(numbered(n, "- func: f.o#(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n\n")), 300),
    "out functions of other signatures": Kind(lambda n: native("".join(f"- func: f.o{i}({'Tensor self, ' + ''.join(f'int a{j}, ' for j in range(i % 7))}*, Tensor(a!) out) -> Tensor(a!)\n\n" for i in range(n))), 300),
    "structured functions": Kind(lambda n: native(numbered(n, "- func: f#.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n\n- func: f#(Tensor self) -> Tensor\n  structured_delegate: f#.out\n\n")), 150),
    "functions with errors": Kind(lambda n: native(numbered(n, "- func: f#(Tensr self) -> Tensor\n  colour: x\n\n")), 300),
    "arguments of a function": Kind(lambda n: native("- func: f(Tensor self" + numbered(n, ", int a#") + ") -> Tensor\n"), 1000),
    "equal arguments": Kind(lambda n: native("- func: f(Tensor self" + ", int a" * n + ") -> Tensor\n"), 1000),
    "arguments of unknown types": Kind(lambda n: native("- func: f(Tensor self" + numbered(n, ", Intt a#") + ") -> Tensor\n"), 1000),
    "returns of a function": Kind(lambda n: native("- func: f(Tensor self) -> (" + ", ".join(f"Tensor r{i}" for i in range(n)) + ")\n"), 1000),
    "mutable arguments": Kind(lambda n: native("- func: f(" + ", ".join(f"Tensor(a{i}!) x{i}" for i in range(n)) + ") -> ()\n"), 500),
    "out arguments": Kind(lambda n: native("- func: f.out(Tensor self, *, " + ", ".join(f"Tensor(a{i}!) x{i}" for i in range(n)) + ") -> (" + ", ".join(f"Tensor(a{i}!)" for i in range(n)) + ")\n"), 300),
    "alias sets": Kind(lambda n: native("- func: f(Tensor(" + "|".join(f"a{i}" for i in range(n)) + ") self) -> Tensor\n"), 2000),
    "a list as default": Kind(lambda n: native("- func: f(Tensor self, int[] a=[" + ", ".join("1" for _ in range(n)) + "]) -> Tensor\n"), 2000),
    "a type of many brackets": Kind(lambda n: native("- func: f(Tensor self, int" + "[]" * n + " a) -> Tensor\n"), 500),
    "a function's long text": Kind(lambda n: native("- func: f(Tensor self" + " " * n + ") -> Tensor\n"), 200_000),
    "an open bracket": Kind(lambda n: native("- func: f" + "(" * n + "\n"), 20_000),
    "keys of a function": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n" + numbered(n, "  colour#: 1\n")), 2000),
    "a key twice and more": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n" + "  variants: function\n" * n), 4000),
    "dispatch keys": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n  dispatch:\n" + numbered(n, "    K#: f\n")), 2000),
    "dispatch keys in one line": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n  dispatch:\n    " + ", ".join(f"K{i}" for i in range(n)) + ": f\n"), 2000),
    "kernels of many functions": Kind(lambda n: native(numbered(n, "- func: f#(Tensor self) -> Tensor\n  dispatch: {CPU: f, CUDA: g#}\n\n")), 300),
    "tags of a function": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n  tags: [" + numbered(n, "t#, ") + "]\n"), 2000),
    "tags": Kind(lambda n: {NATIVE: "- func: f(Tensor self) -> Tensor\n", "aten/tags.yaml": numbered(n, "- tag: t#\n  desc: x\n")}, 1000),
    "equal tags": Kind(lambda n: {NATIVE: "- func: f(Tensor self) -> Tensor\n", "aten/tags.yaml": "- tag: t\n  desc: x\n" * n}, 1000),
    "autogen": Kind(lambda n: native("- func: f(Tensor self) -> Tensor\n  autogen: " + ", ".join(f"f.o{i}" for i in range(n)) + "\n"), 1000),
    "supported": Kind(lambda n: backend("supported:\n" + numbered(n, "- f#\n"), n), 300),
    "supported, unknown": Kind(lambda n: backend("supported:\n" + numbered(n, "- g#\n"), 100), 1000),
    "supported, near misses": Kind(lambda n: backend("supported:\n" + numbered(n, "- ff#\n"), n), 200),
    "supported twice and more": Kind(lambda n: backend("supported:\n" + "- f0\n" * n), 2000),
    "lists of a backend": Kind(lambda n: backend("supported:\n- f0\n" + numbered(n, "list#: [f0]\n")), 2000),
    "a list of schemas": Kind(lambda n: backend("supported:\n" + numbered(n, "- func: f#(Tensor self) -> Tensor\n"), n), 300),
    "formulas": Kind(lambda n: derivatives(numbered(n, "- name: f#(Tensor self, Tensor other) -> Tensor\n  self: grad\n  other: grad * self\n\n"), n), 150),
    "formulas of no function": Kind(lambda n: derivatives(numbered(n, "- name: g#(Tensor self, Tensor other) -> Tensor\n  self: grad\n\n"), n), 150),
    "formulas of one function": Kind(lambda n: derivatives("- name: f0(Tensor self, Tensor other) -> Tensor\n" + numbered(n, "  a#: grad\n")), 2000),
    "a long formula": Kind(lambda n: derivatives("- name: f0(Tensor self, Tensor other) -> Tensor\n  self: grad" + " + grad" * n + "\n  other: grad\n"), 10_000),
    "a nested formula": Kind(lambda n: derivatives("- name: f0(Tensor self, Tensor other) -> Tensor\n  self: " + "f(" * n + "grad" + ")" * n + "\n"), 5000),
}  # fmt: skip

KINDS = {
    **{f"tileops: {name}": kind for name, kind in TILEOPS.items()},
    **{f"aten: {name}": kind for name, kind in ATEN.items()},
}
