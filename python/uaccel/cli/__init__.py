"""Is the command line. :mod:`uaccel.cli.guard` starts it, :mod:`uaccel.cli.app` lists the commands of the modules."""

from uaccel.cli.guard import main

__all__ = ["main"]
