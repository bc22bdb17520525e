"""A float ONNX model to a quantised one, by ONNX Runtime's quantiser; what there is of ours is the looking after."""

from uaccel.calibration.calibration import Calibration
from uaccel.calibration.run import Options, Quantised, quantise

__all__ = ["Calibration", "Options", "Quantised", "quantise"]
