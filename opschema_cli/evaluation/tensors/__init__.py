"""Shapes and dtypes of torch's functions: a table that was probed from torch, and is read without it."""
