"""The harness: does an op still compute what it computed, and is that right?"""
