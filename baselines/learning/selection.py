"""The best model of a run, and when to stop waiting for a better one.

With `--eval-every N`, every N updates the model plays episodes of the split `val`, and the model with the highest
success there (of equal ones, with the highest return) is kept in `best/`. The split `test` chooses nothing: it is
played before and after training as in every run, and once more by the model that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vlgym.durable import put_back, seal
from vlgym.errors import UserError

from ..engine.plain import make_engine
from ..models import lora
from ..models.adapter import check_adapter, export_adapter, is_adapter
from ..models.limits import EVALUATION, Limits
from ..models.load import load_family
from ..models.lora import export_merged
from ..runs import distributed
from ..runs.folder import read_record, write_record
from .config import RunConfig
from .evaluation import held_out, in_words
from .weights import Weights

# ---- what a run leaves for use elsewhere -----------------------------------------------------------------------------

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
    """Return the limits that the model learnt with; an evaluation reads them next to its weights."""
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


if TYPE_CHECKING:
    from .run import Run

VAL, TEST = "val", "test"


@dataclass(frozen=True)
class Best:
    """The model in `best/`, as the note in that folder says.

    Attributes:
        update: after which it stood so; env_steps: after how many environment steps.
        success, mean_return: on validation episodes, means over environments.
        test: its reports on the split test, once it has played that.
    """

    update: int
    env_steps: int
    success: float
    mean_return: float
    test: list[dict[str, Any]] | None = None

    def beats(self, other: Best | None) -> bool:
        """True if this one is to be kept."""
        return other is None or (self.success, self.mean_return) > (other.success, other.mean_return)


class Selection:
    """Validates a run's model, keeps the best and says when the wait for a better one is over.

    What is compared with is the note in `best/`: after a kill nothing else can be there.

    Args:
        run: its folder, model, evaluations and options are used.

    Attributes:
        over: no better model was found in the last `--stop-after` validations.
    """

    over = False

    def __init__(self, run: Run[Any]) -> None:
        self.run, self.folder = run, run.out / BEST
        if run.world.first:
            put_back(self.folder)
            _ = self.best  # a damaged note is told of before any work

    @property
    def best(self) -> Best | None:
        """The best model so far; None before the first, or where its folder was removed.

        Raises:
            UserError: its note is damaged.
        """
        path = self.folder / EVALUATION
        if not path.exists():
            return None
        try:
            note = read_record(path)
            return Best(note["update"], note["env_steps"], note["success"], note["mean_return"], note.get(TEST))
        except (UserError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is damaged ({error}). Move {self.folder} away to go on without that model."
            ) from None

    def validate(self, *, last: bool) -> None:
        """Play validation episodes when they are due, keep the model if it is the best so far, and see whether to wait.

        Args:
            last: there are no more updates to make.
        """
        run, c = self.run, self.run.config
        if not c.eval_every or not (last or run.state.update % c.eval_every == 0):
            return
        reports = run.evaluate(VAL)
        if reports and run.world.first and self._consider(reports):
            run.log.say(f"the best model so far; kept in {self.folder}")
        self.see_patience()

    def see_patience(self) -> None:
        """Let all processes know whether the wait for a better model is over."""
        run, limit = self.run, self.run.config.stop_after
        over = bool(limit) and run.world.first and self.waited() >= limit
        self.over = distributed.any_of(over, run.world)

    def waited(self) -> int:
        """Number of validations since the best model's."""
        best = self.best
        updates = {report["update"] for report in self.run.state.evaluations if report["split"] == VAL}
        return sum(best is None or update > best.update for update in updates)

    def explain_end(self, resume: str) -> str:
        """Return why a resumed run has nothing to do, and how it goes on; `resume` is the command so far."""
        c = self.run.config
        if not self.run.all_made():
            return f"no better model in {c.stop_after} validations; to wait for more: {resume} --stop-after N"
        more = "--updates" if c.env_steps is None else "--env-steps"
        return f"all {self.run.state.update} updates of this run have been made; to add some: {resume} {more} N"

    def _consider(self, reports: Sequence[Mapping[str, Any]]) -> bool:
        """Keep the model where it is better than the best so far; return whether it is.

        Args:
            reports: what it scored on each environment's validation episodes, with `update` and `env_steps`.
        """
        first, count = reports[0], len(reports)
        success, mean_return = (sum(report[name] for report in reports) / count for name in ("success", "mean_return"))
        found = Best(first["update"], first["env_steps"], success, mean_return)
        if not found.beats(self.best):
            return False
        run = self.run
        note = {name: value for name, value in asdict(found).items() if value is not None} | {VAL: list(reports)}
        notes = {**limits_of(run.weights, run.config).note(), EVALUATION: seal(note)}
        export_merged(run.weights.family, self.folder, notes)
        return True

    def judge(self) -> None:
        """At the end, let the best model play the split test, and say how it did (in the first process)."""
        run, best = self.run, self.best
        if best is None or not run.config.eval_every or not run.world.first:
            return
        reports = best.test
        if reports is None:
            known = [e for e in run.state.evaluations if (e["update"], e["split"]) == (best.update, TEST)]
            reports = known or self._play(best)
        if reports is None:
            alone = f"vlgym eval --policy hf:{self.folder} --env {','.join(run.envs.ids)} --out FOLDER"
            run.log.say(
                f"best model: of update {best.update}, in {self.folder}; there is no memory to play it next to the "
                f"other. Play it alone: {alone}"
            )
            return
        path = self.folder / EVALUATION
        write_record(path, {**read_record(path), TEST: reports})
        score = sum(report["success"] for report in reports) / len(reports)
        run.log.say(
            f"best model: of update {best.update}, in {self.folder}; success {best.success:.3f} on the validation "
            f"episodes that chose it, {score:.3f} on test episodes"
        )

    def _play(self, best: Best) -> list[dict[str, Any]] | None:
        """Return its reports on the split test; None without memory for a second model."""
        run, sampler = self.run, self.run.weights.sampler
        family = sampler.family
        dtype = str(family.model.dtype).removeprefix("torch.")
        try:
            loaded = load_family(
                str(self.folder), image_tokens=family.image_tokens, dtype=dtype, device=str(family.device),
                system=family.system,
            )  # fmt: skip
            engine = make_engine(loaded, max_new_tokens=sampler.max_new_tokens, parsers=sampler.parsers)
            engine.temperature = sampler.temperature
            reports = []
            for report in held_out(engine, run.envs, run.config, run.log, name=f"{run.policy.name}, best"):
                run.log.say(f"best model, {in_words(report, best.env_steps)}")
                reports.append({"update": best.update, "env_steps": best.env_steps, **report.to_dict()})
        except (torch.OutOfMemoryError, MemoryError):
            return None
        return reports
