"""Operators that torchgen excepts by name, where a check is younger than they are; the tree's own torchgen tells, else 2.13's."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.workspace import content_digest

_LISTS = {
    "lone_outs": ("OUT_OPS_THAT_DONT_GET_GROUPED_PROPERLY",),
    "lone_inplace": ("INPLACE_OPS_THAT_DONT_GET_GROUPED_PROPERLY",),
    "no_out_variant": (
        "MUTABLE_OPS_THAT_CANNOT_GET_AN_OUT_VARIANT",
        "FUNCTIONAL_OPS_THAT_CANNOT_GET_AN_OUT_VARIANT",
    ),
    "not_functionalized": ("MUTABLE_OPS_NOT_USING_FUNCTIONALIZATION",),
}
_NO_OUT_VARIANT = """
    _cummax_helper _cummin_helper
    _assert_async _assert_async.msg _assert_tensor_metadata _cslt_sparse_mm_search _assert_scalar _dimI _dimV
    _has_same_storage_numel _linalg_check_errors _local_scalar_dense _nested_tensor_from_mask_left_aligned _nnz
    _use_cudnn_ctc_loss _use_cudnn_ctc_loss.Tensor _use_miopen_ctc_loss _use_miopen_ctc_loss.Tensor
    _validate_compressed_sparse_indices allclose dense_dim equal is_coalesced is_pinned is_same_size is_set_to
    q_per_channel_axis q_scale q_zero_point qscheme record_stream sparse_dim sym_constrain_range
    sym_constrain_range_for_size _nested_tensor_storage_offsets _chunk_grad_outputs_efficient_attention _fused_sdp_choice
    _print _sink_tokens _nested_get_ragged_idx
"""


class Exceptions(msgspec.Struct, frozen=True):
    """What one version of torchgen excepts.

    ``lone_outs`` are out variants without other variants, ``lone_inplace`` in-place operators that nothing is generated
    for, ``no_out_variant`` operators with kernels that return no tensor, ``not_functionalized`` those that write and are in
    no group. ``known`` tells that it generates variants at all, ``functionalizes`` that it looks for the last.
    """

    lone_outs: frozenset[str] = frozenset()
    lone_inplace: frozenset[str] = frozenset()
    no_out_variant: frozenset[str] = frozenset()
    not_functionalized: frozenset[str] = frozenset()
    known: bool = False
    functionalizes: bool = False
    digest: str = ""


TORCH_EXCEPTIONS = Exceptions(
    frozenset({"adaptive_avg_pool3d_backward.grad_input", "_slow_conv2d_backward.grad_input"}),
    frozenset({"polygamma_"}),
    frozenset(_NO_OUT_VARIANT.split()),
    frozenset(
        {
            "record_stream",
            "resize_",
            "resize_as_",
            "_fill_mem_eff_dropout_mask_",
            "_flash_attention_forward_no_dropout_inplace",
        }
    ),
    known=True,
    functionalizes=True,
)
"""PyTorch 2.13's."""


def read_exceptions(project: Project, folder: str) -> Exceptions:
    """The exceptions of the torchgen in ``folder``."""
    paths = [f"{folder}torchgen/native_function_generation.py", f"{folder}torchgen/gen_functionalization_type.py"]
    present = set(project.workspace.files)
    found = list(project.readings(_READING, [path for path in paths if path in present]).values())
    return Exceptions(
        **{field: frozenset[str]().union(*(getattr(item, field) for item in found)) for field in _LISTS},
        known=any(item.known for item in found),
        functionalizes=any(item.functionalizes for item in found),
        digest=" ".join(item.digest for item in found),
    )


_CHECK = "assert g.has_composite_implicit_autograd_kernel or not modifies_arguments(g)"
"""The same check in versions before 2.13."""

_TEXT = re.compile(r"^ *[\"']([^\"'\n]*)[\"']", re.MULTILINE)


def _read(text: str) -> Exceptions:
    lists = {
        field: frozenset(name for title in titles for name in _names(text, title)) for field, titles in _LISTS.items()
    }
    return Exceptions(
        **lists,
        known="def add_generated_native_functions" in text,
        functionalizes="Expected composite implicit autograd kernel" in text or _CHECK in text,
        digest=content_digest(text.encode("utf-8", "surrogatepass")),
    )


def _names(text: str, title: str) -> list[str]:
    found = re.search(rf"^{title}(?:: [^=\n]*)? = [\[(]\n(.*?)^[\])]", text, re.MULTILINE | re.DOTALL)
    return _TEXT.findall(found[1]) if found is not None else []


_READING = Reading("aten-exceptions", _read, Exceptions)
