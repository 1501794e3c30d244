"""What a run writes while it learns: the bar's metrics, held-out episodes, and the bounds of its curve."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from baselines.learning.evaluation import _mean
from baselines.runs.logs import RunLog, summary

ROW = {"update": 1, "episode/success": math.nan, "rollout/invalid_rate": 0.25, "loss/kl": 0.01, "lr": 1.0}


def test_the_summary_leaves_out_what_an_update_has_no_number_of() -> None:
    assert summary(ROW) == "invalid 0.25  kl 0.010"
    assert summary({**ROW, "episode/success": 0.5}) == "success 0.50  invalid 0.25  kl 0.010"


@pytest.mark.parametrize("quiet", [False, True])
def test_held_out_episodes_show_that_they_are_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    log = RunLog(tmp_path, name="vldac", total=2, done=0, quiet=quiet)
    with log.counting("held-out NumberLine-v0", 200) as advance:
        advance("an episode")
    log.close()
    assert capsys.readouterr().out == ("" if quiet else "held-out NumberLine-v0: 200 ...\n")


def test_bounds_of_several_environments_have_the_standard_error_of_their_mean() -> None:
    bounds = [{"success": 0.2, "return": 1.0, "se": 0.3}, {"success": 0.4, "return": 2.0, "se": 0.4}]
    assert _mean(bounds) == pytest.approx({"success": 0.3, "return": 1.5, "se": 0.25})
    assert _mean([*bounds, None]) is None
