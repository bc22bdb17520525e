"""Writes the bill of materials of an export as SPDX 2.3: every file with its digests, its licence and its origin."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from uaccel.codegen.export.library import Library
from uaccel.lower.program import Engine
from uaccel.model import ImportedModel
from uaccel.util import incoming
from uaccel.util.files import data_dir
from uaccel.version import __version__

FILE: Final = "sbom.spdx.json"
OWN: Final = "Apache-2.0"
MODEL: Final = "LicenseRef-model"
BOTH: Final = f"{OWN} AND {MODEL}"
UNKNOWN: Final = "NOASSERTION"
_NO_DATE: Final = "1970-01-01T00:00:00Z"  # The same export gives the same bytes.
_TAG: Final = re.compile(r"SPDX-License-Identifier:\s*([\w.+-]+(?: (?:AND|OR|WITH) [\w.+-]+)*)")


def sbom(export: Library, files: Mapping[str, bytes]) -> bytes:
    """The bill as JSON. ``files`` are all other files of the export by path. SPDX defines the package's verification
    code as the SHA-1 of all files' SHA-1 sums in order."""
    digests = {name: hashlib.sha1(data, usedforsecurity=False).hexdigest() for name, data in files.items()}
    drivers = {name: licence_of(engine) for engine in export.engines for name in _driver_files(engine)}
    rows = [_file(name, digests[name], data, drivers) for name, data in sorted(files.items())]
    licences = sorted({row["licenseConcluded"] for row in rows})
    verification = hashlib.sha1("".join(sorted(digests.values())).encode(), usedforsecurity=False).hexdigest()
    library = _package("library", export.name, " AND ".join(f"({x})" for x in licences))
    library |= {
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification},
        "licenseInfoFromFiles": licences,
    }
    sources = [
        _package(key, model.name, MODEL) | {"checksums": [{"algorithm": "SHA256", "checksumValue": model.digest}]}
        for key, model in _models(export)
    ]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": export.name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{export.name}-{verification}",
        "creationInfo": {"created": _NO_DATE, "creators": [f"Tool: uaccel-{__version__}"]},
        "packages": [library, *sources, _package("uaccel", "uaccel", OWN, __version__), *map(_engine, export.engines)],
        "files": rows,
        "relationships": _relationships(export, rows),
        "hasExtractedLicensingInfos": [
            {"licenseId": MODEL, "extractedText": "Constants belong to whoever made the model: its licence holds."}
        ],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _models(export: Library) -> list[tuple[str, ImportedModel]]:
    """The models, each with its key in the bill."""
    found = [model.program.model for model in export.models]
    keys = ["model"] if len(found) == 1 else [f"model-{number}" for number in range(1, len(found) + 1)]
    return list(zip(keys, found, strict=True))


def licence_of(engine: Engine) -> str:
    """The licence that the first tagged file of an accelerator states. Without a tag: uaccel's if it is bundled."""
    for _, path in engine.files:
        if found := _TAG.search(incoming.read_text(path, errors="replace")):
            return found[1]
    bundled = all(path.resolve().is_relative_to(data_dir("accelerators").resolve()) for _, path in engine.files)
    return OWN if bundled else UNKNOWN


def _driver_files(engine: Engine) -> list[str]:
    return [name.removeprefix("driver/") for name, _ in engine.files if name.startswith("driver/")]


def _licence(name: str, drivers: Mapping[str, str]) -> str:
    """A file's licence. Kernels and headers are uaccel's; generated files also hold the model's constants or sample."""
    last = name.rpartition("/")[2]
    return drivers.get(last) or (OWN if last.startswith("uaccel_") else BOTH)


def _file(name: str, sha1: str, data: bytes, drivers: Mapping[str, str]) -> dict[str, Any]:
    licence = _licence(name, drivers)
    return {
        "SPDXID": f"SPDXRef-file-{sha1}-{hashlib.sha256(name.encode()).hexdigest()[:8]}",
        "fileName": f"./{name}",
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": sha1},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()},
        ],
        "licenseConcluded": licence,
        "copyrightText": UNKNOWN,
    }


def _package(key: str, name: str, licence: str, version: str = "") -> dict[str, Any]:
    row = {"SPDXID": f"SPDXRef-{key}", "name": name, "downloadLocation": UNKNOWN, "filesAnalyzed": False}
    row |= {"licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": UNKNOWN}
    return row | ({"versionInfo": version} if version else {})


def _engine(engine: Engine) -> dict[str, Any]:
    return _package(f"accelerator-{engine.name.replace('_', '-')}", engine.name, licence_of(engine))


def _relationships(export: Library, rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    def row(one: str, kind: str, other: str) -> dict[str, str]:
        return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}

    library = "SPDXRef-library"
    found = [
        row("SPDXRef-DOCUMENT", "DESCRIBES", library),
        *(row(library, "GENERATED_FROM", f"SPDXRef-{key}") for key, _ in _models(export)),
        row("SPDXRef-uaccel", "BUILD_TOOL_OF", library),
    ]
    parts = [f"SPDXRef-accelerator-{engine.name.replace('_', '-')}" for engine in export.engines]
    return found + [row(library, "CONTAINS", part) for part in [*parts, *(file["SPDXID"] for file in rows)]]
