"""Pictures and messages for the learner tests, and their device."""

import copy
import os

import numpy as np
from PIL import Image

from vlgym.parsers import TagParser

DEVICE = os.environ.get("VLGYM_TEST_DEVICE", "cpu")  # where tests marked `on_device` put their tensors
INSTRUCTIONS = (
    "You see a picture. Reach the target, then end your reply with <action>ACTION</action>.\n\nLegal actions: "
)


def picture(seed: int, size: tuple[int, int] = (60, 110)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def messages(image: np.ndarray, text: str) -> list[dict]:
    return [{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": text}]}]


def say(text: str, role: str = "user") -> dict:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def ask_library(processor, chat: list[dict], **options) -> dict:
    """A prompt as the library's processor lays it out."""
    chat = copy.deepcopy(chat)
    for part in (part for message in chat for part in message["content"] if part["type"] == "image"):
        part["image"] = Image.fromarray(part["image"])
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, **options}
    return processor.apply_chat_template([chat], return_tensors="pt", **options)


class Marks(TagParser):
    """Has what it asked for as soon as the text holds one of the marks."""

    matching = False

    def __init__(self, marks: str) -> None:
        self.marks = marks

    def end(self, text: str) -> int | None:
        return next((at + 1 for at, character in enumerate(text) if character in self.marks), None)


SIZE = (61, 107)
ANSWER = say("I go on.\n<action>+</action>", "assistant")
CHATS = [
    messages(picture(1, SIZE), "Which way?\n\nLegal actions: +, -"),
    [*messages(picture(2, SIZE), "A line\n"), ANSWER, *messages(picture(3, SIZE[::-1]), "And now?")],
    [say("No picture at all. Say 7.")],
]
"""One picture; two of different sizes; none."""
