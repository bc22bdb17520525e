"""Damaged files, lying peers and other misbehaviour."""
