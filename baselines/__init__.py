"""The reference learners. Each command is a module here; what they share lies in the subfolders.

Importing this package alone changes nothing: vlgym does so wherever it runs, because the plugin in
it (`plugin.py`) brings the policy `hf:`. What needs torch begins with `get_ready`.
"""

import logging
import os
import sys

NEEDED = ("torch", "transformers", "peft", "safetensors", "tokenizers", "tyro", "tensorboard", "matplotlib")


def get_ready() -> None:
    """Prepare the process before torch is imported, for the commands (below) and the subfolders; a
    `ModuleNotFoundError` where packages of the learners are not installed."""
    # Threads of OpenMP that wait sleep; spinning ones take other runs' processors (docs/log.md).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # With AVX-512 bfloat16 bitsandbytes says, when peft imports it, that it does without a kernel
    # of the Hub, above every page of help and every error.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    if missing := find_missing():
        raise ModuleNotFoundError(describe_missing(missing))


def find_missing() -> list[str]:
    """Return the packages of the learners that are not installed."""
    import importlib.util

    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def describe_missing(missing: list[str], what: str = "The learners need") -> str:
    """Return the advice for packages of the learners that are not installed."""
    from vlgym.registry.installing import how_to_install  # which takes its time

    number = "are" if len(missing) > 1 else "is"
    return f"{what} {', '.join(missing)}, which {number} not installed: {how_to_install('vlgym[train]')}"


def _is_about_to_run() -> bool:
    """True before `python -m baselines.NAME` runs: `sys.argv` is `-m` and what follows the name."""
    words = getattr(sys, "orig_argv", ())
    return sys.argv[:1] == ["-m"] and len(words) >= len(sys.argv) and "baselines." in words[-len(sys.argv)]


if _is_about_to_run():
    try:
        get_ready()
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
