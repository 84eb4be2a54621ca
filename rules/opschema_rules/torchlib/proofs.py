"""The oracles that prove this pack's fixes, one sentence each; ``tests/proofs`` runs them."""

CALLS = (
    "torch imports the module, calls each kernel with different values for every argument and compares with a call of its"
    " function by name, runs the same calls under FakeTensorMode and vmap, and runs the schema test of opcheck"
)
REGISTRATION = (
    "torch imports the module, or parses the schema, and calls the registered function with varying arguments"
)
