"""What the user wants of the partition, by option and by file; and what cannot be had, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.models.partitioned import accelerator, chain, engines, model_of, operation
from uaccel.accelerator import pattern
from uaccel.errors import AcceleratorError
from uaccel.partition import Subgraph, Wishes, partition, question_of, read_wishes
from uaccel.partition.claims import as_assigned
from uaccel.tvm_api import FunctionBlock, relax

OP = relax.op
A = accelerator("a", operation("tanh"), operation("exp"))
B = accelerator("b", operation("tanh"), operation("sin", check=lambda _: "its sines are broken"))
MODEL = chain("tanh", "exp", "tanh", "sin", "tanh")
PREFERRED = {"tanh_0": "a", "exp_1": "a", "tanh_2": "a", "sin_3": "cpu", "tanh_4": "a"}


def cut(begin: str, end: str, engine: str) -> Wishes:
    return Wishes(subgraphs=(Subgraph(begin, end, engine),))


def wish(pins: str = "", forbidden: str = "", choose: str = "") -> Wishes:
    """As on the command line, words apart."""
    return Wishes().and_also(choose, pins.split(), forbidden.split())


def decided(wishes: Wishes) -> dict[str, str]:
    return engines(partition(MODEL, [A, B], wishes))


def refusal(wishes: Wishes, model: Any = MODEL, asked: Any = (A, B)) -> str:
    with pytest.raises(AcceleratorError) as caught:
        partition(model, list(asked), wishes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("assigned", "taken"),
    [
        (("a", "a", "b"), [("a", 2), ("b", 1)]),
        (("a", "b", "b"), [("a", 1), ("b", 1), ("b", 1)]),
        (("b", "a", "cpu"), [("b", 1), ("a", 1)]),
        (("cpu", "cpu", "cpu"), []),
    ],
)
def test_each_operator_goes_where_a_plan_has_it(assigned: tuple[str, ...], taken: list[tuple[str, int]]) -> None:
    """Two at a time where one engine has both."""
    both = operation("tanh_exp", pattern("relax.exp", "relax.tanh"))
    asked = [
        accelerator("a", operation("tanh"), operation("exp"), both),
        accelerator("b", operation("tanh"), operation("exp")),
    ]
    question = question_of(chain("tanh", "exp", "tanh"), asked, Wishes())
    graph = question.graph
    operators = graph.operators(range(len(graph.bindings)))
    found = as_assigned(graph, question.claims, question.constraints, dict(zip(operators, assigned, strict=True)))
    ordered = sorted(found, key=lambda claim: claim.root)
    assert [(claim.accelerator.name, len(claim.members)) for claim in ordered] == taken


GRANTED = [
    (wish(), {}),
    (wish("tanh_2=b"), {"tanh_2": "b"}),
    (wish("tanh_2=cpu exp_1=cpu"), {"tanh_2": "cpu", "exp_1": "cpu"}),
    (wish("tanh_*=b"), {"tanh_0": "b", "tanh_2": "b", "tanh_4": "b"}),
    (wish("tanh_*=b tanh_4=cpu"), {"tanh_0": "b", "tanh_2": "b", "tanh_4": "cpu"}),
    (wish("*_[04]=b"), {"tanh_0": "b", "tanh_4": "b"}),
    (wish("", "tanh_?=a"), {"tanh_0": "b", "tanh_2": "b", "tanh_4": "b"}),
    (wish("", "tanh_0=a tanh_0=b"), {"tanh_0": "cpu"}),
    (wish("", "tanh_0=cpu"), {}),
    (cut("exp_1", "tanh_2", "cpu"), {"exp_1": "cpu", "tanh_2": "cpu"}),
    (
        Wishes(subgraphs=(Subgraph("exp_1", "sin_3", "cpu"),), pins=(("tanh_2", "b"),)),
        {"exp_1": "cpu", "tanh_2": "b"},
    ),
]


@pytest.mark.parametrize(("wishes", "other"), GRANTED, ids=range(len(GRANTED)))
def test_what_can_be_had(wishes: Wishes, other: dict[str, str]) -> None:
    assert decided(wishes) == PREFERRED | other


def test_reasons_say_that_it_was_the_user() -> None:
    done = partition(MODEL, [A, B], wish("tanh_0=b exp_1=cpu", "tanh_2=a"))
    by_layer = {decision.layer: decision for decision in done.decisions}
    assert by_layer["tanh_0"].reason == "operation 'tanh' of b: pinned to it"
    assert by_layer["exp_1"].reason == "pinned to the CPU"
    kept = "the user pinned it elsewhere or keeps it from this engine"
    assert [(r.accelerator, r.reason) for r in by_layer["tanh_0"].rejections] == [("a", kept)]
    assert [(r.accelerator, r.reason) for r in by_layer["tanh_2"].rejections] == [("a", kept)]


HAD_NOT = [
    (wish("tanh_9=a"), "pin 'tanh_9': no layer of the model is called so; did you mean 'tanh_4'?; "),
    (wish("", "conv*=a"), "forbid 'conv*': no layer of the model is called so; 'uaccel explain' lists them"),
    (wish("tanh_0=c"), "pin tanh_0: no engine 'c'; this compilation has: cpu, a, b"),
    (wish("", "tanh_0=cpuu"), "forbid tanh_0: no engine 'cpuu'; did you mean 'cpu'?; this compilation has: cpu, a, b"),
    (wish("tanh_0=a", "tanh_*=a"), "layer tanh_0 is pinned to a and kept from it; take one back"),
    (wish("sin_3=a"), "layer sin_3 cannot be pinned to a: no operation for sin"),
    (wish("sin_3=b"), "layer sin_3 cannot be pinned to b: its sines are broken"),
    (wish("*=b"), "layer exp_1 cannot be pinned to b: no operation for exp"),
    (wish("", "sin_3=cpu"), "layer sin_3 is kept from the CPU, and no accelerator takes it: a: no op"),
    (cut("exp_1", "sin_3", "a"), "layer sin_3 cannot be pinned to a: no operation for sin"),
    (cut("exp_1", "x", "a"), "subgraph 'x': no layer of the model is called so; "),
    (cut("tanh_*", "sin_3", "a"), "subgraph: 'tanh_*' is 3 layers, tanh_0 and tanh_2 am"),
    (cut("exp_1", "sin_3", "c"), "subgraph: no engine 'c'; this compilation has: cpu, a, b"),
    (cut("sin_3", "exp_1", "a"), "subgraph: no way leads from sin_3 to exp_1; name"),
]  # fmt: skip


@pytest.mark.parametrize(("wishes", "wanted"), HAD_NOT, ids=range(len(HAD_NOT)))
def test_what_cannot_be_had(wishes: Wishes, wanted: str) -> None:
    assert refusal(wishes).startswith(wanted)


def diamond(block: FunctionBlock, inputs: list[Any]) -> Any:
    """tanh -> (exp -> sin | cos) -> add; aside -> the model's output."""
    tanh = block.emit(OP.tanh(inputs[0]), "tanh")
    exp = block.emit(OP.exp(tanh), "exp")
    cos = block.emit(OP.cos(tanh), "cos")
    aside = block.emit(OP.sqrt(tanh), "aside")
    sin = block.emit(OP.sin(exp), "sin")
    add = block.emit(OP.add(sin, cos), "add")
    return relax.Tuple([add, aside])


def test_a_subgraph_is_what_lies_on_the_ways() -> None:
    names = ("tanh", "exp", "cos", "sin", "add")
    able = accelerator("a", *(operation(name) for name in (*names, "sqrt")))
    done = engines(partition(model_of(diamond), [able], cut("tanh", "add", "cpu")))
    assert done == {**dict.fromkeys(names, "cpu"), "aside": "a"}
    part = engines(partition(model_of(diamond), [able], cut("exp", "sin", "cpu")))
    assert [layer for layer, engine in part.items() if engine == "cpu"] == ["exp", "sin"]
    part = engines(partition(model_of(diamond), [able], cut("exp", "add", "cpu")))
    assert sorted(layer for layer, engine in part.items() if engine == "cpu") == ["add", "exp", "sin"]


FUSED = operation("fused", pattern("relax.sin", "relax.exp"))


def test_a_claim_over_several_holds_a_pin_on_each() -> None:
    able = accelerator("a", FUSED)
    for layer in ("sin", "exp"):
        done = partition(model_of(diamond), [able], wish(f"{layer}=a"))
        assert [name for name, engine in engines(done).items() if engine == "a"] == ["exp", "sin"]
    done = partition(model_of(diamond), [able], wish("exp=cpu"))
    assert set(engines(done).values()) == {"cpu"}
    text = refusal(wish("exp=cpu sin=a"), model_of(diamond), [able])
    assert text == (
        "layer sin cannot be pinned to a: what it would be computed together with is pinned or kept elsewhere"
    )


def test_a_pin_comes_before_a_preference() -> None:
    """The preferred accelerator's larger claim must leave what is pinned elsewhere."""
    first = accelerator("first", FUSED)
    second = accelerator("second", operation("exp"))
    assert engines(partition(model_of(diamond), [first, second], Wishes()))["exp"] == "first"
    done = engines(partition(model_of(diamond), [first, second], wish("exp=second")))
    assert (done["exp"], done["sin"]) == ("second", "cpu")


def test_a_name_in_full_is_no_pattern() -> None:
    model = model_of(lambda block, inputs: block.emit(OP.tanh(block.emit(OP.exp(inputs[0]), "a_b")), "ab"))
    able = accelerator("x", operation("tanh"), operation("exp"))
    assert engines(partition(model, [able], wish("ab=cpu"))) == {"a_b": "x", "ab": "cpu"}


FILE = """
choose = "cost"
[pin]
conv_2d_3 = "npu"
"softmax_*" = "cpu"
[forbid]
"depthwise_*" = ["npu", "dsp"]
add_1 = "dsp"
[[subgraph]]
from = "conv_2d_4"
to = "add_7"
engine = "conveyor"
"""


def test_a_file_of_wishes(tmp_path: Path) -> None:
    path = tmp_path / "engines.toml"
    path.write_text(FILE)
    assert read_wishes(path) == Wishes(
        "cost",
        (("conv_2d_3", "npu"), ("softmax_*", "cpu")),
        (("depthwise_*", "npu"), ("depthwise_*", "dsp"), ("add_1", "dsp")),
        (Subgraph("conv_2d_4", "add_7", "conveyor"),),
    )
    path.write_text("")
    assert read_wishes(path) == Wishes()
    both = read_wishes(path).and_also("cost", ["a=b"], ["c=d=e"])
    assert both == Wishes("cost", (("a", "b"),), (("c", "d=e"),))


def test_options_come_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "engines.toml"
    path.write_text('[pin]\n"tanh_*" = "b"\n')
    assert decided(read_wishes(path).and_also("", ["tanh_0=cpu"], []))["tanh_0"] == "cpu"
    assert decided(read_wishes(path))["tanh_0"] == "b"


BROKEN = [
    ("x = [", " is no TOML file: "),
    ("\xff", " is no TOML file: "),
    ("pins = 1", ": unknown key 'pins'; did you mean 'pin'?; known: choose, pin, forbid, subgraph"),
    ("choose = 'best'", ": choose is 'best'; wanted preference or cost"),
    ("pin = 'x'", ': [pin] is no table; wanted lines such as conv_2d_3 = "cpu"'),
    ("[pin]\nx = 5", ": [pin] x is 5; wanted an engine's name"),
    ("[pin]\nx = [5]", ": [pin] x is [5]; wanted an engine's name"),
    ("[pin]\nx = ['a', 'b']", ": [pin] x names 2 engines; wanted one"),
    ("[pin]\nx.y = 'a'", ": [pin.x] is a table; write a name with dots in quotation marks"),
    ("[forbid]\nx = true", ": [forbid] x is True; wanted an engine's name"),
    ("subgraph = 5", ": subgraph is no list of tables; write [[subgraph]]"),
    ("[subgraph]\nfrom = 'x'", ": subgraph is no list of tables; write [[subgraph]]"),
    ("[[subgraph]]\nfrom = 'x'", ': a [[subgraph]] takes from = "LAYER", to = "LAYER" and engine = "NAME"'),
    ("[[subgraph]]\nfrom = 'x'\nto = 5\nengine = 'a'", ': a [[subgraph]] takes from = "LAYER", to = "LAYER" and eng'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), BROKEN, ids=range(len(BROKEN)))
def test_a_file_that_makes_no_sense(text: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "engines.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(AcceleratorError) as caught:
        read_wishes(path)
    assert str(caught.value).startswith(f"{path}{wanted}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AcceleratorError, match=r"^cannot read .*/absent.toml: No such file or directory$"):
        read_wishes(tmp_path / "absent.toml")


@pytest.mark.parametrize("word", ["x", "x=", "=cpu", ""])
def test_an_option_that_makes_no_sense(word: str) -> None:
    for option, pins, forbidden in (("--pin", [word], []), ("--forbid", [], [word])):
        with pytest.raises(AcceleratorError) as caught:
            Wishes().and_also("", pins, forbidden)
        assert str(caught.value) == f"{option} {word}: wanted LAYER=ENGINE, for example {option} conv_2d_3=cpu"
