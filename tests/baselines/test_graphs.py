"""Decoding with static shapes against the plain loop, and what a recorded graph relies on."""

from __future__ import annotations

import copy

import pytest
import torch
from gpu_speed import qwen2_vl_7b
from samples import INSTRUCTIONS, messages, picture
from torch.utils._python_dispatch import TorchDispatchMode

from baselines.engine.eager import EagerDecoding, _draw_by_cells, draw
from baselines.engine.engine import Engine
from baselines.engine.graphed import BLOCK, CHECK, GraphedDecoding, Shape
from baselines.models.decoder import Qwen2Decoder
from baselines.models.load import FAMILIES
from baselines.models.tiny import SMALLEST, build_tiny

LIMIT = 20  # no multiple of CHECK


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def build(family, *, static: bool, smallest: int = 2) -> Engine:
    """An engine whose replies end at every eighth token of the vocabulary."""
    engine = Engine(family, max_new_tokens=LIMIT, static=static)
    engine.stop = torch.arange(0, 1300, 8)
    if static:
        engine.decoding.smallest = smallest
    return engine


def assert_same(one, other) -> None:
    assert torch.equal(one.ids, other.ids)
    assert torch.equal(one.mask, other.mask)
    assert torch.equal(one.cut, other.cut)
    torch.testing.assert_close(one.hidden, other.hidden, atol=1e-5, rtol=0)
    assert one.texts == other.texts
    torch.testing.assert_close(one.logp, other.logp, atol=1e-5, rtol=0)


class Recorded:
    """What stands for a CUDA graph here: recording executes nothing, replaying does the step."""

    def __init__(self, decoder: GraphedDecoding, shape: Shape) -> None:
        self.decoder, self.shape, self.replays = decoder, shape, 0

    def replay(self) -> None:
        self.replays += 1
        self.decoder._step(self.shape)


@pytest.fixture
def recording(monkeypatch):
    """Record as on an accelerator, with stand-ins for the graphs."""
    monkeypatch.setattr(GraphedDecoding, "_record", lambda self, shape: Recorded(self, shape))
    monkeypatch.setattr(torch.cuda, "device", lambda device: torch.no_grad())

    def start(engine: Engine) -> GraphedDecoding:
        engine.decoding.capture = True
        return engine.decoding

    return start


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("smallest", [1, 16])
def test_static_shapes_give_the_tokens_and_log_probs_of_the_plain_loop(family, prompts, greedy, smallest, monkeypatch):
    moves = []
    compact = GraphedDecoding._compact
    monkeypatch.setattr(
        GraphedDecoding, "_compact", lambda self, rows, bucket: moves.append(rows) or compact(self, rows, bucket)
    )
    plain = build(family, static=False).sample(prompts * 3, generator(3), greedy=greedy)
    static = build(family, static=True, smallest=smallest).sample(prompts * 3, generator(3), greedy=greedy)
    assert_same(static, plain)
    assert moves or greedy  # rows were moved to a smaller bucket on the way
    if not greedy:
        assert 0 < int(plain.cut.sum()) < len(plain.cut)  # some replies ran into the limit, some ended


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_decodes_alike_with_static_shapes(name):
    family = FAMILIES[name][1](*build_tiny(SMALLEST, family=name))
    texts = ["+, -", "turn left, turn right, move forward", "hit, stand"]
    prompts = [family.encode(messages(picture(i), INSTRUCTIONS + text)) for i, text in enumerate(texts)]
    plain = build(family, static=False).sample(prompts * 3, generator(1))
    static = build(family, static=True).sample(prompts * 3, generator(1))
    assert_same(static, plain)
    assert int(plain.mask.sum(-1).max()) > CHECK


def test_a_small_batch_after_a_large_one_uses_the_same_buffers_and_sees_nothing_of_it(family, prompts):
    engine = build(family, static=True)
    engine.sample(prompts * 4, generator())
    address = engine.decoding.keys.data_ptr()
    engine.decoding.keys.fill_(float("nan"))  # as if the weights had gone bad meanwhile
    engine.decoding.values.fill_(float("nan"))
    expected = build(family, static=False).sample(prompts[:3], generator(1))
    assert_same(engine.sample(prompts[:3], generator(1)), expected)
    assert engine.decoding.keys.data_ptr() == address


def test_longer_prompts_and_replies_than_before_get_larger_buffers(family, prompts):
    engine, plain = build(family, static=True), build(family, static=False)
    engine.sample(prompts[:2], generator())
    long = [family.encode(messages(picture(9), INSTRUCTIONS * 3)), *prompts[:2]]
    for either in (engine, plain):
        either.max_new_tokens = BLOCK + 3
        either.stop = torch.tensor(family.stop_ids)
    slots = engine.decoding.slots
    assert_same(engine.sample(long, generator(1)), plain.sample(long, generator(1)))
    assert engine.decoding.slots > slots
    assert engine.decoding.slots % BLOCK == 0


def test_each_shape_runs_plainly_once_and_is_replayed_from_its_second_step(family, prompts, recording, monkeypatch):
    engine = build(family, static=True)
    sampler, steps, step = recording(engine), [], GraphedDecoding._step
    monkeypatch.setattr(GraphedDecoding, "_step", lambda self, shape: steps.append(shape) or step(self, shape))
    out = engine.sample(prompts * 3, generator(3))
    assert_same(out, build(family, static=False).sample(prompts * 3, generator(3)))
    first = {shape: graph.replays for shape, graph in sampler._graphs.items()}
    assert len(first) > 1
    assert first == {shape: steps.count(shape) - 1 for shape in first}
    assert {shape.slots % BLOCK for shape in first} == {0}
    again = len(steps)
    engine.sample(prompts * 3, generator(3))
    assert {shape: graph.replays for shape, graph in sampler._graphs.items()} == {
        shape: steps.count(shape) - 1 for shape in first
    }
    assert len(steps) == 2 * again


def test_weights_changed_in_place_are_seen_without_recording_again(family, prompts, recording):
    engine = build(family, static=True)
    sampler = recording(engine)
    before = engine.sample(prompts, generator())
    graphs = dict(sampler._graphs)
    with torch.no_grad():
        for p in family.language_model.parameters():
            p.mul_(1.05)
    after = engine.sample(prompts, generator())
    assert sampler._graphs.items() >= graphs.items()
    assert graphs
    scored = engine.score(prompts, after.ids, after.mask)
    torch.testing.assert_close(after.logp, scored, atol=1e-5, rtol=0)
    assert (engine.score(prompts, before.ids, before.mask) - before.logp).abs().max() > 1e-3


def test_exchanged_weights_drop_the_graphs(family, prompts, recording):
    engine = build(family, static=True)
    sampler = recording(engine)
    engine.sample(prompts, generator())
    old = dict(sampler._graphs)
    weights = copy.deepcopy(family.model.state_dict())
    family.model.load_state_dict({name: value * 1.01 for name, value in weights.items()}, assign=True)
    engine.sample(prompts, generator())
    assert old
    assert not any(graph is old.get(shape) for shape, graph in sampler._graphs.items())


def test_where_no_graph_can_be_recorded_decoding_says_so_and_goes_on_without(family, prompts, recording, monkeypatch):
    def refuse(self, shape):
        raise RuntimeError("operation not permitted when stream is capturing\nmore lines")

    engine = build(family, static=True)
    sampler = recording(engine)
    monkeypatch.setattr(GraphedDecoding, "_record", refuse)
    with pytest.warns(UserWarning, match="no CUDA graph of a decode step .operation not permitted when stream is capt"):
        out = engine.sample(prompts, generator())
    assert not sampler.capture
    assert_same(out, build(family, static=False).sample(prompts, generator()))


class NoQuestions(TorchDispatchMode):
    """Fails on operations whose result the host must wait for, or whose shape depends on values."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal.default", "lift_fresh")

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        assert not any(word in str(function) for word in self.FORBIDDEN), function
        return function(*args, **(kwargs or {}))


@torch.no_grad()
@pytest.mark.parametrize("greedy", [False, True])
def test_a_step_never_waits_for_the_device(family, prompts, greedy):
    engine = build(family, static=True)
    engine.sample(prompts, generator())
    engine.decoding.step.zero_()
    engine.decoding.slot.zero_()
    with NoQuestions():
        engine.decoding._step(Shape(8, engine.decoding.slots, greedy))


@torch.no_grad()
@pytest.mark.parametrize("greedy", [False, True])
def test_a_step_at_full_size_keeps_to_the_device_and_the_dtype_of_the_weights(greedy):
    """On a device that holds shapes only: a tensor left on the host is an error there as it is on an accelerator."""
    device = torch.device("meta")
    model = qwen2_vl_7b(device)
    suppress = torch.zeros(152064, device=device)
    static = GraphedDecoding(
        Qwen2Decoder(model.model.language_model),
        model.model.language_model.embed_tokens,
        lambda hidden: model.lm_head(hidden).float() + suppress,
        model,
        pad_id=0,
    )
    static.decoder.windows = [256, None] * 14  # this model has none; other families do
    n, prompt, limit = 40, 300, 128
    entry = torch.zeros(28, 4, prompt, 128, dtype=torch.bfloat16, device=device)
    static._reserve(static._bucket(n), prompt + limit, limit, entry)
    whole = torch.zeros(n, dtype=torch.int64, device=device)
    hidden, uniforms = torch.zeros(n, 3584, dtype=torch.bfloat16, device=device), torch.zeros(limit, n, device=device)
    rows = static._begin([(entry, entry)] * n, prompt, hidden, whole, uniforms, whole[:1])
    static._step(Shape(rows, 320, greedy))
    static._compact(rows, 16)
    assert (rows, static.slots, static.keys.dtype, static.logp.dtype) == (64, 448, torch.bfloat16, torch.float32)


@torch.no_grad()
def test_flat_scoring_lets_the_attention_kernels_be_causal_without_a_mask_or_repeated_keys(
    family, prompts, monkeypatch
):
    calls = []
    attention = torch.nn.functional.scaled_dot_product_attention

    def watched(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **others):
        calls.append((attn_mask, is_causal, key.shape[1], query.shape[2] == key.shape[2]))
        return attention(query, key, value, attn_mask, dropout_p, is_causal, **others)

    engine = Engine(family, max_new_tokens=LIMIT)
    out = engine.sample(prompts, generator())
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    engine.score_flat(prompts, out.ids, out.mask)
    text = [call for call in calls if call[2] == family.decoder.kv_heads]
    assert text == [(None, True, family.decoder.kv_heads, True)] * len(family.decoder.layers)


def test_static_decoding_is_chosen_by_the_device_unless_asked_for(family):
    assert isinstance(Engine(family, max_new_tokens=4).decoding, EagerDecoding)
    assert isinstance(Engine(family, max_new_tokens=4, static=True).decoding, GraphedDecoding)


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
