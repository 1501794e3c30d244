"""The contract that an author writes against: base class, game, card, prompts, spaces, states,
options and pictures.

It knows of no plugin, no policy and no record.
"""

from .base import VLEnv
from .prompts import PromptTemplate
from .spec import EnvSpec

__all__ = ["EnvSpec", "PromptTemplate", "VLEnv"]
