"""vlgym, the RL4VLM Gym: Gymnasium environments that a vision-language model sees and answers in free text.

`import vlgym` registers every installed environment with Gymnasium: `gymnasium.make("vlgym/NumberLine-v0")`. It loads
the plugins' specs, and no environment code.
"""

from .env import VLEnv
from .errors import UserError, VlgymError
from .hookspecs import hookimpl
from .making import make, register_all
from .prompts import PromptTemplate
from .registry import get_registry
from .seeding import episode_seed
from .spec import EnvSpec
from .types import Outcome

__version__ = "0.1.0"
__all__ = [
    "EnvSpec",
    "Outcome",
    "PromptTemplate",
    "UserError",
    "VLEnv",
    "VlgymError",
    "episode_seed",
    "get_registry",
    "hookimpl",
    "make",
]

register_all(get_registry())
