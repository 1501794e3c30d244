"""Make torchvision work with a CPU build of torch.

An index without CPU builds of torchvision gives a CUDA one. Its compiled parts do not load with a
CPU build of torch: its import fails for two operators that nothing here calls, and it cannot decode
images. Where torchvision is whole, nothing is changed.
"""

import importlib.util
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

KEPT: list[torch.library.Library] = []
"""A library takes its definitions with it when it goes."""


def make_importable() -> bool:
    """Define the operators that torchvision misses, before it is first imported; return whether
    that was needed."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.origin or KEPT:
        return bool(KEPT)
    try:
        for path in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(path))
        return False
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        KEPT.append(library)
        return True


def make_decoding() -> bool:
    """Let torchvision decode images with Pillow where its own decoder does not load; return whether
    that was needed."""
    import torchvision.io

    png = io.BytesIO()
    Image.new("RGB", (2, 1), (9, 8, 7)).save(png, "PNG")
    try:
        torchvision.io.decode_image(torch.frombuffer(bytearray(png.getvalue()), dtype=torch.uint8))
        return False
    except RuntimeError:
        torchvision.io.decode_image = decode_image
        return True


def decode_image(data: torch.Tensor, mode: Any = None, apply_exif_orientation: bool = False) -> torch.Tensor:
    """The bytes of an image file, as RGB pixels [3, H, W] uint8."""
    with Image.open(io.BytesIO(data.numpy().tobytes())) as image:
        return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)
