"""Names that stand for others: views of views, results in the bytes of what they overwrite."""

from __future__ import annotations

from collections.abc import Mapping

from uaccel.errors import InternalError


def roots_of(parents: Mapping[str, str]) -> dict[str, str]:
    """For each name that has a parent, the outermost one."""
    roots: dict[str, str] = {}
    for start in parents:
        name, path = start, {start: None}
        while name in parents and name not in roots:
            name = parents[name]
            if name in path:
                raise InternalError(f"memory plan: '{name}' shares its own bytes; look for a cycle among {list(path)}")
            path[name] = None
        root = roots.get(name, name)
        roots.update({child: root for child in path if child in parents})
    return roots
