"""Comparison of two operator tables: each change of an operator's contract, and who is affected.

``entries`` is the contract of an operator, ``compare`` pairs the operators of both sides, ``schema_diff`` and ``signature_diff``
compare a pair, ``allowed`` holds accepted changes, ``lock`` is the file of the contract. Reading revisions and printing is
not done here.
"""
