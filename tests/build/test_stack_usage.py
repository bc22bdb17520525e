"""The call graph that GCC writes, and what follows from it: the deepest stack, and whose function is whose."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.build.stack_usage import INDIRECT, Function, Graph, deepest, own_functions, pointed_in, read_graph

WRITTEN = r"""graph: { title: "/x/model.c"
node: { title: "/x/model.c:layer_a" label: "layer_a\n/x/model.c:3:19\n80 bytes (static)" }
node: { title: "/x/model.c:layer_b.part.0" label: "layer_b\n/x/model.c:9:19\n16 bytes (dynamic,bounded)" }
edge: { sourcename: "/x/model.c:layer_b.part.0" targetname: "memset" label: "/x/model.c:11:5" }
node: { title: "memset" label: "memset\n<built-in>" shape : ellipse }
node: { title: "loose" label: "loose\n/x/model.c:14:5\n24 bytes (dynamic)" }
node: { title: "model_run" label: "model_run\n/x/model.c:20:9\n24 bytes (static)" }
edge: { sourcename: "model_run" targetname: "/x/model.c:layer_a" label: "/x/model.c:21:5" }
edge: { sourcename: "model_run" targetname: "/x/model.c:layer_b.part.0" label: "/x/model.c:22:5" }
}
"""


def test_what_gcc_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.ci").write_text(WRITTEN)
    graph = read_graph([tmp_path / "model.ci"])
    assert graph == {
        "/x/model.c:layer_a": Function("layer_a", 80),
        "/x/model.c:layer_b.part.0": Function("layer_b.part.0", 16, ["memset"]),
        "loose": Function("loose", None),
        "model_run": Function("model_run", 24, ["/x/model.c:layer_a", "/x/model.c:layer_b.part.0"]),
    }
    assert deepest(graph, "model_run", lambda name: {"memset": 100}[name]) == 24 + 16 + 100


def graph_of(**functions: tuple[int | None, tuple[str, ...]]) -> Graph:
    return {name: Function(name, frame, list(calls)) for name, (frame, calls) in functions.items()}


@pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        pytest.param(graph_of(run=(8, ())), 8, id="a leaf"),
        pytest.param(graph_of(run=(8, ("a", "b")), a=(100, ()), b=(20, ("c",)), c=(90, ())), 118, id="the deepest"),
        pytest.param(graph_of(run=(8, ("a", "a", "b")), a=(1, ("b",)), b=(2, ())), 11, id="called twice"),
        pytest.param(graph_of(run=(8, ("library",))), 40, id="of a library"),
        pytest.param(graph_of(run=(8, ("unheard_of",))), None, id="of nowhere"),
        pytest.param(graph_of(run=(8, (INDIRECT,))), None, id="by pointer"),
        pytest.param(graph_of(run=(8, ("a",)), a=(None, ())), None, id="a frame of any size"),
        pytest.param(graph_of(run=(8, ("a",)), a=(1, ("b",)), b=(1, ("a",))), None, id="recursion"),
        pytest.param(graph_of(run=(8, ("run",))), None, id="itself"),
        pytest.param(graph_of(other=(8, ())), None, id="not there"),
    ],
)
def test_the_deepest_stack(graph: Graph, wanted: int | None) -> None:
    assert deepest(graph, "run", lambda name: 32 if name == "library" else None) == wanted


def test_pointers_within_a_file_reach_what_nothing_calls_by_name() -> None:
    loops = {"/x/m.c:loop": Function("loop", 50), "/x/m.c:other": Function("other", 70)}
    named = {"/x/m.c:named": Function("named", 500), "/x/n.c:far": Function("far", 900)}
    run = {"/x/m.c:run": Function("run", 8, [INDIRECT]), "start": Function("start", 1, ["/x/m.c:run", "/x/m.c:named"])}
    graph = loops | named | run
    assert deepest(graph, "/x/m.c:run", lambda name: None, pointed_in(graph, "m.c")) == 78
    assert deepest(graph, "/x/m.c:run", lambda name: None, pointed_in(graph, "n.c")) is None


def test_a_shared_function_is_nobodys() -> None:
    graph = graph_of(a=(1, ("helper",)), helper=(1, ()), b=(1, ("shared",)), c=(1, ("shared",)), shared=(1, ()))
    roots = {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert own_functions(graph, roots) == {"a": ["a", "helper"], "b": None, "c": None}
