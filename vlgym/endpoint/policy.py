"""The policy `openai:MODEL`: it asks an endpoint, several turns at once, from a thread.

Nothing is cached between runs. An answer is streamed only where the server demands it.
"""

import asyncio
import concurrent.futures
import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import EndpointError, FailedError, UserError, check_number
from ..types import Reply, Turn, Usage
from .client import KEY, check_url, open_client, read_key, split_address
from .completion import PROMPT, excerpt, find_status, lasts
from .messages import encode_messages
from .secrets import find_secrets, without_secrets

MOST_AT_ONCE = 1024
FIXED = {  # fields of a request that `extra` cannot set, and why
    "model": "it stands behind openai:",
    "messages": "the environment writes them",
    "stream": "answers are read as a whole",
    "n": "one answer is read",
    **{name: f"write --policy-arg {name}=VALUE" for name in ("temperature", "max_tokens", "top_p", "seed")},
}


class OpenAIPolicy:
    """Asks a chat completions endpoint.

    Args:
        model: name of the model, as the server knows it; or `MODEL@URL`, which sets `base_url`.
        base_url: address of the server, such as `http://127.0.0.1:8000/v1`; by default
            OPENAI_BASE_URL, or OpenAI's own.
        concurrency: most requests under way at once.
        temperature, max_tokens, top_p: of sampling; `None` is the server's default.
        reasoning_effort: such as `low`; each server has its own words.
        chat_template_kwargs: for the model's template, such as `{"enable_thinking": false}`.
        extra: further fields of the request's body, by name.
        timeout: seconds that one answer may take.
        max_retries: how often a request is repeated after a failure that may pass.
        requests_per_minute: most requests sent in a minute, evenly spaced.
        max_answer_bytes: most bytes of one answer, packed and unpacked; a longer one is a failure.
        seed: each request carries a seed of this one, the environment and the turn's place.

    Attributes:
        hide: takes the key and the address's password out of a text.
        served_model: the server's name of the model that answered last.

    Raises:
        UserError: an argument is out of range, there is no key, or `openai` is missing.
    """

    sees = True

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key_env: str = KEY,
        concurrency: int = 16, temperature: float | None = None, max_tokens: int | None = None,
        top_p: float | None = None, reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None, timeout: float = 120, max_retries: int = 6,
        requests_per_minute: float | None = None, seed: int | None = None,
        max_answer_bytes: int = 16_000_000,
    ) -> None:  # fmt: skip
        model, base_url = split_address(model, base_url)
        if not model:
            raise UserError("openai: needs the name of a model behind the colon: openai:MODEL.")

        # Arguments are checked before the key: a typo is told even without one.
        check_number("--policy-arg concurrency", concurrency, 1, MOST_AT_ONCE)
        check_number("--policy-arg max_retries", max_retries, 0, 1000)
        check_number("--policy-arg timeout", timeout, above=0)
        check_number("max_answer_bytes", max_answer_bytes, 1000)
        optional: dict[str, tuple[Any, dict[str, Any]]] = {
            "--temperature": (temperature, {"least": 0}),
            "--max-tokens": (max_tokens, {"least": 1}),
            "top_p": (top_p, {"least": 0, "most": 1}),
            "--policy-arg requests_per_minute": (requests_per_minute, {"above": 0}),
        }
        for name, (value, bounds) in optional.items():
            if value is not None:
                check_number(name, value, **bounds)
        for option, mapping in (("chat_template_kwargs", chat_template_kwargs), ("extra", extra)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise UserError(f"{option} must be given as --policy-arg {option}.NAME=VALUE, got {mapping!r:.80}.")
        for field in extra or ():
            if field in FIXED:
                raise UserError(f"extra.{field} cannot be set: {FIXED[field]}.")

        # Address and key come last, because the client opens with them.
        url = (os.environ.get("OPENAI_BASE_URL") or None) if base_url is None else base_url
        if url is not None:
            check_url(url)
        api_key = read_key(api_key_env, url)
        self.name, self.model, self.served_model = f"openai:{model}", model, ""
        self.temperature, self.max_tokens, self.seed = temperature, max_tokens, seed
        options: dict[str, Any] = {"top_p": top_p, "reasoning_effort": reasoning_effort}
        options |= {"chat_template_kwargs": chat_template_kwargs, **(extra or {})}
        self._options = {field: value for field, value in options.items() if value is not None}
        self.concurrency, self.timeout, self.max_retries = concurrency, timeout, max_retries
        self.requests_per_minute, self.api_key_env = requests_per_minute, api_key_env
        self._client, self._http, self._url, self.hide = open_client(
            url, api_key, concurrency, timeout, max_retries, max_answer_bytes, find_secrets(self._options)
        )

        # One loop in one thread: environments step meanwhile.
        self._keyless = not api_key
        self._places = asyncio.Semaphore(concurrency)
        self._next = 0.0  # when the next request may be sent
        self._limit_name = "max_tokens"
        self._stream: dict[str, Any] = {}
        self._closed = False
        self._ended: UserError | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True)
        self._thread.start()

    def describe(self) -> dict[str, Any]:
        """Return what the replies depend on; `None` is the server's default."""
        options = {"options": without_secrets(self._options)} if self._options else {}
        names = ("name", "model", "temperature", "max_tokens", "seed")
        return {**{name: getattr(self, name) for name in names}, **options}

    def describe_session(self) -> dict[str, Any]:
        """Return settings that replies do not depend on; no key, and no password of an address."""
        import openai

        limits = ("concurrency", "timeout", "max_retries", "requests_per_minute", "served_model")
        settings = {name: getattr(self, name) for name in ("api_key_env", *limits)}
        return {"base_url": self._url, **settings, "openai": openai.__version__}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask for all turns at once and wait for all answers; errors are those of `submit`."""
        futures = [self.submit(turn) for turn in turns]
        try:
            concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
            failed = [each for each in futures if each.done() and each.exception() is not None]
            return [future.result() for future in failed or futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def submit(self, turn: Turn) -> Future[Reply]:
        """Ask for one turn.

        The `Future` ends with a `Reply`, empty and `refused` where the server refuses this prompt;
        with `UserError` for a wrong key, model or request, or no server; with `FailedError` where
        all retries failed. Errors hold for later turns, except `EndpointError`.
        """
        if self._closed:
            raise RuntimeError(f"{self.name} was closed")
        seed = None if self.seed is None else make_seed(self.seed, turn)
        return self._submit(turn.messages, seed)

    def check(self, pictures: bool = True) -> None:
        """Ask one short question, so that a wrong key, model or address ends the run at once."""
        picture = {"type": "image", "image": np.full((64, 64, 3), 128, np.uint8)}
        content = [*[picture][:pictures], {"type": "text", "text": "Answer with one word: yes."}]
        seed = None if self.seed is None else 0
        reply = self._submit([{"role": "user", "content": content}], seed).result()
        if not reply.text.strip():
            raise UserError(
                f"{self._url} answers the first question without a text; it sent: {reply.extra['came']}. Check "
                "--max-tokens, the chat template, and the server's filter and parsers of thoughts and tool calls."
            )

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
        await self._client.close()
        with contextlib.suppress(TimeoutError):  # a thread of it may still look a name up
            await asyncio.wait_for(self._loop.shutdown_default_executor(), 2)

    def _submit(self, messages: Sequence[Any], seed: int | None) -> Future[Reply]:
        options = {"seed": seed, "temperature": self.temperature}
        fields = {name: value for name, value in options.items() if value is not None}
        body = {"model": self.model, "messages": encode_messages(messages), **self._options, **fields}
        return asyncio.run_coroutine_threadsafe(self._ask(body), self._loop)

    async def _ask(self, body: dict[str, Any]) -> Reply:
        """Ask as soon as fewer than `concurrency` requests are under way."""
        import openai

        async with self._places:
            await self._pace()
            if self._ended is not None:
                raise type(self._ended)(str(self._ended))

            # A server that refuses one prompt takes others: the reply is empty, and play goes on.
            begun = time.monotonic()
            try:
                reply, attempts = await self._send(body)
            except openai.APIError as error:
                status = find_status(error)
                if status not in PROMPT:
                    failure = self._explain(error)
                    self._ended = self._ended if isinstance(failure, EndpointError) else failure
                    raise failure from None
                reply = Reply("", {"came": self._read_words(error)}, refused=True, status=status)
                attempts = 1 if isinstance(error, openai.APIStatusError) else self.max_retries + 1
            self.served_model = reply.extra.get("model") or self.served_model
            usage = replace(reply.usage or Usage(), seconds=time.monotonic() - begun, attempts=attempts)
            return replace(reply, usage=usage)

    async def _pace(self) -> None:
        """Space requests evenly."""
        now = time.monotonic()
        at = max(now, self._next)
        self._next = at + (60 / self.requests_per_minute if self.requests_per_minute else 0)
        await asyncio.sleep(at - now)

    async def _send(self, body: dict[str, Any]) -> tuple[Reply, int]:
        """Send a request; return its answer, and how many attempts it took."""
        import openai

        # In extra_body: the package walks through what it knows by name, which takes longer.
        limit = {} if self.max_tokens is None else {self._limit_name: self.max_tokens}
        sent = {**body, **self._stream, **limit}
        create = self._client.chat.completions.with_raw_response.create
        try:
            raw = await create(model=self.model, messages=[], extra_body=sent)
        except openai.APIStatusError as error:
            if error.status_code not in (400, 422) or not self._adapt(sent, error.message):
                raise
            return await self._send(body)
        return raw.http_response.extensions["answer"], raw.retries_taken + 1

    def _adapt(self, sent: Mapping[str, Any], words: str) -> bool:
        """Learn from a refusal which form of a request the server wants; return if there is one."""
        if "max_tokens" in sent and "max_completion_tokens" in words:
            self._limit_name = "max_completion_tokens"
        elif "stream_options" in sent and "stream_options" in words:
            self._stream = {"stream": True}
        elif "stream" not in sent and re.search(r"\bstream", words, re.IGNORECASE):
            self._stream = self._stream or {"stream": True, "stream_options": {"include_usage": True}}
        else:
            return False
        return True

    def _explain(self, error: Any) -> UserError:
        """Return the error that ends the run."""
        import httpx2

        where, words = self._url, self._read_words(error)
        if self._http.proxy:
            where += f" through the environment's proxy {self._http.proxy}"
        if isinstance(error.__cause__, httpx2.ConnectError) and not self._http.reached:
            return UserError(f"No server answers at {where} ({words}). Start it, or correct --base-url.")

        # The status says whose mistake it is; each line names the option that corrects it.
        status = getattr(error, "status_code", 0)
        if status in (401, 403):
            wrong = f"Check the key in {self.api_key_env} (--policy-arg api_key_env)."
            if self._keyless:
                wrong = f"No key was sent: {self.api_key_env} is not set."
            return UserError(f"{where} refuses access: {words}. {wrong}")
        if status in (404, 405):
            return UserError(
                f"{where} has no chat completions for {self.model}: {words}. Check the model's name and --base-url "
                "(most end with /v1)."
            )
        if 300 <= status < 400:
            place = excerpt(error.response.headers.get("location", ""), hide=self.hide)
            return UserError(
                f"{where} sends on to {place}, which gets no prompts; if you trust it, give it as --base-url."
            )
        if (400 <= status < 500 and status not in (408, 409, 429)) or (status >= 500 and lasts(words)):
            return UserError(
                f"{where} refuses the request: {words}. Check what is sent: the model's name, --temperature, "
                "--max-tokens, --seed, the length of the prompt, and --history-images 0 for a model without pictures."
            )

        # What is left may pass: the run can go on later.
        kind = EndpointError if find_status(error) else FailedError
        return kind(
            f"{where} failed {self.max_retries + 1} time(s) in a row, last: {words}. Go on later (--resume), or with "
            "more --policy-arg max_retries."
        )

    def _read_words(self, error: Any) -> str:
        """Return the server's words or its failure as one line, without keys and passwords."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return f"no answer within {self.timeout:g} s (--policy-arg timeout)"
        if isinstance(error, openai.APIStatusError):
            message = error.body.get("message") if isinstance(error.body, dict) else None
            words = f"{error.status_code} {message or error.body or error.message}"
        else:
            words = str(error.__cause__ or error) or type(error.__cause__).__name__
        return excerpt(words, hide=self.hide).rstrip(".")


def make_seed(seed: int, turn: Turn) -> int:
    """Return the seed of a request, 31 bits of the run's seed and the turn's place alone."""
    place = f"{seed}|{turn.env_id}|{turn.seed}|{turn.repeat}|{turn.turn}"
    return int.from_bytes(hashlib.sha256(place.encode()).digest()[:4], "big") >> 1
