"""Bodies of Python code: what encloses them, and that functions in which nothing can matter are not unpacked."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.body_tree import BodyTree
from opschema_cli.source.parsing import encoded
from opschema_cli.source.program import Program
from opschema_cli.source.python import Class, Function, ModuleFacts, PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.resolution import ClassRef, FunctionRef
from opschema_cli.source.text import Source
from opschema_cli.source.word_index import aliased, joined_aliases

TEXT = """\
class Outer:
    class Inner:
        def method(self):
            def deepest():
                return marked()
            return deepest

        def other(self):
            self.kept = 1

    def last(self, given=[item for item in ()]):
        del self.kept


def free():
    def helper():
        global state
        state = cls.setting = 2
    return helper
"""


def packed(text: str) -> ModuleFacts:
    """The facts of a text as another process hands them over: nothing of its functions is unpacked."""
    return msgspec.msgpack.decode(encoded(collect(text)), type=ModuleFacts)


FILE = PythonFile(Source("a.py", TEXT, "utf-8", "digest"), packed(TEXT))


def bodies() -> Bodies:
    return Bodies(Program(["a.py"], {"a.py": FILE}.get, ["a.py"]), ["a.py"])


def name(body: Body) -> str:
    return body.definition.name if body.definition is not None else "module"


def unpacked() -> set[str]:
    found: set[str] = set()

    def look(item: Function | Class) -> None:
        if isinstance(item, Class):
            inner = item.body
        elif "body" not in vars(item):
            return
        else:
            found.add(item.name)
            inner = item.body
        for part in (*inner.functions, *inner.classes):
            look(part)

    for item in (*FILE.body.functions, *FILE.body.classes):
        look(item)
    return found


def forget() -> None:
    FILE.facts = packed(TEXT)


def test_bodies_come_outermost_first() -> None:
    found = [name(body) for body in bodies().of(FILE)]
    assert found == ["module", "free", "helper", "Outer", "last", "Inner", "method", "deepest", "other"]


def test_bodies_of_an_own_copy_are_forgotten() -> None:
    forget()
    own = FILE.with_own_bodies()
    tree = Bodies(Program(["a.py"], {"a.py": own}.get, ["a.py"]), ["a.py"])
    before = [name(body) for body in tree.of(own)]
    assert unpacked() == set()
    functions = [own.body.functions[0], *own.body.classes[0].body.functions]
    assert all("body" in vars(function) for function in functions)
    tree.forget()
    own.forget_bodies()
    assert not any(vars(function) for function in functions)
    assert [name(body) for body in tree.of(own)] == before


def test_functions_that_are_not_wanted_are_left_out_with_what_is_in_them_and_not_unpacked() -> None:
    forget()
    found = [name(body) for body in bodies().of(FILE, lambda function: function.name in ("free", "method"))]
    assert found == ["module", "free", "Outer", "Inner", "method"]
    assert unpacked() == {"free", "method"}


def test_bodies_that_hold_a_word_are_those_around_it() -> None:
    forget()
    assert [name(body) for body in bodies().near("marked")] == ["module", "Outer", "Inner", "method", "deepest"]
    assert [name(body) for body in bodies().near("marked", "global")][1:3] == ["free", "helper"]
    assert list(bodies().near("nowhere")) == list(bodies().holding("nowhere")) == []
    assert "other" not in unpacked()
    assert len(list(bodies().holding("marked"))) == len(bodies().of(FILE)), "all of the file"


def test_a_definition_is_found_through_those_around_it() -> None:
    forget()
    tree = bodies()
    outer = FILE.body.classes[0]
    inner = outer.body.classes[0]
    method = inner.body.functions[0]
    found = tree.function(FunctionRef(FILE, method, ClassRef(FILE, inner)))
    assert found is not None
    assert found.function is method
    assert [name(body) for body in found.outward()] == ["method", "Inner", "Outer", "module"]
    assert unpacked() == set(), "only what holds it is looked into, and of functions nothing"
    holder = tree.cls(ClassRef(FILE, inner))
    assert found.parent is holder
    assert tree.function(FunctionRef(FILE, collect("def alien(): ...\n").body.functions[0])) is None


def test_what_stands_at_a_place_belongs_to_the_innermost_body_and_a_head_to_what_is_around() -> None:
    tree = bodies()
    places = {
        word: name(tree.at(FILE, TEXT.index(word)))
        for word in ("marked", "return deepest", "for item", "cls.", "Outer")
    }
    assert places == {
        "marked": "deepest", "return deepest": "method", "for item": "Outer", "cls.": "helper", "Outer": "module",
    }  # fmt: skip


def test_what_functions_write_and_rebind_is_known_without_their_bodies() -> None:
    forget()
    outer, free = FILE.body.classes[0], FILE.body.functions[0]
    assert free.written == ("cls.setting",), "what is written in it counts, too"
    assert [item.written for item in outer.body.classes[0].body.functions] == [(), ("self.kept",)]
    assert unpacked() == set()
    assert FILE.rebound == {"state", "self.kept"}
    plain = "def f():\n    return 1\n"
    assert PythonFile(Source("b.py", plain, "utf-8", "other"), collect(plain)).rebound == frozenset()


def test_words_in_comments_and_names_unpack_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(function: Function) -> None:
        raise AssertionError(f"`{function.name}` is unpacked")

    text = """\
def load():
    # global memory, not the nonlocal one, and del it
    executor, model, globals_ = execute(global_id)
    return executor, model, globals_
"""
    file = PythonFile(Source("b.py", text, "utf-8", "digest"), packed(text))
    monkeypatch.setattr(Function, "peek_body", look)
    assert file.rebound == frozenset()
    assert not file.runs_code


def test_the_bodies_that_call_and_are_decorated_by_a_word() -> None:
    text = """\
from lib import jit as compiled

@compiled
def plain(): ...

def factory():
    @compiled("fast")
    def inner():
        return make(1)(2)
    return inner

class Held:
    made = lib.make[3](plain)

traced = compiled(plain)
"""
    file = PythonFile(Source("b.py", text, "utf-8", "digest"), collect(text))
    found = Bodies(Program(["b.py"], {"b.py": file}.get, ["b.py"]), ["b.py"])
    words = aliased({"jit"}, joined_aliases([found.words(file)]))
    assert words == {"jit", "compiled"}
    assert [name(body) for body in found.decorated(file, words)] == ["plain", "inner"]
    assert [name(body) for body in found.calling(file, {"make"})] == ["inner", "Held"]
    assert [name(body) for body in found.calling(file, words)] == ["module", "factory"]


def test_a_name_in_full_is_that_of_the_import_which_alone_binds_it() -> None:
    text = """\
import kit.compiler, kit.expr
from kit.language import Tensor as T
from . import beside
from .. import outside
try:
    import fast
except ImportError:
    fast = None
if flag:
    from one import other
else:
    from two import other
import bound
bound = make()

def run(beside):
    return beside.part
"""
    file = PythonFile(Source("pack/a.py", text, "utf-8", "digest"), collect(text))
    found = Bodies(Program(["pack/__init__.py", "pack/a.py"], {"pack/a.py": file}.get, ["pack/a.py"]), ["pack/a.py"])
    names = ("kit.compiler.jit", "T.shape", "beside.part", "outside", "fast.run", "other", "bound", "nothing")
    expected = ["kit.compiler.jit", "kit.language.Tensor.shape", "pack.beside.part", "", "fast.run", "", "", ""]
    assert [found.imported_name(found.module(file), name) for name in names] == expected
    (function,) = (body for body in found.of(file) if body.function is not None)
    assert found.imported_name(function, "beside.part") == ""


def test_a_parameter_is_not_what_it_hides() -> None:
    text = """\
def launch(): ...

def go(launch, x):
    launch(x)
    def inner():
        launch(1)

def plain(x):
    launch(x)
    lambda launch: launch(2)
    [launch(3) for launch, _ in x]
    try:
        launch(4)
    except launch.Error as launch_error:
        launch_error(5)

def caught(x):
    try:
        x()
    except ValueError as launch:
        launch(6)
"""
    file = PythonFile(Source("m.py", text), collect(text))
    all_bodies = Bodies(Program(["m.py"], {"m.py": file}.get, ["m.py"]), ["m.py"])
    target = next(body for body in all_bodies.of(file) if body.function is not None and body.function.name == "launch")
    calls = [(body.function.name, file.text(call)) for body, call in all_bodies.calls_of(target) if body.function]
    assert calls == [("plain", "launch(x)"), ("plain", "launch(4)")]


def test_many_functions_share_the_many_names_around_them() -> None:
    """Each had a set of all of them: 2.6 GB for 5,000 functions in one with 5,000 variables."""
    count = 3000
    text = "def outer(a):\n" + "".join(f"    v{number} = a\n" for number in range(count))
    text += "".join(f"    def f{number}(x):\n        del y\n" for number in range(count))
    file = PythonFile(Source("many.py", text, "utf-8", "digest"), packed(text))
    found = list(BodyTree().of(file))
    tracemalloc.start()
    try:
        assert all(name in body.visible for body in found[2:] for name in ("a", "v0", "f9", "x", "y"))
        assert not any(name in body.visible for body in found for name in ("z", "outer"))
        assert tracemalloc.get_traced_memory()[0] < 50_000_000
    finally:
        tracemalloc.stop()
