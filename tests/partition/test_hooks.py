"""Passes of an accelerator's designers: where they run, what they may change, and what is said when they go wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from support.models.partitioned import (
    accelerator,
    assert_same_meaning,
    chain,
    compile_on,
    engines,
    model_of,
    operation,
    run,
)
from uaccel.accelerator import Constant, Input, Lowered, Output, Region, Scratch, library_call
from uaccel.errors import AcceleratorError
from uaccel.lower.program import Program
from uaccel.ops.kernel import Definition
from uaccel.runner.verify import Reference, changed_meaning
from uaccel.tvm_api import FunctionBlock, is_call, rebuild_main, relax, tvm

OP = relax.op


def sines_as_cosines(module: Any) -> Any:
    """sin(x) -> negative(negative(sin(x))): more operators, the same bits."""
    return rebuild_main(
        module, lambda _, e: OP.negative(OP.negative(e)) if is_call(e) and e.op.name == "relax.sin" else e
    )


@dataclass(frozen=True)
class Named:
    """A pass as uaccel's own are: with a name and a call."""

    name: str = "of the vendor"

    def __call__(self, module: Any) -> Any:
        return sines_as_cosines(module)


@tvm.transform.module_pass(opt_level=0, name="TvmPass")  # type: ignore[untyped-decorator]  # TVM has no types
def tvm_pass(module: Any, _context: Any) -> Any:
    return sines_as_cosines(module)


@pytest.mark.parametrize("change", [sines_as_cosines, Named(), tvm_pass], ids=["function", "class", "TVM's"])
def test_before_partition(change: Any) -> None:
    model = chain("tanh", "sin")
    asked = [accelerator("a", operation("negative"), before_partition=[change]), accelerator("b", operation("sin"))]
    compiled = compile_on(model, asked)
    assert list(engines(compiled.partitioned).values()) == ["cpu", "b", "a", "a"]
    assert list(compiled.stages) == ["import", "before a", "partition", "layouts"]
    assert_same_meaning(model, compiled.stages)


@pytest.mark.parametrize("change", [sines_as_cosines, Named(), tvm_pass], ids=["function", "class", "TVM's"])
def test_on_a_region(change: Any) -> None:
    """The accelerator is given what the pass made; the layers that it covers stay the model's."""
    seen: list[Region] = []

    def lower(region: Region) -> Any:
        seen.append(region)
        return run(region)

    model = chain("tanh", "sin")
    compiled = compile_on(model, [accelerator("a", operation("sin", lower=lower), on_region=[change])])
    (region,) = seen
    assert [call.op for call in region.calls] == ["relax.sin", "relax.negative", "relax.negative"]
    assert [covered.name for covered in compiled.program.layers[1].covers] == ["sin_1"]
    assert len(region.interior) == 2
    assert_same_meaning(model, compiled.stages)


def test_a_pass_that_changes_the_meaning_is_told_with_its_file() -> None:
    def wrong(module: Any) -> Any:
        return rebuild_main(module, lambda _, e: OP.negative(e) if is_call(e) and e.op.name == "relax.sin" else e)

    asked = accelerator("a", operation("negative"), before_partition=[wrong])
    compiled = compile_on(chain("tanh", "sin"), [asked])
    sample = [np.ones((2, 3), np.float32)]
    told = changed_meaning(compiled, Reference.of(compiled), [sample])
    assert told.startswith(
        f'a pass of {asked.folder}/accelerator.py changes what the model means: sample 0, output "y0"'
    )


def test_on_each_region_after_its_expansion() -> None:
    def expand(expansion: Any, region: Region, inputs: list[Any]) -> Any:
        return OP.negative(expansion.engine(lambda x: OP.negative(x), [expansion.cpu(OP.sin(inputs[0]), "s")], "part"))

    counted = []

    def count(module: Any) -> Any:
        counted.append([binding.value.op.name for binding in module["main"].body.blocks[0].bindings[:1]])
        return module

    compile_on(chain("sin", "sin"), [accelerator("a", operation("sin", expand=expand), on_region=[count])])
    assert counted == [["relax.negative"]] * 2


def test_after_lowering() -> None:
    def slower(program: Program) -> Program:
        """Renames a layer, which is one of the things that a description is free to do."""
        return replace(program, layers=tuple(replace(layer, reason="changed") for layer in program.layers))

    compiled = compile_on(chain("tanh"), [accelerator("a", operation("tanh"), after_lowering=[slower])])
    assert [layer.reason for layer in compiled.program.layers] == ["changed"]


def to_half(module: Any) -> Any:
    """Another type of result."""
    return model_of(lambda block, inputs: block.emit(OP.astype(OP.tanh(inputs[0]), "float16"), "h")).module


def with_function(module: Any) -> Any:
    return relax.transform.LegalizeOps()(module)


def without_outputs(program: Program) -> Program:
    return replace(program, outputs=())


def fail(_: Any) -> Any:
    raise RuntimeError("a line\nand another")


def leave(_: Any) -> Any:
    raise SystemExit(3)


HOOKS = ("before_partition", "on_region", "after_lowering")
MODULES = ("before_partition", "on_region")
REFUSED = [
    *((hook, fail, f"{hook} pass 'fail' failed: RuntimeError: a line") for hook in HOOKS),
    *((hook, leave, f"{hook} pass 'leave' failed: SystemExit: 3") for hook in HOOKS),
    *((hook, print, f"{hook} pass 'print' returned NoneType; wanted the module") for hook in MODULES),
    *((hook, to_half, f"{hook} pass 'to_half' made ") for hook in MODULES),
    *((hook, with_function, f"{hook} pass 'with_function' left functions main, tir_tanh") for hook in MODULES),
    ("after_lowering", print, "after_lowering pass 'print' returned NoneType; wanted the program"),
    ("after_lowering", without_outputs, "after_lowering pass 'without_outputs' changed the model's inputs or outputs"),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "change", "wanted"), REFUSED, ids=[f"{r[0]}-{r[1].__name__}" for r in REFUSED])
def test_a_pass_that_goes_wrong(hook: str, change: Any, wanted: str) -> None:
    hooks: dict[str, Any] = {hook: [change]}
    with pytest.raises(AcceleratorError) as caught:
        compile_on(chain("tanh"), [accelerator("a", operation("tanh"), **hooks)])
    text = str(caught.value)
    assert text.startswith(f"/home/vendor/a: {wanted}")
    assert "\n" not in text


def test_constants_are_packed_by_the_vendor() -> None:
    """What lies in flash is what the description made of the weights, once, when it compiled."""
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)

    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        return block.emit(OP.matmul(inputs[0], relax.const(weights)), "matmul")

    def lower(region: Region) -> Any:
        packed = np.ascontiguousarray(region.operands[1].value.T)
        return library_call("tiny_multiply", Input(0), Constant("packed", packed), Output(0), np.int64(3), 4)

    compiled = compile_on(model_of(body), [accelerator("a", operation("matmul", lower=lower))])
    (array,) = [array for array in compiled.generated.arrays if array.for_device]
    np.testing.assert_array_equal(array.data, weights.T)
    text = "".join(compiled.generated.sources.values())
    assert "tiny_multiply(" in text
    assert ", 3, 4)" in " ".join(text.split())


def call(*arguments: Any) -> Any:
    return library_call("tiny_run", *arguments)


MADE = [
    ((), "returned no calls; wanted library_call(...)s, one at least"),
    ((5,), "returned no calls; wanted library_call(...)s, one at least"),
    (call(Input(1)), "returned tiny_run with input 1, and the region has 1"),
    (call(Output(-1)), "returned tiny_run with output -1, and the region has 1"),
    (call(Input(0, 24)), "returned tiny_run with input 0 from byte 24, which it has not"),
    (call(Scratch(0)), "returned tiny_run with scratch memory from byte 0, and asks for 0 bytes"),
    (Lowered((call(Scratch(8)),), 8), "returned tiny_run with scratch memory from byte 8, and asks for 8 bytes"),
    (Lowered((call(),), -1), "returned scratch=-1; wanted a number of bytes"),
    (Lowered((call(),), "8"), "returned scratch='8'; wanted a number of bytes"),  # type: ignore[arg-type]
    (Lowered((call(),), source="int x;"), "returned source='int x;'; wanted Definition(name, C, headers)"),  # type: ignore[arg-type]
    (Lowered((call(),), artefacts={"../x": ""}), "returned an artefact called '../x'; wanted a plain file name"),
    (Lowered((call(),), artefacts={"region.json": ""}), "returned an artefact called 'region.json'; wanted a plain"),
    (Lowered((call(),), artefacts={"x": 5}), "returned artefact x as int; wanted text or bytes"),  # type: ignore[dict-item]
]  # fmt: skip


@pytest.mark.parametrize(("made", "wanted"), MADE, ids=range(len(MADE)))
def test_calls_that_make_no_sense(made: Any, wanted: str) -> None:
    with pytest.raises(AcceleratorError) as caught:
        compile_on(chain("tanh"), [accelerator("a", operation("tanh", lower=lambda _: made))])
    assert str(caught.value).startswith(f"/home/vendor/a: lower of operation 'tanh', given tanh_0, {wanted}")


ARGUMENTS = [
    (("a b",), "library_call: 'a b' is no name of a C function"),
    ((5,), "library_call: 5 is no name of a C function"),
    (("f", None), "argument 1 of f is NoneType; wanted Input(i), Output(i), Constant(role, array), Scratch(of"),
    (("f", 1, "x"), "argument 2 of f is str; wanted "),
    (("f", Constant("w", [1, 2])), "argument 1 of f: Constant('w') holds no numpy array"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "wanted"), ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_that_make_no_sense(arguments: Any, wanted: str) -> None:
    with pytest.raises(TypeError) as caught:
        library_call(*arguments)
    assert str(caught.value).startswith(wanted)


def test_numbers_are_pythons() -> None:
    made = library_call("f", np.int8(-3), np.float32(0.5), True, np.bool_(False), 7, 1.5)
    assert made.arguments == (-3, 0.5, 1, 0, 7, 1.5)
    assert [type(value) for value in made.arguments] == [int, float, int, int, int, float]


def test_a_source_of_the_vendors_is_part_of_the_model() -> None:
    definition = Definition("helper", "static int32_t helper(void)\n{\n    return 0;\n}\n", ("stdint.h",))
    asked = accelerator("a", operation("tanh", lower=lambda _: Lowered((library_call("helper"),), source=definition)))
    text = "".join(compile_on(chain("tanh"), [asked]).generated.sources.values())
    assert text.count(definition.source) == 1
