"""Proofs of the fixes and migrations of this pack; `tests/proofs/flydsl_oracle.py` runs them."""

TRACED = "FlyDSL traces the launchers, without a GPU and up to the linker, with no new warnings"

SAME = "FlyDSL traces the same program before and after"

BYTES = "FlyDSL lowers the launchers before and after, and the buffer descriptors have the same sizes"

ROUND = (
    "FlyDSL traces the launchers before and after, and the same program once the extent is restored; a stand-in for FlyDSL runs"
    " the modules and records the same launches and byte counts"
)

RESTORED = "FlyDSL's own function with a guard inserted is restored to what it was"

NOTHING = "it writes nothing, as its tests assert"
