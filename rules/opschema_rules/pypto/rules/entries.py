"""The function that a description names for its orchestration: that it is there, and takes what is declared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.cpp_text import without_comments
from opschema_cli.source.text import Edit
from opschema_cli.suggestions import near_names
from opschema_rules.pypto import proofs
from opschema_rules.pypto.model import OrchestrationPart, Program


@rule("PTO113", "orchestration-function", fixable="unsafe", proof=proofs.LOADED)
def orchestration_function(program: Program) -> Iterator[Diagnostic]:
    """A description that names a function which its orchestration's source does not have.

    The runtime looks the function up by its name when the program is loaded, and aborts. Nothing is reported if the name
    appears in the source outside comments, even in a macro, if the source includes another file that may define it, or if the
    tree's runtime always uses `aicpu_orchestration_entry`, as older ones do.

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
    asked = part is not None and part.entry is None and part.function
    text = _source_of(part) if part is not None and asked and _is_asked_for(program) else None
    if part is None or text is None or _INCLUDES.search(text):
        return
    if re.search(rf"\b{re.escape(part.function)}\b", without_comments(text)):
        return
    defined = sorted(set(_DEFINED.findall(text)))
    if not defined:
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


_DEFINED = re.compile(r"\bvoid\s+(\w+)\s*\([^;{})]*\b\w*Args\b[^;{})]*\)\s*\{")
_INCLUDES = re.compile(r'#\s*include\s*"[^"]*\.(?:cpp|cc|inc|inl|ipp)"')


def _is_asked_for(program: Program) -> bool:
    """Whether the runtime looks for the function under the name that the description gives."""
    return program.contract.names_entry or program.runtime == "host_build_graph"


def _source_of(part: OrchestrationPart) -> str | None:
    source = part.program.project.source(part.source) if part.source is not None else None
    return source.text if source is not None else None


@rule("PTO114", "orchestration-arguments", needs=(CPP,))
def orchestration_arguments(program: Program) -> Iterator[Diagnostic]:
    """An orchestration that reads more tensors than its signature, or its `expected_arg_count`, declares.

    `orch_args.tensor(3)` is the fourth entry of the orchestration's signature. After the last entry there is no tensor: the
    runtime copies none, and the orchestration reads arbitrary memory; if `expected_arg_count` is too small as well, nothing
    checks it. Scalars have no entry, as they are not tensors.

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
    if part is None or entry is None or not entry.arguments:
        return
    index, span = max(entry.arguments)
    signature = part.signature
    if signature is None or not signature.slots or index < len(signature.slots):
        return
    place = part.at(signature.expr)
    message = (
        f"the signature has {len(signature.slots)} entries, and the orchestration takes tensor {index}: declare it"
    )
    yield Diagnostic(message, place, related=(Related(Place(part.source or "", span), "taken here"),))
