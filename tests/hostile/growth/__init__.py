"""How a run's processor time and memory grow with its input: kinds of input of any size, and what a run of each costs.

``python -m tests.hostile.growth [WORDS]`` prints the table for the kinds whose names hold one of the words.
"""
