"""The prompt of a game: an opening sentence, then the rules, the reply's format, the state and the legal actions."""

from __future__ import annotations

from vlgym.env.prompts import PromptTemplate


def game_prompt(opening: str, version: int = 1) -> PromptTemplate:
    """Return the template that begins with a sentence."""
    return PromptTemplate(version, instructions=opening + " {task}\n{format}", turn="{state}Legal actions: {actions}")
