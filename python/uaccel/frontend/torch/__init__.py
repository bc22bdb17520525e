"""Imports exported PyTorch programs (``.pt2``) as Relax modules."""
