"""A run that is ended by a signal at its worst moments goes on to the same end; a full disk loses
nothing."""

from __future__ import annotations

import importlib
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from processes import begin, end
from stage import assert_same_end, rewind

from baselines import vldac
from baselines.learning import command
from baselines.runs.folder import checkpoints

MOMENTS = {
    "after the last checkpoint was moved away": ("os.replace", "checkpoints/.update-000003.old"),
    "while the model is exported": ("baselines.models.lora.write_notes", ".model.part"),
}
"""Moments of a kill: the function whose call finds something half done, and that."""


def end_at(place: str, when: int | Path, number: signal.Signals) -> None:
    """Let this process get a signal at a call of a function: at the `when`-th, or at the first that
    finds a path."""
    module_name, name = place.rsplit(".", 1)
    module = importlib.import_module(module_name)
    function, calls = getattr(module, name), [0]

    def patched(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if when.exists() if isinstance(when, Path) else calls[0] == when:
            os.kill(os.getpid(), number)
        return function(*args, **kwargs)  # SIGTERM only asks

    setattr(module, name, patched)


def go_on(out: Path, **options: Any) -> Any:
    return vldac.train(vldac.Config(out=out, resume=True, **options))


def go_on_in_another_process(out: Path, before: Callable[[], None], **options: Any) -> tuple[int, str]:
    """Return the exit status and the output of the command with --resume; it does something
    before."""

    def work() -> None:
        before()
        command.main(vldac.Config, lambda _: go_on(out, **options), None)

    log = out.with_name("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["vldac"])
        return end(begin(1, work, log), log)[0]


@pytest.fixture
def rewound(finished, tmp_path):
    return rewind(finished, tmp_path / "run")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_its_worst_moment_goes_on_to_the_same_end(moment, finished, rewound):
    place, half = MOMENTS[moment]
    before = partial(end_at, place, rewound / half, signal.SIGKILL)
    status, text = go_on_in_another_process(rewound, before)
    assert status == -signal.SIGKILL, text
    assert (rewound / half).exists(), sorted(path.name for path in rewound.rglob("*"))
    go_on(rewound)
    assert_same_end(finished, rewound)


def test_sigterm_saves_and_ends_with_143(rewound):
    before = lambda: end_at("baselines.runs.logs.summary", 1, signal.SIGTERM)  # noqa: E731
    status, text = go_on_in_another_process(rewound, before, updates=5)
    assert status == 143
    command = f"Go on: python -m baselines.vldac --resume --out {rewound}"
    assert f"stopped after update 3. {command}" in text
    assert checkpoints(rewound / "checkpoints")[-1].name == "update-000003"


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(finished, rewound):
    (saved,) = checkpoints(rewound / "checkpoints")
    # a limit on the size of files, as a full disk: the system refuses to write
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    status, text = go_on_in_another_process(rewound, limit)
    assert status == 2
    (line,) = [line for line in text.splitlines() if line.startswith("error:")]
    assert line.startswith("error: File too large")
    command = f"go on: python -m baselines.vldac --resume --out {rewound}"
    assert line.endswith(f"The newest checkpoint is intact; {command}")
    assert "Traceback" not in text
    assert list((rewound / "checkpoints").iterdir()) == [saved]
    go_on(rewound)
    assert_same_end(finished, rewound)
