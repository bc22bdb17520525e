"""Every rule of JSON-RPC and of the Project API, line by line, against our server as any Python starts it."""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.run.raw_server import TEMPLATE, RawServer, children, wait_for_end
from uaccel.util.files import data_dir

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR, SERVER_ERROR = -32603, -32000
CODES = (PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, SERVER_ERROR)
METHODS: dict[str, dict[str, Any]] = {
    "server_info_query": {"tvm_version": "0.18.0"},
    "generate_project": {
        "model_library_format_path": "model.tar",
        "standalone_crt_dir": ".",
        "project_dir": "project",
        "options": {},
    },
    "build": {"options": {}},
    "flash": {"options": {}},
    "open_transport": {"options": {}},
    "close_transport": {},
    "read_transport": {"n": 1, "timeout_sec": 0},
    "write_transport": {"data": "", "timeout_sec": 0},
}
OF_A_TYPE = {
    "string": ("tvm_version", "model_library_format_path", "standalone_crt_dir", "project_dir", "data"),
    "integer": ("n",),
    "number or null": ("timeout_sec",),
    "object": ("options",),
}
VALUES = {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "null": None, "array": [], "object": {}}
FITS = {
    "string": {"string"},
    "integer": {"integer"},
    "number or null": {"integer", "number", "null"},
    "object": {"object"},
}


def refused(server: RawServer, line: bytes | str) -> dict[str, Any]:
    """The error of a line whose id nobody can know."""
    server.send(line)
    reply = server.reply()
    assert set(reply) == {"jsonrpc", "id", "error"}
    assert reply["id"] is None
    return dict(reply["error"])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"foobar",
        b"{",
        b'{"jsonrpc": "2.0"',
        b"{'jsonrpc': '2.0'}",
        b'{"jsonrpc": "2.0", "method": "build", "params": {"options": {}}, "id": NaN}',
        b'{"a": Infinity}',
        b'"\xff\xfe"',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b"1" * 10_000,
        b'{} {"jsonrpc": "2.0"}',
    ],
    ids=lambda line: repr(line[:20]),
)
def test_what_is_no_json_is_answered_and_the_next_line_served(line: bytes, template: RawServer) -> None:
    error = refused(template, line)
    assert error["code"] in (PARSE_ERROR, INVALID_REQUEST if line[:1] == b"1" else PARSE_ERROR)
    assert template.result("server_info_query", tvm_version="0.18.0")["platform_name"] == "uaccel"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (1, "request: want object; got 1"),
        ([], "request: want object; got []"),
        ("text", 'request: want object; got "text"'),
        (None, "request: want object; got null"),
        ([{"jsonrpc": "2.0", "method": "build", "id": 1}], "request: want object; got ["),
        ({}, 'request["jsonrpc"]: want "2.0"; got null'),
        ({"jsonrpc": 1.0}, 'request["jsonrpc"]: want "2.0"; got 1.0'),
        ({"jsonrpc": 2.0}, 'request["jsonrpc"]: want "2.0"; got 2.0'),
        ({"jsonrpc": "2.0"}, 'request["method"]: want string; got null'),
        ({"jsonrpc": "2.0", "method": 123}, 'request["method"]: want string; got 123'),
        ({"jsonrpc": "2.0", "method": "bar!"}, 'request["method"]: want letters, digits and underscores; got "bar!"'),
        ({"jsonrpc": "2.0", "method": ""}, 'request["method"]: want letters, digits and underscores; got ""'),
        ({"jsonrpc": "2.0", "method": "bar", "params": 123}, 'request["params"]: want object; got 123'),
        ({"jsonrpc": "2.0", "method": "bar", "params": None}, 'request["params"]: want object; got null'),
        ({"jsonrpc": "2.0", "method": "build", "params": [{}], "id": 1}, 'request["params"]: want object; got [{}]'),
        ({"jsonrpc": "2.0", "method": "b", "params": {}, "id": {}}, 'request["id"]: want string, number or null; got'),
        ({"jsonrpc": "2.0", "method": "b", "params": {}, "id": [1]}, 'request["id"]: want string, number or null; got'),
        ({"jsonrpc": "2.0", "method": "b", "params": {}, "id": True}, 'request["id"]: want string, number or null;'),
    ],
    ids=lambda value: None if isinstance(value, str) and "want" in value else json.dumps(value)[:40],
)
def test_json_that_is_no_request_is_refused_with_the_reason(request_: Any, words: str, template: RawServer) -> None:
    error = refused(template, json.dumps(request_))
    assert error["code"] == INVALID_REQUEST
    assert error["message"].startswith(words)
    assert error["data"] is None


def test_a_request_that_is_long_is_quoted_in_part(template: RawServer) -> None:
    error = refused(template, json.dumps(["x" * 5000]))
    assert len(error["message"]) < 200


@pytest.mark.parametrize("method", ["nonsense", "Build", "_require_project", "__init__", "methods", "serve"])
def test_an_unknown_method(method: str, template: RawServer) -> None:
    error = template.error(method, options={})
    assert error["code"] == METHOD_NOT_FOUND
    assert error["message"] == f"{method}: no such method; there are {', '.join(METHODS)}"


@pytest.mark.parametrize("number", [0, -1, 7, 1.5, "abc", "", None, 1 << 70])
def test_the_id_comes_back_as_it_was(number: Any, template: RawServer) -> None:
    template.send(json.dumps({"jsonrpc": "2.0", "method": "close_transport", "params": {}, "id": number}))
    assert template.reply() == {"jsonrpc": "2.0", "id": number, "result": None}


def test_parameters_may_be_left_out_where_there_are_none(template: RawServer) -> None:
    template.send('{"jsonrpc": "2.0", "method": "close_transport", "id": 1}')
    assert template.reply()["result"] is None


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "method": "close_transport", "params": {}}',
        '{"jsonrpc": "2.0", "method": "close_transport"}',
        '{"jsonrpc": "2.0", "method": "nonsense", "params": {}}',
        '{"jsonrpc": "2.0", "method": "build", "params": {}}',
    ],
)
def test_a_notification_wants_no_reply_and_gets_none(line: str, template: RawServer) -> None:
    template.send(line)
    assert template.is_silent()
    assert template.result("close_transport") is None


@pytest.mark.parametrize(("method", "parameter"), [(m, p) for m, params in METHODS.items() for p in params])
def test_each_parameter_must_be_given(method: str, parameter: str, template: RawServer) -> None:
    params = {name: value for name, value in METHODS[method].items() if name != parameter}
    error = template.error(method, **params)
    assert error == {"code": INVALID_PARAMS, "message": f"{method}: parameter {parameter} not given", "data": None}


@pytest.mark.parametrize("method", METHODS)
def test_no_further_parameter_is_taken(method: str, template: RawServer) -> None:
    error = template.error(method, **METHODS[method], invalid_name=None, other=1)
    assert error["code"] == INVALID_PARAMS
    assert error["message"] == f"{method}: extra parameters: invalid_name, other"


@pytest.mark.parametrize(
    ("method", "parameter", "wanted", "seen"),
    [
        (method, parameter, wanted, seen)
        for method, params in METHODS.items()
        for parameter in params
        for wanted, names in OF_A_TYPE.items()
        if parameter in names
        for seen in VALUES
        if seen not in FITS[wanted]
    ],
)
def test_each_parameter_has_its_type(method: str, parameter: str, wanted: str, seen: str, template: RawServer) -> None:
    error = template.error(method, **{**METHODS[method], parameter: VALUES[seen]})
    assert error["code"] == INVALID_PARAMS
    shown = "number" if seen == "integer" else seen
    assert error["message"] == f"{method}: parameter {parameter}: want {wanted}, got {shown}"


def test_numbers_that_are_none(template: RawServer) -> None:
    error = template.error("read_transport", n=0, timeout_sec=0)
    assert error["message"] == "read_transport: parameter n: want at least 1, got 0"
    error = template.error("read_transport", n=-5, timeout_sec=0)
    assert error["code"] == INVALID_PARAMS
    template.send('{"jsonrpc":"2.0","method":"read_transport","params":{"n":1,"timeout_sec":1e999},"id":1}')
    assert template.reply()["error"]["message"] == "read_transport: parameter timeout_sec: want a finite number"


def test_times_before_now(running: RawServer) -> None:
    running.result("open_transport", options={})
    for method, params in (("read_transport", {"n": 1}), ("write_transport", {"data": ""})):
        error = running.error(method, **params, timeout_sec=-0.5)
        assert error["code"] == INVALID_PARAMS
        assert error["message"] == f"{method}: parameter timeout_sec: want a time from 0 on, got -0.5"


@pytest.mark.parametrize("parameter", ["model_library_format_path", "standalone_crt_dir", "project_dir"])
@pytest.mark.parametrize("path", ["", "a\0b"])
def test_paths_that_are_none(parameter: str, path: str, tar: Path, tmp_path: Path, template: RawServer) -> None:
    params = METHODS["generate_project"] | {"project_dir": str(tmp_path / "p"), "model_library_format_path": str(tar)}
    error = template.error("generate_project", **{**params, parameter: path})
    assert error["code"] == INVALID_PARAMS
    assert error["message"] == f"generate_project: parameter {parameter}: want a path, got {path!r}"
    assert list(tmp_path.iterdir()) == []


def test_the_answer_to_server_info_query_of_a_template(template: RawServer) -> None:
    info = template.result("server_info_query", tvm_version="0.18.0")
    options = info.pop("project_options")
    assert info == {
        "platform_name": "uaccel",
        "is_template": True,
        "model_library_format_path": None,
        "protocol_version": 1,
    }
    for option in options:
        assert list(option) == ["name", "choices", "default", "type", "required", "optional", "help"]
        assert option["type"] in ("str", "bool")
        assert option["required"] is None
        assert set(option["optional"]) <= set(METHODS)
        assert option["optional"]
        assert option["help"].endswith(".")
    assert [option["name"] for option in options if "generate_project" in option["optional"]] == [
        "board",
        "board_files",
    ]


def test_the_answer_to_server_info_query_of_a_project(running: RawServer, project: Path) -> None:
    info = running.result("server_info_query", tvm_version="0.18.0")
    assert info["is_template"] is False
    assert info["model_library_format_path"] == str(project / "model.tar")
    assert Path(info["model_library_format_path"]).is_file()


@pytest.mark.parametrize("version", ["0.8.0", "0.18.0", "0.27.0.post1", "0.11.dev135+g1234", "v0.9.0", "1.0"])
def test_versions_of_tvm_that_speak_this_protocol(version: str, template: RawServer) -> None:
    assert template.result("server_info_query", tvm_version=version)["protocol_version"] == 1


@pytest.mark.parametrize(
    ("version", "detail"),
    [
        ("0.7.0", "TVM 0.7.0 is older than 0.8, the first with this protocol"),
        ("", "'' is no version of TVM; wanted a text such as 0.18.0"),
        ("latest", "'latest' is no version of TVM; wanted a text such as 0.18.0"),
    ],
)
def test_versions_that_do_not_cross_the_wire_by_name(version: str, detail: str, template: RawServer) -> None:
    error = template.error("server_info_query", tvm_version=version)
    assert error == {"code": SERVER_ERROR, "message": "UnsupportedTVMVersionError", "data": {"detail": detail}}


@pytest.mark.parametrize("method", ["generate_project", "build", "flash", "open_transport"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bord": "host"}, "no option is called 'bord'; there are board, "),
        ({"board": 7}, "option board: want str, got 7"),
        ({"verbose": "perhaps"}, "option verbose: want bool, got 'perhaps'"),
        ({"verbose": 1}, "option verbose: want bool, got 1"),
        ({"board_files": "a\0b"}, r"option board_files: want text without NUL and surrogates, got 'a\x00b'"),
        ({"run_arguments": "\ud800"}, r"option run_arguments: want text without NUL and surrogates, got '\ud800'"),
        ({"port": "\0"}, r"option port: want text without NUL and surrogates, got '\x00'"),
        ({"run": "fast"}, "option run: want one of host, qemu, rtl, serial; got 'fast'"),
    ],
)
def test_options_are_checked(method: str, options: dict[str, Any], words: str, template: RawServer) -> None:
    error = template.error(method, **{**METHODS[method], "options": options})
    assert error["code"] == INVALID_PARAMS
    assert error["message"].startswith(f"{method}: {words}")


def test_what_other_templates_ask_for_may_be_left_unset(tar: Path, tmp_path: Path, template: RawServer) -> None:
    """As a client sends that knows the options of another template."""
    params = {"model_library_format_path": str(tar), "project_dir": str(tmp_path / "p")}
    options = {"cmsis_path": None, "warning_as_error": False, "verbose": False}
    template.result("generate_project", **params, standalone_crt_dir=str(data_dir("firmware")), options=options)
    assert (tmp_path / "p" / "model.tar").is_file()


def test_a_folder_that_is_not_for_a_board_is_not_read(tar: Path, tmp_path: Path, template: RawServer) -> None:
    params = {"model_library_format_path": str(tar), "project_dir": str(tmp_path / "p")}
    for folder, words in (
        ("/etc", " is not for a board; wanted board/ and firmware/"),
        (tmp_path, "no board/board.json"),
    ):
        options = {"board_files": str(folder)}
        error = template.error(
            "generate_project", **params, standalone_crt_dir=str(data_dir("firmware")), options=options
        )
        assert error["code"] == INVALID_PARAMS
        assert error["message"].startswith(f"generate_project: option board_files: {folder}: ")
        assert words in error["message"]


@pytest.mark.parametrize(("kind", "words"), [("pipe", "it is a pipe or a device"), ("folder", "Is a directory")])
def test_an_archive_that_is_no_file(kind: str, words: str, tmp_path: Path, template: RawServer) -> None:
    place = tmp_path / "model.tar"
    os.mkfifo(place) if kind == "pipe" else place.mkdir()
    given = {"model_library_format_path": str(place), "project_dir": str(tmp_path / "p"), "standalone_crt_dir": "."}
    error = template.error("generate_project", **given, options={})
    assert (error["code"], error["message"].startswith(f"cannot read archive {place}: {words}")) == (SERVER_ERROR, True)


@pytest.mark.parametrize("text", ['"', "'", "a 'b", "\\"])
def test_words_for_a_program_are_words_of_a_shell(text: str, project: Path) -> None:
    with RawServer(project) as server:
        error = server.error("open_transport", options={"run_arguments": text})
    assert error["code"] == INVALID_PARAMS
    assert error["message"].startswith("open_transport: option run_arguments: want words as in a shell; No ")


@pytest.mark.parametrize("method", ["build", "flash", "open_transport"])
def test_a_template_has_no_firmware(method: str, template: RawServer) -> None:
    error = template.error(method, options={})
    assert error["code"] == SERVER_ERROR
    assert f"is a template; {method} is for a project" in error["message"]


def test_a_project_makes_no_projects(running: RawServer, tar: Path, tmp_path: Path) -> None:
    params = METHODS["generate_project"] | {"project_dir": str(tmp_path / "p"), "model_library_format_path": str(tar)}
    error = running.error("generate_project", **params)
    assert error["code"] == SERVER_ERROR
    assert error["message"].endswith("is a project already; generate_project is for a template")


def test_transport_calls_need_an_open_transport(running: RawServer) -> None:
    assert running.result("close_transport") is None
    for method in ("read_transport", "write_transport"):
        error = running.error(method, **METHODS[method])
        assert (error["code"], error["message"]) == (SERVER_ERROR, "TransportClosedError")
        assert error["data"] == {"detail": "the transport is not open; call open_transport"}


def test_data_must_be_base85(running: RawServer) -> None:
    running.result("open_transport", options={})
    for text in ("with blanks ", "é", '"quotes"', "~~~~~"):
        error = running.error("write_transport", data=text, timeout_sec=1)
        assert error["code"] == INVALID_PARAMS
        assert error["message"].startswith("write_transport: parameter data: want base85 text; ")


def test_a_transport_carries_every_byte(running: RawServer) -> None:
    """The firmware answers what is no frame with an error frame: what matters here is that bytes go and come."""
    timeouts = running.result("open_transport", options={})["timeouts"]
    assert list(timeouts) == [
        "session_start_retry_timeout_sec",
        "session_start_timeout_sec",
        "session_established_timeout_sec",
    ]
    assert all(isinstance(value, float) and value > 0 for value in timeouts.values())
    boot = base64.b85decode(running.result("read_transport", n=4096, timeout_sec=5)["data"])
    assert boot.count(b"\0") >= 1
    data = base64.b85encode(bytes(range(256))).decode()
    assert running.result("write_transport", data=data, timeout_sec=5) is None
    assert running.result("close_transport") is None


def test_silence_is_an_io_timeout(running: RawServer) -> None:
    running.result("open_transport", options={})
    while "result" in running.ask("read_transport", n=4096, timeout_sec=1):
        pass  # the boot frame, in whatever pieces
    for seconds in (0, 0.1):
        error = running.error("read_transport", n=1, timeout_sec=seconds)
        assert (error["code"], error["message"]) == (SERVER_ERROR, "IoTimeoutError")
        assert error["data"] == {"detail": f"firmware sent nothing within {seconds:g} s"}


def test_a_transport_opens_again(running: RawServer) -> None:
    for _ in range(2):
        running.result("open_transport", options={})
        assert running.result("read_transport", n=1, timeout_sec=5)["data"]


def test_pipelined_requests_are_answered_in_order(template: RawServer) -> None:
    lines = [json.dumps({"jsonrpc": "2.0", "method": "close_transport", "params": {}, "id": i}) for i in range(50)]
    template.send("\n".join(lines))
    assert [template.reply()["id"] for _ in range(50)] == list(range(50))


def test_the_last_line_needs_no_newline() -> None:
    with RawServer() as server:
        os.write(server.input, b'{"jsonrpc": "2.0", "method": "close_transport", "params": {}, "id": 5}')
        os.close(server.input)
        server.input = -1
        assert server.reply()["id"] == 5
        assert server.process.wait(10) == 0


def test_the_server_ends_with_its_client() -> None:
    with RawServer() as server:
        server.result("close_transport")
        server.hang_up()
        assert server.process.wait(10) == 0
        out, err = server.process.communicate()
        assert (out, err) == (b"", b"")


def test_it_prints_nothing_but_what_it_is_asked_to(project: Path) -> None:
    with RawServer(project, "--debug") as server:
        server.result("build", options={})
        server.hang_up()
        out, err = server.process.communicate(timeout=10)
    assert out == b""
    assert b"request b'" in err
    assert b"reply b'" in err


@pytest.mark.parametrize("arguments", [[], ["--read-fd", "3"], ["--read-fd", "x", "--write-fd", "4"]])
def test_how_it_is_started(arguments: list[str]) -> None:
    command = [sys.executable, str(TEMPLATE / "microtvm_api_server.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert "--read-fd" in done.stderr


def test_a_signal_ends_it_too(project: Path) -> None:
    with RawServer(project) as server:
        server.result("open_transport", options={})
        (firmware,) = children(server.process.pid)
        server.process.terminate()
        assert server.process.wait(10) == 0
        wait_for_end(firmware)


def mutated(line: bytes, generator: random.Random) -> bytes:
    changed = bytearray(line)
    for _ in range(generator.choice([1, 1, 2, 4])):
        at = generator.randrange(len(changed))
        what = generator.choice(["flip", "drop", "double", "brace"])
        if what == "drop" and len(changed) > 1:
            del changed[at]
        elif what == "double":
            changed[at:at] = changed[at : at + generator.randrange(1, 20)]
        elif what == "brace":
            changed[at] = generator.choice(b'{}[]":,\\ 0')
        else:
            changed[at] ^= 1 << generator.randrange(8)
    return bytes(changed).replace(b"\n", b" ")


def test_any_line_is_answered(template: RawServer) -> None:
    """Or is a notification; and no line keeps the next one from being served."""
    silent = 0
    for seed in range(3000):
        generator = random.Random(seed)
        method = generator.choice(
            ["server_info_query", "close_transport", "build", "read_transport", "write_transport"]
        )
        line = json.dumps({"jsonrpc": "2.0", "method": method, "params": METHODS[method], "id": seed}).encode()
        template.send(mutated(line, generator))
        template.send('{"jsonrpc": "2.0", "method": "close_transport", "id": "next"}')
        reply = template.reply()
        if reply["id"] == "next":
            silent += 1
            continue
        if "error" in reply:
            assert reply["error"]["code"] in CODES, (seed, reply)
            assert reply["error"]["code"] != INTERNAL_ERROR, (seed, reply)
            assert "\n" not in reply["error"]["message"]
        assert template.reply()["id"] == "next"
    assert 0 < silent < 300
