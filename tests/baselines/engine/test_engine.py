"""The engine against the library's forward pass and `generate`."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from samples import DEVICE
from torch.utils._python_dispatch import TorchDispatchMode

from baselines.engine import engine as engine_module
from baselines.engine.engine import Engine, draw, pad_rows
from baselines.models.load import load_family


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def often_ending(family) -> Engine:
    """An engine whose replies end at every eighth token of the vocabulary."""
    engine = Engine(family, max_new_tokens=20)
    engine.stop = torch.arange(0, 1300, 8)
    return engine


def test_special_tokens_are_never_sampled_even_if_the_model_wants_nothing_else(family, prompts):
    with torch.no_grad():
        family.model.lm_head.weight[list(family.suppressed)] *= 500.0
    engine = Engine(family, max_new_tokens=12)
    for seed in range(3):
        out = engine.sample(prompts, generator(seed))
        assert not torch.isin(out.ids[out.mask], torch.tensor(family.suppressed)).any()
        assert torch.isfinite(out.logp).all()
        torch.testing.assert_close(engine.score(prompts, out.ids, out.mask), out.logp, atol=1e-4, rtol=0)


def test_the_end_of_turn_token_is_part_of_the_action_and_ends_the_row(family, prompts):
    engine = often_ending(family)
    out = engine.sample(prompts * 4, generator())
    stop = set(engine.stop.tolist())
    for ids, mask, cut in zip(out.ids.tolist(), out.mask, out.cut.tolist(), strict=True):
        n = int(mask.sum())
        assert mask[:n].all()
        assert (ids[n - 1] in stop) is (not cut)
        assert not stop & set(ids[: n - 1])
        assert set(ids[n:]) <= {family.pad_id}
    assert 0 < int(out.cut.sum()) < len(out.cut)


def test_as_many_prompts_are_kept_as_the_bytes_hold(engine, prompts, monkeypatch):
    engine.forget()
    expected = engine.sample(prompts, generator(3))
    assert len(engine._entries) == len({prompt.key for prompt in prompts}) > 2
    largest = max(keys.nbytes + values.nbytes for keys, values, _ in engine._entries.values())
    monkeypatch.setattr(engine_module, "PROMPT_BYTES", 2 * largest)
    engine.forget()
    out = engine.sample(prompts, generator(3))
    assert 0 < sum(keys.nbytes + values.nbytes for keys, values, _ in engine._entries.values()) <= 2 * largest
    assert torch.equal(out.ids, expected.ids)


@torch.no_grad()
def test_prompts_beyond_one_pass_of_prefill_get_the_same_states(family, prompts, monkeypatch):
    whole = Engine(family, max_new_tokens=4).last_hidden(prompts)
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", len(prompts[0]))
    engine, widths = Engine(family, max_new_tokens=4), []
    plain = engine.prefill
    monkeypatch.setattr(engine, "prefill", lambda rows, *a, **k: widths.append(len(rows)) or plain(rows, *a, **k))
    torch.testing.assert_close(engine.last_hidden(prompts), whole, atol=1e-5, rtol=0)
    assert len(widths) > 1
    assert sum(widths) == len({prompt.key for prompt in prompts})


def test_tokens_are_drawn_by_their_probabilities_and_never_those_of_probability_0():
    probabilities = torch.zeros(1500)
    probabilities[[3, 511, 512, 1024, 1400]] = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.15])
    tokens = draw(probabilities.log().expand(1000, -1), (torch.arange(1000) + 0.5) / 1000)
    counts = torch.bincount(tokens, minlength=1500)
    assert {int(i): int(counts[i]) for i in counts.nonzero()} == {3: 100, 511: 200, 512: 300, 1024: 250, 1400: 150}
    assert draw(probabilities.log()[None], torch.tensor([0.99999994])).item() == 1400
    assert draw(probabilities.log()[None], torch.tensor([0.0])).item() == 3


def test_equal_replies_to_a_prompt_are_run_once(family, engine, prompts, monkeypatch):
    texts = ("target 3", "target 3", "target 3 current 7", "target 3", "target 3")
    replies = [family.encode_reply(text) for text in texts]
    batch = [prompts[0], prompts[0], prompts[0], prompts[5], prompts[1]]  # prompts 0 and 5 are one
    ids, mask = pad_rows([torch.tensor([*reply]) for reply in replies], family.pad_id)
    ids, mask = (torch.nn.functional.pad(x, (0, 1)) for x in (ids, mask))
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0, 1.5])
    parameters = [p for name, p in family.model.named_parameters() if "visual" not in name]

    def gradients():
        grads = [p.grad.clone() for p in parameters]
        family.model.zero_grad()
        return grads

    fed, feed = [], engine._feed
    monkeypatch.setattr(engine, "_feed", lambda starts, ids, past: fed.append(len(ids)) or feed(starts, ids, past))
    together, states = engine.score_states(batch, ids, mask)
    (together.sum(-1) * weights).sum().backward()
    assert fed == [3]
    expected = gradients()
    for row, prompt in enumerate(batch):
        alone, state = engine.score_states([prompt], ids[row : row + 1], mask[row : row + 1])
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=0)
        torch.testing.assert_close(state[0], states[row], atol=1e-5, rtol=0)
        (alone.sum() * weights[row]).backward()
    for one, other in zip(gradients(), expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def decode(engine, prompts, static, **options):
    engine.static = static
    return engine.sample(prompts, generator(3), **options)


RARE = [pytest.param(*each, marks=pytest.mark.exhaustive) for each in (("bfloat16", 1.0), ("float32", 0.5))]


@pytest.mark.on_device
@pytest.mark.parametrize(("dtype", "temperature"), [("float32", 1.0), ("float32", 0), *RARE])
def test_a_static_cache_gives_the_loops_replies_bit_for_bit(prompts, dtype, temperature):
    engine = Engine(load_family("tiny", device=DEVICE, dtype=dtype), max_new_tokens=12)
    engine.stop = torch.tensor([engine.family.pad_id], device=DEVICE)  # no row is left out: products have equal rows
    for batch in (prompts, [prompts[0]] * 8):
        loop, static = (decode(engine, batch, static, temperature=temperature) for static in (False, True))
        assert torch.equal(loop.ids, static.ids)
        assert torch.equal(loop.mask, static.mask)
        atol = 0.0 if DEVICE == "cpu" else 1e-4 if dtype == "float32" else 0.1  # cuBLAS picks kernels by shape
        torch.testing.assert_close(loop.logp, static.logp, atol=atol, rtol=0)


def test_where_the_loop_leaves_rows_out_a_static_cache_gives_the_same_replies(family, prompts):
    engine = often_ending(family)
    loop, static = (decode(engine, prompts * 4, static) for static in (False, True))
    for name in ("ids", "mask", "cut"):
        assert torch.equal(getattr(loop, name), getattr(static, name))
    torch.testing.assert_close(loop.logp, static.logp, atol=1e-5, rtol=0)


class Captured(TorchDispatchMode):
    REFUSED = ("_local_scalar_dense", "nonzero", "lift_fresh", "masked_select", "_unique2", "unique_dim")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ in self.REFUSED:
            raise RuntimeError(f"{func} while it is recorded")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("temperature", [0.5, 0])
def test_a_step_over_a_static_cache_waits_for_no_device(engine, prompts, monkeypatch, temperature):
    seen = []

    def record(step):
        def run():
            with Captured():
                step()
            seen.append(1)

        run()
        return run

    monkeypatch.setattr(engine, "record", record)
    shapes, product = set(), torch.baddbmm
    monkeypatch.setattr(torch, "baddbmm", lambda *args: shapes.add(tuple(x.shape for x in args)) or product(*args))
    decode(engine, prompts, True, temperature=temperature)
    assert len(seen) == 9
    assert len(shapes) == 1


def test_where_no_graph_can_be_recorded_decoding_goes_on(engine, prompts, monkeypatch, capsys):
    expected = decode(engine, prompts, False)

    def fail(graph, *, stream):
        raise RuntimeError("operation not permitted when stream is capturing\nand a trace")

    stream = SimpleNamespace(device="cuda", wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", fail)
    engine.stream = stream
    replies = decode(engine, prompts, True)
    assert engine.static is False
    for each in (replies, decode(engine, prompts, engine.static)):
        assert torch.equal(each.ids, expected.ids)
        assert torch.equal(each.logp, expected.logp)
    reason = "operation not permitted when stream is capturing"
    assert capsys.readouterr().out == f"no CUDA graph of a token ({reason}): decoding goes on without, slower\n"
