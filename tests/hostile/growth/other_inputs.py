"""Inputs in C++, and in the files of opschema itself: suppressions, baseline, configuration; and the tree's own shape."""

from __future__ import annotations

import json

from tests.hostile.growth.model import Files, Kind
from tests.hostile.growth.python_inputs import HEAD, OP, OPS, _kernel, kernels
from tests.hostile.growth.yaml_inputs import backend, entry, manifest, numbered

_LIBRARY = "#include <torch/library.h>\n"


def cpp(text: str) -> Files:
    """A tree with one file of C++ that defines operators."""
    return {"kit/ops.cpp": _LIBRARY + text, OPS: HEAD + OP}


def orchestrated(body: str, head: str = "") -> Files:
    """A tree with a kernel config and the C++ that submits its kernels."""
    text = f'#include "pto_orchestration_api.h"\n{head}\nextern "C" void entry(const ChipTaskArgs &a) {{\n{body}}}\n'
    return kernels("".join(map(_kernel, range(3))), "_D.IN, _D.OUT", text)


_ARGUMENT = "auto *p = reinterpret_cast<__gm__ float *>(reinterpret_cast<__gm__ ChipTensor *>(args[0])->buffer.addr);\n"


def kernel(body: str, head: str = "") -> Files:
    """A tree with an orchestration and the C++ of a kernel that it submits."""
    text = f'{head}extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{\n{_ARGUMENT}{body}}}\n'
    return {**orchestrated(_TASK.replace("#", "0")), "a/k0.cpp": text}


def _library(body: str) -> Files:
    return cpp(f"TORCH_LIBRARY(kit2, m) {{\n{body}}}\n")


_TASK = (
    "  CoreTaskArgs t#;\n  t#.add_input(a.tensor(0).ref());\n  t#.add_output(a.tensor(1).ref());\n"
    "  rt_submit_aic_task(0, t#);\n"
)

CPP: dict[str, Kind] = {
    "definitions": Kind(lambda n: _library(numbered(n, '  m.def("g#(Tensor x) -> Tensor");\n')), 300),
    "one definition again and again": Kind(lambda n: _library('  m.def("g(Tensor x) -> Tensor");\n' * n), 300),
    "libraries": Kind(lambda n: cpp(numbered(n, 'TORCH_LIBRARY(kit#, m) { m.def("g(Tensor x) -> Tensor"); }\n')), 300),
    "kernels": Kind(lambda n: cpp(numbered(n, "at::Tensor g#(const at::Tensor& x) { return x; }\n") + "TORCH_LIBRARY(kit2, m) {\n" + numbered(n, '  m.def("g#(Tensor x) -> Tensor", &g#);\n') + "}\n"), 200),
    "implementations": Kind(lambda n: cpp("at::Tensor g(const at::Tensor& x, int64_t y) { return x; }\n" 'TORCH_LIBRARY(kit2, m) { m.def("g(Tensor x) -> Tensor"); }\n' "TORCH_LIBRARY_IMPL(kit2, CPU, m) {\n" + '  m.impl("g", &g);\n' * n + "}\n"), 200),
    "overloads of a function": Kind(lambda n: cpp("".join(f"at::Tensor g({', '.join(f'int a{j}' for j in range(i % 9))}) {{ return x; }}\n" for i in range(n)) + 'TORCH_LIBRARY(kit2, m) { m.def("g(Tensor x) -> Tensor", &g); }\n'), 200),
    "parameters of a kernel": Kind(lambda n: cpp("at::Tensor g(const at::Tensor& x" + numbered(n, ", int64_t a#") + ') { return x; }\nTORCH_LIBRARY(kit2, m) { m.def("g(Tensor x) -> Tensor", &g); }\n'), 500),
    "macros": Kind(lambda n: cpp(numbered(n, "#define M# 1\n") + 'TORCH_LIBRARY(kit2, m) { m.def("g(Tensor x) -> Tensor"); }\n'), 1000),
    "macros in a chain": Kind(lambda n: cpp('#define M0 "g(Tensor x) -> Tensor"\n' + "".join(f"#define M{i + 1} M{i}\n" for i in range(n)) + f"TORCH_LIBRARY(kit2, m) {{ m.def(M{n}); }}\n"), 50),
    "macros that double": Kind(lambda n: cpp('#define M0 "g"\n' + "".join(f"#define M{i + 1} M{i} M{i}\n" for i in range(n)) + f"TORCH_LIBRARY(kit2, m) {{ m.def(M{n}); }}\n"), 5),
    "calls of a macro": Kind(lambda n: cpp('#define DEF(name) m.def(#name "(Tensor x) -> Tensor");\nTORCH_LIBRARY(kit2, m) {\n' + numbered(n, "  DEF(g#)\n").replace("#name", "#name") + "}\n"), 200),
    "nested braces": Kind(lambda n: cpp("void g() {" + "{" * n + "}" * n + "}\n"), 100),
    "braces": Kind(lambda n: cpp("void g() {" + "{}" * n + "}\n"), 5000),
    "open braces": Kind(lambda n: cpp("void g() " + "{" * n + "\n"), 1000),
    "a long expression": Kind(lambda n: cpp("int a = " + "1+" * n + "1;\n"), 500),
    "nested parentheses": Kind(lambda n: cpp("int a = " + "(" * n + "1" + ")" * n + ";\n"), 50),
    "templates": Kind(lambda n: cpp("A" + "<A" * n + ">" * n + " a;\n"), 50),
    "if defined": Kind(lambda n: cpp("#if A\n#endif\n" * n + 'TORCH_LIBRARY(kit2, m) { m.def("g(Tensor x) -> Tensor"); }\n'), 1000),
    "if in if": Kind(lambda n: cpp("#if A\n" * n + 'TORCH_LIBRARY(kit2, m) { m.def("g(Tensor x) -> Tensor"); }\n' + "#endif\n" * n), 50),
    "elif": Kind(lambda n: cpp("#if A\n" + numbered(n, '#elif A == #\nTORCH_LIBRARY(kit#, m) { m.def("g(Tensor x) -> Tensor"); }\n') + "#endif\n"), 100),
    "namespaces": Kind(lambda n: cpp("".join(f"namespace a{i} {{ " for i in range(n)) + "}" * n + "\n"), 50),
    "comments": Kind(lambda n: cpp("// a comment\n" * n), 20_000),
    "open comments": Kind(lambda n: cpp("/* " * n), 20_000),
    "quotes": Kind(lambda n: cpp('"' * n), 5000),
    "a long string": Kind(lambda n: _library('  m.def("g(Tensor x) -> Tensor' + " " * n + '");\n'), 50_000),
    "strings beside each other": Kind(lambda n: _library("  m.def(" + '"g" ' * n + ");\n"), 1000),
    "text that is not C++": Kind(lambda n: cpp("@ $ ` " * n + "\n"), 2000),
    "kernels of a backend": Kind(lambda n: {**backend("supported:\n" + numbered(n, "- f#\n"), n), "backend/k.cpp": "namespace kit {\n" + numbered(n, "at::Tensor XLANativeFunctions::f#(const at::Tensor& self) { return self; }\n") + "}\n"}, 200),
    "kernels of a backend, unlisted": Kind(lambda n: {**backend("supported:\n- f0\n", n), "backend/k.cpp": "namespace kit {\n" + numbered(n, "at::Tensor XLANativeFunctions::f#(const at::Tensor& self) { return self; }\n") + "}\n"}, 200),
    "kernels of a backend, misspelt": Kind(lambda n: {**backend("supported:\n" + numbered(n, "- f#\n"), n), "backend/k.cpp": "namespace kit {\n" + numbered(n, "at::Tensor XLANativeFunctions::ff#(const at::Tensor& self) { return self; }\n") + "}\n"}, 400),
    "overloads of a backend's kernel": Kind(lambda n: {**backend("supported:\n- f0\n", n), "backend/k.cpp": "namespace kit {\n" + "at::Tensor XLANativeFunctions::f0(const at::Tensor& self, int64_t a) { return self; }\n" * n + "}\n"}, 200),
    "tasks": Kind(lambda n: orchestrated(numbered(n, _TASK)), 50),
    "inputs of a task": Kind(lambda n: orchestrated("  CoreTaskArgs t;\n" + "  t.add_input(a.tensor(0).ref());\n" * n + "  rt_submit_aic_task(0, t);\n"), 200),
    "tasks in branches": Kind(lambda n: orchestrated("".join(f"  if (x > {i}) {{\n{_TASK.replace('#', str(i))}  }}\n" for i in range(n))), 50),
    "branches around a task": Kind(lambda n: orchestrated("  CoreTaskArgs t;\n" + "  if (x) { t.add_input(a.tensor(0).ref()); } else { t.add_inout(a.tensor(0).ref()); }\n" * n + "  rt_submit_aic_task(0, t);\n"), 10),
    "loops around a task": Kind(lambda n: orchestrated("for (int i = 0; i < 9; i++) {\n" * n + _TASK + "}\n" * n), 10),
    "functions of an orchestration": Kind(lambda n: orchestrated(_TASK, numbered(n, "static void g#(const Tensor &x) {\n" + _TASK.replace("a.tensor(0).ref()", "x").replace("a.tensor(1).ref()", "x") + "}\n")), 50),
    "functions that call each other twice": Kind(lambda n: orchestrated(f"  g{n}(a);\n", "static void g0(const ChipTaskArgs &a) {\n" + _TASK + "}\n" + "".join(f"static void g{i + 1}(const ChipTaskArgs &a) {{ g{i}(a); g{i}(a); }}\n" for i in range(n))), 5),
    "constants of an orchestration": Kind(lambda n: orchestrated(_TASK, numbered(n, "constexpr int C# = #;\n")), 500),
    "stores of a kernel": Kind(lambda n: kernel("View g(p); TSTORE(g, tile);\n" * n), 200),
    "variables of a kernel": Kind(lambda n: kernel("".join(f"auto *p{i} = {f'p{i - 1}' if i else 'p'} + 1;\n" for i in range(n)) + f"p{n - 1}[0] = 1;\n"), 200),
    "arguments of a kernel": Kind(lambda n: kernel(numbered(n, "auto *q# = reinterpret_cast<__gm__ float *>(args[#]); q#[0] = 1;\n")), 200),
    "helpers of a kernel in a chain": Kind(lambda n: kernel(f"g{n}(p);\n", "void g0(float *p) { p[0] = 1; }\n" + "".join(f"void g{i + 1}(float *p) {{ g{i}(p); }}\n" for i in range(n))), 100),
    "helpers of a kernel that call twice": Kind(lambda n: kernel(f"g{n}(p);\n", "void g0(float *p) { p[0] = 1; }\n" + "".join(f"void g{i + 1}(float *p) {{ g{i}(p); g{i}(p + 1); }}\n" for i in range(n))), 10),
    "overloads of a kernel's helper": Kind(lambda n: kernel("g(p);\n", "".join(f"void g(float *p{', int a' * (i % 9)}) {{ p[{i}] = 1; }}\n" for i in range(n))), 100),
    "blocks of a kernel": Kind(lambda n: kernel("for (int i = 0; i < 4; i++) {\n" * n + "p[0] = 1;\n" + "}\n" * n), 20),
    "branches of a kernel": Kind(lambda n: kernel("auto *q = p;\n" + "if (x) { q = p; } else { q = q + 1; }\n" * n + "q[0] = 1;\n"), 100),
    "template parameters of a store": Kind(lambda n: kernel("View g(p);\nTSTORE<" + "A<" * n + ">" * n + ", AtomicType::AtomicAdd>(g, tile);\n"), 100),
    "atomic stores of a kernel": Kind(lambda n: kernel("View g(p);\n" + "TSTORE<Tile, View, AtomicType::AtomicAdd>(g, tile);\n" * n), 200),
    "comments of a kernel with atomics": Kind(lambda n: kernel("// AtomicAdd set_atomic_add\n" * n + "View g(p);\nTSTORE(g, tile);\n"), 500),
    "directives of a kernel": Kind(lambda n: kernel("#if defined(A)\np[0] = 1;\n#else\np[1] = 1;\n#endif\n" * n), 100),
    "an enumeration": Kind(lambda n: orchestrated(_TASK, "enum E { " + numbered(n, "A#, ") + "};\n"), 500),
}  # fmt: skip

_DOCLESS = 'colour: "x"\n'


def _baseline(n: int) -> Files:
    entries = [
        {"code": "MAN101", "path": "kit/manifest/ops.yaml", "line": f"{i:016x}", "count": 1, "message": f"m{i}"}
        for i in range(n)
    ]
    return {**manifest(entry()), ".opschema-baseline.json": json.dumps({"version": 1, "findings": entries})}


OWN: dict[str, Kind] = {
    "suppressions": Kind(lambda n: manifest(entry(more=numbered(n, "  colour#: 1  # opschema: ignore[MAN101] x\n"))), 500),
    "suppressions of one line": Kind(lambda n: manifest(entry(more="  colour: 1" + "  # opschema: ignore[MAN101]" * n + "\n")), 500),
    "suppressions of a file": Kind(lambda n: manifest("# opschema: ignore-file[MAN101]\n" * n + entry()), 1000),
    "codes of a suppression": Kind(lambda n: manifest("# opschema: ignore-file[" + numbered(n, "MAN#, ") + "]\n" + entry()), 500),
    "equal codes of a suppression": Kind(lambda n: manifest("# opschema: ignore-file[" + "MAN101, " * n + "]\n" + entry()), 1000),
    "suppressions in Python": Kind(lambda n: {OPS: HEAD + OP + "x = 1  # opschema: ignore[REG101]\n" * n}, 1000),
    "suppressions above each other": Kind(lambda n: {OPS: HEAD + OP + "# opschema: ignore[REG101]\n" * n}, 1000),
    "unused suppressions in entries": Kind(lambda n: manifest("".join(entry(f"A{i}FwdOp:  # opschema: ignore[WKL201]\n  doc").replace(":\n  family", ": 1\n  family") for i in range(n))), 60),
    "words that no rule has": Kind(lambda n: manifest(numbered(n, "# opschema: ignore[no-such-rule-#]\n") + entry()), 300),
    "entries of a baseline": Kind(_baseline, 2000),
    "ignored patterns": Kind(lambda n: {**manifest(entry()), "opschema.toml": "[per-file-ignores]\n" + numbered(n, '"a#/**/*.py" = ["MAN"]\n')}, 200),
    "ignored patterns and many findings": Kind(lambda n: {**manifest(entry(more=numbered(n, "  colour#: 1\n"))), "opschema.toml": '[tileops]\nspec = ["latest"]\n[per-file-ignores]\n' + numbered(n, '"a#/**/*.py" = ["MAN"]\n')}, 100),
    "excluded patterns": Kind(lambda n: {**manifest(entry()), "opschema.toml": "exclude = [" + numbered(n, '"a#/**/*.py", ') + "]\n"}, 500),
    "ignored rules": Kind(lambda n: {**manifest(entry()), "opschema.toml": "ignore = [" + "'MAN101', " * n + "]\n"}, 2000),
    "unknown keys of the configuration": Kind(lambda n: {**manifest(entry()), "opschema.toml": numbered(n, "a# = 1\n")}, 2000),
    "lines of .gitignore": Kind(lambda n: {**manifest(entry()), ".gitignore": numbered(n, "a#/*.py\n")}, 500),
    "files": Kind(lambda n: {**manifest(entry()), **{f"d/f{i}.txt": "x" for i in range(n)}}, 1000),
    "folders": Kind(lambda n: {**manifest(entry()), **{f"d{i}/f.txt": "x" for i in range(n)}}, 500),
    "folders in folders": Kind(lambda n: {**manifest(entry()), "/".join(["d"] * min(n, 900)) + "/f.txt": "x"}, 100),
    "files of no pack": Kind(lambda n: {**manifest(entry()), **{f"d/f{i}.yaml": "a: 1\n" for i in range(n)}, **{f"d/f{i}.py": "a = 1\n" for i in range(n)}}, 500),
}  # fmt: skip

KINDS = {
    **{f"cpp: {name}": kind for name, kind in CPP.items()},
    **{f"own: {name}": kind for name, kind in OWN.items()},
}
