"""The op schema model: dtype and shape expressions, the safe evaluator, signatures, and their alignment."""
