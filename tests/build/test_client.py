"""Our client: an original server's ways, and whatever else a server may do. Every call ends, and no child is left."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from support.run.raw_server import TEMPLATE, is_alive
from uaccel.build import project_api
from uaccel.build.project_api import (
    IoTimeoutError,
    ProjectApiError,
    ProjectServer,
    ServerLimits,
    TransportClosedError,
    UnsupportedTVMVersionError,
)
from uaccel.errors import DeviceError, ToolError, UaccelError
from uaccel.util.files import data_dir

SUPPORT = Path(__file__).parents[1] / "support"
THIRD_PARTY = Path(__file__).with_name("original_template")
QUICK = ServerLimits(query=5, generate=60, build=60, flash=5, open=5, close=5, slack=5)
PRELUDE = """
import base64, json, os, signal, sys, time
read_fd, write_fd = (int(sys.argv[sys.argv.index(name) + 1]) for name in ("--read-fd", "--write-fd"))
requests = os.fdopen(read_fd)
info = {"platform_name": "odd", "is_template": False, "model_library_format_path": "model.tar",
        "project_options": [], "protocol_version": 1}

def put(text):
    os.write(write_fd, text if isinstance(text, bytes) else text.encode())

def reply(request, result=None, **fields):
    put(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result, **fields}) + "\\n")

def fail(request, code, message, data=None):
    error = {"code": code, "message": message, "data": data}
    put(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}) + "\\n")

def take():
    line = requests.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
"""


@pytest.fixture
def third_party(tmp_path: Path) -> Path:
    """The template of :mod:`support.run.original_server`."""
    folder = tmp_path / "template"
    shutil.copytree(THIRD_PARTY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SUPPORT / "run" / "original_server.py", folder / "server.py")
    return folder


def odd(folder: Path, body: str, *, meets: bool = True) -> Path:
    """A server that does this, once it has been asked who it is."""
    folder.mkdir(exist_ok=True)
    greeting = "reply(take(), info)\n" if meets else ""
    (folder / "microtvm_api_server.py").write_text(PRELUDE + greeting + textwrap.dedent(body))
    return folder


def generate(template: Path, tar: Path, project: Path, **options: Any) -> Path:
    with ProjectServer(template, options, limits=QUICK) as server:
        server.generate_project(tar, project, data_dir("firmware"))
    return project


# ---------------------------------------------------------------------------------------- an original server


def test_what_it_says_of_itself(third_party: Path) -> None:
    with ProjectServer(third_party) as server:
        assert (server.info.platform_name, server.info.is_template, server.is_ours) == ("third party", True, False)
        assert server.info.model_library_format_path is None
        names = [option.name for option in server.info.project_options]
        assert names == ["project_type", "verbose", "compiler", "waits", "retries"]
        assert server.info.project_options[0].choices == ("session", "nothing")
        assert server.info.project_options[0].required == ("generate_project",)
        assert server.info.project_options[2].default == "cc"
        pid = server.pid
    assert not is_alive(pid)


@pytest.mark.parametrize("waits", [False, True])
def test_from_the_archive_to_bytes(waits: bool, third_party: Path, tar: Path, tmp_path: Path) -> None:
    project = generate(third_party, tar, tmp_path / "project", project_type="session")
    with ProjectServer(project, {"waits": waits}, limits=QUICK) as server:
        assert server.info.model_library_format_path == project / "src" / "model" / "model.tar"
        server.build()
        server.flash()
        assert server.open_transport() == {
            "session_start_retry_timeout_sec": 0,
            "session_start_timeout_sec": 0,
            "session_established_timeout_sec": 0,
        }
        assert server.read_transport(4096, 1.0)
        server.write_transport(b"\0\1\2\3\0", 1.0)
        server.close_transport()
        with pytest.raises(TransportClosedError, match="TransportClosedError"):
            server.read_transport(1, 0.1)
        assert server.pid


def test_its_errors_in_one_line(third_party: Path, tar: Path, tmp_path: Path) -> None:
    where = f"Project API server of {third_party}: "
    with pytest.raises(ToolError) as wrong:
        generate(third_party, tar, tmp_path / "project", project_type="nothing")
    assert str(wrong.value) == (
        f"{where}calling method generate_project (ValueError: there is no project of type nothing)"
    )
    project = generate(third_party, tar, tmp_path / "project", project_type="session")
    with ProjectServer(project, {"compiler": "false"}) as server, pytest.raises(ToolError) as failed:
        server.build()
    assert "calling method build (subprocess.CalledProcessError: Command '['false', " in str(failed.value)
    assert "\n" not in str(failed.value)
    with ProjectServer(project) as server:
        with pytest.raises(ToolError, match="FileExistsError"):
            server.build()
        with pytest.raises(DeviceError, match=r"calling method open_transport \(FileNotFoundError: "):
            server.open_transport()


def test_an_error_whose_name_it_has_wrong(third_party: Path, tar: Path, tmp_path: Path) -> None:
    """Once the firmware has ended, its write finds no class of that name."""
    project = generate(third_party, tar, tmp_path / "project", project_type="session")
    (project / "build").mkdir()
    app = project / "build" / "app"
    app.write_text("#!/bin/sh\nexec <&-\necho closed\nsleep 20\n")
    app.chmod(0o755)
    with ProjectServer(project) as server:
        server.open_transport()
        assert server.read_transport(10, 5.0) == b"closed\n"
        with pytest.raises(DeviceError, match=r"calling method write_transport \(NameError: name 'base' is not"):
            server.write_transport(b"x", 1.0)


def test_a_timeout_has_its_name(third_party: Path, tar: Path, tmp_path: Path) -> None:
    project = generate(third_party, tar, tmp_path / "project", project_type="session")
    (project / "build").mkdir()
    app = project / "build" / "app"
    app.write_text("#!/bin/sh\nexec sleep 20\n")
    app.chmod(0o755)
    with ProjectServer(project) as server:
        server.open_transport()
        with pytest.raises(IoTimeoutError):
            server.read_transport(1, 0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {},
            "wants option 'project_type' for generate_project (one of session, nothing): Type of project to generate.",
        ),
        ({"project_type": "demo"}, "option 'project_type' is 'demo'; wanted one of session, nothing"),
        ({"projekt_type": "session"}, "has no option 'projekt_type'; did you mean 'project_type'?"),
        ({"project_type": "session", "verbose": "loud"}, "option 'verbose' is 'loud'; wanted a value of type bool"),
        ({"project_type": "session", "retries": "few"}, "option 'retries' is 'few'; wanted a value of type int"),
    ],
)
def test_options_are_checked_before_they_are_sent(
    options: dict[str, str], words: str, third_party: Path, tar: Path, tmp_path: Path
) -> None:
    with pytest.raises(UaccelError) as error:
        generate(third_party, tar, tmp_path / "project", **options)
    assert words in str(error.value)
    assert not (tmp_path / "project").exists()


def test_words_become_what_the_option_is(tmp_path: Path) -> None:
    """As from a command line: and what is not given is sent all the same, with its default."""
    rows = [("flag", "bool", None), ("count", "int", 3), ("text", "str", "a"), ("old", None, None)]
    body = f"""
    names = ("name", "type", "default")
    info["project_options"] = [dict(zip(names, row)) for row in {rows!r}]
    reply(take(), info)
    request = take()
    fail(request, -32000, json.dumps(request["params"]["options"]))
    """
    folder = odd(tmp_path / "odd", body, meets=False)
    with ProjectServer(folder, {"flag": "Yes", "count": "0x10"}) as server, pytest.raises(ToolError) as sent:
        server.build()
    assert str(sent.value).endswith('{"flag": true, "count": 16, "text": "a", "old": null}')


def test_a_launcher_is_started_instead(third_party: Path) -> None:
    launcher = third_party / "launch_microtvm_api_server.sh"
    launcher.write_text('#!/bin/sh\necho "$0 $1" > launched\nexec python3 "$1" "$2" "$3" "$4" "$5"\n')
    with pytest.raises(ProjectApiError, match=r"launch_microtvm_api_server\.sh: Permission denied"):
        ProjectServer(third_party)
    launcher.chmod(0o755)
    with ProjectServer(third_party) as server:
        assert server.info.platform_name == "third party"
    launched = (third_party / "launched").read_text()
    assert launched == f"{launcher} {third_party / 'microtvm_api_server.py'}\n"


def test_a_folder_without_a_server(tmp_path: Path) -> None:
    with pytest.raises(ProjectApiError) as error:
        ProjectServer(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} is no project and no template: "
        "it has neither microtvm_api_server.py nor launch_microtvm_api_server.sh"
    )


# ---------------------------------------------------------------------------------------- servers that misbehave


def misbehaves(folder: Path, call: str = "build", limits: ServerLimits = QUICK) -> str:
    """What our client says of it; its process is gone afterwards."""
    pids: list[int] = []
    popen = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = popen(*arguments, **options)
        if str(folder) in f"{arguments} {options}":
            pids.append(process.pid)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", start)
        with pytest.raises(UaccelError) as error, ProjectServer(folder, limits=limits) as server:
            getattr(server, call)()
    (pid,) = pids
    assert not is_alive(pid)
    message = str(error.value)
    assert "\n" not in message
    return message.replace(str(folder), "DIR")


SOON = ServerLimits(query=5, build=0.5)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("time.sleep(60)", "did not answer build within 0.5 s and was ended"),
        ("take(); time.sleep(60)", "did not answer build within 0.5 s and was ended"),
        ("take(); put('{'); time.sleep(60)", "did not answer build within 0.5 s and was ended"),
        ("take(); print('stuck here', file=sys.stderr, flush=True); time.sleep(60)", "was ended: stuck here"),
        ("print('waiting', flush=True); time.sleep(60)", "and was ended: waiting"),
    ],
    ids=["deaf", "silent", "half a reply", "last words", "last words on stdout"],
)
def test_a_server_that_does_not_answer(body: str, words: str, tmp_path: Path) -> None:
    begin = time.monotonic()
    message = misbehaves(odd(tmp_path / "odd", body), limits=SOON)
    assert message.startswith("Project API server of DIR ")
    assert message.endswith(words)
    assert time.monotonic() - begin < 20


def test_a_server_that_will_not_end(tmp_path: Path) -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntake()\nwhile True: time.sleep(1)"
    assert misbehaves(odd(tmp_path / "odd", body), limits=SOON).endswith("within 0.5 s and was ended")


def test_what_a_server_has_started_ends_with_it(tmp_path: Path) -> None:
    body = """
    import subprocess
    child = subprocess.Popen(["sleep", "60"])
    open("pid", "w").write(str(child.pid))
    take()
    time.sleep(60)
    """
    folder = odd(tmp_path / "odd", body)
    misbehaves(folder, limits=SOON)
    deadline = time.monotonic() + 10
    while is_alive(int((folder / "pid").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit(3)", "ended in the middle of build (exit status 3)"),
        ("take(); sys.exit('out of luck')", "ended in the middle of build (exit status 1): out of luck"),
        ("take(); put('{'); sys.exit(4)", "ended in the middle of build (exit status 4)"),
        ("take(); os.kill(os.getpid(), 9)", "ended in the middle of build (signal 9)"),
        ("take(); raise ValueError('no')", "ended in the middle of build (exit status 1): ValueError: no"),
    ],
)
def test_a_server_that_ends(body: str, words: str, tmp_path: Path) -> None:
    assert misbehaves(odd(tmp_path / "odd", body)) == f"Project API server of DIR {words}"


def test_a_server_that_lets_go_of_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_api, "PATIENCE", 0.3)
    message = misbehaves(odd(tmp_path / "odd", "take(); os.close(write_fd); time.sleep(60)"))
    assert message == "Project API server of DIR closed its line in the middle of build"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("put('hello\\n')", "the reply is not JSON: 'hello'"),
        ("put('\\n')", "the reply is not JSON: ''"),
        ("put(b'\\xff\\xfe\\n')", "the reply is not JSON: '\ufffd\ufffd'"),
        ("put('[' * 100000 + '\\n')", "the reply is not JSON: '" + "[" * 80 + "'"),
        ("put('17\\n')", "the reply is not one of JSON-RPC 2.0: '17'"),
        ("put('{}\\n')", "the reply is not one of JSON-RPC 2.0: '{}'"),
        ("reply(request, jsonrpc='1.0')", "the reply is not one of JSON-RPC 2.0: "),
        ("put(json.dumps({'jsonrpc': '2.0', 'id': 2}) + '\\n')", "the reply is not one of JSON-RPC 2.0: "),
        ("reply({'id': 1})", "the reply has id 1, wanted 2"),
        ("reply({'id': '2'})", "the reply has id '2', wanted 2"),
        ('put(\'{"jsonrpc": "2.0", "id": 2, "error": 5}\\n\')', "the server sent an error that is none: 5"),
        ("fail(request, -32000, 7)", "the server sent an error that is none: {'code': -32000, 'message': 7, 'data'"),
    ],
)
def test_a_server_that_does_not_keep_to_the_protocol(body: str, words: str, tmp_path: Path) -> None:
    message = misbehaves(odd(tmp_path / "odd", f"request = take()\n{body}\ntake()"))
    assert message.startswith(f"Project API server of DIR: build: {words}")


def test_a_reply_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_api, "LONGEST_REPLY", 1 << 20)
    message = misbehaves(odd(tmp_path / "odd", "take()\nwhile True: put('x' * 65536)"))
    assert message == "Project API server of DIR: build: the reply is longer than 1048576 bytes"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("info['protocol_version'] = 2", " speaks version 2 of the protocol; wanted 1"),
        ("info['protocol_version'] = None", " speaks version None of the protocol; wanted 1"),
        ("del info['protocol_version']", ": server_info_query: the answer is not as the protocol wants it (KeyError"),
        ("del info['is_template']", ": server_info_query: the answer is not as the protocol wants it (KeyError"),
        ("info['project_options'] = [5]", ": server_info_query: the answer is not as the protocol wants it ("),
        ("info['project_options'] = [{}]", ": server_info_query: the answer is not as the protocol wants it (KeyError"),
        ("info = 5", ": server_info_query: the answer is not as the protocol wants it (TypeError"),
        ("info = None", ": server_info_query: the answer is not as the protocol wants it (TypeError"),
    ],
)
def test_a_server_of_another_protocol(change: str, words: str, tmp_path: Path) -> None:
    message = misbehaves(odd(tmp_path / "odd", f"{change}\nreply(take(), info)\ntake()", meets=False))
    assert message.startswith(f"Project API server of DIR{words}")


def test_a_server_for_another_tvm(tmp_path: Path) -> None:
    body = 'fail(take(), -32000, "UnsupportedTVMVersionError", {"detail": "TVM 0.27 is\\ntoo new"})\ntake()'
    with pytest.raises(UnsupportedTVMVersionError, match=r"TVM 0\.27 is too new"):
        ProjectServer(odd(tmp_path / "odd", body, meets=False))


def test_a_server_that_takes_nothing(tmp_path: Path) -> None:
    """A request that is longer than the pipe."""
    limits = ServerLimits(query=5, slack=0.5)
    with ProjectServer(odd(tmp_path / "odd", "time.sleep(60)"), limits=limits) as server:
        with pytest.raises(ProjectApiError, match=r"did not answer write_transport within 0\.5 s"):
            server.write_transport(bytes(1 << 20), 0)
        with pytest.raises(ProjectApiError, match="has ended; start another"):
            server.write_transport(b"", 0)


@pytest.mark.parametrize("data", ["5", "None", "{}", "{'data': 5}", "{'data': 'not base 85'}", "{'data': 'é'}"])
def test_data_that_is_none(data: str, tmp_path: Path) -> None:
    folder = odd(tmp_path / "odd", f"reply(take(), {data})\ntake()")
    with ProjectServer(folder) as server, pytest.raises(ProjectApiError, match="read_transport: data is not base85"):
        server.read_transport(1, 1.0)


@pytest.mark.parametrize(
    ("method", "code", "message", "data", "kind", "words"),
    [
        ("build", -32000, "it is broken", None, ToolError, "it is broken"),
        ("build", -32000, "two\nlines", None, ToolError, "two lines"),
        (
            "build",
            -32000,
            "calling method build",
            {"traceback": "T\n  F\nE: x\n"},
            ToolError,
            "calling method build (E: x)",
        ),
        ("build", -32603, "bug", {"traceback": "bug"}, ToolError, "bug"),
        ("build", 17, "a code of its own", None, ToolError, "a code of its own"),
        ("build", -32000, "no board", {"kind": "device"}, DeviceError, "no board"),
        ("flash", -32000, "no board", None, DeviceError, "no board"),
        ("flash", -32000, "no tool", {"kind": "tool"}, ToolError, "no tool"),
        ("flash", -32000, "IoTimeoutError", None, IoTimeoutError, "flash: IoTimeoutError"),
        ("flash", -32000, "TransportClosedError", {"detail": "gone"}, TransportClosedError, "gone"),
        ("flash", -32603, "TransportClosedError", None, DeviceError, "TransportClosedError"),
    ],
)
def test_errors_say_whose_fault_it_is(
    method: str, code: int, message: str, data: Any, kind: type[UaccelError], words: str, tmp_path: Path
) -> None:
    folder = odd(tmp_path / "odd", f"fail(take(), {code}, {message!r}, {data!r})\ntake()")
    with ProjectServer(folder) as server, pytest.raises(kind) as error:
        getattr(server, method)()
    assert type(error.value) is kind
    assert str(error.value) == f"Project API server of {folder}: {words}"


def test_what_it_prints_is_kept_off_our_streams(third_party: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = odd(third_party.parent / "odd", "print('noise'); reply(take())\ntake()")
    with ProjectServer(folder) as server:
        server.build()
    assert capfd.readouterr() == ("", "")
    with ProjectServer(folder, show=True) as server:
        server.build()
    assert capfd.readouterr() == ("", "noise\n")


def test_a_template_is_not_built_and_a_project_not_made(third_party: Path, project: Path, tar: Path) -> None:
    with ProjectServer(TEMPLATE) as server:
        for call in (server.build, server.flash, server.open_transport):
            with pytest.raises(ProjectApiError, match=r"it is a template; make a project with 'uaccel create'"):
                call()
    with ProjectServer(project) as server, pytest.raises(ProjectApiError, match=r"is a project already"):
        server.generate_project(tar, project.parent / "other", project)


def test_closing_twice_is_once(third_party: Path) -> None:
    server = ProjectServer(third_party)
    pid = server.pid
    server.close()
    server.close()
    assert not is_alive(pid)
