"""Limits of static evaluation, each with its reason: they bound the work on hostile inputs."""

from __future__ import annotations

MAX_HOPS = 60
"""Maximum nesting of expressions and names to follow; Python's own stack limits it."""

MAX_STEPS = 400_000
"""Maximum number of expressions to evaluate in one tree, counted per frame, and elements to iterate over; this takes four
seconds.
"""

MAX_CALLS = 8
"""Maximum length of a chain of calls, helpers or local variables to follow: longer ones are recursive, or no longer helpers."""

MAX_TYPES = 20
"""Maximum nesting of types and type aliases to follow."""

MAX_FRAMES = 20_000
"""Maximum number of calls to follow in one tree."""

MAX_TURNS = 2_000
"""Maximum number of loop iterations, including those of nested loops, to follow one by one."""

MAX_ALTERNATIVES = 12
"""Maximum number of values of an expression: one with more is unknown."""

MAX_STRINGS = 5_000
"""Maximum number of strings that an expression may have, and of elements of a ``range``."""

MAX_BINDINGS = 200
"""Number of bindings of a name in a scope from which on it is not determined which of them a use sees."""

MAX_CHARACTERS = 200_000
"""Maximum length of a computed string, and of all possible strings of an expression together."""

MAX_PARTS = 2_000
"""Maximum number of elements, including nested ones, of a constant."""

MAX_BASE = 1_000_000
"""Largest base of a power to compute."""

MAX_BITS = 4_096
"""Largest number in computations: repeated products grow without limit."""

MAX_EXPONENT = 64
"""Largest exponent and shift: a power then has up to 400 digits."""

MAX_CALLERS = 3
"""Maximum length of a chain of callers to follow back from a parameter: each has callers of its own."""

MAX_CALLER_FRAMES = 200
"""Maximum number of calls of a function from which to derive its parameters."""

MAX_ANNOTATION = 2_000
"""Maximum length of an annotation, and of a string in one, to parse."""

MAX_FLOW = 12
"""Maximum length of a chain of local variables for data flow to follow."""

MAX_NESTING = 20
"""Maximum nesting of tuples and lists in a constant."""

MAX_EXECUTED_STEPS = 100_000
"""Maximum number of expressions, statements and elements for one execution, on all of its paths; this takes half a second."""

MAX_EXECUTED_CALLS = 20
"""Maximum length of a chain of calls that an execution enters; Python's own stack limits it."""

MAX_PATHS = 64
"""Maximum number of paths of an execution with unknown conditions, and of such conditions on one path."""

MAX_TOTAL_STEPS = 5_000_000
"""Maximum number of steps of all executions of one tree; this takes fifteen seconds."""

MAX_ELEMENTS = 100_000
"""Maximum number of elements of a container or range in executed code."""
