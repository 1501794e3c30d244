"""Decoding with static shapes against the plain loop."""

from __future__ import annotations

import torch

from baselines.engine.eager import _draw_by_cells, draw
from baselines.engine.engine import Engine
from baselines.engine.graphed import GraphedDecoding

LIMIT = 20  # no multiple of CHECK


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def build(family, *, static: bool) -> Engine:
    """An engine whose replies end at every eighth token of the vocabulary."""
    engine = Engine(family, max_new_tokens=LIMIT, static=static)
    engine.stop = torch.arange(0, 1300, 8)
    if static:
        engine.decoding.smallest = 2
    return engine


def test_static_shapes_give_the_tokens_and_log_probs_of_the_plain_loop(family, prompts, monkeypatch):
    moves = []
    compact = GraphedDecoding._compact
    monkeypatch.setattr(
        GraphedDecoding, "_compact", lambda self, rows, bucket: moves.append(rows) or compact(self, rows, bucket)
    )
    one, other = (build(family, static=static).sample(prompts * 3, generator(3)) for static in (False, True))
    assert torch.equal(one.ids, other.ids)
    assert torch.equal(one.mask, other.mask)
    assert torch.equal(one.cut, other.cut)
    assert one.texts == other.texts
    torch.testing.assert_close(one.hidden, other.hidden, atol=1e-5, rtol=0)
    torch.testing.assert_close(one.logp, other.logp, atol=1e-5, rtol=0)
    assert moves  # rows were moved to a smaller bucket on the way
    assert 0 < int(one.cut.sum()) < len(one.cut)  # some replies ran into the limit, some ended


def test_large_vocabularies_are_drawn_from_as_exactly_as_small_ones():
    probabilities = torch.zeros(1500)
    probabilities[[3, 511, 512, 1024, 1400]] = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.15])
    uniform = (torch.arange(1000) + 0.5) / 1000
    tokens = _draw_by_cells(probabilities.log().expand(1000, -1), uniform)
    counts = torch.bincount(tokens, minlength=1500)
    assert {int(i): int(counts[i]) for i in counts.nonzero()} == {3: 100, 511: 200, 512: 300, 1024: 250, 1400: 150}
    assert _draw_by_cells(probabilities.log()[None], torch.tensor([0.99999994])).item() == 1400
    assert _draw_by_cells(probabilities.log()[None], torch.tensor([0.0])).item() == 3
    logp = torch.log_softmax(torch.randn(64, 5000, generator=generator()) * 3, -1)
    uniform = torch.rand(64, generator=generator(1))
    assert torch.equal(_draw_by_cells(logp, uniform), draw(logp, uniform))
