"""What a Project API server answers instead of a result, as exceptions that say whose fault it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uaccel.errors import DeviceError, ToolError, UaccelError

SERVER_ERROR: Final = -32000


class ProjectApiError(ToolError):
    """The server broke the protocol, or does not answer."""


class UnsupportedTVMVersionError(ToolError):
    """The server does not work with this TVM."""


class TransportClosedError(DeviceError):
    """Nothing can be sent to the firmware or received any more."""


class IoTimeoutError(DeviceError):
    """The firmware sent nothing, or took nothing, in time."""


NAMED: Final[Mapping[str, type[UaccelError]]] = {
    kind.__name__: kind for kind in (UnsupportedTVMVersionError, TransportClosedError, IoTimeoutError)
}
"""Those that cross the wire by their class's name."""

DEVICE_METHODS: Final = ("flash", "open_transport", "close_transport", "read_transport", "write_transport")


def error_from(where: str, method: str, error: Any) -> UaccelError:
    """The exception for an ``error`` object, with what it tells on one line; ``where`` begins it."""
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return ProjectApiError(f"{where}{method}: the server sent an error that is none: {error!r}")
    message, data = str(error["message"]), error.get("data")
    details = data if isinstance(data, Mapping) else {}
    reason = _last(details.get("traceback"))
    kind = NAMED.get(message) if error.get("code") == SERVER_ERROR else None
    if kind is not None:
        return kind(f"{where}{_line(details.get('detail')) or reason or f'{method}: {message}'}")
    words = f"{where}{_line(message)}"
    words += f" ({reason})" if reason and reason not in words else ""
    fault = details.get("kind", "device" if method in DEVICE_METHODS else "tool")
    return DeviceError(words) if fault == "device" else ToolError(words)


def _line(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""


def _last(traceback: Any) -> str:
    """A traceback ends with what went wrong."""
    lines = [line for line in traceback.splitlines() if line.strip()] if isinstance(traceback, str) else []
    return lines[-1].strip() if lines else ""
