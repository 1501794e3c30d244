"""vlgym, the RL4VLM Gym: Gymnasium environments that a vision-language model sees and answers.

`import vlgym` registers every installed environment, without its code, with Gymnasium:
`gymnasium.make("vlgym/NumberLine-v0")`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .env import VLEnv
from .env.prompts import PromptTemplate
from .env.seeding import episode_seed
from .env.spec import EnvSpec
from .errors import UserError, VlgymError
from .registry import get_registry
from .registry.hookspecs import hookimpl
from .registry.making import make, register_all
from .types import Outcome

if TYPE_CHECKING:
    from .games.multi import MultiVLEnv, Round
    from .games.several import aec_env, open_table, parallel_env

__version__ = "0.1.0"
__all__ = [
    "EnvSpec", "MultiVLEnv", "Outcome", "PromptTemplate", "Round", "UserError", "VLEnv", "VlgymError", "aec_env",
    "episode_seed", "get_registry", "hookimpl", "make", "open_table", "parallel_env",
]  # fmt: skip

register_all(get_registry())


def __getattr__(name: str) -> Any:
    """Games of several agents are loaded when they are asked for."""
    if name not in __all__:
        raise AttributeError(name)
    place = "multi" if name in ("MultiVLEnv", "Round") else "several"
    return getattr(import_module(f".games.{place}", __name__), name)
