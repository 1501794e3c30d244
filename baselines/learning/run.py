"""A training run: its set-up, what it does in every update, and after the last.

    with Run(config) as run:
        run.keep(optimizers, collector)
        for update in run.updates():
            with update.phase("rollout"):
                ...
            update.log(batch, metrics)

The set-up makes the folder, the environments, the model and its warm start. `updates` brings the
log, checkpoints, evaluations on held-out episodes, Ctrl-C and exact resuming.
"""

import math
import shlex
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import torch
from torch import nn

from vlgym.errors import UserError
from vlgym.files import lock_folder, put_back
from vlgym.play.controls import CONTROLS
from vlgym.play.env_failures import Failure
from vlgym.play.trajectory import SEED_RULE
from vlgym.registry import get_registry
from vlgym.sight.blind_gap import NOT_MEASURED
from vlgym.terminal import explain_system_error

from ..engine.engine import Engine, ModelPolicy, make_engine
from ..models import lora
from ..models.family import Family
from ..models.folders import EVALUATION, NEW_TOKENS, TrainedLimits, read_limits
from ..models.load import BUILT, load_family
from ..models.lora import export_adapter, is_adapter, is_tiny
from ..runs import distributed, folder
from ..runs.distributed import World, device_in_words, interruptible, memory_advice, peak_memory
from ..runs.folder import checkpoints, load_module, load_tensors, module_tensors, save_tensors
from ..runs.logs import FAILURES_FILE, LEVEL_MEAN, PLAYED, RunLog, note_failures
from . import evaluation
from .batch import Batch, Optimizers, moments, probe
from .collect import count_image_tokens
from .config import DEFAULT_MODEL, RunConfig
from .evaluation import ADAPTER, BASE, BEST, MODEL, TEST, VAL
from .recording import EPISODES_FOLDER, EpisodeRecorder
from .state import LearnerParts, RunState, Weights, list_repeated, saved_config
from .warm_start import WarmReport, check_oracles, share_warm_start, warm_start

BASE_FILE = "base.safetensors"  # the weights under the adapters, where a warm start made them
SUMS = ("steps", "tokens", "episode/count", "env/failures")

C = TypeVar("C", bound=RunConfig)


class Update:
    """One update, while a learner makes it; `number` is from 1."""

    def __init__(self, number: int, advice: Mapping[str, str], engines: Sequence[Engine] = ()) -> None:
        self.number, self._advice, self._engines = number, advice, engines
        self.seconds: dict[str, float] = {}  # of each phase
        self.result: tuple[Batch, dict[str, float]] | None = None

    @contextmanager
    def phase(self, name: str, *, keep_prompts: bool = False) -> Iterator[None]:
        """Time a block, "rollout", "reference", "check" or "update", and advise if memory runs out."""
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


def merge_metrics(metrics: Mapping[str, float], world: World) -> dict[str, float]:
    """Metrics over all processes: sums of counts, largest maxima, else means of the finite."""
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


class Run(Generic[C]):
    """One run of a learner, new or resumed; with `resume`, `config` has what is to be changed. A
    folder with another run, and an option that is wrong or differs, are a `UserError`.

    Attributes:
        config: resolved; world: the processes of the run, of which the first one writes.
        envs: the environments; out: the folder; weights: see `Weights`; policy: samples with them.
        order: generator of what the policy does not sample, such as the order of minibatches.
        state: counters, evaluations and the rest of what a checkpoint holds.
        learner, log: the rest of the learner, and where metrics go, after `keep`.
        stopped_by: the signal that ended the run before its last update; 0 for none.
    """

    learner: LearnerParts
    log: RunLog
    stopped_by = 0
    timed = False  # the first update that trains the policy has told how fast it was

    def __init__(self, config: C) -> None:
        c = self.config = (saved_config(config) if config.resume else config).resolve()
        distributed.set_up_torch(c.threads or 0, c.device)
        self.world = distributed.join(c.device)
        self.envs = c.make_environments(self.world)
        self._stack = ExitStack()
        self._stack.callback(self.envs.close)
        self.last_update = c.most_updates
        self.first_episodes = c.eval_episodes  # before the training

        # The folder is chosen, and what can be refused is refused, before a model is loaded.
        self.out = self._choose_folder()
        self._check_request()
        how = f" ({', '.join(c.env_kwargs)})" if c.env_kwargs else ""
        self.title = f"{c.algorithm}, {', '.join(self.envs.ids)}{how}, {c.model}, seed {c.seed}"
        record = self._describe()
        self._config = record["config"]  # as the user gave it, before the probe
        if c.resume:
            folder.check_same(folder.read_run_record(self.out), record)
        family = self._load_family()
        self._take_folder(record)

        # Random numbers of sampling differ between processes, the order of minibatches does not.
        sampling = torch.Generator().manual_seed(2 * c.seed + 1 ^ self.world.rank << 32)
        self.order = torch.Generator().manual_seed(2 * c.seed + 2)
        self._make_model(family, {"sampler": sampling, "order": self.order})
        self.policy = ModelPolicy(self.weights.engine, sampling, name=f"{c.algorithm} ({c.model})")

        # The record is complete: the limits that follow from model and warm start are known.
        self.recorder = self._complete_record(record) if self.world.first else None
        if not is_tiny(c.model or DEFAULT_MODEL):
            self._probe()

    def _choose_folder(self) -> Path:
        """Return `out`, or the first free folder that is named after the environments."""
        ids = self.envs.ids
        stem = ids[0].split("/")[-1].rsplit("-v", 1)[0] + "+" * (len(ids) > 1)
        numbered = (Path("runs") / f"{stem}-{number:03d}" for number in count(1))
        free = next(path for path in numbered if not path.exists())
        return Path(distributed.first_says(str(self.config.out or free), self.world))

    def _check_request(self) -> None:
        """Refuse folders that hold something else, and a warm start without an oracle."""
        c = self.config
        if self.world.first and not c.resume:
            folder.check_new(self.out)
        if c.export is not None:
            lora.check_export(c.export)
        if c.export_adapter is not None:
            lora.check_adapter(c.export_adapter)
        if c.warm.steps and not c.resume:
            check_oracles(self.envs.ids)

    def _load_family(self) -> Family:
        c = self.config
        model = c.model or DEFAULT_MODEL
        family = load_family(
            model, image_tokens=c.image_tokens or count_image_tokens(model, self.envs.ids), seed=c.seed,
            dtype=c.dtype or "float32", device=c.device, system=c.system or read_limits(model).system,
        )  # fmt: skip
        family.check_pictures(self.envs.pictured)
        return family

    def _take_folder(self, record: Mapping[str, Any]) -> None:
        """Lock the run's folder in the first process; a new one gets its record."""
        if self.world.first:
            self.out.mkdir(parents=True, exist_ok=True)
            self._stack.enter_context(lock_folder(self.out))
            if not self.config.resume:
                folder.write_record(self.out / folder.RUN_FILE, record)

    def _make_model(self, family: Family, generators: Mapping[str, torch.Generator]) -> None:
        """Begin where the checkpoint or the warm start left the model, then add adapters."""
        c, limit = self.config, self.config.max_new_tokens or NEW_TOKENS
        self._checkpoint = None
        if c.resume:
            self._checkpoint = folder.load_checkpoint(self.out / "checkpoints", str(family.device))
            limit = self._checkpoint[1]["max_new_tokens"]
        engine = make_engine(family, max_new_tokens=limit, parsers=self.envs.parsers())
        warm, base = self._find_beginning(engine)
        self.weights = Weights(
            engine, c.lora, seed=c.seed, train_vision=c.train_vision,
            keep_reference=c.keeps_reference or c.kl_coef > 0,
        )  # fmt: skip
        for each in self.weights.engines:  # the reference's, too: equal weights then have no KL
            each.temperature = c.temperature
        self.weights.family.set_recompute(c.recompute)
        self.state = RunState(self.weights, generators, warm, self.world, base)

    def _complete_record(self, record: dict[str, Any]) -> EpisodeRecorder | None:
        """Write the policy into a new run's record; return the recorder of episodes, if asked for."""
        c = self.config
        put_back(self.out / BEST)
        evaluation.read_best(self.out / BEST)  # fails early where the note is damaged
        record["policy"] = self.policy.describe()
        if not c.resume:
            folder.write_record(self.out / folder.RUN_FILE, record)
        if not c.record_every:
            return None
        episodes = self.out / EPISODES_FOLDER
        return EpisodeRecorder(episodes, record, every=c.record_every, keep=c.record_keep)

    def _describe(self) -> dict[str, Any]:
        c, envs = self.config, self.envs
        episodes = {  # by purpose, which split and numbers are played
            "seeds": SEED_RULE,
            "training": {"split": "train", "first": 0, "episodes_per_seed": getattr(c, "group", 1)},
            "held_out": {"split": TEST, "first": 0, "end": c.eval_episodes, "sampler_seed": c.seed},
        }
        config = {"algorithm": c.algorithm, **asdict(c), "out": self.out}
        options: dict[str, Any] = {"builder": envs.builder, "group": envs.group}
        return folder.describe(self.title, config, envs.ids, envs.kwargs, **options) | {"episodes": episodes}

    def _find_beginning(self, engine: Engine) -> tuple[WarmReport, dict[str, Any] | None]:
        """Restore the weights under adapters, or make a warm start; return report and note."""
        c, model, device = self.config, engine.family.model, str(engine.family.device)
        base = self._checkpoint[1].get("base") if self._checkpoint else None
        if base is not None:
            load_module("base", model, load_tensors(self.out / BASE_FILE, base, device))
        if c.resume or not c.warm.steps:
            return WarmReport(), base

        # The first process trains; the others take over its weights.
        warm = WarmReport()
        if self.world.first:
            share = f"{c.warm.noise:.0%} of its actions replaced by random ones"
            print(f"warm start: imitating the oracle, {share}", flush=True)
            try:
                warm = warm_start(
                    engine, self.envs, c.warm, seed=c.seed, max_new_tokens=c.max_new_tokens,
                    on_failure=self.envs.failures.append,
                )  # fmt: skip
            except KeyboardInterrupt:
                print("\nstopped in the warm start, which is saved when it is done; the same command begins it again")
                raise
            finally:
                note_failures(self.out, self._take_failures(), 0)
            print(f"warm start ended after {warm.steps} gradient steps, {warm.seconds:.0f} s", flush=True)
            if c.lora.rank:
                tensors = {name: x.clone() for name, x in module_tensors("base", model).items()}
                base = save_tensors(self.out / BASE_FILE, tensors)
        return share_warm_start(warm, engine, self.world), base

    def _probe(self) -> None:
        """Take as many rows a pass as memory has room for, and say how long a CPU takes at most."""
        c, engine = self.config, self.weights.engine
        with memory_advice("one row does not fit; take --recompute, or smaller --image-tokens or --max-new-tokens."):
            prompt = self.envs.longest_prompt(engine.family.encode, engine.max_new_tokens)
            with distributed.host_limit(engine.family.device, self.world.size):
                result = probe(engine, prompt, self.weights.parameters, c.passes, c.minibatch)
            start = time.perf_counter()
            # Of equal prompts one is run, so the prompt's part of the time is that of a probed row.
            engine.sample([prompt] * self.envs.count, torch.Generator().manual_seed(0))
            seconds = (time.perf_counter() - start) / self.envs.count + result.seconds / 3
            engine.forget()

        # All processes make as many passes as the one with the least memory.
        limits = [get_registry().get(env_id).max_turns for env_id in self.envs.ids]
        episodes = 60 * c.eval_minutes / (seconds * sum(limits) * (1 + c.eval_controls))
        self.first_episodes = min(c.eval_episodes, max(1, int(episodes)))
        own = [result.passes.rows, result.passes.tokens or 0]
        fits = min(distributed.gather_objects(own, self.world))
        self.config = replace(c, micro_batch=fits[0], micro_tokens=fits[1] or None)

        if self.world.first:
            print(result, flush=True)
            if c.eval_before and self.first_episodes < c.eval_episodes:
                few, minutes = f"{self.first_episodes} of {c.eval_episodes}", f"{c.eval_minutes:g}"
                print(f"held-out episodes before training: {few}, which fit into --eval-minutes {minutes}")
            if c.device == "cpu":
                steps = c.env_steps or self.last_update * c.num_envs * c.rollout_steps
                hours = f"{result.seconds * c.epochs * steps / 3600:.2g} hours"
                print(f"a CPU takes up to {hours} for the gradient steps: what prompts share counts once")

    def keep(
        self, optimizers: Optimizers, collector: Any, modules: Mapping[str, nn.Module] | None = None,
        parts: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Register the learner's state for checkpoints, with further networks and state by name; a
        resumed run gets it back. The run closes the collector."""
        c = self.config
        self.learner = LearnerParts(optimizers, collector, modules or {}, parts or {})
        self._stack.callback(collector.close)

        # The checkpoint is dropped once it is restored: its tensors take as much as the model.
        if self._checkpoint is not None:
            self.state.restore(*self._checkpoint, self.learner)
            if self.recorder is not None:
                self.recorder.forget_later(self.state.update)
            self._checkpoint = None

        # Only now is it known how many rows of the log are of this run.
        self.log = RunLog(
            self.out, name=c.algorithm, total=self.last_update, done=self.state.update,
            steps=self.state.env_steps, env_steps=c.env_steps, tracker=c.tracker, quiet=not self.world.first,
        )  # fmt: skip
        self._stack.callback(self.log.close)
        if self.world.first and c.resume:  # the next resuming keeps what this one changed
            record = folder.read_run_record(self.out) | {"config": self._config}
            folder.write_record(self.out / folder.RUN_FILE, record)

    # ---- updates ---------------------------------------------------------------------------------

    def updates(self) -> Iterator[Update]:
        """The updates that are left, with evaluations and checkpoints before, between and after.
        Ctrl-C and SIGTERM end the run after the current update. A full disk is a `UserError`."""
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
        c, state, course, advice = self.config, self.state, self.envs.course, self._advice()
        self.log.say(f"run folder: {self.out}")
        trained = f"adapters of rank {c.lora.rank}" if c.lora.rank else "all weights"
        how = f"{c.dtype}, {device_in_words(c.device)}, learning rate {c.policy_lr:g}"
        size = sum(p.numel() for p in self.weights.parameters)
        self.log.say(f"training {trained} of {c.model}: {how}: {size:,} weights")
        if not self.envs.pictured:
            self.log.say(f"prompts show no pictures: the controls are left out ({', '.join(CONTROLS)})")
        if course is not None:
            levels = f"{len(course.places)} levels; held-out episodes play the highest"
            self.log.say(f"curriculum {c.curriculum} over {levels}")

        # The warm start is safe before anything else takes time.
        if state.update == 0:
            self.save()
            if c.eval_before:
                self.evaluate()
            self._validate()
        elif self.finished():
            more = f"{self._resume()} {'--updates' if c.env_steps is None else '--env-steps'} N"
            self.log.say(f"all {state.update} updates have been made; to add some: {more}")

        # An update depends on nothing that was computed before it, so that resuming is exact.
        stop = self._stack.enter_context(interruptible())
        while not self.finished() and not distributed.any_of(bool(stop["signal"]), self.world):
            for engine in self.weights.engines:
                engine.forget()
            update = Update(state.update + 1, advice, self.weights.engines)
            if self.recorder is not None:
                recording = self.recorder.begin(update.number)
                self.learner.collector.recorder = self.recorder if recording else None
            yield update
            self._record(update)
            self._validate()
            stopping = distributed.any_of(bool(stop["signal"]), self.world)
            if state.update % c.save_every == 0 or self.finished() or stopping:
                self.save()

        # The checkpoint holds the last evaluation, so that a run resumed here plays it once.
        if self.finished():
            self.evaluate(gap=True)
            self.save()
            self.log.say(f"model: {', '.join(map(str, self.save_model()))}")
            self._judge_best()
        else:
            self.stopped_by = stop["signal"] or signal.SIGINT
            self.log.say(f"stopped after update {state.update}. Go on: {self._resume()}")
        if self.world.first:
            names = {"title": self.title, "name": c.algorithm}
            curve = evaluation.draw_run(self.out, self.envs, state, self.log, **names)
            self.log.say(f"learning curve: {curve}")

    def finished(self) -> bool:
        """True if all updates, or all environment steps, have been made."""
        state, steps = self.state, self.config.env_steps
        return state.update >= self.last_update or (steps is not None and state.env_steps >= steps)

    def _record(self, update: Update) -> None:
        if update.result is None:
            raise RuntimeError("The learner ended an update without update.log(batch, metrics).")
        (batch, metrics), state, c = update.result, self.state, self.config

        # Counts and means are those of all processes.
        metrics |= moments(batch) | {"skipped": float(self.learner.optimizers.skips)}
        metrics["env/failures"] = float(self._gather_failures(update.number))
        metrics |= {"steps": len(batch.samples), "tokens": int(batch.mask.sum())}
        row = merge_metrics(metrics, self.world)
        steps, tokens = int(row.pop("steps")), row.pop("tokens")
        ended = max(1.0, row.get("episode/count", 0.0))
        row["episode/failed"] = min(1.0, row["env/failures"] / ended)
        state.update = update.number
        state.env_steps += steps
        seconds = sum(update.seconds.values())
        speed = {"speed/env_steps_per_s": steps / seconds, "speed/tokens_per_s": tokens / seconds}
        speed["speed/peak_memory_gib"] = peak_memory(batch.old.device) / 2**30

        # The first update that trains the policy tells how long the run will take.
        if row.get("policy/gradient_steps") and not self.timed:
            self.timed, left = True, (self.last_update - state.update) * steps
            left = left if c.env_steps is None else min(left, max(0, c.env_steps - state.env_steps))
            hours = f"{left * seconds / steps / 3600:.2g} hours to the end without evaluations"
            self.log.say(f"update {state.update}: {steps / seconds:.3g} steps/s, {hours}")
        counts = {"update": state.update, "env_steps": state.env_steps}
        self.log.write({**counts, **row, **update.seconds, **speed})

        # Recordings of the episodes that this update played.
        if self.recorder is not None and self.learner.collector.recorder is not None:
            self.recorder.note(batch, self.weights.family)
            if self.log.tracker is not None and (turn := self.recorder.sample()) is not None:
                self.log.tracker.show(*turn, state.update)
            self.recorder.end(state.update)

    # ---- evaluation and saving -------------------------------------------------------------------

    def evaluate(self, split: str = TEST, *, gap: bool = False) -> list[dict[str, Any]]:
        """Play held-out episodes in the first process, once per update; return the reports to all.
        With `eval_controls` a report has those with other pictures as `grey` and `shuffled`."""
        c, state, new = self.config, self.state, []
        done = {(report["update"], report["split"]) for report in state.evaluations}
        if (state.update, split) in done or not c.eval_episodes:
            return []

        # The same episodes with their own pictures, and half of them with other ones.
        if self.world.first:
            first = state.update == 0 and split == TEST
            play = partial(
                evaluation.held_out, self.weights.engine, self.envs, self.log, seed=c.seed, split=split,
                episodes=self.first_episodes if first else c.eval_episodes, name=self.policy.name,
            )  # fmt: skip
            counts = {"update": state.update, "env_steps": state.env_steps}
            for report in play():
                new.append(counts | report.to_dict())
                self.log.say(evaluation.write_report_line(report, state.env_steps))
            for pictures in CONTROLS if c.eval_controls else ():
                for entry, report in zip(new, play(pictures=pictures), strict=True):
                    entry[pictures] = report.to_dict()
                    line = evaluation.write_report_line(report, state.env_steps)
                    blind = evaluation.find_blind(report.env_id, self.envs)
                    floor = NOT_MEASURED if blind is None else f"{blind['success']:.2f}"
                    self.log.say(f"with {pictures} pictures, {line}; blind floor {floor}")
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
        """Play validation episodes when they are due, and keep the model if it is the best."""
        c, best = self.config, self.out / BEST
        if not c.eval_every or not (self.finished() or self.state.update % c.eval_every == 0):
            return
        reports, family = self.evaluate(VAL), self.weights.family
        if reports and self.world.first and evaluation.keep_best(best, reports, family, self._note()):
            self.log.say(f"the best model so far; kept in {best}")

    def _judge_best(self) -> None:
        """Let the best model play the split test, and print its success."""
        c, where, best = self.config, self.out / BEST, evaluation.read_best(self.out / BEST)
        if best is None or not c.eval_every or not self.world.first:
            return

        # It may have played them already: as the last model, or before the run was resumed.
        played = [e for e in self.state.evaluations if e["update"] == best["update"] and e["split"] == TEST]
        reports = best.get(TEST) or played
        if not reports:
            engine, name = evaluation.load_best(where, self.weights.engine), f"{self.policy.name}, best"
            options: dict[str, Any] = {"episodes": c.eval_episodes, "seed": c.seed, "name": name}
            counts = {"update": best["update"], "env_steps": best["env_steps"]}
            for report in evaluation.held_out(engine, self.envs, self.log, **options):
                self.log.say(f"best model, {evaluation.write_report_line(report, best['env_steps'])}")
                reports.append(counts | report.to_dict())
        folder.write_record(where / EVALUATION, best | {TEST: reports})
        score = sum(report["success"] for report in reports) / len(reports)
        self.log.say(
            f"best model: of update {best['update']}, in {where}; success {best['success']:.3f} on the "
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
        """Write the trained model, adapters merged, and the adapters; return the folders."""
        c, note, model, family = self.config, self._note(), self.config.model or "", self.weights.family
        if not self.world.first:
            return []
        merged = [to for to in (self.out / MODEL, c.export) if to is not None]
        written = [lora.export_merged(family, to, note) for to in merged]

        # Adapters name the model under them, which this run may have made.
        if c.lora.rank:
            base = str(Path(model).resolve()) if Path(model).exists() else model
            if model in BUILT or c.warm.steps or is_adapter(model):
                made = lora.export_merged(lora.reference(family), self.out / BASE, note)
                base = str(made.resolve())
            targets = (self.out / ADAPTER, c.export_adapter)
            written += [export_adapter(family, to, base, note) for to in targets if to is not None]
        return written

    def _gather_failures(self, update: int) -> int:
        """Write down new failures of environments; count those of this process."""
        everywhere = distributed.gather_objects(own := self._take_failures(), self.world)
        failures = [failure for each in everywhere for failure in each] if self.world.first else []
        note_failures(self.out, failures, update)
        if failures:
            self.log.say(f"{len(failures)} environment failures, restarted; see {self.out / FAILURES_FILE}")
        return len(own)

    def _take_failures(self) -> list[Failure]:
        taken, self.envs.failures[:] = list(self.envs.failures), []
        return taken

    # ---- advice and end --------------------------------------------------------------------------

    def _resume(self) -> str:
        c, size, out = self.config, self.world.size, shlex.quote(str(self.out))
        launcher = "python" if size == 1 else f"torchrun --nproc-per-node {size}"
        return f"{launcher} -m {c.command} --resume --out {out}{list_repeated(c)}"

    def _advice(self) -> dict[str, str]:
        c = self.config
        name, size = ("tokens", c.micro_tokens) if c.micro_tokens else ("batch", c.micro_batch)
        smaller = "the newest checkpoint is intact; go on with less at once: "
        smaller += f"{self._resume()} --micro-{name} {max(1, size // 2)}"
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
