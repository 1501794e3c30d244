"""Asks a server on loopback by the policy `openai:m`."""

from contextlib import AbstractContextManager, closing
from typing import Any

import numpy as np
from fault_server import Fault, FaultServer

from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.types import Reply, Turn


def draw(size: tuple[int, int] = (8, 8), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def make_turn(text: str = "Legal actions: left, right", image: np.ndarray | None = None, **place: Any) -> Turn:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if image is not None:
        content.insert(0, {"type": "image", "image": image})
    return Turn([{"role": "user", "content": content}], None, **place)


TURN = make_turn()


def make_turns(count: int) -> list[Turn]:
    return [make_turn(f"{i}.\nLegal actions: left, right, up", draw(seed=i)) for i in range(count)]


def open_policy(url: str | None, **options: Any) -> AbstractContextManager[OpenAIPolicy]:
    return closing(OpenAIPolicy("m", base_url=url, **options))


def ask(url: str | None, *turns: Turn, **options: Any) -> list[Reply]:
    with open_policy(url, **options) as policy:
        return policy.reply(turns or [TURN])


def ask_once(url: str, turn: Turn = TURN, **options: Any) -> Reply:
    """Ask without another attempt."""
    return ask(url, turn, **{"max_retries": 0, **options})[0]


def always(fault: str | Fault, **options: Any) -> FaultServer:
    """A server whose every answer has this fault."""
    fault = fault if isinstance(fault, Fault) else Fault(fault)
    return FaultServer(lambda request: fault, **options)


def refuse(message: Any, status: int = 400, **more: Any) -> Fault:
    return Fault(str(status), body={"error": {"message": message, **more}})
