"""Exports a model for other build systems; each format is a module."""
