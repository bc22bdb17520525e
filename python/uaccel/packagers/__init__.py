"""What becomes of generated code: an archive today, and whatever else takes a model's C.

``emit`` gives a :class:`~uaccel.emit.generate.Generated`: sources, headers, constants and all that is known of the
model. A packager, one file each, turns it into files. Projects are made from the archive, so that what a project
has is in the archive, too.
"""

from collections.abc import Callable

from uaccel.emit.generate import Generated

Packager = Callable[[Generated], dict[str, bytes]]
"""Path -> content."""

__all__ = ["Generated", "Packager"]
