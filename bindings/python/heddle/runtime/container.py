"""TVM's own containers, as Python's: a str and a tuple."""


class String(str):
    """A str; TVM's strings of its C++ library are not there."""


class ShapeTuple(tuple):
    """A tuple of ints."""

    def __new__(cls, shape=()):
        return super().__new__(cls, (int(s) for s in shape))
