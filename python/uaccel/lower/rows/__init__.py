"""Chains of layers that run some rows at a time, so that no tensor between them is ever whole."""
