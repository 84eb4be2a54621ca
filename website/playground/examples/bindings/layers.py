import kit_cpp


def half(x, bias):
    return kit_cpp.scale(x, 0.5, shift=bias)
