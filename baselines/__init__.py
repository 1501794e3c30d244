"""The reference learners. Each command is a module here; what they share lies in the folders beside."""

import importlib.util
import os
import sys

# Before torch loads OpenMP: threads that wait sleep instead of spinning. Spinning ones take the processors from
# whatever else runs, from other runs of ours above all (docs/log.md has the numbers).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

NEEDED = ("torch", "transformers", "peft", "safetensors", "tokenizers", "tyro", "tensorboard", "matplotlib")


def describe_missing(missing: list[str]) -> str:
    """What to do where packages of the learners are not installed."""
    from vlgym.installing import how_to_install  # the core may take its time: only where it has something to say

    return (
        f"The learners need {', '.join(missing)}, which {'are' if len(missing) > 1 else 'is'} not installed: "
        f"{how_to_install('vlgym[train]')}"
    )


if _missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
    if sys.argv[:1] == ["-m"]:  # `python -m baselines.NAME` is about to import its module
        sys.stderr.write(f"error: {describe_missing(_missing)}\n")
        sys.exit(2)
    raise ModuleNotFoundError(describe_missing(_missing))
