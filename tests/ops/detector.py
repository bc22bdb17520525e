"""The operator that TFLite's detectors end with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import Array

OPTIONS: Mapping[str, float] = {
    "max_classes_per_detection": 1,
    "detections_per_class": 100,
    "use_regular_nms": False,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "y_scale": 10.0,
    "x_scale": 10.1,
    "h_scale": 5.0,
    "w_scale": 5.1,
}


@dataclass(frozen=True)
class Detector:
    """``background``: classes before those that are told."""

    boxes: int = 20
    classes: int = 3
    background: int = 1
    most: int = 6
    options: Mapping[str, float] = field(default_factory=dict)
    dtype: str = "float32"

    def build(self) -> bytes:
        model, random = ModelBuilder(), np.random.RandomState(0)
        middles, sizes = random.uniform(0.2, 0.8, (self.boxes, 2)), random.uniform(0.1, 0.5, (self.boxes, 2))
        anchors, scores = np.concatenate([middles, sizes], 1), (1, self.boxes, self.classes + self.background)
        inputs = [
            model.input("boxes", (1, self.boxes, 4), self.dtype, **self._grid(0.024, 127)),
            model.input("scores", scores, self.dtype, **self._grid(1 / 16, 0)),
        ]
        if self.dtype == "float32":
            inputs.append(model.constant("anchors", anchors.astype(np.float32)))
        else:
            stored = np.round(anchors / 0.004 + self._middle + 3).astype(self.dtype)
            inputs.append(model.constant("anchors", stored, scales=(0.004,), zero_points=(self._middle + 3,)))
        shapes = {"corners": (1, self.most, 4), "classes": (1, self.most), "given": (1, self.most), "count": (1,)}
        outputs = [model.tensor(name, shape, "float32") for name, shape in shapes.items()]
        model.op("CUSTOM", inputs, outputs, custom_code="TFLite_Detection_PostProcess", custom_options=self._options())
        return model.build(*outputs)

    @property
    def _middle(self) -> int:
        return 0 if self.dtype == "uint8" else -128

    def _grid(self, scale: float, zero_point: int) -> dict[str, Any]:
        return {} if self.dtype == "float32" else {"scale": scale, "zero_point": self._middle + zero_point}

    def _options(self) -> bytes:
        given = {**OPTIONS, "max_detections": self.most, "num_classes": self.classes, **self.options}
        return bytes(flexbuffers.Dumps(given))

    def inputs(self, seed: int) -> list[Array]:
        """Scores in few steps, so that many are equal."""
        random = np.random.RandomState(seed)
        boxes = random.uniform(-3, 3, (1, self.boxes, 4)).astype(np.float32)
        scores = np.round(random.uniform(0, 1, (1, self.boxes, self.classes + self.background)) * 16)
        if self.dtype == "float32":
            return [boxes, (scores / 16).astype(np.float32)]
        least = self._middle
        stored = np.clip(np.round(boxes / 0.024) + least + 127, least, least + 255)
        return [stored.astype(self.dtype), (scores + least).astype(self.dtype)]
