"""Which operators get Python bindings, and which types these can return; the tree's own generator tells both, else PyTorch 2.13."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.workspace import content_digest

_SKIPPED = r"""
    alias contiguous dim get_device is_contiguous is_cuda is_sparse is_sparse_csr numel size storage_offset stride
    sym_is_contiguous sym_size sym_stride sym_storage_offset sym_numel .*_backward .*_backward_(out|input|weight|bias)
    .*_forward .*_forward_out .*_jvp _unsafe_view tensor _?sparse_(coo|compressed|csr|csc|bsr|bsc)_tensor.* _range.*
    _sparse_add_out _sparse_div.* _sparse_mul.* _sparse_sub.* _sparse_dense_add_out index index_out unique_dim_consecutive
    _cumsum.* _cumprod.* _sum.* _prod.* _th_.* _thnn_.* range.* _solve.* _inverse.* _cholesky.* _triangular_solve.* _qr.*
    _svd.* slice item _local_scalar_dense to _to_copy _to_copy_out _reshape_copy _reshape_copy_out copy_sparse_to_sparse_
    copy_ _foreach_copy numpy_T matrix_H mT mH nonzero(_(out|numpy))? set_data .*_overrideable data is_leaf output_nr
    _version requires_grad_ retains_grad set_ _fw_primal fake_quantize_per_tensor_affine_cachemask
    fake_quantize_per_channel_affine_cachemask _new_zeros_with_same_feature_meta _has_same_storage_numel _reshape_alias
    replace_ copy fill.Tensor fill.Scalar lift.* normal_functional nbytes itemsize _batch_norm_with_update
    _batch_norm_with_update_out _batch_norm_no_update
"""
_T = "at::Tensor"
_RETURNED = (
    *("at::Scalar", "bool", "int64_t", "void*", "void", "at::QScheme", "double", "at::IntArrayRef", "at::ScalarType"),
    *("at::Stream", _T, f"::std::vector<{_T}>", f"::std::tuple<{_T},::std::vector<{_T}>>"),
    *(f"::std::tuple<{','.join([_T] * number)}>" for number in range(2, 7)),
    *(f"::std::tuple<{','.join([_T] * number)},int64_t>" for number in (3, 4)),
    *(f"::std::tuple<{_T},{_T},double,int64_t>", f"::std::tuple<{_T},{_T},double,{_T},int64_t>"),
    *("::std::tuple<double,int64_t>", f"::std::tuple<{_T},{_T},{_T},{_T},c10::SymInt,c10::SymInt,{_T},{_T},{_T}>"),
)


class Bindings(msgspec.Struct, frozen=True):
    """``skipped`` are patterns of the C++ names of operators without binding, ``returned`` what a binding can return."""

    skipped: frozenset[str] = frozenset()
    returned: frozenset[str] = frozenset()
    digest: str = ""

    @property
    def known(self) -> bool:
        """Whether both are known."""
        return bool(self.skipped) and bool(self.returned)

    def skips(self, name: str) -> bool:
        """Whether the operator with this C++ name gets no binding."""
        return name in self.skipped or _pattern(self.skipped).fullmatch(name) is not None


TORCH_BINDINGS = Bindings(frozenset(_SKIPPED.split()), frozenset(_RETURNED))
"""PyTorch 2.13's."""


@lru_cache(maxsize=8)
def _pattern(skipped: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(item for item in skipped if "." in item or "?" in item)) or "(?!)")


def read_bindings(project: Project, folder: str) -> Bindings:
    """The bindings of the PyTorch in ``folder``, whose generator is part of the tree; unknown where it cannot be read."""
    paths = (f"{folder}tools/autograd/gen_python_functions.py", f"{folder}torchgen/api/python.py")
    found = project.readings(_READING, [path for path in paths if path in set(project.workspace.files)])
    skipped = frozenset[str]().union(*(item.skipped for item in found.values()))
    returned = frozenset[str]().union(*(item.returned for item in found.values()))
    digest = " ".join(found[path].digest for path in sorted(found))
    return Bindings(skipped, returned, digest)


_SKIP_LIST = re.compile(r"^_?SKIP_PYTHON_BINDINGS = \[\n(.*?)^\]", re.MULTILINE | re.DOTALL)
_RETURN_LIST = re.compile(r"^SUPPORTED_RETURN_TYPES = \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r"^ *[\"']([^\"'\n]*)[\"']", re.MULTILINE)
_SAFE = re.compile(r"(?!.*\)[*+])[\w.?()|]*(?:\.\*[\w.?()|]*){0,2}", re.ASCII)
"""Patterns that a match cannot run away with."""


def _read(text: str) -> Bindings:
    skips, types = _SKIP_LIST.search(text), _RETURN_LIST.search(text)
    skipped = _TEXT.findall(skips[1]) if skips is not None else []
    sound = all(_SAFE.fullmatch(item) and _compiles(item) for item in skipped)
    returned = _TEXT.findall(types[1]) if types is not None else []
    return Bindings(
        frozenset(skipped if sound else ()),
        frozenset(item.replace("std::", "::std::").replace("::::", "::") for item in returned),
        content_digest(text.encode("utf-8", "surrogatepass")),
    )


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


_READING = Reading("aten-bindings", _read, Bindings)
