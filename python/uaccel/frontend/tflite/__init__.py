"""This package is the front end for TFLite: files become Relax modules of integer operators."""
