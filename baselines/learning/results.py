"""What a run leaves for use elsewhere: the trained model, and its adapters with the model that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ..models import lora
from ..models.adapter import check_adapter, export_adapter, is_adapter
from ..models.limits import Limits
from .config import RunConfig
from .weights import Weights

MODEL, ADAPTER, BASE, BEST = "model", "adapter", "base", "best"
"""Folders in a run's."""


def check_targets(config: RunConfig) -> None:
    """Check, before any work, that results can be written where they were asked for.

    Raises:
        UserError: a folder holds something else, or cannot be written to.
    """
    checks: tuple[tuple[Path | None, Callable[[Path], None]], ...] = (
        (config.export, lora.check_export), (config.export_adapter, check_adapter),
    )  # fmt: skip
    for folder, check in checks:
        if folder is not None:
            check(folder)


def limits_of(weights: Weights, config: RunConfig) -> Limits:
    """The limits that the model learnt with; whoever plays it again reads them beside its weights."""
    sampler = weights.sampler
    return Limits(
        sampler.max_new_tokens, sampler.family.image_tokens, config.history_turns, config.history_images, config.parser,
        sampler.family.system, sampler.temperature,
    )  # fmt: skip


def save_results(weights: Weights, config: RunConfig, out: Path) -> Iterator[Path]:
    """Write the model, adapters merged, as folders that `--model` and `from_pretrained` read; and the adapters apart.

    Args:
        weights: the model's, as they are now.
        config: says where else to write, and which model the adapters belong to.
        out: folder of the run.

    Yields:
        each folder, when it is written.
    """
    note = limits_of(weights, config).note()
    for folder in (out / MODEL, config.export):
        if folder is not None:
            yield lora.export_merged(weights.family, folder, note)
    if not config.lora.rank:
        return
    model = config.model or ""
    base = str(Path(model).resolve()) if Path(model).exists() else model
    if model == "tiny" or config.warm.steps or is_adapter(model):  # nobody else has the model that was made here
        base = str(lora.export_merged(lora.reference(weights.family), out / BASE, note).resolve())
    for folder in (out / ADAPTER, config.export_adapter):
        if folder is not None:
            yield export_adapter(weights.family, folder, base, note)
