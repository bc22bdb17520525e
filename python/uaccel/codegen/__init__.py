"""Turns a lowered program into C, and the C into archives and exports."""
