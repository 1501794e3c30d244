"""The engine of the learners: it samples replies, and computes log-probabilities of stored replies.

Both go through the same prefill (`prefill.py`) and the same suppressed tokens, so that the two agree; every update of a
learner measures how well. Sampling is over the whole vocabulary except the special tokens, at the engine's temperature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from vlgym.parsers import Parser, find_end, make_stop
from vlgym.registry.making import unwrap
from vlgym.types import Reply, Turn

from ..models.family import Family, Prompt
from ..models.library import LibraryFamily
from .prefill import Prefill, Scorer, summarise

CHECK = 8  # steps between two questions whether replies are over; on an accelerator each question waits for the device

Over = Callable[[Sequence[int], Sequence[Sequence[int]]], list[bool]]
"""Is given numbers of rows and the beginning of each one's reply, as ids; says of each whether the reply is over though
its turn has not ended."""


Stop = Callable[[str], int | None]
"""A stop rule (`make_stop`): the text so far -> the number of characters after which it is over, if it is."""


class Replies(NamedTuple):
    """Sampled replies of a batch, right-padded."""

    ids: Tensor  # [B, R] int64, the end-of-turn token included where the reply has one; pad id beyond
    mask: Tensor  # [B, R] bool, True on sampled tokens; from the loop, never inferred from ids
    logp: Tensor  # [B, R] float32, log-probability of each token when it was sampled; 0 beyond
    hidden: Tensor  # [B, H] float32, state of the LAST PROMPT token: the value head's input
    cut: Tensor  # [B] bool, the reply ran into the token limit before it was over
    texts: Sequence[str] = ()  # `decode` leaves them to `sample`


class Engine(Scorer):
    """Samples and scores with one model.

    Args:
        max_new_tokens: longest reply, its end-of-turn token included.
        parsers: what reads the replies to prompts without a turn, whose environment knows its own stop rule. A reply
            is over as soon as one of them has what it asked for (`find_end`), or at its end-of-turn token; with none,
            at that token alone.
        vision_of: as in `Prefill`.

    Attributes:
        name: what a run's record calls it.
        stream: what CUDA graphs are recorded on; None elsewhere.
        static: tokens are decoded over a cache of fixed shape, which a graph can replay. Replies are the same; without
            a graph it takes longer.
    """

    name = "engine"

    def __init__(
        self, family: Family, *, max_new_tokens: int, parsers: Sequence[Parser] = (), vision_of: Prefill | None = None
    ) -> None:
        super().__init__(family, vision_of=vision_of)
        self.max_new_tokens, self.parsers = max_new_tokens, tuple(parsers)
        self.stop = torch.tensor(family.stop_ids, device=family.device)
        self.stream: Any = torch.cuda.Stream(family.device) if family.device.type == "cuda" else None
        self.static = self.stream is not None

    def describe(self) -> dict[str, Any]:
        """Limits and numbers of the model, for a run's record."""
        family = self.family
        return {
            "max_new_tokens": self.max_new_tokens,
            **family.describe_images(),
            "dtype": str(next(family.model.parameters()).dtype).removeprefix("torch."),
            "device": str(family.device),
        }

    @torch.no_grad()
    def sample(
        self,
        prompts: Sequence[Prompt],
        generator: torch.Generator | None = None,
        *,
        temperature: float = 1.0,
        draws: Tensor | None = None,
        stops: Sequence[Stop] = (),
    ) -> Replies:
        """Sample one reply per prompt.

        Args:
            prompts: B prompts.
            generator: CPU generator; every call draws `B * max_new_tokens` numbers whatever the replies' lengths.
            temperature: what logits are divided by once more before a draw, for evaluations; 0 takes the likeliest
                tokens. The log-probabilities are those of the engine's own temperature all the same.
            draws: [max_new_tokens, B] in [0, 1), the random numbers of each row, instead of the generator's.
            stops: the stop rule of each row; without them any action that one of the engine's parsers reads ends a
                reply, whether it is legal or not.
        """
        limit = self.max_new_tokens
        if draws is None:
            size = (limit, len(prompts))
            draws = torch.rand(size, generator=generator) if temperature else torch.zeros(size)
        rules = stops or ([self._find_action] * len(prompts) if self.parsers else ())

        def find(row: int, ids: Sequence[int]) -> int | None:
            end = rules[row](self.family.decode(ids)) if rules else None
            return None if end is None else self.family.count_tokens(ids, end)

        def over(rows: Sequence[int], replies: Sequence[Sequence[int]]) -> list[bool]:
            return [find(row, ids) is not None for row, ids in zip(rows, replies, strict=True)]

        rule = over if rules else None
        ids, mask, logp, hidden, cut, _ = self.decode(prompts, draws.to(self.family.device), temperature, rule)
        lengths = mask.sum(-1).tolist()
        rows = [row[:length] for row, length in zip(ids.tolist(), lengths, strict=True)]
        for i, row in enumerate(rows):
            if (end := find(i, row)) is not None:
                rows[i], cut[i] = row[:end], False
                ids[i, end:], mask[i, end:], logp[i, end:] = self.family.pad_id, False, 0.0
        longest = max(len(row) for row in rows)
        ids, mask, logp = ids[:, :longest], mask[:, :longest], logp[:, :longest]
        return Replies(ids, mask, logp, hidden.float(), cut, [self.family.decode(row) for row in rows])

    def _find_action(self, text: str) -> int | None:
        """Return after how many characters one of the parsers has an action, legal or not; None if none has."""
        return min((end for parser in self.parsers if (end := find_end(parser, text)) is not None), default=None)

    @torch.no_grad()
    def decode(self, prompts: Sequence[Prompt], draws: Tensor, temperature: float, over: Over | None) -> Replies:
        """Answer token by token; padded to the token limit. Rows that have ended are left out, and slots that are
        empty, except over a static cache.

        Args:
            prompts: B prompts.
            draws: [limit, B] in [0, 1), on the device; their number is the length of the longest reply.
            temperature: as in `sample`.
            over: asked every `CHECK` steps, so that a reply may be up to `CHECK - 1` tokens too long.
        """
        entries, static = self.prefill_cached(prompts), self.static
        first = torch.stack([entry[2] for entry in entries])
        next_positions = torch.tensor([prompt.next_position for prompt in prompts], device=first.device)
        limit, n = draws.shape
        new: dict[str, Any] = {"device": first.device}
        state = self.decoder.start([entry[:2] for entry in entries], next_positions, limit, static=static)
        ids = torch.full((n, limit), self.family.pad_id, **new)
        logp = torch.zeros(n, limit, **new)
        mask = torch.zeros(n, limit, dtype=torch.bool, **new)
        rows = torch.arange(n, **new)  # rows still being decoded
        token = torch.zeros(n, dtype=torch.int64, **new)  # the newest of each
        ended = torch.zeros(n, dtype=torch.bool, **new)

        def note(hidden: Tensor) -> None:
            """Choose the next token of each row, and write it down."""
            scores = torch.log_softmax(self.logits(hidden), dim=-1)
            token.copy_(choose(scores, draws[state.t, rows], temperature))
            ids[rows, state.t] = torch.where(ended, self.family.pad_id, token)
            logp[rows, state.t] = torch.where(ended, 0.0, scores.gather(-1, token.unsqueeze(-1)).squeeze(-1))
            mask[rows, state.t] = ~ended
            ended.logical_or_(torch.isin(token, self.stop))

        def advance() -> None:
            note(self.decoder.step(state, self.embedding(token)))

        note(first)
        run = advance
        for done in range(1, limit + 1):
            due = done % CHECK == 0
            if over is not None and due:
                going = (~ended).nonzero().squeeze(-1)
                replies = ids[rows[going], :done].tolist()
                ended[going] = torch.tensor(over(rows[going].tolist(), replies), dtype=torch.bool, **new)
            # Counting waits for the device, which a graph would leave idle. The last count ends before the graph does.
            counted = due or not static or done == limit
            alive = len(rows) - int(ended.sum()) if counted else len(rows)
            if done == limit or alive == 0:
                break
            if alive <= len(rows) // 2 and not static:  # most rows have ended: go on with the others alone
                running = (~ended).nonzero().squeeze(-1)
                state.keep(running)
                rows, token, ended = rows[running], token[running], ended[running]
            if done == 1 and static:
                run = self.record(advance)
            else:
                run()
        cut = torch.zeros(n, dtype=torch.bool, **new)
        cut[rows] = ~ended
        return Replies(ids, mask, logp, first, cut)

    def record(self, step: Callable[[], None]) -> Callable[[], None]:
        """Do a step, and return what does it again: the replay of a CUDA graph, or the step itself where none can be
        recorded. The graph holds addresses: it is good for one batch."""
        if self.stream is None:
            step()
            return step
        here = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            step()  # libraries set themselves up for this stream, which they cannot while it is recorded
        here.wait_stream(self.stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self.stream):
                step()
        except RuntimeError as error:
            self.static, reason = False, str(error).split("\n")[0]
            print(f"no CUDA graph of a token ({reason}): decoding goes on without, slower", flush=True)
            return step
        return graph.replay

    @torch.no_grad()
    def last_hidden(self, prompts: Sequence[Prompt]) -> Tensor:
        """State of the last prompt token, [B, H] float32, as in `Replies.hidden`: what the value head reads."""
        return torch.stack([entry[2] for entry in self.prefill_cached(prompts)]).float()


class PlainEngine(Engine):
    """Samples with the library's `generate`, and scores with one padded forward pass, for a `LibraryFamily`.

    Replies and log-probabilities are those of `Engine`, but every prompt is run each time it is asked, and the
    library rounds its logits to the model's type. Arguments are those of `Engine`, whose caches stay empty.
    """

    family: LibraryFamily
    name = "generate"

    @torch.no_grad()
    def decode(self, prompts: Sequence[Prompt], draws: Tensor, temperature: float, over: Over | None) -> Replies:
        """See `Engine.decode`. Tokens are chosen here: checkpoints' generation configs cut the distribution."""
        limit = len(draws)
        inputs = self.family.inputs(prompts)
        width = inputs["input_ids"].shape[1]
        chooser = _Choose(self, draws, temperature, width)
        settings = GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=limit, min_new_tokens=0, use_cache=True,
            eos_token_id=list(self.family.stop_ids), pad_token_id=self.family.pad_id,
        )  # fmt: skip
        with _swapped(self.family.model, settings), self._states() as states:
            rows = self.family.model.generate(
                **inputs,
                logits_processor=LogitsProcessorList([chooser]),
                stopping_criteria=StoppingCriteriaList([_Stop(over, width)] if over else []),
            )[:, width:]
        stops, spare = torch.isin(rows, self.stop), (0, limit - rows.shape[1])
        mask = F.pad(stops.cumsum(-1) - stops.long() == 0, spare)
        ids = F.pad(rows, spare).masked_fill(~mask, self.family.pad_id)
        logp = F.pad(torch.stack(chooser.chosen, dim=1)[:, : rows.shape[1]], spare).masked_fill(~mask, 0.0)
        return Replies(ids, mask, logp, states[0][:, -1], ~stops.any(-1))

    @torch.no_grad()
    def last_hidden(self, prompts: Sequence[Prompt]) -> Tensor:
        """See `Engine.last_hidden`."""
        with self._states() as states:
            self.family.model(**self.family.inputs(prompts), logits_to_keep=1)
        return states[0][:, -1].float()

    def score_states(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """See `Scorer.score_states`. Gradients reach the vision tower where its weights ask for them."""
        length = int(mask.sum(-1).max())
        ids, spare = ids[:, :length], (0, ids.shape[1] - length)
        with self._states() as states:
            out = self.family.model(
                **self.family.inputs(prompts, ids, mask[:, :length]), logits_to_keep=length + 1, use_cache=False
            )
        scores = torch.log_softmax(self.restrict(out.logits[:, -length - 1 : -1].float()), dim=-1)
        logp = scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1).where(mask[:, :length], 0.0)
        return F.pad(logp, spare), states[0][:, -length - 1]

    @torch.no_grad()
    def reply_states(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """See `Scorer.reply_states`."""
        length = ids.shape[1]
        with self._states() as states:
            self.family.model(**self.family.inputs(prompts, ids, mask), logits_to_keep=length + 1, use_cache=False)
        return states[0][:, -length - 1].float(), summarise(states[0][:, -length:].float(), mask)

    @contextmanager
    def _states(self) -> Iterator[list[Tensor]]:
        """The last layer's states of every forward pass inside, [B, T, H] each."""
        states: list[Tensor] = []
        hook = self.family.model.model.register_forward_hook(
            lambda module, args, out: states.append(out.last_hidden_state)
        )
        try:
            yield states
        finally:
            hook.remove()


@contextmanager
def _swapped(model: Any, settings: GenerationConfig) -> Iterator[None]:
    """Put a generation config in the place of the model's, from which the library fills in what another leaves out."""
    own, model.generation_config = model.generation_config, settings
    try:
        yield
    finally:
        model.generation_config = own


class _Choose(LogitsProcessor):
    """Chooses the next tokens: leaves every row one, so that the library's argmax takes it."""

    def __init__(self, engine: PlainEngine, draws: Tensor, temperature: float, width: int) -> None:
        self.engine, self.draws, self.temperature = engine, draws, temperature
        self.width, self.chosen = width, list[Tensor]()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        logp = torch.log_softmax(self.engine.restrict(scores.float()), dim=-1)
        uniform = self.draws[input_ids.shape[1] - self.width]
        token = choose(logp, uniform, self.temperature).unsqueeze(-1)
        self.chosen.append(logp.gather(-1, token).squeeze(-1))
        return torch.full_like(logp, float("-inf")).scatter(-1, token, 0.0)


class _Stop(StoppingCriteria):
    """Ends rows whose reply is over; asked every `CHECK` steps, as in `Engine.decode`."""

    def __init__(self, over: Over, width: int) -> None:
        self.over, self.width = over, width

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        new = input_ids[:, self.width :]
        due = new.shape[1] % CHECK == 0
        ended = self.over(range(len(new)), new.tolist()) if due else [False] * len(new)
        return torch.tensor(ended, device=input_ids.device)


def make_engine(family: Family, **options: Any) -> Engine:
    """The engine of a family; options are those of `Engine`."""
    return (PlainEngine if isinstance(family, LibraryFamily) else Engine)(family, **options)


def choose(log_probs: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Sample one token per row at a temperature; 0 takes the likeliest: [B, V], [B] in [0, 1) -> [B]."""
    if temperature == 0:
        return log_probs.argmax(-1)
    return draw(log_probs if temperature == 1.0 else torch.log_softmax(log_probs / temperature, dim=-1), uniform)


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Sample one token per row by inverting the cumulative distribution, in float64: [B, V], [B] in [0, 1) -> [B].
    Probability 0 is never drawn."""
    device = log_probs.device
    where = "cpu" if device.type == "mps" else device  # MPS has no float64
    cumulative = log_probs.to(where).double().exp().cumsum(-1)
    target = uniform.to(where).double().unsqueeze(-1) * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, target, right=True).squeeze(-1).clamp(max=log_probs.shape[-1] - 1)
    return tokens.to(device)


# ---- the engine as a policy ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """One sampled reply, attached to its step record."""

    prompt: Prompt  # the exact one that was answered; it is stored, never rebuilt
    ids: Tensor  # [r] int64, end-of-turn token included where the reply has one
    logp: Tensor  # [r] float32, when sampled
    hidden: Tensor  # [H] float32, state of the last prompt token
    cut: bool  # the reply ran into the token limit before it was over


class ModelPolicy:
    """Samples replies from an engine, at its temperature, with a CPU generator whose state is part of a checkpoint."""

    def __init__(self, engine: Engine, generator: torch.Generator, *, name: str = "vlm") -> None:
        self.engine, self.generator, self.name = engine, generator, name

    def describe(self) -> dict[str, Any]:
        """Return the settings, other than the prompt, that a reply depends on, for a run's record."""
        seed, system = self.generator.initial_seed(), self.engine.family.system
        sampler = {"temperature": self.engine.temperature, "seed": seed}
        return {"name": self.name, **self.engine.describe(), **sampler, **({"system": system} if system else {})}

    def sample(self, prompts: Sequence[Prompt], stops: Sequence[Stop] = ()) -> tuple[list[Sample], Sequence[str]]:
        """A reply to each prompt, as ids with their log-probabilities and as text; `stops` as in `Engine.sample`."""
        if not prompts:
            return [], []
        out = self.engine.sample(prompts, self.generator, stops=stops)
        lengths, cuts = out.mask.sum(-1).tolist(), out.cut.tolist()
        samples = [
            Sample(prompt, out.ids[i, :n], out.logp[i, :n], out.hidden[i], cuts[i])
            for i, (prompt, n) in enumerate(zip(prompts, lengths, strict=True))
        ]
        return samples, out.texts

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt."""
        prompts = [self.engine.family.encode(turn.messages) for turn in turns]
        samples, texts = self.sample(prompts, [make_stop(unwrap(turn.env)) for turn in turns])
        return [Reply(text, sample, sample.cut) for text, sample in zip(texts, samples, strict=True)]


def pad_rows(rows: Sequence[Tensor], fill: float) -> tuple[Tensor, Tensor]:
    """Right-pad 1-D tensors: ([B, R] values, [B, R] bool mask)."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    padded = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=fill)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths.unsqueeze(1)
