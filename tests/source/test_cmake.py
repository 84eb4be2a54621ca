"""CMake targets through functions, macros, loops, conditions and included files."""

from __future__ import annotations

import time

import pytest

from opschema_cli.source.cmake.conditions import are_together
from opschema_cli.source.cmake.run import CMakeTree
from opschema_cli.source.cmake.targets import Target

FILES = ("src/first.cpp", "src/second.cpp", "src/second_test.cpp", "src/deep/third.cu")


def read(files: dict[str, str]) -> list[Target]:
    def glob(pattern: str) -> list[str]:
        head, _, tail = pattern.partition("**" if "**" in pattern else "*")
        return [path for path in FILES if path.startswith(head) and path.endswith(tail.lstrip("/*"))]

    tree = CMakeTree(files, glob, lambda word: word.endswith((".cpp", ".cu")))
    paths = [path for path in files if path.endswith(".txt")]
    return [target for path in paths if path not in tree.reached for target in tree.read(path, {}).targets]


def built(text: str, **others: str) -> dict[str, list[str]]:
    """The sources of each target of a tree."""
    files = {"CMakeLists.txt": text, **{name.replace("__", "/"): other for name, other in others.items()}}
    return {
        target.name: [path.removeprefix("//") for path, _ in target.sources] for target in read(files) if target.sources
    }


KEYWORDS = """
function(make_kernels)
  set(many HOST # of the CPU
           DEVICE)
  cmake_parse_arguments(kit "QUIET" "LABEL;KIND" "${many}" ${ARGN})
  set(${kit_LABEL}_all ${kit_HOST})
  if(kit_DEVICE)
    list(APPEND ${kit_LABEL}_all ${kit_DEVICE})
  endif()
  add_library(${kit_LABEL} ${kit_KIND} ${${kit_LABEL}_all})
  target_compile_definitions(${kit_LABEL} PRIVATE TORCH_EXTENSION_NAME=${kit_LABEL})
endfunction()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{KEYWORDS} make_kernels(LABEL a KIND MODULE HOST x.cpp y.cpp)", {"a": ["x.cpp", "y.cpp"]}),
        (f"{KEYWORDS} Make_Kernels(HOST x.cpp DEVICE y.cu LABEL a QUIET)", {"a": ["x.cpp", "y.cu"]}),
        (f"{KEYWORDS} set(S x.cpp;y.cpp)\nmake_kernels(LABEL a HOST ${{S}})", {"a": ["x.cpp", "y.cpp"]}),
        (f"{KEYWORDS} set(REST HOST x.cpp)\nmake_kernels(LABEL a ${{REST}})", {"a": ["x.cpp"]}),
        (f"{KEYWORDS} if(B)\nset(N a)\nelse()\nset(N b)\nendif()\nmake_kernels(LABEL ${{N}} HOST x.cpp)",
         {"a": ["x.cpp"], "b": ["x.cpp"]}),
        ("function(lib name)\nadd_library(${name} ${ARGN})\nendfunction()\nlib(a x.cpp y.cpp)", {"a": ["x.cpp", "y.cpp"]}),
        ('function(lib name files)\nadd_library(${name} ${files})\nendfunction()\nset(S x.cpp y.cpp)\nlib(a "${S}")',
         {"a": ["x.cpp", "y.cpp"]}),
        ("macro(lib name)\nset(made ${name}_ops)\nadd_library(${made} ${ARGV1})\nendmacro()\nlib(a x.cpp)", {"a_ops": ["x.cpp"]}),
        ("function(lib)\ncmake_parse_arguments(PARSE_ARGV 1 k \"\" \"\" FILES)\nadd_library(${ARGV0} ${k_FILES})\nendfunction()\n"
         "lib(a FILES x.cpp)", {"a": ["x.cpp"]}),
        ("function(find out)\nset(${out} x.cpp PARENT_SCOPE)\nendfunction()\nfind(S)\nadd_library(a ${S})", {"a": ["x.cpp"]}),
        ("foreach(n IN ITEMS a b)\nadd_library(${n}_ops ${n}.cpp)\nendforeach()", {"a_ops": ["a.cpp"], "b_ops": ["b.cpp"]}),
        ("set(S x.cpp y.cpp)\nforeach(f IN LISTS S)\nget_filename_component(n ${f} NAME_WE)\nadd_library(${n} ${f})\nendforeach()",
         {"x": ["x.cpp"], "y": ["y.cpp"]}),
        ("set(S x y)\nlist(TRANSFORM S PREPEND src/)\nlist(TRANSFORM S APPEND .cpp)\nadd_library(a ${S})",
         {"a": ["src/x.cpp", "src/y.cpp"]}),
        ('file(GLOB S src/*.cpp)\nlist(FILTER S EXCLUDE REGEX ".*_test\\\\.cpp$")\nadd_library(a ${S})',
         {"a": ["src/first.cpp", "src/second.cpp"]}),
        ("file(GLOB_RECURSE S src/*.cu)\nadd_library(a ${S})", {"a": ["src/deep/third.cu"]}),
        ("add_library(o OBJECT x.cpp)\nadd_library(a y.cpp $<TARGET_OBJECTS:o>)", {"o": ["x.cpp"], "a": ["y.cpp", "x.cpp"]}),
        ("#[[ add_library(no x.cpp) ]]\nadd_library(a y.cpp) # add_library(no z.cpp)", {"a": ["y.cpp"]}),
        ("string(TOLOWER Kit name)\nadd_library(${name} x.cpp)", {"kit": ["x.cpp"]}),
    ],
    ids=range(18),
)  # fmt: skip
def test_what_is_built(text: str, expected: dict[str, list[str]]) -> None:
    assert built(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "function(lib)\nadd_library(a x.cpp)\nendfunction()",  # it is never called
        "unknown_library(a x.cpp)",
        f"{KEYWORDS} make_kernels(LABEL ${{NAMED_ELSEWHERE}} HOST x.cpp)",
        "string(REGEX REPLACE k b name kit)\nset(name2 ${name})\nadd_library(${name2} x.cpp)",
        "set(N a)\nelsewhere(N)\nadd_library(${N} x.cpp)",
        "function(again)\nagain()\nendfunction()\nagain()",
    ],
)
def test_what_is_not_known(text: str) -> None:
    assert built(text).keys() <= {""}


def test_macros_of_a_function() -> None:
    targets = read({"CMakeLists.txt": f"{KEYWORDS} make_kernels(LABEL a HOST x.cpp)\nmake_kernels(LABEL b HOST y.cpp)"})
    assert {target.name: target.macros for target in targets} == {
        "a": (("TORCH_EXTENSION_NAME", "a"),),
        "b": (("TORCH_EXTENSION_NAME", "b"),),
    }


def test_files_of_a_build() -> None:
    top = "set(ROOT ${CMAKE_CURRENT_SOURCE_DIR})\ninclude(cmake/Kit.cmake)\nadd_subdirectory(csrc)\nadd_library(a ${SHARED})"
    module = "set(SHARED ${CMAKE_CURRENT_LIST_DIR}/own.cpp ${ROOT}/top.cpp near.cpp)"
    folder = "list(APPEND SHARED csrc/in.cpp)\nset(SHARED ${SHARED} PARENT_SCOPE)\nadd_library(b x.cpp)"
    expected = ["cmake/own.cpp", "top.cpp", "near.cpp", "csrc/in.cpp"]
    found = built(top, cmake__Kit__cmake="", csrc__CMakeLists__txt="")
    assert found == {}
    found = {
        target.name: [path.lstrip("/") for path, _ in target.sources]
        for target in read({"CMakeLists.txt": top, "cmake/Kit.cmake": module, "csrc/CMakeLists.txt": folder})
    }
    assert found == {"b": ["csrc/x.cpp"], "a": expected}


def test_functions_of_files_that_are_not_included() -> None:
    one = "function(lib name)\nadd_library(${name} ${ARGN})\nendfunction()"
    assert built("lib(a x.cpp)", **{"x.cmake": one}) == {"a": ["x.cpp"]}
    assert built("lib(a x.cpp)", **{"x.cmake": one, "y.cmake": one.replace("add_", "no_")}) == {}


def together(text: str) -> bool:
    (target,) = (target for target in read({"CMakeLists.txt": text}) if target.name == "a")
    origins = dict(target.sources)
    return are_together(origins["//x.cpp"], origins["//y.cpp"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{KEYWORDS} make_kernels(LABEL a HOST x.cpp y.cpp)", True),
        (f"{KEYWORDS} make_kernels(LABEL a HOST x.cpp DEVICE y.cpp)", True),
        (f"{KEYWORDS} if(D)\nset(S y.cpp)\nendif()\nmake_kernels(LABEL a HOST x.cpp DEVICE ${{S}})", True),
        (f"{KEYWORDS} if(D)\nset(S y.cpp)\nelse()\nset(R x.cpp)\nendif()\nmake_kernels(LABEL a HOST ${{R}} DEVICE ${{S}})", False),
        ("function(put f)\nif(f STREQUAL x.cpp)\ntarget_sources(a PRIVATE ${f})\nendif()\nendfunction()\nput(x.cpp)\nput(y.cpp)",
         False),
        ("foreach(f x.cpp y.cpp)\nif(f STREQUAL ${PICKED})\ntarget_sources(a PRIVATE ${f})\nendif()\nendforeach()", False),
        ("foreach(f x.cpp y.cpp)\ntarget_sources(a PRIVATE ${f})\nendforeach()", True),
        ("foreach(f x.cpp y.cpp)\ntarget_sources(a PRIVATE ${f})\nbreak()\nendforeach()", False),
        ("set(B ON)\nif(B)\nlist(APPEND S x.cpp)\nendif()\nset(B OFF)\nif(B)\nlist(APPEND S y.cpp)\nendif()\nadd_library(a ${S})",
         False),
        ("function(put)\nif(NOT ARGN)\nreturn()\nendif()\ntarget_sources(a PRIVATE ${ARGN})\nendfunction()\nput(x.cpp)\nput(y.cpp)",
         False),
    ],
    ids=range(10),
)  # fmt: skip
def test_files_that_are_compiled_together(text: str, expected: bool) -> None:
    assert together(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "a(" * 50_000,
        '"\\' * 50_000,
        "[[" * 50_000,
        "if(A)\n" * 20_000,
        "if(A)\n" + "elseif(B)\n" * 20_000,
        "function(f)\n" * 20_000,
        "foreach(x 1 2 3 4 5 6 7 8 9)\n" * 30 + "set(S a.cpp)\n",
        "macro(f)\nf()\nf()\nendmacro()\nf()",
        "set(A a.cpp)\n" + "set(A ${A};${A}x)\n" * 20_000,
        "add_library(a ${" + "x" * 50_000 + "})",
        'list(FILTER S EXCLUDE REGEX "' + "(a+)+" * 1_000 + '")',
        'set(S a.cpp)\nlist(FILTER S EXCLUDE REGEX "' + "\\\\" * 100 + '!!")',
    ],
    ids=range(12),
)
def test_hostile_texts_take_little_time(text: str) -> None:
    before = time.process_time()
    read({"CMakeLists.txt": text})
    assert time.process_time() - before < 30  # the slowest takes 5 s on a slow core; without limits, none would end
