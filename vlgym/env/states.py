"""Seal of a saved state: its environment, arguments and digest; and copies, which rest on states.

The environment decides what else a state holds.
"""

import copy
import hashlib
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UserError

FORMAT = 1  # version of the form in which states are saved
CONTENT = ("start", "events", "saved", "rng", "counters")
ANY_VALUE = ("render_mode",)  # arguments that do not matter to a state

# Of `pickle` and multiprocessing. Cloudpickle asks for the highest one, and pickles more objects.
PICKLE_PROTOCOL = pickle.DEFAULT_PROTOCOL


def seal_state(content: Mapping[str, Any], env_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state: a copy of the content with id, arguments and digest."""
    state = {"format": FORMAT, "env": {"id": env_id, "arguments": dict(arguments)}, **content}
    return copy.deepcopy({**state, "digest": _digest(state)})


def unseal_state(state: Any, env_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the content of a state.

    Raises:
        UserError: it is no state, damaged, or of another form, environment or arguments.
    """
    fix = f"Take one from get_state() of {env_id}."
    if not isinstance(state, Mapping):
        raise UserError(f"This is not a saved state: it is of type {type(state).__name__}. {fix}")
    if missing := sorted({"format", "env", "digest", *CONTENT} - state.keys()):
        raise UserError(f"This is not a saved state: it lacks {', '.join(missing)}. {fix}")
    if state["format"] != FORMAT:
        raise UserError(f"The state has the form {state['format']!r:.20}; this vlgym reads form {FORMAT}. {fix}")

    # Any other content than `seal_state`'s is damaged.
    try:
        sound = state["digest"] == _digest({name: state[name] for name in state if name != "digest"})
        made_by, made_with = state["env"]["id"], state["env"]["arguments"]
        names = sorted({*made_with, *arguments} - {*ANY_VALUE})
    except (TypeError, ValueError, KeyError, RecursionError):
        sound = False
    if not sound:
        raise UserError(f"The saved state is damaged: its content does not have its digest. {fix}")

    # It belongs to this environment with these arguments.
    if made_by != env_id:
        raise UserError(f"The saved state is of {made_by}, and this is {env_id}. {fix}")
    live = json.loads(json.dumps(dict(arguments)))
    for name in names:
        then, now = made_with.get(name), live.get(name)
        if then != now:
            raise UserError(
                f"The saved state was made with {name}={then!r:.80}, and this environment has "
                f"{name}={now!r:.80}. Make {env_id} with the same arguments."
            )
    return copy.deepcopy({name: state[name] for name in CONTENT})


def unfit(env_id: str, error: Exception) -> UserError:
    """Return the error for a state that is whole and yet cannot be restored, in one line."""
    reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return UserError(f"The state of {env_id} cannot be restored: {' '.join(reason.split())}")


def rebuild(kind: type, arguments: Any, attributes: Any, draws: Any, state: Any) -> Any:
    """Return a copy of an environment; `draws` is the generator of its action space."""
    env = kind(**arguments)
    vars(env).update(attributes)
    env.action_space._np_random = draws
    if state is not None:
        env.set_state(state)
    return env


def check_picklable(env_id: str, parts: Mapping[str, Any], attempt: Callable[[Any], Any] = pickle.dumps) -> None:
    """Raise `UserError`, with its name, on an argument that `attempt` fails on."""
    for name, value in parts.items():
        try:
            attempt(value)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            words = f"{env_id} cannot be copied or pickled, as its {name} cannot: {reason}"
            raise UserError(words) from error


def _digest(state: Mapping[str, Any]) -> str:
    text = json.dumps(state, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
