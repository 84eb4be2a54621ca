"""Names of FlyDSL that were renamed, and since which release; others may add rows.

A row belongs here where the new name takes what the old one took. What was only removed, or is called in another way
now, is not a rename.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from packaging.version import Version

from opschema_rules.flydsl.contract import Era


class Renamed(msgspec.Struct, frozen=True):
    """A name of FlyDSL, and what it is called from the release ``since`` on.

    ``old`` and ``new`` are in full (``flydsl.compiler.from_dlpack``), as users reach them; those of methods that any class
    may define begin with a dot (``.__fly_values__``). ``removed`` is the first release without the old name, empty while it
    stands. ``same`` is whether the new one means the same wherever the old one is written for one of ``eras``; else a person has
    to decide, for which ``remark`` says what differs. ``tensors`` when the first argument must be a torch tensor.
    """

    old: str
    new: str
    since: str
    removed: str = ""
    same: bool = True
    eras: tuple[Era, ...] = tuple(Era)
    remark: str = ""
    tensors: bool = False

    @property
    def is_method(self) -> bool:
        """Whether it is a method that any class may define."""
        return self.old.startswith(".")

    @property
    def word(self) -> str:
        """The old name's last word."""
        return self.old.rpartition(".")[2]

    @property
    def new_word(self) -> str:
        """The new name's last word."""
        return self.new.rpartition(".")[2]

    def by(self, release: Version) -> bool:
        """Whether a release has the new name."""
        return Version(self.since) <= release


def _rows() -> Iterator[Renamed]:
    for module in ("flydsl.expr", "flydsl.expr.primitive", "flydsl.expr.derived", "flydsl.expr.typing"):
        yield Renamed(f"{module}.block_product", f"{module}.blocked_product", "0.2.0", "0.2.0")
    for module in ("flydsl.compiler", "flydsl.compiler.jit_argument"):
        yield Renamed(
            f"{module}.from_dlpack",
            f"{module}.from_torch_tensor",
            "0.2.2",
            eras=(Era.BAKED, Era.SPLIT),
            remark="a tensor that it wrapped had a dynamic layout there",
            tensors=True,
        )
    adaptor = "flydsl.compiler.jit_argument"
    yield Renamed(
        f"{adaptor}.TensorAdaptor",
        f"{adaptor}.TorchTensorJitArg",
        "0.2.2",
        "0.2.2",
        eras=(Era.DYNAMIC, Era.SPLIT),
        remark="a tensor that it wrapped had a static layout there",
    )
    yield Renamed(f"{adaptor}.PointerAdaptor", f"{adaptor}.PointerJitArg", "0.2.2", "0.2.2")
    yield from _protocol()
    yield Renamed(
        "flydsl.compiler.jit_function.FlyDSLCompileError",
        "flydsl.compiler.jit_function.DSLCompileError",
        "0.2.3",
        "0.2.3",
        remark="its `diagnostics` are records now, and were strings",
    )
    tracing = {
        "flydsl.expr.meta": ("0.2.2", "0.2.3"),
        "flydsl.expr.primitive": ("0.2.2", "0.2.2"),
        "flydsl.expr.buffer_ops": ("0.2.3", "0.2.3"),
        "flydsl.expr.utils.arith": ("0.2.3", "0.2.3"),
    }
    for module, (since, removed) in tracing.items():
        remark = "it does not turn arguments into values of the IR, as the old one did"
        yield Renamed(f"{module}.traced_op", f"{module}.dsl_loc_tracing", since, removed, same=False, remark=remark)


def _protocol() -> Iterator[Renamed]:
    """Yield the protocols of the DSL's arguments and values, and the functions that check for them."""
    protocol = "flydsl.compiler.protocol"
    functions = {
        "fly_types": "get_ir_types",
        "fly_pointers": "get_c_pointers",
        "fly_values": "extract_to_ir_values",
        "fly_construct": "construct_from_ir_values",
    }
    for old, new in functions.items():
        yield Renamed(f"{protocol}.{old}", f"{protocol}.{new}", "0.1.7", "0.1.7")
    methods = {
        "__fly_types__": "__get_ir_types__",
        "__fly_ptrs__": "__get_c_pointers__",
        "__fly_values__": "__extract_to_ir_values__",
        "__fly_construct__": "__construct_from_ir_values__",
    }
    for old, new in methods.items():
        yield Renamed(f".{old}", f".{new}", "0.1.7", "0.1.7")
    slots = "it gives slots that are filled at each call, not pointers"
    yield Renamed(f"{protocol}.get_c_pointers", f"{protocol}.c_abi_spec", "0.2.2", "0.2.2", same=False, remark=slots)
    yield Renamed(".__get_c_pointers__", ".__c_abi_spec__", "0.2.2", "0.2.2", same=False, remark=slots)


RENAMED: tuple[Renamed, ...] = tuple(_rows())
"""In the order of their releases for each name."""

MOVED = {
    "flydsl.compiler.jit_function.KernelFunction": "flydsl.compiler.kernel_function",
    "flydsl.utils.smem_allocator.SMEM_CAPACITY_MAP": "flydsl.runtime.device",
    "flydsl.utils.smem_allocator.check_smem_capacity": "flydsl.runtime.device",
}
"""Names that only moved to another module, by their old full names."""
