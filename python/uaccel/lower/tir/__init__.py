"""Writes TIR as C, for operators that have no kernel."""
