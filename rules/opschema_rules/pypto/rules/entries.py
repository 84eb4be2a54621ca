"""The functions that the runtime calls: the orchestration function named in the description, and the entries of kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.cpp_text import only_code, without_comments
from opschema_cli.source.text import Edit, Span
from opschema_cli.suggestions import near_names
from opschema_rules.pypto import proofs
from opschema_rules.pypto.description_changes import may_change
from opschema_rules.pypto.includes import includes_others
from opschema_rules.pypto.kernel_code import arguments_of
from opschema_rules.pypto.kernel_walk import ENTRY
from opschema_rules.pypto.linkage import has_macros, without_linkage
from opschema_rules.pypto.model import Kernel, OrchestrationPart, Program


@rule("PTO113", "orchestration-function", fixable="unsafe", proof=proofs.LOADED)
def orchestration_function(program: Program) -> Iterator[Diagnostic]:
    """A description that names a function which its orchestration's source does not have.

    The runtime looks the function up by its name when the program is loaded, and aborts. A function that is defined without
    `extern "C"` has another name in the compiled library, and is not found either. Nothing is reported if the name appears in
    the source outside comments, even in a macro, if the source includes another file that may define it, or if the tree's
    runtime always uses `aicpu_orchestration_entry`, as older ones do. A source without any such function is only reported if it
    defines `kernel_entry()`. A missing `extern "C"` is only reported if the file never
    says `extern`, has no macros outside of functions, and includes only the runtime's headers and the standard library.

    Bad:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_enter",
        "signature": [D.IN, D.IN, D.OUT],
    }
    ```

    Good:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN, D.OUT],
    }
    ```
    """
    part = program.orchestration
    asked = part is not None and part.entry is None and part.function and not may_change(program.file)
    text = _source_of(part) if part is not None and asked and _is_asked_for(program) else None
    if part is None or text is None or _INCLUDES.search(text):
        return
    code = without_comments(text)
    if re.search(rf"\b{re.escape(part.function)}\b", code):
        yield from _mangled(part, text)
        return
    defined = sorted(set(_DEFINED.findall(text)))
    if not defined:
        if _KERNEL.search(code) is not None and not includes_others(text):
            place = part.at(part.fields["source"][1])
            yield Diagnostic(f"`{part.source}` is the source of a kernel: it has no function `{part.function}`", place)
        return
    near = near_names(part.function, defined, 1, 0.7)
    node = part.fields["function_name"][1]
    place = part.at(node)
    hint = f"; did you mean `{near[0]}`?" if near else f"; it exports {quoted(defined[:3])}"
    written = program.file.text(node)
    edit = (
        FileEdit(place.path, Edit(place.span, f"{written[0]}{near[0]}{written[-1]}")) if near and part.written else None
    )
    fix = Fix(f"write `{near[0]}`", (edit,), "unsafe", "the name is a guess") if edit is not None else None
    yield Diagnostic(f"`{part.source}` has no function `{part.function}`{hint}", place, fix=fix)


def _mangled(part: OrchestrationPart, text: str) -> Iterator[Diagnostic]:
    """Yield a finding on a function that has another name in the compiled library."""
    found = without_linkage(part.program.project.workspace, text, part.function, _ARGUMENTS)
    if found is not None:
        yield Diagnostic(
            f'`{part.function}` is defined without `extern "C"`, so that the runtime does not find it by its name',
            Place(part.source or "", found),
            (part.related(part.fields["function_name"][1], "the name that it looks for"),),
        )


_ARGUMENTS = r"[^;{})]*\b\w*Args\b[^;{})]*"
_DEFINED = re.compile(rf"\bvoid\s+(\w+)\s*\({_ARGUMENTS}\)\s*\{{")
_KERNEL = re.compile(rf"\b__aicore__\b[^;{{}}]*\b{ENTRY}\s*\([^;{{}}]*\)\s*\{{")
_INCLUDES = re.compile(r'#\s*include\s*"[^"]*\.(?:cpp|cc|inc|inl|ipp)"')


def _is_asked_for(program: Program) -> bool:
    """Whether the runtime looks up the function by the name in the description."""
    return program.contract.names_entry or program.runtime == "host_build_graph"


def _source_of(part: OrchestrationPart) -> str | None:
    source = part.program.project.source(part.source) if part.source is not None else None
    return source.text if source is not None else None


@rule("PTO114", "orchestration-arguments", needs=(CPP,))
def orchestration_arguments(program: Program) -> Iterator[Diagnostic]:
    """An orchestration that reads more tensors than its signature declares.

    `orch_args.tensor(3)` is the fourth entry of the orchestration's signature. After the last entry there is no tensor: the
    runtime copies none, and the orchestration reads arbitrary memory. Scalars have no entry, as they are not tensors. A tensor
    that is only taken in a branch or behind a `return`, which may ask for the number of tensors, is not reported.

    Bad:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN],
    }
    ```

    Good:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN, D.OUT],
    }
    ```
    """
    part = program.orchestration
    entry = part.entry if part is not None else None
    if part is None or entry is None or not entry.certain:
        return
    index, span = max(entry.certain)
    signature = part.signature
    if signature is None or not signature.slots or index < len(signature.slots):
        return
    place = part.at(signature.expr)
    message = (
        f"the signature has {len(signature.slots)} entries, and the orchestration takes tensor {index}: declare it"
    )
    yield Diagnostic(message, place, related=(Related(Place(part.source or "", span), "taken here"),))


@rule("PTO123", "kernel-entry")
def kernel_entry(program: Program) -> Iterator[Diagnostic]:
    """A kernel's source without `kernel_entry()`, or with one that has another name when it is compiled.

    Kernels are linked with `-e kernel_entry`, whatever the description calls them: without such a function the linker takes the
    first code of the file, and a simulator finds nothing to call. A function without `extern "C"` has another name.

    An exported function that takes a kernel's arguments (`__gm__ int64_t *args`) is reported if it is named nowhere else in the
    file. Nothing is reported if `kernel_entry` appears in the file, even in a macro, if other macros may make it, or if the file
    includes another one of the program. A `kernel_entry()` is only reported if it is defined once, under no condition, and nothing
    in the file or in the headers of the tree may declare it otherwise.

    The first runtimes took a kernel under any name. So the rule is silent unless the tree's runtime, the commit that it is
    pinned at, or `signatures` in `opschema.toml` shows that the runtime is a later one.

    Bad:

    ```toml opschema.toml
    [pypto]
    signatures = "widest"
    ```

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_add(__gm__ int64_t *args) {
        use(reinterpret_cast<__gm__ ChipTensor *>(args[0]));
    }
    ```

    Good:

    ```toml opschema.toml
    [pypto]
    signatures = "widest"
    ```

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        use(reinterpret_cast<__gm__ ChipTensor *>(args[0]));
    }
    ```
    """
    sources: dict[str, Kernel] = {}
    for kernel in program.kernels if program.contract.certain else ():  # what makes it certain is younger than the name
        if kernel.source is not None:
            sources.setdefault(kernel.source, kernel)
    for path, kernel in sources.items():
        code, source = arguments_of(kernel), program.project.source(path)
        if code is None or source is None:
            continue
        found, message = (
            None,
            f'`{ENTRY}()` of {kernel.title} is defined without `extern "C"`: it is compiled under another name',
        )
        if code.absent and code.open:
            found = _other_entry(source.text)
            name = source.text[found.start : found.end] if found is not None else ""
            message = f"`{path}` defines `{name}()`; {kernel.title} is called by the name `{ENTRY}()`"
        elif "extern" not in source.text:
            found = without_linkage(program.project.workspace, source.text, ENTRY, _ENTRY_ARGUMENTS)
        if found is not None:
            related = kernel.related(kernel.fields["source"][1], "the kernel")
            yield Diagnostic(message, Place(path, found), (related,), ops=(kernel.title,))


def _other_entry(text: str) -> Span | None:
    """Return the name of a function that is clearly meant as the entry of a kernel without `kernel_entry`."""
    code, places = without_comments(text), only_code(text, directives=False)
    found = _TAKES_ARGUMENTS.search(places)
    if (
        found is None
        or not _EXPORTED.match(text, found.start())
        or found[1].isupper()
        or len(re.findall(rf"\b{found[1]}\b", code)) > 1
        or "##" in code
        or ENTRY in code
        or has_macros(places)
        or includes_others(text)
    ):
        return None
    return Span(*found.span(1))


_ENTRY_ARGUMENTS = r"\s*__gm__\s+int64_t\s*\*\s*(?:\w+\s*)?"
_EXPORTED = re.compile(r'\bextern\s*"C"')
_TAKES_ARGUMENTS = re.compile(
    r"\bextern\s+(?:(?:__aicore__|__global__|__attribute__\s*\(\([^()]*\)\))\s+)*void\s+(?:__aicore__\s+)?"
    rf"(\w+)\s*\({_ENTRY_ARGUMENTS}\)\s*\{{"
)
