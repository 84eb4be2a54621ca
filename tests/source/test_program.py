"""Modules joined: imports, lineages, patched and generated members, constants. Everything from texts, nothing runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import pytest

from opschema_cli.source.program import (
    ClassRef,
    External,
    FunctionRef,
    Missing,
    ModuleRef,
    Program,
    Resolution,
    Unresolved,
    ValueRef,
)
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source


class Tree:
    """A program made of texts."""

    def __init__(self, others: Iterable[str] = (), **texts: str) -> None:
        self.files = {
            f"{name.replace('__', '/')}.py".replace("/init.py", "/__init__.py"): self.parsed(name, text)
            for name, text in texts.items()
        }
        self.opened: list[str] = []
        self.program = Program([*self.files, *others], self.load, list(self.files))

    @staticmethod
    def parsed(name: str, text: str) -> PythonFile:
        path = f"{name.replace('__', '/')}.py".replace("/init.py", "/__init__.py")
        source = Source(path, textwrap.dedent(text))
        return PythonFile(source, collect(source.text))

    def load(self, path: str) -> PythonFile | None:
        self.opened.append(path)
        return self.files.get(path)

    def resolve(self, path: str, name: str) -> Resolution:
        return self.program.resolve(self.files[path], name)

    def cls(self, path: str, name: str) -> ClassRef:
        found = self.resolve(path, name)
        assert isinstance(found, ClassRef), found
        return found

    def member(self, cls: str, name: str, path: str = "m.py") -> str:
        """A member in words: the class and file that define it, a value's text, or why it is not known."""
        return described(self.program.member(self.cls(path, cls), name))


def described(found: object) -> str:
    if isinstance(found, FunctionRef):
        return f"{found.owner.name + '.' if found.owner else ''}{found.function.name}"
    if isinstance(found, ClassRef):
        return f"{found.file.path}:{found.name}"
    if isinstance(found, ValueRef):
        return f"={found.file.text(found.assign.value)}" if found.assign.value is not None else "=?"
    if isinstance(found, Unresolved):
        return f"unresolved: {found.reason}"
    if isinstance(found, Missing):
        return f"missing: {found.module}.{found.name}"
    if isinstance(found, External):
        return f"external: {found.name}"
    return f"module: {found.path}" if isinstance(found, ModuleRef) else str(found)


# Names

PACKAGE = {
    "kit__init": "from .ops import *\nfrom .ops.norm import RmsOp as Rms\n",
    "kit__ops__init": "from kit.ops.norm import RmsOp\nfrom . import pool\nfrom .base import Op\n",
    "kit__ops__base": "import torch\n\nclass Op: ...\n",
    "kit__ops__norm": "from ..kernels import kernel as k\nfrom .base import Op\n\nclass RmsOp(Op): ...\n",
    "kit__ops__pool": "EPS = 1e-5\n",
    "kit__kernels__init": "",
    "kit__kernels__kernel": "def run(): ...\n",
    "main": """
        import kit
        import kit.ops.pool as pool
        import torch.nn as nn
        from kit import RmsOp, Rms
        from torch import float16
    """,
}

NAMES = [
    ("main.py", "RmsOp", "kit/ops/norm.py:RmsOp"),
    ("main.py", "Rms", "kit/ops/norm.py:RmsOp"),
    ("main.py", "kit.ops.norm.RmsOp", "kit/ops/norm.py:RmsOp"),
    ("main.py", "pool.EPS", "=1e-5"),
    ("main.py", "kit.ops.pool.EPS", "=1e-5"),
    ("main.py", "kit.Op", "kit/ops/base.py:Op"),
    ("main.py", "nn.Module", "external: torch.nn.Module"),
    ("main.py", "float16", "external: torch.float16"),
    ("main.py", "kit.ops.base.torch.Tensor", "external: torch.Tensor"),
    ("main.py", "nothing", "missing: main.py.nothing"),
    ("main.py", "pool.nothing", "missing: kit/ops/pool.py.nothing"),
    ("main.py", "kit.kernels", "module: kit/kernels/__init__.py"),
    ("main.py", "int", "external: int"),
    ("kit/ops/norm.py", "k.run", "run"),
]


@pytest.mark.parametrize(("path", "name", "expected"), NAMES)
def test_names_are_followed_through_imports(path: str, name: str, expected: str) -> None:
    assert described(Tree(**PACKAGE).resolve(path, name)) == expected


@pytest.mark.parametrize(("path", "name", "expected"), NAMES)
def test_names_that_one_import_binds_are_found_in_the_other_module(path: str, name: str, expected: str) -> None:
    tree = Tree(**PACKAGE)
    file = tree.program.load(path)
    assert file is not None
    found = tree.program.imported_from(file, name)
    outside = name in ("nn.Module", "float16", "nothing", "int")
    assert (found is None) == outside
    if found is not None:
        member = tree.program.module_member(*found) if found[1] else ModuleRef(found[0])
        assert described(member) == expected


def test_a_submodule_does_not_hide_what_another_star_import_binds() -> None:
    files = {
        "kit__init": "from kit.trial import *\nfrom kit.ops import *\n",
        "kit__trial__init": '__all__ = ["fast"]\n',
        "kit__trial__scale": "def scale(): ...\n",
        "kit__trial__shift": "",
        "kit__ops__init": "from kit.ops.scale import scale\n",
        "kit__ops__scale": "def scale(): ...\n",
    }
    tree = Tree(**files)
    assert described(tree.resolve("kit/__init__.py", "scale")) == "scale"
    assert described(tree.resolve("kit/__init__.py", "shift")) == "module: kit/trial/shift.py"


def test_names_that_several_statements_bind_are_not_taken_from_one_import() -> None:
    tree = Tree(a="x = 1\n", main="try:\n    from a import x\nexcept ImportError:\n    x = None\nimport a\ndel a\n")
    file = tree.program.load("main.py")
    assert file is not None
    assert tree.program.imported_from(file, "x") is None
    assert tree.program.imported_from(file, "a.x") is None


def test_modules_that_import_each_other_in_a_circle_are_no_endless_loop() -> None:
    tree = Tree(a="from b import Thing\n", b="from a import Thing\n", c="from d import *\n", d="from c import *\n")
    assert isinstance(tree.resolve("a.py", "Thing"), Unresolved | Missing)
    assert isinstance(tree.resolve("c.py", "Thing"), Unresolved | Missing)


DOUBTS = [
    ("bound twice", "if fast:\n    def f(): ...\nelse:\n    def f(x): ...\n", "bound 2 times"),
    ("deleted", "f = 1\ndel f\n", "deleted or global"),
    ("made at run time", "globals()['f'] = 1\n", "at run time"),
    ("made by a function", "def make():\n    globals()['f'] = 1\nmake()\n", "at run time"),
    ("set by a function", "def make():\n    global f\n    f = 1\nmake()\n", "at run time"),
    ("answered by the module", "def __getattr__(name): ...\n", "at run time"),
    ("taken from outside", "from elsewhere import *\n", "elsewhere.f"),
    ("replaced by a function", "def f(): ...\ndef replace():\n    global f\n    f = 1\n", "declares it global"),
    (
        "from two modules",
        "try:\n    from one import f\nexcept ImportError:\n    from two import f\n",
        "several definitions",
    ),
    ("hidden by a star", "from one import f\nfrom two import *\n", "several definitions"),
    ("of two stars", "from one import *\nfrom two import *\n", "several definitions"),
    ("of a star that may be hidden", "from one import *\nfrom elsewhere import *\n", "may hold another `f`"),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in DOUBTS], ids=[case[0] for case in DOUBTS])
def test_a_name_that_may_be_there_is_never_missing(text: str, expected: str) -> None:
    both = {"one": "def f(): ...\n", "two": "def f(x): ...\n"}
    found = Tree(m="from other import f\n", other=text, **both).resolve("m.py", "f")
    assert isinstance(found, Unresolved | External)
    assert expected in described(found)


@pytest.mark.parametrize(
    "text",
    [
        "from two import *\nfrom one import f\n",
        "from one import f\nfrom one import *\n",
        "from one import f\nfrom empty import *\nfrom elsewhere import *\n",
        "from elsewhere import *\nfrom one import *\nfrom empty import *\n",
    ],
)
def test_a_star_that_hides_nothing(text: str) -> None:
    files = {"one": "def f(): ...\n", "two": "def f(x): ...\n", "empty": "", "m": text}
    found = Tree(**files).resolve("m.py", "f")
    assert isinstance(found, FunctionRef)
    assert found.file.path == "one.py"


@pytest.mark.parametrize("other", ["from kit import f", "from elsewhere import f", "from one import nothing as f"])
def test_imports_that_may_bind_one_definition_lead_to_it(other: str) -> None:
    text = f"try:\n    from one import f\nexcept ImportError:\n    {other}\n"
    tree = Tree(m=text, one="def f(): ...\n", kit__init="from one import f\n")
    assert described(tree.resolve("m.py", "f")) == "f"


BINDINGS = [
    "f, g = make()",
    "for f in (1, 2): ...",
    "with open('x') as f: ...",
    "(f := 1)",
    "f: int = 1",
    "f = 1\nf += 1",
]


@pytest.mark.parametrize("text", BINDINGS)
def test_every_kind_of_binding_defines_a_name(text: str) -> None:
    assert not isinstance(Tree(m="from other import f\n", other=text + "\n").resolve("m.py", "f"), Missing)


def test_an_annotation_alone_defines_nothing() -> None:
    tree = Tree(m="from other import f\n", other="f: int\n")
    assert described(tree.resolve("m.py", "f")) == "missing: other.py.f"


@pytest.mark.parametrize("other", ["kit/fast/native.cpp", "kit/fast.pyi", "kit/fast.so"])
def test_a_submodule_that_is_not_python_is_not_missing(other: str) -> None:
    tree = Tree([other], main="from kit import fast\n", kit__init="")
    assert isinstance(tree.resolve("main.py", "fast"), Unresolved)


def test_a_folder_without_init_is_a_package_too() -> None:
    tree = Tree(main="from kit.plain.deep import f\n", kit__init="", kit__plain__deep="def f(): ...\n")
    assert described(tree.resolve("main.py", "f")) == "f"


def test_a_package_hides_the_file_of_its_name() -> None:
    tree = Tree(
        kit__init="",
        kit__utils="class Old: pass\nclass Op: pass\n",
        kit__utils__init="from .common import *\n",
        kit__utils__common="class Op: pass\n",
        main="from kit.utils import Old, Op\n",
    )
    assert described(tree.resolve("main.py", "Op")) == "kit/utils/common.py:Op"
    assert not isinstance(tree.resolve("main.py", "Old"), ClassRef)


def test_a_module_that_two_folders_hold_is_not_chosen() -> None:
    tree = Tree(a__tool="f = 1\n", b__tool="g = 1\n", main="from tool import f\n")
    assert not isinstance(tree.resolve("main.py", "f"), ValueRef | Missing)


# Classes

DIAMOND = """
    class Base:
        def forward(self): ...
        def only_base(self): ...
    class Left(Base):
        def forward(self): ...
    class Right(Base):
        def forward(self): ...
        def only_right(self): ...
    class Bottom(Left, Right): ...
"""


def test_the_lineage_of_a_diamond_is_pythons() -> None:
    tree = Tree(m=DIAMOND)
    assert [item.name for item in tree.program.lineage(tree.cls("m.py", "Bottom"))] == [
        "Bottom",
        "Left",
        "Right",
        "Base",
    ]
    found = [tree.member("Bottom", name) for name in ("forward", "only_right", "only_base", "absent")]
    assert found == ["Left.forward", "Right.only_right", "Base.only_base", "None"]


def test_bases_without_an_order_and_bases_in_a_circle_are_unresolved() -> None:
    tree = Tree(m="class A: ...\nclass B(A): ...\nclass C(A, B): ...\nclass D(D): ...\n")
    assert tree.member("C", "f") == "unresolved: the bases of `C` have no order"
    assert tree.member("D", "f").startswith("unresolved: ")


def test_a_base_outside_the_workspace_may_define_anything() -> None:
    tree = Tree(m="import torch\nfrom abc import ABC\nclass A(torch.nn.Module): ...\nclass B(ABC): ...\n")
    assert "inherits from `torch.nn.Module`" in tree.member("A", "forward")
    assert tree.member("B", "forward") == "None"


def test_generic_bases_and_overloads_are_looked_through() -> None:
    tree = Tree(
        m="""
        from typing import Generic, TypeVar, overload
        T = TypeVar("T")
        class Base(Generic[T]):
            @overload
            def forward(self, x: int): ...
            def forward(self, x): ...
        class Op(Base[int]): ...
        """
    )
    assert tree.member("Op", "forward") == "Base.forward"


MEMBERS = [
    ("alias", "def _check(self, x): ...\nclass Op:\n    _validate = _check\n", "_validate", "Op._check"),
    ("value", "class Op:\n    names = ['a']\n", "names", "=['a']"),
    ("twice", "class Op:\n    def f(self): ...\n    f = wrap(f)\n", "f", "unresolved: `Op` defines `f` more than once"),
    ("assigned below", "def run(self): ...\nclass Op:\n    def f(self): ...\nOp.f = run\n", "f", "Op.run"),
    (
        "under a condition",
        "class Op: ...\nif fast:\n    Op.f = run\n",
        "f",
        "unresolved: `Op.f` is assigned outside the class",
    ),
    ("assigned twice", "class Op: ...\nOp.f = 1\nOp.f = 2\n", "f", "unresolved: `Op.f` is assigned outside the class"),
    ("by setattr", "class Op: ...\nsetattr(Op, 'f', 1)\n", "f", "unresolved: `Op.f` is assigned outside the class"),
    (
        "by setattr, any",
        "class Op: ...\nsetattr(Op, name, 1)\n",
        "f",
        "unresolved: `Op.f` is assigned outside the class",
    ),
    ("decorated", "@register\nclass Op:\n    def f(self): ...\n", "f", "unresolved: `Op` is decorated"),
    ("decorated, harmless", "def keep(cls):\n    return cls\n@keep\nclass Op:\n    def f(self): ...\n", "f", "Op.f"),
    ("metaclass", "class Op(metaclass=Registry):\n    def f(self): ...\n", "f", "unresolved: `Op` has a metaclass"),
    ("ABCMeta", "from abc import ABCMeta\nclass Op(metaclass=ABCMeta):\n    def f(self): ...\n", "f", "Op.f"),
]


@pytest.mark.parametrize(
    ("text", "name", "expected"), [case[1:] for case in MEMBERS], ids=[case[0] for case in MEMBERS]
)
def test_members_that_are_assigned(text: str, name: str, expected: str) -> None:
    assert Tree(m=text).member("Op", name) == expected


LOOP = """
    class Relu:
        def forward(self): ...
    class Gelu:
        def forward(self): ...
    class Tanh:
        def forward(self): ...

    def _register(cls, name):
        _wrap(cls)
        cls.op_name = name

    def _wrap(target):
        def call(self): ...
        target.forward = call

    NAMES = {}
    for _cls, _name in [(Relu, "relu"), (Gelu, "gelu")]:
        _register(_cls, _name)
"""


def test_a_loop_that_hands_classes_to_a_helper_patches_them() -> None:
    tree = Tree(m=LOOP)
    assert tree.member("Relu", "forward") == "unresolved: `Relu.forward` is assigned outside the class"
    assert tree.member("Gelu", "op_name") == "unresolved: `Gelu.op_name` is assigned outside the class"
    assert tree.member("Tanh", "forward") == "Tanh.forward"


def test_patches_whose_names_are_attributes_of_classes() -> None:
    text = """
        class Op:
            def f(self): ...
            class Inner: ...
        _f = Op.f
        def wrapper(self): _f(self)
        Op.f = wrapper
        Op.Inner.g = 1
        Op.f.tag = 2
        for cls in [Op.Inner, Op]:
            mark(cls)
    """
    tree = Tree(m=text)
    assert tree.member("Op", "f") == "Op.wrapper"
    assert described(tree.resolve("m.py", "_f")) == "unresolved: `Op.f` is replaced below its class"


def test_a_function_that_somebody_may_call_patches_what_it_names() -> None:
    tree = Tree(
        m="class Op:\n    def f(self): ...\ndef patch():\n    Op.f = 1\ndef local():\n    Op = 1\n    Op.g = 2\n"
    )
    assert tree.member("Op", "f") == "unresolved: `Op.f` is assigned outside the class"
    assert tree.member("Op", "g") == "None"


def test_a_patch_may_stand_in_another_module() -> None:
    tree = Tree(m="class Op:\n    def f(self): ...\n", n="from m import Op\nOp.f = other\n")
    assert tree.member("Op", "f") == "unresolved: `Op.f` is assigned outside the class"


def hooked(body: str, op: str, base: str = "") -> str:
    """How ``Op.forward`` resolves below a base whose hook has this body."""
    text = (
        "def install(x, op):\n    op.forward = x\nclass Base:\n    def __init_subclass__(cls, **kwargs):\n"
        + textwrap.indent(textwrap.dedent(body), " " * 8)
    )
    text += "\n    def forward(self): ...\n" + textwrap.indent(textwrap.dedent(base), "    ")
    return Tree(m=text + "\nclass Op(Base):\n" + textwrap.indent(textwrap.dedent(op), "    ")).member("Op", "forward")


MADE = "unresolved: `Base.__init_subclass__` makes `forward`"
BY_DICT = (
    'other = cls.__dict__.get("_other")\nif other is None or other == "y":\n    return\ncls.forward = make(other)\n'
)
BY_VARS = 'if "_other" not in vars(cls):\n    return\nsetattr(cls, "forward", make())\n'
BY_GETATTR = 'if getattr(cls, "_other", None):\n    cls.forward = make()\n'
IF_ABSENT = 'if "forward" in cls.__dict__:\n    return\ncls.forward = make()\n'
IN_ELSE = 'if hasattr(cls, "_done"):\n    pass\nelse:\n    cls.forward = make()\n'
IF_INHERITED = "if cls.forward is Base.forward:\n    cls.forward = make()\n"
IF_OVERRIDDEN = "if cls.forward is not Base.forward:\n    cls.forward = wrap(cls.forward)\n"

HOOKS = [
    ("no condition", "cls.forward = make()", "pass", "", MADE),
    ("writes something else", "cls.name = cls.__name__", "pass", "", "Base.forward"),
    ("own attribute, absent", BY_DICT, "pass", "", "Base.forward"),
    ("own attribute, present", BY_DICT, "_other = 'z'", "", MADE),
    ("own attribute, only inherited", BY_DICT, "pass", "_other = 'z'", "Base.forward"),
    ("own attribute, only annotated", BY_DICT, "_other: str", "", "Base.forward"),
    ("own attribute, perhaps", BY_DICT, "if fast:\n    _other = 'z'", "", MADE),
    ("vars, absent", BY_VARS, "pass", "", "Base.forward"),
    ("vars, present", BY_VARS, "_other = 'z'", "", MADE),
    ("getattr, absent", BY_GETATTR, "pass", "", "Base.forward"),
    ("getattr, inherited", BY_GETATTR, "pass", "_other = 'z'", MADE),
    ("written if absent, absent", IF_ABSENT, "pass", "", MADE),
    ("written if absent, present", IF_ABSENT, "def forward(self, x): ...", "", "Op.forward"),
    ("written if inherited, overridden", IF_INHERITED, "def forward(self, x): ...", "", "Op.forward"),
    ("written if inherited, inherited", IF_INHERITED, "pass", "", MADE),
    ("written if inherited, perhaps", IF_INHERITED, "if fast:\n    def forward(self, x): ...", "", MADE),
    ("written if overridden, overridden", IF_OVERRIDDEN, "def forward(self, x): ...", "", MADE),
    ("written if overridden, inherited", IF_OVERRIDDEN, "pass", "", "Base.forward"),
    (
        "compared with another class",
        IF_INHERITED.replace("Base", "Root"),
        "def forward(self, x): ...",
        "",
        MADE,
    ),
    (
        "compared with another attribute",
        IF_INHERITED.replace("Base.forward", "Base.call"),
        "def forward(self, x): ...",
        "",
        MADE,
    ),
    ("in else, present", IN_ELSE, "_done = True", "", "Base.forward"),
    ("in else, absent", IN_ELSE, "pass", "", MADE),
    (
        "rebound before the test",
        "x = cls.__dict__.get('_other')\nx = 1\nif x is None:\n    return\ncls.forward = 1",
        "pass",
        "",
        MADE,
    ),
    ("test of another class", "if '_other' not in Base.__dict__:\n    return\ncls.forward = 1", "pass", "", MADE),
    ("test that may go on", "if '_other' not in cls.__dict__:\n    note()\ncls.forward = 1", "pass", "", MADE),
    ("by a method of the class", "cls.install()", "pass", "@classmethod\ndef install(cls):\n    cls.forward = 1", MADE),
    ("by an unknown method", "cls.install()", "pass", "", MADE),
    ("by a method of type", "cls.mro()", "pass", "", "Base.forward"),
    ("handed on by keyword", "install(1, op=cls)", "pass", "", MADE),
    ("in a circle", "if '_a' in vars(cls):\n    cls.__init_subclass__()", "pass", "", "Base.forward"),
    ("and", "if '_other' not in cls.__dict__ and fast:\n    return\ncls.forward = 1", "pass", "", MADE),
]


@pytest.mark.parametrize(
    ("body", "op", "base", "expected"), [case[1:] for case in HOOKS], ids=[case[0] for case in HOOKS]
)
def test_hooks_that_look_into_the_class_first(body: str, op: str, base: str, expected: str) -> None:
    assert hooked(body, op, base) == expected


def test_a_hook_of_the_base_reaches_the_class_between() -> None:
    text = """
        class Base:
            def __init_subclass__(cls):
                if "_other" not in cls.__dict__:
                    return
                cls.forward = make()
            def forward(self): ...
        class Middle(Base):
            _other = "y"
        class Op(Middle): ...
    """
    assert Tree(m=text).member("Op", "forward") == MADE


def test_guards_hold_through_the_functions_that_a_hook_calls() -> None:
    text = """
        def install(op):
            if "check" in op.__dict__:
                return
            op.check = make()
        class Base:
            def __init_subclass__(cls):
                install(cls)
        class Own(Base):
            def check(self): ...
        class Bare(Base): ...
    """
    tree = Tree(m=text)
    assert tree.member("Own", "check") == "Own.check"
    assert tree.member("Bare", "check") == "unresolved: `Base.__init_subclass__` makes `check`"


def test_functions_that_call_each_other_in_a_circle_are_followed_once() -> None:
    text = """
        def ping(cls): pong(cls)
        def pong(cls):
            ping(cls)
            cls.forward = 1
        class Op:
            def forward(self): ...
        ping(Op)
    """
    assert Tree(m=text).member("Op", "forward") == "unresolved: `Op.forward` is assigned outside the class"


def test_an_attribute_is_told_without_opening_the_module_of_its_value() -> None:
    tree = Tree(m="from far import Kernel\nclass Op:\n    kernel_cls = Kernel\n", far="class Kernel: ...\n")
    op = tree.cls("m.py", "Op")
    tree.program.member(op, "other")
    tree.opened.clear()
    assert described(tree.program.attribute(op, "kernel_cls")) == "=Kernel"
    assert tree.opened == []


def test_what_methods_write_on_the_instance() -> None:
    tree = Tree(
        m="class Op:\n    def __init__(this, x):\n        this.x = x\n        if x:\n            this.y.z = 1\n"
    )
    assert tree.program.instance_writes(tree.cls("m.py", "Op")) == {"x", "y.z"}


def test_the_size_of_what_is_followed_is_bounded() -> None:
    stars = {f"m{i}": f"from m{i + 1} import *\nfrom m{i + 2} import *\n" for i in range(30)}
    assert isinstance(Tree(**stars, m30="", m31="").resolve("m0.py", "gone"), Missing | Unresolved)
    deep = "class A0: ...\n" + "".join(f"class A{i + 1}(A{i}): ...\n" for i in range(2000))
    assert "inherits too deeply" in Tree(m=deep).member("A2000", "f")
    calls = "".join(f"def f{i}(cls):\n    f{i + 1}(cls)\n    f{i + 2}(cls)\n" for i in range(600))
    tree = Tree(m=calls + "class Op:\n    def forward(self): ...\nf0(Op)\n")
    assert tree.member("Op", "forward") == "unresolved: `Op.forward` is assigned outside the class"
