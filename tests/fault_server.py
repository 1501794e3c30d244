"""A chat completions server for tests and benchmarks: HTTP, a deterministic model, and faults.

    python tests/fault_server.py --latency 1.0

The model's reply is a pure function of the request's messages: a hash of texts and decoded pixels
chooses among the legal actions that the last user turn lists. As a program it prints its address
and serves until it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import functools
import hashlib
import io
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

WORDS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True)
class Fault:
    """Fault of an answer.

    Attributes:
        kind: of the way (`held`, `hang`, `drop`, `half`, `drip`, `truncated`, `json`, `html`,
            `shape`, `error200`), a status as text, or an odd reply (`SERVED`); `endless` for a
            stream without its end.
        seconds: for `hang`; between two bytes for `drip`, and two lines of a stream; at most, for
            `held`, which waits for `release`.
        headers, body: of a status.
    """

    kind: str
    seconds: float = 0.0
    body: Any = None
    headers: Mapping[str, str] | None = None


@dataclass
class Request:
    """A chat request as it arrived.

    Attributes:
        body: its JSON; data URLs are replaced by the pixels' digests.
        digest: hash of all texts and pixels.
        before: how often the same content had come before.
        answered: a whole completion was sent.
    """

    number: int
    body: dict[str, Any]
    pictures: list[np.ndarray] = field(repr=False)
    digest: str
    before: int
    authorization: str = ""
    answered: bool = False


Choose = Callable[[Request], Fault | None]


class FaultServer:
    """Serves in a thread, as a context manager; `url` is what `--base-url` wants.

    Args:
        faults: of requests, by number, or a function of the request.
        latency: seconds from a request's arrival to its answer; `spread`: most seconds more.
        key, model: the ones that it takes; `None` for any.
        refuses, demands: field that a request may not or must have -> message of the refusal.
        refusal: status of these refusals.
        keep: keep requests and pictures in `requests`; without, it only counts.
    """

    def __init__(
        self, faults: Mapping[int, Fault] | Choose | None = None, *, latency: float = 0.0,
        spread: float = 0.0, key: str | None = None, model: str | None = None,
        refuses: Mapping[str, str] | None = None, demands: Mapping[str, str] | None = None,
        refusal: int = 400, keep: bool = True,
    ) -> None:  # fmt: skip
        schedule = faults or {}
        by_number: Choose = lambda request: schedule.get(request.number)  # noqa: E731
        self._choose = by_number if isinstance(schedule, Mapping) else schedule
        self.latency, self.spread, self.key, self.model = latency, spread, key, model
        self.refuses, self.demands = dict(refuses or {}), dict(demands or {})
        self.refusal, self.keep = refusal, keep
        self.requests: list[Request] = []
        self.counts: Counter[str] = Counter()
        self.most_at_once = self._now = 0
        self.port = 0
        self._times: Counter[str] = Counter()
        self._loop, self._let_go = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def release(self) -> None:
        """Let the answers go that are held."""
        self._loop.call_soon_threadsafe(self._let_go.set)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                arrived = self._loop.time()
                method, path, _ = head[0].split(" ", 2)
                fields = (line.partition(":") for line in head[1:])
                headers = {name.lower(): value.strip() for name, _, value in fields}
                data = await reader.readexactly(int(headers.get("content-length", "0")))
                if not await self._answer(method, path, headers, data, writer, arrived):
                    break
        writer.close()

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], data: bytes, writer: asyncio.StreamWriter, arrived: float
    ) -> bool:
        """Answer one request; return whether the connection stays."""
        path, authorization = path.partition("?")[0], headers.get("authorization", "")
        if self.key is not None and authorization != f"Bearer {self.key}":
            message = f"Incorrect API key provided: {authorization.removeprefix('Bearer ')}."
            return await _send(writer, 401, _error(message, "invalid_api_key"))
        if (method, path) == ("GET", "/v1/models"):
            models = [{"id": self.model or "any", "object": "model"}]
            return await _send(writer, 200, {"object": "list", "data": models})
        if (method, path) != ("POST", "/v1/chat/completions"):
            return await _send(writer, 404, {"detail": "Not Found"})
        try:
            request = self._note(json.loads(data), authorization)
        except (ValueError, KeyError, TypeError) as error:
            return await _send(writer, 400, _error(f"malformed: {error}", "invalid_request"))
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            return await self._complete(request, writer, arrived)
        finally:
            self._now -= 1

    def _note(self, body: dict[str, Any], authorization: str) -> Request:
        pictures: list[np.ndarray] = []
        for message in body["messages"]:
            for part in message["content"] if isinstance(message["content"], list) else []:
                if part["type"] == "image_url":
                    picture, part["image_url"]["url"] = decode_url(part["image_url"]["url"])
                    pictures.append(picture)
        digest = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
        request = Request(self.counts["requests"], body, pictures, digest, self._times[digest], authorization)
        self._times[digest] += 1
        self.counts["requests"] += 1
        if self.keep:
            self.requests.append(request)
        return request

    async def _complete(self, request: Request, writer: asyncio.StreamWriter, arrived: float) -> bool:
        body, luck = request.body, int(request.digest[:8], 16) / 2**32
        if self.model is not None and body["model"] != self.model:
            message = f"The model `{body['model']}` does not exist."
            return await _send(writer, 404, _error(message, "model_not_found"))
        wrong = {name: message for name, message in self.refuses.items() if name in body}
        wrong |= {name: message for name, message in self.demands.items() if not body.get(name)}
        for name, message in wrong.items():
            return await _send(writer, self.refusal, _error(message, "unsupported_parameter", name))
        fault = self._choose(request) or Fault("")
        if fault.kind:
            self.counts[fault.kind] += 1
        await asyncio.sleep(arrived + self.latency + self.spread * luck - self._loop.time())
        if fault.kind == "held":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._let_go.wait(), fault.seconds)
        if fault.kind == "hang":
            await asyncio.sleep(fault.seconds or 3600)
            return False
        if fault.kind == "drop":
            writer.transport.abort()
            return False
        if fault.kind.isdigit():
            content = fault.body if fault.body is not None else _error(f"trouble {fault.kind}", "trouble")
            return await _send(writer, int(fault.kind), content, fault.headers)
        completion = self._write(request, fault.kind)
        if body.get("stream"):
            events = write_events(completion)
            if fault.kind == "endless":
                events = events[: events.index(b"data:", 8)]
            head = _head(200, len(events), kind="text/event-stream")
            await _trickle(writer, [head, *events.splitlines(keepends=True)], fault.seconds)
            return self._note_answer(request)
        whole = json.dumps(completion).encode()
        if fault.kind == "half":
            await _trickle(writer, [_head(200, len(whole)) + whole[: len(whole) // 2]], 0.0)
            return False
        if fault.kind == "drip":
            pieces = (whole[i : i + 1] for i in range(len(whole)))
            await _trickle(writer, [_head(200, len(whole)), *pieces], fault.seconds)
            return self._note_answer(request)
        broken = {
            "truncated": whole[: len(whole) // 2], "json": b'{"choices": [}',
            "html": b"<html><b>Bad gateway</b></html>",
            "shape": b'{"object": "chat.completion", "choices": []}',
            "error200": json.dumps(_error("the provider is overloaded", "502")).encode(),
        }.get(fault.kind)  # fmt: skip
        await _send(writer, 200, whole if broken is None else broken)
        return self._note_answer(request) if broken is None else True

    def _note_answer(self, request: Request) -> bool:
        request.answered = True
        self.counts["answered"] += 1
        return True

    def _write(self, request: Request, kind: str) -> dict[str, Any]:
        """Return the chat completion of a request."""
        text = choose_action(request.body["messages"], request.digest)
        served = SERVED[kind](text) if kind in SERVED else {}
        message = {"role": "assistant", "content": text, "refusal": None, **served.get("message", {})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        choice |= {name: value for name, value in served.items() if name in ("finish_reason", "error")}
        prompt = len(json.dumps(request.body["messages"])) // 4 + 64 * len(request.pictures)
        return {
            "id": f"chatcmpl-{request.number}", "object": "chat.completion", "created": 0,
            "model": f"{request.body['model']}-0001",
            "choices": [choice],
            "usage": {"prompt_tokens": prompt, "completion_tokens": len(text.split())},
            **served.get("body", {}),
        }  # fmt: skip


def _call(text: str) -> dict[str, Any]:
    arguments = json.dumps({"action": "".join(re.findall("<action>(.*)</action>", text))})
    return {"function": {"name": "act", "arguments": arguments}, "id": "1", "type": "function"}


def _end(reason: str | None, **more: Any) -> Callable[[str], dict[str, Any]]:
    return lambda text: {"finish_reason": reason, **more}


def _content(content: Any, **message: Any) -> dict[str, Any]:
    return {"message": {"content": content, **message}}


def _say(**message: Any) -> Callable[[str], dict[str, Any]]:
    return lambda text: {"message": message}


def _halve(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


SERVED: dict[str, Callable[[str], dict[str, Any]]] = {
    "refuse": _say(content=None, refusal="I will not help with that."),
    "filter": _end("content_filter", message={"content": None}),
    "null": _say(content=None),
    "empty": _say(content=""),
    "cut": lambda text: {"message": {"content": _halve(text)[0]}, "finish_reason": "length"},
    "parts": lambda text: _content([{"type": "text", "text": piece} for piece in _halve(text)]),
    "reasoning": _say(reasoning_content="<action>nonsense</action>"),
    "in_reasoning_content": lambda text: _content(None, reasoning_content=text),
    "in_reasoning": lambda text: _content("", reasoning=f"Or <action>?</action>\n\n{text}"),
    "thoughts": _say(reasoning=[{"type": "reasoning.text", "text": "I see."}]),
    "half_thought": lambda text: {**_content(None, reasoning=text[:5]), "finish_reason": "stop"},
    "cut_thought": lambda text: {**_content(None, reasoning=text), "finish_reason": "length"},
    "tool_call": lambda text: {**_content(None, tool_calls=[_call(text)]), "finish_reason": "stop"},
    "function_call": lambda text: _content("", function_call=_call(text)["function"]),
    "output_text": lambda text: _content([{"type": "output_text", "text": text, "annotations": []}]),
    "thinking_part": lambda text: _content([
        {"type": "thinking", "thinking": [{"type": "text", "text": "<action>?</action>"}]},
        {"type": "text", "text": text},
    ]),
    "responses": lambda text: {"body": {"choices": None, "status": "completed", "error": None, "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I see."}]},
        {"type": "message", "content": [{"type": "output_text", "text": text}]},
    ]}},
    "responses_failed": lambda text: {"body": {"choices": None, "status": "failed", "output": []}},
    "choice_error": _end("error", error={"code": 502, "message": "upstream died"}),
    "error_beside": lambda text: {"body": {"error": {"message": "upstream died", "code": 502}}},
    "error_too_long": lambda text: {"body": {"choices": None, "error": {"message": "The prompt is too long."}}},
    "sensitive": _end("sensitive", message={"content": ""}),
    "abort": _end("abort"), "error": _end("error"), "network_error": _end("network_error"),
    "no_resource": _end("insufficient_system_resource"), "no_reason": _end(None),
    "end_turn": _end("end_turn"), "window": _end("model_context_window_exceeded"),
    "repetition": _end("repetition"),
}  # fmt: skip
"""Answers with status 200: kind -> changes of the message, the choice or the body."""


def write_events(completion: dict[str, Any]) -> bytes:
    """Return a chat completion as server-sent events: two pieces, the end, and the usage."""
    (choice,), usage = completion["choices"], completion["usage"]
    head = {**completion, "object": "chat.completion.chunk", "usage": None}
    text = choice["message"].get("content")
    pieces = [text[:9], text[9:]] if isinstance(text, str) else [text]
    first = {"index": 0, "delta": {**choice["message"], "content": pieces[0]}, "finish_reason": None}
    chunks = [
        {**head, "choices": [first]},
        *({**head, "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces[1:]),
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**head, "choices": [], "usage": {**usage, "total_tokens": sum(usage.values())}},
    ]
    datas = (*(json.dumps(each).encode() for each in chunks), b"[DONE]")
    return b"".join(b"data: %s\n\n" % data for data in datas)


def choose_action(messages: list[dict[str, Any]], digest: str) -> str:
    """Return a reply in the prompt's form with a legal action that the digest chooses."""
    texts = [_text(message["content"]) for message in messages if message["role"] == "user"]
    listed = re.findall(r"Legal actions: (.*)", texts[-1])
    if not listed:
        return f"I see nothing to do. ({digest[:8]})"
    legal = listed[-1].rstrip(".").split(", ")
    picks = [legal[int(digest[place : place + 4], 16) % len(legal)] for place in range(16, 36, 4)]
    if "<plan>" in texts[0]:
        return f"I go. <plan>{'; '.join(picks)}</plan>"
    if "JSON object" in texts[0]:
        return json.dumps({"thoughts": "I choose.", "action": picks[0]})
    return f"I choose {digest[:4]}. <action>{picks[0]}</action>"


@functools.lru_cache(256)
def decode_url(url: str) -> tuple[np.ndarray, str]:
    """Return the pixels of a PNG data URL, `[H, W, 3] uint8`, and their hash."""
    front, _, data = url.partition(",")
    if front != "data:image/png;base64":
        raise ValueError(f"not a PNG data URL: {front[:40]}")
    with Image.open(io.BytesIO(base64.b64decode(data, validate=True))) as picture:
        if (picture.format, picture.mode) != ("PNG", "RGB"):
            raise ValueError(f"not an RGB PNG: {picture.format}, {picture.mode}")
        image = np.asarray(picture).copy()
        return image, hash_pixels(image)


def hash_pixels(image: np.ndarray) -> str:
    """Return a hash of shape and pixels."""
    return hashlib.sha256(repr(image.shape).encode() + np.ascontiguousarray(image).tobytes()).hexdigest()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _error(message: str, code: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "error", "code": code, "param": param}}


def _head(status: int, length: int, extra: Mapping[str, str] | None = None, kind: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status} {WORDS.get(status, 'Status')}", f"Content-Type: {kind}"]
    lines += [f"{name}: {value}" for name, value in (extra or {}).items()]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


async def _trickle(writer: asyncio.StreamWriter, pieces: list[bytes], seconds: float) -> None:
    for place, piece in enumerate(pieces):
        await asyncio.sleep(seconds if place else 0)
        writer.write(piece)
        await writer.drain()


async def _send(writer: asyncio.StreamWriter, status: int, body: Any, extra: Mapping[str, str] | None = None) -> bool:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    writer.write(_head(status, len(data), extra) + data)
    await writer.drain()
    return True


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    with FaultServer(latency=parser.parse_args().latency, keep=False) as server:
        print(server.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
