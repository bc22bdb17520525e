"""How the executor says where something lies in the workspace."""

from __future__ import annotations

from uaccel.emit.options import EmitOptions
from uaccel.lower.placement import Place


def address(place: Place, options: EmitOptions) -> str:
    """Of what lies in the workspace."""
    return f"AT({place.pool}, {place.offset})" if len(options.pools) > 1 else f"AT({place.offset})"
