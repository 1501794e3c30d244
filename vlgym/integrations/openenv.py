"""OpenEnv's protocol: `vlgym serve ID` for its clients; needs the extra `vlgym[openenv]`.

    from openenv.core.generic_client import GenericEnvClient

    with GenericEnvClient("http://127.0.0.1:8431/vlgym/NumberLine-v1").sync() as env:
        seen = env.reset(seed=1).observation
        result = env.step({"reply": "<action>+</action>"})

Each session has an environment in a worker process, because graphics libraries are not safe in
threads. Workers are used again. Seen with openenv 0.10.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from fastapi.exceptions import RequestValidationError
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, ConcurrencyConfig, EnvironmentMetadata, Observation, State
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from ..env.arguments import to_plain
from ..env.rendering import encode_png
from ..env_groups import EnvGroup, open_group
from ..env_groups.served import HIGHEST_SEED
from ..env_groups.tcp import is_loopback
from ..env_groups.workers import EnvError
from ..errors import UserError, plain_line
from ..registry import get_registry

LARGEST_MESSAGE = 1 << 20  # bytes of a client; a reply is shortened to 16,384 characters

_ID = re.compile(r"/([\w-]+/[\w-]+-v\d+)(?:/|$)", re.ASCII)


class ReplyAction(Action):
    """A model's reply, in the form that the text asks for."""

    reply: str


class PictureObservation(Observation):
    """An observation: the picture as PNG in base64, the text, and Gymnasium's other values."""

    image: str
    text: str
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any]


class WorkerPool:
    """Worker processes for sessions, `taken` of which are in use."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._free: list[EnvGroup] = []
        self._lock = threading.Lock()

    def take(self) -> EnvGroup:
        """Return a worker; raise a `UserError` if all are taken."""
        with self._lock:
            if self.taken >= self.most:
                raise UserError(f"All {self.most} sessions of this server are taken.")
            self.taken += 1
            return self._free.pop() if self._free else open_group("processes:1")

    def give_back(self, worker: EnvGroup, good: bool) -> None:
        """Keep a worker for the next session, or end it."""
        with self._lock:
            self.taken -= 1
            if good:
                self._free.append(worker)
        if not good:
            worker.close()

    def close(self) -> None:
        """End the workers that no session holds."""
        with self._lock:
            while self._free:
                self._free.pop().close()


class Session(Environment[ReplyAction, PictureObservation, State]):
    """One client's environment, in a worker of the pool from the first reset on."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env_id: str, pool: WorkerPool) -> None:
        super().__init__()
        self._env_id, self._pool = env_id, pool
        self._worker: EnvGroup | None = None
        self._env: Any = None
        self._over = False
        self._state = State(env_id=env_id, seed=None)

    def reset(  # type: ignore[override]
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> PictureObservation:
        """Begin the episode of a seed, or of one that is drawn."""
        self._check_open()
        if options:
            raise UserError(f"A reset takes seed and episode_id, not {', '.join(options)}; leave that out.")
        if self._env is None:
            self._worker = self._pool.take()
            self._env = self._worker.make(self._env_id)
        seed = secrets.randbelow(HIGHEST_SEED) if seed is None else seed
        observation, info = self._env.reset(seed=seed)
        self._state = State(episode_id=episode_id, env_id=self._env_id, seed=seed)
        return _show(observation, info)

    def step(  # type: ignore[override]
        self, action: ReplyAction, timeout_s: float | None = None
    ) -> PictureObservation:
        self._check_open()
        if self._env is None:
            raise UserError("Reset the environment before the first step, in the same WebSocket session.")
        observation, reward, terminated, truncated, info = self._env.step(action.reply)
        self._state.step_count += 1
        ends = {"terminated": terminated, "truncated": truncated, "done": terminated or truncated}
        return _show(observation, info, reward=float(reward), **ends)

    def _check_open(self) -> None:
        if self._over:
            raise UserError("This session was closed because it was idle; connect again.")

    @property
    def state(self) -> State:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        spec = get_registry().get(self._env_id)
        return EnvironmentMetadata(name=spec.id, description=spec.summary)

    def close(self) -> None:
        self._over, worker, env = True, self._worker, self._env
        self._worker = self._env = None
        if worker is None:
            return

        # A worker whose environment cannot be closed is not used again.
        good = False
        try:
            if env is not None:
                env.close()
            good = True
        finally:
            self._pool.give_back(worker, good)


def _show(observation: dict[str, Any], info: dict[str, Any], **more: Any) -> PictureObservation:
    picture = base64.b64encode(encode_png(observation["image"])).decode("ascii")
    return PictureObservation(image=picture, text=observation["text"], info=to_plain(info), **more)


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Answer with an error as one line."""
    if isinstance(error, HTTPException):
        return JSONResponse({"detail": plain_line(str(error.detail))}, error.status_code, error.headers)
    known = {RequestValidationError: 422, UserError: 400}
    status = next((status for kind, status in known.items() if isinstance(error, kind)), 500)
    return JSONResponse({"detail": plain_line(str(error))}, status)


class OpenEnvGuard:
    """Refuses requests without the token (without one: of web pages), to unknown ids, too long."""

    def __init__(self, app: ASGIApp, token: str | None, env_ids: Sequence[str]) -> None:
        self._app, self._token, self._ids = app, token, tuple(env_ids)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None
        if scope["type"] != "lifespan":
            refusal = self._refuse(Headers(scope=scope), scope["path"])

        # A body is read here, up to its limit, and handed on in one piece.
        messages, body = deque[Message](), bytearray()
        while refusal is None and scope["type"] == "http" and not messages:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > LARGEST_MESSAGE:
                refusal = 413, f"A request has at most {LARGEST_MESSAGE} bytes."
            elif not message.get("more_body", False):
                messages.append({**message, "body": bytes(body)})
        if refusal is None:

            async def read() -> Message:
                return messages.popleft() if messages else await receive()

            await self._app(scope, read, send)
            return

        # A refusal is one line, on either protocol.
        answer = JSONResponse({"detail": refusal[1]}, refusal[0], {"connection": "close"})
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(answer)
        else:
            await answer(scope, receive, send)

    def _refuse(self, headers: Headers, path: str) -> tuple[int, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._token is not None:
            authorization = headers.get("authorization", "").encode("utf-8", "replace")
            due = f"Bearer {self._token}".encode("utf-8", "replace")
            if not hmac.compare_digest(authorization, due):
                return 401, "This server needs the header `Authorization: Bearer TOKEN`."
        elif not is_loopback(host.rpartition(":")[0] or host) or origin not in (None, f"http://{host}"):
            return 403, "Without a token this server answers programs of this machine only."

        # Several environments have no common root.
        match = _ID.match(path)
        if (match and match[1] not in self._ids) or (not match and len(self._ids) > 1):
            return 404, f"No environment is here; there are {', '.join(f'/{env_id}' for env_id in self._ids)}."
        return None


def create_openenv_app(env_ids: Sequence[str], pool: WorkerPool, *, token: str | None, idle: float) -> Starlette:
    """Return the application: `/ID` for each environment, and `/` for a single one.

    Every request must have the token (`None`: on loopback only). A session is closed after `idle`
    seconds without a message.
    """
    limits = ConcurrencyConfig(max_concurrent_envs=pool.most, session_timeout=idle)
    apps = {
        env_id: create_fastapi_app(
            partial(Session, env_id, pool), ReplyAction, PictureObservation,
            concurrency_config=limits, env_name=env_id,
        )
        for env_id in env_ids
    }  # fmt: skip
    for app in apps.values():
        for kind in (HTTPException, RequestValidationError, UserError, EnvError):
            app.add_exception_handler(kind, answer_error)

    @asynccontextmanager
    async def run(outer: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:  # Starlette starts no mounted application
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    routes = [Mount(f"/{env_id}", app) for env_id, app in apps.items()]
    if len(apps) == 1:
        routes += [Mount("/", app) for app in apps.values()]
    guard = Middleware(OpenEnvGuard, token=token, env_ids=env_ids)
    return Starlette(routes=routes, lifespan=run, middleware=[guard])


def serve_environments(
    env_ids: Sequence[str], listening: socket.socket, say: Callable[[], None], *, token: str | None,
    sessions: int, idle: float,
) -> None:  # fmt: skip
    """Serve environments on a socket until Ctrl-C."""
    pool = WorkerPool(sessions)
    config = uvicorn.Config(
        create_openenv_app(env_ids, pool, token=token, idle=idle), log_level="warning",
        access_log=False, server_header=False, ws_max_size=LARGEST_MESSAGE, timeout_graceful_shutdown=1,
    )  # fmt: skip
    try:
        with listening:
            say()
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        pool.close()
