"""Templates that were written for microTVM: they find what they copy, and say all that they want at once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.run.command import Call

HERE = Path(__file__).parent
SUPPORT = HERE.parent / "support"
RAMP = b"-128 -128 -128 -128 127 -128 "
KINDS = ("crt", "arduino", "zephyr")


@pytest.fixture
def microtvm(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    shutil.copytree(HERE / "microtvm_template", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SUPPORT / "run" / "original_server.py", folder / "server.py")
    return folder


def options(kind: str, source: str) -> list[str]:
    return [word for pair in (f"kind={kind}", "board=board3", f"source={source}") for word in ("--option", pair)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_template_finds_the_runtime_that_it_knows(
    kind: str, microtvm: Path, tar: Path, tmp_path: Path, call: Call
) -> None:
    done = call("create", tar, tmp_path / "p", "--template", microtvm, *options(kind, "demo"))
    assert done.status == 0, done.err
    done = call("build", tmp_path / "p")
    assert done.status == 0, done.err
    ran = subprocess.run([tmp_path / "p" / "build" / "main"], capture_output=True, check=True)
    assert ran.stdout == RAMP


def test_what_needs_the_rpc_server_does_not_compile(microtvm: Path, tar: Path, tmp_path: Path, call: Call) -> None:
    assert call("create", tar, tmp_path / "p", "--template", microtvm, *options("zephyr", "host_driven")).status == 0
    project = tmp_path / "p"
    subprocess.run(["cmake", "-S", project, "-B", project / "b"], capture_output=True, check=True)
    built = subprocess.run(["cmake", "--build", project / "b"], capture_output=True, text=True)
    assert built.returncode != 0
    assert "microTVM's RPC server is not there: leave this application away" in built.stdout + built.stderr


def test_another_runtime(microtvm: Path, tar: Path, tmp_path: Path, call: Call) -> None:
    """The user's own, such as TVM's."""
    crt = tmp_path / "crt"
    for item in ("include/tvm.h", "src/tvm.c", "CMakeLists.txt"):
        (crt / item).parent.mkdir(parents=True, exist_ok=True)
        (crt / item).write_text("# mine\n")
    words = ("--template", microtvm, *options("crt", "demo"))
    assert call("create", tar, tmp_path / "p", *words, "--standalone-crt", crt).status == 0
    assert (tmp_path / "p" / "crt" / "CMakeLists.txt").read_text() == "# mine\n"
    assert not (tmp_path / "p" / "crt" / "include" / "uaccel_model.h").exists()
    done = call("create", tar, tmp_path / "q", *words, "--standalone-crt", tmp_path / "none")
    assert done.complaint == (
        f"--standalone-crt {tmp_path / 'none'} is no folder; name one with TVM's C runtime, or leave it away"
    )


def test_all_that_is_missing_is_said_at_once(microtvm: Path, tar: Path, tmp_path: Path, call: Call) -> None:
    done = call("create", tar, tmp_path / "p", "--template", microtvm)
    boards = ", ".join(f"board{i}" for i in range(8))
    assert done.complaint == (
        f"Project API server of {microtvm} wants options 'kind' (one of crt, arduino, zephyr), "
        f"'board' (one of {boards}, ...), 'source' for generate_project; "
        "give --option kind=VALUE --option board=VALUE --option source=VALUE"
    )
    done = call("create", tar, tmp_path / "p", "--template", microtvm, "--option", "kind=crt", "--option", "source=a")
    assert f"wants option 'board' for generate_project (one of {boards}, ...): The board.; give" in done.complaint
