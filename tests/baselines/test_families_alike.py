"""What must hold for every model family, on its tiny offline model, loaded from a folder as a published one is."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from devices import DEVICE
from samples import INSTRUCTIONS, messages, picture

from baselines.engine.batching import common_prefix
from baselines.engine.engine import Engine
from baselines.learning.value import ValueHead
from baselines.models.gemma import Gemma3
from baselines.models.load import FAMILIES, load_family
from vlgym.errors import UserError


@pytest.fixture(params=list(FAMILIES))
def family(request, model_folder):
    return load_family(str(model_folder(request.param)), image_tokens=6, device=DEVICE)


@pytest.fixture
def prompts(family):
    """A long common beginning; one picture, the same again, another, two in a conversation, none."""

    def ask(seed: int, end: str) -> list[dict]:
        content = [{"type": "text", "text": INSTRUCTIONS}, *messages(picture(seed), end)[0]["content"]]
        return [{"role": "user", "content": content}]

    answer = {"role": "assistant", "content": [{"type": "text", "text": "<action>+</action>"}]}
    text = {"role": "user", "content": [{"type": "text", "text": INSTRUCTIONS + "hit, stand"}]}
    chats = [
        ask(1, "+, -"),
        ask(1, "+, -"),
        ask(2, "turn left, turn right, move forward"),
        [*ask(3, "+, -"), answer, *messages(picture(4, (90, 40)), "And now?")],
        [text],
    ]
    return [family.encode(chat) for chat in chats]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stored(family, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same reply `n` times."""
    ids = torch.tensor([family.encode_reply("target 3 current 1")] * n, device=DEVICE)
    return ids, torch.ones_like(ids, dtype=torch.bool)


def library_log_probs(family, prompt, ids) -> torch.Tensor:
    """Log-probabilities of a reply by the library's model from pixels and ids: its positions, masks and vision."""
    full = torch.cat([prompt.ids.to(DEVICE), ids])[None]
    types = torch.zeros_like(full, dtype=torch.int32)
    types[0, prompt.image_slots] = 1
    inputs = {"input_ids": full}
    if isinstance(family, Gemma3):
        inputs["token_type_ids"] = types
        if prompt.images:
            inputs["pixel_values"] = torch.stack([family.normalise(image) for image in prompt.images])
    elif prompt.images:
        inputs["mm_token_type_ids"] = types
        inputs["pixel_values"] = torch.cat([family.patchify(image) for image in prompt.images])
        inputs["image_grid_thw"] = torch.tensor([image.grid for image in prompt.images], device=DEVICE)
    family.model.model.rope_deltas = None  # the library remembers those of its last call
    with torch.no_grad():
        logits = family.model(**inputs).logits[0, len(prompt) - 1 : -1].float()
    logits[:, list(family.suppressed)] = float("-inf")
    return torch.log_softmax(logits, -1).gather(-1, ids[:, None])[:, 0]


def close(actual, expected, atol: float = 3e-5 if DEVICE == "cpu" else 3e-4) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


@pytest.mark.on_device
def test_sampled_log_probs_equal_the_librarys_teacher_forcing(family, prompts):
    assert common_prefix(prompts) >= 20
    out = Engine(family, max_new_tokens=24).sample(prompts, generator())
    for i, prompt in enumerate(prompts):
        n = int(out.mask[i].sum())
        close(out.logp[i, :n], library_log_probs(family, prompt, out.ids[i, :n]))


@pytest.mark.on_device
@torch.no_grad()
def test_left_and_right_padded_scoring_both_equal_the_sampled_log_probs(family, prompts):
    engine = Engine(family, max_new_tokens=24)
    out = engine.sample(prompts, generator())
    close(engine.score(prompts, out.ids, out.mask), out.logp)
    close(engine.score_flat(prompts, out.ids, out.mask), out.logp)


@pytest.mark.on_device
def test_left_and_right_padded_scoring_have_the_same_gradients(family, prompts):
    engine = Engine(family, max_new_tokens=8)
    ids, mask = stored(family, len(prompts))
    gradients = []
    for score in (engine.score, engine.score_flat):
        family.model.zero_grad()
        (
            score(prompts, ids, mask, train_vision=True) * torch.linspace(-1, 1, ids.shape[1], device=DEVICE)
        ).sum().backward()
        gradients.append({n: p.grad for n, p in family.model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=3e-4, rtol=2e-3, msg=name)


@pytest.mark.parametrize("scorer", ["score", "score_flat"])
def test_recomputed_activations_give_the_same_gradients_and_keep_less(family, prompts, scorer):
    engine = Engine(family, max_new_tokens=8)
    ids, mask = stored(family, len(prompts))

    def measure() -> tuple[dict[str, torch.Tensor], int]:
        kept = {}

        def note(x: torch.Tensor) -> torch.Tensor:
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        family.model.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            loss = getattr(engine, scorer)(prompts, ids, mask).sum()
        loss.backward()
        weights = {p.untyped_storage().data_ptr() for p in family.model.parameters()}
        held = sum(size for at, size in kept.items() if at not in weights)
        return {n: p.grad.clone() for n, p in family.model.named_parameters() if p.grad is not None}, held

    (plain, much), _ = measure(), family.recompute_activations()
    again, little = measure()
    assert plain.keys() == again.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(again[name], gradient, atol=1e-6, rtol=1e-5, msg=name)
    assert little < 0.6 * much


@pytest.mark.on_device
@torch.no_grad()
def test_permuting_the_pictures_changes_the_log_probs(family):
    engine = Engine(family, max_new_tokens=8)
    one, two = (family.encode(messages(picture(s), INSTRUCTIONS + "+, -")) for s in (1, 2))
    ids, mask = stored(family, 2)
    straight, crossed = engine.score([one, two], ids, mask), engine.score([two, one], ids, mask)
    assert (straight - crossed).abs().max() > 1e-3
    close(straight, crossed.flip(0))


def test_cached_vision_features_give_exactly_the_log_probs_of_live_ones(family, prompts):
    engine = Engine(family, max_new_tokens=8)
    ids, mask = stored(family, len(prompts))
    cached, again = (engine.score(prompts, ids, mask) for _ in range(2))
    live = engine.score(prompts, ids, mask, train_vision=True)
    assert torch.equal(cached, live)
    assert torch.equal(again, live)
    cached.sum().backward()
    assert all(p.grad is None for p in family.vision_parameters())
    live.sum().backward()
    for p in family.vision_parameters():  # patches, positions, deep features and projector alike
        assert p.grad is not None
        assert p.dim() == 1 or p.grad.abs().sum() > 0


@pytest.mark.on_device
def test_every_special_token_but_the_stops_is_suppressed_and_never_sampled(family, prompts):
    tokens = family.tokenizer.added_tokens_decoder
    special = {i for i, token in tokens.items() if token.special}
    assert special - set(family.suppressed) == set(family.stop_ids)
    assert {family.image_pad, family.pad_id} <= set(family.suppressed)
    with torch.no_grad():
        family.model.lm_head.weight[list(family.suppressed)] *= 500.0
    engine = Engine(family, max_new_tokens=12)
    with torch.no_grad():  # the model wants nothing else
        logits = family.logits(engine.sample(prompts, generator()).hidden)
        assert torch.isin(logits.argmax(-1), torch.tensor(family.suppressed, device=DEVICE)).all()
    for seed in range(3):
        out = engine.sample(prompts, generator(seed))
        assert not torch.isin(out.ids[out.mask], torch.tensor(family.suppressed, device=DEVICE)).any()
        assert torch.isfinite(out.logp).all()


def test_the_value_ignores_padding_and_reply_and_sends_the_model_no_gradient(family, prompts):
    engine = Engine(family, max_new_tokens=8)
    head = ValueHead(family.language_model.config.hidden_size)
    torch.nn.init.normal_(head.outer.weight)
    together = head(engine.last_hidden(prompts))
    assert torch.equal(together, head(engine.sample(prompts, generator()).hidden))
    for i, prompt in enumerate(prompts):
        engine.forget()
        close(head(engine.last_hidden([prompt]))[0], together[i])
    hidden = engine.score_states(prompts, *stored(family, len(prompts)), train_vision=True)[1]
    assert hidden.requires_grad
    head(hidden).sum().backward()
    assert all(p.grad is None for p in family.model.parameters())
    assert head.inner.weight.grad.abs().sum() > 0


@pytest.mark.on_device
@torch.no_grad()
def test_bfloat16_weights_give_float32_log_probs_on_which_sampling_and_scoring_agree(family, prompts, model_folder):
    coarse = load_family(
        str(model_folder(family.model.config.model_type)), image_tokens=6, dtype="bfloat16", device=DEVICE
    )
    assert {p.dtype for p in coarse.model.parameters()} == {torch.bfloat16}
    engine = Engine(coarse, max_new_tokens=8)
    out = engine.sample(prompts, generator())
    fine = Engine(family, max_new_tokens=8).score(prompts, out.ids, out.mask)
    for logp in (out.logp, engine.score(prompts, out.ids, out.mask), engine.score_flat(prompts, out.ids, out.mask)):
        assert logp.dtype == torch.float32
        assert (logp - fine)[out.mask].abs().mean() < 0.1
    logits = coarse.logits(coarse.language_model.embed_tokens.weight[:50])
    assert (logits != logits.bfloat16().float()).float().mean() > 0.9  # not rounded


def test_bfloat16_products_are_summed_in_float32_and_have_the_usual_gradients(model_folder):
    family = load_family(str(model_folder("qwen2_vl")), dtype="bfloat16")
    weight = family.model.lm_head.weight
    hidden = torch.randn(2, 3, weight.shape[1], generator=generator()).bfloat16().requires_grad_()
    assert torch.equal(family.logits(hidden), F.linear(hidden.float(), weight.float()))
    gradients = []
    for logits in (family.logits(hidden), F.linear(hidden, weight)):
        logits.float()[..., :7].sum().backward()
        gradients.append((hidden.grad, weight.grad))
        hidden.grad = weight.grad = None
    for a, b in zip(*gradients, strict=True):
        assert a.dtype == torch.bfloat16
        torch.testing.assert_close(a, b)


def test_the_frozen_copy_keeps_its_weights_and_may_share_the_vision_tower(family, prompts):
    ids, mask = stored(family, len(prompts))
    engine = Engine(family, max_new_tokens=8)
    shared, own = family.frozen_copy(), family.frozen_copy(share_vision=False)
    towers = [[p.data_ptr() for p in f.vision_parameters()] for f in (family, shared, own)]
    assert towers[0] == towers[1]
    assert not set(towers[0]) & set(towers[2])
    assert all(p.requires_grad for p in family.model.parameters())
    frozen = Engine(shared, max_new_tokens=8, vision_of=engine)
    before = frozen.score(prompts, ids, mask)
    assert not before.requires_grad
    close(before, engine.score(prompts, ids, mask).detach())
    with torch.no_grad():
        for p in family.language_model.parameters():
            p.mul_(1.1)
    assert torch.equal(frozen.score(prompts, ids, mask), before)
    assert (engine.score(prompts, ids, mask).detach() - before).abs().max() > 1e-3


SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
CHAT_ML = (
    "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Now?<|im_end|>\n<|im_start|>assistant\n+<|im_end|>\n"
    "<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n"
)
LAYOUTS = {
    "qwen2_vl": CHAT_ML.replace(  # the tiny default: no system message, text first
        "<|vision_start|><|image_pad|><|vision_end|>Now?", "Now?<|vision_start|><|image_pad|><|vision_end|>"
    ),
    "qwen2_5_vl": SYSTEM + CHAT_ML,
    "qwen3_vl": CHAT_ML,
    "gemma3": (
        "<bos><start_of_turn>user\n\n\n<start_of_image>" + "<image_soft_token>" * 4 + "<end_of_image>\n\nNow?"
        "<end_of_turn>\n<start_of_turn>model\n+<end_of_turn>\n<start_of_turn>user\nAnd now?<end_of_turn>\n"
        "<start_of_turn>model\n"
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_prompts_have_the_layout_of_the_published_chat_template(name, model_folder):
    family = load_family(str(model_folder(name)), image_tokens=None if name == "gemma3" else 1)
    chat = [
        *messages(picture(1, (28, 28)), "Now?"),
        {"role": "assistant", "content": [{"type": "text", "text": "+"}]},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
    ]
    assert family.tokenizer.decode(family.encode(chat).ids) == LAYOUTS[name]


def test_positions_equal_the_librarys(family, prompts):
    for prompt in prompts:
        if isinstance(family, Gemma3):
            assert prompt.positions.tolist() == [list(range(len(prompt)))] * 3
            assert prompt.next_position == len(prompt)
        elif prompt.images:
            types = torch.zeros(1, len(prompt), dtype=torch.int32)
            types[0, prompt.image_slots] = 1
            grid = torch.tensor([image.grid for image in prompt.images])
            expected, delta = family.model.model.get_rope_index(prompt.ids[None], types, image_grid_thw=grid)
            assert torch.equal(prompt.positions, expected[:, 0])
            assert prompt.next_position == len(prompt) + int(delta)


def test_pixels_are_normalised_as_the_models_own_processor_says(model_folder, tmp_path):
    import json
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(model_folder("gemma3"), folder)
    numbers = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.25, 0.125]}
    (folder / "preprocessor_config.json").write_text(json.dumps(numbers))
    family = load_family(str(folder))
    white = family.prepare_image(picture(0, (56, 56)) * 0 + 255)
    assert family.normalise(white)[:, 0, 0].tolist() == pytest.approx([1.8, 3.2, 5.6])


def test_gemma_stops_at_the_end_of_the_turn_and_of_the_text_and_stores_the_first(model_folder):
    family = load_family(str(model_folder("gemma3")))
    assert family.tokenizer.convert_ids_to_tokens(list(family.stop_ids)) == ["<end_of_turn>", "<eos>"]
    assert family.encode_reply("+")[-1] == family.stop_ids[0]


def test_gemma_layers_see_as_far_back_as_their_kind_does(model_folder):
    decoder = load_family(str(model_folder("gemma3"))).decoder
    assert decoder.windows == [16, None, 16]
    local, other = (decoder.rotary(torch.arange(40).expand(3, 1, -1)).angles[kind][0] for kind in decoder.kinds[:2])
    assert not torch.equal(local, other)


def test_what_a_gemma_model_cannot_do_is_refused(model_folder, tmp_path):
    from baselines.models.tiny import SMALLEST, build_tiny

    with pytest.raises(UserError, match="always reads an image as 4 tokens"):
        load_family(str(model_folder("gemma3")), image_tokens=3)
    model, tokenizer = build_tiny(SMALLEST, family="gemma3")
    model.config.text_config.final_logit_softcapping = 30.0
    with pytest.raises(UserError, match="final_logit_softcapping"):
        Gemma3(model, tokenizer)
