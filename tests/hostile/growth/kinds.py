"""All kinds of input."""

from __future__ import annotations

from tests.hostile.growth import other_inputs, python_inputs, yaml_inputs
from tests.hostile.growth.model import Kind

KINDS: dict[str, Kind] = {**yaml_inputs.KINDS, **python_inputs.KINDS, **other_inputs.KINDS}
