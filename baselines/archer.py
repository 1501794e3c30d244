"""ArCHer: critics that judge whole replies, an actor trained token by token, a replay buffer.

    python -m baselines.archer --env vlgym/NumberLine-v1                 # from the newest 100,000 steps
    python -m baselines.archer --env vlgym/NumberLine-v1 --buffer 256    # from this rollout: 32 times 8

The method (Zhou et al., ICML 2024, arXiv 2402.19446): two Q and two V critics, with target copies
that follow them slowly, are fitted by one-step bootstrapping on transitions of a replay buffer,
Q_i(s, a) to r + gamma V'_i(s') and V_i(s) to Q'_i(s, a~) with a~ newly sampled from the policy. The
policy is trained by REINFORCE on the same a~, every token with the advantage min(Q_1, Q_2)(s, a~) -
min(V_1, V_2)(s). The first updates train the critics alone.

Departures from the source, and what it leaves open:
- the critics are small MLPs on features of the frozen reference instead of fine-tuned RoBERTas, so
  what is replayed never goes stale and no text encoder needs to see images. A state is the hidden
  state of the last prompt token; a reply is the mean and the last of its tokens' states; both are
  standardised by their deviation in the first rollout;
- a~ is sampled once per update, for as many states as a rollout has, and serves both V and the
  actor; with several minibatches the later steps see replies of slightly older weights
  (`loss/approx_kl`);
- advantages are normalised over these replies (`--no-normalise-advantages`: as the source does),
  and gradients are averaged, not summed;
- a rollout has a fixed number of steps, not of episodes; truncated episodes bootstrap with V of
  their final observation; the learning rate falls by a cosine;
- there is no baseline network per token, and no KL unless `--kl-coef` asks for one (on a~).

The buffer is part of every checkpoint, images included. One process only.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from vlgym.errors import UserError, check_options

from .engine.engine import Sample
from .learning import losses
from .learning.batch import (
    Batch,
    Metrics,
    Optimizers,
    check_log_probs,
    lay_out,
    log_probs,
    micro_batches,
    minibatches,
    policy_optimizer,
    score,
)
from .learning.collect import Collector
from .learning.command import main
from .learning.config import RunConfig
from .learning.run import Run, Update
from .models.family import Family, ImageInput, Prompt
from .runs.distributed import announced
from .vldac import Standardise, kl_loss


@dataclass(frozen=True, eq=False)
class State:
    """A policy's observation before a reply."""

    prompt: Prompt
    feature: Tensor  # [H] float32, what the critics read of it


@dataclass(frozen=True, eq=False)
class Transition:
    """One environment step."""

    state: State  # what was answered
    action: Tensor  # [A] float32, what the critics read of the reply
    reward: float  # as training sees it
    following: State | None  # the final one of a truncated episode; None after termination


class Replay:
    """The newest `capacity` transitions; `family` lays out the prompts of a checkpoint."""

    def __init__(self, capacity: int, family: Family) -> None:
        self.family = family
        self.rows: deque[Transition] = deque(maxlen=capacity)  # oldest first
        self.states: dict[bytes, State] = {}  # those of the rows, by prompt key

    def add(self, rows: Iterable[Transition]) -> None:
        """Append transitions; beyond the capacity the oldest go, and their states."""
        self.rows.extend(rows)
        ends = (state for row in self.rows for state in (row.state, row.following))
        self.states = {state.prompt.key: state for state in ends if state is not None}

    def draw(self, count: int, generator: torch.Generator) -> list[Transition]:
        """Draw `count` different transitions, all if there are fewer."""
        chosen = torch.randperm(len(self.rows), generator=generator)[:count]
        return [self.rows[i] for i in chosen.tolist()]

    def tensors(self) -> dict[str, Tensor]:
        """All there is; nothing while the buffer is empty."""
        if not self.rows:
            return {}

        # Rows name their states, states their prompts' images, by number: each is stored once.
        states = list(self.states.values())
        prompts = [state.prompt for state in states]
        number = {key: i for i, key in enumerate(self.states)}
        images = [*{image.digest: image for prompt in prompts for image in prompt.images}.values()]
        image_number = {image.digest: i for i, image in enumerate(images)}
        ends = [row.following for row in self.rows]
        following = [-1 if end is None else number[end.prompt.key] for end in ends]
        shown = [image_number[image.digest] for prompt in prompts for image in prompt.images]
        pixels = [torch.from_numpy(image.pixels).flatten() for image in images]
        return {
            "rows.state": torch.tensor([number[row.state.prompt.key] for row in self.rows]),
            "rows.following": torch.tensor(following),
            "rows.action": torch.stack([row.action for row in self.rows]),
            "rows.reward": torch.tensor([row.reward for row in self.rows], dtype=torch.float64),
            "states.feature": torch.stack([state.feature for state in states]),
            "prompts.ids": torch.cat([prompt.ids for prompt in prompts]),
            "prompts.sizes": torch.tensor([[len(prompt), len(prompt.images)] for prompt in prompts]),
            "prompts.image": torch.tensor(shown, dtype=torch.int64),
            "images.pixels": torch.cat([torch.zeros(0, dtype=torch.uint8), *pixels]),
            "images.shape": torch.tensor([image.pixels.shape for image in images], dtype=torch.int64),
            "images.grid": torch.tensor([image.grid for image in images], dtype=torch.int64),
            "images.tokens": torch.tensor([image.tokens for image in images], dtype=torch.int64),
            "images.digest": torch.tensor([list(image.digest) for image in images], dtype=torch.uint8),
        }

    def restore(self, saved: dict[str, Tensor]) -> None:
        """Restore `tensors`; features stay on the device that they are on."""
        self.rows.clear()
        if not saved:
            self.states = {}
            return

        # Images, then the prompts that show them, then the rows.
        of = {name: x.cpu() for name, x in saved.items() if name.startswith(("prompts.", "images."))}
        shapes, *more = (of[f"images.{name}"].tolist() for name in ("shape", "grid", "tokens", "digest"))
        pixels = of["images.pixels"].split([math.prod(shape) for shape in shapes])
        images = [
            ImageInput(bytes(digest), x.numpy().reshape(shape).copy(), (grid[0], grid[1], grid[2]), tokens)
            for x, shape, grid, tokens, digest in zip(pixels, shapes, *more, strict=True)
        ]
        lengths, counts = of["prompts.sizes"].t().tolist()
        parts = zip(of["prompts.ids"].split(lengths), of["prompts.image"].split(counts), strict=True)
        prompts = [self.family.place(ids.clone(), [images[i] for i in shown]) for ids, shown in parts]
        features = saved["states.feature"]
        states = [State(prompt, x.clone()) for prompt, x in zip(prompts, features, strict=True)]
        at, after, rewards = (saved[f"rows.{name}"].tolist() for name in ("state", "following", "reward"))
        self.add(
            Transition(states[i], action.clone(), reward, states[j] if j >= 0 else None)
            for i, j, reward, action in zip(at, after, rewards, saved["rows.action"], strict=True)
        )


# ---- critics -------------------------------------------------------------------------------------


class Critics(nn.Module):
    """Two Q and two V: MLPs, 0 before training; no global generator is read or moved."""

    def __init__(self, state_size: int, action_size: int, width: int = 256, seed: int = 0) -> None:
        super().__init__()
        self.state, self.action = Standardise(state_size), Standardise(action_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.qs = nn.ModuleList(_mlp(state_size + action_size, width) for _ in range(2))
            self.vs = nn.ModuleList(_mlp(state_size, width) for _ in range(2))

    def q(self, states: Tensor, actions: Tensor) -> Tensor:
        """[B, H] and [B, A] features -> [2, B]."""
        x = torch.cat([self.state(states), self.action(actions)], dim=-1)
        return torch.stack([q(x).squeeze(-1) for q in self.qs])

    def v(self, states: Tensor) -> Tensor:
        """[B, H] features -> [2, B]."""
        x = self.state(states)
        return torch.stack([v(x).squeeze(-1) for v in self.vs])


def _mlp(inputs: int, width: int) -> nn.Sequential:
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)


@torch.no_grad()
def follow(target: nn.Module, module: nn.Module, tau: float) -> None:
    """Polyak averaging: move the parameters of `target` by the share `tau` towards `module`'s."""
    for slow, fast in zip(target.parameters(), module.parameters(), strict=True):
        slow.lerp_(fast, tau)


Outcome = tuple[float, Prompt | None]  # a step's reward in training; the prompt after it, if any


@dataclass(frozen=True)
class Config(RunConfig):
    """Train a vision-language model by ArCHer."""

    algorithm: ClassVar[str] = "ArCHer"
    command: ClassVar[str] = "baselines.archer"
    keeps_reference: ClassVar[bool] = True

    buffer: int = 100_000
    """Steps that the replay buffer holds; --num-envs times --rollout-steps is on-policy."""
    gamma: float = 0.95
    """Discount."""
    critic_lr: float = 1e-3
    """Learning rate of the critics. The source: 1e-5 to 2e-5, for whole text encoders."""
    critic_steps: int = 50
    """Gradient steps of the critics per update (the source: 50)."""
    critic_batch: int = 256
    """Transitions per gradient step of the critics (the source: 8 x 32 accumulated)."""
    critic_warmup: int = 5
    """First updates, which train the critics alone. The source: 10 or 20, of 2,000."""
    tau: float = 0.1
    """Share of the way that the target critics move towards the critics after each step."""
    epochs: int = 1
    """Passes of the policy over the new replies of an update."""
    normalise_advantages: bool = True
    """Shift and scale the advantages of an update to mean 0 and deviation 1."""
    kl_coef: float = 0.0
    """Weight of the KL to the reference; ArCHer has none."""

    def resolve(self) -> Self:
        config = super().resolve()
        check_options(config, "critic_lr", above=0)
        check_options(config, "buffer", "critic_steps", "critic_batch", least=1)
        check_options(config, "critic_warmup", least=0)
        check_options(config, "gamma", "tau", least=0, most=1)
        if (count := announced()) > 1:
            many = f"but {count} were started; start it without torchrun"
            raise UserError(f"ArCHer keeps its buffer in one process, {many}.")
        return config


def train(config: Config) -> Run[Config]:
    """Train a model, or go on with a run; return the run, closed."""
    with Run(config) as run:
        learner = ArCHer(run)
        run.keep(
            learner.optimizers, learner.collector,
            {"learner.critics": learner.critics, "learner.targets": learner.targets},
            {"learner.buffer": learner.replay},
        )  # fmt: skip
        learner.train(run.updates())
    return run


class ArCHer:
    """The learner: a policy (the run's weights), critics, their targets, a buffer, a collector."""

    def __init__(self, run: Run[Config]) -> None:
        c = self.config = run.config
        self.passes, self.schedule = c.passes, c.schedule(rests=c.critic_warmup)
        assert run.weights.reference is not None  # `keeps_reference`
        self.run, self.weights, self.reference = run, run.weights, run.weights.reference
        width = run.weights.family.language_model.config.hidden_size
        self.critics, self.targets = (Critics(width, 2 * width, seed=c.seed).to(c.device) for _ in range(2))
        critic = torch.optim.AdamW(self.critics.parameters(), lr=c.critic_lr, weight_decay=0.0, foreach=True)
        self.optimizers = Optimizers(
            {"policy": policy_optimizer(run.weights.parameters, c.policy_lr), "critic": critic}, c.max_grad_norm
        )
        self.replay = Replay(c.buffer, run.weights.family)
        self.collector = Collector(run.envs.make_runner(), run.policy, c.reward)

    def train(self, updates: Iterable[Update]) -> None:
        """Make updates: play, remember, update (critics, advantages, policy), log."""
        for update in updates:
            with update.phase("rollout", keep_prompts=True):  # the buffer's are answered, too
                batch, outcomes, metrics = self.play()
            with update.phase("check"):
                metrics |= check_log_probs(self.weights.engine, batch, self.passes, self.config.max_logp_gap)
            with update.phase("update"):
                self.remember(batch, outcomes)
                metrics |= self.update(len(batch.samples), update.number)
            update.log(batch, metrics)

    def play(self) -> tuple[Batch, list[Outcome], dict[str, float]]:
        """Play `rollout_steps` steps of every environment; return batch, outcomes and metrics."""
        rows = self.collector.play(self.config.rollout_steps)
        batch, metrics = self.collector.pack(rows)
        batch.advantages.fill_(math.nan)  # the policy learns from new replies to these states
        rewards = [reward for row in self.collector.rewards(rows) for reward in row]
        following = [prompt for row in self.collector.following(rows) for prompt in row]
        return batch, list(zip(rewards, following, strict=True)), metrics

    def update(self, count: int, update: int) -> dict[str, float]:
        """Answer `count` states of the buffer again, train critics, then policy; from 1."""
        c, run, metrics = self.config, self.run, Metrics()
        rate = self.schedule.rate(update, run.state.env_steps)
        metrics.add("policy/lr", self.optimizers.set_rate("policy", rate))
        fresh = self.answer([row.state for row in self.replay.draw(count, run.order)])
        for engine in self.weights.engines:
            engine.forget_prompts()
        actions = self.features(fresh)[1]

        # The critics learn first, so that they judge these replies as well as they can.
        self.critic_steps(fresh.hidden, actions, metrics)
        with torch.no_grad():
            q, v = self.critics.q(fresh.hidden, actions), self.critics.v(fresh.hidden)
        advantages = losses.twin_advantages(q, v)
        fresh.advantages = losses.normalise_advantages(advantages) if c.normalise_advantages else advantages

        # The warm-up of the critics has the rate 0.
        if rate > 0:
            if c.kl_coef > 0:
                fresh.ref = log_probs(self.reference, fresh, self.passes)
            for _ in range(c.epochs):
                for rows, size in minibatches(fresh.units, c.minibatch, run.world, run.order):
                    self.policy_step(fresh, rows, size, metrics)
        return metrics.means() | {
            "critic/q": float(q.mean()), "critic/v": float(v.mean()),
            "critic/advantage_std": float(advantages.std()),
            "buffer/steps": float(len(self.replay.rows)), "buffer/prompts": float(len(self.replay.states)),
        }  # fmt: skip

    @torch.no_grad()
    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The critics' input for a batch's prompts [B, H] and replies [B, 2 H]."""
        parts = [
            self.reference.reply_states([batch.samples[i].prompt for i in part], batch.ids[part], batch.mask[part])
            for part in torch.arange(len(batch.samples)).split(self.config.micro_batch)
        ]
        states, actions = zip(*parts, strict=True)
        return torch.cat(states), torch.cat(actions)

    def remember(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Put a rollout into the buffer."""
        prompts = [sample.prompt for sample in batch.samples]
        features, actions = self.features(batch)
        if not self.replay.rows:
            for critics in (self.critics, self.targets):
                critics.state.fit(features)
                critics.action.fit(actions)

        # A state that the buffer holds has its feature already.
        states = dict(self.replay.states)
        for prompt, feature in zip(prompts, features, strict=True):
            if prompt.key not in states:
                states[prompt.key] = State(prompt, feature.clone())
        following = [prompt for _, prompt in outcomes if prompt is not None]
        unseen = [*{prompt.key: prompt for prompt in following if prompt.key not in states}.values()]
        for i in range(0, len(unseen), self.config.micro_batch):
            part = unseen[i : i + self.config.micro_batch]
            for prompt, feature in zip(part, self.reference.last_hidden(part), strict=True):
                states[prompt.key] = State(prompt, feature.clone())
        rows = [
            Transition(states[prompt.key], action.clone(), reward, None if after is None else states[after.key])
            for prompt, action, (reward, after) in zip(prompts, actions, outcomes, strict=True)
        ]
        self.replay.add(rows)

        if self.collector.course is not None:
            with torch.no_grad():
                before, taken, targets = self.lay_out_td(rows)
                self.collector.note_errors((targets - self.critics.q(before, taken)).mean(0))

    def lay_out_td(self, rows: Sequence[Transition]) -> tuple[Tensor, Tensor, Tensor]:
        """Features of states [B, H] and replies [B, 2 H] of transitions; targets of Q [2, B]."""
        before = torch.stack([row.state.feature for row in rows])
        taken = torch.stack([row.action for row in rows])
        none = torch.zeros_like(before[0])
        after = torch.stack([none if row.following is None else row.following.feature for row in rows])
        rewards = torch.tensor([row.reward for row in rows], device=before.device)
        terminated = torch.tensor([row.following is None for row in rows], device=before.device)
        with torch.no_grad():
            v = self.targets.v(after)
            targets = losses.td_targets(rewards, v, terminated, gamma=self.config.gamma)
        return before, taken, targets

    @torch.no_grad()
    def answer(self, states: Sequence[State]) -> Batch:
        """Sample a reply to each state; the batch's `hidden` are the states' features."""
        samples: list[Sample] = []
        size = self.run.envs.count  # as many at a time as in a rollout
        for i in range(0, len(states), size):
            samples += self.run.policy.sample([state.prompt for state in states[i : i + size]])[0]
        batch = lay_out(samples, [None] * len(samples), self.weights.family.pad_id)
        batch.hidden = torch.stack([state.feature for state in states])
        return batch

    def critic_steps(self, states: Tensor, actions: Tensor, metrics: Metrics) -> None:
        """Fit Q to transitions of the buffer, V to Q of new replies (features [B, H], [B, 2 H])."""
        c = self.config
        for _ in range(c.critic_steps):
            sample = self.replay.draw(c.critic_batch, self.run.order)
            before, taken, q_targets = self.lay_out_td(sample)
            with torch.no_grad():
                v_targets = self.targets.q(states, actions)

            # Both losses make one step, after which the targets follow.
            q = losses.twin_loss(self.critics.q(before, taken), q_targets)
            v = losses.twin_loss(self.critics.v(states), v_targets)
            (q + v).backward()
            self.optimizers.step("critic", float(q.detach() + v.detach()), metrics)
            follow(self.targets, self.critics, c.tau)
            metrics.add("loss/q", float(q.detach()))
            metrics.add("loss/v", float(v.detach()))

    def policy_step(self, batch: Batch, rows: Tensor, size: int, metrics: Metrics) -> None:
        """One gradient step of the policy by REINFORCE + beta * KL on a minibatch."""
        c, total = self.config, 0.0
        for part in micro_batches(batch, rows, self.passes):
            old, mask = batch.old[part], batch.mask[part]
            weights = torch.full((len(part),), 1.0 / size, device=old.device)
            new, _ = score(self.weights.engine, batch, part, self.passes)
            policy = losses.reinforce_loss(new, old, mask, batch.advantages[part], weights=weights)

            # A KL counts on the new replies, where one is asked for.
            loss, kl = policy.loss, None
            if batch.ref is not None:
                kl = kl_loss(new, batch.ref[part], mask, weights, c.kl_estimator)
                loss = loss + c.kl_coef * kl
            loss.backward()
            total += float(loss.detach())
            metrics.add_policy(policy, kl, weights)
        self.optimizers.step("policy", total, metrics)


if __name__ == "__main__":
    main(Config, train, __doc__)
