"""The networks that people name, as their papers lay them out.

Weights are seeded int8, activations calibrated; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models.field import (
    ds_cnn,
    efficientnet,
    inception,
    mlp,
    mobilenet_v1,
    mobilenet_v2,
    mobilenet_v3,
    resnet,
    squeezenet,
    ssd,
    transformer,
    unet,
    vgg,
)
from models.field.blocks import Blocks, Size

__all__ = ["FIELD", "Blocks", "Field", "Size", "field"]


@dataclass(frozen=True)
class Field:
    """A network and the size that it was published in.

    ``resolution`` is the side of the image; frames for DS-CNN, tokens for the transformer.
    """

    name: str
    title: str
    resolution: int
    classes: int
    lay: Callable[[Blocks], None]

    def blocks(
        self, resolution: int | None = None, classes: int | None = None, width: float = 1.0, seed: int = 7
    ) -> Blocks:
        """The network under way; ``width`` multiplies the channels, as MobileNet's does."""
        size = Size(resolution or self.resolution, classes or self.classes, width, seed)
        blocks = Blocks(f"uaccel {self.title} at {size.resolution}, seeded weights", size)
        self.lay(blocks)
        return blocks

    def build(
        self, resolution: int | None = None, classes: int | None = None, width: float = 1.0, seed: int = 7
    ) -> bytes:
        """The bytes of the .tflite file."""
        return self.blocks(resolution, classes, width, seed).net.build()


FIELD = (
    Field("mlp", "MLP", 28, 10, mlp.lay),
    Field("ds_cnn", "DS-CNN", 49, 12, ds_cnn.lay),
    Field("vgg16", "VGG-16", 224, 1000, vgg.lay),
    Field("resnet18", "ResNet-18", 224, 1000, resnet.lay_18),
    Field("resnet50", "ResNet-50", 224, 1000, resnet.lay_50),
    Field("squeezenet", "SqueezeNet 1.1", 224, 1000, squeezenet.lay),
    Field("inception_v3", "Inception V3", 299, 1000, inception.lay),
    Field("mobilenet_v1", "MobileNet V1", 224, 1000, mobilenet_v1.lay),
    Field("mobilenet_v2", "MobileNet V2", 224, 1000, mobilenet_v2.lay),
    Field("mobilenet_v3", "MobileNet V3 large", 224, 1000, mobilenet_v3.lay_large),
    Field("mobilenet_v3_small", "MobileNet V3 small", 224, 1000, mobilenet_v3.lay_small),
    Field("efficientnet_b0", "EfficientNet-B0", 224, 1000, efficientnet.lay),
    Field("unet", "U-Net", 256, 2, unet.lay),
    Field("ssd_resnet50", "SSD with ResNet-50", 300, 81, ssd.lay),
    Field("transformer", "transformer encoder (BERT-tiny)", 128, 2, transformer.lay),
)


def field(name: str) -> Field:
    """By name."""
    return next(one for one in FIELD if one.name == name)
