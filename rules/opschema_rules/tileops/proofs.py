"""Proofs of this pack's fixes and migrations; `tests/proofs/tileops_oracle.py` runs them."""

ROWS = "PyYAML loads the manifest, and torch runs the op on every workload row, with its defaults and without"

VALIDATOR = "TileOPs' own `validate_manifest.py` checks the manifest against the op, and torch runs the op on every workload row"

HARNESS = "`opschema verify` runs the ops of the fixture `tilekit` before and after, bit by bit and against float64"
