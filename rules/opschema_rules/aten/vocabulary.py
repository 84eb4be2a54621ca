"""The words of torchgen: dispatch keys, fields, types; the tree's own ``torchgen/model.py`` tells them, else PyTorch 2.13."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.workspace import content_digest

_BACKENDS = "CPU CUDA HIP XLA MTIA MPS IPU XPU HPU VE Lazy Meta PrivateUse1 PrivateUse2 PrivateUse3"
_OTHER_KEYS = """
    Undefined CatchAll FPGA MAIA Vulkan Metal MKLDNN OpenGL OpenCL IDEEP CustomRNGKeyId MkldnnCPU Sparse SparseCsr
    NestedTensor Dense PythonTLSSnapshot PreDispatch PythonDispatcher Python FuncTorchDynamicLayerBackMode ZeroTensor
    Conjugate Negative BackendSelect Named AutogradOther AutogradFunctionality AutogradNestedTensor Tracer Autocast
    AutocastCPU AutocastCUDA AutocastXPU Batched VmapMode FuncTorchGradWrapper FuncTorchBatched BatchedNestedTensor
    FuncTorchVmapMode FuncTorchDynamicLayerFrontMode Functionalize TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode
    ADInplaceOrView Autograd CompositeImplicitAutograd CompositeImplicitAutogradNestedTensor CompositeExplicitAutograd
    CompositeExplicitAutogradNonFunctional FuncTorchBatchedDecomposition
"""
_SUPPORTED = """
    CPU SparseCPU SparseCsrCPU MkldnnCPU CUDA MPS XPU SparseXPU SparseCsrXPU SparseCUDA SparseCsrCUDA SparseMPS
    SparseCsrMPS QuantizedCPU QuantizedCUDA CompositeImplicitAutograd CompositeImplicitAutogradNestedTensor
    CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional NestedTensorCPU NestedTensorCUDA NestedTensorXPU
    NestedTensorHPU Meta SparseMeta SparseCsrMeta QuantizedMeta NestedTensorMeta ZeroTensor MTIA
"""
_FIELDS = """
    func cpp_no_default_args use_const_ref_for_mutable_tensors variants manual_kernel_registration manual_cpp_binding
    device_guard device_check structured structured_delegate structured_inherits python_module category_override
    precomputed tags dispatch autogen ufunc_inner_loop
"""
_TYPES = """
    Generator ScalarType Tensor int DimVector float str bool Layout Device DeviceIndex Scalar MemoryFormat QScheme Storage
    Stream SymInt SymBool GraphModule
"""
_SCALAR_TYPES = """
    Byte Char Short Int Long Half Float Double ComplexHalf ComplexFloat ComplexDouble Bool BFloat16 Float8_e5m2
    Float8_e5m2fnuz Float8_e4m3fn Float8_e4m3fnuz Float8_e8m0fnu
"""
_DTYPE_CLASSES = "Integral Floating Complex All AllAndComplex FloatingAndComplex"
_UFUNC_KEYS = "CUDAFunctor CUDAFunctorOnOther CUDAFunctorOnSelf CPUScalar CPUVector ScalarOnly Generic"

_MARKS = ("_foreach", "_like", "nondeterministic_seeded", "pytorch/issues/145522")
"""What stands in ``model.py`` since it checks this; see :attr:`Vocabulary.checks`."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Vocabulary(msgspec.Struct, frozen=True):
    """The words of one version of torchgen.

    ``dispatch_keys`` are all that it knows, ``supported`` those that stand in a native_functions.yaml, ``structured`` those
    of them that a structured kernel generates for the operators that delegate to it, ``ufunc`` those that an inner loop
    does. ``fields`` are those of an entry, ``types`` the base types, ``dtype_classes`` the names of sets of
    ``scalar_types``. ``checks`` are words of the checks that not every version makes.
    """

    dispatch_keys: frozenset[str]
    supported: frozenset[str]
    structured: frozenset[str]
    ufunc: frozenset[str]
    ufunc_keys: frozenset[str]
    fields: frozenset[str]
    types: frozenset[str]
    scalar_types: frozenset[str]
    dtype_classes: frozenset[str]
    checks: frozenset[str]
    digest: str = ""

    @property
    def backends(self) -> frozenset[str]:
        """The backends: what each ``Autograd`` key is for."""
        keys = self.dispatch_keys
        return frozenset(key for key in keys if f"Autograd{key}" in keys and key not in ("NestedTensor", "Other"))


TORCH = Vocabulary(
    _words(_OTHER_KEYS)
    | {
        prefix + name
        for prefix in ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd")
        for name in _words(_BACKENDS)
    },
    _words(_SUPPORTED),
    _words("MPS CUDA CPU XPU MTIA"),
    _words("CUDA CPU"),
    _words(_UFUNC_KEYS),
    _words(_FIELDS),
    _words(_TYPES),
    _words(_SCALAR_TYPES),
    _words(_DTYPE_CLASSES),
    frozenset(_MARKS),
)
"""PyTorch 2.13's."""

_NONE = msgspec.structs.replace(TORCH, dispatch_keys=frozenset())

_MODEL = re.compile(r"(.*/|)(?:torchgen|tools/codegen)/model\.py")


def vocabularies(project: Project) -> Mapping[str, Vocabulary]:
    """The vocabulary of each ``model.py`` of torchgen in the workspace, by the folder that torchgen lies in."""
    paths = [path for path in project.workspace.files if path.endswith("/model.py")]
    found = {match[0]: match[1] for path in paths if (match := _MODEL.fullmatch(path)) is not None}
    read = project.readings(_READING, found)
    return {found[path]: vocabulary for path, vocabulary in read.items() if vocabulary.dispatch_keys}


def home_of(path: str, known: Mapping[str, Vocabulary]) -> str | None:
    """The folder of the torchgen that the file at ``path`` is written for: the nearest above it, or the only one."""
    above = [folder for folder in known if path.startswith(folder)]
    if above:
        return max(above, key=len)
    return next(iter(known)) if len(known) == 1 else None


def vocabulary_of(path: str, known: Mapping[str, Vocabulary]) -> Vocabulary:
    """The vocabulary that the file at ``path`` is written for."""
    home = home_of(path, known)
    return known[home] if home is not None else TORCH


_CLASS = re.compile(r"^class (\w+)\(Enum\):[^\n]*\n((?:[ \t]+[^\n]*\n|[ \t]*\n|#[^\n]*\n)*)", re.MULTILINE)
_MEMBER = re.compile(r"^    (\w+) = ", re.MULTILINE)
_SET = r"^{name} = [\[{{]([^\]}}]*)[\]}}]"
_POPPED = re.compile(r"\be\.pop\(\s*[\"'](\w+)[\"']")
_KEY = re.compile(r"\bDispatchKey\.(\w+)")
_COMMENT = re.compile(r"#[^\n]*")


def read_vocabulary(text: str) -> Vocabulary:
    """What a ``model.py`` lists; what it does not list so is 2.13's. Without the enum ``DispatchKey`` it is none, and empty."""
    enums = {name: frozenset(_MEMBER.findall(body)) for name, body in _CLASS.findall(text)}
    keys = enums.get("DispatchKey", frozenset())
    if not keys:
        return _NONE
    fields = frozenset(_POPPED.findall(text)) - {"__line__"}
    return Vocabulary(
        keys,
        _listed(text, "dispatch_keys") or TORCH.supported & keys,
        _listed(text, "STRUCTURED_DISPATCH_KEYS") or TORCH.structured & keys,
        _listed(text, "UFUNC_DISPATCH_KEYS") or TORCH.ufunc & keys,
        enums.get("UfuncKey", TORCH.ufunc_keys),
        fields if "func" in fields else TORCH.fields,
        enums.get("BaseTy", TORCH.types),
        enums.get("ScalarType", TORCH.scalar_types),
        TORCH.dtype_classes,
        frozenset(mark for mark in _MARKS if mark in text),
        content_digest(text.encode("utf-8", "surrogatepass")),
    )


def _listed(text: str, name: str) -> frozenset[str]:
    found = re.search(_SET.format(name=name), text, re.MULTILINE)
    return frozenset(_KEY.findall(_COMMENT.sub("", found[1]))) if found is not None else frozenset()


_READING = Reading("aten-vocabulary", read_vocabulary, Vocabulary)


def nearest(name: str, names: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The one of ``names`` that was probably meant by ``name``, whatever the case; None where none is close."""
    folded = {other.lower(): other for other in sorted(names, reverse=True) if other != name}
    found = difflib.get_close_matches(name[:100].lower(), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None


def slip(name: str, names: Iterable[str]) -> str | None:
    """The only one of ``names`` that ``name`` is but for a slip: the case, or a letter that is missing, added or swapped."""
    found = [other for other in names if _is_slip(name.lower(), other.lower())]
    return found[0] if len(found) == 1 else None


def _is_slip(name: str, other: str) -> bool:
    if abs(len(name) - len(other)) > 1:
        return False
    pairs = enumerate(zip(name, other, strict=False))
    same = next((at for at, (left, right) in pairs if left != right), min(len(name), len(other)))
    rest, meant = name[same:], other[same:]
    swapped = rest[1::-1] + rest[2:]
    return rest == meant or rest[1:] == meant or rest == meant[1:] or (len(rest) > 1 and swapped == meant)


def hint(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown ``name``: what was probably meant."""
    near = nearest(name, names)
    return f"; did you mean `{near}`?" if near is not None else ""


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names in a message: ```a`, `b` and `c```."""
    quoted = [f"`{name}`" for name in names]
    return " ".join(filter(None, (", ".join(quoted[:-1]), word if quoted[1:] else "", *quoted[-1:])))
