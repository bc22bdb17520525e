"""Connects a sweep to a Dask scheduler, and takes nothing but text and numbers from there.

Dask pickles results, exceptions, types of results, and events. To unpickle is to run what the other end sends. So the
client asks for MessagePack, leaves what came packed as it is, and hears of no events. Where Dask unpickles all the
same, the interpreter refuses: no class or function is found for it.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import urlsplit

from uaccel.errors import InputError, ToolError, UaccelError
from uaccel.util import incoming

# An address, and the keys.

SECONDS: Final = 10.0  # How long a scheduler may take to answer.
LOOPBACK: Final = "127.0.0.1"
_ADDRESS: Final = re.compile(r"(tcp|tls)://\S+:\d{1,5}")


def keys_for(address: str, file: Path | None) -> Path | None:
    """Checks the file of keys: ``tcp://`` takes none, and ``tls://`` one with all that both ends show."""
    if not address.startswith("tls://"):
        if file is not None:
            raise InputError(f"{address} is not encrypted, and there is --tls; wanted tls://HOST:PORT")
        return None
    wanted = "wanted one's own certificate, its key, and the certificate of who signs, in PEM"
    if file is None:
        raise InputError(f"{address} takes --tls FILE.pem; {wanted}")
    try:
        text = incoming.read_text(file, incoming.TEXT)  # Python's TLS opens it by name, and would wait for a pipe
    except (OSError, ValueError) as error:
        raise InputError(f"--tls: cannot read {file}: {getattr(error, 'strerror', error)}; {wanted}") from error
    for what in ("CERTIFICATE", "PRIVATE KEY"):
        if f"{what}-----" not in text:
            raise InputError(f"--tls: {file} has no {what.lower()}; {wanted}")
    return file


def checked(address: str) -> str:
    """Returns an address if a scheduler can have it."""
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"{address!r} is no address of a scheduler; wanted one such as tcp://192.168.1.10:8786")
    return address


def is_loopback(host: str) -> bool:
    """Says whether a host's name stands for this computer alone."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host.strip("[]"), None)}
        return all(ipaddress.ip_address(place.partition("%")[0]).is_loopback for place in found)
    except (OSError, ValueError):
        return False


def exposure(address: str, host: str = LOOPBACK) -> str:
    """Says in one line what others may do as nothing is encrypted; empty where there are keys, or no way from outside.

    ``host`` is where a worker listens."""
    outside = [name for name in (urlsplit(checked(address)).hostname or "", host) if not is_loopback(name)]
    if address.startswith("tls://") or not outside:
        return ""
    return (
        f"warning: {outside[-1]} without TLS: whoever reaches it, or the network between, may run programs at workers "
        "and change results; use tls:// with keys"
    )


def listening_at(address: str, host: str | None) -> str:
    """Returns where a worker of a scheduler listens: on loopback, unless it was told a host."""
    remote = urlsplit(checked(address))
    if host is None:
        if is_loopback(remote.hostname or ""):
            return LOOPBACK
        raise InputError(
            f"{address} is not on loopback, so that others have to reach this worker; "
            f"say where it shall listen: --host {_own_address(remote.hostname or '', remote.port or 0)}"
        )
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as tried:
            tried.bind(place)
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"--host {host}: a worker cannot listen there ({error}); wanted an address of this computer"
        ) from error
    return f"[{host}]" if ":" in host else host


def _own_address(host: str, port: int) -> str:
    """Returns this computer's address on the way to a host; no packet is sent for it."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((host, port))
        return str(way.getsockname()[0])
    return "ADDRESS"


# Dask's package.


def distributed() -> Any:
    """Imports Dask's package and silences what it would write: its logs and warnings repeat words of other ends."""
    try:
        import distributed as package
    except ImportError as error:
        raise ToolError(
            "a lab needs Dask, which is not installed; install it with: pip install 'uaccel[farm]'"
        ) from error
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=r"distributed\.")
    return package


def security(tls: Path | None) -> Any:
    """Makes Dask's security settings, with which both ends must show a certificate of the same signer."""
    if tls is None:
        return None
    files = {f"tls_{role}_{part}": str(tls) for role in ("client", "worker", "scheduler") for part in ("cert", "key")}
    files["tls_ca_file"] = str(tls)
    return distributed().Security(require_encryption=True, **files)


def no_scheduler(address: str, error: BaseException) -> UaccelError:
    """Makes the error for a scheduler that does not answer."""
    cause = error.__cause__ or error
    said = re.sub(r"^in <[^>]*>: \w+: ", "", " ".join(str(cause).split()))  # which of Dask's objects it was
    words = said[:120] or type(cause).__name__
    return UaccelError(
        f"no scheduler answers at {address} within {SECONDS:g} s ({words}); start one with 'dask scheduler', or "
        "correct the address and its --tls"
    )


# The wall: while a sweep is connected, Dask's code finds neither classes nor functions for a pickle. A pickle that may
# name none is data.

_CONNECTED: Final[set[int]] = set()


class UnpickledError(TypeError):
    """Is raised in place of unpickling; Dask passes over a TypeError where it reads an exception's traceback."""


@lru_cache(maxsize=1)
def _build_wall() -> None:
    sys.addaudithook(_refuse)  # never to be taken away again


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and _CONNECTED and _is_called_by_dask():
        raise UnpickledError(f"{'.'.join(map(str, arguments[-2:]))} is not looked up for a pickle of another end")


def _is_called_by_dask() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame and not frame.f_globals.get("__name__", "").startswith("distributed."):
        frame = frame.f_back
    return frame is not None


# The connection.


@lru_cache(maxsize=1)
def _client_class() -> Any:
    """Makes a client of Dask's that leaves what came packed as it is.

    It takes no events, so that a worker can print nothing here. Where Dask's client would read the type of a result, or
    an exception, it learns only that there is one. ``over`` is true when it hears no more from the scheduler."""

    class Reader(distributed().Client):  # type: ignore[misc]
        over = False
        connection_args: Any

        def subscribe_topic(self, topic: str, handler: Any) -> None:
            pass

        async def _ensure_connected(self, timeout: Any = None) -> None:
            self.connection_args = {**self.connection_args, "deserialize": False}
            await super()._ensure_connected(timeout)

        async def _handle_report(self) -> None:
            try:
                with suppress(Exception):  # a message that is none of Dask's
                    await super()._handle_report()
            finally:
                self.over = True

        def _handle_key_in_memory(self, key: Any = None, **_told: Any) -> None:
            super()._handle_key_in_memory(key)

        def _handle_task_erred(self, key: Any = None, **_told: Any) -> None:
            super()._handle_task_erred(key, "a worker failed")

    return Reader


class SchedulerLink:
    """Submits work to a scheduler and fetches the text that comes of it."""

    def __init__(self, address: str, tls: Path | None) -> None:
        self.address = checked(address)
        _build_wall()
        _CONNECTED.add(id(self))
        try:
            self._client = _client_class()(
                address,
                security=security(tls),
                timeout=SECONDS,
                set_as_default=False,
                name="uaccel",
                serializers=["msgpack"],
                deserializers=["msgpack"],
                direct_to_workers=False,
            )
        except Exception as error:  # it may be anything that listens there
            _CONNECTED.discard(id(self))
            if isinstance(error, UaccelError):
                raise
            raise no_scheduler(address, error) from error

    def close(self) -> None:
        with suppress(Exception):
            self._client.close(timeout=5)
        _CONNECTED.discard(id(self))

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        needs: Collection[str] = (),
        priority: int = 0,
        key: Any = None,
    ) -> Any:
        """Returns the future of a call at a worker; without a ``key`` each call is one of its own."""
        needed = dict.fromkeys(needs, 1)
        with self._asking():
            return self._client.submit(
                function, *arguments, key=key, resources=needed, priority=priority, pure=key is not None
            )

    def texts(self, futures: Sequence[Any], seconds: float) -> dict[Any, Any]:
        """Returns the values that are still there and need no unpickling: a worker may have died with its results.

        If fetching them together fails, each is fetched by itself, so that one loss does not cost the others."""
        until = time.monotonic() + seconds
        fetch = partial(self._client.gather, futures, asynchronous=True)
        with suppress(Exception):  # whatever Dask calls it, it is one of them
            return dict(zip(futures, self._client.sync(fetch, callback_timeout=seconds), strict=True))
        found = {}
        for future in futures:
            with suppress(Exception):
                found[future] = future.result(timeout=max(1.0, until - time.monotonic()))
        return found

    def resources(self) -> set[str]:
        """Returns what the workers that are there offer."""
        with self._asking():
            workers = self._client.scheduler_info()["workers"].values()
            return {str(name) for one in workers for name, count in one.get("resources", {}).items() if count}

    def cancel(self, futures: Sequence[Any]) -> None:
        with suppress(Exception):
            self._client.cancel(futures, force=True)

    def require(self) -> None:
        """Raises an error if the scheduler has gone."""
        if self._client.status != "running" or self._client.over:
            raise UaccelError(
                f"the scheduler at {self.address} has gone; start it, and the same sweep again: it goes on from here"
            )

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.require()
            raise UaccelError(
                f"the scheduler at {self.address} does not answer as Dask's does ({type(error).__name__}: {error})"
            ) from error
