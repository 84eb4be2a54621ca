"""Asks ExecuTorch's own code generator: which lists it reads, and which C++ signatures it declares for schemas.

    python codegen_oracle.py FOLDER < {"lists": [[name, text], ...], "schemas": [...]}

FOLDER holds ExecuTorch's repository as ``executorch``; torchgen is the installed one.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main() -> None:
    """Print the answers as JSON."""
    sys.path.insert(0, sys.argv[1])
    asked = json.load(sys.stdin)
    from executorch.codegen import gen

    gen.parse_et_yaml = functools.cache(gen.parse_et_yaml)  # it reads torch's own schemas for each list
    lists = {name: refusal(text) for name, text in asked["lists"]}
    print(json.dumps({"lists": lists, "schemas": [signature(text) for text in asked["schemas"]]}))


def refusal(text: str) -> str:
    """The error with which the code generator refuses a list; empty if it reads it and writes its C++."""
    import torchgen
    from executorch.codegen import gen
    from torchgen.selective_build.selector import SelectiveBuilder

    native = Path(torchgen.__file__).parent / "packaged/ATen/native"
    selector = SelectiveBuilder.get_nop_selector()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "functions.yaml")
        path.write_text(text)
        files = (str(native / "tags.yaml"), str(native / "native_functions.yaml"), str(path), None)
        try:
            parsed, _ = gen.parse_yaml_files(*files, selector, False)
            index = parsed.kernel_index
            index._to_backend_index()
            declare = gen.compute_native_function_declaration
            given = {"native_functions": parsed.native_functions, "kernel_index": index}
            gen.get_ns_grouped_kernels(**given, native_function_decl_gen=declare)
            unboxed = gen.ComputeCodegenUnboxedKernels(selector, False, False)
            for item in _kernels(parsed.native_functions, index):
                unboxed(item)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def _kernels(functions: Any, index: Any) -> Iterator[Any]:
    return ((function, item) for function in functions for item in index.get_kernels(function).items())


def signature(text: str) -> list[str] | None:
    """The types of the parameters, and last that of the result; None if there is no C++ for the schema."""
    from executorch.codegen.api import et_cpp
    from torchgen import local
    from torchgen.model import FunctionSchema

    with local.parametrize(use_const_ref_for_mutable_tensors=False, use_ilistref_for_tensor_lists=False):
        try:
            schema = FunctionSchema.parse(text)
            options = {"faithful": True, "method": False, "cpp_no_default_args": set[str]()}
            found = et_cpp.arguments(schema.arguments, **options)
            return [*(item.type for item in found), et_cpp.returns_type(schema.returns).cpp_type()]
        except Exception:
            return None


if __name__ == "__main__":
    main()
