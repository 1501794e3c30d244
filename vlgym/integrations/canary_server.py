"""A recording endpoint: answers canaries, and compares arriving pictures with the environment's.

Point a trainer or a client at its address and let it play `vlgym/Canary*` episodes of the split. It
listens on loopback only, and knows an episode by its pictures, no two of which are alike.
"""

import base64
import io
import json
import re
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np
from PIL import Image as PILImage

from ..env.seeding import SPLITS, episode_seed
from ..errors import UserError, check_choice, check_number
from ..parsers import get_parser
from ..play.trajectory import hash_picture
from ..registry.making import make
from ..types import Image
from .canary import CANARIES, find_chance

HOST = "127.0.0.1"
LONGEST_REQUEST = 64_000_000  # bytes

_TURN = re.compile(r"Picture (\d+) of (\d+)\.")
_LEGAL = re.compile(r"Legal actions: (.*)")
_FORMATS = ("PNG", "JPEG", "WEBP")
Episode = tuple[str, int]  # id and number


class CanaryServer:
    """Serves chat completions in a thread, as a context manager.

    A request is in order if its pictures are the last ones of an episode up to the present turn, in
    order, pixel by pixel; at least as many as the card's history holds.

    Args:
        episodes: number of episodes of each canary that it knows, from the first.
        port: 0 takes a free one.
        on_request: called with the number of a request and its problem, empty where there is none.

    Raises:
        UserError: an argument is out of range, or the port is in use.
    """

    def __init__(
        self, split: str = "train", episodes: int = 64, port: int = 0, *, env_ids: Sequence[str] = CANARIES,
        on_request: Callable[[int, str], None] = lambda number, problem: None,
    ) -> None:  # fmt: skip
        check_choice("--split", split, SPLITS)
        check_number("--episodes", episodes, 1, 10_000)
        check_number("--listen", port, 0, 65535)

        # All episodes are drawn before the first request.
        self.problems: list[str] = []  # a line for each request that is not in order
        self.requests = self.others = 0  # with a canary's text, and chat requests without one
        self._finished: dict[str, set[int]] = {env_id: set() for env_id in env_ids}
        self._on_request, self._lock = on_request, threading.Lock()
        self._places: dict[str, tuple[Episode, int]] = {}  # by a picture's hash: its episode and turn
        self._answers: dict[Episode, str] = {}
        self._due: dict[str, int] = {}
        for env_id in env_ids:
            self._draw(env_id, split, episodes)
        try:
            self._server = _Server((HOST, port), _make_handler(self))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"--listen {port}: {reason}. Name another port, or 0.") from None
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://{HOST}:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def finished(self) -> dict[str, int]:
        """Number of each canary's episodes whose last turn arrived in order."""
        return {env_id: len(numbers) for env_id, numbers in self._finished.items()}

    @property
    def passed(self) -> bool:
        """True if all requests were in order, and every canary was played to its end."""
        return not self.problems and all(self._finished.values())

    def answer(self, body: Any) -> str:
        """Note a chat request and return the right reply to it."""
        messages = body["messages"]
        texts, urls = read_parts(messages)
        turns, legal = _TURN.findall(texts), _LEGAL.findall(texts)
        if not turns or not legal:
            with self._lock:
                self.others += 1
            return "yes"

        # The pictures name the episode: no two of them are alike.
        turn, last = (int(number) for number in turns[-1])
        pictures = [_decode(url) for url in urls]
        places = [None if each is None else self._places.get(hash_picture(each)) for each in pictures]
        episode = next((place[0] for place in reversed(places) if place), None)
        action = legal[-1].split(", ")[0]
        if episode is None:
            sizes = ", ".join("unreadable" if each is None else _size(each) for each in pictures)
            problem = f"no picture that an environment drew; pictures: {sizes or 'none'}"
            return self._note(f"turn {turn}: {problem}", action)
        if turn == last:
            action = self._answers[episode]

        # The last pictures up to this turn have to be there, in their order.
        numbers = [place[1] if place and place[0] == episode else None for place in places]
        count = max(len(numbers), min(turn, self._due[episode[0]]))
        due = list(range(turn - count + 1, turn + 1))
        if numbers == due:
            if turn == last:
                self._finished[episode[0]].add(episode[1])
            return self._note("", action)
        arrived = ", ".join(
            str(number) if number else "unreadable" if image is None else f"changed ({_size(image)})"
            for number, image in zip(numbers, pictures, strict=True)
        )
        wanted = ", ".join(str(number) for number in due if number > 0)
        return self._note(f"{episode[0]}, turn {turn}: pictures due {wanted}; arrived {arrived}", action)

    def _note(self, problem: str, action: str) -> str:
        with self._lock:
            self.requests += 1
            if problem:
                self.problems.append(problem)
            self._on_request(self.requests, problem)
        return get_parser("tag").format([action])

    def _draw(self, env_id: str, split: str, episodes: int) -> None:
        find_chance(env_id)
        env: Any = make(env_id)
        self._due[env_id] = env.vlgym_spec.history_images
        try:
            for number in range(episodes):
                observation, _ = env.reset(seed=episode_seed(env_id, split, number))
                over, turn = False, 1
                while not over:
                    self._places[hash_picture(observation["image"])] = (env_id, number), turn
                    self._answers[env_id, number] = env.oracle()
                    observation, _, over, _, _ = env.step(env.solve())
                    turn += 1
        finally:
            env.close()


def read_parts(messages: Any) -> tuple[str, list[str]]:
    """Return the text of the user's turns, and the addresses of all pictures, in order."""
    texts, urls = [], []
    for message in messages:
        content = message.get("content") or ""
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for part in content:
            if part.get("type") == "image_url":
                url = part["image_url"]
                urls.append(url["url"] if isinstance(url, dict) else url)
            elif part.get("type") == "text" and message.get("role") in ("user", "tool"):
                texts.append(part["text"])
    return "\n".join(texts), urls


def _decode(url: str) -> Image | None:
    """Return the pixels of a data URL, `[H, W, 3] uint8`; `None` where it holds no picture."""
    try:
        data = base64.b64decode(url.partition(";base64,")[2], validate=True)
        with PILImage.open(io.BytesIO(data), formats=_FORMATS) as picture:
            return np.asarray(picture.convert("RGB"))
    except (ValueError, OSError, PILImage.DecompressionBombError):
        return None


def _size(image: Image) -> str:
    return f"{image.shape[0]} x {image.shape[1]}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that leaves before its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _make_handler(server: CanaryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_GET(self) -> None:
            if self.path.partition("?")[0].endswith("/models"):
                self._send(200, {"object": "list", "data": [{"id": "canary", "object": "model"}]})
            else:
                self._send(404, _error("not found"))

        def do_POST(self) -> None:
            # The length comes first: a body that is too long is not read.
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > LONGEST_REQUEST:
                self.close_connection = True
                self._send(413, _error(f"Content-Length must be a number up to {LONGEST_REQUEST}"))
                return
            data = self.rfile.read(int(length))

            # A request that is none gets a status, never a traceback.
            if not self.path.partition("?")[0].endswith("/chat/completions"):
                self._send(404, _error("only /v1/chat/completions is served"))
                return
            try:
                body = json.loads(data)
                if body.get("stream"):
                    self._send(400, _error("stream is not served"))
                    return
                text = server.answer(body)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                self._send(400, _error(f"no chat request: {type(error).__name__}"))
                return
            self._send(200, _completion(text, body))

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler


def _completion(text: str, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-canary", "object": "chat.completion", "created": 0,
        "model": str(body.get("model", "canary")),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
