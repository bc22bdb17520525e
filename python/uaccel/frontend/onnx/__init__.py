"""Imports ONNX models as Relax modules."""
