"""Files that were made to do harm: nothing in them runs, and each is refused in one line or read for what it is."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.models.exported import Net, exported, random, save, torch
from support.models.torch_archives import (
    CONSTANTS,
    EXPLOITS,
    PROGRAM,
    WEIGHTS,
    Records,
    changed,
    graph_of,
    inserted,
    read_records,
    write_records,
)
from support.run.command import Call, call_in
from uaccel.errors import ModelError
from uaccel.frontend.torch.importer import import_torch
from uaccel.frontend.torch.serialised import MisfitError, extent

WANTED = "give what torch.export.save(torch.export.export(model.eval(), inputs), path) writes"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """``relu_(linear(x))`` with a number for a weight of its own."""
    folder = tmp_path_factory.mktemp("good")
    program = exported(Net(lambda x, part: part(x).relu_(), torch.nn.Linear(4, 3)).eval(), [random(2, 4)])
    return read_records(save(program, folder / "good.pt2"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "evil.pt2"


def complaint(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        import_torch(path)
    text = str(caught.value)
    assert text.isprintable()
    return text.removeprefix("cannot import ").removeprefix(f"{path}").lstrip(": ")


def exploited(name: str, good: Records, path: Path) -> Path:
    """The file as this exploit leaves it; what must not be made."""
    records, canary = dict(good), path.with_name("canary")
    EXPLOITS[name][0](records, f"touch {canary}")
    write_records(path, records)
    return canary


@pytest.mark.parametrize("name", EXPLOITS)
def test_no_exploit_runs(name: str, good: Records, path: Path) -> None:
    canary, wanted = exploited(name, good, path), EXPLOITS[name][1]
    if wanted:
        assert complaint(path).startswith(wanted)
    else:
        assert import_torch(path).name == "evil"
    assert not canary.exists()


LOADER = """import sys, torch
program = torch.export.load(sys.argv[1])
program.module()(torch.zeros(2, 4))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPLOITS if name != "operator's name"])  # which PyTorch 2.13 cleans
def test_each_exploit_would_run(name: str, good: Records, path: Path) -> None:
    """Where PyTorch's own loader gets the file: or the test above would show nothing."""
    canary = exploited(name, good, path)
    subprocess.run([sys.executable, "-c", LOADER, path], capture_output=True, timeout=300, check=False)
    assert canary.exists()


def test_the_command_line_runs_nothing(good: Records, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call: Call = call_in(capfd)
    canary = exploited("size", good, path)
    done = call("explain", path, "--board", "host")
    assert done.status == 1
    assert done.complaint.startswith(f"{path} cannot be read: its graph: tensor 'linear': size 0 ")
    assert not canary.exists()


UNKNOWN = "is not one of an exported program of plain tensors, could hold any code and is not loaded"
RECORDS: dict[str, tuple[dict[str, bytes], str]] = {
    "compiled code": ({"data/aotinductor/model/x.so": b"\x7fELF"}, f"its record data/aotinductor/model/x.so {UNKNOWN}"),
    "executorch": ({"data/executorch/model.pte": b""}, f"its record data/executorch/model.pte {UNKNOWN}"),
    "Python": ({"code/model.py": b""}, f"its record code/model.py {UNKNOWN}"),
    "samples of another": ({"data/sample_inputs/zz.pt": b""}, f"its record data/sample_inputs/zz.pt {UNKNOWN}"),
    "another's weights": (
        {"data/weights/zz_weights_config.json": b"{}"},
        f"its record data/weights/zz_weights_config.json {UNKNOWN}",
    ),
    "custom object": ({"data/constants/custom_obj_0": b""}, f"its record data/constants/custom_obj_0 {UNKNOWN}"),
    "weight without a use": (
        {"data/weights/weight_9": b"1234"},
        "its record data/weights/weight_9 belongs to no weight",
    ),
    "constant without a use": (
        {"data/constants/tensor_9": b""},
        "its record data/constants/tensor_9 belongs to no weight",
    ),
    "big end first": ({"byteorder": b"big"}, "its record byteorder says b'big'"),
    "another version": ({"archive_version": b"1"}, "its record archive_version says b'1'"),
    "another format": ({"archive_format": b"pt3"}, "its record archive_format says b'pt3'"),
    "program": ({PROGRAM: b"[]"}, "cannot be read: its program is no object"),
    "not JSON": ({PROGRAM: b"{"}, "cannot be read: its program is no JSON"),
    "deep": ({PROGRAM: b"[" * 100_000}, "cannot be read: its program is no JSON"),
    "twice": (
        {WEIGHTS: b'{"config": {}, "config": {}}'},
        "cannot be read: its model_weights_config.json says one key twice",
    ),
    "no number": (
        {WEIGHTS: b'{"config": NaN}'},
        "cannot be read: its model_weights_config.json holds NaN, which is no JSON",
    ),
    "long number": (
        {WEIGHTS: b'{"config": %s}' % (b"9" * 5000)},
        "cannot be read: its model_weights_config.json holds a number of 5000 digits, which is no JSON",
    ),
    "empty": ({CONSTANTS: b""}, "cannot be read: its model_constants_config.json is no JSON"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_no_program_has(name: str, good: Records, path: Path) -> None:
    records, text = RECORDS[name]
    write_records(path, good | records)
    assert complaint(path) == f"{text}; {WANTED}"


def test_what_lies_beside_the_model_is_left_alone(good: Records, path: Path) -> None:
    write_records(path, good | {"extra/readme.txt": b"hello", "extra/evil.pkl": b"\x80\x04."})
    assert import_torch(path).name == "evil"


def _ints(*values: int) -> list[dict[str, int]]:
    return [{"as_int": value} for value in values]


WEIGHT = "cannot be read: its weight 'parts.0.weight'"
PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "past the end": ({"storage_offset": {"as_int": 1}}, f"{WEIGHT} is larger than its record"),
    "long strides": ({"strides": _ints(1 << 62, 1)}, f"{WEIGHT} is larger than its record"),
    "backwards": ({"strides": _ints(-4, 1)}, f"{WEIGHT} has no fixed place"),
    "before the record": ({"storage_offset": {"as_int": -1}}, f"{WEIGHT} has no fixed place"),
    "a bomb": (
        {"sizes": _ints(1 << 40, 4), "strides": _ints(0, 0)},
        f"{WEIGHT} has 17592186044416 bytes of the same few",
    ),
    "negative": ({"sizes": _ints(-3, 4)}, f"{WEIGHT} has a negative size"),
    "ranks": ({"strides": _ints(1)}, f"{WEIGHT} has 2 sizes and 1 strides"),
    "huge": ({"sizes": _ints(1 << 63, 4)}, f"{WEIGHT}: size 0 is no integer of 64 bits"),
    "truth": ({"sizes": [{"as_int": True}, {"as_int": 4}]}, f"{WEIGHT}: size 0 is no integer of 64 bits"),
    "type": ({"dtype": 99}, f"{WEIGHT} has the unknown type 99"),
    "wider": ({"dtype": 8}, f"{WEIGHT} is larger than its record"),
    "sparse": ({"layout": 1}, f"{WEIGHT} is no dense tensor"),
    "graphics card": (
        {"device": {"type": "cuda", "index": 0}},
        f"{WEIGHT} lies on the device 'cuda'; export on the CPU",
    ),
    "another record": ({"path_name": "weight_77"}, "cannot be read: its weight 'parts.0.weight' is missing"),
    "another folder": (
        {"path_name": "../constants/tensor_0"},
        'weight "parts.0.weight" is pickled, which can hold any code and is not loaded; '
        "export the model with plain tensors as weights",
    ),
    "unknown": ({"new": 1}, "cannot be read: its model_weights_config.json: 'parts.0.weight' has the unknown 'new'"),
}


@pytest.mark.parametrize("name", PLACES)
def test_weights_that_lie_elsewhere(name: str, good: Records, path: Path) -> None:
    change, text = PLACES[name]

    def apply(document: Any) -> None:
        entry = document["config"]["parts.0.weight"]
        for key, value in change.items():
            (entry["tensor_meta"] if key in entry["tensor_meta"] else entry)[key] = value

    write_records(path, good | {WEIGHTS: changed(good[WEIGHTS], apply)})
    assert complaint(path).removesuffix(f"; {WANTED}") == text


def _with(target: str, *arguments: Any) -> Callable[[Any], None]:
    """The program with this operator before all others."""
    return lambda document: inserted(document, target, *arguments)


def _relu(**change: Any) -> Callable[[Any], None]:
    """The operator ``relu_``, the second of the program, with other entries."""
    return lambda document: graph_of(document)["nodes"][1].update(change)


def _argument(value: Any, name: str = "self") -> dict[str, Any]:
    return {"inputs": [{"name": name, "arg": value, "kind": 1}]}


def _declared(**change: Any) -> Callable[[Any], None]:
    return lambda document: graph_of(document)["tensor_values"]["linear"].update(change)


def _first_input(value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        document["graph_module"]["signature"]["input_specs"][0] = value

    return change


def _condition(text: str) -> Callable[[Any], None]:
    return lambda document: document.update(guards_code=[text])


def _arithmetic(target: str, *values: int) -> Callable[[Any], None]:
    """A number that is worked out of numbers."""

    def change(document: Any) -> None:
        inserted(document, target, *((letter, {"as_int": value}) for letter, value in zip("ab", values, strict=True)))
        graph_of(document)["nodes"][0]["outputs"] = [{"as_sym_int": {"as_name": "made"}}]

    return change


X, NO_CONVERTER = (
    {"as_tensor": {"name": "x_0"}},
    "there is no converter for this operator; rewrite the layer with supported operators",
)
CONTROL: dict[str, Any] = {
    "as_graph": {
        "name": "g",
        "graph": {
            "inputs": [],
            "outputs": [],
            "nodes": [],
            "tensor_values": {},
            "sym_int_values": {},
            "sym_bool_values": {},
        },
    }
}


def _part_of(*inputs: Any) -> dict[str, Any]:
    """A program inside of an operator, of these inputs."""
    made = copy.deepcopy(CONTROL)
    made["as_graph"]["graph"]["inputs"] = list(inputs)
    return made


UNREAD = "cannot be read: its "
PROGRAMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a function of Python's": (
        _with("torch.os.system", ("", {"as_string": "true"})),
        f'1 unsupported: operator 0 torch.os.system ("made"): {NO_CONVERTER}',
    ),
    "a file's bytes": (
        _with("torch.ops.aten.from_file.default", ("filename", {"as_string": "/etc/passwd"})),
        f'1 unsupported: operator 0 aten.from_file.default ("made"): {NO_CONVERTER}',
    ),
    "what is no operator": (
        _with("torch.ops.aten.__class__.mro", ("self", X)),
        f'1 unsupported: operator 0 aten.__class__.mro ("made"): {NO_CONVERTER}',
    ),
    "another library": (
        _with("torch.ops.inductor.resize_storage_bytes_.default", ("self", X)),
        f'1 unsupported: operator 0 inductor.resize_storage_bytes_.default ("made"): {NO_CONVERTER}',
    ),
    "writing to an argument": (
        _with("torch.ops.aten.relu.out", ("self", X)),
        f'1 unsupported: operator 0 aten.relu.out ("made"): {NO_CONVERTER}',
    ),
    "sparse tensors": (
        _with("torch.ops.aten._sparse_coo_tensor_unsafe.default", ("indices", X)),
        f'1 unsupported: operator 0 aten._sparse_coo_tensor_unsafe.default ("made"): {NO_CONVERTER}',
    ),
    "extensions": (_relu(target="#ns:op"), f"{UNREAD}graph: operator 1 is '#ns:op', no operator's name"),
    "control flow": (
        _relu(target="torch.ops.higher_order.cond", **_argument(CONTROL)),
        '1 unsupported: operator 1 higher_order.cond ("relu_"): control flow cannot be compiled; export without it',
    ),
    "autocast": (
        _relu(target="torch.ops.higher_order.wrap_with_autocast", **_argument(CONTROL)),
        '1 unsupported: operator 1 higher_order.wrap_with_autocast ("relu_"): autocast cannot be compiled; '
        "export without it",
    ),
    "a part that takes what is no tensor": (
        _relu(target="torch.ops.higher_order.wrap_with_set_grad_enabled", **_argument(_part_of({"as_tensor": None}))),
        '1 unsupported: operator 1 higher_order.wrap_with_set_grad_enabled ("relu_"): its program has other inputs',
    ),
    "an operator as an argument": (
        _relu(**_argument({"as_operator": "torch.os.system"})),
        "1 unsupported: operator 1 aten.relu_.default (\"relu_\"): its argument 'self' is 'as_operator', which no "
        "operator on tensors takes",
    ),
    "another device": (
        _with("torch.ops.aten.clone.default", ("self", {"as_device": {"type": "cuda", "index": 0}})),
        "1 unsupported: operator 0 aten.clone.default (\"made\"): its argument 'self' lies on the device 'cuda'; "
        "export on the CPU",
    ),
    "what nothing makes": (
        _relu(**_argument({"as_tensor": {"name": "y"}})),
        "1 unsupported: operator 1 aten.relu_.default (\"relu_\"): its argument 'self' is 'y', which nothing before "
        "it makes",
    ),
    "what it makes itself": (
        _relu(**_argument({"as_tensor": {"name": "relu_"}})),
        "1 unsupported: operator 1 aten.relu_.default (\"relu_\"): its argument 'self' is 'relu_', which nothing "
        "before it makes",
    ),
    "an argument too many": (
        _relu(**_argument(X, "other")),
        "1 unsupported: operator 1 aten.relu_.default (\"relu_\"): it has the unknown argument 'other'",
    ),
    "no argument": (
        _relu(inputs=[]),
        '1 unsupported: operator 1 aten.relu_.default ("relu_"): PyTorch cannot compute it: aten::relu_() is missing '
        "value for argument 'self'. Declaration: aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    ),
    "a number for a tensor": (
        _relu(**_argument({"as_string": "a"})),
        '1 unsupported: operator 1 aten.relu_.default ("relu_"): PyTorch cannot compute it: aten::relu_() Expected a '
        "value of type 'Tensor' for argument 'self' but instead found type 'str'",
    ),
    "a name that is code": (_relu(name="a\nb"), f"{UNREAD}graph: operator 1 'a\\nb' is no name"),
    "a name that Python has": (_relu(name="lambda"), f"{UNREAD}graph: operator 1 'lambda' is no name"),
    "a name twice": (
        _relu(outputs=[{"as_tensor": {"name": "linear"}}]),
        "1 unsupported: operator 1 aten.relu_.default (\"relu_\"): the name 'linear' is taken",
    ),
    "results that it has not": (
        _relu(outputs=[{"as_tensors": [{"name": "a"}, {"name": "b"}]}]),
        '1 unsupported: operator 1 aten.relu_.default ("relu_"): it makes 1 results, the file names 2',
    ),
    "another shape": (
        _declared(sizes=_ints(2, 4)),
        '1 unsupported: operator 0 aten.linear.default ("linear"): the file says float32 [2,4], it makes float32 [2,3]',
    ),
    "another type": (
        _declared(dtype=8),
        '1 unsupported: operator 0 aten.linear.default ("linear"): the file says float64 [2,3], it makes float32 [2,3]',
    ),
    "a tensor of many dimensions": (
        _declared(sizes=_ints(*[1] * 65), strides=_ints(*[1] * 65)),
        f"{UNREAD}graph: tensor 'linear' has more than 16 dimensions",
    ),
    "a custom object": (
        _first_input({"custom_obj": {"arg": {"name": "o", "class_fqn": "a.b"}, "custom_obj_name": "o"}}),
        f"{UNREAD}input 0 is a 'custom_obj'; only tensors and numbers can be",
    ),
    "a token": (
        _first_input({"token": {"arg": {"name": "t"}}}),
        f"{UNREAD}input 0 is a 'token'; only tensors and numbers can be",
    ),
    "a weight that is missing": (
        _first_input({"parameter": {"arg": {"name": "p_parts_0_weight"}, "parameter_name": "other"}}),
        f"{UNREAD}weight 'other' is missing",
    ),
    "a format to come": (
        lambda document: document["schema_version"].update(major=9),
        f"{UNREAD}program has the schema 9, wanted 8; export it with PyTorch 2.13",
    ),
    "a field to come": (
        lambda document: document.update(hooks=["code"]),
        f"{UNREAD}program has the unknown 'hooks'",
    ),
    "a loop of operators": (
        lambda document: graph_of(document).update(nodes=[{}] * 50_001),
        f"{UNREAD}graph has more than 50000 operators",
    ),
    "a condition that is code": (
        _condition("().__class__.__base__.__subclasses__()"),
        f"{UNREAD}condition '().__class__.__base__.__subclasses__()' is not understood",
    ),
    "a condition that calls": (
        _condition("L['x'][0].size(exit())[0] == 2"),
        f"{UNREAD}condition \"L['x'][0].size(exit())[0] == 2\" is not understood",
    ),
    "a condition that fails": (
        _condition("L['x'][0].size()[0] % 2 == 1"),
        "does not take inputs of x_0:2,4: it was exported for \"L['x'][0].size()[0] % 2 == 1\"",
    ),
    "a number without end": (
        _arithmetic("_operator.mul", 1 << 62, 4),
        '1 unsupported: operator 0 _operator.mul ("made"): its result has more than 64 bits',
    ),
    "a power": (
        _arithmetic("_operator.pow", 9, 9),
        f'1 unsupported: operator 0 _operator.pow ("made"): {NO_CONVERTER}',
    ),
    "a quotient of nothing": (
        _arithmetic("_operator.floordiv", 1, 0),
        '1 unsupported: operator 0 _operator.floordiv ("made"): it cannot be computed: '
        "integer division or modulo by zero",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_pytorch_does_not_write(name: str, good: Records, path: Path) -> None:
    change, text = PROGRAMS[name]
    write_records(path, good | {PROGRAM: changed(good[PROGRAM], change)})
    assert complaint(path).removesuffix(f"; {WANTED}") == text


EXPRESSIONS = {
    "Symbol('s0', positive=True, integer=True)": True,
    "Add(Mul(Integer(-2), Symbol('s0', integer=True)), Integer(1))": True,
    "FloorDiv(Symbol('s77', positive=True, integer=True), Integer(2))": True,
    "Symbol('s0', evaluate=print)": False,
    "Symbol('s0').subs": False,
    "Symbol(exit())": False,
    "Integer(1) if exit() else Integer(2)": False,
    "Lambda(x, x)": False,
    "s0": False,
    "Pow(10, 10)\n": False,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_sizes_are_numbers_symbols_and_what_they_make(expression: str) -> None:
    value = {"as_expr": {"expr_str": expression, "hint": {"as_int": 2}}}
    if EXPRESSIONS[expression]:
        assert isinstance(extent(value, "size"), str)
    else:
        with pytest.raises(MisfitError, match=r"is no size$"):
            extent(value, "size")
