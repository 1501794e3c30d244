"""`vlgym canary`: verdicts, an endpoint that catches lost pictures, exit statuses."""

import asyncio
import re
import signal
import socket
import subprocess
import sys

import pytest
from commands import invoke

from vlgym.integrations.agent import play, tasks
from vlgym.integrations.canary import CANARIES


def test_a_seeing_policy_ends_with_status_0_and_any_other_with_1() -> None:
    lines = invoke("canary", "oracle", "--episodes", "6").out.splitlines()
    assert lines[0].startswith("vlgym/CanaryColour-v0: sees; 6 of 6 right [0.")
    line = invoke("canary", "random", status=1).out.splitlines()[2]
    assert re.fullmatch(rf"{CANARIES[2]}: blind; \d of 20 right \[.*\], chance 0.083", line)
    line = invoke("canary", "idle", "--episodes", "3", status=1).out.splitlines()[0]
    assert "cannot tell; 0 of 3 right" in line
    assert line.endswith("chance 0.125, 3 unreadable")


@pytest.mark.parametrize(("history", "status"), [pytest.param(None, 0, marks=pytest.mark.exhaustive), (1, 1)])
def test_an_endpoint_says_whether_every_picture_arrived(history: int | None, status: int) -> None:
    command = [sys.executable, "-m", "vlgym", "canary", "--listen", "0", "--episodes", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[0]

        async def play_all() -> None:
            for env_id in CANARIES:
                await play(tasks(env_id, "train", 1)[0], base_url=url, model="m", history=history)

        asyncio.run(play_all())
        process.send_signal(signal.SIGINT)
        out, stderr = process.communicate(timeout=60)
    assert process.returncode == status
    assert out.startswith(f"{'FAILED' if status else 'passed'}: 8 requests, {2 * status} with lost")
    counts = zip(CANARIES, (1, 1, 1 - status), strict=True)
    assert out.endswith(f"episodes: {', '.join(f'{env_id} {count}' for env_id, count in counts)}\n")
    lost = "request 7: vlgym/CanaryMemory-v0, turn 3: pictures due 1, 2, 3; arrived 2, 3"
    assert (lost in stderr) == (status == 1)


def test_wrong_use_is_one_line_and_status_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for words, message in (
            ([], "Name a policy"),
            (["random", "--listen", "0"], "Name a policy"),
            (["psychic"], "psychic"),
            (["--listen", str(taken.getsockname()[1]), "--episodes", "1"], "Name another port"),
        ):
            out, error = invoke("canary", *words, status=2)
            assert message in error
            assert (out, len(error.strip().splitlines())) == ("", 1), error
