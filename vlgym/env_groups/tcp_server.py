"""The server of `vlgym serve --workers N`: each connection that proves the token gets a worker process.

It never reads an environment's data: the worker inherits the connection, and the server only watches for its end.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from ..errors import UserError
from . import tcp
from .processes import LEAVES_S, end_worker, start_worker
from .wire import read_bytes

TCP_WORKER_COMMAND = (sys.executable, "-m", "vlgym.env_groups.worker", "tcp")
# Connections that have not proved the token; one more ends the oldest of the host that has the most.
MOST_WAITING = 64
_GONE = getattr(select, "POLLRDHUP", select.POLLHUP)
_LOOK_MS = 100
_WAIT_S = 2.0  # for a worker whose learner has just left


class WorkerServer:
    """Listens, and starts a worker for each connection.

    Args:
        port: 0 takes a free one.
        command: starts a worker, with the number of its socket at the end.

    Raises:
        UserError: the port is in use, or the host is no address of this machine.
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
                proof = tcp.prove(tcp.SERVER + transcript + answer, self._token) if purpose else b""
                connection.sendall(answer + proof)

            if purpose != tcp.WORK:
                tell(tcp.TAKEN if purpose == tcp.ASK else tcp.WRONG_TOKEN)
            elif not self._free.acquire(timeout=_WAIT_S):
                tell(tcp.FULL)
            else:
                try:
                    tell(tcp.TAKEN)
                    self._work(connection)
                finally:
                    self._free.release()

    def _hear(self, connection: socket.socket) -> tuple[bytes, bytes]:
        """Return the transcript, and the other side's purpose: empty where it does not prove the token."""
        connection.settimeout(tcp.HANDSHAKE_S)
        tcp.keep_alive(connection)
        hello = tcp.GREETING + secrets.token_bytes(tcp.NONCE)
        connection.sendall(hello)
        end = time.monotonic() + tcp.HANDSHAKE_S
        transcript = hello + read_bytes(connection, 1 + tcp.NONCE + tcp.DIGEST_BYTES, end)
        request, proof = transcript[: -tcp.DIGEST_BYTES], transcript[-tcp.DIGEST_BYTES :]
        proved = hmac.compare_digest(proof, tcp.prove(tcp.CLIENT + request, self._token))
        return transcript, request[len(hello) :][:1] if proved else b""

    def _work(self, connection: socket.socket) -> None:
        """Run a worker until it ends or the other side is gone."""
        connection.settimeout(None)  # the worker shares the mode of its connection
        environment = {name: value for name, value in os.environ.items() if name != tcp.TOKEN}
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
    """Listen on a port; a `UserError` says that it is in use, or that the host is not this machine."""
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
