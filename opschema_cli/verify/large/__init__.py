"""Calls with tensors of more than 2³¹ elements, where a 32-bit index overflows. ``growth`` plans them, ``running`` runs one side
in a worker, ``judging`` decides the verdict.
"""
