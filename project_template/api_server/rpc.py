"""JSON-RPC 2.0: from a line to a call, from its result to an answer."""

from __future__ import annotations

import json
import math
import re
import traceback
from typing import Any, Callable, Dict, NamedTuple

from .connection import Connection
from .errors import (
    ClientGoneError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    ParseError,
    RpcError,
    ServerError,
)

Arguments = Dict[str, Any]


class Kind(NamedTuple):
    """What a parameter may be."""

    name: str
    types: tuple[type, ...]


STRING = Kind("string", (str,))
INTEGER = Kind("integer", (int,))
SECONDS = Kind("number or null", (int, float, type(None)))
OBJECT = Kind("object", (dict,))

JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


class Method(NamedTuple):
    """Something that a client can call; all its parameters must be given, by name."""

    call: Callable[..., Any]
    parameters: dict[str, Kind]


def serve(connection: Connection, methods: dict[str, Method]) -> None:
    """Answer requests until there will be no more. What is wrong with one says nothing about the next."""
    while True:
        try:
            line = connection.next_line()
        except InvalidRequestError as error:  # where the next one begins is not known
            connection.send(failure(None, error))
            return
        if line is None:
            return
        reply = answer(line, methods)
        if reply is not None:
            connection.send(reply)


def answer(line: bytes, methods: dict[str, Method]) -> dict[str, Any] | None:
    """The reply to one line; None to a notification, which wants none."""
    request_id, silent = None, False
    try:
        request = parse(line)
        name, params = check_request(request)
        request_id, silent = request.get("id"), "id" not in request
        result = call(name, params, methods)
    except RpcError as error:
        return None if silent else failure(request_id, error)
    return None if silent else {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: Any, error: RpcError) -> dict[str, Any]:
    details = {"code": error.code, "message": error.message, "data": error.data}
    return {"jsonrpc": "2.0", "id": request_id, "error": details}


def parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except RecursionError as error:
        raise ParseError("request: nested too deeply") from error
    except ValueError as error:
        raise ParseError(f"request: want JSON; {error}") from error


def refuse_constant(name: str) -> None:
    """NaN and the infinities, which Python's reader takes."""
    raise ValueError(f"{name} is not JSON")


def check_request(request: Any) -> tuple[str, Arguments]:
    """The method's name and the parameters."""
    if not isinstance(request, dict):
        raise InvalidRequestError(f"request: want object; got {shown(request)}")
    if request.get("jsonrpc") != "2.0":
        raise InvalidRequestError(f'request["jsonrpc"]: want "2.0"; got {shown(request.get("jsonrpc"))}')
    name = request.get("method")
    if not isinstance(name, str):
        raise InvalidRequestError(f'request["method"]: want string; got {shown(name)}')
    if not re.fullmatch("[a-zA-Z0-9_]+", name):
        raise InvalidRequestError(f'request["method"]: want letters, digits and underscores; got {shown(name)}')
    request_id = request.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, (str, int, float, type(None))):
        raise InvalidRequestError(f'request["id"]: want string, number or null; got {shown(request_id)}')
    params = request.get("params", {})
    if not isinstance(params, dict):
        raise InvalidRequestError(f'request["params"]: want object; got {shown(params)}')
    return name, params


def shown(value: Any) -> str:
    """A value as JSON, cut short where it is long."""
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def call(name: str, params: Arguments, methods: dict[str, Method]) -> Any:
    """Whatever a method raises becomes an :class:`RpcError`."""
    method = methods.get(name)
    if method is None:
        raise MethodNotFoundError(f"{name}: no such method; there are {', '.join(methods)}")
    check_params(name, params, method.parameters)
    try:
        return method.call(**params)
    except (RpcError, ClientGoneError):
        raise
    except OSError as error:
        raise ServerError(f"{name}: {error.filename or 'the operating system'}: {error.strerror or error}") from error
    except Exception as error:
        words = f"{name}: {type(error).__name__}: {error}; this is a bug of the server's"
        raise InternalError(words, {"traceback": traceback.format_exc()}) from error


def check_params(name: str, params: Arguments, wanted: dict[str, Kind]) -> None:
    missing = [parameter for parameter in wanted if parameter not in params]
    if missing:
        raise InvalidParamsError(f"{name}: parameter {', '.join(missing)} not given")
    extra: list[str] = [parameter for parameter in params if parameter not in wanted]
    if extra:
        raise InvalidParamsError(f"{name}: extra parameters: {', '.join(extra)}")
    for parameter, kind in wanted.items():
        value = params[parameter]
        if isinstance(value, bool) or not isinstance(value, kind.types):
            seen = JSON_NAMES.get(type(value), "number")
            raise InvalidParamsError(f"{name}: parameter {parameter}: want {kind.name}, got {seen}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidParamsError(f"{name}: parameter {parameter}: want a finite number")
