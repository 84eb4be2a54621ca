"""Small programs for the tests of this pack: kernels as a list of fields, an orchestration's body, options."""

from __future__ import annotations

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.pypto.examples import CONFIG
from opschema_rules.pypto.pack import PACK

THREE = """\
CoreTaskArgs p;
p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
p.add_output(orch_args.tensor(2).ref());
"""
"""A payload `p` of IN, IN, OUT."""

SIGNATURES = ("PTO101", "PTO102", "PTO103", "PTO104", "PTO105", "PTO111", "PTO112")

ALONE = THREE + "rt_submit_aiv_task(0, p);\n"

MIXED = THREE + "MixedKernels mixed = {0, 1, 2};\nrt_submit_task(mixed, p);\n"


def kernels(*fields: str) -> str:
    """``KERNELS`` with one dict in one line for each text, numbered from 0."""
    lines = [f'    {{"func_id": {number}, "core_type": "aiv"{text}}},\n' for number, text in enumerate(fields)]
    return f"KERNELS = [\n{''.join(lines)}]\n"


def signed(*lists: str) -> str:
    """``KERNELS`` with these signatures: ``IN, OUT``; no field at all for ``-``."""
    return kernels(*(_signature(text) for text in lists))


def _signature(text: str) -> str:
    names = [f"D.{name}" for name in text.split(", ") if name]
    return "" if text == "-" else f', "signature": [{", ".join(names)}]'


def program(config: str, body: str = ALONE, contract: str = "", options: str = "") -> dict[str, str]:
    """The files of a workspace; ``contract`` is how signatures are read, ``options`` are lines of the pack's table."""
    lines = [f'signatures = "{contract}"'] if contract else []
    files = PACK.example([("python", config), ("cpp", body)])
    return {**files, "opschema.toml": "\n".join(["[pypto]", *lines, options])}


def lint(files: dict[str, str], code: str = "") -> Linted:
    """The findings of the signature rules, or of one rule."""
    return lint_files([PACK], files, [code] if code else SIGNATURES)


def found(files: dict[str, str], code: str) -> list[str]:
    """``text at the place: message`` for each finding of a rule."""
    linted = lint(files, code)
    return [f"{linted.text(item.place)}: {item.message}" for item in linted.diagnostics]


def beside(files: dict[str, str], code: str) -> list[str]:
    """``text at the other side: what it is`` for each finding of a rule."""
    linted = lint(files, code)
    return [f"{linted.text(side.place)}: {side.message}" for item in linted.diagnostics for side in item.related]


def fixed(files: dict[str, str], code: str) -> str:
    """``kernel_config.py`` below its imports after the safe fixes of a rule."""
    texts, _ = fix_files([PACK], files, [code])
    text = {**files, **texts}[CONFIG]
    return text[text.index("KERNELS") : text.index("ORCHESTRATION")]
