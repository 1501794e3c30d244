"""The engine of the learners: it samples replies and scores stored ones, by the same prefill.

Within a batch many prompts begin alike (the instructions) and many are equal, so the forward pass
is a tree: common prefix once, each distinct prompt once, each reply. It is exact, because attention
is causal. What was computed is kept until the weights change.

Replies are sampled over the vocabulary without special tokens, at the engine's temperature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from vlgym.parsers import Parser, find_end, make_stop
from vlgym.registry.making import unwrap
from vlgym.types import Reply, Turn

from ..models.decoder import ImageTokens, Segment
from ..models.family import Family, Fifo, ImageInput, Prompt
from ..models.library import LibraryFamily

CHECK = 8  # tokens between two questions whether replies are over; each waits for an accelerator
SHORTEST_PREFIX = 8  # tokens; a shorter common prefix is not worth a separate pass
PROMPT_BYTES = 2**31  # of the distinct prompts whose keys and values are kept
CACHED_IMAGES = 2048  # distinct images whose features are kept until the vision tower changes
PREFILL_TOKENS = 2**15  # prompt tokens of one prefill pass while sampling, padding counted
LOGIT_CHUNK = 2**26  # logits held at once (256 MB in float32)

# (numbers of rows, the ids of each reply so far) -> is it over, though its turn has not ended?
Over = Callable[[Sequence[int], Sequence[Sequence[int]]], list[bool]]
# A stop rule (`make_stop`): the text so far -> after how many characters it is over, if it is.
Stop = Callable[[str], int | None]


# ---- prompts: keys, values and states ------------------------------------------------------------


def common_prefix(prompts: Sequence[Prompt]) -> int:
    """Length of the text before any image that all prompts begin with; 0 if not worth sharing."""
    if len(prompts) < 2:
        return 0
    limit = min(len(prompt) - 1 for prompt in prompts)
    slots = [int(prompt.image_slots[0]) for prompt in prompts if len(prompt.image_slots)]
    limit = min([limit, *slots])
    first = prompts[0].ids[:limit].numpy()
    for prompt in prompts[1:]:
        different = np.nonzero(prompt.ids[:limit].numpy() != first[:limit])[0]
        if len(different):
            limit = int(different[0])
    return limit if limit >= SHORTEST_PREFIX else 0


class Replies(NamedTuple):
    """Sampled replies of a batch, right-padded."""

    ids: Tensor  # [B, R] int64, with the end-of-turn token where there is one; pad id beyond
    mask: Tensor  # [B, R] bool, True on sampled tokens; from the loop, never inferred from ids
    logp: Tensor  # [B, R] float32, log-probability of each token when it was sampled; 0 beyond
    hidden: Tensor  # [B, H] float32, state of the LAST PROMPT token: the value head's input
    cut: Tensor  # [B] bool, the reply ran into the token limit before it was over
    texts: Sequence[str] = ()  # `decode` leaves them to `sample`


class Engine:
    """Samples and scores with one model; images are vision features.

    Args:
        max_new_tokens: longest reply, its end-of-turn token included.
        parsers: of prompts without a turn, whose environment has its own stop rule. A reply ends
            where one of them reads an action (`find_end`), or at its end-of-turn token.
        vision_of: an engine with the same vision tower, whose features are used.
    """

    name = "engine"

    def __init__(
        self, family: Family, *, max_new_tokens: int, parsers: Sequence[Parser] = (), vision_of: Engine | None = None
    ) -> None:
        self.family, self.decoder, self.vision_of = family, family.decoder, vision_of
        self.max_new_tokens, self.parsers = max_new_tokens, tuple(parsers)
        self.stop = torch.tensor(family.stop_ids, device=family.device)
        self.embedding = family.language_model.embed_tokens
        self.suppress = torch.zeros(family.rows, device=family.device)
        self.suppress[list(family.suppressed)] = float("-inf")
        self.temperature = 1.0  # logits are divided by it, in sampling and scoring alike

        # A CUDA graph replays a step of decoding where the cache keeps its shape.
        self.static = family.device.type == "cuda"
        self.stream: Any = torch.cuda.Stream(family.device) if self.static else None

        # What was computed is kept while the weights have these versions.
        self._features: Fifo = Fifo(CACHED_IMAGES)
        self._entries: Fifo = Fifo(1)  # as many as `PROMPT_BYTES` hold of the newest prompt's size
        vision = set(family.vision_parameters())
        self._vision_weights = list(vision)
        self._text_weights = [p for p in family.model.parameters() if p not in vision]
        self._vision_stamp: list[int] = []
        self._text_stamp: list[int] = []

    def restrict(self, logits: Tensor) -> Tensor:
        """Logits [..., V] of the model -> those sampled from: special tokens have -inf."""
        return (logits if self.temperature == 1.0 else logits / self.temperature) + self.suppress

    def prefill(self, prompts: Sequence[Prompt], train_vision: bool) -> tuple[list[Segment], Tensor]:
        """Run U distinct prompts: left-padded, their common text prefix once.

        Returns:
            (segments: the shared prefix, if any, and the rests; hidden of each last token [U, H]).
        """
        device = self.family.device
        shared = common_prefix(prompts)
        width = max(len(prompt) for prompt in prompts) - shared
        pads = [width + shared - len(prompt) for prompt in prompts]

        # Left-padding puts the last prompt tokens into one column, where replies begin.
        tokens = torch.full((len(prompts), width), self.family.pad_id)
        positions = torch.zeros(3, len(prompts), width, dtype=torch.int64)
        visible = torch.ones(len(prompts), width, dtype=torch.bool)
        for row, (prompt, pad) in enumerate(zip(prompts, pads, strict=True)):
            tokens[row, pad:] = prompt.ids[shared:]
            positions[:, row, pad:] = prompt.positions[:, shared:]
            visible[row, :pad] = False

        # The prefix holds no image, so one row of it serves all prompts.
        segments: list[Segment] = []
        if shared:
            first = prompts[0]
            rotary = self.decoder.rotary(first.positions[:, None, :shared].to(device))
            ids = first.ids[None, :shared].to(device)
            _, kv = self.decoder.forward(self.embedding(ids), rotary)
            segments.append(Segment(kv))

        # The rest of each prompt attends to the prefix and to itself, never to padding.
        embedded, offsets = self.embedding(tokens.to(device)), [pad - shared for pad in pads]
        x, images = self.place_images(embedded, prompts, offsets, train_vision)
        padded = visible.to(device) if any(pads) else None
        rotary = self.decoder.rotary(positions.to(device))
        hidden, kv = self.decoder.forward(x, rotary, segments, padded, images)
        bias = None
        if padded is not None:
            bias = torch.zeros_like(padded, dtype=x.dtype).masked_fill(~padded, float("-inf"))
        return [*segments, Segment(kv, bias)], hidden[:, -1]

    def prefill_distinct(self, prompts: Sequence[Prompt], train_vision: bool) -> tuple[list[Segment], Tensor, Tensor]:
        """`prefill` each distinct prompt once; and the row of each prompt in that, [B]."""
        unique = {prompt.key: prompt for prompt in prompts}
        row_of = {key: row for row, key in enumerate(unique)}
        index = torch.tensor([row_of[prompt.key] for prompt in prompts], device=self.family.device)
        return *self.prefill(list(unique.values()), train_vision), index

    def prefill_cached(self, prompts: Sequence[Prompt]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Per prompt (keys, values [layers, kv_heads, P, d], hidden [H]), while the weights stay."""
        self._forget_stale()
        cached = self._entries
        entries = {prompt.key: cached[prompt.key] for prompt in prompts if prompt.key in cached}
        distinct = [*{each.key: each for each in prompts if each.key not in entries}.values()]
        size = max(1, PREFILL_TOKENS // max(map(len, distinct), default=1))
        for at in range(0, len(distinct), size):
            missing = distinct[at : at + size]
            segments, last = self.prefill(missing, train_vision=False)

            # An entry joins its segments without padding, so that any batch can take it.
            for row, prompt in enumerate(missing):
                parts = []
                for segment in segments:
                    own = 0 if segment.kv[0][0].shape[0] == 1 else row
                    pad = 0 if segment.bias is None else int((segment.bias[own] != 0).sum())
                    sides = zip(*segment.kv, strict=True)
                    parts.append([torch.stack([x[own, :, pad:] for x in side]) for side in sides])
                keys, values = (torch.cat(side, dim=2) for side in zip(*parts, strict=True))
                cached.limit = max(1, PROMPT_BYTES // (keys.nbytes + values.nbytes))
                entries[prompt.key] = cached.put(prompt.key, (keys, values, last[row]))
        return [entries[prompt.key] for prompt in prompts]

    def place_images(
        self, x: Tensor, prompts: Sequence[Prompt], offsets: Sequence[int], train_vision: bool
    ) -> tuple[Tensor, ImageTokens | None]:
        """Put vision features into `x` at the image slots plus `offsets`, and say where that is."""
        images = [image for prompt in prompts for image in prompt.images]
        if not images:
            return x, None
        rows = [torch.full((len(prompt.image_slots),), row) for row, prompt in enumerate(prompts)]
        columns = [prompt.image_slots + by for prompt, by in zip(prompts, offsets, strict=True)]
        features = torch.cat(self.features(images, train_vision)).to(x.dtype)
        own, *deep = features.split(x.shape[-1], dim=-1)
        at, of = (torch.cat(part).to(x.device) for part in (rows, columns))
        return x.index_put((at, of), own), ImageTokens(at, of, tuple(deep))

    def features(self, images: Sequence[ImageInput], train: bool) -> list[Tensor]:
        """Features of each image; equal images are encoded once."""
        if self.vision_of is not None:
            return self.vision_of.features(images, train)
        self._forget_stale()
        stored = {} if train else self._features
        known = {image.digest: stored[image.digest] for image in images if image.digest in stored}
        missing = [*{each.digest: each for each in images if each.digest not in known}.values()]
        if missing:
            with torch.set_grad_enabled(train and torch.is_grad_enabled()):
                encoded = self.family.encode_images(missing)
            for image, features in zip(missing, encoded, strict=True):
                if not train:
                    features = self._features.put(image.digest, features.clone())
                known[image.digest] = features
        return [known[image.digest] for image in images]

    def forget(self) -> None:
        """Drop every cached prompt and image: an update may depend on none."""
        self._features.clear()
        self._entries.clear()

    def forget_prompts(self) -> None:
        """Drop the keys and values of every cached prompt: gigabytes that scoring does not need."""
        self._entries.clear()

    def _forget_stale(self) -> None:
        """Drop what older weights computed: a change of a tensor in place counts up its version."""
        vision = [p._version for p in self._vision_weights]
        text = [p._version for p in self._text_weights]
        if vision != self._vision_stamp:
            self._features.clear()
        if vision != self._vision_stamp or text != self._text_stamp:
            self._entries.clear()
            self._vision_stamp, self._text_stamp = vision, text

    # ---- how likely stored replies are, with gradients ------------------------------------------

    def score(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False) -> Tensor:
        """Log-probabilities of stored replies under the weights now, [B, R] float32, 0 where masked.

        Args:
            ids: [B, R] int64; mask: [B, R] bool, right-padded.
            train_vision: send gradients into the vision tower, whose features are cached otherwise.
        """
        return self.score_states(prompts, ids, mask, train_vision=train_vision)[0]

    def score_states(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """`score`, and the states of the last prompt tokens, [B, H]; with gradients if enabled."""
        segments, last, index = self.prefill_distinct(prompts, train_vision)
        states, starts = last[index], self._starts(prompts)

        # Equal replies to one prompt are run once.
        owner = torch.stack([index, starts], dim=1)
        keys = torch.cat([owner, ids.masked_fill(~mask, -1)], dim=1)
        distinct, row = keys.unique(dim=0, return_inverse=True)
        index, starts, ids = distinct[:, 0], distinct[:, 1], distinct[:, 2:]
        mask, ids = ids >= 0, ids.clamp(min=0)

        # The state of the last prompt token predicts the first token; the last token is never fed.
        hidden = last[index].unsqueeze(1)
        steps = int(mask.sum(-1).max()) - 1
        if steps > 0:
            past = [segment.select(index) for segment in segments]
            hidden = torch.cat([hidden, self._feed(starts, ids[:, :steps], past)], dim=1)

        # Logits are computed at real tokens only.
        mask = mask[:, : hidden.shape[1]]
        logp = self._log_probs(hidden[mask], ids[:, : mask.shape[1]][mask])
        scores = torch.zeros(ids.shape, device=logp.device)
        return scores.index_put(mask.nonzero(as_tuple=True), logp)[row], states

    @torch.no_grad()
    def reply_states(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States of the last prompt tokens, [B, H] float32, and `summarise` of the replies' states."""
        segments, last, index = self.prefill_distinct(prompts, train_vision=False)
        past = [segment.select(index) for segment in segments]
        fed = self._feed(self._starts(prompts), ids, past)
        return last[index].float(), summarise(fed.float(), mask)

    def _starts(self, prompts: Sequence[Prompt]) -> Tensor:
        return torch.tensor([prompt.next_position for prompt in prompts], device=self.family.device)

    def _feed(self, starts: Tensor, ids: Tensor, past: Sequence[Segment]) -> Tensor:
        """States of the first T reply tokens [b, T], at positions from `starts` [b] on."""
        positions = starts.unsqueeze(1) + torch.arange(ids.shape[1], device=ids.device)
        rotary = self.decoder.rotary(positions.expand(3, -1, -1))
        return self.decoder.forward(self.embedding(ids), rotary, past)[0]

    def _log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """[M, H], [M] -> [M] float32, in chunks that bound the memory of the logits."""

        def chunk(h: Tensor, target: Tensor) -> Tensor:
            logits = self.restrict(self.family.logits(h))
            return -F.cross_entropy(logits, target, reduction="none")

        size = max(1, LOGIT_CHUNK // self.suppress.shape[0])
        if len(targets) <= size:
            return chunk(hidden, targets)
        parts = zip(hidden.split(size), targets.split(size), strict=True)
        return torch.cat([checkpoint(chunk, h, target, use_reentrant=False) for h, target in parts])

    # ---- sampling --------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Limits and numbers of the model, for a run's record."""
        dtype = str(next(self.family.model.parameters()).dtype).removeprefix("torch.")
        sizes = {"max_new_tokens": self.max_new_tokens, **self.family.describe_images()}
        return {**sizes, "dtype": dtype, "device": str(self.family.device)}

    @torch.no_grad()
    def sample(
        self, prompts: Sequence[Prompt], generator: torch.Generator | None = None, *,
        temperature: float = 1.0, draws: Tensor | None = None, stops: Sequence[Stop] = (),
    ) -> Replies:  # fmt: skip
        """Sample one reply per prompt.

        Args:
            generator: on the CPU; a call draws `B * max_new_tokens` numbers, however long replies are.
            temperature: a further divisor of logits for the draw; 0 takes the likeliest token.
                The log-probabilities stay those of the engine's own temperature.
            draws: [max_new_tokens, B] in [0, 1), random numbers instead of the generator's.
            stops: the stop rule of each row; without them any readable action ends a reply.
        """
        if draws is None:
            size = (self.max_new_tokens, len(prompts))
            draws = torch.rand(size, generator=generator) if temperature else torch.zeros(size)
        rules = stops or ([self._find_action] * len(prompts) if self.parsers else ())

        def find(row: int, ids: Sequence[int]) -> int | None:
            end = rules[row](self.family.decode(ids)) if rules else None
            return None if end is None else self.family.count_tokens(ids, end)

        def over(rows: Sequence[int], replies: Sequence[Sequence[int]]) -> list[bool]:
            return [find(row, ids) is not None for row, ids in zip(rows, replies, strict=True)]

        rule, draws = over if rules else None, draws.to(self.family.device)
        ids, mask, logp, hidden, cut, _ = self.decode(prompts, draws, temperature, rule)

        # `decode` asks the rules every `CHECK` tokens, so a reply may be too long.
        lengths = mask.sum(-1).tolist()
        rows = [row[:length] for row, length in zip(ids.tolist(), lengths, strict=True)]
        for i, row in enumerate(rows):
            if (end := find(i, row)) is not None:
                rows[i], cut[i] = row[:end], False
                ids[i, end:], mask[i, end:], logp[i, end:] = self.family.pad_id, False, 0.0
        longest = max(len(row) for row in rows)
        ids, mask, logp = ids[:, :longest], mask[:, :longest], logp[:, :longest]
        texts = [self.family.decode(row) for row in rows]
        return Replies(ids, mask, logp, hidden.float(), cut, texts)

    def _find_action(self, text: str) -> int | None:
        """After how many characters one of the parsers has an action, legal or not."""
        ends = (find_end(parser, text) for parser in self.parsers)
        return min((end for end in ends if end is not None), default=None)

    @torch.no_grad()
    def decode(self, prompts: Sequence[Prompt], draws: Tensor, temperature: float, over: Over | None) -> Replies:
        """Answer token by token; padded to the token limit.

        Args:
            draws: [limit, B] in [0, 1), on the device.
            over: asked every `CHECK` steps, so a reply may be up to `CHECK - 1` tokens too long.
        """
        entries, static = self.prefill_cached(prompts), self.static
        first, next_positions = torch.stack([entry[2] for entry in entries]), self._starts(prompts)
        limit, n = draws.shape
        new: dict[str, Any] = {"device": first.device}
        past = [entry[:2] for entry in entries]
        state = self.decoder.start(past, next_positions, limit, static=static)
        ids = torch.full((n, limit), self.family.pad_id, **new)
        logp = torch.zeros(n, limit, **new)
        mask = torch.zeros(n, limit, dtype=torch.bool, **new)
        rows = torch.arange(n, **new)  # rows still being decoded
        token = torch.zeros(n, dtype=torch.int64, **new)  # the newest of each
        ended = torch.zeros(n, dtype=torch.bool, **new)

        def note(hidden: Tensor) -> None:
            """Choose the next token of each row, and write it down."""
            scores = torch.log_softmax(self.restrict(self.family.logits(hidden)), dim=-1)
            token.copy_(choose(scores, draws[state.t, rows], temperature))
            ids[rows, state.t] = torch.where(ended, self.family.pad_id, token)
            chosen = scores.gather(-1, token.unsqueeze(-1)).squeeze(-1)
            logp[rows, state.t] = torch.where(ended, 0.0, chosen)
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
                over_now = over(rows[going].tolist(), ids[rows[going], :done].tolist())
                ended[going] = torch.tensor(over_now, dtype=torch.bool, **new)

            # Counting waits for the device, which a graph would leave idle.
            counted = due or not static or done == limit
            alive = len(rows) - int(ended.sum()) if counted else len(rows)
            if done == limit or alive == 0:
                break

            # Where most rows have ended, the others go on alone; a static cache keeps its shape.
            if alive <= len(rows) // 2 and not static:
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
        """Do a step, and return what does it again: a CUDA graph of this batch, or the step."""
        if self.stream is None:
            step()
            return step

        # Libraries set themselves up for this stream, which they cannot while it is recorded.
        here = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            step()
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
        """State of the last prompt token, [B, H] float32: the value head's input."""
        return torch.stack([entry[2] for entry in self.prefill_cached(prompts)]).float()


def summarise(fed: Tensor, mask: Tensor) -> Tensor:
    """Mean and last of the states of each reply's tokens: [B, R, H] and [B, R] bool -> [B, 2 H]."""
    lengths = mask.sum(-1, keepdim=True)
    end = fed.take_along_dim((lengths - 1).unsqueeze(-1), 1).squeeze(1)
    return torch.cat([(fed * mask.unsqueeze(-1)).sum(1) / lengths, end], dim=-1)


def make_engine(family: Family, **options: Any) -> Engine:
    """The engine of a family; options are those of `Engine`."""
    if isinstance(family, LibraryFamily):
        from .generate import PlainEngine  # which extends `Engine`

        return PlainEngine(family, **options)
    return Engine(family, **options)


def choose(log_probs: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Sample a token per row at a temperature, 0 the likeliest: [B, V], [B] in [0, 1) -> [B]."""
    if temperature == 0:
        return log_probs.argmax(-1)
    if temperature != 1.0:
        log_probs = torch.log_softmax(log_probs / temperature, dim=-1)
    return draw(log_probs, uniform)


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Sample by inverting the cumulative distribution: [B, V], [B] in [0, 1) -> [B]."""
    device = log_probs.device
    where = "cpu" if device.type == "mps" else device  # MPS has no float64
    cumulative = log_probs.to(where).double().exp().cumsum(-1)
    target = uniform.to(where).double().unsqueeze(-1) * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, target, right=True).squeeze(-1)
    return tokens.clamp(max=log_probs.shape[-1] - 1).to(device)


# ---- the engine as a policy ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """One sampled reply, attached to its step record."""

    prompt: Prompt  # the exact one that was answered; it is stored, never rebuilt
    ids: Tensor  # [r] int64, end-of-turn token included where the reply has one
    logp: Tensor  # [r] float32, when sampled
    hidden: Tensor  # [H] float32, state of the last prompt token
    cut: bool  # the reply ran into the token limit before it was over


class ModelPolicy:
    """Samples replies from an engine, with a CPU generator whose state is part of a checkpoint."""

    def __init__(self, engine: Engine, generator: torch.Generator, *, name: str = "vlm") -> None:
        self.engine, self.generator, self.name = engine, generator, name

    def describe(self) -> dict[str, Any]:
        """The settings, other than the prompt, that a reply depends on, for a run's record."""
        seed, system = self.generator.initial_seed(), self.engine.family.system
        sampler: dict[str, Any] = {"temperature": self.engine.temperature, "seed": seed}
        sampler |= {"system": system} if system else {}
        return {"name": self.name, **self.engine.describe(), **sampler}

    def sample(self, prompts: Sequence[Prompt], stops: Sequence[Stop] = ()) -> tuple[list[Sample], Sequence[str]]:
        """A reply to each prompt, as ids and as text; `stops` as in `Engine.sample`."""
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
