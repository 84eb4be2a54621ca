"""Repositories that bind functions with pybind11, at pinned commits: what is found there was judged, and is true.

``python -m benchmarks.corpus unrelated`` unpacks them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.bindings.detection import BindingsOptions
from opschema_rules.bindings.load import read_tree
from opschema_rules.bindings.pack import PACK
from tests.corpus.judging import findings

JUDGED = {
    # A module for Triton calls functions that were merged or removed, without the new argument `has_d_bias`.
    "Dao-AILab+flash-attention": [
        "BND303 flash_attn/ops/triton/mlp.py:37 linear_bias_forward",
        "BND303 flash_attn/ops/triton/mlp.py:54 linear_bias_forward",
        "BND303 flash_attn/ops/triton/mlp.py:80 linear_bias_forward",
        "BND301 flash_attn/ops/triton/mlp.py:95 fused_dense_cuda.linear_bias_wgrad",
        "BND303 flash_attn/ops/triton/mlp.py:98 linear_bias_backward",
        "BND301 flash_attn/ops/triton/mlp.py:103 fused_dense_cuda.linear_bias_wgrad",
        "BND303 flash_attn/ops/triton/mlp.py:107 linear_bias_backward",
    ],
    "NVIDIA+TransformerEngine": [],
    "NVIDIA+apex": [
        # A test passes 7 of 8 arguments.
        "BND301 tests/distributed/synced_batchnorm/test_groups.py:186 syncbn.batchnorm_backward",
    ],
    "ROCm+aiter": [
        # Two functions have the default `std::nullopt` for a `std::string&`.
        "BND104 csrc/pybind/moe_ck_2stages_pybind.cu:6 MOE_CK_2STAGES_PYBIND",
    ],
    "deepseek-ai+DeepGEMM": [],
    "deepseek-ai+FlashMLA": [],
    "deepspeedai+DeepSpeed": [
        'BND201 csrc/compile/init.cpp:111 "cleanup"',
        # torch's own functions replaced these; the benchmarks were left behind.
        "BND303 tests/benchmarks/flatten_bench.py:26 flatten",
        "BND303 tests/benchmarks/flatten_bench.py:27 unflatten",
        "BND303 tests/benchmarks/unflatten_bench.py:26 flatten",
        "BND303 tests/benchmarks/unflatten_bench.py:27 unflatten",
    ],
    "facebookresearch+pytorch3d": [],
    "nerfstudio-project+gsplat": [],
    "open-mmlab+mmcv": [
        # The numbers come last in C++; an earlier binding of the name has the right order.
        'BND102 mmcv/ops/csrc/pytorch/pybind.cpp:611 "b"',
        # C++ takes `grad_output` first.
        'BND102 mmcv/ops/csrc/pytorch/pybind.cpp:791 "rois"',
    ],
    "thu-ml+SageAttention": [],
}

BINDINGS = {
    "Dao-AILab+flash-attention": (17, 17),
    "NVIDIA+TransformerEngine": (172, 171),
    "NVIDIA+apex": (162, 162),
    "ROCm+aiter": (327, 326),
    "deepseek-ai+DeepGEMM": (52, 52),
    "deepseek-ai+FlashMLA": (5, 5),
    "deepspeedai+DeepSpeed": (202, 189),
    "facebookresearch+pytorch3d": (48, 48),
    "nerfstudio-project+gsplat": (48, 48),
    "open-mmlab+mmcv": (113, 113),
    "thu-ml+SageAttention": (25, 25),
}
"""The least number of bindings that are read, and of those whose C++ signature is found."""


@pytest.fixture(params=sorted(JUDGED))
def repository(request: pytest.FixtureRequest, corpus: Path) -> tuple[str, Path]:
    name: str = request.param
    root = corpus / "unrelated" / name
    if not root.is_dir():
        pytest.skip(f"unrelated/{name} is not below OPSCHEMA_CORPUS")
    return name, root


def test_what_is_found_is_what_was_judged(repository: tuple[str, Path]) -> None:
    name, root = repository
    assert findings(PACK, root) == JUDGED[name]


def test_bindings_are_read_with_their_functions(repository: tuple[str, Path]) -> None:
    name, root = repository
    bindings = list(read_tree(Project(Workspace(root)), BindingsOptions()).bindings)
    known = [item for item in bindings if item.parameters is not None]
    assert (len(bindings), len(known)) >= BINDINGS[name]
