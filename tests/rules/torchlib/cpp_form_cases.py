"""More C++ registrations: lambdas, overloaded functions, the stable ABI, boxed functions, mutability and references."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tests.rules.torchlib.cpp_cases import DEF, ONE, Case, F, X, aten, defined, kernel, stable

REACHED = '{ throw std::runtime_error("reached"); }'
ST = "torch::stable::Tensor"

#: A schema, the head of a lambda, and a call.
_LAMBDAS = (
    ("a number for a tensor", "(Tensor x) -> Tensor", "(int64_t x) -> at::Tensor", ""),
    ("a float for an integer", "(Tensor x, int n) -> Tensor", f"({X} x, double n) -> at::Tensor", ""),
    ("no result", "(Tensor x) -> Tensor", f"({X} x) -> void", ""),
    ("two results for one", "(Tensor x) -> Tensor", f"({X} x) -> std::tuple<at::Tensor, at::Tensor>", ""),
    ("two results", "(Tensor x) -> (Tensor, Tensor)", f"({X} x) -> std::tuple<at::Tensor, at::Tensor>", ONE),
    ("too many arguments", "(Tensor x) -> Tensor", f"({X} x, bool b) -> at::Tensor", ""),
    ("an optional integer", "(Tensor x, int? n=None) -> Tensor", f"({X} x, std::optional<int64_t> n) -> at::Tensor", ONE),
    ("32 bits", "(Tensor x, int n) -> Tensor", f"({X} x, int n) -> at::Tensor", ""),
    ("a text by reference", "(Tensor x, str s) -> Tensor", f"({X} x, const std::string& s) -> at::Tensor", f"{ONE}, 'a'"),
    ("a text for a list of texts", "(str[] s) -> ()", "(const std::string& s) -> void", ""),
    ("tensors by vector", "(Tensor[] x) -> Tensor", "(std::vector<at::Tensor> x) -> at::Tensor", f"[{ONE}]"),
    ("optional tensors as tensors", "(Tensor?[] x) -> Tensor", "(std::vector<at::Tensor> x) -> at::Tensor", ""),
    ("a number for a boolean", "(bool b) -> ()", "(int64_t b) -> void", ""),
    ("a reference to what is written", "(Tensor(a!) x) -> ()", "(at::Tensor& x) -> void", ONE),
    ("unnamed parameters", "(Tensor x, int n) -> Tensor", "(const at::Tensor&, int64_t) -> at::Tensor", f"{ONE}, 1"),
    ("west and east const", "(Tensor x) -> Tensor", "(at::Tensor const& x) -> at::Tensor", ONE),
)  # fmt: skip

_KERNELS = (
    ("two written arguments", "(Tensor(a!) x, Tensor(b!) y) -> ()", "void", "at::Tensor&, at::Tensor&", f"{ONE}, {ONE}"),
    ("a list of written tensors", "(Tensor(a!)[] x) -> ()", "void", "at::TensorList", f"[{ONE}]"),
    ("a written tensor for a list", "(Tensor(a!)[] x) -> ()", "void", "at::Tensor&", ""),
    ("an optional written tensor", "(Tensor(a!)? x) -> ()", "void", "const std::optional<at::Tensor>&", ONE),
    ("an optional written tensor by reference", "(Tensor(a!)? x) -> ()", "void", "std::optional<at::Tensor>&", ""),
    ("an optional written tensor as a tensor", "(Tensor(a!)? x) -> ()", "void", "at::Tensor&", ""),
    ("a moved tensor", "(Tensor x) -> Tensor", "at::Tensor", "at::Tensor&&", ""),
    ("a const value", "(Tensor x, int n) -> Tensor", "at::Tensor", "const at::Tensor, const int64_t", f"{ONE}, 1"),
    ("a const reference returned", "(Tensor(a!) x) -> Tensor(a!)", X, X, ONE),
    ("two references returned", "(Tensor x, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))",
     "std::tuple<at::Tensor&, at::Tensor&>", f"{X}, at::Tensor&, at::Tensor&", f"{ONE}, a={ONE}, b={ONE}"),
    ("one reference for two", "(Tensor x, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))",
     "at::Tensor&", f"{X}, at::Tensor&, at::Tensor&", ""),
    ("a view", "(Tensor(a) x) -> Tensor(a)", "at::Tensor", X, ONE),
    ("a complex number", "(Tensor x, complex c) -> Tensor", "at::Tensor", f"{X}, c10::complex<double>", f"{ONE}, 1j"),
    ("a float for a complex number", "(Tensor x, complex c) -> Tensor", "at::Tensor", f"{X}, double", ""),
    ("a layout", "(Tensor x, Layout l) -> Tensor", "at::Tensor", f"{X}, at::Layout", ""),
    ("an enumeration of its own", "(Tensor x, int e) -> Tensor", "at::Tensor", f"{X}, at::Reduction::Reduction", ""),
    ("a pointer", "(Tensor x, int p) -> Tensor", "at::Tensor", f"{X}, int64_t*", ""),
    ("unsigned 64 bits", "(Tensor x, int p) -> Tensor", "at::Tensor", f"{X}, uint64_t", ""),
    ("a long", "(Tensor x, int p) -> Tensor", "at::Tensor", f"{X}, long", f"{ONE}, 1"),
    ("a long long", "(Tensor x, int p) -> Tensor", "at::Tensor", f"{X}, long long", ""),
    ("a vector of floats", "(float[] p) -> ()", "void", "const std::vector<double>&", ""),
    ("a vector of 32 bits", "(int[] p) -> ()", "void", "const std::vector<int>&", ""),
    ("a vector of 32 bits of float", "(float[] p) -> ()", "void", "std::vector<float>", ""),
    ("a range of 32 bits", "(int[] p) -> ()", "void", "at::ArrayRef<int>", ""),
    ("a vector of size_t", "(int[] p) -> ()", "void", "std::vector<size_t>", ""),
)  # fmt: skip

_STABLE = (
    ("an optional tensor", "(Tensor x, Tensor? y=None) -> Tensor", ST, f"{ST}, std::optional<{ST}>", ONE),
    ("one argument more", "(Tensor x) -> Tensor", ST, f"{ST}, int64_t", ONE),
    ("const references", "(Tensor x, Tensor y) -> Tensor", ST, f"const {ST}&, const {ST}&", f"{ONE}, {ONE}"),
    ("a written tensor", "(Tensor(a!) x) -> ()", "void", f"{ST}&", ONE),
    ("two results", "(Tensor x) -> (Tensor, Tensor)", f"std::tuple<{ST}, {ST}>", ST, ONE),
    ("a vector of tensors", "(Tensor[] x) -> Tensor", ST, f"std::vector<{ST}>", f"[{ONE}]"),
    ("a list of integers", "(Tensor x, int[] n) -> Tensor", ST, f"{ST}, std::vector<int64_t>", f"{ONE}, [1]"),
    ("32 bits", "(Tensor x, int n) -> Tensor", ST, f"{ST}, int32_t", f"{ONE}, 1"),
    ("a text", "(Tensor x, str s) -> Tensor", ST, f"{ST}, std::string", f"{ONE}, 'a'"),
)

_ATEN = (
    ("relu by value", "relu", "at::Tensor", "at::Tensor"),
    ("add_ returns a const reference", "add_.Tensor", X, f"{X}, {X}, const at::Scalar&"),
    ("add.out of a const out", "add.out", "at::Tensor&", f"{X}, {X}, const at::Scalar&, {X}"),
    ("add under an Autograd key", "add.Tensor", "at::Tensor", f"{X}, {X}, const at::Scalar&", "AutogradPrivateUse1"),
    ("topk with integers of 32 bits", "topk", "std::tuple<at::Tensor, at::Tensor>", f"{X}, int, int, bool, bool"),
    ("a key set in front of add", "add.Tensor", "at::Tensor", f"c10::DispatchKeySet, {X}, {X}, const at::Scalar&"),
)

OVERLOADS = f"static at::Tensor o({X} x) {REACHED}\nstatic at::Tensor o({X} x, int64_t n) {REACHED}\n"


def form_cases() -> Iterator[Case]:
    """All of them."""
    for name, schema, head, call in _LAMBDAS:
        yield defined(f"lambda: {name}", f'm.def("f{schema}", []{head} {REACHED});', "", call)
    yield from (kernel(*item) for item in _KERNELS)
    yield from (stable(f"stable: {item[0]}", *item[1:]) for item in _STABLE)
    yield from (aten(f"aten: {item[0]}", *item[1:]) for item in _ATEN)
    wrong = stable("stable: a float for an integer", "(Tensor x, int n) -> Tensor", ST, f"{ST}, double n", f"{ONE}, 1")
    yield replace(
        wrong, code=wrong.code.replace("throw", 'if (n != 1) throw std::runtime_error("another value"); throw', 1)
    )
    yield from _overloaded()
    yield from _boxed()


def _overloaded() -> Iterator[Case]:
    """`TORCH_FN` and `&` of functions that have overloads."""
    call = f"{ONE}, 1"
    yield defined("TORCH_FN of an overloaded function", f'{DEF} m.impl("f", TORCH_FN(o));', OVERLOADS)
    yield defined("the address of an overloaded function", f'{DEF} m.impl("f", &o);', OVERLOADS)
    cast = f"static_cast<at::Tensor (*)({X}, int64_t)>(&o)"
    yield defined("TORCH_FN of a cast overload", f'{DEF} m.impl("f", TORCH_FN(({cast})));', OVERLOADS, call)
    yield defined("a cast overload", f'{DEF} m.impl("f", {cast});', OVERLOADS, call)
    pointer = f"{OVERLOADS}static at::Tensor (*chosen)({X}, int64_t) = &o;\n"
    yield defined("a pointer to an overload", f'{DEF} m.impl("f", chosen);', pointer, call)
    c_cast = f"(at::Tensor (*)({X}))&o"
    yield defined("a cast of C to the wrong overload", f'{DEF} m.impl("f", {c_cast});', OVERLOADS)
    spaces = (
        f"namespace one {{ static at::Tensor p({X} x) {REACHED} }}\nnamespace two {{ {F.replace(' f(', ' p(')} }}\n"
    )
    yield defined("a function of one of two namespaces", f'{DEF} m.impl("f", TORCH_FN(two::p));', spaces, call)
    yield defined("that of the other namespace", f'{DEF} m.impl("f", TORCH_FN(one::p));', spaces)
    struct = f"struct Kit {{ static at::Tensor p({X} x) {REACHED} }};\n"
    yield defined("a static member with another type", f'{DEF} m.impl("f", &Kit::p);', struct)
    default = f"static at::Tensor p({X} x, int64_t n = 1) {REACHED}\n"
    yield defined("defaults of C++", 'm.def("f(Tensor x) -> Tensor"); m.impl("f", &p);', default)
    yield defined("a variable with a lambda", f'{DEF} auto p = []({X} x) {{ return x; }}; m.impl("f", p);')
    yield defined("captures", f'{DEF} int64_t k = 1; m.impl("f", [k]({X} x, int64_t n) {{ return x; }});')


def _boxed() -> Iterator[Case]:
    """Boxed functions and fallbacks."""
    boxed = "static void boxed(const c10::OperatorHandle&, torch::jit::Stack*) {}\n"
    keyed = "static void boxed(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*) {}\n"
    made = "torch::CppFunction::makeFromBoxedFunction<&boxed>()"
    fallback = f"TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {{ m.fallback({made}); }}\n"
    yield Case("a boxed fallback", boxed + fallback)
    yield Case("a boxed fallback with a key set", keyed + fallback)
    yield Case(
        "a fallback of a namespace", f"{boxed}TORCH_LIBRARY_IMPL(NS, PrivateUse1, m) {{ m.fallback({made}); }}\n"
    )
    yield Case("a fallback without a key", f"{boxed}TORCH_LIBRARY(NS, m) {{ m.fallback({made}); }}\n")
    yield Case(
        "a boxed kernel of aten",
        f'{boxed}TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {{ m.impl("add.Tensor", {made}); }}\n',
    )
    unboxed = f"static at::Tensor boxed({X} x) {REACHED}\n"
    yield defined("an unboxed function as a boxed one", f'{DEF} m.impl("f", {made});', unboxed)
    yield Case("a kernel in the library of all", f'{F}TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {{ m.impl("f", &f); }}\n')
    yield Case("a library of all", f"TORCH_LIBRARY(_, m) {{ {DEF} }}\n")
