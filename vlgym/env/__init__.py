"""The contract that an author writes against: game, card, prompts, spaces, states, options.

It knows of no plugin, no policy and no record.
"""

from .base import VLEnv
from .prompts import PromptTemplate
from .spec import EnvSpec

__all__ = ["EnvSpec", "PromptTemplate", "VLEnv"]
