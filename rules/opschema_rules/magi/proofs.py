"""The oracles that prove this pack's fixes and migrations, one sentence each; ``tests/proofs`` runs them."""

CALLS = (
    "MagiCompiler's own decorator, at commit e68e0b0 and at the one before, registers the ops, and torch calls each with"
    " different values for every argument, field and member, under FakeTensorMode and with gradients; the results are compared with"
    " those of the plain function"
)
PROGRAMS = (
    "programs that call the ops compute the same values before and after; MagiCompiler's own decorator, at commit e68e0b0,"
    " rejects the ops before and accepts them after"
)
FAKES = "under MagiCompiler's own decorator, at commit e68e0b0, the outputs under FakeTensorMode match those of the real call"
