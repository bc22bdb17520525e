"""Machines that read streams of commands."""
