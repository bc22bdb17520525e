"""Each stage of the compiler against the one before: the same inputs, the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.device.hostlib import HostModel
from support.oracle.exactness import assert_same
from support.oracle.oracle import Array
from uaccel.pipeline import Compiled
from uaccel.tvm_api.executor import Executor

Run = Callable[[Sequence[Array]], list[Array]]


def assert_stages_agree(compiled: Compiled, inputs: Sequence[Sequence[Array]]) -> list[str]:
    """Execute the module of every stage on TVM, and at last the generated C; the names of the stages."""
    stages: dict[str, Run] = {name: Executor(module).run for name, module in compiled.stages.items()}
    host = HostModel(compiled)
    stages["generated C"] = lambda values: host(*values)
    for number, values in enumerate(inputs):
        before = ""
        expected: list[Array] = []
        for name, run in stages.items():
            outputs = run(values)
            if before:
                for i, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
                    assert_same(got, wanted.reshape(got.shape), f"run {number}, output {i} of {name} after {before}")
            before, expected = name, outputs
    return list(stages)
