"""Environments spread over workers, each of which holds several, and what happens when a worker is lost.

A worker that ends, writes nonsense or does not answer in time is given up. Another one takes its place: its
environments are made again, their episodes are played up to where they stood from seed and replies, which is exact
because an episode is a function of those, and the requests that were under way are sent again. Every request has one
answer, so nothing is lost and nothing counts twice. A request that no worker survives ends the run.

It knows nothing of sockets or Ray: a `Link` is the way to one worker.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import FailedError, UserError, plain_line
from ..remote import RemoteEnv
from .host import own_version
from .wire import Buffer, pack, same

LIMIT = 120.0
"""Seconds for an answer: an engine or a browser may have to start."""

START = 300.0
"""Seconds for a worker's first answer: it may wait for a free processor, perhaps for a node."""

PATIENCE = 3
"""Workers that may be lost over one request."""


class LostError(Exception):
    """A worker has ended, wrote nonsense or did not answer in time; the text says which."""


class EnvError(Exception):
    """What an environment raised in its worker; its class there gives the name of the class here."""


class Link(Protocol):
    """The way to one worker, which answers requests in their order.

    Attributes:
        name: of the worker, for messages.
    """

    name: str

    def send(self, frames: Sequence[Sequence[Buffer]]) -> None:
        """Send requests without waiting for the worker. One that has ended is noticed by `receive`."""

    def receive(self, limit: float) -> Any:
        """Return the next answer; `LostError` where there is none within `limit` seconds, or none will come."""

    def end(self) -> None:
        """End the worker by force."""

    def finish(self) -> None:
        """Ask the worker to close its environments and end."""


@dataclass(eq=False)
class Ticket:
    """A request that is under way or answered.

    Attributes:
        number: of the request.
        env: the environment's number.
        said: the request.
        frame: the same as it is sent.
        lost: workers that were lost over it.
        answer: the answer, once it is there.
    """

    number: int
    env: int
    said: dict[str, Any]
    frame: Sequence[Buffer] = ()
    lost: int = 0
    answer: dict[str, Any] | None = None


@dataclass(eq=False)
class _Place:
    """What a worker must know to hold an environment, all of it from answers.

    Attributes:
        made: the request that made it, once it is answered.
        start: the reset that began the open episode.
        steps: replies since.
        last: the last answer, without its picture.
    """

    number: int
    worker: _Worker
    made: dict[str, Any] | None = None
    start: dict[str, Any] | None = None
    steps: list[str] = field(default_factory=list)
    last: dict[str, Any] | None = None


@dataclass(eq=False)
class _Worker:
    """A worker, and what it was asked and has not answered yet, in order; `unsent` is the end of that."""

    index: int
    link: Link | None = None
    pid: int | None = None
    heard: bool = False
    waiting: deque[Ticket] = field(default_factory=deque)
    unsent: list[Ticket] = field(default_factory=list)
    places: list[_Place] = field(default_factory=list)


class WorkerGroup:
    """Environments on several workers; each new one goes to the worker that has the fewest.

    Args:
        start: starts worker `index` and returns the way to it; called again where it was lost.
        workers: most workers; they are started when they are needed.
        limit: seconds for an answer.
        tell: called with a line for each worker that is given up.

    Attributes:
        lost: workers given up so far.
    """

    def __init__(
        self,
        start: Callable[[int], Link],
        workers: int,
        *,
        limit: float = LIMIT,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        self._start, self.limit, self.tell, self.lost = start, limit, tell, 0
        self._workers = [_Worker(index) for index in range(workers)]
        self._places: dict[int, _Place] = {}
        self._numbers, self._names = itertools.count(1), itertools.count(1)
        self._closed = False

    def make(self, env_id: str, **arguments: Any) -> RemoteEnv:
        """Make an environment in a worker; it is there when it is first used."""
        return RemoteEnv(self, env_id, arguments)

    @property
    def pids(self) -> list[int]:
        """Processes of the workers that hold an environment, each on its own machine."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def close(self) -> None:
        """Close all environments and end all workers."""
        self._closed = True
        links = [worker.link for worker in self._workers if worker.link is not None]
        for worker in self._workers:
            worker.link = None
            worker.waiting.clear()
            worker.unsent.clear()
        for link in links:
            link.finish()
        for link in links:
            link.end()

    # ---- what a RemoteEnv asks for ---------------------------------------------------------------------------------

    def open(self) -> int:
        """Find a place for an environment, and return its number."""
        worker = min(self._workers, key=lambda each: len(each.places))
        place = _Place(next(self._names), worker)
        worker.places.append(place)
        self._places[place.number] = place
        return place.number

    def post(self, number: int, do: str, **said: Any) -> Ticket:
        """Queue a request for an environment; it is sent when anybody waits."""
        if self._closed:
            raise UserError("The workers of these environments were closed.")
        place = self._places[number]
        count = next(self._numbers)
        ticket = Ticket(count, number, {"n": count, "env": number, "do": do, **said})
        ticket.frame = pack(ticket.said)  # an argument that cannot be sent is told now
        place.worker.waiting.append(ticket)
        place.worker.unsent.append(ticket)
        return ticket

    def wait(self, ticket: Ticket) -> Any:
        """Wait for an answer; meanwhile all workers work.

        Raises:
            UserError, EnvError: what the environment raised.
            FailedError: worker after worker was lost over the request.
        """
        for worker in self._workers:
            self._flush(worker)
        worker = self._places[ticket.env].worker
        while ticket.answer is None:
            try:
                self._settle(worker, self._receive(worker))
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

    # ---- private ---------------------------------------------------------------------------------------------------

    def _flush(self, worker: _Worker) -> None:
        if worker.unsent:
            if worker.link is None:
                worker.link = self._start(worker.index)
            worker.link.send([ticket.frame for ticket in worker.unsent])
            worker.unsent.clear()

    def _receive(self, worker: _Worker) -> dict[str, Any]:
        if worker.link is None:
            raise LostError("it was not started")
        answer = worker.link.receive(self.limit if worker.heard else max(self.limit, START))
        worker.heard = True
        if isinstance(answer, dict) and isinstance(answer.get("value"), dict) and "pid" in answer["value"]:
            worker.pid = int(answer["value"]["pid"])
        if not isinstance(answer, dict) or not ({"value"} < answer.keys() or {"error"} < answer.keys()):
            raise LostError("it wrote something that is no answer")
        return answer

    def _settle(self, worker: _Worker, answer: dict[str, Any]) -> None:
        """Give the next answer to the request that it belongs to."""
        ticket = worker.waiting[0]
        if (answer.get("n"), answer.get("env")) != (ticket.number, ticket.env):
            raise LostError("it answered another request than it was asked")
        _check(ticket.said["do"], answer)
        worker.waiting.popleft()
        ticket.answer = answer
        place, do = self._places[ticket.env], ticket.said["do"]
        if "error" in answer:
            if do in ("make", "reset", "step"):
                place.start, place.last = None, None  # it is broken, and will be closed
        elif do == "make":
            if answer["value"]["vlgym"] != (own := own_version()):
                raise UserError(
                    f"The worker {worker.link.name if worker.link else ''} has vlgym {answer['value']['vlgym']}, and "
                    f"this process {own}; install the same version there."
                )
            place.made = ticket.said
        elif do == "reset":
            place.start, place.steps, place.last = ticket.said, [], _without_picture(answer["value"])
        elif do == "step":
            place.steps.append(ticket.said["text"])
            place.last = _without_picture(answer["value"])

    def _replace(self, worker: _Worker, why: str) -> None:
        """Put a new worker in the place of a lost one, with everything that it held."""
        while True:
            self.lost += 1
            head = worker.waiting[0]
            head.lost += 1
            name = worker.link.name if worker.link is not None else f"worker {worker.index}"
            if worker.link is not None:
                worker.link.end()
                worker.link, worker.pid, worker.heard = None, None, False
            if head.lost > PATIENCE:
                asked = self._places[head.env].made or head.said
                self.close()
                raise FailedError(
                    f"{head.lost} workers in a row were lost over one request to {asked.get('id')} "
                    f"({head.said['do']}); the last one, {name}: {why}. Play it alone: vlgym play {asked.get('id')}"
                )
            episodes = sum(place.start is not None for place in worker.places)
            self.tell(
                f"environment {name} was given up: {why}. A new one plays its {episodes} open episodes up to where "
                "they stood."
            )
            try:
                worker.link = self._start(worker.index)
                self._restore(worker)
                return
            except LostError as loss:
                why = str(loss)

    def _restore(self, worker: _Worker) -> None:
        """Make a new worker's environments, play their episodes up to where they stood, and ask again what was asked.

        Raises:
            LostError: that worker was lost, too.
        """
        for ticket in [each for each in worker.waiting if each.said["do"] == "close"]:
            worker.waiting.remove(ticket)
            ticket.answer = {"value": None}
            self._places[ticket.env].made = self._places[ticket.env].start = None
        if (link := worker.link) is None:
            raise LostError("it was not started")
        requests: list[dict[str, Any]] = []
        for place in worker.places:
            told = [] if place.made is None else [place.made]
            if place.start is not None:
                told += [place.start, *({"do": "step", "text": text} for text in place.steps)]
            requests += [{**said, "env": place.number, "again": True} for said in told]
        for count, request in enumerate(requests, 1):
            request["n"] = -count
        link.send([pack(request) for request in requests])
        answers: dict[int, list[dict[str, Any]]] = {}
        for request in requests:
            answer = self._receive(worker)
            if (answer.get("n"), answer.get("env")) != (request["n"], request["env"]):
                raise LostError("it answered another request than it was asked")
            answers.setdefault(request["env"], []).append(answer)
        for place in worker.places:
            if place.start is not None and not _came_out(place, answers[place.number]):
                self._spoil(worker, place)
        worker.unsent.clear()
        link.send([ticket.frame for ticket in worker.waiting])

    def _spoil(self, worker: _Worker, place: _Place) -> None:
        """Let the open requests of an episode fail that cannot be gone on with."""
        place.start, place.last = None, None
        line = "the episode came out otherwise when it was played again after its worker was lost"
        for ticket in [each for each in worker.waiting if each.env == place.number]:
            worker.waiting.remove(ticket)
            ticket.answer = {"error": {"type": "EnvError", "user": False, "line": line}}


def _came_out(place: _Place, answers: Sequence[dict[str, Any]]) -> bool:
    """Whether an episode that was played again stands where it stood; pictures are not compared."""
    if any("error" in answer for answer in answers) or place.last is None:
        return False
    return same(_without_picture(answers[-1]["value"]), place.last)


def _check(do: str, answer: dict[str, Any]) -> None:
    """Check that an answer has what its reader takes from it.

    Raises:
        LostError: it has not.
    """
    value: Any = answer.get("value")
    fine = True
    if "error" in answer:
        error = answer["error"]
        fine = isinstance(error, dict) and isinstance(error.get("type"), str) and isinstance(error.get("line"), str)
    elif do in ("reset", "step"):
        wanted = {"observation", "info", "system"} | ({"reward", "terminated", "truncated"} if do == "step" else set())
        fine = isinstance(value, dict) and wanted <= value.keys()
        fine = fine and isinstance(value["observation"], dict) and {"image", "text"} <= value["observation"].keys()
        fine = fine and isinstance(value["info"], dict) and isinstance(value["info"].get("vlgym"), dict)
        fine = fine and isinstance(value["info"]["vlgym"].get("legal_actions"), list)
    elif do == "make":
        fine = isinstance(value, dict) and {"spec", "parser", "image_size", "vlgym", "pid"} <= value.keys()
    if not fine:
        raise LostError("it wrote something that is no answer")


def _without_picture(value: dict[str, Any]) -> dict[str, Any]:
    shown = {name: item for name, item in value["observation"].items() if name != "image"}
    return {**value, "observation": shown}


def _as_exception(said: dict[str, Any]) -> Exception:
    if said.get("user"):
        return UserError(said["line"])
    name = said["type"]
    kind = type(name if name.isidentifier() and len(name) <= 80 else "EnvError", (EnvError,), {})
    return kind(plain_line(said["line"], 2000))
