"""The policy behind `openai:MODEL`: it asks an endpoint, some turns at once, and insists until there is an answer.

An event loop in a thread of its own does the asking, so that environments can step meanwhile. What a failure means is
said in `failures.py`, how long to wait in `pacing.py`. Nothing is cached between runs, and no answer is streamed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import FailedError, UserError, nearest
from ..types import Reply, Turn, Usage
from .connection import KEY, open_clients
from .failures import Failure, judge
from .messages import Answer, PictureCache, read_answer, show, write_messages
from .pacing import LONGEST_ASKED, Pace, Sleep, back_off

TRIES_UNREACHED = 3
"""Attempts to connect before the first answer of a run; a server that is not there is soon said to be so."""


@dataclass(frozen=True)
class Totals:
    """What a policy has asked for so far.

    Attributes:
        requests: requests that were sent, those that failed included.
        replies: replies that were given.
        retries: requests that repeated one that had failed.
        prompt_tokens: tokens of the prompts that were answered, as the server counts them.
        completion_tokens: tokens of the answers.
        waited: seconds that requests waited for their place in the rate or after a failure, summed over requests.
    """

    requests: int = 0
    replies: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waited: float = 0.0


class OpenAIPolicy:
    """Asks a chat completions endpoint; see `make_openai` for the arguments that it shares.

    Args:
        api_key: the key; empty for none.
        sleep: waits so many seconds, in the event loop.
        clock: seconds, never going back.
        draw: numbers in [0, 1) for the jitter of waits.

    Attributes:
        name: `openai:MODEL`.
        totals: what was asked for so far; a new object at each change, so that any thread may read it.
        served_model: what the server calls the model that answered last; empty before the first answer.

    Raises:
        UserError: the package `openai` is missing.
    """

    sees = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str = "",
        api_key_env: str = KEY,
        concurrency: int = 16,
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout: float = 120,
        max_retries: int = 6,
        requests_per_minute: float | None = None,
        seed: int | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] | None = None,
    ) -> None:
        self.name, self.model, self.served_model, self.totals = f"openai:{model}", model, "", Totals()
        self.temperature, self.max_tokens, self.seed = temperature, max_tokens, seed
        self.concurrency, self.timeout, self.max_retries = concurrency, timeout, max_retries
        self.requests_per_minute, self.api_key_env = requests_per_minute, api_key_env
        self._sleep, self._clock, self._draw = sleep, clock, draw or random.Random().random
        self._clients, self._url, self._secrets = open_clients(base_url, api_key, concurrency, timeout)
        self._keyless = not api_key
        self._pictures = PictureCache()
        self._pace = Pace(requests_per_minute, sleep, clock)
        self._free: asyncio.LifoQueue[Any] = asyncio.LifoQueue()  # last in, first out: connections are used again
        for client in reversed(self._clients):
            self._free.put_nowait(client)
        self._limit_name = "max_tokens"
        self._reached = self._closed = False
        self._ended: UserError | None = None
        self._listing: asyncio.Task[list[str]] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True)
        self._thread.start()

    def describe(self) -> dict[str, Any]:
        """Return what the replies depend on; `None` is the server's default."""
        return {
            "name": self.name,
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }

    def describe_session(self) -> dict[str, Any]:
        """Return what the replies do not depend on, for a session's record; no key, and no password of an address."""
        import openai

        return {
            "base_url": self._url,
            "api_key_env": self.api_key_env,
            "concurrency": self.concurrency,
            "timeout": self.timeout,
            "max_retries": self.max_retries,
            "requests_per_minute": self.requests_per_minute,
            "served_model": self.served_model,
            "openai": openai.__version__,
        }

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask for all turns at once and wait for all answers.

        Raises:
            UserError: going on makes no sense (see `submit`).
        """
        asked = [self.submit(turn) for turn in turns]
        try:
            concurrent.futures.wait(asked, return_when=concurrent.futures.FIRST_EXCEPTION)
            failed = [future for future in asked if future.done() and future.exception() is not None]
            return [future.result() for future in failed or asked]
        except BaseException:
            for future in asked:
                future.cancel()
            raise

    def submit(self, turn: Turn) -> Future[Reply]:
        """Ask for one turn.

        The `Future` ends with a `Reply`; or with `UserError` where the key, the model or the request is wrong or no
        server is there, and with `FailedError` where all retries failed. Either holds for all later turns, too.
        """
        if self._closed:
            raise RuntimeError(f"{self.name} was closed")
        body: dict[str, Any] = {"model": self.model, "messages": write_messages(turn.messages, self._pictures.url)}
        if self.seed is not None:
            body["seed"] = make_seed(self.seed, turn)
        return asyncio.run_coroutine_threadsafe(self._ask(body), self._loop)

    def check(self, *, pictures: bool = True) -> None:
        """Ask one short question, so that a wrong key, model or address is found before any environment is made.

        Args:
            pictures: with a picture, which tells early of a model that takes none.

        Raises:
            UserError: as `submit` says; a request that is refused for other reasons is left to the first turn to tell.
        """
        content: list[dict[str, Any]] = [{"type": "text", "text": "Answer with one word: yes."}]
        if pictures:
            content.insert(0, {"type": "image", "image": np.full((64, 64, 3), 128, np.uint8)})
        messages = write_messages([{"role": "user", "content": content}], self._pictures.url)
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if self.seed is not None:
            body["seed"] = 0
        asyncio.run_coroutine_threadsafe(self._ask(body, lenient=True), self._loop).result()

    def close(self) -> None:
        """Cancel what is under way, close the connections and end the thread."""
        if self._closed:
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut(self) -> None:
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in set(self._clients):
            await client.close()
        with contextlib.suppress(TimeoutError):  # a thread of it may still look a name up
            await asyncio.wait_for(self._loop.shutdown_default_executor(), 2)

    async def _ask(self, body: dict[str, Any], lenient: bool = False) -> Reply:
        """Wait for a place among those that ask at once, and insist there."""
        client = await self._free.get()
        try:
            return await self._insist(client, body, lenient)
        finally:
            self._free.put_nowait(client)

    async def _insist(self, client: Any, body: dict[str, Any], lenient: bool) -> Reply:
        """Ask until there is an answer, or until none can come."""
        attempts, begun = 0, None
        while True:
            self._count(waited=await self._pace.wait())
            if self._ended is not None:
                raise type(self._ended)(str(self._ended))
            begun = self._clock() if begun is None else begun
            attempts += 1
            self._count(requests=1, retries=int(attempts > 1))
            limit_name = self._limit_name
            found = await self._try(client, body, limit_name)
            if isinstance(found, Failure) and found.kind == "filter":
                found = Answer("", refused=True)
            if isinstance(found, Answer):
                return self._give(found, self._clock() - begun, attempts)
            if found.kind == "rename" and self.max_tokens is not None and limit_name == "max_tokens":
                self._limit_name = "max_completion_tokens"
                continue
            if lenient and found.kind == "request" and not found.hint:
                return Reply("")
            if (end := await self._judge_end(found, attempts)) is not None:
                self._ended = end
                raise end
            if found.asked is not None:
                self._pace.hold(min(found.asked, LONGEST_ASKED))
            seconds = back_off(attempts, self._draw, found.asked)
            await self._sleep(seconds)
            self._count(waited=seconds)

    async def _try(self, client: Any, body: dict[str, Any], limit_name: str) -> Answer | Failure:
        """Send one request."""
        options = {"temperature": self.temperature, limit_name: self.max_tokens}
        given = {name: value for name, value in options.items() if value is not None}
        sent = {**body, **given}  # as extra_body: what the package knows by name it walks through, which takes longer
        try:
            async with asyncio.timeout(self.timeout):
                raw = await client.chat.completions.with_raw_response.create(
                    model=self.model, messages=[], extra_body=sent
                )
            self._reached = True
            return read_answer(raw.content)
        except Exception as error:
            found = judge(error, timeout=self.timeout)
            if found is None:
                raise
            self._reached = self._reached or hasattr(error, "status_code")
            return replace(found, said=self._redact(found.said))

    async def _judge_end(self, found: Failure, attempts: int) -> UserError | None:
        """Return the error that ends the run, or `None` where another attempt is due."""
        said, where = found.said.rstrip("."), self._url
        if found.kind == "unreachable" and not self._reached and attempts >= min(TRIES_UNREACHED, self.max_retries + 1):
            return UserError(f"No server answers at {where} ({said}). Start it, or correct --base-url.")
        if found.again:
            if attempts <= self.max_retries:
                return None
            times = "once" if attempts == 1 else f"{attempts} times in a row"
            return FailedError(
                f"{where} failed {times}, last: {said}. Go on later (--resume), or with more --max-retries."
            )
        if found.kind == "key":
            wrong = f"No key was sent: {self.api_key_env} is not set" if self._keyless else "Check the key in "
            wrong += "." if self._keyless else f"{self.api_key_env} (--api-key-env)."
            return UserError(f"{where} refuses access: {said}. {wrong}")
        if found.kind == "credit":
            return UserError(f"{where} says that no credit is left: {said}. Go on later with --resume.")
        if found.kind == "request" or found.kind == "rename":
            hint = found.hint or "Check the options that are sent: --temperature, --max-tokens, --seed."
            return UserError(f"{where} refuses the request: {said}. {hint}")
        if self._listing is None:
            self._listing = asyncio.create_task(self._list_models())
        names = await self._listing
        if found.kind == "missing" and (self.model in names or not names):
            return UserError(
                f"{where} has no chat completions for {self.model}: {said}. Check --base-url (most end with /v1) "
                "and the model's name."
            )
        has = f" It has {show(', '.join(names[:20]), 400)}.{nearest(self.model, names)}" if names else ""
        return UserError(f"{where} has no model {self.model}: {said}.{has} Name one: openai:MODEL.")

    async def _list_models(self) -> list[str]:
        """Return the names that the server lists; none where it has no list."""
        try:
            async with asyncio.timeout(min(self.timeout, 10)):
                listed = await self._clients[0].models.list()
            return [self._redact(show(str(model.id), 100)) for model in listed.data]
        except Exception:  # only words of an error line depend on it
            return []

    def _give(self, answer: Answer, seconds: float, attempts: int) -> Reply:
        self.served_model = answer.model or self.served_model
        self._count(replies=1, prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens)
        usage = Usage(answer.prompt_tokens, answer.completion_tokens, seconds, attempts)
        return Reply(answer.text, cut=answer.cut, refused=answer.refused, usage=usage)

    def _count(self, **more: float) -> None:
        """Add to the totals; only the event loop's thread does."""
        now = self.totals
        self.totals = replace(now, **{name: getattr(now, name) + value for name, value in more.items()})

    def _redact(self, line: str) -> str:
        """Take keys and passwords out of what a server said."""
        for secret in self._secrets:
            line = line.replace(secret, "[secret]")
        return line


def make_seed(seed: int, turn: Turn) -> int:
    """Return the seed of a turn's request: 31 bits that depend on nothing but the run's seed and the turn's place."""
    place = f"{seed}|{turn.env_id}|{turn.seed}|{turn.repeat}|{turn.turn}"
    return int.from_bytes(hashlib.sha256(place.encode()).digest()[:4], "big") >> 1
