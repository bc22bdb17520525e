"""Holds passes over the imported module: simplification, fusion of float layers, choice of layouts."""
