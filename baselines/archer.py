"""ArCHer: critics that judge whole replies, an actor trained token by token by what they say, and a replay buffer.

    python -m baselines.archer --env vlgym/NumberLine-v0                # the newest 100,000 steps are learnt from
    python -m baselines.archer --env vlgym/NumberLine-v0 --on-policy    # those of this rollout only

The method (Zhou et al., ICML 2024, arXiv 2402.19446): two Q and two V critics, with target copies that follow them
slowly, are fitted by one-step bootstrapping on transitions of a replay buffer, Q_i(s, a) to r + gamma V'_i(s') and
V_i(s) to Q'_i(s, a~) with a~ newly sampled from the policy. The policy is trained by REINFORCE on the same a~, every
token with the advantage min(Q_1, Q_2)(s, a~) - min(V_1, V_2)(s). The first updates train the critics alone.

Where this file departs from the source, or says what it leaves open:
- the critics are small MLPs on features of the frozen reference (the model as it was before reinforcement learning)
  instead of fine-tuned RoBERTas, so what is replayed never goes stale and no text encoder needs to see images. A state
  is the hidden state of the last prompt token; a reply is the mean and the last of its tokens' states. Each dimension
  is standardised by its deviation in the first rollout;
- a~ is sampled once per update, for as many states as a rollout has, and serves both V and the actor; with several
  minibatches the later steps see replies of slightly older weights (`loss/approx_kl` says how much older);
- advantages are normalised over these replies (`--no-normalise-advantages` leaves them as they are, as the source
  does), and gradients are averaged, not summed;
- a rollout has a fixed number of steps, not of episodes; truncated episodes bootstrap with V of their final
  observation, terminated ones do not; the learning rate falls by a cosine;
- there is no baseline network per token, and no KL unless `--kl-coef` asks for one (on a~).

The buffer is part of every checkpoint, images included; where every step has a new picture, its size is that of the
pictures. One process only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vlgym.errors import UserError

from .engine.policy import Sample, pad_rows
from .learning import losses
from .learning.collect import Batch, Collector, pack
from .learning.config import RunConfig
from .learning.losses import PolicyLoss
from .learning.replay import Replay, State, Transition, columns
from .learning.session import Session
from .learning.training import Learner, Stats, main
from .models.family import Prompt
from .runs.checkpoint import load_module, module_tensors


@dataclass(frozen=True)
class Config(RunConfig):
    """Train a vision-language model by ArCHer.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    buffer: int = 100_000
    """Environment steps that the replay buffer holds."""
    on_policy: bool = False
    """Let the buffer hold the newest rollout only, whatever --buffer says."""
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
    """How far the target critics move towards the critics after each of their steps."""
    epochs: int = 1
    """Passes of the policy over the new replies of an update."""
    normalise_advantages: bool = True
    """Shift and scale the advantages of an update to mean 0 and deviation 1."""
    kl_coef: float = 0.0
    """Weight of the KL to the reference; ArCHer has none."""

    @property
    def value_warmup(self) -> int:
        """The name under which the learning rate's schedule asks."""
        return self.critic_warmup

    def resolve(self) -> Any:
        """Fill in what depends on the model, and check ranges."""
        config = super().resolve()
        config.require_positive("buffer", "critic_lr", "critic_steps", "critic_batch")
        config.require_share("gamma", "tau")
        return config


class Critics(nn.Module):
    """Two Q and two V: MLPs with two hidden layers and an output of zero before training.

    Args:
        state_size, action_size: lengths of the features.
        width: of the hidden layers.
        seed: initialisation; no global generator is read or moved.
    """

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


class Standardise(nn.Module):
    """Subtract the mean and divide by the deviation that `fit` saw, then scale each row to unit deviation.

    Features of different states differ little beside what they have in common; the last step bounds what comes later.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    def fit(self, x: Tensor) -> None:
        """Take mean and deviation of features [B, size]; dimensions that hardly vary are not blown up."""
        deviation = x.std(0, correction=0)
        self.mean.copy_(x.mean(0))
        self.deviation.copy_(deviation + 0.1 * deviation.mean() + 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Shape of `x`."""
        return nn.functional.layer_norm((x - self.mean) / self.deviation, x.shape[-1:])


def _mlp(inputs: int, width: int) -> nn.Sequential:
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)


@torch.no_grad()
def follow(target: nn.Module, module: nn.Module, tau: float) -> None:
    """Polyak averaging: move every parameter of `target` by the share `tau` towards `module`'s."""
    for slow, fast in zip(target.parameters(), module.parameters(), strict=True):
        slow.lerp_(fast, tau)


class TransitionCollector(Collector):
    """A collector for a buffer instead of advantages.

    Attributes:
        outcomes: of the last rollout, one per row of its batch: the reward as training sees it, and the prompt after
            the step, None where the episode terminated.
    """

    outcomes: Sequence[tuple[float, Prompt | None]] = ()

    def collect(self) -> tuple[Batch, dict[str, float]]:
        """Play, and return the batch (advantages and returns are zero) and the rollout's figures."""
        rows = self.play()
        records = [record for row in rows for record in row]
        batch = pack(records, self.policy.engine.family.pad_id)
        rewards = [reward for row in self.shaped(rows) for reward in row]
        following = [prompt for row in self.following(rows) for prompt in row]
        self.outcomes = list(zip(rewards, following, strict=True))
        return batch, self.figures(rows, batch)


class ArCHer(Learner):
    """One update: the rollout goes into the buffer; states of the buffer are answered anew; critics, then policy."""

    name = "ArCHer"
    command = "baselines.archer"
    Config = Config
    needs_reference = True
    collector: TransitionCollector

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        c = self.config
        if session.world.size > 1:
            raise UserError(
                f"ArCHer keeps its buffer in one process, but {session.world.size} were started; "
                "start it without torchrun."
            )
        assert session.reference is not None
        self.reference = session.reference
        width = session.family.language_model.config.hidden_size
        self.critics, self.targets = (Critics(width, 2 * width, seed=c.seed).to(c.device) for _ in range(2))
        self.optimizers["critic"] = torch.optim.AdamW(
            self.critics.parameters(), lr=c.critic_lr, weight_decay=0.0, foreach=True
        )
        self.replay = Replay(session.num_envs * c.rollout_steps if c.on_policy else c.buffer)
        self.collector = TransitionCollector(
            session.make_runners(), session.policy, session.value, steps=c.rollout_steps, gamma=c.gamma,
            gae_lambda=1.0, shaper=session.make_shaper(c.gamma),
        )  # fmt: skip

    def warming_up(self, update: int) -> bool:
        """The first `critic_warmup` updates train the critics alone."""
        return update <= self.config.critic_warmup

    def add_reference(self, batch: Batch) -> None:
        """Nothing: the KL is taken on new replies, not on the rollout's."""

    def train_on(self, batch: Batch, update: int) -> dict[str, float]:
        """Learn from the buffer, which the rollout has joined; return the means of the losses."""
        c = self.config
        stats: Stats = defaultdict(list)
        lr = self.set_learning_rate(update)
        self.reference.forget()
        self.remember(batch)
        fresh = self.answer([row.state for row in self.replay.draw(len(batch.samples), self.session.order)])
        actions = self.features(fresh)[1]
        self.train_critics(fresh.hidden, actions, stats)
        with torch.no_grad():
            q, v = self.critics.q(fresh.hidden, actions), self.critics.v(fresh.hidden)
        advantages = losses.twin_advantages(q, v)
        fresh.advantages = losses.normalise_advantages(advantages) if c.normalise_advantages else advantages
        if lr > 0:
            if c.kl_coef > 0:
                super().add_reference(fresh)
            for _ in range(c.epochs):
                for rows, size in self.minibatches(fresh):
                    self.policy_step(fresh, rows, size, stats)
        return self.means(stats, lr) | {
            "critic/q": float(q.mean()),
            "critic/v": float(v.mean()),
            "critic/advantage_std": float(advantages.std()),
            "buffer/steps": float(len(self.replay.rows)),
            "buffer/prompts": float(len(self.replay.states)),
        }

    # ---- the buffer --------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the critics read of a batch's prompts [B, H] and replies [B, 2 H]."""
        parts = [
            self.reference.reply_states([batch.samples[i].prompt for i in part], batch.ids[part], batch.mask[part])
            for part in torch.arange(len(batch.samples)).split(self.config.micro_batch)
        ]
        states, actions = zip(*parts, strict=True)
        return torch.cat(states), torch.cat(actions)

    def remember(self, batch: Batch) -> None:
        """Put the rollout into the buffer."""
        prompts = [sample.prompt for sample in batch.samples]
        features, actions = self.features(batch)
        if not self.replay.rows:
            for critics in (self.critics, self.targets):
                critics.state.fit(features)
                critics.action.fit(actions)
        states = dict(self.replay.states)
        for prompt, feature in zip(prompts, features, strict=True):
            if prompt.key not in states:
                states[prompt.key] = State(prompt, feature.clone())
        following = [prompt for _, prompt in self.collector.outcomes if prompt is not None]
        unseen = list({prompt.key: prompt for prompt in following if prompt.key not in states}.values())
        for i in range(0, len(unseen), self.config.micro_batch):
            part = unseen[i : i + self.config.micro_batch]
            for prompt, feature in zip(part, self.reference.last_hidden(part), strict=True):
                states[prompt.key] = State(prompt, feature.clone())
        self.replay.add(
            Transition(states[prompt.key], action.clone(), reward, None if after is None else states[after.key])
            for prompt, action, (reward, after) in zip(prompts, actions, self.collector.outcomes, strict=True)
        )

    @torch.no_grad()
    def answer(self, states: Sequence[State]) -> Batch:
        """Sample a reply of the current policy to each state, as many at a time as there are environments.

        The batch's `hidden` are the states' features.
        """
        samples: list[Sample] = []
        for i in range(0, len(states), self.session.num_envs):
            prompts = [state.prompt for state in states[i : i + self.session.num_envs]]
            out = self.session.sampler.sample(prompts, self.session.sampling)
            lengths, cut = out.mask.sum(-1).tolist(), out.cut.tolist()
            samples += [
                Sample(prompt, out.ids[j, :n], out.logp[j, :n], out.hidden[j], cut[j])
                for j, (prompt, n) in enumerate(zip(prompts, lengths, strict=True))
            ]
        ids, mask = pad_rows([sample.ids for sample in samples], self.session.family.pad_id)
        old, _ = pad_rows([sample.logp for sample in samples], 0.0)
        zeros = torch.zeros(len(samples), device=old.device)
        hidden = torch.stack([state.feature for state in states])
        units = [[i] for i in range(len(samples))]
        return Batch(samples, [None] * len(samples), ids, mask, old, hidden, zeros, zeros.clone(), units)

    # ---- losses ------------------------------------------------------------------------------------------------------

    def train_critics(self, states: Tensor, actions: Tensor, stats: Stats) -> None:
        """Fit Q to transitions of the buffer and V to Q of new replies, [B, H] and [B, 2 H]."""
        c, parameters = self.config, list(self.critics.parameters())
        for _ in range(c.critic_steps):
            seen = columns(self.replay.draw(c.critic_batch, self.session.order))
            with torch.no_grad():
                q_targets = losses.td_targets(
                    seen.rewards, self.targets.v(seen.following), seen.terminated, gamma=c.gamma
                )
                v_targets = self.targets.q(states, actions)
            q = losses.twin_loss(self.critics.q(seen.states, seen.actions), q_targets)
            v = losses.twin_loss(self.critics.v(states), v_targets)
            (q + v).backward()
            self.step("critic", parameters, float(q.detach() + v.detach()), stats)
            follow(self.targets, self.critics, c.tau)
            stats["loss/q"].append(float(q.detach()))
            stats["loss/v"].append(float(v.detach()))

    def policy_loss(self, new: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> PolicyLoss:
        """REINFORCE."""
        return losses.reinforce_loss(new, batch.old[rows], batch.mask[rows], batch.advantages[rows], weights=weights)

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Critics, targets and buffer."""
        buffer = {f"buffer.{name}": tensor for name, tensor in self.replay.tensors().items()}
        return module_tensors("critics", self.critics) | module_tensors("targets", self.targets) | buffer

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Restore `tensors` and `state`."""
        super().restore(tensors, state)
        load_module("critics", self.critics, tensors)
        load_module("targets", self.targets, tensors)
        self.replay.restore({n.removeprefix("buffer."): x for n, x in tensors.items() if n.startswith("buffer.")})


if __name__ == "__main__":
    main(ArCHer, __doc__)
