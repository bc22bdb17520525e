"""What build systems read of an export, against their documented rules, and against their own schemas."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.export.exports import need_program, written
from uaccel.codegen.export.library import VERSION

SEMANTIC = re.compile(r"\d+\.\d+\.\d+")


def complaints_arduino(folder: Path) -> list[str]:
    """Arduino's specification of libraries, as of 1.5 and later."""
    lines = (folder / "library.properties").read_text().splitlines()
    rows = dict(line.split("=", 1) for line in lines)
    found = []
    wanted = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    found += [f"{key} is missing" for key in sorted(wanted - rows.keys())]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,62}", rows.get("name", "")):
        found.append("the name has characters that a library's must not have")
    if not SEMANTIC.fullmatch(rows.get("version", "")):
        found.append("the version is no semantic one")
    categories = ["Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing"]
    if rows.get("category") not in [*categories, "Data Storage", "Data Processing", "Other"]:
        found.append("the category is none of the list")
    found += [f"{name} is not in src" for name in rows["includes"].split(",") if not (folder / "src" / name).is_file()]
    for sketch in sorted((folder / "examples").iterdir()):
        if not (sketch / f"{sketch.name}.ino").is_file():
            found.append(f"sketch {sketch.name} has no file of its name")
    for line in (folder / "keywords.txt").read_text().splitlines():
        if not re.fullmatch(r"\w+\t(KEYWORD[123]|LITERAL1)", line):
            found.append(f"keywords.txt: {line!r}: wanted a word, one tab and its kind")
    return found


def complaints_platformio(folder: Path) -> list[str]:
    """The fields of ``library.json`` that PlatformIO's schema requires, and where it looks."""
    (path,) = folder.glob("lib/*/library.json")
    manifest = json.loads(path.read_text())
    found = [f"{key} is missing" for key in ("name", "version") if not manifest.get(key)]
    if not SEMANTIC.fullmatch(manifest.get("version", "")):
        found.append("the version is no semantic one")
    if not 1 <= len(manifest.get("description", "")) <= 255:
        found.append("the description has no or more than 255 characters")
    found += [f"keyword {word!r}" for word in manifest["keywords"] if not re.fullmatch(r"[a-z0-9 \-+]{1,50}", word)]
    known = {"name", "version", "description", "keywords", "authors", "headers", "frameworks", "platforms", "build"}
    found += [f"{key} is no field" for key in sorted(manifest.keys() - known)]
    build = manifest["build"]
    found += [f"no folder {build[key]}" for key in ("srcDir", "includeDir") if not (path.parent / build[key]).is_dir()]
    return found


def complaints_zephyr(folder: Path) -> list[str]:
    """Zephyr's schema of ``module.yml``: its keys, and that what they name is there."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    module = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    found = [
        f"{key} is no key" for key in sorted(module.keys() - {"name", "build", "tests", "samples", "boards", "blobs"})
    ]
    build = module["build"]
    known = {"cmake", "kconfig", "cmake-ext", "kconfig-ext", "depends", "settings"}
    found += [f"build: {key} is no key" for key in sorted(build.keys() - known)]
    if not (folder / build["cmake"] / "CMakeLists.txt").is_file():
        found.append("cmake names a folder without CMakeLists.txt")
    if not (folder / build["kconfig"]).is_file():
        found.append("kconfig names no file")
    symbols = re.findall(r"^config (\w+)$", (folder / build["kconfig"]).read_text(), re.MULTILINE)
    set_here = re.findall(r"^CONFIG_(\w+)=y$", (folder / "app/prj.conf").read_text(), re.MULTILINE)
    return found + [f"prj.conf does not set {symbol}" for symbol in symbols if symbol not in set_here]


def complaints_esp_idf(folder: Path) -> list[str]:
    """The component manager's rules of ``idf_component.yml``, and the files that ``idf_component_register`` names."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    (path,) = folder.glob("components/*/idf_component.yml")
    manifest = yaml.safe_load(path.read_text())
    found = [
        f"{key} is no field" for key in sorted(manifest.keys() - {"version", "description", "dependencies", "url"})
    ]
    if not SEMANTIC.fullmatch(manifest["version"]):
        found.append("the version is no semantic one")
    for lists in folder.rglob("CMakeLists.txt"):
        named = re.findall(r'"([\w./]+)"', lists.read_text()) if lists.parent != folder else []
        found += [f"{lists}: no {name}" for name in named if not (lists.parent / name).exists()]
    return found


def complaints_cmsis_pack(folder: Path) -> list[str]:
    """The order and the attributes that PACK.xsd requires, and packchk's rule that every file is in the pack."""
    (path,) = folder.glob("*.pdsc")
    root = ElementTree.parse(path).getroot()
    order = ["vendor", "name", "description", "url", "license", "releases", "components"]
    found = [] if [child.tag for child in root] == order else ["the elements stand in another order"]
    vendor, name = root.findtext("vendor"), root.findtext("name")
    if path.name != f"{vendor}.{name}.pdsc":
        found.append("the file's name is not vendor.name.pdsc")
    if not re.fullmatch(r"[\-_A-Za-z0-9]+", name or ""):
        found.append("the name has characters that a pack's must not have")
    (release,) = root.iter("release")
    if not SEMANTIC.fullmatch(release.get("version", "")) or not re.fullmatch(
        r"\d{4}-\d\d-\d\d", release.get("date", "")
    ):
        found.append("the release has no version or no date")
    for file in root.iter("file"):
        if file.get("category") not in ("include", "header", "source"):
            found.append(f"{file.get('name')}: no such category")
        if not (folder / file.get("name", "-")).exists():
            found.append(f"{file.get('name')} is not in the pack")
    listed = {file.get("name") for file in root.iter("file")}
    there = [entry.relative_to(folder).as_posix() for entry in folder.rglob("*.[ch]")]
    return found + [f"{entry} is not listed" for entry in there if entry not in listed]


RULES: dict[str, Callable[[Path], list[str]]] = {
    "arduino": complaints_arduino,
    "platformio": complaints_platformio,
    "zephyr": complaints_zephyr,
    "esp-idf": complaints_esp_idf,
    "cmsis-pack": complaints_cmsis_pack,
}
PLANTED = [
    ("arduino", "library.properties", f"version={VERSION}", "version=new", "the version is no semantic one"),
    ("arduino", "library.properties", "Data Processing", "Networks", "the category is none of the list"),
    ("arduino", "keywords.txt", "\t", " ", "wanted a word, one tab and its kind"),
    ("platformio", "lib/tvmgen_gesture/library.json", '"src"', '"source"', "no folder source"),
    ("platformio", "lib/tvmgen_gesture/library.json", "tinyml", "TinyML!", "keyword 'TinyML!'"),
    ("zephyr", "zephyr/module.yml", "cmake: zephyr", "cmake: cmake", "cmake names a folder without CMakeLists.txt"),
    ("zephyr", "app/prj.conf", "CONFIG_TVMGEN_GESTURE=y", "", "prj.conf does not set TVMGEN_GESTURE"),
    ("esp-idf", "main/CMakeLists.txt", "main.c", "application.c", "no application.c"),
    ("cmsis-pack", "uaccel.tvmgen_gesture.pdsc", 'category="source"', 'category="c"', "no such category"),
    ("cmsis-pack", "uaccel.tvmgen_gesture.pdsc", "uaccel_kernel.h", "kernel.h", "src/kernel.h is not in the pack"),
]


@pytest.mark.parametrize("accelerator", ["", "npu"])
@pytest.mark.parametrize("to", RULES)
def test_manifests_keep_the_rules(to: str, accelerator: str, tmp_path: Path) -> None:
    assert RULES[to](written(tmp_path, to, "residual", accelerator)) == []


@pytest.mark.parametrize(("to", "file", "right", "wrong", "complaint"), PLANTED)
def test_the_rules_see_what_breaks_them(
    to: str, file: str, right: str, wrong: str, complaint: str, tmp_path: Path
) -> None:
    folder = written(tmp_path, to)
    text = (folder / file).read_text()
    assert right in text
    (folder / file).write_text(text.replace(right, wrong))
    assert any(complaint in found for found in RULES[to](folder))


def test_platformio_s_own_schema_takes_both_libraries(tmp_path: Path) -> None:
    schema = pytest.importorskip("platformio.package.manifest.schema", reason="PlatformIO is not installed")
    parser = pytest.importorskip("platformio.package.manifest.parser", reason="PlatformIO is not installed")
    for to, path in (("platformio", "lib/tvmgen_gesture/library.json"), ("arduino", "library.properties")):
        data = parser.ManifestParserFactory.new_from_file(str(written(tmp_path / to, to) / path)).as_dict()
        assert schema.ManifestSchema().load_manifest(data)["name"] == "tvmgen_gesture"


def test_espressif_s_component_manager_takes_the_component(tmp_path: Path) -> None:
    manager = pytest.importorskip("idf_component_tools.manager", reason="idf-component-manager is not installed")
    folder = written(tmp_path, "esp-idf") / "components/tvmgen_gesture"
    assert str(manager.ManifestManager(folder, "tvmgen_gesture").load().version) == VERSION


def test_kconfiglib_reads_the_module(tmp_path: Path) -> None:
    kconfiglib = pytest.importorskip("kconfiglib", reason="kconfiglib is not installed")
    folder = written(tmp_path, "zephyr")
    kconfig = kconfiglib.Kconfig(str(folder / "zephyr/Kconfig"))
    kconfig.load_config(str(folder / "app/prj.conf"))
    assert kconfig.syms["TVMGEN_GESTURE"].str_value == "y"


def test_what_a_pack_lists_is_a_program(tmp_path: Path) -> None:
    """By the description alone, as a tool would: folders of headers and sources."""
    need_program("cc")
    folder = written(tmp_path, "cmsis-pack")
    files = list(ElementTree.parse(folder / "uaccel.tvmgen_gesture.pdsc").getroot().iter("file"))
    includes = [f"-I{folder / str(file.get('name'))}" for file in files if file.get("category") == "include"]
    sources = [folder / str(file.get("name")) for file in files if str(file.get("name")).endswith(".c")]
    command = ["cc", "-std=c99", *includes, *map(str, sources), "-lm", "-o", str(tmp_path / "example")]
    assert subprocess.run(command, check=False).returncode == 0
    assert subprocess.run([tmp_path / "example"], check=False).returncode == 0
