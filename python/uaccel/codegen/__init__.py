"""The C of a lowered model, and what becomes of it."""
