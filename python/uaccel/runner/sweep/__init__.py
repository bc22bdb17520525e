"""Performs many runs: a matrix says which, processes or workers elsewhere do them, and results are kept in a file."""
