"""The program between us and a browser's driver: it gives the browser a private network and user.

`vlgym.browser.room` starts this script by its path; nothing imports it. It uses the standard
library only, so that it starts in milliseconds. It makes a network namespace that holds only a
loopback interface, gives up root and starts the driver there. Then it hands out connections into
that network, and ends everything when the process that wanted the browser has ended. Messages are
packets of JSON on an inherited socket.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from typing import Any

_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NO_NEW_PRIVILEGES, _SET_SUBREAPER = 1, 4, 38, 36
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1
_LONGEST_ORDER = 1 << 18
_LIBRARY = ctypes.CDLL(None, use_errno=True)


def main(control: socket.socket, parent: int) -> int:
    """Serve until the driver or the parent ends; return the driver's exit status."""
    # Root is given up before anything listens or runs.
    wanted = json.loads(control.recv(_LONGEST_ORDER))
    _LIBRARY.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    ending = os.pidfd_open(parent)
    private = os.geteuid() == 0 and _enter_network(_NEWNET)
    _become(wanted["user"])
    private = private or _enter_network(_NEWUSER | _NEWNET)
    listeners = [listener for port in wanted["ports"] if (listener := _listen(port)) is not None]
    namespaces = _can_unshare(_NEWUSER | _NEWPID | _NEWNET)  # so Chromium can build its own sandbox
    facts = {"private": private, "user": os.geteuid(), "namespaces": namespaces}
    answer = [json.dumps(facts).encode()]
    socket.send_fds(control, answer, [listener.fileno() for listener in listeners])
    for listener in listeners:
        listener.close()

    # The driver starts when it is ordered, and never outlives this process.
    order = control.recv(_LONGEST_ORDER)
    if not order:
        return 0
    if namespaces:  # without them Chromium may need its helper program, which runs as root
        _LIBRARY.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    try:
        driver = _start(json.loads(order))
    except OSError as error:
        print(error, flush=True)
        return 126
    try:
        return _serve(control, ending, driver)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with suppress(OSError):
            os.killpg(driver.pid, signal.SIGKILL)


def _serve(control: socket.socket, ending: int, driver: subprocess.Popen[bytes]) -> int:
    ended = os.pidfd_open(driver.pid)
    while True:
        ready, _, _ = select.select([control.fileno(), ending, ended], [], [])
        if ended in ready:
            return driver.wait()
        if ending in ready or not (port := control.recv(_LONGEST_ORDER)):
            return 0

        # An order names a port inside, to which it gets a connection.
        try:
            # create_connection would import a module, and Python's folder may be closed to this user.
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
                connection.connect(("127.0.0.1", int(port)))
                socket.send_fds(control, [b"connected"], [connection.fileno()])
        except (OSError, ValueError) as error:
            control.send(str(error).encode()[:500])


def _start(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start the driver in a new process group; the kernel ends it with this process."""
    return subprocess.Popen(
        order["command"], env=order["environment"], stdin=subprocess.DEVNULL, process_group=0,
        preexec_fn=lambda: _LIBRARY.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0),
    )  # fmt: skip


def _enter_network(flags: int) -> bool:
    """Enter a new network (and user) namespace with a loopback interface, as the same user."""
    return _can_unshare(flags) and _unshare(flags)


def _can_unshare(flags: int) -> bool:
    """Try it in a child first, so that a half success leaves this process as it was."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    status = 1
    with suppress(OSError):
        status = 0 if _unshare(flags) else 1
    os._exit(status)


def _unshare(flags: int) -> bool:
    user, group = os.geteuid(), os.getegid()
    if _LIBRARY.unshare(flags) != 0:
        return False
    if flags & _NEWUSER:
        maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _raise_loopback()
    return True


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        _, flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _GET_FLAGS, request))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


def _become(user: int | None) -> None:
    if user is None:
        return
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _LIBRARY.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # else /proc/self stays root's


def _listen(port: int) -> socket.socket | None:
    with suppress(OSError):  # in a network that is not private somebody else may listen there
        return socket.create_server(("127.0.0.1", port), backlog=128)
    return None


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        status = main(inherited, int(sys.argv[2]))
    os._exit(status if 0 <= status < 256 else 1)
