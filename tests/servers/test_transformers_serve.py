"""The library's own server, asked by the official client and by `vlgym eval`, and compared with the
same model played here.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from samples import ANSWER, messages, picture

from baselines.plugin import make_hf
from vlgym.cli.app import main
from vlgym.env.rendering import data_url
from vlgym.evaluation.plan import QUICK_IDS
from vlgym.play.trajectory import read_trajectories
from vlgym.registry.making import make
from vlgym.reports.compute import compute_report
from vlgym.types import Turn

TOKENS = 16
SIZE = (84, 112)


def as_parts(message: dict[str, Any]) -> dict[str, Any]:
    """A neutral message as the protocol has it, pictures as PNG data URLs."""
    parts = [
        part if part["type"] == "text" else {"type": "image_url", "image_url": {"url": data_url(part["image"])}}
        for part in message["content"]
    ]
    return {"role": message["role"], "content": parts}


def chat(seed: int = 1) -> list[dict[str, Any]]:
    """Two pictures with history."""
    return [*messages(picture(seed, SIZE), "Which way?"), ANSWER, *messages(picture(2, SIZE), "And now?")]


@pytest.fixture
def ask(server):
    from openai import OpenAI

    client = OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=60)
    options = {"model": str(server.model), "temperature": 0, "max_tokens": TOKENS}
    return lambda prompt: client.chat.completions.create(messages=[*map(as_parts, prompt)], **options)


@pytest.mark.parametrize("engine", ["auto", "generate"])
def test_the_server_and_the_policy_hf_give_the_same_reply_to_a_prompt(ask, server, engine):
    here = make_hf(str(server.model), engine=engine, temperature=0, max_tokens=TOKENS)
    turn = Turn(chat(), make("vlgym/NumberLine-v0"), "vlgym/NumberLine-v0", seed=0)
    served, (reply,) = ask(chat()), here.reply([turn])
    assert served.choices[0].message.content == reply.text
    assert served.usage.prompt_tokens == reply.usage.prompt_tokens > 2 * 12  # pictures of 12 tokens
    assert ask(chat(7)).choices[0].message.content != reply.text  # another picture in the history


def command(server, out: Path, *more: str) -> list[str]:
    words = ["eval", "--policy", f"openai:{server.model}", "--base-url", server.url, "--out", str(out), "--no-probe"]
    words += ["--max-tokens", "8", "--temperature", "0", "--policy-arg", "concurrency=4"]
    return [sys.executable, "-m", "vlgym", *words, *more]


ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "none", "OMP_NUM_THREADS": "1"}


def play(words: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def read_run(out: Path) -> tuple[dict[str, Any], list[tuple]]:
    """The report and every turn."""
    report = compute_report(out)
    rows = [
        (record.part, record.episode, record.turn, record.reply, record.usage.completion_tokens)
        for episode in read_trajectories(out, images=False)
        for record in episode
    ]
    assert len(rows) == len({row[:3] for row in rows})  # nothing twice
    return report, sorted(rows)


def test_vlgym_eval_plays_the_quick_suite_on_the_server(server, tmp_path):
    out = tmp_path / "quick"
    few = ("--episodes", "1", "--env-kwargs", "max_turns=8")  # football alone has 400 turns
    done = play(command(server, out, "--suite", "quick", *few))
    assert "left out" not in done.stderr
    report, rows = read_run(out)
    assert {row[0] for row in rows} == set(report["parts"]) == set(QUICK_IDS)
    assert all(row[4] > 0 for row in rows)
    assert "mean" in done.stdout
    assert (out / "report.html").is_file()


def test_a_model_behind_the_server_and_the_same_one_here_play_the_same_episodes(server, tmp_path):
    served, here = tmp_path / "served", tmp_path / "here"
    envs = ("--env", "vlgym/NumberLine-v0", "--episodes", "2", "--history-turns", "2", "--history-images", "3")
    play(command(server, served, *envs))
    words = ["eval", "--policy", f"hf:{server.model}", "--temperature", "0", "--max-tokens", "8", "--no-probe"]
    assert main([*words, "--policy-arg", "threads=1", "--out", str(here), *envs]) == 0
    turns = read_run(here)[1]
    assert turns == read_run(served)[1]
    assert len(turns) > 4  # unreadable replies; random moves stand for them until an episode ends


def test_a_run_that_is_killed_twice_and_resumed_equals_one_that_was_not(server, tmp_path):
    envs = ("--env", "vlgym/NumberLine-v0,vlgym/EZPoints-v0", "--episodes", "5", "--policy-arg", "concurrency=2")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    play(command(server, whole, *envs))
    metadata, resume = broken / "metadata.jsonl", []
    for least in (2, 6):
        none = subprocess.DEVNULL
        process = subprocess.Popen(command(server, broken, *envs, *resume), env=ENVIRONMENT, stdout=none, stderr=none)
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            if metadata.exists() and len({(row["part"], row["episode"]) for row in rows_of(metadata)}) >= least:
                break
            time.sleep(0.02)
        assert process.poll() is None, "the run ended before it could be killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        resume = ["--resume"]
    play(command(server, broken, *envs, *resume))
    assert read_run(broken) == read_run(whole)
    assert len(read_run(whole)[1]) >= 12
    assert len(json.loads((broken / "run.json").read_text())["sessions"]) == 3


def rows_of(metadata: Path) -> list[dict[str, Any]]:
    """Whole lines only: the run is writing."""
    text = metadata.read_text()
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
