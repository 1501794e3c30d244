"""`python -m vlgym_webshop`, as the README has it."""

from __future__ import annotations

import socket
import subprocess
import sys

import urllib3
from vlgym_webshop.__main__ import main


def test_the_shop_can_be_served_for_a_person() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vlgym_webshop", "--port", str(port), "--goal", "7"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert f"http://127.0.0.1:{port}/shop/7/search" in line
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}/shop/7/results?q=red+mug")
        assert answer.status == 200
        assert b"Total results:" in answer.data
        assert main(["--port", str(port)]) == 1  # taken
    finally:
        process.terminate()
        process.wait(timeout=10)
