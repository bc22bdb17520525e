"""Knows models that packages of the Python index carry: what they are, what they need, and how to get one."""
