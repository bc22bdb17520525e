"""Boards, devices and compiled C that tests talk to."""
