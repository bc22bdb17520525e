"""Architectures of torchvision, timm and Keras in a few lines each: few channels, random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from support.models.architectures import attending, branched, classifiers, dense, gated, generators, signals
from support.models.architectures.blocks import Module, gate, nn

IMAGE: Final = (1, 3, 24, 24)


@dataclass(frozen=True)
class Architecture:
    """``make`` makes the module, ``shapes`` are those of its inputs."""

    make: Callable[[], Module]
    shapes: Sequence[tuple[int, ...]] = (IMAGE,)


def _of(make: Callable[[], Module], *shapes: tuple[int, ...]) -> Architecture:
    return Architecture(make, shapes or (IMAGE,))


SEQUENCE, WAVE, SPECTRUM = (1, 10, 16), (1, 1, 32), (1, 1, 16, 20)
ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    "vgg": _of(classifiers.vgg),
    "resnet": _of(classifiers.resnet),
    "resnext": _of(lambda: classifiers.resnet(groups=4)),
    "se_resnet": _of(lambda: classifiers.resnet(se=True)),
    "resnet_v2": _of(classifiers.preactivated),
    "densenet": _of(classifiers.densenet),
    "mobilenet_v1": _of(classifiers.mobilenet_v1),
    "mobilenet_v2": _of(classifiers.mobile),
    "mobilenet_v3": _of(lambda: classifiers.mobile(nn.Hardswish, lambda wide: gate(wide, end=nn.Hardsigmoid), 5)),
    "efficientnet": _of(lambda: classifiers.mobile(nn.SiLU, lambda wide: gate(wide, nn.SiLU))),
    "shufflenet": _of(classifiers.shufflenet),
    "squeezenet": _of(classifiers.squeezenet),
    "inception": _of(classifiers.inception),
    "googlenet": _of(classifiers.googlenet),
    "alexnet": _of(branched.alexnet),
    "xception": _of(branched.xception),
    "darknet": _of(branched.darknet),
    "cspnet": _of(branched.cspnet),
    "regnet": _of(branched.regnet),
    "mnasnet": _of(branched.mnasnet),
    "ghostnet": _of(branched.ghostnet),
    "repvgg": _of(branched.repvgg),
    "res2net": _of(branched.res2net),
    "cbam": _of(branched.cbam),
    "hrnet": _of(branched.hrnet),
    "eca_net": _of(branched.senet_local),
    "nfnet": _of(branched.nfnet),
    "vit": _of(attending.vit),
    "mobilevit": _of(attending.mobilevit),
    "swin": _of(attending.swin),
    "mlp_mixer": _of(attending.mixer),
    "poolformer": _of(attending.poolformer),
    "convnext": _of(attending.convnext),
    "convmixer": _of(attending.convmixer),
    "efficientformer": _of(attending.efficientformer),
    "transformer": _of(attending.encoder, SEQUENCE),
    "conformer": _of(attending.conformer, SEQUENCE),
    "unet": _of(dense.unet),
    "fpn": _of(dense.fpn),
    "deeplab": _of(dense.deeplab),
    "bisenet": _of(dense.bisenet),
    "espnet": _of(dense.espnet),
    "enet": _of(dense.enet),
    "hourglass": _of(dense.hourglass),
    "pspnet": _of(dense.pspnet),
    "yolo": _of(dense.yolo),
    "yolo_tiny": _of(dense.yolo_tiny),
    "ssd": _of(dense.ssd),
    "centernet": _of(dense.centernet),
    "fcn": _of(dense.fcn),
    "wave_unet": _of(signals.wave_unet, (1, 1, 64)),
    "conv_tasnet": _of(signals.conv_tasnet, (1, 1, 64)),
    "wavenet": _of(signals.wavenet, WAVE),
    "tcn": _of(signals.tcn, WAVE),
    "ds_cnn": _of(signals.ds_cnn, SPECTRUM),
    "bc_resnet": _of(signals.bc_resnet, SPECTRUM),
    "crnn": _of(signals.crnn, (1, 1, 24, 16)),
    "gru": _of(signals.gru, (1, 5, 6)),
    "gated_cell": _of(signals.minimal, (1, 6), (1, 8)),
    "pointnet": _of(signals.pointnet, (1, 3, 20)),
    "heartbeat": _of(signals.heartbeat, (1, 1, 124)),
    "dense_autoencoder": _of(generators.dense_autoencoder, (1, 64)),
    "autoencoder": _of(generators.autoencoder),
    "vae_decoder": _of(generators.vae_decoder, (1, 6)),
    "gan_generator": _of(generators.gan_generator, (1, 6, 1, 1)),
    "srcnn": _of(generators.srcnn, (1, 3, 8, 8)),
    "espcn": _of(generators.espcn, (1, 3, 12, 12)),
    "edsr": _of(generators.edsr, (1, 3, 12, 12)),
    "cyclegan": _of(generators.cyclegan, (1, 3, 12, 12)),
    "gated_tcn": _of(gated.gated_tcn, WAVE),
    "wav2vec": _of(gated.wav2vec, (1, 1, 200)),
    "keyword_transformer": _of(gated.keyword_transformer, SPECTRUM),
    "tc_resnet": _of(gated.tc_resnet, SPECTRUM),
    "x_vector": _of(gated.x_vector, SPECTRUM),
    "mobileone": _of(gated.mobileone),
    "lcnet": _of(gated.lcnet),
    "ghostnet_v2": _of(gated.ghost_v2),
    "mobilefacenet": _of(gated.face),
    "coordinate_attention": _of(gated.coordinate_attention),
    "gmlp": _of(gated.gmlp),
    "convnext_v2": _of(gated.response_norm),
    "antialiased": _of(gated.antialiased),
    "fomo": _of(gated.fomo),
    "picodet": _of(gated.picodet),
    "attention_unet": _of(gated.attention_unet),
    "siren": _of(generators.siren, (1, 2)),
}
