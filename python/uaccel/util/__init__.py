"""Holds helpers that every stage may use, and that know no stage."""
