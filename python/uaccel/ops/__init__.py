"""Defines the integer operators and some of floats: attributes, type rules, exact meanings, portable C kernels."""
