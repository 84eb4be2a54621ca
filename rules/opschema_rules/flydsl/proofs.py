"""What the fixes and migrations of this pack are tested with; `tests/proofs/flydsl_oracle.py` runs it."""

TRACED = "FlyDSL traces the launchers, without a GPU and up to the linker, and warns of nothing that it did not warn of before"

SAME = "FlyDSL traces the same program before and after"
