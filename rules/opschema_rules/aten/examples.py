"""Builds the small workspace that contains a rule's example.

A ``yaml`` fence holds entries that are added to a small native_functions.yaml; a fence with a path after its language is
that entire file, and stands in for the small one if the name is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

NATIVE, TAGS, DERIVATIVES = "native_functions.yaml", "tags.yaml", "derivatives.yaml"

SOUND_TAGS = """\
- tag: core
  desc: |
    An operator of the core set.
- tag: pointwise
  desc: |
    Each element of the output depends on one element of each input.
- tag: nondeterministic_seeded
  desc: |
    Draws from a generator.
- tag: generated
  desc: |
    Written by the code generator.
- tag: inplace_view
  desc: |
    Changes sizes or strides of self.
- tag: view_copy
  desc: |
    Copies what a view would alias.
"""

SOUND_NATIVE = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: add.out
  variants: function, method
  tags: [core, pointwise]

- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  structured_delegate: add.out
  variants: method
  tags: pointwise

- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA: add_out
  tags: pointwise

- func: relu(Tensor self) -> Tensor
  variants: function, method
  dispatch:
    CPU, CUDA: relu
  tags: [core, pointwise]

- func: relu_(Tensor(a!) self) -> Tensor(a!)
  variants: function, method
  dispatch:
    CPU, CUDA: relu_
  autogen: relu.out
  tags: pointwise

- func: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
  variants: method
  dispatch:
    CompositeExplicitAutograd: expand
  tags: core

- func: expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor
  variants: function
  dispatch:
    CompositeExplicitAutogradNonFunctional: expand_copy_symint
  tags: view_copy

- func: square(Tensor self) -> Tensor
  variants: function, method
"""


def example_files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of an example's workspace, by path."""
    files = {TAGS: SOUND_TAGS, NATIVE: SOUND_NATIVE}
    added = ""
    for info, text in fences:
        language, _, path = info.partition(" ")
        if path:
            files[path.strip()] = text
        elif language == "yaml":
            added += f"\n{text}"
    files[NATIVE] += added
    return files
