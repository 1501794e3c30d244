"""A worker's environments and the requests on them, in its process: plugins' code runs here."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ..env import VLEnv
from ..env.prompts import PromptBuilder
from ..errors import UserError, plain_line
from ..parsers import check_named
from ..play.trajectory import describe_env
from ..registry.making import make
from ..registry.versions import list_versions
from .wire import pack

# Requests that call a method: its name, and the request's fields that are its arguments.
METHODS = {
    "solve": ("solve",), "match": ("match_action", "action"), "point": ("point_action", "x", "y"),
    "think": ("think", "action"),
}  # fmt: skip


class Host:
    """Answers requests, each a dict with `n` (its number), `env` (the environment's) and `do`."""

    def __init__(self, make: Callable[..., VLEnv] = make) -> None:
        self._make = make
        self._envs: dict[int, VLEnv] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request with `n`, `env`, and `value` or the `error` that was raised."""
        head = {"n": request["n"], "env": request["env"]}
        try:
            if request["do"] in METHODS:
                method, *names = METHODS[request["do"]]
                value = getattr(self._envs[request["env"]], method)(*(request[name] for name in names))
            else:
                value = getattr(self, f"_do_{request['do']}")(request)
            return {**head, "value": value}
        except Exception as error:
            return {**head, "error": describe_error(error)}

    def write_answer(self, request: Mapping[str, Any]) -> bytes:
        """Answer a request with a frame; one that cannot be sent is an error, too."""
        answer = self.answer(request)
        try:
            return pack(answer)
        except UserError as error:
            return pack({"n": request["n"], "env": request["env"], "error": describe_error(error)})

    def close(self) -> None:
        """Close all environments, whatever one of them raises."""
        for number in [*self._envs]:
            self.answer({"n": 0, "env": number, "do": "close"})

    def _do_make(self, request: Mapping[str, Any]) -> dict[str, Any]:
        env = self._envs[request["env"]] = self._make(request["id"], **request["arguments"])
        parser, spec = env.parser, env.vlgym_spec
        return {
            "spec": None if spec is None else spec.to_dict(),
            "parser": {"name": parser.name, "version": parser.version, "format": parser.describe()},
            "vlgym": own_version(),
            "image_size": list(env.image_size),
        }  # fmt: skip

    def _do_reset(self, request: Mapping[str, Any]) -> dict[str, Any]:
        env = self._envs[request["env"]]
        observation, info = env.reset(seed=request["seed"], options=request["options"])
        return _position(env, observation, info)

    def _do_step(self, request: Mapping[str, Any]) -> dict[str, Any]:
        env = self._envs[request["env"]]
        observation, reward, terminated, truncated, info = env.step(request["text"])
        more = {"reward": reward, "terminated": terminated, "truncated": truncated}
        return _position(env, observation, info) | more

    def _do_describe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        turns, images = request["turns"], request["images"]
        return describe_env(self._envs[request["env"]], None if turns is None else PromptBuilder(turns, images))

    def _do_close(self, request: Mapping[str, Any]) -> None:
        if env := self._envs.pop(request["env"], None):
            env.close()


def make_without_code(env_id: str, **arguments: Any) -> VLEnv:
    """As `make`, but a parser is a name: an import string from another machine is refused."""
    return make(env_id, **check_named(arguments, "A learner on another machine"))


def _position(env: VLEnv, observation: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    legal = list(env.action_space.legal)  # type: ignore[attr-defined]
    return {"observation": dict(observation), "info": info, "system": env.system_text, "legal": legal}


@functools.cache
def own_version() -> str:
    """Return this process's version of vlgym; empty where it was not installed."""
    return list_versions().get("vlgym", "")


def describe_error(error: Exception) -> dict[str, Any]:
    """Return an error as plain data: the name of its class, `UserError` or not, and its text."""
    line, user = plain_line(str(error), 2000), isinstance(error, UserError)
    return {"type": type(error).__name__, "user": user, "line": line}
