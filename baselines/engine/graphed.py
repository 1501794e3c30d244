"""Decoding with static shapes: every step of a batch runs the same kernels on the same addresses, so an accelerator can
replay it as one CUDA graph.

Eager decoding of a large model is bound by launching some hundreds of small kernels per token; a replayed graph is
bound by reading the weights. A graph fixes shapes, addresses and the absence of any wait for the device, hence:

- the batch is padded to a bucket (a power of two); when half of its rows have ended, the others move to the next
  smaller bucket, which is the first rows of the same buffers;
- the number of the step and of the cache slot to fill are tensors on the device;
- a step attends to a whole multiple of `BLOCK` slots, those that are empty or padding being masked;
- uniform numbers for all steps are uploaded before the first; tokens, log-probabilities and masks are gathered in
  tables that are read after the last;
- whether rows have ended is asked every `CHECK` steps, not after each.

The same functions run without graphs on a CPU, where the tests compare them with `eager.EagerDecoding`. A graph holds
addresses, not values: weights that change in place (optimizers, `copy_`, `load_state_dict`) are seen by the next
replay; weights that are exchanged for other tensors are noticed by their addresses, and the graphs are recorded again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models.decoder import Qwen2Decoder
from .eager import CHECK, Over, Sampled, ask, draw, heat

BLOCK = 64  # slots; what a step attends to is a multiple of it
SMALLEST = 16  # rows; a smaller batch reads the same weights and hardly takes less time


class Shape(NamedTuple):
    """What a graph is recorded for: rows, slots attended to, whether tokens are sampled or the likeliest taken, and at
    which temperature."""

    rows: int
    slots: int
    greedy: bool
    temperature: float = 1.0


class GraphedDecoding:
    """Samples what `EagerDecoding` samples, from the same uniform numbers.

    Args:
        decoder, embedding, logits, pad_id: as in `EagerDecoding`.
        weights: the model; its tensors' addresses say whether graphs are still good.
        capture: record CUDA graphs; None: if the weights are on a CUDA device.
        smallest: rows of the smallest bucket.
    """

    def __init__(
        self,
        decoder: Qwen2Decoder,
        embedding: nn.Module,
        logits: Callable[[Tensor], Tensor],
        weights: nn.Module,
        *,
        pad_id: int,
        capture: bool | None = None,
        smallest: int = SMALLEST,
    ) -> None:
        self.decoder, self.embedding, self.logits, self.weights = decoder, embedding, logits, weights
        self.pad_id, self.smallest = pad_id, smallest
        first = next(weights.parameters())
        self.device = first.device
        self.capture = self.device.type == "cuda" if capture is None else capture
        self.rows = self.slots = self.limit = 0  # capacity of the buffers
        self._addresses: list[int] = []
        self._graphs: dict[Shape, Any] = {}
        self._warm: set[Shape] = set()
        self._pool: Any = None

    # ---- one batch ---------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def decode(
        self,
        entries: Sequence[tuple[Tensor, Tensor]],
        hidden: Tensor,
        next_positions: Tensor,
        uniforms: Tensor,
        stop: Tensor,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
        over: Over | None = None,
    ) -> Sampled:
        """Sample one reply per prompt; arguments and result are those of `EagerDecoding.decode`."""
        limit, n = uniforms.shape
        device: AbstractContextManager[Any] = torch.cuda.device(self.device) if self.capture else nullcontext()
        with device:
            self._check_addresses()
            prompt = max(keys.shape[2] for keys, _ in entries)
            self._reserve(self._bucket(n), prompt + limit, limit, entries[0][0])
            rows = self._begin(entries, prompt, hidden, next_positions, uniforms, stop)
            done = 0
            while True:
                steps = min(CHECK, limit - done)
                done += steps
                shape = Shape(rows, _round_up(prompt + done, BLOCK), greedy, temperature)
                for _ in range(steps):
                    self._advance(shape)
                if done == limit:
                    break
                if over is not None:
                    self._end(over, rows, done)
                going = rows - int(self.ended[:rows].sum())
                if going == 0:
                    break
                if self._bucket(going) < rows:
                    rows = self._compact(rows, self._bucket(going))
            cut = torch.zeros(self.rows + 1, dtype=torch.bool, device=self.device)
            cut[self.home[:rows]] = ~self.ended[:rows]
            width = self.rows + 1
            ids, logp, mask = (x.view(-1, width)[:limit, :n].t().clone() for x in (self.ids, self.logp, self.mask))
            return Sampled(ids, logp, mask, cut[:n])

    def _end(self, over: Over, rows: int, done: int) -> None:
        """End the rows that are over after `done` steps."""
        at = torch.arange(done, device=self.device) * (self.rows + 1) + self.home[:rows].unsqueeze(1)
        self.ended[:rows] = ask(over, self.home[:rows], self.ids[at], self.ended[:rows])

    def _bucket(self, rows: int) -> int:
        """The next power of two, at least the smallest bucket."""
        return max(self.smallest, 1 << (rows - 1).bit_length())

    def _begin(
        self,
        entries: Sequence[tuple[Tensor, Tensor]],
        prompt: int,
        hidden: Tensor,
        next_positions: Tensor,
        uniforms: Tensor,
        stop: Tensor,
    ) -> int:
        """Lay a batch into the buffers, prompts left-padded to `prompt` slots; return its bucket."""
        limit, n = uniforms.shape
        self.keys.zero_()  # a slot that is masked must still be finite: 0 * NaN is NaN
        self.values.zero_()
        self.bias.fill_(float("-inf"))
        for row, (keys, values) in enumerate(entries):
            own = slice(prompt - keys.shape[2], prompt)
            self.keys[:, row, :, own], self.values[:, row, :, own] = keys, values
            self.bias[row, :, :, own] = 0.0
        self.hidden.zero_()
        self.hidden[:n] = hidden
        self.ended.fill_(True)  # rows that only fill the bucket
        self.ended[:n] = False
        self.home.fill_(self.rows)  # they write where nobody reads
        self.home[:n] = torch.arange(n, device=self.device)
        self.is_stop.zero_().index_fill_(0, stop, True)
        self.step.zero_()
        self.slot.fill_(prompt)
        width = self.rows + 1
        for table, fill in ((self.ids, self.pad_id), (self.logp, 0.0), (self.mask, False), (self.uniforms, 0.0)):
            table.fill_(fill)
        self.uniforms.view(-1, width)[:limit, :n] = uniforms
        positions = next_positions + torch.arange(limit, device=self.device).unsqueeze(1)
        angles = self.decoder.rotary(positions.expand(3, -1, -1)).angles
        for kept, new in zip(self.angles, angles, strict=True):
            for table, values in zip(kept, new, strict=True):
                table.view(-1, width, 1, table.shape[-1])[:limit, :n] = values
        return self._bucket(n)

    def _compact(self, rows: int, bucket: int) -> int:
        """Move the rows that are still going to the front, ended ones after them, and go on with `bucket` rows."""
        order = self.ended[:rows].long().argsort(stable=True)[:bucket]
        for layer in (*self.keys, *self.values):  # one layer at a time: the copies of all would be large
            layer[:bucket] = layer[order]
        for state in (self.bias, self.hidden, self.ended, self.home):
            state[:bucket] = state[order]
        return bucket

    # ---- one step ----------------------------------------------------------------------------------------------------

    def _advance(self, shape: Shape) -> None:
        """Do one step: plainly the first time (libraries set themselves up then), replayed from the second on."""
        graph = self._graphs.get(shape)
        if graph is None and self.capture and shape in self._warm:
            try:
                graph = self._graphs[shape] = self._record(shape)
            except RuntimeError as error:
                self.capture = False
                reason = str(error).split("\n")[0]
                warnings.warn(
                    f"no CUDA graph of a decode step ({reason}); decoding goes on without, slower", stacklevel=2
                )
        if graph is None:
            self._warm.add(shape)
            self._step(shape)
        else:
            graph.replay()

    def _record(self, shape: Shape) -> Any:
        """A graph of one step. Recording does not execute it."""
        graph = torch.cuda.CUDAGraph()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()  # the graphs run one after another: they can share memory
        with torch.cuda.graph(graph, pool=self._pool):
            self._step(shape)
        return graph

    def _step(self, shape: Shape) -> None:
        """Sample a token from the hidden states, note it, feed it. Everything happens on the device."""
        rows = shape.rows
        at = self.step * (self.rows + 1) + self.home[:rows]  # of step and row in the tables
        scores = torch.log_softmax(self.logits(self.hidden[:rows]), dim=-1)
        likely = heat(scores, shape.temperature)
        token = scores.argmax(-1) if shape.greedy else draw(likely, self.uniforms.index_select(0, at))
        ended = self.ended[:rows]
        self.ids.index_copy_(0, at, token.masked_fill(ended, self.pad_id))
        self.logp.index_copy_(0, at, scores.gather(-1, token.unsqueeze(-1)).squeeze(-1).masked_fill(ended, 0.0))
        self.mask.index_copy_(0, at, ~ended)
        ended.logical_or_(self.is_stop.index_select(0, token))
        self.hidden[:rows] = self._feed(self.embedding(token), at, shape)
        self.step.add_(1)
        self.slot.add_(1)

    def _feed(self, x: Tensor, at: Tensor, shape: Shape) -> Tensor:
        """Run the layers on one token per row, [rows, H] -> [rows, H] after the final norm."""
        decoder, rows, slots = self.decoder, shape.rows, shape.slots
        heads, kvh, d = decoder.heads, decoder.kv_heads, decoder.head_dim
        angles = [(cos.index_select(0, at), sin.index_select(0, at)) for cos, sin in self.angles]
        self.bias.index_fill_(3, self.slot, 0.0)
        biases = {window: self._bias(shape, window) for window in set(decoder.windows)}
        for i in range(len(decoder.layers)):
            qkv = decoder.qkv_step(i, decoder.before_attention(i, x))
            cos, sin = angles[decoder.kinds[i]]
            qk = qkv[:, : heads + kvh]
            qk = torch.addcmul(qk * cos, qk.roll(d // 2, -1), sin)
            keys, values = self.keys[i, :rows, :, :slots], self.values[i, :rows, :, :slots]
            keys.index_copy_(2, self.slot, qk[:, heads:].unsqueeze(2))
            values.index_copy_(2, self.slot, qkv[:, heads + kvh :].unsqueeze(2))
            # The query heads of a KV head are its queries: keys and values are read once and never repeated.
            q = qk[:, :heads].reshape(rows, kvh, heads // kvh, d)
            y = F.scaled_dot_product_attention(q, keys, values, biases[decoder.windows[i]], scale=decoder.scale)
            x = decoder.after_attention(i, x, y.reshape(rows, heads * d))
        return decoder.norm(decoder.model.norm, x)

    def _bias(self, shape: Shape, window: int | None) -> Tensor:
        """What a layer of a window (in tokens, the newest included) may attend to, [rows, kv_heads, group, slots]."""
        bias = self.bias[: shape.rows, :, :, : shape.slots]
        if window is not None:
            far = torch.arange(shape.slots, device=self.device) <= self.slot - window
            bias = bias.masked_fill(far, float("-inf"))
        group = self.decoder.heads // self.decoder.kv_heads
        return bias.expand(-1, self.decoder.kv_heads, group, -1)

    # ---- buffers and graphs ------------------------------------------------------------------------------------------

    def _reserve(self, rows: int, slots: int, limit: int, like: Tensor) -> None:
        """Make the buffers large enough. They only grow, because graphs hold their addresses."""
        slots = _round_up(slots, BLOCK)
        if rows <= self.rows and slots <= self.slots and limit <= self.limit:
            return
        self._drop_graphs()
        self.rows, self.slots, self.limit = max(rows, self.rows), max(slots, self.slots), max(limit, self.limit)
        self.keys = self.values = torch.zeros(0)  # frees the old ones before the new ones are made
        layers, kvh, _, d = like.shape
        self.keys, self.values = (like.new_zeros(layers, self.rows, kvh, self.slots, d) for _ in range(2))
        self.bias = like.new_zeros(self.rows, 1, 1, self.slots)
        self.hidden = like.new_zeros(self.rows, self.decoder.model.config.hidden_size)
        cells = self.limit * (self.rows + 1)  # per step one cell per row, and one where rows without a prompt write

        def new(size: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(size, dtype=dtype, device=self.device)

        self.ended, self.home = new(self.rows, torch.bool), new(self.rows, torch.int64)
        self.step, self.slot = new(1, torch.int64), new(1, torch.int64)
        self.ids, self.logp = new(cells, torch.int64), new(cells, torch.float32)
        self.mask, self.uniforms = new(cells, torch.bool), new(cells, torch.float32)
        self.is_stop = new(self.logits(self.hidden[:1]).shape[-1], torch.bool)
        kinds = max(self.decoder.kinds) + 1
        self.angles = [(like.new_zeros(cells, 1, d), like.new_zeros(cells, 1, d)) for _ in range(kinds)]

    def _check_addresses(self) -> None:
        """Drop the graphs if any weight is another tensor than when they were recorded."""
        addresses = [x.data_ptr() for group in (self.weights.parameters(), self.weights.buffers()) for x in group]
        if addresses != self._addresses:
            self._drop_graphs()
            self._addresses = addresses

    def _drop_graphs(self) -> None:
        self._graphs, self._warm, self._pool = {}, set(), None


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
