"""The search for calls that an operator accepts, from its schema alone: bounded, and the same on every machine.

No torch here: a function that is given answers whether a call is accepted (a worker that has imported the operator).
"""
