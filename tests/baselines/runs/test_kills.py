"""A run that is ended by a signal at its worst moments goes on to the same end; a full disk loses nothing."""

from __future__ import annotations

import importlib
import os
import resource
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from processes import begin, end
from stage import FINISHED, assert_same_end

from baselines import vldac
from baselines.learning import command
from baselines.runs.folder import checkpoints

MOMENTS = {
    "after the last checkpoint was moved away": ("os.replace", "checkpoints/.update-000004.old"),
    "while the model is exported": ("baselines.models.lora.write_notes", ".model.part"),
}
"""Moments of a kill: the function whose call finds something half done, and that."""


def end_at(place: str, when: int | Path, number: signal.Signals) -> None:
    """Let this process get a signal at a call of a function: at the `when`-th, or at the first that finds a path."""
    module_name, name = place.rsplit(".", 1)
    module = importlib.import_module(module_name)
    function, calls = getattr(module, name), [0]

    def patched(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if when.exists() if isinstance(when, Path) else calls[0] == when:
            os.kill(os.getpid(), number)
        return function(*args, **kwargs)  # SIGTERM only asks

    setattr(module, name, patched)


def train_until(out: Path, place: str, when: int | Path, number: signal.Signals, log: Path) -> tuple[int, str]:
    """Run the command until it is ended."""

    def work() -> None:
        end_at(place, when, number)
        command.main(vldac.Config, lambda _: vldac.train(replace(FINISHED, out=out)), None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["vldac"])
        return end(begin(1, work, log), log)[0]


def go_on(out: Path) -> None:
    """As a user would: with --resume, or by the same command where there is nothing to resume."""
    saved = checkpoints(out / "checkpoints")
    vldac.train(vldac.Config(out=out, resume=True) if saved else replace(FINISHED, out=out))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_its_worst_moment_goes_on_to_the_same_end(moment, finished, tmp_path):
    out = tmp_path / "run"
    place, half = MOMENTS[moment]
    status, told = train_until(out, place, out / half, signal.SIGKILL, tmp_path / "log")
    assert status == -signal.SIGKILL, told
    assert (out / half).exists(), sorted(path.name for path in out.rglob("*"))
    go_on(out)
    assert_same_end(finished, out)


def test_sigterm_saves_and_ends_with_143(tmp_path):
    out = tmp_path / "run"
    status, told = train_until(out, "baselines.runs.logs.summary", 1, signal.SIGTERM, tmp_path / "log")
    assert status == 143
    assert f"stopped after update 1. Go on: python -m baselines.vldac --resume --out {out}" in told
    assert checkpoints(out / "checkpoints")[-1].name == "update-000001"


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(finished, tmp_path):
    out = tmp_path / "run"
    train_until(out, "baselines.runs.logs.summary", 2, signal.SIGKILL, tmp_path / "log")

    def work() -> None:  # a limit on the size of files, as a full disk: the system refuses to write
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
        command.main(vldac.Config, lambda _: go_on(out), None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["vldac"])
        [(status, told)] = end(begin(1, work, tmp_path / "log"), tmp_path / "log")
    assert status == 2
    (line,) = [line for line in told.splitlines() if line.startswith("error:")]
    assert line.startswith("error: File too large")
    assert line.endswith(f"The newest checkpoint is intact; go on: python -m baselines.vldac --resume --out {out}")
    assert "Traceback" not in told
    assert sorted(path.name for path in (out / "checkpoints").iterdir()) == ["update-000000", "update-000001"]
    go_on(out)
    assert_same_end(finished, out)
