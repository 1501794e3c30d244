"""spec -> environment, and the registration of every id with Gymnasium.

Gymnasium has no look-up hook, so ids are registered when `vlgym` is imported, all with the entry
point `construct`, which imports the environment's code. Known ids that are not installed are
registered, too: making one says what to install.
"""

import importlib
import re
from functools import partial
from typing import Any, cast

from gymnasium.envs.registration import WrapperSpec, register
from gymnasium.envs.registration import registry as gymnasium_registry
from gymnasium.wrappers import TimeLimit

from ..env import VLEnv
from ..env.arguments import check_argument_types, list_arguments
from ..env.spec import EnvSpec
from ..errors import PluginError, UserError, nearest
from ..parsers import get_parser
from .lookup import Registry, get_registry


def construct(vlgym_id: str, **kwargs: Any) -> VLEnv:
    """Build an environment: the entry point of all registrations with Gymnasium."""
    return build(get_registry().get(vlgym_id), **kwargs)


def build(spec: EnvSpec, **kwargs: Any) -> VLEnv:
    """Import a spec's entry point and construct it; `kwargs` override the spec's."""
    cls = load_class(spec)
    if isinstance(kwargs.get("parser"), str):
        get_parser(kwargs["parser"])
    check_argument_types(spec.id, cls, kwargs)

    # Python's own words on a wrong argument name the constructor, not the id.
    try:
        return cls(**{**spec.kwargs, **kwargs}, vlgym_spec=spec)
    except TypeError as error:
        if match := re.search(r"got multiple values for keyword argument '(\w+)'", str(error)):
            raise UserError(f"{spec.id} sets {match.group(1)!r} itself; leave it out.") from error
        if "unexpected keyword argument" not in str(error):
            raise
        wrong, names = str(error).split("'")[1], list_arguments(cls)
        words = f"{spec.id} has no argument {wrong!r}; it takes {', '.join(names)}.{nearest(wrong, names)}"
        raise UserError(words) from error


def load_class(spec: EnvSpec) -> type[VLEnv]:
    """Import the class of a spec, or raise `PluginError`; a `UserError` passes through."""
    module_name, _, class_name = spec.entry_point.partition(":")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except UserError:
        raise
    except Exception as error:
        raise PluginError(f"{spec.id}: cannot import {spec.entry_point}: {type(error).__name__}: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, VLEnv)):
        raise PluginError(f"{spec.id}: {spec.entry_point} is not a subclass of vlgym.env.VLEnv.")
    return cls


def make(env_id: str, **kwargs: Any) -> VLEnv:
    """Build an environment without Gymnasium's wrappers: `gymnasium.make(...).unwrapped`.

    >>> env = make("vlgym/NumberLine-v1")
    >>> observation, info = env.reset(seed=1)
    >>> observation["image"].shape, env.legal_actions()
    ((300, 300, 3), ['-', '+'])
    >>> env.step("I do not know.")[-1]["vlgym"]["parse"]
    'no_action'
    """
    return construct(env_id, **kwargs)


def register_all(registry: Registry) -> None:
    """Register `remote` and every id, installed or known, with Gymnasium; twice changes nothing."""
    last = WrapperSpec("refuse_time_limit", "vlgym.registry.making:refuse_time_limit", {})
    add = partial(register, additional_wrappers=(last,))
    if "remote" not in gymnasium_registry:
        add(id="remote", entry_point="vlgym.env_groups.served:ServedEnv")
    for env_id in sorted({*registry.specs, *registry.known, *registry.clashes, *registry.refused}):
        if env_id not in gymnasium_registry:
            add(id=env_id, entry_point="vlgym.registry.making:construct", kwargs={"vlgym_id": env_id})


def refuse_time_limit(env: Any) -> Any:
    """Return what `gymnasium.make` has built; a limit that the texts do not tell is refused."""
    if isinstance(env, TimeLimit):
        env.close()
        limit = env._max_episode_steps
        raise UserError(f"max_episode_steps={limit} is not told by the texts; give max_turns={limit} instead.")
    return env


def unwrap(env: Any) -> VLEnv:
    """Return the `VLEnv` under any wrappers, or its stand-in: a seat, a worker's."""
    inner = env.unwrapped
    if not hasattr(inner, "vlgym_spec"):
        raise UserError(
            f"{type(inner).__name__} is not a VLEnv; vlgym.env.adapter.GymAdapter turns a Gymnasium environment "
            "into one."
        )
    return cast(VLEnv, inner)
