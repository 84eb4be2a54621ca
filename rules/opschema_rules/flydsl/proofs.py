"""The proofs of the fixes and migrations of this pack; `tests/proofs/flydsl_oracle.py` runs it."""

TRACED = "FlyDSL traces the launchers, without a GPU and up to the linker, and warns of nothing that it did not warn of before"

SAME = "FlyDSL traces the same program before and after"

BYTES = "FlyDSL lowers the launchers before and after, and in what it makes of both the buffer descriptors have as many bytes"

ROUND = (
    "FlyDSL traces the launchers before and after, and the same program when the extent is back; a stand-in for FlyDSL runs"
    " the modules and records the same launches and byte counts"
)

NOTHING = "it writes nothing, as its tests assert"
