"""Other orchestrations for a description, and other ways of writing it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.proof import Files, windows_lines
from opschema_rules.pypto.examples import CONFIG, SOURCE
from tests.proofs.python_variants import python_variants

_TENSORS = "".join(
    f"const ChipTensor &{name} = orch_args.tensor({number}).ref();\n" for number, name in enumerate("abc")
)
_SUBMIT = "rt_submit_aiv_task(0, p);\n"

BODIES = (
    "CoreTaskArgs p;\np.add_output(c);\np.add_input(a, b);\n" + _SUBMIT,
    "CoreTaskArgs p;\np.add_inout(c);\np.add_input(b);\np.add_scalar(k);\n" + _SUBMIT,
    "CoreTaskArgs p;\np.add_input(a);\np.add_no_dep(b);\np.add_inout(c);\n" + _SUBMIT,
    "for (int k = 0; k < 2; k++) {\nCoreTaskArgs p;\np.add_input(a.view(k), b);\np.add_output(c);\n" + _SUBMIT + "}\n",
    "CoreTaskArgs p;\np.add_input(a, b);\nif (last) {\np.add_output(c);\n}\n" + _SUBMIT,
    "CoreTaskArgs p;\np.add_input(a, b);\nif (last) {\np.add_output(c);\n} else {\np.add_inout(c);\n}\n" + _SUBMIT,
    "CoreTaskArgs p;\np.add_input(a, b);\np.add_output(c);\n" + _SUBMIT + "p.add_input(a);\n" + _SUBMIT,
    "CoreTaskArgs p;\np.add_input(a);\np.add_output(b);\n"
    + _SUBMIT
    + "CoreTaskArgs q;\nq.add_input(b);\nq.add_inout(c);\nrt_submit_aiv_task(0, q);\n",
    "CoreTaskArgs p;\np.add_input(a, b);\np.add_output(c);\nMixedKernels m = {-1, 0, 0};\nrt_submit_task(m, p);\n",
)


def variants(files: Files) -> Iterator[Files]:
    """Windows line ends, other ways of writing the description or the module, and other orchestrations."""
    yield from windows_lines(files)
    if any("TensorSpec" in text for text in files.values()):
        yield from python_variants(files)
        return
    for changed in _written(files[CONFIG]):
        if changed != files[CONFIG]:
            yield {**files, CONFIG: changed}
    head, _, _ = files[SOURCE].partition("{\n    ")
    for body in BODIES:
        yield {**files, SOURCE: f"{head}{{\n{_TENSORS}{body}}}\n\n}}  // extern\n"}


def _written(text: str) -> Iterator[str]:
    yield text.replace('"', "'")
    yield text.replace("ArgDirection as D", "ArgDirection").replace("D.", "ArgDirection.")
    yield re.sub(r"\[(D\.[^\]\n]*)\]", r"(\1,)", text)
    yield re.sub(r"\[(D\.[^\]\n]*)\]", lambda match: "[\n" + match[1].replace(", ", ",  # why\n") + "\n]", text)
