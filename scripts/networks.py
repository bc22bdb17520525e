"""Make networks of the field as TFLite files: ``python scripts/networks.py resnet50 vgg16 -o DIRECTORY``.

int8 as post-training quantisation leaves them: the layers of their papers, seeded weights, a scale for each channel,
activations calibrated by running the network in float. They recognise nothing, and no layer saturates. ``--list`` tells
their names; without a name all of them are made.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models.field import FIELD, field


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.list:
        for one in FIELD:
            print(f"{one.name:<20}{one.title}, {one.resolution}, {one.classes} classes")
        return 0
    names = [one.name for one in FIELD]
    unknown = [name for name in arguments.names if name not in names]
    if unknown:
        sys.exit(f"networks.py: there is no network {unknown[0]}; there are {', '.join(names)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or names:
        data = field(name).build(arguments.resolution, arguments.classes, arguments.width, arguments.seed)
        path = arguments.output / f"{name}.tflite"
        path.write_bytes(data)
        print(f"{path}: {len(data)} bytes")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="the folder (default: here)")
    parser.add_argument("--list", action="store_true", help="the names, and the published sizes")
    parser.add_argument("--resolution", type=int, help="side of the image, frames or tokens (default: the published)")
    parser.add_argument("--classes", type=int, help="default: the published")
    parser.add_argument("--width", type=float, default=1.0, help="factor of the channels (default: 1)")
    parser.add_argument("--seed", type=int, default=7, help="of the weights (default: 7)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
