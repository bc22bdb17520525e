"""The command line. One file per command; :mod:`uaccel.cli.app` lists them, :mod:`uaccel.cli.guard` begins."""

from uaccel.cli.guard import main

__all__ = ["main"]
