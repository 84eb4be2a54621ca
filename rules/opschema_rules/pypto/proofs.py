"""Proofs of this pack's fixes and migrations; `tests/proofs/pypto_oracle.py` runs them."""

RECORDED = (
    "Python executes the description, and g++ builds the orchestration with a stand-in for simpler's headers, which records the"
    " tensors of each submitted task; signatures are compared with these"
)

LOADED = (
    "g++ builds the orchestration with a stand-in for simpler's headers, and the linker looks up the function in it, like"
    " the runtime"
)

SAME = "Python executes the description before and after: only the names move, and no name is added or lost"

SPECS = (
    "Python executes the module with stand-ins for PyPTO's language and the golden harness, which compare each parameter's"
    " direction with its spec; nothing is compiled"
)

DESCRIBED = (
    "Python executes `kernel_config.py` and the scene test with stand-ins for simpler's modules, and both describe the same"
    " program, whose orchestration g++ builds and runs with a stand-in for simpler's headers; the golden function is not run"
)
