"""A client of microTVM's drives our server, from the archive to outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.device.generated import compiled
from support.models.networks import OWN
from support.run import original_client as original
from support.run.raw_server import TEMPLATE
from uaccel.session.session import Session
from uaccel.session.tensors import ramp
from uaccel.session.transport import Transport
from uaccel.tvm_api.executor import Executor


@pytest.fixture
def crt(tmp_path: Path) -> Path:
    """What TVM calls its standalone C runtime: nothing of it is needed, and nothing of it is taken."""
    folder = tmp_path / "standalone_crt"
    for name in ("include/tvm/runtime/crt/platform.h", "src/runtime/crt/common/ndarray.c"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("#error not for us\n")
    return folder


@pytest.fixture
def generated(tar: Path, crt: Path, tmp_path: Path) -> Iterator[original.Folder]:
    template = original.Folder(TEMPLATE, {"board": "host"})
    project = template.generate_project(tar, tmp_path / "project", crt)
    template.client.shut_down()
    yield project
    project.client.shut_down()


class OriginalTransport(Transport):
    """A session's line through such a client."""

    def __init__(self, project: original.Folder) -> None:
        self._client = project.client
        assert set(project.call("open_transport")) == {"timeouts"}

    def write(self, data: bytes, timeout: float = 10.0) -> None:
        self._client.write_transport(data, timeout)

    def read(self, timeout: float) -> bytes:
        try:
            return self._client.read_transport(4096, timeout)
        except original.IoTimeoutError:
            return b""

    def close(self) -> None:
        self._client.call("close_transport", {})


@pytest.mark.slow
def test_from_the_archive_to_outputs(generated: original.Folder, tar: Path, tmp_path: Path) -> None:
    assert generated.info["model_library_format_path"] == str(tmp_path / "project" / "model.tar")
    assert (tmp_path / "project" / "model.tar").read_bytes() == tar.read_bytes()
    assert not (tmp_path / "project" / "standalone_crt").exists()
    for _ in range(2):  # an original server could build but once
        assert generated.call("build") is None
    assert generated.call("flash") is None
    with Session(OriginalTransport(generated)) as session:
        values = ramp(session.model.inputs[0])
        outputs = session.run({session.model.inputs[0].name: values})
    (expected,) = Executor(compiled(OWN / "gesture.tflite").stages["import"]).run([values])
    np.testing.assert_array_equal(outputs["softmax_1"], np.asarray(expected).reshape(1, 6))


def until_silence(client: original.OriginalClient) -> None:
    """The boot frame, in whatever pieces it comes."""
    while client.read_transport(4096, 1.0):
        pass


@pytest.mark.slow
def test_errors_are_known_by_their_class(generated: original.Folder) -> None:
    client = generated.client
    with pytest.raises(original.TransportClosedError):
        client.read_transport(1, 0.1)
    generated.call("build")
    generated.call("open_transport")
    with pytest.raises(original.IoTimeoutError):
        until_silence(client)
    with pytest.raises(original.UnsupportedTVMVersionError):
        client.call("server_info_query", {"tvm_version": "0.7"})


def test_errors_without_a_class_say_what_is_wrong(generated: original.Folder, crt: Path, tmp_path: Path) -> None:
    with pytest.raises(original.JSONRPCError) as missing:
        generated.client.call("build", {})
    assert missing.value.code == -32602
    template = original.Folder(TEMPLATE, {})
    with pytest.raises(original.ServerError, match=r"cannot read archive .*none\.tar: No such file or directory"):
        template.generate_project(tmp_path / "none.tar", tmp_path / "p", crt)
    template.client.shut_down()
    (tmp_path / "project" / "model" / "codegen" / "host" / "src" / "tvmgen_gesture.c").write_text("#error no\n")
    with pytest.raises(original.ServerError, match=r"building the firmware failed .*#error no"):
        generated.call("build")


@pytest.mark.slow
def test_reading_without_a_timeout_waits_for_all_the_bytes(generated: original.Folder) -> None:
    generated.call("build")
    generated.call("open_transport")
    first = generated.client.read_transport(7, None)
    assert len(first) == 7


def test_another_board_than_the_archives(tar: Path, crt: Path, tmp_path: Path) -> None:
    template = original.Folder(TEMPLATE, {"board": "mps2_an386"})
    with pytest.raises(original.ServerError, match=r"is for board host, not mps2_an386; compile the model for that"):
        template.generate_project(tar, tmp_path / "p", crt)
    template.client.shut_down()
    assert not (tmp_path / "p").exists()


@pytest.mark.slow
def test_flags_may_be_words(generated: original.Folder) -> None:
    """As TVM's command line sent them."""
    generated.options["verbose"] = "False"
    generated.call("build")
