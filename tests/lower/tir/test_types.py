"""What TVM lowers has the types of the model's tensors, or is refused: wider results would be written past them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.device.hostlib import HostModel, compile_bytes
from support.models.partitioned import compile_on, model_of
from support.models.single_op import Activation, Constant, single_op
from support.oracle.exactness import assert_same
from support.oracle.oracle import run_litert
from uaccel.errors import ModelError
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

SHAPE = (2, 4, 5, 3)
POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}


def mean(dtype: str, axes: tuple[int, ...]) -> bytes:
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(SHAPE))
    numbers = Constant(np.array(axes, np.int32))
    return single_op("MEAN", [Activation(SHAPE, dtype), numbers], [Activation(shape, dtype)], {"keep_dims": True})


@pytest.mark.parametrize("axes", [(1, 2), (3,), (0, 1, 2, 3)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_means_of_integers_are_those_of_litert(dtype: str, axes: tuple[int, ...]) -> None:
    """Of numbers whose sum does not fit 32 bits, and of few, so that a quotient below 0 shows how it is cut off."""
    rng, data = np.random.default_rng(5), mean(dtype, axes)
    compiled = compile_bytes(data)
    host, executor = HostModel(compiled), Executor(compiled.stages["import"])
    for low, high in ((-(2**31), 2**31), (-3, 3), (0, 2**31)):
        values = [rng.integers(low, high, SHAPE).astype(dtype)]
        (wanted,) = run_litert(data, values)
        assert_same(host(*values)[0], wanted, "the generated C")
        assert_same(executor.run(values)[0], wanted, "the exact meaning")


@pytest.mark.parametrize(
    ("operator", "options", "dtype", "supported"),
    [
        *(
            ("AVERAGE_POOL_2D", POOL, dtype, "is float32 or float16 or float64 or int64")
            for dtype in ("int32", "uint32", "bool")
        ),
        ("MEAN", {"keep_dims": True}, "bool", "are numbers"),
    ],
)
def test_what_no_runtime_computes_is_refused(
    operator: str, options: dict[str, Any], dtype: str, supported: str
) -> None:
    """TVM's type rule and its lowering disagree about these: it writes 64 bits into elements of fewer."""
    shape = (2, 2, 2, 3) if operator != "MEAN" else (2, 1, 1, 3)
    axes = [Constant(np.array([1, 2], np.int32))] if operator == "MEAN" else []
    data = single_op(operator, [Activation(SHAPE, dtype), *axes], [Activation(shape, dtype)], options)
    with pytest.raises(ModelError) as caught:
        compile_bytes(data)
    assert str(caught.value).endswith(f'input "input_0" is {dtype}, supported {supported}')


def test_a_result_of_another_type_than_the_models_tensor_is_refused() -> None:
    """Whatever the front end: here TVM's own operator, which sums int32 up in 64 bits."""

    def pool(block: Any, inputs: list[Any]) -> Any:
        return block.emit(relax.op.nn.avg_pool2d(inputs[0], (2, 2), layout="NHWC"), "pool")

    with pytest.raises(ModelError) as caught:
        compile_on(model_of(pool, [np.zeros((1, 4, 4, 2), np.int32)]), [])
    assert "relax.nn.avg_pool2d of int32 [1,4,4,2] has no plain C: TVM computes int64 [1," in str(caught.value)
    assert str(caught.value).endswith("replace the operator in the model, or give it to an accelerator")
