"""Pictures and vision towers: are they the library's, and how fast?

Sizes and patches of each family against the installed transformers' own image processor (its PIL class; the library
takes its torchvision class where that is installed), the time of both, and the time of the Qwen towers' attention by
groups against the library's loop. Models are built here with random weights; only their shapes matter.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from report import finish, parse_write, table
from transformers import AutoImageProcessor, Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel

from baselines.models.attention import group_attention
from baselines.models.family import Family
from baselines.models.gemma import Gemma3
from baselines.models.load import FAMILIES, load_family
from baselines.models.qwen import _use_linear_patch_embedding
from baselines.models.sizing import fit_grid
from baselines.models.tiny import SMALLEST, build_tiny

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "baselines"))

from publish import publish

SIZES = ((300, 300), (60, 80), (224, 224), (336, 448), (672, 896))
"""The first three are of the review; with the third, what the suite's environments show."""
BUDGET = 256  # tokens an image that the rule before had by default
COMPARED, ROUNDS, REPEATS, LARGEST = 100, 5, 3, 400
IMAGES, SIDE = 4, 224


TEXT = """The library is transformers with its PIL image processors (`backend="pil"`). One thread.

## Sizes

Pixels after resizing. Before: at most {before} tokens, sides rounded down, never enlarged.

{sizes}

## Patches

Random pictures with sides of 3 to {largest} pixels, settings as published; Gemma3's tower is a tiny one of 56 pixels.

{equal}

The library's torchvision classes resample with other rounding; a server that has torchvision uses them. For noise of
300 x 224 pixels they differed from the PIL classes in 0.2 to 0.6 % of the values, by one level of 255 (torchvision
0.28, once, outside of this script; `tests/servers/test_exports.py` bounds it).

## Time of a picture

{speeds}

## Vision tower

A Qwen2.5-VL tower with random weights, {images} pictures of {side} x {side}, float32, `sdpa`: windows, or pictures, of
one length in one call, against the library's loop over them. The difference is that of the features. Not run on a GPU.

{towers}"""


def picture(seed: int, size: tuple[int, int]) -> np.ndarray:
    """[H, W, 3] uint8 noise."""
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def ours(family: Family, image: np.ndarray) -> torch.Tensor:
    """Pixels as the tower takes them; nothing is remembered."""
    family._prepared.clear()
    prepared = family.prepare_image(image)
    return family.normalise(prepared)[None] if isinstance(family, Gemma3) else family.patchify(prepared)


def theirs(processor: Any, image: np.ndarray) -> torch.Tensor:
    """The same by the library."""
    return processor(images=[Image.fromarray(image)], return_tensors="pt")["pixel_values"]


def median(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of processor time of one call: other programs on the machine do not count."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def interleave(one: Callable[[], Any], two: Callable[[], Any], rounds: int, repeats: int) -> tuple[float, float]:
    """Medians over interleaved rounds."""
    found: list[tuple[float, float]] = []
    one(), two()
    for _ in range(rounds):
        found.append((median(one, repeats), median(two, repeats)))
    return statistics.median(x for x, _ in found), statistics.median(x for _, x in found)


def load(folder: Path, name: str) -> tuple[Family, Any]:
    """A family with its published image settings, and the library's image processor."""
    for part in build_tiny(SMALLEST, family=name):  # type: ignore[arg-type]
        part.save_pretrained(folder / f"raw-{name}")
    published = publish(folder / f"raw-{name}", folder / name, name)
    return load_family(str(published)), AutoImageProcessor.from_pretrained(published, backend="pil")


def compare(family: Family, processor: Any) -> int:
    """In how many of the compared pictures of random sizes the patches differ in any bit."""
    rng = np.random.default_rng(0)
    different = 0
    for seed in range(COMPARED):
        image = picture(seed, (int(rng.integers(3, LARGEST)), int(rng.integers(3, LARGEST))))
        different += not torch.equal(ours(family, image), theirs(processor, image))
    return different


def show(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def sizes(pairs: dict[str, tuple[Family, Any]]) -> str:
    """Sizes by the rule before, now, and by the library."""
    rows = []
    for name in ("qwen2_5_vl", "qwen3_vl"):
        family: Any = pairs[name][0]
        for size in SIZES:
            before = tuple(side * family.unit for side in fit_grid(*size, family.unit, BUDGET))
            now = family.prepare_image(picture(0, size)).pixels.shape[:2]
            grid = pairs[name][1](images=[Image.fromarray(picture(0, size))])["image_grid_thw"][0]
            library = (int(grid[1]) * family.patch, int(grid[2]) * family.patch)
            rows.append([FAMILIES[name][0], show(size), show(before), show(now), show(library)])
    return table(["family", "picture", "before", "now", "library"], rows)


def speeds(pairs: dict[str, tuple[Family, Any]]) -> str:
    """Milliseconds a picture, from bytes in memory to what the tower takes."""
    rows = []
    for name, sides in (("qwen2_5_vl", SIZES[2:]), ("gemma3", SIZES[2:3])):
        family, processor = pairs[name]
        for size in sides:
            image = picture(1, size)
            mine, other = interleave(
                lambda f=family, i=image: ours(f, i), lambda p=processor, i=image: theirs(p, i), ROUNDS, REPEATS
            )
            label = FAMILIES[name][0]
            rows.append([label, show(size), f"{1e3 * mine:.2f}", f"{1e3 * other:.2f}", f"{other / mine:.1f}"])
    return table(["family", "picture", "ours, ms", "library, ms", "ratio"], rows)


def count_calls(run: Callable[[], Any]) -> int:
    """Calls of torch's attention."""
    real, calls = torch.nn.functional.scaled_dot_product_attention, 0

    def note(*args: Any, **kwargs: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return real(*args, **kwargs)

    torch.nn.functional.scaled_dot_product_attention = note  # type: ignore[assignment]
    run()
    torch.nn.functional.scaled_dot_product_attention = real
    return calls


@torch.no_grad()
def towers() -> str:
    """Seconds of a Qwen2.5-VL tower: of the published width with two of its 32 layers, and a small one."""
    shapes = {
        "published width, 1 window layer and 1 full": {"depth": 2, "fullatt_block_indexes": [1]},
        "width 64, 7 window layers and 1 full": {
            "depth": 8, "fullatt_block_indexes": [7], "hidden_size": 64, "intermediate_size": 128, "num_heads": 4,
            "out_hidden_size": 64,
        },
    }  # fmt: skip
    rows = []
    for label, options in shapes.items():
        torch.manual_seed(0)
        loop, grouped = (
            Qwen2_5_VisionTransformerPretrainedModel(
                Qwen2_5_VLVisionConfig(**options, attn_implementation="sdpa")
            ).eval()
            for _ in range(2)
        )
        grouped.load_state_dict(loop.state_dict())
        for tower in (loop, grouped):
            _use_linear_patch_embedding(tower.patch_embed)
        group_attention(grouped)
        side = SIDE // 14
        grid = torch.tensor([[1, side, side]] * IMAGES)
        pixels = torch.randn(IMAGES * side**2, 3 * 2 * 14 * 14)
        run = {name: partial(tower, pixels, grid) for name, tower in (("loop", loop), ("grouped", grouped))}
        gap = (run["loop"]().pooler_output - run["grouped"]().pooler_output).abs().max().item()
        calls = [count_calls(each) for each in run.values()]
        before, now = interleave(run["loop"], run["grouped"], 3, 1)
        attention = [_attention_seconds(tower, len(pixels)) for tower in (loop, grouped)]
        rows.append(
            [label, *calls, f"{1e3 * before:.0f}", f"{1e3 * now:.0f}", f"{before / now:.2f}",
             f"{attention[0] / attention[1]:.2f}", f"{gap:.0e}"]
        )  # fmt: skip
    header = ["tower", "calls before", "now", "pass before, ms", "now", "ratio", "ratio of a window layer's attention"]
    return table([*header, "largest difference"], rows)


def _attention_seconds(tower: Any, patches: int) -> float:
    """Seconds of the attention of one layer with windows."""
    window = 64  # patches: 112 pixels
    hidden = torch.randn(patches, tower.config.hidden_size)
    width = tower.config.hidden_size // tower.config.num_heads
    angles = (torch.ones(patches, width), torch.zeros(patches, width))
    ends = torch.arange(0, patches + 1, window, dtype=torch.int32)
    attention = tower.blocks[0].attn
    return min(median(lambda: attention(hidden, ends, position_embeddings=angles), 3) for _ in range(3))


def main() -> None:
    """Measure and report."""
    write = parse_write(__doc__ or "").write
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        pairs = {name: load(Path(scratch), name) for name in FAMILIES}
        different = {FAMILIES[name][0]: compare(*pair) for name, pair in pairs.items()}
        equal = table(["family", "pictures", "with any bit other"], [[k, COMPARED, v] for k, v in different.items()])
        body = TEXT.format(
            before=BUDGET, sizes=sizes(pairs), largest=LARGEST - 1, equal=equal, speeds=speeds(pairs), images=IMAGES,
            side=SIDE, towers=towers(),
        )  # fmt: skip
    finish("image_processing", "Pictures as the library sees them", body, ("torch", "transformers", "pillow"), write)


if __name__ == "__main__":
    main()
