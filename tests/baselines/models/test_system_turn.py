"""The system message that a prompt brings along: in the model's one system turn, after the model's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from baselines.models.family import join_system
from baselines.models.load import load_family

RULES = {"role": "system", "content": [{"type": "text", "text": "Push the box."}]}
TURN = {
    "role": "user",
    "content": [{"type": "image", "image": np.zeros((28, 28, 3), np.uint8)}, {"type": "text", "text": "Which way?"}],
}


@pytest.mark.parametrize(
    ("own", "messages", "system", "rest"),
    [
        (None, [TURN], None, [TURN]),
        ("Be brief.", [TURN], "Be brief.", [TURN]),
        (None, [RULES, TURN], "Push the box.", [TURN]),
        ("Be brief.", [RULES, TURN], "Be brief.\n\nPush the box.", [TURN]),
    ],
)
def test_the_models_own_system_message_comes_first_and_there_is_one(
    own: str | None, messages: list[Any], system: str | None, rest: list[Any]
) -> None:
    assert join_system(own, messages) == (system, rest)


def test_the_tiny_model_reads_the_rules_in_its_system_turn() -> None:
    family = load_family("tiny")
    text = family.tokenizer.decode(family.encode([RULES, TURN]).ids)
    assert text.count("Push the box.") == 1
    assert text.count("system\n") == 1
    assert text.index("system\n") < text.index("Push the box.") < text.index("user\n")
    assert len(family.encode([TURN])) < len(family.encode([RULES, TURN])), "they are not taken for one prompt"
