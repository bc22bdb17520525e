"""Lowers a partitioned module to layers with C calls, and places their tensors in memory."""
