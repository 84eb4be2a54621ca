"""The operator table: one model for what all packs know about operators, and the queries that they share.

``model`` is the data, ``comparison`` sets declarations beside implementations, ``lookup`` finds operators by name. Packs fill
the table (``Pack.operators``); commands and reporters read it and nothing else of a pack.
"""
