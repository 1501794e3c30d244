"""`vlgym eval` against a real server: killed and resumed, it ends as a run left alone."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from commands import invoke, wait_until
from fault_server import Fault, FaultServer

from vlgym.reports.compute import compute_report

IDS = "vlgym/NumberLine-v0,vlgym/Blackjack-v0"
EPISODES = 6


def command(server: FaultServer, out: Path, *more: str) -> list[str]:
    words = ["eval", "--policy", f"openai:m@{server.url}", "--env", IDS, "--out", str(out), "--no-probe"]
    return [*words, "--episodes", str(EPISODES), "--seed", "3", "--policy-arg", "concurrency=6", *more]


def lines_of(out: Path) -> int:
    path = out / "metadata.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def kill_after(words: list[str], out: Path, lines: int) -> None:
    """Run the command in another process and kill it once `lines` further lines are there."""
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


def test_a_run_that_was_killed_reports_what_a_run_left_alone_reports(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "")
    killed = tmp_path / "killed"
    with FaultServer() as server:
        invoke(*command(server, tmp_path / "alone"))
        server.latency = server.spread = 0.02
        kill_after(command(server, killed), killed, 8)
        server.latency = server.spread = 0
        assert lines_of(killed) < lines_of(tmp_path / "alone")
        invoke(*command(server, killed, "--resume"))
    assert compute_report(killed) == compute_report(tmp_path / "alone")
    assert places(killed) == places(tmp_path / "alone")
    assert set(places(killed).values()) == {1}
    assert len(json.loads((killed / "run.json").read_text())["sessions"]) == 2


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with FaultServer(lambda request: Fault("hang") if request.number > 24 else None) as server:
        words = command(server, out)
        process = subprocess.Popen([sys.executable, "-m", "vlgym", *words], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: server.counts["hang"] >= 4)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"of {2 * EPISODES} episodes are kept in {out}. Go on with --resume." in stderr
    assert "Traceback" not in stderr
    assert (out / "report.html").exists()


def test_money_is_counted_and_stops_the_run(tmp_path: Path) -> None:
    with FaultServer() as server:
        words = command(server, tmp_path / "run", "--price-in", "1000", "--price-out", "1000")
        stopped = invoke(*words, "--max-cost", "5", "--num-envs", "1", status=1).err
        assert "--max-cost is $5" in stopped
        count = server.counts["answered"]
        invoke(*words, "--max-cost", "1", "--resume", status=1)  # earlier sessions count
        assert server.counts["answered"] == count + 1  # the policy's first question
        invoke(*words, "--max-cost", "1000", "--resume")
    report = compute_report(tmp_path / "run")
    assert report["overall"]["episodes"] == 2 * EPISODES
    assert report["spent"]["cost"] > 5
