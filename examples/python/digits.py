#!/usr/bin/env python3
"""Reads 360 handwritten digits with the network of examples/digits and says how many are right: digits.py [--devices LIST]

The network was trained on other images. Its graph and weights are files; where each node runs is in the plan.
"""

import argparse
import pathlib
import sys
import time

import heddle
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "digits"


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--devices", default="cpu,sim:0",
                       help="where nodes may run, in order of preference (default: %(default)s)")
    words.add_argument("--place", action="append", default=[], metavar="PATTERN=DEVICE",
                       help="nodes that go elsewhere, such as 'wide*=opencl:0'; may be given again")
    words.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="the network and its images (default: %(default)s)")
    args = words.parse_args()

    images = np.load(args.folder / "images.npy").astype(np.float32)  # [360, 1, 8, 8], 0 to 16
    labels = np.load(args.folder / "labels.npy")
    try:
        with heddle.load(args.folder / "digits.json", devices=args.devices, place=args.place) as model:
            print(model.plan)
            model(images[:1])  # the first call makes the plan for this shape and uploads the weights
            start = time.perf_counter()
            digits = np.array([model(images[i : i + 1]).argmax() for i in range(len(images))])
            seconds = time.perf_counter() - start
    except heddle.Error as error:
        print(f"digits: {error}", file=sys.stderr)
        return 1
    right = int((digits == labels).sum())
    print(f"accuracy: {right} of {len(labels)} held-back digits right, {100 * right / len(labels):.2f} %")
    print(f"time: {seconds / len(images) * 1e6:.1f} us an image")
    return 0


if __name__ == "__main__":
    sys.exit(main())
