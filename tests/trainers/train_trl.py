"""TRL's GRPOTrainer trains the tiny model, offline, on a canary.

    .venv-servers/bin/python tests/trainers/train_trl.py --seed 0

First the model imitates an oracle, half of whose actions are random. The rest is TRL's. It prints the
reward of each step and the means of the first and the last tenth.
"""

# ruff: noqa: E402
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
TESTS = Path(__file__).resolve().parent.parent
sys.path.extend([str(TESTS / "servers"), str(TESTS / "baselines")])
from torchvision_here import make_importable

make_importable()  # before transformers looks for torchvision

import gymnasium
import numpy as np
import torch
import trl
from datasets import Dataset
from publish import publish
from transformers import AutoProcessor, Qwen2VLForConditionalGeneration, set_seed

from baselines.models.tiny import build_tiny
from vlgym.integrations.trl import ActionParser, log_episodes, make_factory, make_rows
from vlgym.integrations.turn_rows import make_row

ENV, ARGUMENTS = "vlgym/CanaryColour-v0", {"image_size": (56, 56)}
EPISODES, BATCH, IMITATED = 768, 32, 60
STEPS, GROUP, ROLLOUTS = 20, 8, 64
CALL = ('<tool_call>\n{"name": "act", "arguments": {"reply": "', '"}}\n</tool_call>')


def make_model(folder: Path, seed: int, game: Any) -> tuple[Any, Any]:
    """The tiny model with TRL's chat template for Qwen3-VL, and its processor.

    Its tokenizer knows English words; phrases that each episode repeats get a token each.
    """
    model, tokenizer = build_tiny(seed=seed)
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3_vl.jinja").read_text()
    rules = game.reset(seed=0)[1]["text"]
    tools = tokenizer.apply_chat_template(
        [{"role": "user", "content": ""}], tools=[game.act], chat_template=template, tokenize=False
    )
    phrases = [tools.partition("<|im_end|>")[0].removeprefix("<|im_start|>"), rules, *CALL]
    tokenizer.add_tokens([*phrases, "\n<tool_response>\n", "\n</tool_response>"])
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    for part in (model, tokenizer):
        part.save_pretrained(folder / "raw")
    published = publish(folder / "raw", folder / "model", "qwen2_vl")
    (published / "chat_template.jinja").write_text(template)
    return Qwen2VLForConditionalGeneration.from_pretrained(published), AutoProcessor.from_pretrained(published)


def play_oracle(row: dict[str, Any], game: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """One episode as TRL would write it; half of the actions are random."""
    messages = [{"role": "user", "content": game.reset(**row)}]
    while not game.over:
        env = game._env
        action = str(rng.choice(env.legal_actions())) if rng.random() < 0.5 else env.solve()
        call = {"type": "function", "function": {"name": "act", "arguments": {"reply": action}}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "name": "act", "content": game.act(action)})
    return [*messages, {"role": "assistant", "content": "Done"}]


def imitate(model: Any, processor: Any, episodes: list[Any], tool: Any, seed: int) -> None:
    """Supervised steps on the assistant's tokens of whole episodes."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.0)
    order = np.random.default_rng([seed, 2])
    begin = processor.tokenizer.encode("<|im_start|>assistant\n")
    end = processor.tokenizer.convert_tokens_to_ids("<|im_end|>")
    for step in range(1, IMITATED + 1):
        chosen = [episodes[index] for index in order.integers(len(episodes), size=BATCH)]
        batch = processor.apply_chat_template(
            chosen, tools=[tool], tokenize=True, return_dict=True, return_tensors="pt",
            processor_kwargs={"padding": True},
        )  # fmt: skip
        labels = torch.full_like(batch["input_ids"], -100)
        for row, ids in enumerate(batch["input_ids"].tolist()):
            for at in range(len(ids)):
                if ids[at : at + len(begin)] == begin:
                    stop = ids.index(end, at) + 1
                    labels[row, at + len(begin) : stop] = batch["input_ids"][row, at + len(begin) : stop]
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, step / 30)
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"imitation step {step}: loss {loss.item():.3f}", flush=True)


class Replay:
    """A reward function without a reward: it compares every turn with Gymnasium's environment."""

    __name__ = "replay"

    def __init__(self) -> None:
        self.turns = 0

    def __call__(self, *, environments: list[Any], seed: list[int], **_: Any) -> list[None]:
        env = gymnasium.make(ENV, parser=ActionParser(), disable_env_checker=True, **ARGUMENTS)
        for game, number in zip(environments, seed, strict=True):
            assert game.seed == number
            env.reset(seed=number)
            for reply, row in zip(game.replies, game.turns, strict=True):
                _, reward, _, _, info = env.step(reply)
                assert row == make_row(reward, info)
                self.turns += 1
            assert game.get_reward() == sum(row["reward"] for row in game.turns)
        return [None] * len(environments)


def train(seed: int, folder: Path) -> list[float]:
    """Rewards of TRL's steps."""
    set_seed(seed)
    factory, rng = make_factory(ENV, **ARGUMENTS), np.random.default_rng([seed, 1])
    game = factory()
    model, processor = make_model(folder, seed, game)
    rows = make_rows(ENV, EPISODES, first=100_000)
    imitate(model, processor, [play_oracle(row, game, rng) for row in rows], game.act, seed)
    names = ("image", "video", "vision_start", "vision_end")
    pictures = [getattr(model.config, f"{name}_token_id") for name in names]
    replay = Replay()
    trainer = trl.GRPOTrainer(
        model,
        args=trl.GRPOConfig(
            str(folder / "out"), max_steps=STEPS, per_device_train_batch_size=ROLLOUTS, num_generations=GROUP,
            max_completion_length=256, max_tool_calling_iterations=1, learning_rate=3e-4,
            lr_scheduler_type="constant", seed=seed, use_cpu=True, bf16=False, report_to=[], save_strategy="no",
            logging_steps=1, disable_tqdm=True, gradient_checkpointing=False,
            generation_kwargs={"suppress_tokens": pictures},
        ),
        train_dataset=Dataset.from_list(make_rows(ENV, STEPS * ROLLOUTS // GROUP, first=seed * 10_000)),
        processing_class=processor,
        environment_factory=factory, reward_funcs=[log_episodes, replay],
    )  # fmt: skip
    trainer.train()
    assert replay.turns > STEPS * ROLLOUTS / 2
    log = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert all({"success", "invalid_turns"} <= entry.keys() for entry in log)
    print(f"{replay.turns} turns of TRL's environments, all as Gymnasium's")
    return [entry["reward"] for entry in log]


def main() -> None:
    """Train, and print the curve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    with tempfile.TemporaryDirectory() as folder:
        rewards = train(seed, Path(folder))
    tenth = len(rewards) // 10
    first, last = np.mean(rewards[:tenth]), np.mean(rewards[-tenth:])
    print("reward of each step:", *(f"{reward:.2f}" for reward in rewards))
    print(f"TRL {trl.__version__}, {ENV}, seed {seed}, {STEPS} steps of {ROLLOUTS} episodes:", end=" ")
    print(f"reward {first:.2f} in the first tenth, {last:.2f} in the last, {time.process_time():.0f} s of CPU time")
    sys.exit(not last > first + 0.2)


if __name__ == "__main__":
    main()
