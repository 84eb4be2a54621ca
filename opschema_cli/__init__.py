"""opschema: find, fix and prove away the drift between an operator's declaration and its implementation.

The engine lives here and knows no repository; what it knows of one kind of repository is a *pack*
(entry-point group ``opschema.packs``).
"""

__version__ = "0.1.0"
