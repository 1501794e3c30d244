"""On a GPU prompts are right-padded and need no mask: seen on the pretend accelerator, numbers as on the CPU."""

from __future__ import annotations

import torch
from pretend import accelerator
from samples import INSTRUCTIONS, messages, picture

from baselines.engine.engine import Engine
from baselines.models.load import load_family

LONG_TEXT = INSTRUCTIONS + "turn left, turn right, move forward, " * 12


def ask(family) -> list:
    """Prompts of different lengths with a common beginning, longer than `decoder.LONG`; with pictures and without."""
    answer = {"role": "assistant", "content": [{"type": "text", "text": "<action>+</action>"}]}

    def words(text: str) -> list[dict]:
        return [{"role": "user", "content": [{"type": "text", "text": LONG_TEXT + text}]}]

    chats = [
        messages(picture(1), LONG_TEXT + "+, -"),
        messages(picture(2), LONG_TEXT + "turn left"),
        [*messages(picture(3), LONG_TEXT), answer, *messages(picture(4, (90, 40)), "And now?")],
        words("hit, stand"),
    ]
    return [family.encode(chat) for chat in chats]


def run(source: str, device: str, monkeypatch) -> tuple[list, torch.Tensor, torch.Tensor, list[dict]]:
    """Prompts' keys, values and states; log-probabilities with gradients on; torch's attention calls of the prefill."""
    family = load_family(source, device=device)
    engine, prompts = Engine(family, max_new_tokens=6), ask(family)
    engine.features([image for prompt in prompts for image in prompt.images], train=False)
    calls, real = [], torch.nn.functional.scaled_dot_product_attention

    def note(q, k, v, attn_mask=None, is_causal=False, **kwargs):
        calls.append({"mask": attn_mask, "causal": is_causal, "tokens": q.shape[0] * q.shape[2]})
        return real(q, k, v, attn_mask=attn_mask, is_causal=is_causal, **kwargs)

    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", note)
        entries = [tuple(x.cpu() for x in entry) for entry in engine.prefill_cached(prompts)]
    ids = torch.tensor([family.encode_reply("target 3 current 1")] * len(prompts), device=family.device)
    scores = engine.score(prompts, ids, torch.ones_like(ids, dtype=torch.bool))
    scores.sum().backward()
    gradient = family.language_model.layers[0].self_attn.k_proj.weight.grad
    return entries, scores.detach().cpu(), gradient.cpu(), calls


def test_prefill_on_cuda_passes_no_mask_and_gives_the_numbers_of_the_cpu(monkeypatch):
    expected = run("tiny", "cpu", monkeypatch)
    with accelerator():
        found = run("tiny", "cuda", monkeypatch)
    for one, two in zip(found[0], expected[0], strict=True):
        for x, y in zip(one, two, strict=True):
            torch.testing.assert_close(x, y, atol=3e-5, rtol=1e-4)
    torch.testing.assert_close(found[1], expected[1], atol=3e-5, rtol=0)
    torch.testing.assert_close(found[2], expected[2], atol=3e-4, rtol=2e-3)
    calls = found[3]
    assert all(call["mask"] is None and call["causal"] for call in calls)
    asked = sum(entry[0].shape[2] for entry in found[0])
    assert sum(call["tokens"] for call in calls) >= 4 * asked  # all tokens of all prompts went through all layers
