"""To a Dask scheduler: its address, the keys, and what Dask says of itself."""

from __future__ import annotations

import logging
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.errors import InputError, ToolError, UaccelError

SECONDS: Final = 10.0
"""How long a scheduler may take to answer."""
_ADDRESS: Final = re.compile(r"(tcp|tls)://\S+:\d{1,5}")


@dataclass(frozen=True)
class Tls:
    """Files in PEM: the certificate of who signs, one's own, and its key."""

    ca: Path
    cert: Path
    key: Path


def tls_of(address: str, ca: Path | None, cert: Path | None, key: Path | None) -> Tls | None:
    """None for ``tcp://``; ``tls://`` takes all three."""
    given = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
    missing = [name for name, path in given.items() if path is None]
    if not address.startswith("tls://"):
        if len(missing) < len(given):
            raise InputError(f"{address} is not encrypted, and there are --tls options; wanted tls://HOST:PORT")
        return None
    if ca is None or cert is None or key is None:
        raise InputError(f"{address} takes --tls-ca, --tls-cert and --tls-key; missing: {', '.join(missing)}")
    for name, path in given.items():
        if path is not None and not path.is_file():
            raise InputError(f"{name}: there is no file {path}")
    return Tls(ca, cert, key)


def distributed() -> Any:
    """Dask's package, which says nothing by itself."""
    try:
        import distributed as package
    except ImportError as error:
        raise ToolError(
            "a lab needs Dask, which is not installed; install it with: pip install 'uaccel[farm]'"
        ) from error
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", message="Sending large graph")
    return package


def checked(address: str) -> str:
    """An address as a scheduler has one."""
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"{address!r} is no address of a scheduler; wanted one such as tcp://192.168.1.10:8786")
    return address


def security(tls: Tls | None) -> Any:
    """Dask's own; with it both ends show a certificate of the same signer."""
    if tls is None:
        return None
    files = {"tls_ca_file": str(tls.ca)}
    for role in ("client", "worker", "scheduler"):
        files |= {f"tls_{role}_cert": str(tls.cert), f"tls_{role}_key": str(tls.key)}
    return distributed().Security(require_encryption=True, **files)


def connect(address: str, tls: Tls | None) -> Any:
    """A client; one line where nobody answers."""
    package = distributed()
    try:
        return package.Client(
            checked(address), security=security(tls), timeout=SECONDS, set_as_default=False, name="uaccel"
        )
    except (OSError, ValueError, TypeError) as error:  # a time-out is an OSError
        raise no_scheduler(address, error) from error


def no_scheduler(address: str, error: BaseException) -> UaccelError:
    """What to say where nobody answers."""
    cause = error.__cause__ or error
    said = re.sub(r"^in <[^>]*>: \w+: ", "", " ".join(str(cause).split()))  # which of Dask's objects it was
    words = said[:120] or type(cause).__name__
    return UaccelError(
        f"no scheduler answers at {address} within {SECONDS:g} s ({words}); start one with 'dask scheduler', or "
        "correct the address and its --tls options"
    )
