"""Prompts of an evaluation: system message, style and examples, and an estimate of their cost."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from ..env.prompts import PastTurn, PromptBuilder
from ..env.seeding import episode_seed
from ..errors import UserError
from ..registry import get_registry
from ..types import Message
from .plan import Part

LETTERS, PATCH = 4, 28  # of a token in an estimate: letters, and pixels of a picture's side
MOST_EXAMPLE_TURNS = 10
Builders = dict[str, PromptBuilder]  # prompt layout of each part, by its key


def lay_out_parts(
    parts: Sequence[Part], layout: PromptBuilder | None, *, system: str = "", style: str = "", few_shot: int = 0
) -> Builders:
    """Return the layout of each part; empty where every environment's own is meant."""
    if layout is None and not (system or style or few_shot):
        return {}
    builders: Builders = {}
    examples: dict[str, tuple[PastTurn, ...]] = {}
    for part in parts:
        own = layout or PromptBuilder.for_spec(get_registry().get(part.env_id))
        name = f"{part.env_id} {part.planner}"
        if few_shot and name not in examples:
            examples[name] = tuple(play_examples(part, few_shot))
        builders[part.key] = replace(own, system=system, style=style, examples=examples.get(name, ()))
    return builders


def play_examples(part: Part, count: int) -> list[PastTurn]:
    """Return the first turns of the oracle's episodes with the first seeds of the train split."""
    if part.split == "train":
        raise UserError("--few-shot shows episodes of the train split; play val or test.")
    turns = []
    with closing(part.make()) as env:
        for number in range(count):
            observation, info = env.reset(seed=episode_seed(part.env_id, "train", number))
            for _ in range(MOST_EXAMPLE_TURNS):
                if (reply := env.solve()) is None:
                    raise UserError(f"{part.env_id} has no oracle that shows examples; leave out --few-shot.")
                turns.append(PastTurn(observation["image"], info["vlgym"]["turn_text"], reply))
                observation, _, terminated, truncated, info = env.step(reply)
                if terminated or truncated:
                    break
    return turns


@dataclass(frozen=True)
class Estimate:
    """Upper bound of a part's requests and tokens.

    Attributes:
        requests: if every episode has its most turns.
        tokens: of one prompt with a full history.
        first: messages of the first episode's first turn.
    """

    part: str
    requests: int
    tokens: int
    first: list[Message]


def estimate(part: Part, builder: PromptBuilder | None = None) -> Estimate:
    """Return an estimate of a part, from the first prompt of its first episode."""
    with closing(part.make()) as env:
        layout = PromptBuilder.for_env(env, builder)
        env.action_space.seed(0)
        observation, info = env.reset(seed=episode_seed(part.env_id, part.split, 0))
        details, image = info["vlgym"], observation["image"]
        words = details["instructions"], details["turn_text"], image
        turn = PastTurn(image, details["turn_text"], env.action_space.sample())
        past = [turn] * min(layout.history_turns, env.max_turns)
        first, full = (layout.build(*words, history, system=env.system_text) for history in ([], past))
        requests = part.total * (1 if part.planner == "global" else env.max_turns)

    # Every turn is counted with a full history, so this is an upper bound.
    content = [piece for message in full for piece in message["content"]]
    pixels = sum(piece["image"][..., 0].size for piece in content if piece["type"] == "image")
    letters = sum(len(piece["text"]) for piece in content if piece["type"] == "text")
    return Estimate(part.key, requests, round(letters / LETTERS + pixels / PATCH**2), first)
