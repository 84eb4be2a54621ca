"""More changes of simpler's programs: mistakes in fields, entries, stores and tests, and right code in another form."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from tests.corpus.pypto_changes import Item, Program, programs
from tests.corpus.seeded import Change, Make, Texts, by_name, replaced

_STORE = r"(?m)^([ \t]*)TSTORE\((\w+), (\w+)\);\n"
_TAKEN = re.compile(r"reinterpret_cast<__gm__ ChipTensor \*>\(args\[(\d+)\]\)")


def _first(path: str, text: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> Iterator[Change]:
    """The first match in a text, replaced."""
    match = re.search(pattern, text)
    if match is not None:
        yield replaced(path, text, *match.span(), match.expand(new) if isinstance(new, str) else new(match))


def _below_includes(text: str, code: str) -> str:
    """A text with code behind its last ``#include``."""
    ends = [match.end() for match in re.finditer(r"(?m)^#include [^\n]*\n", text)]
    at = ends[-1] if ends else 0
    return text[:at] + code + text[at:]


def _kernels(texts: Texts) -> Iterator[tuple[Program, Item, str, str]]:
    for program in programs(texts):
        for item in program.items:
            path = program.kernel(item)
            if item.signature and path in texts:
                yield program, item, path, texts[path]


# Mistakes


def core_in_capitals(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        core = program.items[0].values.get("core_type")
        if isinstance(core, ast.Constant):
            yield program.file.replace(core, repr(core.value.upper()))


def _renamed_key(texts: Texts, name: str, new: str) -> Iterator[Change]:
    for program in programs(texts):
        for key in program.items[0].node.keys:
            if isinstance(key, ast.Constant) and key.value == name:
                yield program.file.replace(key, repr(new))


def misspelled_core(texts: Texts) -> Iterator[Change]:
    yield from _renamed_key(texts, "core_type", "core_typ")


def misspelled_number(texts: Texts) -> Iterator[Change]:
    yield from _renamed_key(texts, "func_id", "funcid")


def misspelled_direction(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        for item in program.items:
            found = item.values.get("signature")
            if isinstance(found, ast.List) and "OUT" in item.signature:
                entry = found.elts[item.signature.index("OUT")]
                yield program.file.replace(entry, f"{ast.unparse(entry)}PUT")


def another_result(texts: Texts) -> Iterator[Change]:
    """The result is written to a temporary tensor, as after a paste."""
    for program in programs(texts):
        text = texts[program.source]
        created = re.search(r"\bTensorCreateInfo\s+(\w+)\(", text)
        for match in re.finditer(r"\.add_output\((\w+)\)", text):
            own = re.search(rf"ChipTensor\s*&\s*{match[1]}\s*=\s*orch_args\.tensor\(", text)
            if own is not None and created is not None and created.start() < match.start():
                yield replaced(program.source, text, *match.span(1), created[1])


def tensor_taken_twice(texts: Texts) -> Iterator[Change]:
    """The first tensor of the orchestration is taken for the second, too."""
    for program in programs(texts):
        yield from _first(program.source, texts[program.source], r"(?<=orch_args\.tensor\()1(?=\)\.ref\(\);)", "0")


def function_that_is_not_exported(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        yield from _first(program.source, texts[program.source], r'(?m)^extern "C" \{', "namespace program {")


def lost_store(texts: Texts) -> Iterator[Change]:
    """The only output of a kernel is not stored."""
    for _, item, path, text in _kernels(texts):
        if item.signature[-1] == "OUT" and item.signature.count("OUT") == 1 and text.count("TSTORE(") == 1:
            yield from _first(path, text, _STORE, "")


def stored_to_an_input(texts: Texts) -> Iterator[Change]:
    for _, item, path, text in _kernels(texts):
        loaded = re.search(r"TLOAD\(\w+, (\w+)\);", text)
        if item.signature[-1] == "OUT" and loaded is not None:
            yield from _first(path, text, _STORE, rf"\1TSTORE({loaded[1]}, \3);\n")


def renamed_entry(texts: Texts) -> Iterator[Change]:
    for _, _, path, text in _kernels(texts):
        yield from _first(path, text, r"\bkernel_entry\b(?=\()", "kernel_main")


def another_output(texts: Texts) -> Iterator[Change]:
    """An output of a task is taken by the index behind the last one."""
    for program in programs(texts):
        text = texts[program.source]
        numbers = [int(number) for number in re.findall(r"\bget_ref\((\d+)\)", text)]
        if numbers:
            yield from _first(program.source, text, rf"(?<=\bget_ref\(){max(numbers)}(?=\))", str(max(numbers) + 1))


def _test(texts: Texts, pattern: str, new: str) -> Iterator[Change]:
    """A change of the arguments that a test passes one by one."""
    for program in programs(texts):
        text = program.file.text
        if re.search(r"return TaskArgsBuilder\(\s*TensorArg\(", text) and "level=2" in text:
            yield from _first(program.path, text, pattern, new)


def tensor_more(texts: Texts) -> Iterator[Change]:
    yield from _test(
        texts, r'(?<=return TaskArgsBuilder\()(\s*)TensorArg\("(\w+)"', r'\1TensorArg("other", None),\g<0>'
    )


def tensor_too_few(texts: Texts) -> Iterator[Change]:
    """The first tensor is not passed any more."""
    yield from _test(texts, r"(?<=return TaskArgsBuilder\()\s*TensorArg\(.*\),\n(?=\s*TensorArg\()", "\n")


def scalar_too_few(texts: Texts) -> Iterator[Change]:
    yield from _test(texts, r"(?m)^ {12}Scalar\(.*\),\n(?=        \)$)", "")


FAULTS: dict[str, Make] = by_name(
    core_in_capitals,
    misspelled_core,
    misspelled_number,
    misspelled_direction,
    another_result,
    tensor_taken_twice,
    function_that_is_not_exported,
    lost_store,
    stored_to_an_input,
    renamed_entry,
    another_output,
    tensor_more,
    tensor_too_few,
    scalar_too_few,
)


# Right changes


def _store(texts: Texts, new: str, before: str = "") -> Iterator[Change]:
    for _, _, path, text in _kernels(texts):
        for change in _first(path, text, _STORE, new):
            yield Change(path, _below_includes(change.text, before), change.line)


def stored_by_a_macro(texts: Texts) -> Iterator[Change]:
    yield from _store(texts, r"\1FLUSH(\2, \3);\n", "#define FLUSH(to, tile) TSTORE(to, tile)\n")


def stored_by_a_template(texts: Texts) -> Iterator[Change]:
    body = (
        "template <typename G, typename T>\nstatic __aicore__ void flush(G &to, T &tile) {\n    TSTORE(to, tile);\n}\n"
    )
    yield from _store(texts, r"\1flush(\2, \3);\n", body)


def stored_elsewhere(texts: Texts) -> Iterator[Change]:
    yield from _store(texts, r"\1(void)flush(\2, \3);\n", '#include "flush.h"\n')


def stored_through_a_pointer(texts: Texts) -> Iterator[Change]:
    yield from _store(texts, r"\1auto *target = &\2;\n\1TSTORE(*target, \3);\n")


def arguments_by_a_macro(texts: Texts) -> Iterator[Change]:
    for _, _, path, text in _kernels(texts):
        if _TAKEN.search(text):
            code = "#define TENSOR(i) reinterpret_cast<__gm__ ChipTensor *>(args[i])\n"
            yield Change(path, _below_includes(_TAKEN.sub(r"TENSOR(\1)", text), code), 1)


def arguments_by_an_alias(texts: Texts) -> Iterator[Change]:
    for _, _, path, text in _kernels(texts):
        if _TAKEN.search(text):
            code = "using TensorPtr = __gm__ ChipTensor *;\n"
            yield Change(path, _below_includes(_TAKEN.sub(r"(TensorPtr)args[\1]", text), code), 1)


def submitted_elsewhere(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        pattern, text = r"rt_submit_aiv_task\((\w+), (\w+)\);", texts[program.source]
        for change in _first(program.source, text, pattern, r"submit_vector(\1, \2);"):
            yield Change(program.source, _below_includes(change.text, '#include "submit_vector.h"\n'), change.line)


def output_in_a_pair(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        pattern = r"(?m)^([ \t]+)(\w+)\.add_output\((\w+)\);\n"
        new = r"\1std::pair<const ChipTensor &, int> held{\3, 0};\n\1\2.add_output(held.first);\n"
        yield from _first(program.source, texts[program.source], pattern, new)


def core_by_a_statement(texts: Texts) -> Iterator[Change]:
    """The core of a kernel is set behind the list."""
    for program in programs(texts):
        core = program.items[0].values.get("core_type")
        if isinstance(core, ast.Constant) and "    CASES = [" in program.file.text:
            text = (
                program.file.replace(core, "None")
                .text.replace("'core_type': None", "", 1)
                .replace('"core_type": None,', "", 1)
            )
            statement = f'    CALLABLE["incores"][0]["core_type"] = {core.value!r}\n\n    CASES = ['
            yield Change(program.path, text.replace("    CASES = [", statement, 1), 1)


def fields_by_a_call(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        node = program.items[0].node
        pairs = zip(node.keys, node.values, strict=True)
        fields = [f"{key.value}={ast.unparse(value)}" for key, value in pairs if isinstance(key, ast.Constant)]
        yield program.file.replace(node, f"dict({', '.join(fields)})")


def declared_before(texts: Texts) -> Iterator[Change]:
    """The entry is declared `extern "C"` before it is defined."""
    for _, _, path, text in _kernels(texts):
        pattern = r'(?m)^extern "C" (__aicore__ void kernel_entry\(__gm__ int64_t \*args\)) \{'
        yield from _first(path, text, pattern, r'extern "C" \1;\n\n\1 {')


def outputs_in_an_array(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        pattern = r"(?m)^([ \t]+)(\w+)\.add_output\((\w+_ci)\);\n"
        new = r"\1const TensorCreateInfo infos[1] = {\3};\n\1\2.add_output(infos[0]);\n"
        yield from _first(program.source, texts[program.source], pattern, new)


def output_by_a_function(texts: Texts) -> Iterator[Change]:
    code = "static const ChipTensor &nth(const TaskOutputTensors &of, uint32_t at) { return of.get_ref(at); }\n"
    for program in programs(texts):
        text = texts[program.source]
        for change in _first(program.source, text, r"\b(\w+)\.get_ref\((\d+)\)", r"nth(\1, \2)"):
            yield Change(program.source, _below_includes(change.text, code), change.line)


def arguments_by_methods(texts: Texts) -> Iterator[Change]:
    """The first argument of a test is added last, behind a list of the others."""
    pattern = r"( *)return TaskArgsBuilder\((\s*)(TensorArg\(.*\)),\n"
    yield from _test(texts, pattern, r"\1first = [\3]\n\1return TaskArgsBuilder(\2*first,\n")


RIGHT: dict[str, Make] = by_name(
    declared_before,
    outputs_in_an_array,
    output_by_a_function,
    arguments_by_methods,
    stored_by_a_macro,
    stored_by_a_template,
    stored_elsewhere,
    stored_through_a_pointer,
    arguments_by_a_macro,
    arguments_by_an_alias,
    submitted_elsewhere,
    output_in_a_pair,
    core_by_a_statement,
    fields_by_a_call,
)
