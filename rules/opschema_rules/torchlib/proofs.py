"""The oracles that prove this pack's fixes, a sentence each; the tests say how (``tests/proofs``)."""

CALLS = (
    "torch imports the module, calls each kernel with each argument set to other values and compares with a call of its function by"
    " name, runs the same calls under FakeTensorMode and vmap, and runs the schema test of opcheck"
)
REGISTRATION = "torch imports the module, or parses the schema, and calls what is registered with each argument set to other values"
