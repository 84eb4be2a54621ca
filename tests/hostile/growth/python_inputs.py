"""Inputs in Python: any module, operators of torch.library and Magi, kernels of FlyDSL, kernel configs of pypto."""

from __future__ import annotations

from tests.hostile.growth.model import Files, Kind
from tests.hostile.growth.yaml_inputs import entry, manifest, numbered

OPS = "kit/ops.py"

HEAD = "import torch\nfrom torch import Tensor\n\n\n"
OP = '@torch.library.custom_op("kit::f", mutates_args=())\ndef f(x: Tensor) -> Tensor:\n    return x.clone()\n\n\n'
MAGI = (
    "from dataclasses import dataclass\n\nimport torch\nfrom magi_compiler.api import magi_register_custom_op\n"
    "from torch import Tensor\n\n\n"
)
FLYDSL = "import flydsl.compiler as flyc\nimport flydsl.expr as fx\n\n\n"
PYPTO = "from simpler.task_interface import ArgDirection as _D\n\n"


def module(text: str, *, head: str = HEAD + OP) -> Files:
    """A tree with one module."""
    return {OPS: head + text}


def magi(text: str) -> Files:
    """A tree with one module of Magi's ops."""
    return {"opschema.toml": '[magi]\nmagi = "dataclasses"\n', OPS: MAGI + text}


def flydsl(text: str) -> Files:
    """A tree with one module of kernels."""
    return {OPS: FLYDSL + text, "pyproject.toml": '[project]\nname = "kit"\ndependencies = ["flydsl==0.4.2"]\n'}


def kernels(kernels: str, signature: str = "_D.IN", orchestration: str = "") -> Files:
    """A tree with one kernel config."""
    text = (
        f'{PYPTO}RUNTIME_CONFIG = {{"runtime": "tensormap_and_ringbuffer"}}\n'
        f'ORCHESTRATION = {{"source": "orch.cpp", "function_name": "entry", "signature": [{signature}]}}\n'
        f"KERNELS = [{kernels}]\n"
    )
    found = {"a/kernel_config.py": text, "opschema.toml": '[pypto]\nsignatures = "widest"\n'}
    return {**found, "a/orch.cpp": orchestration} if orchestration else found


def _kernel(i: int, signature: str = "_D.IN, _D.OUT") -> str:
    return (
        f'{{"func_id": {i}, "name": "k{i}", "source": "k{i}.cpp", "core_type": "aic", "signature": [{signature}]}},\n'
    )


def _op(i: int, name: str = "f", parameters: str = "x: Tensor", body: str = "return x.clone()") -> str:
    return (
        f'@torch.library.custom_op("kit::{name}{i}", mutates_args=())\ndef {name}{i}({parameters}) -> Tensor:\n'
        f"    {body}\n\n\n@{name}{i}.register_fake\ndef _(x):\n    return x.new_empty(x.shape)\n\n\n"
    )


PLAIN: dict[str, Kind] = {
    "functions": Kind(lambda n: module(numbered(n, "def g#(a, b=1):\n    return a + b\n\n\n")), 500),
    "classes": Kind(lambda n: module(numbered(n, "class A#:\n    def g(self, a):\n        return a\n\n\n")), 500),
    "classes in a chain": Kind(lambda n: manifest(entry(), "class A0: pass\n" + "".join(f"class A{i + 1}(A{i}): pass\n" for i in range(n)) + f"class AFwdOp(A{n}): pass\n"), 100),
    "bases of a class": Kind(lambda n: manifest(entry(), numbered(n, "class B#: pass\n") + "class AFwdOp(" + numbered(n, "B#, ") + "): pass\n"), 300),
    "one class again and again": Kind(lambda n: manifest(entry(), "class AFwdOp:\n    def forward(self, x): return x\n" * n), 300),
    "methods": Kind(lambda n: manifest(entry(), "class AFwdOp:\n" + numbered(n, "    def g#(self, a):\n        return self.g0(a)\n")), 1000),
    "attributes": Kind(lambda n: manifest(entry(), "class AFwdOp:\n    def __init__(self, scale=1.0):\n" + numbered(n, "        self.a# = scale\n")), 2000),
    "parameters": Kind(lambda n: manifest(entry(), "class AFwdOp:\n    def __init__(self, " + numbered(n, "p#=1, ") + "): pass\n"), 1000),
    "imports": Kind(lambda n: module(numbered(n, "import m#\n")), 1000),
    "imported names": Kind(lambda n: module("from m import (" + numbered(n, "a#, ") + ")\n"), 2000),
    "imports of each other": Kind(lambda n: {**module("from kit.m0 import g\n"), **{f"kit/m{i}.py": f"import torch\nfrom kit.m{i + 1} import g\n" for i in range(n)}}, 60),
    "star imports in a chain": Kind(lambda n: {**module("from kit.m0 import *\n"), **{f"kit/m{i}.py": f"import torch\nfrom kit.m{i + 1} import *\n" for i in range(n)}}, 60),
    "modules": Kind(lambda n: {**module(""), **{f"kit/m{i}.py": HEAD + _op(i) for i in range(n)}}, 60),
    "assignments": Kind(lambda n: module(numbered(n, "a# = #\n")), 4000),
    "assignments to one name": Kind(lambda n: module(numbered(n, "a = #\n")), 4000),
    "assignments in a chain": Kind(lambda n: module("a0 = 1\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(n))), 2000),
    "one statement of many targets": Kind(lambda n: module(numbered(n, "a# = ") + "1\n"), 2000),
    "statements in a line": Kind(lambda n: module("a = 1; " * n + "\n"), 4000),
    "decorators": Kind(lambda n: module(numbered(n, "@d#\n") + "def g(x): pass\n"), 2000),
    "a long list": Kind(lambda n: module("a = [" + numbered(n, "#, ") + "]\n"), 20_000),
    "a long dict": Kind(lambda n: module("a = {" + numbered(n, "'k#': #, ") + "}\n"), 10_000),
    "a long string": Kind(lambda n: module("a = '" + "x" * n + "'\n"), 500_000),
    "strings beside each other": Kind(lambda n: module("a = (" + "'x' " * n + ")\n"), 10_000),
    "an f-string": Kind(lambda n: module("a = f'" + "{x}" * n + "'\n"), 5000),
    "a sum": Kind(lambda n: module("a = " + "1+" * n + "1\n"), 1000),
    "a sum of strings": Kind(lambda n: module("a = " + "'x'+" * n + "'x'\n"), 1000),
    "a conjunction": Kind(lambda n: module("a = " + "b and " * n + "b\n"), 4000),
    "a comparison": Kind(lambda n: module("a = " + "b < " * n + "b\n"), 4000),
    "nested calls": Kind(lambda n: module("a = " + "g(" * n + "1" + ")" * n + "\n"), 20),
    "nested brackets": Kind(lambda n: module("a = [" + ("[" * 40 + "]" * 40 + ", ") * n + "]\n"), 100),
    "a chain of attributes": Kind(lambda n: module("a = b" + ".c" * n + "\n"), 500),
    "a chain of calls": Kind(lambda n: module("a = b" + ".c()" * n + "\n"), 500),
    "a chain of subscripts": Kind(lambda n: module("a = b" + "[0]" * n + "\n"), 500),
    "if and elif": Kind(lambda n: module("if a: pass\n" + numbered(n, "elif a == #: b = #\n")), 500),
    "conditional expressions": Kind(lambda n: module("a = " + "1 if b else " * n + "1\n"), 50),
    "if in if": Kind(lambda n: module("".join(" " * i + "if a:\n" for i in range(n)) + " " * n + "pass\n"), 20),
    "functions in functions": Kind(lambda n: module("".join(" " * i + f"def g{i}():\n" for i in range(n)) + " " * n + "pass\n"), 20),
    "comments": Kind(lambda n: module("# a comment\n" * n), 20_000),
    "blank lines": Kind(lambda n: module("\n" * n), 100_000),
    "continued lines": Kind(lambda n: module("a = 1" + " + \\\n 1" * n + "\n"), 1000),
    "a long comment": Kind(lambda n: module("# " + "x" * n + "\n"), 500_000),
    "a docstring": Kind(lambda n: module('def g():\n    """A text.\n\n' + "    Args: x\n" * n + '    """\n'), 10_000),
    "try and except": Kind(lambda n: module("try:\n    import a\nexcept ImportError:\n    a = None\n" * n), 1000),
    "with": Kind(lambda n: module("with " + ", ".join("a" for _ in range(n)) + ": pass\n"), 2000),
    "match": Kind(lambda n: module("match a:\n" + numbered(n, "    case #: pass\n")), 1000),
    "a comprehension of many loops": Kind(lambda n: module("a = [x " + "for x in y " * n + "]\n"), 300),
    "lambdas": Kind(lambda n: module("a = [" + "lambda x: x, " * n + "]\n"), 2000),
    "a byte that is not text": Kind(lambda n: {OPS: HEAD.encode() + b"# x\n" * n + b"# \xff\n"}, 50_000),
    "punycode": Kind(lambda n: {OPS: b"# coding: punycode\nimport torch.library\n" + b"a-" * n + b"b9" * n}, 20_000),
    "unicode_escape": Kind(lambda n: {OPS: b"# coding: unicode_escape\nimport torch.library\n" + b"\\x41" * n}, 100_000),
    "utf-7": Kind(lambda n: {OPS: b"# coding: utf-7\nimport torch.library\n" + b"+AGE-" * n}, 100_000),
    "gb18030": Kind(lambda n: {OPS: b"# coding: gb18030\nimport torch.library\n" + "# 变数\n".encode("gb18030") * n}, 30_000),
    "iso-2022-jp": Kind(lambda n: {OPS: b"# coding: iso-2022-jp\nimport torch.library\n" + "# \u5909\u6570\n".encode("iso-2022-jp") * n}, 30_000),
}  # fmt: skip

TORCHLIB: dict[str, Kind] = {
    "operators": Kind(lambda n: {OPS: HEAD + "".join(map(_op, range(n)))}, 100),
    "operators with errors": Kind(lambda n: {OPS: HEAD + "".join(_op(i, parameters="x: Tensor, y: int") for i in range(n))}, 100),
    "one operator again and again": Kind(lambda n: {OPS: HEAD + _op(0) * n}, 100),
    "fakes of one operator": Kind(lambda n: module("@f.register_fake\ndef _(x, y):\n    return x\n\n\n" * n), 100),
    "kernels of one operator": Kind(lambda n: module(numbered(n, '@f.register_kernel("cuda")\ndef _(x, y):\n    return x\n\n\n')), 100),
    "parameters of an operator": Kind(lambda n: {OPS: HEAD + _op(0, parameters="x: Tensor, " + numbered(n, "p#: int = 1, "))}, 300),
    "parameters without types": Kind(lambda n: {OPS: HEAD + _op(0, parameters="x: Tensor, " + numbered(n, "p#, "))}, 300),
    "a schema's arguments": Kind(lambda n: module('torch.library.define("kit::g", "(Tensor x' + numbered(n, ", int a#=1") + ') -> Tensor")\n'), 1000),
    "a schema that does not parse": Kind(lambda n: module('torch.library.define("kit::g", "' + "(" * n + '")\n'), 5000),
    "definitions": Kind(lambda n: module(numbered(n, 'torch.library.define("kit::g#", "(Tensor x) -> Tensor")\n')), 300),
    "definitions in a library": Kind(lambda n: module('lib = torch.library.Library("kit", "DEF")\n' + numbered(n, 'lib.define("g#(Tensor x) -> Tensor")\n')), 300),
    "registrations in a loop": Kind(lambda n: module('lib = torch.library.Library("kit", "DEF")\nfor name in [' + numbered(n, "'g#', ") + ']:\n    lib.define(f"{name}(Tensor x) -> Tensor")\n'), 300),
    "loops in loops": Kind(lambda n: module('lib = torch.library.Library("kit", "DEF")\n' + "".join(" " * i + f"for a{i} in ['x', 'y']:\n" for i in range(n)) + " " * n + 'lib.define(f"g' + "".join(f"{{a{i}}}" for i in range(n)) + '(Tensor x) -> Tensor")\n'), 4),
    "a loop over a range": Kind(lambda n: module(f'lib = torch.library.Library("kit", "DEF")\nfor i in range({n}):\n' + '    lib.define(f"g{i}(Tensor x) -> Tensor")\n'), 1000),
    "libraries": Kind(lambda n: module(numbered(n, 'lib# = torch.library.Library("kit#", "DEF")\nlib#.define("g(Tensor x) -> Tensor")\n')), 200),
    "factories in a chain": Kind(lambda n: module('def r0(name):\n    torch.library.define(name, "(Tensor x) -> Tensor")\n\n\n' + "".join(f"def r{i + 1}(name):\n    r{i}(name)\n\n\n" for i in range(n)) + f'r{n}("kit::g")\n'), 10),
    "factories that call each other twice": Kind(lambda n: module('def r0(name):\n    torch.library.define(name, "(Tensor x) -> Tensor")\n\n\n' + "".join(f"def r{i + 1}(name):\n    r{i}(name + 'a')\n    r{i}(name + 'b')\n\n\n" for i in range(n)) + f'r{n}("kit::g")\n'), 6),
    "calls of a factory": Kind(lambda n: module('def r(name):\n    torch.library.define(name, "(Tensor x) -> Tensor")\n\n\n' + numbered(n, 'r("kit::g#")\n')), 200),
    "calls of an operator": Kind(lambda n: module("def g(x):\n" + "    torch.ops.kit.f(x, 1)\n" * n), 500),
    "calls of unknown operators": Kind(lambda n: module("def g(x):\n" + numbered(n, "    torch.ops.kit.ff#(x)\n")), 300),
    "a fake's body": Kind(lambda n: module("@f.register_fake\ndef _(x):\n" + numbered(n, "    a# = x.shape[0]\n") + "    return x.new_empty(a0)\n"), 1000),
    "a fake's branches": Kind(lambda n: module("@f.register_fake\ndef _(x):\n" + numbered(n, "    if x.shape[0] == #:\n        x = x + 1\n") + "    return x\n"), 300),
    "a fake's aliases": Kind(lambda n: module("@f.register_fake\ndef _(x):\n    a0 = x\n" + "".join(f"    a{i + 1} = a{i}.view(-1)\n" for i in range(n)) + f"    return a{n}\n"), 300),
    "an operator's writes": Kind(lambda n: {OPS: HEAD + _op(0, body=numbered(n, "x.add_(#); ") + "return x")}, 500),
    "mutates_args": Kind(lambda n: {OPS: HEAD + '@torch.library.custom_op("kit::f", mutates_args=[' + numbered(n, '"a#", ') + "])\ndef f(x: Tensor) -> None: pass\n"}, 1000),
    "operators that call each other": Kind(lambda n: {OPS: HEAD + "".join(_op(i + 1, body=f"return f{i}(x)") for i in range(n))}, 100),
}  # fmt: skip

OTHERS: dict[str, Kind] = {
    "magi: ops": Kind(lambda n: magi(numbered(n, '@magi_register_custom_op("kit::f#")\ndef f#(x: Tensor) -> Tensor:\n    return x.clone()\n\n\n')), 100),
    "magi: parameters of an op": Kind(lambda n: magi('@magi_register_custom_op("kit::f")\ndef f(x: Tensor, ' + numbered(n, "p#: int = 1, ") + ") -> Tensor:\n    return x.clone()\n"), 300),
    "magi: fields of a dataclass": Kind(lambda n: magi("@dataclass\nclass A:\n" + numbered(n, "    a#: int = 1\n") + '\n\n@magi_register_custom_op("kit::f")\ndef f(x: Tensor, a: A) -> Tensor:\n    return x.clone()\n'), 300),
    "magi: dataclasses in each other": Kind(lambda n: magi("@dataclass\nclass A0:\n    a: int\n\n\n" + "".join(f"@dataclass\nclass A{i + 1}:\n    a: A{i}\n    b: A{i}\n\n\n" for i in range(n)) + f'@magi_register_custom_op("kit::f")\ndef f(x: Tensor, a: A{n}) -> Tensor:\n    return x.clone()\n'), 5),
    "magi: calls of an op": Kind(lambda n: magi('@magi_register_custom_op("kit::f")\ndef f(x: Tensor) -> Tensor:\n    return x.clone()\n\n\ndef g(x):\n' + "    f(x, 1)\n" * n), 300),
    "flydsl: files with launchers of one name": Kind(lambda n: {**flydsl(""), **{f"kit/m{i}.py": FLYDSL + "@flyc.kernel\ndef k(X: fx.Tensor):\n    i = fx.thread_idx.x\n\n\n@flyc.jit\ndef launch(X: fx.Tensor):\n    k(X).launch(grid=(1, 1, 1), block=(64, 1, 1))\n\n\ndef run(x):\n    launch(x)\n    flyc.compile(launch, x)\n" for i in range(n)}}, 40),
    "flydsl: files that take names from each other": Kind(lambda n: {**flydsl(""), **{f"kit/m{i}.py": FLYDSL + f"from kit.m{i + 1} import launch{i + 1}\n\n\n@flyc.jit\ndef launch{i}(X: fx.Tensor):\n    launch{i + 1}(X)\n" for i in range(n)}}, 40),
    "flydsl: kernels": Kind(lambda n: flydsl(numbered(n, "@flyc.kernel\ndef k#(X: fx.Tensor, n: fx.Int32):\n    i = fx.thread_idx.x\n\n\n@flyc.jit\ndef run#(X: fx.Tensor, n: fx.Int32):\n    k#(X, n).launch(grid=(1, 1, 1), block=(256, 1, 1))\n\n\n")), 50),
    "flydsl: launches": Kind(lambda n: flydsl("@flyc.kernel\ndef k(X: fx.Tensor, n: fx.Int32):\n    i = fx.thread_idx.x\n\n\n@flyc.jit\ndef run(X: fx.Tensor, n: fx.Int32):\n" + "    k(X, n, 1).launch(grid=(1, 1, 1), block=(256, 1, 1))\n" * n), 200),
    "flydsl: parameters of a kernel": Kind(lambda n: flydsl("@flyc.kernel\ndef k(X: fx.Tensor, " + numbered(n, "n#: fx.Int32, ") + "):\n    i = fx.thread_idx.x\n\n\n@flyc.jit\ndef run(X: fx.Tensor):\n    k(X, " + numbered(n, "n#=#, ") + ").launch(grid=(1, 1, 1), block=(256, 1, 1))\n"), 300),
    "flydsl: a kernel's body": Kind(lambda n: flydsl("@flyc.kernel\ndef k(X: fx.Tensor, n: fx.Int32):\n    a0 = fx.thread_idx.x + n\n" + "".join(f"    a{i + 1} = a{i} + n\n" for i in range(n)) + f"    if a{n} > 1:\n        pass\n"), 300),
    "flydsl: assignments of one name": Kind(lambda n: flydsl("@flyc.kernel\ndef k(X: fx.Tensor, n: fx.Int32):\n    a = n\n" + "    a = a + n\n" * n + "    for i in range(a): pass\n"), 300),
    "flydsl: branches": Kind(lambda n: flydsl("@flyc.kernel\ndef k(X: fx.Tensor, n: fx.Int32):\n    a = 1\n" + "    if n > 1:\n        a = a + n\n" * n + "    for i in range(a): pass\n"), 200),
    "flydsl: kernels in factories": Kind(lambda n: flydsl("def make(" + numbered(n, "c#, ") + "):\n    @flyc.kernel\n    def k(X: fx.Tensor):\n        a = " + " + ".join(f"c{i}" for i in range(n)) + "\n\n    return k\n"), 200),
    "flydsl: calls beside expected errors": Kind(lambda n: flydsl("@flyc.jit\ndef run(X: fx.Tensor, n: fx.Int32):\n    pass\n\n\ndef test(x):\n" + "    with pytest.raises(TypeError):\n        run(x)\n    run(x)\n" * n), 40),
    "flydsl: changed variables": Kind(lambda n: flydsl("@flyc.kernel\ndef k(X: fx.Tensor):\n" + "".join(f"    v{i:05} = 1\n" for i in range(n)) + "    if fx.block_idx.x > 1:\n" + "".join(f"        v{i:05} = v{i:05} + fx.Float32(1)\n" for i in range(n)) + "    X[0] = 1\n" * n), 1500),
    "flydsl: calls that are tried": Kind(lambda n: flydsl("def wrap(x):\n" + "    try:\n        load()\n    except OSError:\n        pass\n    x = flyc.TensorAdaptor(x)\n" * n), 1000),
    "pypto: kernels": Kind(lambda n: kernels("".join(map(_kernel, range(n)))), 100),
    "pypto: kernels with arg_index": Kind(lambda n: {**kernels("".join(_kernel(i).replace("}", ', "arg_index": [0, 1]}') for i in range(n))), "opschema.toml": '[pypto]\nsignatures = "arg-index"\n'}, 100),
    "pypto: descriptions of one file": Kind(lambda n: {**kernels(""), "a/test_many.py": f"{PYPTO}from simpler_setup import SceneTestCase\n\n" + "".join(f'class Test{i}(SceneTestCase):\n    CALLABLE = {{"orchestration": {{"source": "orch.cpp", "function_name": "entry", "signature": [_D.IN]}}, "incores": [{_kernel(i).strip()}]}}\n\n' for i in range(n))}, 60),
    "pypto: one kernel again and again": Kind(lambda n: kernels(_kernel(0) * n), 100),
    "pypto: a kernel's signature": Kind(lambda n: kernels(_kernel(0, "_D.IN, " * n)), 1000),
    "pypto: an orchestration's signature": Kind(lambda n: kernels(_kernel(0), "_D.IN, " * n), 1000),
    "pypto: unknown directions": Kind(lambda n: kernels(_kernel(0, "_D.INN, " * n)), 1000),
    "pypto: configs": Kind(lambda n: {f"{i}/{path}": text for i in range(n) for path, text in kernels(_kernel(0)).items()}, 30),
}  # fmt: skip

KINDS = {
    **{f"python: {name}": kind for name, kind in PLAIN.items()},
    **{f"torchlib: {name}": kind for name, kind in TORCHLIB.items()},
    **OTHERS,
}
