"""The version of uaccel: the one place where it stands (the wheel takes it from here)."""

__version__ = "0.2.0"
