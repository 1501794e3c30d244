"""The command line of the learners and of the other commands of this package."""

import io
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, cast, get_type_hints

import tyro

from vlgym.errors import show_safe
from vlgym.terminal import measure_width, run_command

from ..runs import distributed
from .config import RunConfig, chosen

USUAL = frozenset({  # options shared by the learners that `--help` shows; `--help-all` shows all
    "env", "model", "out", "resume", "preset", "seed", "updates", "env_steps", "num_envs", "envs",
    "rollout_steps", "epochs", "minibatch", "lr", "kl_coef", "max_new_tokens", "image_tokens",
    "history_images", "temperature", "env_kwargs", "eval_episodes", "eval_every", "export",
    "device", "warm.steps", "warm.reading", "lora.rank", "reward.unreadable_penalty",
})  # fmt: skip

C = TypeVar("C")


def parse(config: type[C], description: str | None, arguments: Sequence[str] | None = None) -> C:
    """Read a command line of options; a learner's has the named preset's defaults."""
    words = sys.argv[1:] if arguments is None else arguments

    # `python -m baselines.NAME` runs the module as __main__; help names the command as typed.
    spec = getattr(sys.modules[config.__module__], "__spec__", None)
    program = f"python -m {spec.name}" if spec else None
    text = fold(description or "", measure_width(sys.stdout))
    if not issubclass(config, RunConfig):
        return tyro.cli(config, prog=program, description=text, args=words)
    if "--help-all" in words:
        words = ["--help"]
    elif {"-h", "--help"} & {*words}:
        text += "\n\n`--help-all` lists the rarer options, too."
        return tyro.cli(_without_rare(config), prog=program, description=text, args=words)
    return tyro.cli(config, prog=program, description=text, default=chosen(config, words), args=words)


def _without_rare(config: type[Any], group: str = "") -> type[Any]:
    """The dataclass with its shared options hidden that `USUAL` does not name."""
    shared = {item.name for item in fields(RunConfig if not group else config)}
    hints: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for item in fields(config):
        hint = get_type_hints(config, include_extras=True)[item.name]
        if is_dataclass(hint):
            hints[item.name] = _without_rare(cast(Any, hint), f"{item.name}.")
            values[item.name] = field(default_factory=hints[item.name])
        elif item.name in shared and group + item.name not in USUAL:
            hints[item.name] = cast(Any, tyro.conf.Suppress)[hint]
            values[item.name] = field(default=item.default)
    named = {"__annotations__": hints, "__doc__": config.__doc__}
    return dataclass(frozen=True)(type(config.__name__, (config,), {**named, **values}))


def fold(text: str, width: int) -> str:
    """Break a docstring's paragraphs and list items again, at 100 columns at most.
    All but the first line of each are indented: tyro joins lines that begin with a letter."""
    wrapper = textwrap.TextWrapper(max(20, min(100, width)), subsequent_indent="  ", break_on_hyphens=False)
    parts = re.split(r"(\n\n|\n(?=- ))", text.strip())
    return "".join(part if part[:1] in " \n" else wrapper.fill(" ".join(part.split())) for part in parts)


def main(config: type[C], run: Callable[[C], object], description: str | None) -> None:
    """Run a command; a failure ends the program with a status of `vlgym.errors`."""
    done = []

    def work() -> None:
        errors = io.StringIO()
        try:
            with redirect_stderr(errors):
                options = parse(config, description)
        finally:
            sys.stderr.write(show_safe(errors.getvalue()))
        done.append(run(options))

    # Other processes wait until each has left.
    status = run_command("error", work)
    if done:
        distributed.leave()
    stopped_by = getattr(done[0], "stopped_by", 0) if done else 0  # a run's
    if status or not done or stopped_by:
        sys.exit(status or (stopped_by and 128 + stopped_by))
