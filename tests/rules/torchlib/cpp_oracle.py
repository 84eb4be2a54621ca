"""Torch's own verdicts on C++ registrations: all cases are compiled into one library, then loaded and called one by one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.rules.torchlib.cpp_cases import Case

HEAD = """\
#include <torch/library.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>
#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/CPUFallback.h>

namespace oracle {
struct Block { int number; std::function<void()> load; };
inline std::vector<Block> blocks;
inline std::vector<std::shared_ptr<void>> held;
inline int add(int number, std::function<void()> load) { blocks.push_back({number, std::move(load)}); return 0; }
template <class Library, class... Given>
std::function<void()> loading(void (*init)(Library&), Given... given) {
  return [=] { auto library = std::make_shared<Library>(given..., __FILE__, 1); init(*library); held.push_back(library); };
}
inline std::string said;
}
extern "C" const char* oracle_load(int number) {
  oracle::said.clear();
  try { for (auto& block : oracle::blocks) if (block.number == number) block.load(); }
  catch (const std::exception& error) { oracle::said = error.what(); }
  return oracle::said.c_str();
}
extern "C" void oracle_unload() { while (!oracle::held.empty()) oracle::held.pop_back(); }

#define ORACLE_(Library, id, ...) \\
  static void oracle_init_##id(Library&); \\
  static const int oracle_added_##id = oracle::add(oracle_number, oracle::loading<Library>(&oracle_init_##id, __VA_ARGS__)); \\
  void oracle_init_##id
#define ORACLE(Library, id, ...) ORACLE_(Library, id, __VA_ARGS__)
#define NO_KEY std::optional<c10::DispatchKey>()
#undef TORCH_LIBRARY
#undef TORCH_LIBRARY_IMPL
#undef TORCH_LIBRARY_FRAGMENT
#undef STABLE_TORCH_LIBRARY
#undef STABLE_TORCH_LIBRARY_IMPL
#define TORCH_LIBRARY(ns, m) ORACLE(torch::Library, __COUNTER__, torch::Library::DEF, #ns, NO_KEY)(torch::Library& m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) ORACLE_FRAGMENT(ns, m)
#define ORACLE_FRAGMENT(ns, m) ORACLE(torch::Library, __COUNTER__, torch::Library::FRAGMENT, #ns, NO_KEY)(torch::Library& m)
#define TORCH_LIBRARY_IMPL(ns, key, m) ORACLE_IMPL(ns, key, m)
#define ORACLE_IMPL(ns, key, m) \\
  ORACLE(torch::Library, __COUNTER__, torch::Library::IMPL, #ns, std::optional(c10::DispatchKey::key))(torch::Library& m)
#define STABLE torch::stable::detail::StableLibrary
#define STABLE_TORCH_LIBRARY(ns, m) ORACLE(STABLE, __COUNTER__, STABLE::Kind::DEF, #ns, "")(STABLE& m)
#define STABLE_TORCH_LIBRARY_IMPL(ns, key, m) ORACLE(STABLE, __COUNTER__, STABLE::Kind::IMPL, #ns, #key)(STABLE& m)
"""

RUN = """\
import ctypes, json, sys
import torch
library = ctypes.CDLL(sys.argv[1])
library.oracle_load.restype = ctypes.c_char_p
known = set(torch._C._dispatch_find_dangling_impls())
for number, call in json.loads(sys.argv[2]):
    print("case", number, flush=True)
    said = library.oracle_load(number).decode()
    verdict = "load" if said else "ok"
    if not said and call:
        try:
            eval(call)
        except Exception as error:
            said = str(error)
            verdict = "ok" if "reached" in said else "call"
    dangling = [item for item in torch._C._dispatch_find_dangling_impls() if item not in known]
    if verdict == "ok" and dangling:
        verdict, said = "dangling", str(dangling)
    library.oracle_unload()
    print(json.dumps([number, verdict, said.strip().partition(chr(10))[0]]), flush=True)
"""


def namespace_of(number: int) -> str:
    """The namespace of a case."""
    return f"kit{number}"


def text_of(number: int, case: Case) -> str:
    """The file of a case."""
    return re.sub(r"\bNS\b", namespace_of(number), case.code)


def verdicts(cases: Sequence[Case], folder: Path) -> list[str]:
    """Torch's verdict on each case: ``ok``, or ``compile``, ``load``, ``call``, ``dangling`` or ``crash`` for what it refuses."""
    library = folder / "cases.so"
    left = list(range(len(cases)))
    while (ran := _compile(folder, cases, left, library)).returncode:
        refused = _refused(cases, left, ran.stderr)  # the compiler reports a template that two cases share once
        assert refused, ran.stderr
        left = [number for number in left if number not in refused]
    found = _run(library, cases, left)
    return [found.get(number, "compile") for number in range(len(cases))]


def _refused(cases: Sequence[Case], numbers: Sequence[int], errors: str) -> set[int]:
    """The cases whose lines are named in a compiler's errors."""
    starts = _starts(cases, numbers)
    lines = [int(line) for line in re.findall(r"(?m)^[^\n]*cases\.cpp:(\d+):", errors)]
    return {
        max(number for number, start in starts.items() if start <= line)
        for line in lines
        if line >= min(starts.values())
    }


def _starts(cases: Sequence[Case], numbers: Sequence[int]) -> dict[int, int]:
    """The line on which each case begins."""
    found: dict[int, int] = {}
    at = HEAD.count("\n") + 1
    for number in numbers:
        found[number] = at
        at += _wrapped(number, cases[number]).count("\n")
    return found


def _wrapped(number: int, case: Case) -> str:
    number_of = f"static constexpr int oracle_number = {number};"
    return f"namespace case_{number} {{\n{number_of}\n{text_of(number, case)}\n#undef REGISTER\n}}\n"


def _compile(
    folder: Path, cases: Sequence[Case], numbers: Sequence[int], library: Path
) -> subprocess.CompletedProcess[str]:
    import torch
    from torch.utils.cpp_extension import include_paths

    source = folder / "cases.cpp"
    source.write_text(HEAD + "".join(_wrapped(number, cases[number]) for number in numbers))
    root = Path(torch.__file__).parent / "lib"
    libraries = [f"-L{root}", f"-Wl,-rpath,{root}", "-ltorch", "-ltorch_cpu", "-lc10"]
    include = [f"-I{path}" for path in include_paths()]
    command = ["g++", "-std=c++20", "-O0", "-w", "-fPIC", "-shared", "-fmax-errors=0", *include, str(source)]
    return subprocess.run([*command, "-o", str(library), *libraries], capture_output=True, text=True, check=False)


def _run(library: Path, cases: Sequence[Case], numbers: Sequence[int]) -> dict[int, str]:
    import json

    found: dict[int, str] = {}
    while len(found) < len(numbers):
        left = [[number, text_of(number, Case("", cases[number].call))] for number in numbers if number not in found]
        ran = subprocess.run(
            [sys.executable, "-c", RUN, str(library), json.dumps(left)], capture_output=True, text=True
        )
        last = None
        for line in ran.stdout.splitlines():
            if line.startswith("case "):
                last = int(line[5:])
            elif line.startswith("["):
                number, verdict, _ = json.loads(line)
                found[number] = verdict
        if len(found) < len(numbers):
            assert last is not None, ran.stderr
            found[last] = "crash"
    return found
