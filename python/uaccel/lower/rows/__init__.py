"""Computes chains of layers some rows at a time, so that no tensor between them is ever whole."""
