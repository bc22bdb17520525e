"""What a Project API server answers instead of a result, as exceptions that say whose fault it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uaccel.errors import DeviceError, ToolError, UaccelError

SERVER_ERROR: Final = -32000


class ProjectApiError(ToolError):
    """The server refused, failed, or broke the protocol."""


class UnsupportedTVMVersionError(ProjectApiError):
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
    """The exception for an ``error`` object, with what it tells on one line."""
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return ProjectApiError(f"{where}: {method}: the server sent an error that is none: {error!r}")
    message, data = str(error["message"]), error.get("data")
    details = data if isinstance(data, Mapping) else {}
    kind = NAMED.get(message) if error.get("code") == SERVER_ERROR else None
    if kind is not None:
        return kind(f"{where}: {_line(details.get('detail')) or _last(details.get('traceback')) or message}")
    words = f"{where}: {method}: {_line(message)}"
    reason = _last(details.get("traceback"))
    if reason and reason not in words:
        words += f" ({reason})"
    device = method in DEVICE_METHODS and details.get("kind") != "tool"
    return DeviceError(words) if device or details.get("kind") == "device" else ProjectApiError(words)


def _line(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""


def _last(traceback: Any) -> str:
    """A traceback ends with what went wrong."""
    lines = [line for line in traceback.splitlines() if line.strip()] if isinstance(traceback, str) else []
    return lines[-1].strip() if lines else ""
