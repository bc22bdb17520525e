"""Build hooks: the wheel carries what uaccel reads at run time, and its description's links lead somewhere."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# As uaccel.util.files names them, and what of the checkout they hold.
DATA = {
    "boards": ["boards"],
    "firmware": ["firmware"],
    "project_template": ["project_template"],
    "accelerators": ["accelerators"],
    "accelerator_template": ["accelerator_template"],
    "docs": ["docs"],
    "models": ["tests/models/*.tflite", "tests/models/*.npz", "tests/models/*_labels.txt"],
}

LOCKED = "scripts/locked/setup.txt"
BILL = "uaccel.cdx.json"
"""The wheel's bill of materials, in its ``.dist-info/sboms`` (PEP 770)."""

_CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"""(\]\(\s*|^\[[^\]\n]+\]:\s+|\b(?:href|src)=["'])([^\s)"'>]+)""", re.MULTILINE)
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")


class DataFolders(BuildHookInterface):  # type: ignore[misc]  # hatchling is seen as Any
    """Maps ``boards/`` to ``uaccel/_data/boards/`` in the wheel, and so on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; an editable install reads the checkout instead."""
        if version == "editable":
            return
        for name, sources in DATA.items():
            for source in sources:
                for path in sorted(Path(self.root).glob(source)):
                    inside = f"uaccel/_data/{name}" if path.is_dir() else f"uaccel/_data/{name}/{path.name}"
                    build_data["force_include"][str(path)] = inside
        self.folder = tempfile.TemporaryDirectory(prefix="uaccel-")  # lives as long as the build
        bill = Path(self.folder.name) / BILL
        bill.write_text(bill_of_materials(Path(self.root), self.metadata.core), encoding="utf-8")
        build_data.setdefault("sbom_files", []).append(str(bill))


def bill_of_materials(root: Path, core: Any) -> str:
    """CycloneDX 1.6: what the wheel is, and what it wants beside itself; the same for the same sources."""
    component = {"type": "application", "name": core.name, "version": core.version, "bom-ref": core.name}
    component |= {"licenses": [{"license": {"id": core.license_expression}}], "purl": f"pkg:pypi/{core.name}"}
    pinned = dict(re.findall(r"^([\w.-]+)==([^ ;\n]+)", (root / LOCKED).read_text(encoding="utf-8"), re.M))
    rows = []
    for requirement in sorted(core.dependencies):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()
        row = {"type": "library", "name": name, "bom-ref": name, "purl": f"pkg:pypi/{name}", "scope": "required"}
        row |= {"version": pinned[name]} if name in pinned else {}
        rows.append(row | {"properties": [{"name": "uaccel:requirement", "value": requirement}]})
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component},
        "components": rows,
        "dependencies": [{"ref": core.name, "dependsOn": [row["bom-ref"] for row in rows]}],
    }
    return json.dumps(document, indent=1) + "\n"


class Readme(MetadataHookInterface):  # type: ignore[misc]  # hatchling is seen as Any
    """The README as the description that package indices show."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling for the fields that pyproject.toml leaves open."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(text, metadata["urls"]["Homepage"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_absolute_links(text: str, home: str) -> str:
    """Markdown, with links and pictures of the repository at ``home``; what is code stays as it is."""

    def lead(match: re.Match[str]) -> str:
        before, target = match.groups()
        if re.match(r"[a-z]+:|//", target):
            return match[0]
        kind = "raw" if target.lower().endswith(_PICTURES) else "blob"
        path = f"README.md{target}" if target.startswith("#") else target.removeprefix("./")
        return f"{before}{home}/{kind}/main/{path}"

    parts = _CODE.split(text)  # the odd ones are code
    return "".join(part if index % 2 else _TARGET.sub(lead, part) for index, part in enumerate(parts))
