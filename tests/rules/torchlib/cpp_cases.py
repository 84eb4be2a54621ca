"""C++ registrations of every kind, right and wrong, for the comparison of opschema with torch.

Each case is the text of one file. ``NS`` is a namespace of its own. ``call`` is an expression that calls the operator. A kernel's
body throws ``reached``, so that a call which comes so far is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Case(msgspec.Struct, frozen=True):
    """One file with registrations, and a call of what they register."""

    name: str
    code: str
    call: str = ""


X = "const at::Tensor&"
ONE = "torch.ones(2)"


def kernel(name: str, schema: str, returns: str, parameters: str, call: str = "") -> Case:
    """An operator with one kernel for the CPU."""
    return Case(
        name,
        f"""\
static {returns} f({parameters}) {{ throw std::runtime_error("reached"); }}
TORCH_LIBRARY(NS, m) {{ m.def("f{schema}"); }}
TORCH_LIBRARY_IMPL(NS, CPU, m) {{ m.impl("f", TORCH_FN(f)); }}
""",
        f"torch.ops.NS.f({call})" if call else "",
    )


def defined(name: str, definition: str, code: str = "", call: str = "") -> Case:
    """A library with one line in it, behind some code."""
    return Case(name, f"{code}\nTORCH_LIBRARY(NS, m) {{ {definition} }}\n", f"torch.ops.NS.f({call})" if call else "")


def aten(name: str, operator: str, returns: str, parameters: str, key: str = "PrivateUse1") -> Case:
    """A kernel for an operator of torch."""
    return Case(
        name,
        f"""\
static {returns} f({parameters}) {{ throw std::runtime_error("reached"); }}
TORCH_LIBRARY_IMPL(aten, {key}, m) {{ m.impl("{operator}", TORCH_FN(f)); }}
""",
    )


def stable(name: str, schema: str, returns: str, parameters: str, call: str) -> Case:
    """An operator of the stable ABI."""
    return Case(
        name,
        f"""\
static {returns} f({parameters}) {{ throw std::runtime_error("reached"); }}
STABLE_TORCH_LIBRARY(NS, m) {{ m.def("f{schema}"); }}
STABLE_TORCH_LIBRARY_IMPL(NS, CPU, m) {{ m.impl("f", TORCH_BOX(&f)); }}
""",
        f"torch.ops.NS.f({call})",
    )


F = f'static at::Tensor f({X} x, int64_t n) {{ throw std::runtime_error("reached"); }}\n'
G = 'static at::Tensor g(at::Tensor x, int64_t n) { throw std::runtime_error("reached"); }\n'
DEF = 'm.def("f(Tensor x, int n) -> Tensor");'

_KERNELS = (
    ("tensor", "(Tensor x) -> Tensor", "at::Tensor", X, ONE),
    ("tensor by value", "(Tensor x) -> Tensor", "at::Tensor", "at::Tensor", ONE),
    ("count of arguments, one less", "(Tensor x, int n) -> Tensor", "at::Tensor", X, ""),
    ("count of arguments, one more", "(Tensor x) -> Tensor", "at::Tensor", f"{X}, int64_t", ""),
    ("integer for float", "(Tensor x, float a) -> Tensor", "at::Tensor", f"{X}, int64_t", ""),
    ("float for integer", "(Tensor x, int a) -> Tensor", "at::Tensor", f"{X}, double", ""),
    ("arguments in another order", "(Tensor x, float a, int b) -> Tensor", "at::Tensor", f"{X}, int64_t, double", ""),
    ("arguments of one type in another order", "(int a, int b) -> int", "int64_t", "int64_t b, int64_t a", ""),
    ("integers by const reference", "(Tensor x, int a) -> Tensor", "at::Tensor", f"{X}, const int64_t&", f"{ONE}, 1"),
    ("optional integer", "(Tensor x, int? a=None) -> Tensor", "at::Tensor", f"{X}, std::optional<int64_t>", ONE),
    ("optional where it is none", "(Tensor x, int a) -> Tensor", "at::Tensor", f"{X}, std::optional<int64_t>", ""),
    ("no optional where it is one", "(Tensor x, float? a) -> Tensor", "at::Tensor", f"{X}, double", ""),
    ("optional tensor", "(Tensor? x) -> Tensor", "at::Tensor", "const std::optional<at::Tensor>&", ""),
    ("tensor for optional tensor", "(Tensor x, Tensor? y) -> Tensor", "at::Tensor", f"{X}, {X}", ""),
    ("symbolic integer as integer", "(Tensor x, SymInt n) -> Tensor", "at::Tensor", f"{X}, int64_t", f"{ONE}, 1"),
    ("symbolic integer", "(Tensor x, SymInt n) -> Tensor", "at::Tensor", f"{X}, c10::SymInt", f"{ONE}, 1"),
    ("symbolic integer for an integer", "(Tensor x, int n) -> Tensor", "at::Tensor", f"{X}, c10::SymInt", ""),
    ("one of two symbolic integers", "(SymInt n, SymInt m) -> ()", "void", "c10::SymInt, int64_t", ""),
    ("both symbolic integers", "(SymInt n, SymInt[] m) -> ()", "void", "c10::SymInt, c10::SymIntArrayRef", ""),
    ("symbolic sizes as integers", "(Tensor x, SymInt[] n) -> Tensor", "at::Tensor", f"{X}, at::IntArrayRef", f"{ONE}, [1]"),
    ("symbolic integer by reference", "(SymInt n) -> ()", "void", "const c10::SymInt&", ""),
    ("list of integers", "(Tensor x, int[] n) -> Tensor", "at::Tensor", f"{X}, at::IntArrayRef", f"{ONE}, [1]"),
    ("list of a size", "(Tensor x, int[2] n) -> Tensor", "at::Tensor", f"{X}, std::array<int64_t, 2>", f"{ONE}, [1, 2]"),
    ("vector of integers", "(Tensor x, int[] n) -> Tensor", "at::Tensor", f"{X}, std::vector<int64_t>", f"{ONE}, [1]"),
    ("integer for a list", "(Tensor x, int[] n) -> Tensor", "at::Tensor", f"{X}, int64_t", ""),
    ("list of floats for integers", "(int[] n) -> ()", "void", "at::ArrayRef<double>", ""),
    ("optional list", "(int[]? n=None) -> ()", "void", "at::OptionalIntArrayRef", ""),
    ("optional list as optional", "(int[]? n=None) -> ()", "void", "std::optional<at::IntArrayRef>", ""),
    ("list of tensors", "(Tensor[] x) -> Tensor", "at::Tensor", "at::TensorList", f"[{ONE}]"),
    ("vector of tensors", "(Tensor[] x) -> Tensor", "at::Tensor", "const std::vector<at::Tensor>&", f"[{ONE}]"),
    ("tensor for a list of tensors", "(Tensor[] x) -> Tensor", "at::Tensor", X, ""),
    ("list of optional tensors", "(Tensor?[] x) -> Tensor", "at::Tensor",
     "const c10::List<std::optional<at::Tensor>>&", f"[{ONE}]"),
    ("tensors for optional tensors", "(Tensor?[] x) -> Tensor", "at::Tensor", "at::TensorList", ""),
    ("text", "(Tensor x, str s) -> Tensor", "at::Tensor", f"{X}, c10::string_view", f"{ONE}, 'a'"),
    ("text as a string", "(Tensor x, str s) -> Tensor", "at::Tensor", f"{X}, std::string", f"{ONE}, 'a'"),
    ("text as characters", "(str s) -> ()", "void", "const char*", ""),
    ("integer for text", "(str s) -> ()", "void", "int64_t", ""),
    ("list of texts", "(str[] s) -> ()", "void", "std::vector<std::string>", ""),
    ("scalar", "(Tensor x, Scalar a) -> Tensor", "at::Tensor", f"{X}, const at::Scalar&", f"{ONE}, 1"),
    ("float for a scalar", "(Tensor x, Scalar a) -> Tensor", "at::Tensor", f"{X}, double", ""),
    ("dtype", "(Tensor x, ScalarType d) -> Tensor", "at::Tensor", f"{X}, at::ScalarType", f"{ONE}, torch.float"),
    ("integer for a dtype", "(Tensor x, ScalarType d) -> Tensor", "at::Tensor", f"{X}, int64_t", ""),
    ("device", "(Tensor x, Device? d=None) -> Tensor", "at::Tensor", f"{X}, std::optional<at::Device>", ONE),
    ("text for a device", "(Tensor x, Device d) -> Tensor", "at::Tensor", f"{X}, std::string", ""),
    ("generator", "(Tensor x, Generator? g=None) -> Tensor", "at::Tensor", f"{X}, std::optional<at::Generator>", ONE),
    ("boolean", "(Tensor x, bool b=False) -> Tensor", "at::Tensor", f"{X}, bool", ONE),
    ("integer for a boolean", "(Tensor x, bool b) -> Tensor", "at::Tensor", f"{X}, int64_t", ""),
    ("booleans of a size", "(bool[3] b) -> ()", "void", "std::array<bool, 3>", ""),
    ("32 bits of float", "(Tensor x, float a) -> Tensor", "at::Tensor", f"{X}, float", ""),
    ("32 bits of integer", "(Tensor x, int a) -> Tensor", "at::Tensor", f"{X}, int", ""),
    ("optional of 32 bits", "(Tensor x, float? a) -> Tensor", "at::Tensor", f"{X}, std::optional<float>", ""),
    ("size_t", "(Tensor x, int a) -> Tensor", "at::Tensor", f"{X}, size_t", ""),
    ("returned 32 bits", "(Tensor x) -> int", "int32_t", X, ""),
    ("keyword-only arguments", "(Tensor x, *, int n=1) -> Tensor", "at::Tensor", f"{X}, int64_t", ONE),
    ("written argument as a reference", "(Tensor(a!) x) -> ()", "void", "at::Tensor&", ONE),
    ("written argument as a const reference", "(Tensor(a!) x) -> ()", "void", X, ONE),
    ("reference of an argument that is not written", "(Tensor x) -> ()", "void", "at::Tensor&", ONE),
    ("returned reference", "(Tensor(a!) x) -> Tensor(a!)", "at::Tensor&", "at::Tensor&", ONE),
    ("returned value of a written argument", "(Tensor(a!) x) -> Tensor(a!)", "at::Tensor", "at::Tensor&", ONE),
    ("out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "at::Tensor&", f"{X}, at::Tensor&", f"{ONE}, out={ONE}"),
    ("out in front", "(Tensor x, int n, *, Tensor(a!) out) -> Tensor(a!)", "at::Tensor&", f"at::Tensor&, {X}, int64_t", ""),
    ("nothing returned", "(Tensor x) -> ()", "void", X, ONE),
    ("a tensor returned for nothing", "(Tensor x) -> ()", "at::Tensor", X, ""),
    ("nothing returned for a tensor", "(Tensor x) -> Tensor", "void", X, ""),
    ("two tensors", "(Tensor x) -> (Tensor, Tensor)", "std::tuple<at::Tensor, at::Tensor>", X, ONE),
    ("three tensors for two", "(Tensor x) -> (Tensor, Tensor)", "std::tuple<at::Tensor, at::Tensor, at::Tensor>", X, ""),
    ("a vector for two tensors", "(Tensor x) -> (Tensor, Tensor)", "std::vector<at::Tensor>", X, ""),
    ("a tensor for a list", "(Tensor x) -> Tensor[]", "at::Tensor", X, ""),
    ("a list of tensors returned", "(Tensor x) -> Tensor[]", "std::vector<at::Tensor>", X, ONE),
    ("an integer returned", "(Tensor x) -> int", "int64_t", X, ONE),
    ("a float returned for an integer", "(Tensor x) -> int", "double", X, ""),
    ("a symbolic integer returned as an integer", "(Tensor x) -> SymInt", "int64_t", X, ""),
    ("a boolean returned", "(Tensor x) -> bool", "bool", X, ONE),
    ("a tensor and an integer", "(Tensor x) -> (Tensor, int)", "std::tuple<at::Tensor, int64_t>", X, ONE),
    ("the other way around", "(Tensor x) -> (Tensor, int)", "std::tuple<int64_t, at::Tensor>", X, ""),
    ("a tuple of one", "(Tensor x) -> Tensor", "std::tuple<at::Tensor>", X, ONE),
    ("a key set first", "(Tensor x) -> Tensor", "at::Tensor", f"c10::DispatchKeySet, {X}", ONE),
    ("a dictionary", "(Dict(str, Tensor) d) -> ()", "void", "c10::Dict<std::string, at::Tensor>", ""),
    ("an optional tensor returned", "(Tensor x) -> Tensor?", "std::optional<at::Tensor>", X, ONE),
)  # fmt: skip

_ATEN = (
    ("add", "add.Tensor", "at::Tensor", f"{X}, {X}, const at::Scalar&"),
    ("add by value", "add.Tensor", "at::Tensor", "at::Tensor, at::Tensor, const at::Scalar&"),
    ("add without alpha", "add.Tensor", "at::Tensor", f"{X}, {X}"),
    ("add with a number", "add.Tensor", "at::Tensor", f"{X}, {X}, double"),
    ("add with a scalar by value", "add.Tensor", "at::Tensor", f"{X}, {X}, at::Scalar"),
    ("add without overload", "add", "at::Tensor", f"{X}, {X}, const at::Scalar&"),
    ("add with another overload", "add.Tensr", "at::Tensor", f"{X}, {X}, const at::Scalar&"),
    ("an unknown operator", "ad.Tensor", "at::Tensor", f"{X}, {X}, const at::Scalar&"),
    ("add_", "add_.Tensor", "at::Tensor&", f"at::Tensor&, {X}, const at::Scalar&"),
    ("add_ of a const reference", "add_.Tensor", "at::Tensor&", f"{X}, {X}, const at::Scalar&"),
    ("add_ that returns a value", "add_.Tensor", "at::Tensor", f"at::Tensor&, {X}, const at::Scalar&"),
    ("add.out", "add.out", "at::Tensor&", f"{X}, {X}, const at::Scalar&, at::Tensor&"),
    ("add.out with out first", "add.out", "at::Tensor&", f"at::Tensor&, {X}, {X}, const at::Scalar&"),
    ("empty", "empty.memory_format", "at::Tensor", "at::IntArrayRef, std::optional<at::ScalarType>, std::optional<at::Layout>,"
     " std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>"),
    ("symbolic empty", "empty.memory_format", "at::Tensor", "c10::SymIntArrayRef, std::optional<at::ScalarType>,"
     " std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>"),
    ("empty with options", "empty.memory_format", "at::Tensor", "at::IntArrayRef, std::optional<at::MemoryFormat>"),
    ("as_strided", "as_strided", "at::Tensor", f"{X}, c10::SymIntArrayRef, c10::SymIntArrayRef, std::optional<c10::SymInt>"),
    ("half of as_strided", "as_strided", "at::Tensor", f"{X}, c10::SymIntArrayRef, at::IntArrayRef, std::optional<c10::SymInt>"),
    ("resize_", "resize_", f"{X}", f"{X}, c10::SymIntArrayRef, std::optional<at::MemoryFormat>"),
    ("resize_ of a tensor", "resize_", "at::Tensor&", "at::Tensor&, c10::SymIntArrayRef, std::optional<at::MemoryFormat>"),
    ("clamp", "clamp", "at::Tensor", f"{X}, const std::optional<at::Scalar>&, const std::optional<at::Scalar>&"),
    ("clamp by value", "clamp", "at::Tensor", f"{X}, std::optional<at::Scalar>, std::optional<at::Scalar>"),
    ("topk", "topk", "std::tuple<at::Tensor, at::Tensor>", f"{X}, int64_t, int64_t, bool, bool"),
    ("topk of one tensor", "topk", "at::Tensor", f"{X}, int64_t, int64_t, bool, bool"),
    ("_local_scalar_dense", "_local_scalar_dense", "at::Scalar", X),
)  # fmt: skip

_STABLE = (
    ("stable", "(Tensor x) -> Tensor", "torch::stable::Tensor", "torch::stable::Tensor", ONE),
    ("stable, one argument less", "(Tensor x, int n) -> Tensor", "torch::stable::Tensor", "torch::stable::Tensor", f"{ONE}, 1"),
    ("stable, nothing returned", "(Tensor x) -> Tensor", "void", "torch::stable::Tensor", ONE),
    ("stable, two for one", "(Tensor x) -> Tensor", "std::tuple<torch::stable::Tensor, torch::stable::Tensor>",
     "torch::stable::Tensor", ONE),
    ("stable, numbers", "(Tensor x, int n, float a, bool b) -> Tensor", "torch::stable::Tensor",
     "torch::stable::Tensor, int64_t, double, bool", f"{ONE}, 1, 1.0, True"),
)  # fmt: skip


def cases() -> Iterator[Case]:
    """All cases."""
    yield from (kernel(*item) for item in _KERNELS)
    yield from (aten(f"aten: {item[0]}", *item[1:]) for item in _ATEN)
    yield from (stable(*item) for item in _STABLE)
    yield from _forms()
    yield from _blocks()


def _forms() -> Iterator[Case]:
    """Ways to give a function."""
    lambda_ = f'[]({X} x, int64_t n) -> at::Tensor {{ throw std::runtime_error("reached"); }}'
    call = f"{ONE}, 1"
    yield defined("a function", 'm.def("f(Tensor x, int n) -> Tensor", &f);', F, call)
    yield defined("a function of another type", 'm.def("f(Tensor x, float n) -> Tensor", &f);', F)
    yield defined("a lambda", f'm.def("f(Tensor x, int n) -> Tensor", {lambda_});', "", call)
    yield defined("a lambda of another type", f'm.def("f(Tensor x) -> Tensor", {lambda_});')
    yield defined("no schema", 'm.def("f", &f);', F, call)
    yield defined("no schema, called with too few", 'm.def("f", f);', F)
    yield defined("CppFunction", f'{DEF} m.impl("f", torch::CppFunction::makeFromUnboxedFunction(f));', F, call)
    yield defined("CppFunction of another type", 'm.def("f(Tensor x) -> Tensor", torch::CppFunction(f));', F)
    yield defined("a device", f'{DEF} m.impl("f", c10::kCPU, &f);', F, call)
    yield defined("a device with another type", 'm.def("f(Tensor x) -> Tensor"); m.impl("f", c10::kCPU, &f);', F)
    yield defined("a dispatch key", f'{DEF} m.impl("f", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(f)));', F, call)
    yield defined("a cast", f'{DEF} m.impl("f", static_cast<at::Tensor (*)(at::Tensor, int64_t)>(&g));', G, call)
    cast = 'm.impl("f", static_cast<at::Tensor (*)(at::Tensor)>(&g));'
    yield defined("a cast to another type", f"{DEF} {cast}", "static at::Tensor g(at::Tensor x) { return x; }")
    overloads = G + "static at::Tensor g(at::Tensor x) { return x; }"
    yield defined("an overload that is chosen wrongly", f"{DEF} {cast}", overloads)
    around = f"namespace kit {{ {F} }}"
    yield defined("a namespace", f'{DEF} m.impl("f", &kit::f);', around, call)
    template = "template <class T> static at::Tensor t(at::Tensor x, T n) { return x; }"
    yield defined("a template", f'{DEF} m.impl("f", &t<int64_t>);', template, call)
    yield defined("a template of another type", f'{DEF} m.impl("f", &t<double>);', template)
    alias = "using Number = double;\nstatic at::Tensor h(at::Tensor x, Number n) { return x; }"
    yield defined("an alias", 'm.def("f(Tensor x, float n) -> Tensor", &h);', alias, f"{ONE}, 1.0")
    yield defined("an alias of another type", f'{DEF} m.impl("f", &h);', alias)
    macro = "#define REGISTER(name) m.impl(#name, &name)\n"
    yield defined("a macro", f"{DEF} REGISTER(f);", macro + F, call)
    yield defined("a macro with another type", 'm.def("f(Tensor x) -> Tensor"); REGISTER(f);', macro + F)
    boxed = "static void boxed(const c10::OperatorHandle&, torch::jit::Stack*) {}"
    yield defined("a boxed function", f'{DEF} m.impl("f", torch::CppFunction::makeFromBoxedFunction<&boxed>());', boxed)
    conditional = f"#ifdef NEVER\nstatic at::Tensor f({X} x, int64_t n);\n#else\n{F}#endif"
    yield defined("two builds", f'{DEF} m.impl("f", &f);', conditional, call)


def _blocks() -> Iterator[Case]:
    """Blocks, keys and namespaces around kernels."""
    impl = 'TORCH_LIBRARY_IMPL(NS, CPU, m) { m.impl("f", &f); }\n'
    library = f"TORCH_LIBRARY(NS, m) {{ {DEF} }}\n"
    cuda = "TORCH_LIBRARY_IMPL(NS, CUDA, m) "
    yield Case("two kernels", f'{F}{library}{impl}{cuda}{{ m.impl("f", &f); }}\n')
    yield Case("kernels that differ", f'{F}{G}{library}{impl}{cuda}{{ m.impl("f", &g); }}\n')
    symint = f'static at::Tensor s({X} x, c10::SymInt n) {{ throw std::runtime_error("reached"); }}\n'
    symbolic = 'TORCH_LIBRARY(NS, m) { m.def("f(Tensor x, SymInt n) -> Tensor"); }\n'
    yield Case("a symbolic kernel beside one of integers", f'{F}{symint}{symbolic}{impl}{cuda}{{ m.impl("f", &s); }}\n')
    yield Case("a fallthrough", f'{library}{cuda}{{ m.impl("f", torch::CppFunction::makeFallthrough()); }}\n')
    yield Case("a kernel twice", f'{F}{library}{impl}TORCH_LIBRARY_IMPL(NS, CPU, m) {{ m.impl("f", &f); }}\n')
    yield Case("a fragment", f"{F}TORCH_LIBRARY_FRAGMENT(NS, m) {{ {DEF} }}\n{impl}")
    yield Case("kernels first", f"{F}{impl}{library}")
    yield Case("another namespace", 'TORCH_LIBRARY(NS, m) { m.def("other::f(Tensor x) -> Tensor"); }\n')
    yield Case("a kernel for another namespace", f'{F}TORCH_LIBRARY_IMPL(NS, CPU, m) {{ m.impl("other::f", &f); }}\n')
    yield Case("a definition among kernels", f"TORCH_LIBRARY_IMPL(NS, CPU, m) {{ {DEF} }}\n")
    yield Case("an unknown key", f'{F}{library}TORCH_LIBRARY_IMPL(NS, Cpu, m) {{ m.impl("f", &f); }}\n')
    yield Case("a key of another case", f'{F}TORCH_LIBRARY_IMPL(NS, AutoGrad, m) {{ m.impl("f", &f); }}\n')
    yield Case("an operator twice", f"TORCH_LIBRARY(NS, m) {{ {DEF} {DEF} }}\n")
    yield Case("a library twice", f"{library}TORCH_LIBRARY(NS, m) {{ }}\n")
    yield Case(
        "an operator that is not defined", f'{F}{library}TORCH_LIBRARY_IMPL(NS, CPU, m) {{ m.impl("ff", &f); }}\n'
    )
    autograd = "TORCH_LIBRARY_IMPL(NS, Autograd, m) "
    yield Case(
        "an autograd kernel of another type",
        f'{F}{library}{autograd}{{ m.impl("f", [](at::Tensor x) {{ return x; }}); }}\n',
    )
    fallback = f'{autograd}{{ m.impl("f", torch::autograd::autogradNotImplementedFallback()); }}\n'
    yield Case("a fallback of autograd", f"{F}{library}{impl}{fallback}")
    yield Case(
        "a fallback for all",
        "TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }\n",
    )
    yield Case(
        "overloads", 'TORCH_LIBRARY(NS, m) { m.def("f.a(Tensor x) -> Tensor"); m.def("f.b(Tensor x) -> Tensor"); }\n'
    )
