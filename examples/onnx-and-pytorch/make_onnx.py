"""Write small.onnx, a float network with seeded weights, and data.npz, sixty-four inputs to calibrate it with."""

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

RNG = np.random.default_rng(19)


def weights(*shape: int) -> NDArray[np.float32]:
    """As large as lets sums over a window stay about as large as the inputs."""
    drawn = RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return np.asarray(drawn, np.float32)


def main() -> None:
    """Two convolutions with ReLU, a max pool between them, the mean of each channel, and four classes."""
    tensors = {
        "filters1": weights(8, 3, 3, 3),
        "filters2": weights(16, 8, 3, 3),
        "matrix": weights(4, 16),
        "bias": np.zeros(4, np.float32),
    }
    same = {"pads": [1, 1, 1, 1]}
    nodes: list[NodeProto] = [
        helper.make_node("Conv", ["image", "filters1"], ["c1"], **same),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "filters2"], ["c2"], **same),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["scores"], transB=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 4])
    held = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "small", [image], [scores], held)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), "small.onnx")
    np.savez("data.npz", image=RNG.standard_normal((64, 3, 16, 16)).astype(np.float32))


if __name__ == "__main__":
    main()
