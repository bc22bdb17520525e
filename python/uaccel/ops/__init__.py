"""Operators: what they mean, and which C computes them."""
