"""A training run: the parts around the updates that every learner needs.

    with Run(config) as run:
        run.keep(optimizers, collector)
        for update in run.updates():
            with update.phase("rollout"):
                ...
            update.log(batch, metrics)

The run makes the folder, the model, its warm start and its environments. `updates` brings the log, checkpoints,
evaluations on held-out episodes, Ctrl-C and exact resuming. What a learner does in an update is its own business.
"""

from __future__ import annotations

import math
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import torch
from torch import nn

from vlgym.errors import UserError
from vlgym.evaluation import Report
from vlgym.files import lock_folder, put_back
from vlgym.play.controls import CONTROLS, SHOWN
from vlgym.play.curriculum import Course
from vlgym.play.env_failures import Failure
from vlgym.play.trajectory import SEED_RULE
from vlgym.registry import get_registry
from vlgym.terminal import explain_system_error

from ..engine.engine import Engine, ModelPolicy
from ..engine.plain import make_engine
from ..models import lora
from ..models.folders import EVALUATION, NEW_TOKENS, Limits, read_limits
from ..models.load import load_family
from ..models.lora import check_adapter, export_adapter, is_adapter, is_tiny
from ..runs import distributed, folder
from ..runs.distributed import World, interruptible, is_out_of_memory, peak_memory, set_up_torch
from ..runs.folder import checkpoints, load_checkpoint, load_module, load_tensors, module_tensors, save_tensors
from ..runs.logs import FAILURES_FILE, LEVEL_MEAN, PLAYED, RunLog, note_failures
from .batch import Batch, Optimizers, moments, probe
from .collect import count_image_tokens
from .config import DEFAULT_MODEL, RunConfig
from .evaluation import (
    ADAPTER,
    BASE,
    BEST,
    MODEL,
    TEST,
    VAL,
    control_in_words,
    draw_run,
    held_out,
    in_words,
    keep_best,
    load_best,
    measure_gap,
    read_best,
)  # fmt: skip
from .recording import FOLDER, EpisodeRecorder
from .state import Kept, RunState, Weights, list_repeated, saved_config
from .warm_start import WarmReport, check_oracles, share_warm_start, show_check, warm_start

# ---- an update: its phases and what they took ------------------------------------------------------------------------


class Update:
    """One update, while a learner makes it.

    Attributes:
        number: from 1.
        seconds: of each phase.
    """

    def __init__(self, number: int, advice: Mapping[str, str], engines: Sequence[Engine] = ()) -> None:
        self.number, self._advice, self._engines = number, advice, engines
        self.seconds: dict[str, float] = {}
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


@contextmanager
def memory_advice(advice: str) -> Iterator[None]:
    """Turn running out of memory into an error that says what to try.

    Raises:
        UserError: memory ran out in the block.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            first = str(error).split("\n")[0]
            raise UserError(f"Out of memory ({first}): {advice}") from error
        raise


# ---- metrics over all processes --------------------------------------------------------------------------------------

SUMS = ("episode/count", "env/failures")


def is_sum(name: str) -> bool:
    """True for a metric that counts."""
    return name in SUMS or (name.startswith(PLAYED) and name != LEVEL_MEAN)


def merge_metrics(metrics: Mapping[str, float], batch: Batch, world: World) -> tuple[dict[str, float], int, int]:
    """Metrics, environment steps and reply tokens of an update over all processes: sums of counts, the largest maximum,
    else the mean of the processes that have a number.

    Args:
        metrics: of this process; another one may have others.
        batch: its rollout.
        world: the processes.
    """
    steps, tokens = len(batch.samples), int(batch.mask.sum())
    all_of: list[dict[str, Any]] = distributed.gather_objects(
        {"metrics": dict(metrics), "steps": steps, "tokens": tokens}, world
    )
    found: dict[str, list[float]] = {name: [] for each in all_of for name in each["metrics"]}
    for each in all_of:
        for name, value in each["metrics"].items():
            found[name] += [value] if math.isfinite(value) else []
    merged = {
        name: math.nan if not values else sum(values) if is_sum(name) else max(values) if name.endswith("_max")
        else sum(values) / len(values)
        for name, values in found.items()
    }  # fmt: skip
    return merged, sum(each["steps"] for each in all_of), sum(each["tokens"] for each in all_of)


BASE_FILE = "base.safetensors"  # the weights under the adapters, where a warm start made them

C = TypeVar("C", bound=RunConfig)


class Run(Generic[C]):
    """One run of a learner, new or resumed.

    Args:
        config: the learner's configuration; with `resume`, what is to be changed of the run in `out`.

    Attributes:
        config: resolved.
        world: the processes of the run; only the first one writes.
        envs: the environments; out: the folder.
        weights: the model's, see `Weights`; policy: samples with them.
        order: generator of everything that is not sampled by the policy, such as the order of minibatches.
        state: counters, evaluations and the rest of what a checkpoint holds.
        kept: what the learner has in addition to the model; log: where metrics go. Both are there after `keep`.
        stopped_by: the signal (Ctrl-C or SIGTERM) that ended the run before its last update; 0 for none.

    Raises:
        UserError: the folder holds another run, the run to resume is of another environment, model or configuration,
            or an option is wrong.
    """

    kept: Kept
    log: RunLog
    stopped_by = 0
    timed = False  # the first update that trains the policy has told how fast it was

    def __init__(self, config: C) -> None:
        c = self.config = (saved_config(config) if config.resume else config).resolve()
        set_up_torch(c.threads or 0, c.device)
        self.world = distributed.join(c.device)
        self.envs = c.make_environments(self.world)
        ids = self.envs.ids
        stem = ids[0].split("/")[-1].rsplit("-v", 1)[0] + "+" * (len(ids) > 1)
        chosen = str(c.out or folder.next_folder(Path("runs"), stem))
        self.out = Path(distributed.first_says(chosen, self.world))
        if self.world.first and not c.resume:
            folder.check_new(self.out)
        if c.export is not None:
            lora.check_export(c.export)
        if c.export_adapter is not None:
            check_adapter(c.export_adapter)
        if c.warm.steps and not c.resume:
            check_oracles(ids)
        how = f" ({', '.join(c.env_kwargs)})" if c.env_kwargs else ""
        self.title = f"{c.algorithm}, {', '.join(ids)}{how}, {c.model}, seed {c.seed}"
        record = self._describe()
        self._config = record["config"]  # as it was asked for, before the probe
        if c.resume:
            folder.check_same(folder.read_run(self.out), record)
        model = c.model or DEFAULT_MODEL
        family = load_family(
            model, image_tokens=c.image_tokens or count_image_tokens(model, ids), seed=c.seed,
            dtype=c.dtype or "float32", device=c.device, system=c.system or read_limits(model).system,
        )  # fmt: skip
        self._stack = ExitStack()
        self._stack.callback(self.envs.close)
        if self.world.first:
            self.out.mkdir(parents=True, exist_ok=True)
            self._stack.enter_context(lock_folder(self.out))
            if not c.resume:
                folder.write_record(self.out / folder.RUN_FILE, record)
        self._checkpoint = load_checkpoint(self.out / "checkpoints", str(family.device)) if c.resume else None
        base = self._checkpoint[1].get("base") if self._checkpoint else None
        warm = WarmReport()
        engine = make_engine(family, max_new_tokens=c.max_new_tokens or NEW_TOKENS, parsers=self.envs.parsers())
        if base is not None:
            load_module("base", family.model, load_tensors(self.out / BASE_FILE, base, str(family.device)))
        elif not c.resume and c.warm.steps:
            warm, base = self._warm_start(engine) if self.world.first else (warm, None)
            warm = share_warm_start(warm, engine, self.world)
        self.weights = Weights(
            engine, c.lora, seed=c.seed, train_vision=c.train_vision,
            keep_reference=c.keeps_reference or c.kl_coef > 0,
        )  # fmt: skip
        for each in self.weights.engines():  # the reference's, too: equal weights then have no KL
            each.temperature = c.temperature
        self.weights.family.set_recompute(c.recompute)
        sampling = torch.Generator().manual_seed(2 * c.seed + 1 ^ self.world.rank << 32)
        self.order = torch.Generator().manual_seed(2 * c.seed + 2)
        self.state = RunState(self.weights, {"sampler": sampling, "order": self.order}, warm, self.world)
        self.state.base = base
        self.policy = ModelPolicy(self.weights.engine, sampling, name=f"{c.algorithm} ({c.model})")
        record["policy"] = self.policy.describe()  # the limits that follow from model and warm start are known now
        if self.world.first and not c.resume:
            folder.write_record(self.out / folder.RUN_FILE, record)
        self.recorder: EpisodeRecorder | None = None
        if c.record_every and self.world.first:
            self.recorder = EpisodeRecorder(self.out / FOLDER, record, every=c.record_every, keep=c.record_keep)
        self.first_episodes = c.eval_episodes  # before the training
        if not is_tiny(model):
            self._probe()
        if self.world.first:
            put_back(self.out / BEST)
            read_best(self.out / BEST)  # a damaged note is told of before any work

    def _probe(self) -> None:
        """Take as many rows a pass as memory has room for, and say how long a CPU takes at least."""
        c, engine = self.config, self.weights.engine
        with memory_advice("one row does not fit; take --recompute, or smaller --image-tokens or --max-new-tokens."):
            prompt = self.envs.longest_prompt(engine.family.encode, engine.max_new_tokens)
            found = probe(engine, prompt, self.weights.parameters, c.passes, c.minibatch)
            start = time.perf_counter()
            engine.sample([prompt] * self.envs.count, torch.Generator().manual_seed(0))  # of equal prompts one is run
            seconds = (time.perf_counter() - start) / self.envs.count + found.seconds / 3
            engine.forget()
        turns = sum(get_registry().get(env_id).max_turns for env_id in self.envs.ids) * (1 + c.eval_controls)
        self.first_episodes = min(c.eval_episodes, max(1, int(60 * c.eval_minutes / (seconds * turns))))
        fits = min(distributed.gather_objects([found.passes.rows, found.passes.tokens or 0], self.world))
        self.config = replace(c, micro_batch=fits[0], micro_tokens=fits[1] or None)
        if self.world.first:
            print(found, flush=True)
            if c.eval_before and self.first_episodes < c.eval_episodes:
                few = f"{self.first_episodes} of {c.eval_episodes}"
                print(f"held-out episodes before training: {few}, which fit into --eval-minutes {c.eval_minutes:g}")
            if c.device == "cpu":
                steps = c.env_steps or c.most_updates * c.num_envs * c.rollout_steps
                print(f"a CPU takes {found.seconds * c.epochs * steps / 3600:.2g} hours for the gradient steps alone")

    def _describe(self) -> dict[str, Any]:
        """The run's record, without its policy."""
        c = self.config
        episodes = {
            "seeds": SEED_RULE,
            "training": {"split": "train", "first": 0, "episodes_per_seed": getattr(c, "group", 1)},
            "held_out": {"split": "test", "first": 0, "end": c.eval_episodes, "sampler_seed": c.seed},
        }
        return folder.describe(
            self.title, {"algorithm": c.algorithm, **asdict(c), "out": self.out}, self.envs.ids, self.envs.kwargs,
            builder=self.envs.builder, episodes=episodes, group=self.envs.group,
        )  # fmt: skip

    def _warm_start(self, engine: Engine) -> tuple[WarmReport, dict[str, Any] | None]:
        """Do it; return what was done, and size and checksum of the file with the weights under adapters."""
        c, course, saved = self.config, self.envs.course, None
        print(
            f"warm start: imitating the oracle, {c.warm.noise:.0%} of its actions replaced by random ones", flush=True
        )
        try:
            report = warm_start(
                engine, self.envs.ids, c.warm, seed=c.seed, env_kwargs=self.envs.kwargs,
                max_new_tokens=c.max_new_tokens, on_check=show_check, builder=self.envs.builder,
                on_failure=self.envs.failures.append, group=self.envs.group,
                course=course and Course(f"uniform{course.limit}", self.envs.ids, seed=c.seed),
                pictures=c.pictures,
            )  # fmt: skip
        except KeyboardInterrupt:
            print("\nstopped in the warm start, which is saved when it is done; the same command begins it again")
            raise
        finally:
            note_failures(self.out, self._take_failures(), 0)
        print(f"warm start ended after {report.steps} gradient steps, {report.seconds:.0f} s", flush=True)
        if c.lora.rank:
            base = {name: x.clone() for name, x in module_tensors("base", engine.family.model).items()}
            saved = save_tensors(self.out / BASE_FILE, base)
        return report, saved

    def keep(
        self,
        optimizers: Optimizers,
        collector: Any,
        modules: Mapping[str, nn.Module] | None = None,
        parts: Mapping[str, Any] | None = None,
    ) -> None:
        """Register the learner's state other than the model: checkpoints hold it. A resumed run gets it back here.

        Args:
            optimizers, collector: the learner's own; the run closes the collector.
            modules: further networks by name; parts: further state by name.

        Raises:
            UserError: the checkpoint is of another model, or of another number of processes.
        """
        self.kept = Kept(optimizers, collector, modules or {}, parts or {})
        self._stack.callback(collector.close)
        if self._checkpoint is not None:
            tensors, state = self._checkpoint
            self.state.restore(tensors, state, self.kept)
            if self.recorder is not None:
                self.recorder.forget_later(self.state.update)
            self._checkpoint = None
        c = self.config
        self.log = RunLog(
            self.out, name=c.algorithm, total=c.most_updates, done=self.state.update, steps=self.state.env_steps,
            env_steps=c.env_steps, quiet=not self.world.first,
        )  # fmt: skip
        self._stack.callback(self.log.close)
        if self.world.first and c.resume:  # nothing is damaged; the next resuming keeps what this one changed
            record = folder.read_run(self.out) | {"config": self._config}
            folder.write_record(self.out / folder.RUN_FILE, record)

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
            told = "Then give the command again."
            if checkpoints(self.out / "checkpoints"):
                told = f"The newest checkpoint is intact; go on: {self._resume()}"
            raise UserError(f"{line} {told}") from error

    def _updates(self) -> Iterator[Update]:
        c, state = self.config, self.state
        self.log.say(f"run folder: {self.out}")
        self.log.say(f"{c.in_words()}: {sum(p.numel() for p in self.weights.parameters):,} weights")
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
                self.kept.collector.recorder = self.recorder if recording else None
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
            curve = draw_run(self.out, self.envs, state, self.log, title=self.title, name=c.algorithm)
            self.log.say(f"learning curve: {curve}")

    def finished(self) -> bool:
        """True if all updates, or all environment steps, have been made."""
        c, state = self.config, self.state
        return state.update >= c.most_updates or (c.env_steps is not None and state.env_steps >= c.env_steps)

    def evaluate(self, split: str = TEST, *, gap: bool = False) -> list[dict[str, Any]]:
        """Play held-out episodes of every environment in the first process, print and record the reports; nothing
        where that was done after this update. Return the new reports, the same in all processes.

        With `eval_controls` a report holds those of half as many episodes with other pictures as `grey` and `shuffled`.

        Args:
            split: of the episodes.
            gap: measure the sight gap of canaries, too.
        """
        state, new = self.state, []
        done = any((report["update"], report["split"]) == (state.update, split) for report in state.evaluations)
        if done or not self.config.eval_episodes:
            return []
        if self.world.first:
            play = partial(self._play, self.weights.engine, self.policy.name, split=split)
            if state.update == 0 and split == TEST:
                play = partial(play, episodes=self.first_episodes)
            for report in play():
                new.append({"update": state.update, "env_steps": state.env_steps, **report.to_dict()})
                self.log.say(in_words(report, state.env_steps))
            for pictures in CONTROLS if self.config.eval_controls else ():
                for entry, report in zip(new, play(pictures=pictures), strict=True):
                    entry[pictures] = report.to_dict()
                    self.log.say(control_in_words(report, state.env_steps, self.envs, pictures))
            if gap and (measured := measure_gap(self.weights.engine)):
                new[-1]["sight/gap"] = asdict(measured)
                self.log.say(f"sight: {measured}")
        new = distributed.first_says(new, self.world)
        self._gather_failures(state.update)
        state.evaluations += new
        if self.world.first:
            folder.write_record(self.out / "evaluation.json", state.evaluations)
        return new

    def _play(
        self, engine: Engine, name: str, *, split: str = TEST, pictures: str = SHOWN, episodes: int | None = None
    ) -> Iterator[Report]:
        """Let a model play held-out episodes; `--eval-episodes` by default."""
        c = self.config
        return held_out(
            engine, self.envs, self.log, episodes=episodes or c.eval_episodes, seed=c.seed, name=name, split=split,
            pictures=pictures,
        )  # fmt: skip

    def _validate(self) -> None:
        """Play validation episodes when they are due, and keep the model if it is the best so far."""
        c = self.config
        if not c.eval_every or not (self.finished() or self.state.update % c.eval_every == 0):
            return
        reports = self.evaluate(VAL)
        if reports and self.world.first and keep_best(self.out / BEST, reports, self.weights.family, self._note()):
            self.log.say(f"the best model so far; kept in {self.out / BEST}")

    def _judge_best(self) -> None:
        """Let the best model play the split test, and print its success (in the first process)."""
        path, best = self.out / BEST / EVALUATION, read_best(self.out / BEST)
        if best is None or not self.config.eval_every or not self.world.first:
            return
        reports = best.get(TEST) or [
            e for e in self.state.evaluations if (e["update"], e["split"]) == (best["update"], TEST)
        ]
        if not reports:
            engine = load_best(self.out / BEST, self.weights.engine)
            for report in self._play(engine, f"{self.policy.name}, best"):
                self.log.say(f"best model, {in_words(report, best['env_steps'])}")
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
        return Limits(
            engine.max_new_tokens, engine.family.image_tokens, c.history_turns, c.history_images, c.parser,
            engine.family.system, engine.temperature,
        ).note()  # fmt: skip

    def save(self) -> None:
        """Write a checkpoint; what it relies on is on the disk first."""
        self.log.sync()
        self.state.save(self.out / "checkpoints", self.kept)

    def save_model(self) -> list[Path]:
        """Write the trained model, adapters merged, and the adapters if there are any; return the folders. The first
        process writes."""
        c, note, model, family = self.config, self._note(), self.config.model or "", self.weights.family
        if not self.world.first:
            return []
        written = [lora.export_merged(family, to, note) for to in (self.out / MODEL, c.export) if to is not None]
        if c.lora.rank:
            base = str(Path(model).resolve()) if Path(model).exists() else model
            if model == "tiny" or c.warm.steps or is_adapter(model):  # this run made the model under the adapters
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
        metrics |= moments(batch) | {"skipped": float(self.kept.optimizers.skips), "env/failures": failures}
        row, steps, tokens = merge_metrics(metrics, batch, self.world)
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
        if self.recorder is not None and self.kept.collector.recorder is not None:  # this update records
            self.recorder.note(batch, self.weights.family)
            self.recorder.end(state.update)

    def _gather_failures(self, update: int) -> int:
        """Write down which environments failed in all processes since the last time; return how many in this one. All
        processes call this."""
        told = distributed.gather_objects(own := self._take_failures(), self.world)
        failures = [failure for each in told for failure in each] if self.world.first else []
        note_failures(self.out, failures, update)
        if failures:
            self.log.say(f"{len(failures)} environment failures, restarted; see {self.out / FAILURES_FILE}")
        return len(own)

    def _take_failures(self) -> list[Failure]:
        taken = list(self.envs.failures)
        self.envs.failures.clear()
        return taken

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
