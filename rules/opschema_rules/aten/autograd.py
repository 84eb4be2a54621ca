"""What PyTorch's autograd generator says of operators and formulas: the one beside a derivatives.yaml, else that of 2.13."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.project import Project

_NEVER = """
    empty_like ones_like full_like zeros_like rand_like randn_like new_empty new_empty_strided new_full new_zeros new_ones
    __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__
    _sobol_engine_draw _sobol_engine_ff _sobol_engine_scramble_ _sobol_engine_initialize_state_ _coalesced_
    quantize_per_tensor quantize_per_channel argmax argmin argsort searchsorted bucketize isnan isposinf isneginf isinf
    signbit isin allclose record_stream logical_and logical_xor logical_not logical_or _nested_tensor_size
    _nested_tensor_strides _nested_tensor_storage_offsets
"""
_MANUAL = """
    options data set_data is_leaf output_nr _version retain_grad _backward requires_grad_ resize_ resize_as_ detach detach_
    copy_ _fw_primal _make_dual
"""
_FOREACH = frozenset(
    [
        *((f"_foreach_{name}", of) for name in ("maximum", "minimum") for of in ("Scalar", "ScalarList")),
        *((f"_foreach_{name}", "Tensor") for name in ("addcdiv", "addcmul")),
        ("_foreach_copy", ""),
    ]
)
_NAME = re.compile(r"[\"'](\w+)[\"']")
_PAIR = re.compile(r"\([\"'](\w+)[\"'],\s*[\"'](\w*)[\"']\)")


class Autograd(msgspec.Struct, frozen=True):
    """``never`` are operators that need no derivative (``gen_variable_type.DONT_REQUIRE_DERIVATIVE``), ``manual`` those whose
    derivatives are written by hand (``gen_trace_type.MANUAL_AUTOGRAD``). ``takes_sizes`` tells that formulas may say
    ``.sizes()``, as before SymInts. ``foreach`` are the in-place operators over lists, by name and overload, that need no
    derivative to use (``gen_variable_type._foreach_ops_without_differentiability_info``); None where none needs one.
    """

    never: frozenset[str] = frozenset(_NEVER.split())
    manual: frozenset[str] = frozenset(_MANUAL.split())
    takes_sizes: bool = False
    foreach: frozenset[tuple[str, str]] | None = _FOREACH

    @property
    def digest(self) -> str:
        """What findings depend on."""
        foreach = None if self.foreach is None else sorted(self.foreach)
        return "" if self == TORCH else f"{sorted(self.never)} {sorted(self.manual)} {self.takes_sizes} {foreach}"


TORCH = Autograd()
"""PyTorch 2.13's."""


def read_autograd(project: Project, path: str) -> Autograd:
    """The generator that reads the derivatives at ``path``."""
    types = _beside(project, path, "gen_variable_type.py")
    never = _names(types, "DONT_REQUIRE_DERIVATIVE")
    trace = _beside(project, path, "gen_trace_type.py")
    manual = _names(trace, "MANUAL_BACKEND") | _names(trace, "MANUAL_AUTOGRAD_AND_TRACER")
    loader = _beside(project, path, "load_derivatives.py")
    takes_sizes = bool(loader) and "sym_sizes" not in loader
    foreach = _foreach(types) if types else TORCH.foreach
    return Autograd(never or TORCH.never, manual or TORCH.manual, takes_sizes, foreach)


def _beside(project: Project, path: str, name: str) -> str:
    """The text of a file in the same folder; empty if there is none."""
    near = f"{path.rpartition('/')[0]}/{name}".lstrip("/")
    source = project.source(near) if near in project.workspace.files else None
    return source.text if source is not None else ""


def _names(text: str, name: str) -> frozenset[str]:
    """The names in a set that a Python module defines."""
    match = re.search(rf"^{name} = (?:set\(\[|\{{)([^\]}}]*)", text, re.MULTILINE)
    lines = match[1].splitlines() if match is not None else []
    return frozenset(found for line in lines for found in _NAME.findall(line.partition("#")[0]))


def _foreach(text: str) -> frozenset[tuple[str, str]] | None:
    """The pairs of name and overload in the set that tells which operators over lists need no derivative."""
    bare = re.sub(r"#.*", "", text)
    match = re.search(r"^_foreach_ops_without_differentiability_info = \{([^}]*)", bare, re.MULTILINE)
    return frozenset(_PAIR.findall(match[1])) if match is not None else None
