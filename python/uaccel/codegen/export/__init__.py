"""Formats in which a model is exported for somebody else's build: a file each."""
