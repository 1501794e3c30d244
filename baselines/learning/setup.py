"""A run's set-up, once before its first update: folder, environments, model, warm start, memory probe, resuming."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from vlgym.files import lock_folder, put_back
from vlgym.play.env_failures import Failure
from vlgym.play.trajectory import SEED_RULE
from vlgym.registry import get_registry

from ..engine.engine import Engine, ModelPolicy, make_engine
from ..models import lora
from ..models.family import Family, Prompt
from ..models.folders import NEW_TOKENS, read_limits
from ..models.load import load_family
from ..models.lora import check_adapter, is_tiny
from ..runs import distributed, folder
from ..runs.distributed import is_out_of_memory, memory_advice, peak_memory, set_up_torch
from ..runs.folder import load_checkpoint, load_module, load_tensors, module_tensors, save_tensors
from ..runs.logs import FAILURES_FILE, RunLog, note_failures
from .batch import Optimizers, Passes
from .collect import count_image_tokens
from .config import DEFAULT_MODEL, RunConfig
from .evaluation import BEST, read_best
from .recording import EPISODES_FOLDER, EpisodeRecorder
from .state import LearnerParts, RunState, Weights, saved_config
from .warm_start import WarmReport, check_oracles, share_warm_start, warm_start

# ---- memory ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemoryProbe:
    """The largest pass that fits into memory, of `rows` rows as long as `tokens`."""

    passes: Passes
    rows: int
    tokens: int
    peak: int  # bytes
    seconds: float  # of one row

    def __str__(self) -> str:
        size = f"{self.rows} rows of {self.tokens} tokens a pass, peak {self.peak / 2**30:.2f} GiB"
        return f"memory probe: {size}, {self.seconds:.2f} s a row"


def probe(engine: Engine, prompt: Prompt, parameters: Sequence[Tensor], passes: Passes, rows: int) -> MemoryProbe:
    """Try a forward and backward pass of at most `rows` rows, all with the longest prompt and the longest reply, with
    room for an optimizer's two moments of the parameters, and halve it until it fits.

    Raises:
        MemoryError, torch.OutOfMemoryError: one row does not fit.
    """
    device, longest = engine.family.device, len(prompt) + engine.max_new_tokens
    rows = min(rows, passes.rows if passes.tokens is None else max(1, passes.tokens // longest))
    words = (engine.suppress == 0).nonzero().flatten().tolist()
    while True:
        start, tensors = time.perf_counter(), list[Tensor]()
        try:
            tensors += [torch.zeros_like(p) for p in parameters for _ in range(2)]
            ids = [torch.cat([torch.tensor(words[row % len(words)])[None], prompt.ids[1:]]) for row in range(rows)]
            prompts = [engine.family.place(each, prompt.images) for each in ids]  # which share no beginning
            reply = torch.full((rows, engine.max_new_tokens), words[0], device=device)
            tensors += engine.score_states(prompts, reply, reply >= 0, train_vision=passes.train_vision)
            tensors[-2].mean().backward()
            return MemoryProbe(passes, rows, longest, peak_memory(device), (time.perf_counter() - start) / rows)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or rows == 1:
                raise
        finally:
            tensors.clear()
            for parameter in parameters:
                parameter.grad = None
            engine.forget()
            if device.type == "cuda":
                torch.cuda.empty_cache()
        rows //= 2
        passes = replace(passes, rows=rows) if passes.tokens is None else replace(passes, tokens=rows * longest)


# ---- set-up ----------------------------------------------------------------------------------------------------------

BASE_FILE = "base.safetensors"  # the weights under the adapters, where a warm start made them

C = TypeVar("C", bound=RunConfig)


class Setup(Generic[C]):
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
        learner: what the learner has in addition to the model; log: where metrics go. Both are there after `keep`.
        stopped_by: the signal (Ctrl-C or SIGTERM) that ended the run before its last update; 0 for none.

    Raises:
        UserError: the folder holds another run, the run to resume is of another environment, model or configuration,
            or an option is wrong.
    """

    learner: LearnerParts
    log: RunLog
    stopped_by = 0

    def __init__(self, config: C) -> None:
        c = self.config = (saved_config(config) if config.resume else config).resolve()
        set_up_torch(c.threads or 0, c.device)
        self.world = distributed.join(c.device)
        self.envs = c.make_environments(self.world)

        # The folder is chosen, and what can be refused is refused, before a model is loaded.
        self.out = self._choose_folder()
        self._check_options()
        how = f" ({', '.join(c.env_kwargs)})" if c.env_kwargs else ""
        self.title = f"{c.algorithm}, {', '.join(self.envs.ids)}{how}, {c.model}, seed {c.seed}"
        record = self._describe()
        self._config = record["config"]  # as it was asked for, before the probe
        if c.resume:
            folder.check_same(folder.read_run_record(self.out), record)

        # The model begins where the checkpoint or the warm start left it; adapters are put around that.
        family = self._load_family()
        self._stack = ExitStack()
        self._stack.callback(self.envs.close)
        self._open_folder(record)
        self._checkpoint = load_checkpoint(self.out / "checkpoints", str(family.device)) if c.resume else None
        limit = self._checkpoint[1]["max_new_tokens"] if self._checkpoint else c.max_new_tokens or NEW_TOKENS
        engine = make_engine(family, max_new_tokens=limit, parsers=self.envs.parsers())
        warm, base = self._find_beginning(engine)
        self.weights = Weights(
            engine, c.lora, seed=c.seed, train_vision=c.train_vision,
            keep_reference=c.keeps_reference or c.kl_coef > 0,
        )  # fmt: skip
        for each in self.weights.engines():  # the reference's, too: equal weights then have no KL
            each.temperature = c.temperature
        self.weights.family.set_recompute(c.recompute)

        # Random numbers of sampling differ between processes, the order of minibatches does not.
        sampling = torch.Generator().manual_seed(2 * c.seed + 1 ^ self.world.rank << 32)
        self.order = torch.Generator().manual_seed(2 * c.seed + 2)
        self.state = RunState(self.weights, {"sampler": sampling, "order": self.order}, warm, self.world)
        self.state.base = base
        self.policy = ModelPolicy(self.weights.engine, sampling, name=f"{c.algorithm} ({c.model})")

        # The record is complete: the limits that follow from model and warm start are known.
        record["policy"] = self.policy.describe()
        if self.world.first and not c.resume:
            folder.write_record(self.out / folder.RUN_FILE, record)
        self.recorder: EpisodeRecorder | None = None
        if c.record_every and self.world.first:
            self.recorder = EpisodeRecorder(
                self.out / EPISODES_FOLDER, record, every=c.record_every, keep=c.record_keep
            )
        self.first_episodes = c.eval_episodes  # before the training
        if not is_tiny(c.model or DEFAULT_MODEL):
            self._probe()
        if self.world.first:
            put_back(self.out / BEST)
            read_best(self.out / BEST)  # fails early where the note is damaged

    def _choose_folder(self) -> Path:
        """Return the run's folder, the same in all processes."""
        ids = self.envs.ids
        stem = ids[0].split("/")[-1].rsplit("-v", 1)[0] + "+" * (len(ids) > 1)
        free = next(path for number in count(1) if not (path := Path("runs") / f"{stem}-{number:03d}").exists())
        return Path(distributed.first_says(str(self.config.out or free), self.world))

    def _check_options(self) -> None:
        """Refuse folders that cannot be written, and a warm start without an oracle."""
        c = self.config
        if self.world.first and not c.resume:
            folder.check_new(self.out)
        if c.export is not None:
            lora.check_export(c.export)
        if c.export_adapter is not None:
            check_adapter(c.export_adapter)
        if c.warm.steps and not c.resume:
            check_oracles(self.envs.ids)

    def _load_family(self) -> Family:
        """Load the model that the run begins with."""
        c, model = self.config, self.config.model or DEFAULT_MODEL
        family = load_family(
            model, image_tokens=c.image_tokens or count_image_tokens(model, self.envs.ids), seed=c.seed,
            dtype=c.dtype or "float32", device=c.device, system=c.system or read_limits(model).system,
        )  # fmt: skip
        family.check_pictures(self.envs.pictured)
        return family

    def _open_folder(self, record: Mapping[str, Any]) -> None:
        """Make the run's folder, lock it and write the record, in the first process."""
        if self.world.first:
            self.out.mkdir(parents=True, exist_ok=True)
            self._stack.enter_context(lock_folder(self.out))
            if not self.config.resume:
                folder.write_record(self.out / folder.RUN_FILE, record)

    def _find_beginning(self, engine: Engine) -> tuple[WarmReport, dict[str, Any] | None]:
        """Put the weights of the warm start into the engine's model, or make a warm start; return its report, and the
        note of its file where there is one."""
        warm = WarmReport()
        base = self._checkpoint[1].get("base") if self._checkpoint else None
        if base is not None:
            family = engine.family
            load_module("base", family.model, load_tensors(self.out / BASE_FILE, base, str(family.device)))
        elif not self.config.resume and self.config.warm.steps:
            warm, base = self._warm_start(engine) if self.world.first else (warm, None)
            warm = share_warm_start(warm, engine, self.world)
        return warm, base

    def _probe(self) -> None:
        """Take as many rows a pass as memory has room for, and say how long a CPU takes at most."""
        c, engine = self.config, self.weights.engine
        with memory_advice("one row does not fit; take --recompute, or smaller --image-tokens or --max-new-tokens."):
            prompt = self.envs.longest_prompt(engine.family.encode, engine.max_new_tokens)
            with distributed.host_limit(engine.family.device, self.world.size):
                result = probe(engine, prompt, self.weights.parameters, c.passes, c.minibatch)
            start = time.perf_counter()
            engine.sample([prompt] * self.envs.count, torch.Generator().manual_seed(0))  # of equal prompts one is run
            seconds = (time.perf_counter() - start) / self.envs.count + result.seconds / 3
            engine.forget()
        turns = sum(get_registry().get(env_id).max_turns for env_id in self.envs.ids) * (1 + c.eval_controls)
        self.first_episodes = min(c.eval_episodes, max(1, int(60 * c.eval_minutes / (seconds * turns))))
        fits = min(distributed.gather_objects([result.passes.rows, result.passes.tokens or 0], self.world))
        self.config = replace(c, micro_batch=fits[0], micro_tokens=fits[1] or None)
        if self.world.first:
            print(result, flush=True)
            if c.eval_before and self.first_episodes < c.eval_episodes:
                few = f"{self.first_episodes} of {c.eval_episodes}"
                print(f"held-out episodes before training: {few}, which fit into --eval-minutes {c.eval_minutes:g}")
            if c.device == "cpu":
                steps = c.env_steps or c.most_updates * c.num_envs * c.rollout_steps
                hours = result.seconds * c.epochs * steps / 3600
                print(f"a CPU takes up to {hours:.2g} hours for the gradient steps: what prompts share counts once")

    def _describe(self) -> dict[str, Any]:
        """The run's record, without its policy."""
        c = self.config
        episodes = {  # by purpose, which split and numbers are played
            "seeds": SEED_RULE,
            "training": {"split": "train", "first": 0, "episodes_per_seed": getattr(c, "group", 1)},
            "held_out": {"split": "test", "first": 0, "end": c.eval_episodes, "sampler_seed": c.seed},
        }
        config = {"algorithm": c.algorithm, **asdict(c), "out": self.out}
        envs = self.envs
        record = folder.describe(self.title, config, envs.ids, envs.kwargs, builder=envs.builder, group=envs.group)
        return record | {"episodes": episodes}

    def _warm_start(self, engine: Engine) -> tuple[WarmReport, dict[str, Any] | None]:
        """Do it; return what was done, and size and checksum of the file with the weights under adapters."""
        c, saved = self.config, None
        print(
            f"warm start: imitating the oracle, {c.warm.noise:.0%} of its actions replaced by random ones", flush=True
        )
        try:
            report = warm_start(
                engine, self.envs, c.warm, seed=c.seed, max_new_tokens=c.max_new_tokens,
                on_failure=self.envs.failures.append,
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
        self.learner = LearnerParts(optimizers, collector, modules or {}, parts or {})
        self._stack.callback(collector.close)
        if self._checkpoint is not None:
            tensors, state = self._checkpoint
            self.state.restore(tensors, state, self.learner)
            if self.recorder is not None:
                self.recorder.forget_later(self.state.update)
            self._checkpoint = None
        c = self.config
        self.log = RunLog(
            self.out, name=c.algorithm, total=c.most_updates, done=self.state.update, steps=self.state.env_steps,
            env_steps=c.env_steps, tracker=c.tracker, quiet=not self.world.first,
        )  # fmt: skip
        self._stack.callback(self.log.close)
        if self.world.first and c.resume:  # nothing is damaged; the next resuming keeps what this one changed
            record = folder.read_run_record(self.out) | {"config": self._config}
            folder.write_record(self.out / folder.RUN_FILE, record)

    def _gather_failures(self, update: int) -> int:
        """Write down which environments failed in all processes since the last time; return how many in this one. All
        processes call this."""
        everywhere = distributed.gather_objects(own := self._take_failures(), self.world)
        failures = [failure for each in everywhere for failure in each] if self.world.first else []
        note_failures(self.out, failures, update)
        if failures:
            self.log.say(f"{len(failures)} environment failures, restarted; see {self.out / FAILURES_FILE}")
        return len(own)

    def _take_failures(self) -> list[Failure]:
        taken = list(self.envs.failures)
        self.envs.failures.clear()
        return taken
