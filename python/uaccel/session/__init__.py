"""Talking to running firmware."""
