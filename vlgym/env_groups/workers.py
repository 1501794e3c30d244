"""Environments spread over workers, several in each, and the replacement of a lost worker.

A worker that ends, writes nonsense or does not answer in time is given up. Another one takes its
place: its environments are made again, their episodes are replayed from seed and replies, which is
exact, and the open requests are sent again. Every request has one answer, so nothing is lost and
nothing counts twice. A request that no worker survives ends the run.

It knows nothing of sockets or Ray: a `Link` is the way to one worker.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import FailedError, UserError, plain_line
from ..play.remote import RemoteEnv
from .answers import check_answer
from .host import own_version
from .wire import NonsenseError, pack, packed_alike

Tell = Callable[[str], object]
LIMIT = 120.0  # seconds for an answer: an engine or a browser may have to start
START = 300.0  # seconds for a worker's first answer: it may wait for a processor, or for a node
MOST_LOST = 3  # workers that may be lost over one request


class LostError(Exception):
    """A worker has ended, wrote nonsense or did not answer in time; the text says which."""


class EnvError(Exception):
    """An environment raised an error in its worker; the class has the name of that there."""


class Link(Protocol):
    """Connection to one worker, which answers requests in their order."""

    name: str

    def send(self, frame: bytes) -> None:
        """Send a request at once, or with `flush`; `receive` notices that a worker has ended."""

    def flush(self) -> None:
        """Send the requests that were held back."""

    def receive(self, limit: float) -> Any:
        """Return the next answer.

        Raises:
            LostError: there is none within `limit` seconds, or none will come.
            FailedError: no worker will start.
        """

    def end(self) -> None:
        """End the worker by force."""

    def finish(self) -> None:
        """Ask the worker to close its environments and end."""


@dataclass(eq=False)
class Ticket:
    request: dict[str, Any]
    frame: bytes
    lost: int = 0
    answer: dict[str, Any] | None = None


@dataclass(eq=False)
class _RemoteEnv:
    """The requests and answers from which a worker can restore an environment."""

    number: int
    worker: _Worker
    made: dict[str, Any] | None = None  # the request that made it, once it is answered
    start: dict[str, Any] | None = None  # the reset that began the open episode
    steps: list[str] = field(default_factory=list)
    last: dict[str, Any] | None = None  # the last answer, without its picture
    shape: tuple[int, ...] | None = None  # of its pictures, from the first one on


@dataclass(eq=False)
class _Worker:
    index: int
    link: Link
    heard: bool = False
    waiting: deque[Ticket] = field(default_factory=deque)  # requests without an answer, in order
    places: list[_RemoteEnv] = field(default_factory=list)


class WorkerGroup:
    """Environments on several workers; each new one goes to the worker that has the fewest.

    Args:
        start: starts worker `index` and returns the way to it; called again where it was lost.
        workers: most workers; each is started when an environment needs it.
        tell: called with a line for each worker that is given up.
    """

    def __init__(
        self, start: Callable[[int], Link], workers: int, *, limit: float = LIMIT, tell: Tell = lambda line: None
    ) -> None:
        self._start, self.workers, self.limit, self.tell, self.lost = start, workers, limit, tell, 0
        self._workers: list[_Worker] = []
        self._places: dict[int, _RemoteEnv] = {}
        self._numbers, self._names = itertools.count(1), itertools.count(1)
        self._closed = False

    def make(self, env_id: str, **arguments: Any) -> Any:
        """Make a `RemoteEnv` in a worker; it is there when it is first used."""
        return RemoteEnv(self, env_id, arguments)

    def close(self) -> None:
        self._closed = True
        for worker in self._workers:
            worker.link.finish()
        for worker in self._workers:
            worker.link.end()

    def open(self) -> int:
        """Find a place for an environment, and return its number."""
        worker = min(self._workers, key=lambda each: len(each.places), default=None)
        if worker is None or (worker.places and len(self._workers) < self.workers):
            worker = _Worker(len(self._workers), self._start(len(self._workers)))
            self._workers.append(worker)
        place = _RemoteEnv(next(self._names), worker)
        worker.places.append(place)
        self._places[place.number] = place
        return place.number

    def post(self, number: int, do: str, **fields: Any) -> Ticket:
        """Send a request for an environment."""
        if self._closed:
            raise UserError("The workers of these environments were closed.")
        worker = self._places[number].worker
        request = {"n": next(self._numbers), "env": number, "do": do, **fields}
        ticket = Ticket(request, pack(request))
        worker.waiting.append(ticket)
        worker.link.send(ticket.frame)
        return ticket

    def wait(self, ticket: Ticket) -> Any:
        """Wait for an answer; meanwhile all workers work.

        Raises:
            UserError, EnvError: what the environment raised.
            FailedError: worker after worker was lost over the request, or none starts.
        """
        for worker in self._workers:
            worker.link.flush()
        worker = self._places[ticket.request["env"]].worker
        while ticket.answer is None:
            try:
                self._settle(worker, self._receive(worker, worker.waiting[0].request))
            except LostError as loss:
                self._replace(worker, str(loss))
        if "error" in ticket.answer:
            raise _as_exception(ticket.answer["error"])
        return ticket.answer["value"]

    def drop(self, number: int) -> None:
        """Close an environment; one whose worker is lost is closed with it."""
        if self._closed:
            return
        try:
            self.wait(self.post(number, "close"))
        finally:
            place = self._places.pop(number)
            place.worker.places.remove(place)

    def _receive(self, worker: _Worker, request: dict[str, Any]) -> dict[str, Any]:
        """Return the next answer, which must be that to a request."""
        try:
            answer = worker.link.receive(self.limit if worker.heard else max(self.limit, START))
            worker.heard = True
            if not isinstance(answer, dict) or (answer.get("n"), answer.get("env")) != (request["n"], request["env"]):
                raise LostError("it answered another request than it was asked")
            check_answer(answer, request["do"], self._places[request["env"]].shape)
        except NonsenseError as error:
            raise LostError(f"it wrote something that is no answer: {error}") from None
        except FailedError:
            self.close()
            raise
        return answer

    def _settle(self, worker: _Worker, answer: dict[str, Any]) -> None:
        """Give the next answer to its request, and keep what a restoration needs."""
        ticket = worker.waiting.popleft()
        ticket.answer = answer
        place, do = self._places[ticket.request["env"]], ticket.request["do"]

        # A broken environment will be closed; every other answer is a step of its history.
        if "error" in answer:
            if do in ("make", "reset", "step"):
                place.start = place.last = None
        elif do == "make":
            version, own = answer["value"]["vlgym"], own_version()
            if version != own:
                raise UserError(
                    f"The worker {worker.link.name} has vlgym {version}, and this process {own}; install the same "
                    "version there."
                )
            place.made = ticket.request
        elif do == "reset":
            place.start, place.steps, place.last = ticket.request, [], _without_picture(answer["value"])
            place.shape = answer["value"]["observation"]["image"].shape
        elif do == "step":
            place.steps.append(ticket.request["text"])
            place.last = _without_picture(answer["value"])

    def _replace(self, worker: _Worker, why: str) -> None:
        """Put a new worker in the place of a lost one, with all its environments."""
        while True:
            if self._closed:
                raise UserError("The workers of these environments were closed.")
            self.lost += 1
            head, name = worker.waiting[0], worker.link.name
            head.lost += 1
            worker.link.end()

            # The first request that is open may be the reason.
            if head.lost > MOST_LOST:
                env_id = (self._places[head.request["env"]].made or head.request).get("id")
                self.close()
                raise FailedError(
                    f"{head.lost} workers in a row were lost over one request to {env_id} ({head.request['do']}); "
                    f"the last one, {name}: {why}. Play it alone: vlgym play {env_id}"
                )
            episodes = sum(place.start is not None for place in worker.places)
            line = f"environment {name} was given up: {why}. A new one plays its {episodes} open episodes"
            self.tell(plain_line(f"{line} up to where they stood.", 2000))

            # The new one may be lost, too.
            try:
                worker.link, worker.heard = self._start(worker.index), False
                self._restore(worker)
                return
            except LostError as loss:
                why = str(loss)

    def _restore(self, worker: _Worker) -> None:
        """Replay a lost worker's episodes in its successor, and send the open requests again."""
        for ticket in [each for each in worker.waiting if each.request["do"] == "close"]:
            worker.waiting.remove(ticket)
            ticket.answer = {"value": None}
            place = self._places[ticket.request["env"]]
            place.made = place.start = None

        # An environment's history: it was made, its episode began, it had replies.
        replays = []
        for place in worker.places:
            history = [] if place.made is None else [place.made]
            if place.start is not None:
                history += [place.start, *({"do": "step", "text": text} for text in place.steps)]
            replays.append([{**request, "env": place.number} for request in history])
        answers: dict[int, list[dict[str, Any]]] = {place.number: [] for place in worker.places}

        # One request of each environment at a time: each has the time limit of one answer.
        for depth, row in enumerate(itertools.zip_longest(*replays), 1):
            requests = [{**request, "n": -depth} for request in row if request is not None]
            for request in requests:
                worker.link.send(pack(request))
            for request in requests:
                answers[request["env"]].append(self._receive(worker, request))

        # The open requests of an episode that came out otherwise fail.
        for place in worker.places:
            if place.start is None or _came_out(place, answers[place.number]):
                continue
            place.start = place.last = None
            line = "the episode came out otherwise when it was played again after its worker was lost"
            for ticket in [each for each in worker.waiting if each.request["env"] == place.number]:
                worker.waiting.remove(ticket)
                ticket.answer = {"error": {"type": "EnvError", "user": False, "line": line}}
        for ticket in worker.waiting:
            worker.link.send(ticket.frame)


def _came_out(place: _RemoteEnv, answers: Sequence[dict[str, Any]]) -> bool:
    """True if a replayed episode stands where it stood; pictures are not compared."""
    if any("error" in answer for answer in answers) or place.last is None:
        return False
    return packed_alike(_without_picture(answers[-1]["value"]), place.last)


def _without_picture(value: dict[str, Any]) -> dict[str, Any]:
    shown = {name: item for name, item in value["observation"].items() if name != "image"}
    return {**value, "observation": shown}


def _as_exception(error: dict[str, Any]) -> Exception:
    line, name = plain_line(error["line"], 2000), error["type"]
    if error["user"]:
        return UserError(line)
    return type(name if name.isidentifier() and len(name) <= 80 else "EnvError", (EnvError,), {})(line)
