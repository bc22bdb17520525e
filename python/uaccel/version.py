"""States the version of uaccel, in this one place; the wheel takes it from here."""

__version__ = "0.2.0"
