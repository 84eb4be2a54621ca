"""Calls with tensors of more than 2³¹ elements, where an index of 32 bits overflows. ``growth`` plans them, ``running`` runs one
side in a worker, ``judging`` gives the verdict.
"""
