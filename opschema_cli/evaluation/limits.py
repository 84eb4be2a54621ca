"""Limits of static evaluation, each with its reason: hostile inputs stay within a budget."""

from __future__ import annotations

MAX_HOPS = 60
"""Deepest nesting of expressions and names that is followed; Python's own stack bounds it."""

MAX_STEPS = 400_000
"""Most expressions that are evaluated in one tree, each in each frame, and elements that are iterated over: four seconds."""

MAX_CALLS = 8
"""Longest chain of calls, helpers or locals that is followed: deeper ones are recursion, or no helper any more."""

MAX_TYPES = 20
"""Deepest nesting of types and aliases of types that is followed."""

MAX_FRAMES = 20_000
"""Most calls that are followed in one tree."""

MAX_TURNS = 2_000
"""Most turns of a loop, with those of the loops in it, that are followed one by one."""

MAX_ALTERNATIVES = 12
"""Most values that one expression is taken to have: what may be more things is not known."""

MAX_STRINGS = 5_000
"""Most strings that one expression is taken to stand for, and most elements of a ``range``."""

MAX_BINDINGS = 200
"""Bindings of one name in one scope from which on it is not asked which of them a use sees."""

MAX_CHARACTERS = 200_000
"""Longest string that is made, or as many characters in all strings that one expression may be."""

MAX_PARTS = 2_000
"""Most elements, inner ones counted, of a constant that is put together."""

MAX_BASE = 1_000_000
"""Largest base of a computed power."""

MAX_BITS = 4_096
"""Largest number that is computed with: products of products grow without end."""

MAX_EXPONENT = 64
"""Largest exponent, and largest shift: a power has 400 digits at most."""

MAX_CALLERS = 3
"""Longest chain of callers that is followed back from a parameter: each has callers of its own."""

MAX_CALLER_FRAMES = 200
"""Most calls of a function from which its parameters are told."""

MAX_ANNOTATION = 2_000
"""Longest annotation, and longest string in one, that is parsed."""

MAX_FLOW = 12
"""Longest chain of local variables that data flow follows."""

MAX_NESTING = 20
"""Deepest nesting of tuples and lists in a constant."""

MAX_EXECUTED_STEPS = 100_000
"""Most expressions, statements and elements that an execution works on, on all of its paths: half a second."""

MAX_EXECUTED_CALLS = 20
"""Longest chain of calls that an execution enters; Python's own stack bounds it."""

MAX_PATHS = 64
"""Most paths that an execution follows where conditions are not known, and most such conditions on one of them."""

MAX_TOTAL_STEPS = 5_000_000
"""Most steps of all executions of one tree: fifteen seconds."""

MAX_ELEMENTS = 100_000
"""Most elements of a container or range that executed code makes."""
