"""Workers behind TCP: `--envs tcp://HOST:PORT`, and the server of `vlgym serve --workers N`.

A connection begins with a proof that the client holds the token. The token is never sent.

    server   GREETING and 32 random bytes
    client   ASK or WORK, 32 random bytes, and its proof
    server   TAKEN, WRONG_TOKEN or FULL, the number of its workers in two bytes, and its proof

A proof is the HMAC-SHA256, under the token, of the prover's name and all bytes before it. After
WORK and TAKEN the connection belongs to a worker, as a socket of `processes` does. Nothing is
encrypted: on a network that is not yours, put it into a tunnel (`ssh -L`).
"""

import hashlib
import hmac
import ipaddress
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..errors import UserError
from .processes import LEAVES_S, SocketLink, end_worker, start_worker
from .wire import read_bytes
from .workers import LostError

TOKEN = "VLGYM_TOKEN"  # in the environment: a command line would show it to every user
GREETING, NONCE, DIGEST_BYTES = b"vlgym workers 2\n", 32, 32
CLIENT, SERVER = b"client\n", b"server\n"
ASK, WORK = b"?", b"w"
TAKEN, WRONG_TOKEN, FULL = b"+", b"-", b"~"

HANDSHAKE_S = 10.0  # for both proofs
_PATIENCE_S = 20.0  # a server may have to start again, and a worker to leave
_PAUSE_S = 0.5
TCP_WORKER_COMMAND = (sys.executable, "-m", "vlgym.env_groups.worker", "tcp")
# Connections without a proof of the token; one more ends the oldest of the host with the most.
MOST_WAITING = 64
_GONE = getattr(select, "POLLRDHUP", select.POLLHUP)
_LOOK_MS = 100
_WAIT_S = 2.0  # for a worker whose learner has just left


class TcpLink(SocketLink):
    """Connection to a worker behind TCP; `UserError` where one of `places` refuses the token."""

    def __init__(self, index: int, places: Sequence[str], token: str) -> None:
        self._why, end = "", time.monotonic() + _PATIENCE_S
        while True:
            for place in places:
                try:
                    connection, _ = _open(place, WORK, token)
                except OSError as error:
                    self._why = f"{place}: {_explain(error)}"
                else:
                    super().__init__(connection, f"worker {index} (tcp://{place})")
                    self._why = ""
                    return

            # Out of patience: `receive` tells the group of a lost worker.
            if time.monotonic() > end:
                super().__init__(socket.socket(), f"worker {index} (tcp://{places[0]})")
                return
            time.sleep(_PAUSE_S)

    def receive(self, limit: float) -> Any:
        """See `Link`; a server that could not be reached is a lost worker."""
        if self._why:
            raise LostError(self._why)
        return super().receive(limit)


def find_workers(places: Sequence[str], token: str) -> tuple[Callable[[int], TcpLink], int]:
    """Return what starts workers on the servers in turn, and their number; or a `UserError`."""
    counts = {}
    for place in places:
        try:
            connection, counts[place] = _open(place, ASK, token)
        except OSError as error:
            raise UserError(
                f"--envs tcp://{place}: {_explain(error)}. Start `vlgym serve --workers N --port PORT` there."
            ) from None
        connection.close()
    turns = [place for turn in range(max(counts.values())) for place in counts if turn < counts[place]]

    def start(index: int) -> TcpLink:
        own = turns[index % len(turns)]
        return TcpLink(index, [own, *(place for place in counts if place != own)], token)

    return start, len(turns)


def read_token() -> str:
    """Return the servers' token; a `UserError` says that the environment has none."""
    if not (token := os.environ.get(TOKEN, "")):
        raise UserError(
            f"--envs tcp:// needs the token that `vlgym serve` prints, in the environment variable {TOKEN}."
        )
    return token


def prove(transcript: bytes, token: str) -> bytes:
    """Return a proof that a side has the token; the transcript begins with `CLIENT` or `SERVER`."""
    return hmac.digest(token.encode("utf-8", "replace"), transcript, hashlib.sha256)


def keep_alive(connection: socket.socket) -> None:
    """Send small frames at once, and notice within minutes that the other machine is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        with suppress(AttributeError):  # Linux
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _open(place: str, purpose: bytes, token: str) -> tuple[socket.socket, int]:
    """Connect to a server and prove the token; return the connection and its number of workers."""
    host, _, port = place.rpartition(":")
    end = time.monotonic() + HANDSHAKE_S
    try:
        connection = socket.create_connection((host, int(port)), timeout=HANDSHAKE_S)
    except (UnicodeError, OverflowError) as error:
        raise OSError(str(error)) from None
    try:
        # Our proof is of the server's fresh bytes and ours.
        keep_alive(connection)
        hello = bytes(read_bytes(connection, len(GREETING) + NONCE, end))
        if not hello.startswith(GREETING):
            raise OSError("it speaks another protocol or version")
        request = purpose + os.urandom(NONCE)
        request += prove(CLIENT + hello + request, token)
        connection.sendall(request)

        # So is the server's: nothing but the handshake is sent to one that does not hold the token.
        answer = bytes(read_bytes(connection, 3, end))
        if answer[:1] == WRONG_TOKEN:
            raise UserError(f"tcp://{place} does not take the token in {TOKEN}.")
        proof = bytes(read_bytes(connection, DIGEST_BYTES, end))
        if not hmac.compare_digest(proof, prove(SERVER + hello + request + answer, token)):
            raise UserError(f"tcp://{place} does not prove the token in {TOKEN}; ask who runs that server.")
        if answer[:1] != TAKEN:
            raise OSError("all its workers are taken")
        return connection, int.from_bytes(answer[1:], "little")
    except BaseException as error:
        connection.close()
        if isinstance(error, EOFError):
            raise OSError("it closed the connection") from None
        raise


def _explain(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


class WorkerServer:
    """Listens, and starts a worker for each connection that proves the token.

    It never reads an environment's data: the worker inherits the connection, and the server only
    watches for its end. Port 0 takes a free one. `command` ends with the number of the socket.
    """

    def __init__(
        self, host: str, port: int, workers: int, token: str, command: Sequence[str] = TCP_WORKER_COMMAND
    ) -> None:
        if not token:
            raise ValueError("the token is empty")
        self.workers, self._token, self._command = workers, token, command
        self._listening = listen(host, port)
        self.port: int = self._listening.getsockname()[1]
        self.running: set[subprocess.Popen[bytes]] = set()
        self._free = threading.BoundedSemaphore(workers)
        self._unproved: dict[socket.socket, str] = {}
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Serve until the process is interrupted or `close` is called."""
        with suppress(OSError):
            while True:
                connection, address = self._listening.accept()
                with self._lock:
                    self._unproved[connection] = address[0]
                    if len(self._unproved) > MOST_WAITING:
                        crowd = Counter(self._unproved.values()).most_common(1)[0][0]
                        oldest = next(each for each, host in self._unproved.items() if host == crowd)
                        del self._unproved[oldest]
                        with suppress(OSError):  # it has ended
                            oldest.shutdown(socket.SHUT_RDWR)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """End all workers, and listen no more."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for process in list(self.running):
            end_worker(process, 0)

    def _answer(self, connection: socket.socket) -> None:
        """Serve one connection, in its own thread."""
        with connection, suppress(OSError, EOFError):
            try:
                transcript, purpose = self._hear(connection)
            finally:
                with self._lock:
                    self._unproved.pop(connection, None)

            def tell(status: bytes) -> None:
                answer = status + self.workers.to_bytes(2, "little")
                proof = prove(SERVER + transcript + answer, self._token) if purpose else b""
                connection.sendall(answer + proof)

            if purpose != WORK:
                tell(TAKEN if purpose == ASK else WRONG_TOKEN)
            elif not self._free.acquire(timeout=_WAIT_S):
                tell(FULL)
            else:
                try:
                    tell(TAKEN)
                    self._work(connection)
                finally:
                    self._free.release()

    def _hear(self, connection: socket.socket) -> tuple[bytes, bytes]:
        """Return the transcript, and the client's purpose: empty without a proof of the token."""
        connection.settimeout(HANDSHAKE_S)
        keep_alive(connection)
        hello = GREETING + os.urandom(NONCE)
        connection.sendall(hello)
        end = time.monotonic() + HANDSHAKE_S
        transcript = hello + read_bytes(connection, 1 + NONCE + DIGEST_BYTES, end)
        request, proof = transcript[:-DIGEST_BYTES], transcript[-DIGEST_BYTES:]
        proved = hmac.compare_digest(proof, prove(CLIENT + request, self._token))
        return transcript, request[len(hello) :][:1] if proved else b""

    def _work(self, connection: socket.socket) -> None:
        """Run a worker until it ends or the other side is gone."""
        connection.settimeout(None)  # the worker shares the mode of its connection
        environment = {name: value for name, value in os.environ.items() if name != TOKEN}
        process = start_worker(connection, self._command, env=environment)
        self.running.add(process)
        try:
            watch = select.poll()
            watch.register(connection, _GONE)
            while process.poll() is None and not watch.poll(_LOOK_MS):
                pass
            end_worker(process, LEAVES_S)
        finally:
            self.running.discard(process)


def listen(host: str, port: int) -> socket.socket:
    """Listen on a port; a `UserError` says that it is in use, or the host is another machine."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{host}, --port {port}: {why}. Try --port 0 for any free one.") from None


def is_loopback(host: str) -> bool:
    """True if a host's name or address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
