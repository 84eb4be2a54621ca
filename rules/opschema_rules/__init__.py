"""The packs that ship with opschema: one folder for each kind of op schema repository."""

TORCH_RELEASES = ("2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
"""The releases of torch that the packs know: their operators, torchgen, types and functions that register."""
