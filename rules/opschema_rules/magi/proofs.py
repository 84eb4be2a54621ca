"""The oracles that prove this pack's fixes and migrations, a sentence each; the tests say how (``tests/proofs``)."""

CALLS = (
    "MagiCompiler's own decorator, at commit e68e0b0 and at the one before, registers the ops, and torch calls each with each"
    " argument, field and member set to other values, under FakeTensorMode and with gradients; what it gives is compared with what"
    " the function itself gives"
)
PROGRAMS = (
    "programs that call the ops give the same values before and after, and MagiCompiler's own decorator, at commit e68e0b0, which"
    " refuses them before, takes them after"
)
FAKES = "under MagiCompiler's own decorator, at commit e68e0b0, the outputs under FakeTensorMode become like those of the real call"
