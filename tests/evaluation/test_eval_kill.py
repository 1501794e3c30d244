"""`vlgym eval` against a real server: killed twice on the way and resumed, it ends as the run that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

from vlgym.cli.app import main
from vlgym.reports.compute import compute_report

IDS = "vlgym/NumberLine-v0,vlgym/Blackjack-v0,vlgym/EZPoints-v0"
EPISODES = 12


def command(server: FaultServer, out: Path, *more: str) -> list[str]:
    words = ["eval", "--policy", "openai:m", "--base-url", server.url, "--env", IDS, "--episodes", str(EPISODES)]
    return [*words, "--seed", "3", "--policy-arg", "concurrency=6", "--no-probe", "--out", str(out), *more]


def lines_of(out: Path) -> int:
    path = out / "metadata.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def kill_after(words: list[str], out: Path, lines: int) -> None:
    """Run the command in a separate process and kill it as soon as `lines` further lines are there."""
    due, limit = lines_of(out) + lines, time.monotonic() + 120
    process = subprocess.Popen([sys.executable, "-m", "vlgym", *words], stderr=subprocess.PIPE, text=True)
    while lines_of(out) < due:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < limit
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def places(out: Path) -> Counter[Any]:
    rows = [json.loads(line) for line in (out / "metadata.jsonl").read_text().splitlines()]
    return Counter((row["part"], row["episode"], row["turn"]) for row in rows)


def test_a_run_that_was_killed_twice_reports_what_a_run_left_alone_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with FaultServer(latency=0.02, spread=0.02) as server:
        assert main(command(server, tmp_path / "alone")) == 0
        killed = tmp_path / "killed"
        kill_after(command(server, killed), killed, 40)
        kill_after(command(server, killed, "--resume"), killed, 40)
        assert lines_of(killed) < lines_of(tmp_path / "alone")
        assert main(command(server, killed, "--resume")) == 0
    assert compute_report(killed) == compute_report(tmp_path / "alone")
    assert places(killed) == places(tmp_path / "alone")
    assert set(places(killed).values()) == {1}
    held = json.loads((killed / "run.json").read_text())
    assert len(held["sessions"]) == 3
    assert "--resume" in held["sessions"][1]["command"]


def test_odd_replies_are_counted_as_what_they_are(tmp_path: Path) -> None:
    with FaultServer(odd=0.5) as server:
        assert main(command(server, tmp_path / "odd")) == 0
    parts = compute_report(tmp_path / "odd")["parts"].values()
    for name in ("refused", "empty", "cut"):
        assert any(part[name] > 0 for part in parts), name
    assert all(part["episodes"] == EPISODES for part in parts)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with FaultServer(latency=0.05) as server:
        words = command(server, out)
        code = (  # whoever runs the tests may ignore the signal
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from vlgym.cli.app import main; sys.exit(main(sys.argv[1:]))"
        )
        process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 120
        while lines_of(out) < 20 and time.monotonic() < limit:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"of {3 * EPISODES} episodes are kept in {out}. Go on with --resume." in said
    assert "Traceback" not in said
    assert (out / "report.html").exists()


def test_money_is_counted_and_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FaultServer() as server:
        words = command(server, tmp_path / "run", "--price-in", "1000", "--price-out", "1000")
        assert main([*words, "--max-cost", "5"]) == 1
        assert "--max-cost is $5" in capsys.readouterr().err
        spent = server.counts["answered"]
        assert main([*words, "--max-cost", "1000", "--resume"]) == 0
    found = compute_report(tmp_path / "run")
    assert found["overall"]["episodes"] == 3 * EPISODES
    assert found["spent"]["cost"] > 5
    assert spent < server.counts["answered"]
    assert os.path.getsize(tmp_path / "run" / "report.json")
