"""The demands of the manifest format that not every tree makes, and how a tree shows that it makes one."""

from __future__ import annotations

import re
from functools import cache

import msgspec


class Feature(msgspec.Struct, frozen=True):
    """One gated demand.

    ``words`` is a pattern of how documents and validators state it, in which a space stands for any white space and for
    the seam of a text that goes on in the next line. ``key`` is a path in an entry where ``true`` in a manifest, and never
    ``false``, shows that its tree knows the demand; ``*`` stands for any key. A demand without ``words`` is stricter than
    any specification: it holds where configuration names it, and is not part of ``latest``.
    """

    meaning: str
    words: str
    key: str = ""


_SEAM = r"(?:\s|\"\s*f?\")+"


@cache
def pattern(feature: str) -> re.Pattern[str]:
    """The words by which a tree states ``feature``."""
    return re.compile(FEATURES[feature].words.replace(" ?", r"\s*").replace(" ", _SEAM))


FEATURES: dict[str, Feature] = {
    "key-format": Feature(
        "an entry's key spells its class: a variant word, then the direction, then `Op`",
        r"variant words? (?:must )?precede|variant word stands before|precedes? `?\{?Direction\}?Op|direction sibling",
    ),
    "unknown-keys": Feature(
        "no unknown keys of an entry or signature",
        r"(?<!flag\s)unknown (?:entry|signature) keys",
    ),
    "no-init-dims": Feature(
        "no `signature.init_dims`",
        r"`signature\.init_dims` is deprecated|(?<!flag\s)unknown signature keys",
    ),
    "no-opt-out": Feature(
        "no `parity_opt_out`",
        r"'parity_opt_out' is no longer|removed fields like parity_opt_out",
    ),
    "status": Feature(
        "every entry has a `status`",
        r"`status`\s*\|\s*yes|`status` is required|REQUIRED\w*[^=\n]*=[^=\n]*[({\[][^)}\]]*[\"']status[\"']",
    ),
    "ref-api": Feature(
        "every entry has a `ref_api`",
        r"\bref_api\b",
    ),
    "named-tensors": Feature(
        "inputs, outputs and params are mappings by name",
        r"signature\.\{direction\} must be a dict|[Tt]ensor name (?:→|to) |[Oo]rdered dicts?\b",
    ),
    "roofline-modes": Feature(
        "a roofline has `func`, or `flops` and `bytes`, not both",
        r"[Mm]ode exclusivity|modes are exclusive|roofline must be either",
    ),
    "kernel-map-required": Feature(
        "without `source.kernel_map`, an implemented entry fails",
        r"kernel_map is missing[\s\"f]*\(must be",
    ),
    "param-type": Feature(
        "a param's `type` is a Python type expression",
        r"is not a type expression|is a Python type expression",
    ),
    "optional-trailing": Feature(
        "optional inputs come last",
        r"Optional inputs are the trailing inputs|inputs come last",
    ),
    "fullgraph": Feature(
        "`torch_compile_fullgraph` is `true`, on an implemented entry, or left out",
        r"torch_compile_fullgraph",
    ),
    "shape-alternatives": Feature(
        "a shape lists no alternatives",
        r"lists alternatives|no `?\\?\|`? alternatives|One declaration: no ellipsis",
    ),
    "output-shape": Feature(
        "every output's shape is declared or follows from a rule",
        r"must declare '?shape'? or|Every output tensor's shape must be fully specified",
    ),
    "null-default": Feature(
        "`default: null` stands where the type admits None",
        r"does not\W+admit None|may not carry `default: null`|admits? `?None`?",
    ),
    "optional": Feature(
        "`optional: true` marks an input that a call may leave out",
        r"optional`?: `?true",
    ),
    "mutated": Feature(
        "`mutated: true` marks an input that the op writes",
        r"mutated`?: `?true",
        key="signature.inputs.*.mutated",
    ),
    "two-workloads": Feature(
        "an implemented entry has at least two rows",
        r"at least (?:2|two) (?:workloads?|rows)",
    ),
    "required-params": Feature(
        "every row sets the params without a default",
        r"missing required param|[Pp]arams? without (?:a )?`?default`? (?:is|are|must be) (?:set|given|pinned)|all_required_params",
    ),
    "label-dtype": Feature(
        "a row's label names no dtype",
        r"label\b[^.]{0,80}\b(?:names?|repeats?)\b[^.]{0,40}\bdtype|MUST NOT name a dtype",
    ),
    "workload-keys": Feature(
        "a row's shape keys are its inputs' names with `_shape`",
        r"Workload keys derive|shape key is derived|workloads?\[\{?\w+\}?\] has unknown",
    ),
    "roofline-strings": Feature(
        "`flops` and `bytes` are text",
        r"must be a non-empty string|non-empty strings",
    ),
    "kernel-map": Feature(
        "an implemented entry has `source.kernel_map`",
        r"kernel_map is missing|Required when `status: implemented`",
    ),
    "bench-declared": Feature(
        "an implemented entry has `source.bench_manifest_driven`",
        r"bench_manifest_driven must be declared|Required `true` when `status: implemented`",
    ),
    "bench-workloads": Feature(
        "a benchmark takes its rows from `load_workloads()`",
        r"\bload_workloads\b",
    ),
    "kernel-map-argument": Feature(
        "every constructor takes `kernel_map`",
        r"S12\b(?<!\wS12)|does not take `?kernel_map",
    ),
    "dispatch-call": Feature(
        "every constructor calls `dispatch_kernel()`",
        r"S13\b(?<!\wS13)",
    ),
    "dispatch-in-init": Feature(
        "a constructor calls `dispatch_kernel()` itself or by `super().__init__()`, not in another method",
        "",
    ),
    "infer-shapes": Feature(
        "`_infer_output_shapes()` takes and returns what the entry declares",
        r"_infer_output_shapes",
    ),
    "validate-dtypes": Feature(
        "`_validate_dtypes()` takes the entry's inputs",
        r"_validate_dtypes",
    ),
    "empty-inputs": Feature(
        "an op without tensors declares `inputs: {}` and a param",
        r"inputs: ?\{\}|at least one input tensor or one param|or one param",
    ),
    "optional-none": Feature(
        "a param's annotation admits None where its type does",
        r"admits? None but|None is admitted|whether\W+`None` is admitted",
    ),
    "kw-only": Feature(
        "`kw_only: true` marks the params that are passed by name alone",
        r"kw_only",
        key="signature.params.*.kw_only",
    ),
    "ctor-default": Feature(
        "a constructor's default is the entry's",
        r"has manifest default|omits `default` MUST|default mismatch|[Dd]efaults? (?:must )?(?:equals?|match|agree)",
    ),
    "static-dims": Feature(
        "the constructor takes what `static_dims` names",
        r"static_dims",
    ),
    "rule-helpers": Feature(
        "shape rules call the helpers of the validator alone",
        r"calls unknown",
    ),
    "no-ellipsis": Feature(
        "a shape has no ellipsis",
        r"[Nn]o ellipsis",
    ),
    "no-shape-alias": Feature(
        "a shape names dimensions, not another tensor's shape",
        r"No shape aliasing",
    ),
    "roofline-names": Feature(
        "formulas use the names that are bound for them",
        r"Codegen knows how to bind the following names",
    ),
}
"""Every gated demand by name."""

LATEST = frozenset(name for name, feature in FEATURES.items() if feature.words)
"""The demands of the newest specification."""
