"""Calls that an entry describes, executed on its code: by its workload rows, and by rows derived from them."""
