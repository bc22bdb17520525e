"""The bill of materials of an export names every file that lands in a product, with its licence."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.models.networks import OWN, ROOT
from support.run.command import Call, call_in

GESTURE = OWN / "gesture.tflite"
MODEL = "LicenseRef-model"
VENDORS = "/* SPDX-License-Identifier: BSD-3-Clause */\n"


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


def complaints(folder: Path) -> list[str]:
    """What is wrong with the bill of an export, by the rules of SPDX 2.3 and by the files that are there."""
    bill: dict[str, Any] = json.loads((folder / "sbom.spdx.json").read_text())
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    del there["sbom.spdx.json"]
    listed = {row["fileName"].removeprefix("./"): row for row in bill["files"]}
    found = [f"{name} is not listed" for name in sorted(there.keys() - listed.keys())]
    found += [f"{name} is not there" for name in sorted(listed.keys() - there.keys())]
    for name in there.keys() & listed.keys():
        for checksum in listed[name]["checksums"]:
            kind = {"SHA1": hashlib.sha1, "SHA256": hashlib.sha256}[checksum["algorithm"]]
            if kind(there[name].read_bytes()).hexdigest() != checksum["checksumValue"]:
                found.append(f"{name} is another")
    known = [row["SPDXID"] for row in (*bill["packages"], *bill["files"])]
    found += [] if len(set(known)) == len(known) else ["two have one SPDXID"]
    ends = {row[end] for row in bill["relationships"] for end in ("spdxElementId", "relatedSpdxElement")}
    found += [f"{end} is nothing" for end in sorted(ends - {"SPDXRef-DOCUMENT", *known})]
    wanted = ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo")
    return found + [f"{key} is missing" for key in wanted if not bill.get(key)]


def licences(folder: Path) -> dict[str, str]:
    bill = json.loads((folder / "sbom.spdx.json").read_text())
    return {row["fileName"].rpartition("/")[2]: row["licenseConcluded"] for row in bill["files"]}


def test_every_file_is_listed(call: Call, tmp_path: Path) -> None:
    report = call("export", GESTURE, "--to", "cmake", "-o", tmp_path / "out", "--json").report
    assert "sbom.spdx.json" in report["files"]
    assert complaints(tmp_path / "out") == []
    found = licences(tmp_path / "out")
    assert found["uaccel_kernel.h"] == "Apache-2.0"
    assert found["tvmgen_gesture_weights.c"] == f"Apache-2.0 AND {MODEL}"
    bill = json.loads((tmp_path / "out" / "sbom.spdx.json").read_text())
    (model,) = (row for row in bill["packages"] if row["SPDXID"] == "SPDXRef-model")
    assert model["checksums"][0]["checksumValue"] == hashlib.sha256(GESTURE.read_bytes()).hexdigest()
    (tmp_path / "out" / "more.c").touch()
    header = next((tmp_path / "out").rglob("uaccel_kernel.h"))
    header.write_text(header.read_text() + "\n")
    assert {line.partition(" is ")[2] for line in complaints(tmp_path / "out")} == {"not listed", "another"}


@pytest.mark.parametrize(
    ("copied", "tag", "wanted"),
    [(False, "", "Apache-2.0"), (True, "", "NOASSERTION"), (True, VENDORS, "BSD-3-Clause")],
    ids=["uaccel's", "a vendor's without a tag", "a vendor's"],
)
def test_a_driver_s_licence_is_its_own(copied: bool, tag: str, wanted: str, call: Call, tmp_path: Path) -> None:
    own, vendors = ROOT / "accelerators" / "matrix8", tmp_path / "matrix8"
    if copied:
        shutil.copytree(own, vendors)
        for driver in (vendors / "driver").iterdir():
            driver.write_text(tag + driver.read_text())
    accelerator = vendors if copied else "matrix8"
    done = call("export", GESTURE, "--to", "c", "-o", tmp_path / "out", "-a", accelerator, "--json")
    assert done.status == 0, done.err
    assert complaints(tmp_path / "out") == []
    drivers = {path.name for path in (own / "driver").iterdir()}
    assert {licence for name, licence in licences(tmp_path / "out").items() if name in drivers} == {wanted}
