"""The harness: checks whether an op still computes the same results, and whether they are correct."""
