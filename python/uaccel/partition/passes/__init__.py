"""Passes over the imported module: simplified, float layers joined, layouts moved."""
