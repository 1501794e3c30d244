"""A training run: what it does in every update, and after the last.

    with Run(config) as run:
        run.keep(optimizers, collector)
        for update in run.updates():
            with update.phase("rollout"):
                ...
            update.log(batch, metrics)

`Setup` makes the folder, the model, its warm start and its environments. `updates` brings the log, checkpoints,
evaluations on held-out episodes, Ctrl-C and exact resuming. What a learner does in an update is its own business.
"""

from __future__ import annotations

import math
import shlex
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vlgym.errors import UserError
from vlgym.play.controls import CONTROLS
from vlgym.terminal import explain_system_error

from ..engine.engine import Engine
from ..models import lora
from ..models.folders import EVALUATION, TrainedLimits
from ..models.load import BUILT
from ..models.lora import export_adapter, is_adapter
from ..runs import distributed, folder
from ..runs.distributed import World, interruptible, memory_advice, peak_memory
from ..runs.folder import checkpoints
from ..runs.logs import LEVEL_MEAN, PLAYED, note_failures
from . import evaluation
from .batch import Batch, moments
from .evaluation import ADAPTER, BASE, BEST, MODEL, TEST, VAL
from .setup import C, Setup
from .state import list_repeated

# ---- an update: its phases and what they took ------------------------------------------------------------------------


class Update:
    """One update, while a learner makes it; `number` is from 1."""

    def __init__(self, number: int, advice: Mapping[str, str], engines: Sequence[Engine] = ()) -> None:
        self.number, self._advice, self._engines = number, advice, engines
        self.seconds: dict[str, float] = {}  # of each phase
        self.result: tuple[Batch, dict[str, float]] | None = None

    @contextmanager
    def phase(self, name: str, *, keep_prompts: bool = False) -> Iterator[None]:
        """Time a block ("rollout", "reference", "check", "update"), and say what to try if memory runs out in it. After
        the rollout the keys and values of its prompts are dropped, unless the learner samples again and keeps them."""
        start = time.perf_counter()
        with memory_advice(self._advice["rollout" if name == "rollout" else "update"]):
            yield
        if name == "rollout" and not keep_prompts:
            for engine in self._engines:
                engine.forget_prompts()
        self.seconds[f"seconds/{name}"] = time.perf_counter() - start

    def log(self, batch: Batch, metrics: dict[str, float]) -> None:
        """Hand over the rollout and the metrics of this update. Once per update, at its end."""
        self.result = (batch, metrics)


# ---- metrics over all processes --------------------------------------------------------------------------------------

SUMS = ("steps", "tokens", "episode/count", "env/failures")


def merge_metrics(metrics: Mapping[str, float], world: World) -> dict[str, float]:
    """Metrics of an update over all processes: sums of counts, the largest maximum, else the mean of the processes that
    have a number."""
    collected: defaultdict[str, list[float]] = defaultdict(list)
    for each in distributed.gather_objects(dict(metrics), world):
        for name, value in each.items():
            collected[name] += [value] if math.isfinite(value) else []
    return {
        name: math.nan if not values
        else sum(values) if name in SUMS or (name.startswith(PLAYED) and name != LEVEL_MEAN)
        else max(values) if name.endswith("_max") else sum(values) / len(values)
        for name, values in collected.items()
    }  # fmt: skip


class Run(Setup[C]):
    """One run of a learner, new or resumed: see `Setup` for arguments and attributes."""

    timed = False  # the first update that trains the policy has told how fast it was

    def updates(self) -> Iterator[Update]:
        """The updates that are left to make. Before the first, after the last, and as often as asked for between, the
        model is evaluated and a checkpoint written; Ctrl-C and SIGTERM end the run after the current update.

        Raises:
            UserError: the disk is full, or may not be written to.
        """
        try:
            yield from self._updates()
        except Exception as error:
            if (line := explain_system_error(error)) is None:
                raise
            advice = "Then give the command again."
            if checkpoints(self.out / "checkpoints"):
                advice = f"The newest checkpoint is intact; go on: {self._resume()}"
            raise UserError(f"{line} {advice}") from error

    def _updates(self) -> Iterator[Update]:
        c, state = self.config, self.state
        self.log.say(f"run folder: {self.out}")
        self.log.say(f"{c.in_words()}: {sum(p.numel() for p in self.weights.parameters):,} weights")
        if not self.envs.pictured:
            self.log.say(f"prompts show no pictures: the controls are left out ({', '.join(CONTROLS)})")
        if self.envs.course is not None:
            self.log.say(
                f"curriculum {c.curriculum} over {len(self.envs.course.places)} levels; held-out episodes play the "
                "highest"
            )
        if state.update == 0:
            self.save()  # the warm start is safe before anything else takes time
            if c.eval_before:
                self.evaluate()
            self._validate()
        elif self.finished():
            more = "--updates" if c.env_steps is None else "--env-steps"
            self.log.say(f"all {state.update} updates have been made; to add some: {self._resume()} {more} N")
        stop = self._stack.enter_context(interruptible())
        while not self.finished() and not distributed.any_of(bool(stop["signal"]), self.world):
            for engine in self.weights.engines():
                engine.forget()  # an update depends on nothing computed before it, so that resuming is exact
            update = Update(state.update + 1, self._advice(), self.weights.engines())
            if self.recorder is not None:
                recording = self.recorder.begin(update.number)
                self.learner.collector.recorder = self.recorder if recording else None
            yield update
            self._record(update)
            self._validate()
            stopping = distributed.any_of(bool(stop["signal"]), self.world)
            if state.update % c.save_every == 0 or self.finished() or stopping:
                self.save()
        if self.finished():
            self.evaluate(gap=True)
            self.save()
            self.log.say(f"model: {', '.join(map(str, self.save_model()))}")
            self._judge_best()
        else:
            self.stopped_by = stop["signal"] or signal.SIGINT
            self.log.say(f"stopped after update {state.update}. Go on: {self._resume()}")
        if self.world.first:
            curve = evaluation.draw_run(self.out, self.envs, state, self.log, title=self.title, name=c.algorithm)
            self.log.say(f"learning curve: {curve}")

    def finished(self) -> bool:
        """True if all updates, or all environment steps, have been made."""
        c, state = self.config, self.state
        return state.update >= c.most_updates or (c.env_steps is not None and state.env_steps >= c.env_steps)

    def evaluate(self, split: str = TEST, *, gap: bool = False) -> list[dict[str, Any]]:
        """Play held-out episodes of every environment in the first process, print and record the reports; nothing
        where that was done after this update. Return the new reports, the same in all processes.

        With `eval_controls` a report holds those of half as many episodes with other pictures as `grey` and `shuffled`.
        """
        state, new = self.state, []
        done = any((report["update"], report["split"]) == (state.update, split) for report in state.evaluations)
        if done or not self.config.eval_episodes:
            return []
        if self.world.first:
            play = partial(
                evaluation.held_out, self.weights.engine, self.envs, self.log, seed=self.config.seed, split=split,
                episodes=self.first_episodes if state.update == 0 and split == TEST else self.config.eval_episodes,
                name=self.policy.name,
            )  # fmt: skip
            for report in play():
                new.append({"update": state.update, "env_steps": state.env_steps, **report.to_dict()})
                self.log.say(evaluation.write_report_line(report, state.env_steps))
            for pictures in CONTROLS if self.config.eval_controls else ():
                for entry, report in zip(new, play(pictures=pictures), strict=True):
                    entry[pictures] = report.to_dict()
                    self.log.say(evaluation.control_in_words(report, state.env_steps, self.envs, pictures))
            if gap and self.envs.pictured and (measured := evaluation.measure_gap(self.weights.engine)):
                new[-1]["sight/gap"] = asdict(measured)
                self.log.say(f"sight: {measured}")
        new = distributed.first_says(new, self.world)
        self._gather_failures(state.update)
        state.evaluations += new
        if self.world.first:
            folder.write_record(self.out / "evaluation.json", state.evaluations)
        return new

    def _validate(self) -> None:
        """Play validation episodes when they are due, and keep the model if it is the best so far."""
        c = self.config
        if not c.eval_every or not (self.finished() or self.state.update % c.eval_every == 0):
            return
        reports, best = self.evaluate(VAL), self.out / BEST
        if reports and self.world.first and evaluation.keep_best(best, reports, self.weights.family, self._note()):
            self.log.say(f"the best model so far; kept in {best}")

    def _judge_best(self) -> None:
        """Let the best model play the split test, and print its success (in the first process)."""
        path, best = self.out / BEST / EVALUATION, evaluation.read_best(self.out / BEST)
        if best is None or not self.config.eval_every or not self.world.first:
            return
        reports = best.get(TEST) or [
            e for e in self.state.evaluations if (e["update"], e["split"]) == (best["update"], TEST)
        ]
        if not reports:
            engine, c = evaluation.load_best(self.out / BEST, self.weights.engine), self.config
            options: dict[str, Any] = {"episodes": c.eval_episodes, "seed": c.seed, "name": f"{self.policy.name}, best"}
            for report in evaluation.held_out(engine, self.envs, self.log, **options):
                self.log.say(f"best model, {evaluation.write_report_line(report, best['env_steps'])}")
                reports.append({"update": best["update"], "env_steps": best["env_steps"], **report.to_dict()})
        folder.write_record(path, best | {TEST: reports})
        score = sum(report["success"] for report in reports) / len(reports)
        self.log.say(
            f"best model: of update {best['update']}, in {path.parent}; success {best['success']:.3f} on the "
            f"validation episodes that chose it, {score:.3f} on test episodes"
        )

    def _note(self) -> dict[str, Any]:
        """The limits of this training, for later evaluations of the model."""
        c, engine = self.config, self.weights.engine
        return TrainedLimits(
            engine.max_new_tokens, engine.family.image_tokens, c.history_turns, c.history_images, c.parser,
            engine.family.system, engine.temperature,
        ).note()  # fmt: skip

    def save(self) -> None:
        """Write a checkpoint; what it relies on is on the disk first."""
        self.log.sync()
        self.state.save(self.out / "checkpoints", self.learner)

    def save_model(self) -> list[Path]:
        """Write the trained model, adapters merged, and the adapters if there are any; return the folders. The first
        process writes."""
        c, note, model, family = self.config, self._note(), self.config.model or "", self.weights.family
        if not self.world.first:
            return []
        written = [lora.export_merged(family, to, note) for to in (self.out / MODEL, c.export) if to is not None]
        if c.lora.rank:
            base = str(Path(model).resolve()) if Path(model).exists() else model
            if model in BUILT or c.warm.steps or is_adapter(model):  # this run made the model under the adapters
                base = str(lora.export_merged(lora.reference(family), self.out / BASE, note).resolve())
            targets = (self.out / ADAPTER, c.export_adapter)
            written += [export_adapter(family, to, base, note) for to in targets if to is not None]
        return written

    def _record(self, update: Update) -> None:
        """Log an update and count it."""
        if update.result is None:
            raise RuntimeError("The learner ended an update without update.log(batch, metrics).")
        (batch, metrics), state, c = update.result, self.state, self.config
        failures = float(self._gather_failures(update.number))
        metrics |= moments(batch) | {"skipped": float(self.learner.optimizers.skips), "env/failures": failures}
        row = merge_metrics(metrics | {"steps": len(batch.samples), "tokens": int(batch.mask.sum())}, self.world)
        steps, tokens = int(row.pop("steps")), row.pop("tokens")
        row["episode/failed"] = min(1.0, row["env/failures"] / max(1.0, row.get("episode/count", 0.0)))
        state.update = update.number
        state.env_steps += steps
        seconds = sum(update.seconds.values())
        speed = {
            "speed/env_steps_per_s": steps / seconds,
            "speed/tokens_per_s": tokens / seconds,
            "speed/peak_memory_gib": peak_memory(batch.old.device) / 2**30,
        }
        if row.get("policy/gradient_steps") and not self.timed:
            self.timed, left = True, (c.most_updates - state.update) * steps
            left = left if c.env_steps is None else min(left, max(0, c.env_steps - state.env_steps))
            hours = left * seconds / steps / 3600
            rate = f"{steps / seconds:.3g} steps/s"
            self.log.say(f"update {state.update}: {rate}, {hours:.2g} hours to the end without evaluations")
        self.log.write({"update": state.update, "env_steps": state.env_steps, **row, **update.seconds, **speed})
        if self.recorder is not None and self.learner.collector.recorder is not None:  # this update records
            self.recorder.note(batch, self.weights.family)
            if self.log.tracker is not None and (turn := self.recorder.sample()) is not None:
                self.log.tracker.show(*turn, state.update)
            self.recorder.end(state.update)

    def _resume(self) -> str:
        c = self.config
        return f"{self.world.launcher} -m {c.command} --resume --out {shlex.quote(str(self.out))}{list_repeated(c)}"

    def _advice(self) -> dict[str, str]:
        """Return the advice for a run whose memory runs out."""
        c = self.config
        half = f"tokens {max(1, c.micro_tokens // 2)}" if c.micro_tokens else f"batch {max(1, c.micro_batch // 2)}"
        smaller = f"the newest checkpoint is intact; go on with less at once: {self._resume()} --micro-{half}"
        return {
            "rollout": "start again with smaller --num-envs, --image-tokens or --max-new-tokens.",
            "update": f"{smaller}." if c.recompute else f"{smaller}, or with --recompute.",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log and the environments, and let other processes work in the folder."""
        note_failures(self.out, self._take_failures(), self.state.update + (not self.finished()))
        self._stack.close()
        if kind is None:
            distributed.any_of(False, self.world)  # the first one writes longer than the others
