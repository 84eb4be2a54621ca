"""The operator table: what the packs know of operators, in one model, and the questions that all packs answer alike.

``model`` is the data, ``comparison`` sets declarations beside implementations, ``lookup`` finds operators by name. Packs fill
the table (``Pack.operators``); commands and reporters read it and nothing else of a pack.
"""
