"""What goes wrong, as it crosses the wire: a code, a message, and data that explains it."""

from __future__ import annotations

from typing import Any


class RpcError(Exception):
    """An answer that is no result."""

    code = -32603

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(RpcError):
    """A line that is no JSON."""

    code = -32700


class InvalidRequestError(RpcError):
    """JSON that is no request."""

    code = -32600


class MethodNotFoundError(RpcError):
    """A method that does not exist."""

    code = -32601


class InvalidParamsError(RpcError):
    """Parameters that are missing, too many or wrong."""

    code = -32602


class InternalError(RpcError):
    """A bug of this server's."""


class ServerError(RpcError):
    """A valid request that cannot be done; ``message`` is one line that says why."""

    code = -32000


class ToolFaultError(ServerError):
    """What it takes on this computer is not there; the board is not to blame."""

    def __init__(self, message: str) -> None:
        super().__init__(message, {"kind": "tool"})


class NamedError(ServerError):
    """Crosses the wire by its class's name: clients know it by that."""

    def __init__(self, detail: str) -> None:
        super().__init__(type(self).__name__, {"detail": detail})


class TransportClosedError(NamedError):
    """Nothing can be sent or received any more."""


class IoTimeoutError(NamedError):
    """Time is up."""


class UnsupportedTVMVersionError(NamedError):
    """The client belongs to a TVM that does not speak this protocol."""


class ClientGoneError(Exception):
    """Nobody is there to answer."""
