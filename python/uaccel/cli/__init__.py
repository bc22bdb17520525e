"""The command line. One file per command; :mod:`uaccel.cli.app` lists them."""

from uaccel.cli.app import main

__all__ = ["main"]
