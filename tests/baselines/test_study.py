"""Studies: statistics by hand, and a small one run, stopped, resumed and reported."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from stage import ENV

from baselines import sft, study, vldac
from baselines.learning.warm_start import WarmConfig
from baselines.runs.folder import check_same, read_record, write_json, write_record
from baselines.studies import arms, report
from vlgym.errors import UserError

SMALL = (
    "--num-envs", "4", "--rollout-steps", "2", "--minibatch", "8", "--eval-episodes", "4", "--image-tokens", "4",
    "--save-every", "1", "--lr", "3e-4",
)  # fmt: skip
WARM = (
    "--warm.steps", "2", "--warm.samples", "64", "--warm.batch", "8", "--warm.check-every", "50",
    "--warm.val-episodes", "4", "--image-tokens", "4",
)  # fmt: skip


def test_spread_is_students_interval_over_seeds():
    mean, deviation, half = report.spread([0.5, 0.7, 0.9, 0.9])
    assert mean == pytest.approx(0.75)
    assert deviation == pytest.approx(math.sqrt((0.0625 + 0.0025 + 0.0225 + 0.0225) / 3))
    assert half == pytest.approx(3.182446 * deviation / 2)
    assert math.isnan(report.spread([0.5])[1])
    assert math.isnan(report.spread([])[0])


def test_the_table_counts_the_runs_that_end_below_their_start_and_training_episodes_where_there_are_any():
    ends = ((0.6, 0.5), (0.6, 0.1), (0.3, 0.3))
    found = [
        {
            "arm": "VL-DAC", "seed": seed, "curve": [[256, pair[0], 0.0, 0.0, 2.0]] if seed else [],
            "evaluations": [{"env_steps": 0, "success": y, "mean_return": y, "invalid_rate": 0.0} for y in pair],
        }
        for seed, pair in enumerate(ends)
    ]  # fmt: skip
    assert "| 0.100 | 2 | 0.450 |" in "\n".join(report._arms_table(arms.STUDIES["oneroom"], found))
    assert "| 0.500 | 1 | - |" in "\n".join(report._arms_table(arms.STUDIES["oneroom"], found[:1]))


def test_arms_are_compared_seed_by_seed():
    ends = {0: 0.9, 1: 0.5, 2: 0.7}
    assert report._less({0: 0.8, 1: 0.4, 2: 0.3}, ends) == f"-0.200 +-{4.303 * 0.3 / 3**0.5 / 3**0.5:.3f}"
    assert report._less({0: 0.8, 1: 0.4, 5: 0.0}, ends) == "-0.100 +-0.000"  # seeds of both
    assert report._less({0: 0.8}, ends) == "-"
    assert report._less(ends, ends) == "-"


def test_a_curve_is_binned_by_episodes():
    curve = [[256, 0.5, 0, 0, 10], [512, 1.0, 0, 0, 30], [768, None, 0, 0, 0], [1024, 0.25, 0, 0, 4]]
    base = replace(arms.STUDIES["numberline"], env_steps=1024)
    assert report.binned({"curve": curve}, base) == [(256.0, pytest.approx(35 / 40)), (768.0, 0.25)]
    wide = replace(base, bin=1024)
    assert report.binned({"curve": curve}, wide) == [(512.0, pytest.approx(36 / 44))]
    beyond = [*curve, [1200, 1.0, 0, 0, 4]]  # a rollout that began within the budget and ended after it
    assert report.binned({"curve": beyond}, base)[1] == (768.0, pytest.approx(5 / 8))


def test_a_plot_has_a_panel_per_arm_with_every_seed_their_mean_and_the_first_arms_mean():
    from matplotlib.figure import Figure

    item = replace(arms.STUDIES["numberline"], arms=(arms.VLDAC, arms.LOOP), env_steps=1024)
    heights = {("VL-DAC", 0): 0.8, ("LOOP", 0): 0.2, ("LOOP", 1): 0.4}
    found = [
        {"arm": arm, "seed": seed, "curve": [[512, y, 0, 0, 4], [1024, y, 0, 0, 4]]}
        for (arm, seed), y in heights.items()
    ]
    figure = Figure()
    report._draw_panels(figure, item, found)
    shown = {axis.get_title(): [line.get_ydata()[-1] for line in axis.lines] for axis in figure.axes}
    assert shown == {"VL-DAC": [0.8, 0.8], "LOOP": [0.2, 0.4, 0.8, pytest.approx(0.3)]}


def test_every_study_has_arms_of_its_own_and_shared_runs_are_alike():
    for name, item in arms.STUDIES.items():
        assert len({arm.slug for arm in item.arms}) == len(item.arms), name
        if item.runs_in:
            base = arms.STUDIES[item.runs_in]
            for part in ("env", "env_steps", "options", "warm_env", "warm_options"):
                assert getattr(item, part) == getattr(base, part)
            by_slug = {arm.slug: arm for arm in base.arms}
            assert all(by_slug.get(arm.slug, arm) == arm for arm in item.arms)


@pytest.fixture
def small(monkeypatch):
    """A study of two arms that takes seconds."""
    item = arms.Study(
        title="Small",
        question="Does it run?",
        env=ENV,
        arms=(arms.VLDAC, arms.LOOP),
        env_steps=16,
        seeds=1,
        options=SMALL,
        warm_options=WARM,
    )
    monkeypatch.setitem(arms.STUDIES, "small", item)
    return item


def test_a_study_runs_reports_and_keeps_what_is_done(tmp_path, small, monkeypatch, capsys):
    calls: list[list[str]] = []
    call = study.Runs.call
    monkeypatch.setattr(study.Runs, "call", lambda self, a, log: (calls.append(list(a)), call(self, a, log))[1])
    folder = study.run(study.Config("small", out=tmp_path, workers=1))
    assert [a[0] for a in calls] == ["baselines.sft", "baselines.vldac", "baselines.loop"]
    assert all(a[a.index("--threads") + 1] == "1" for a in calls)  # as many processes as `workers` at full speed
    page = (folder / "small.md").read_text()
    assert "| VL-DAC | " in page
    assert "| LOOP | " in page
    assert "Incomplete" not in page
    assert (folder / "small.png").read_bytes().startswith(b"\x89PNG")
    runs = json.loads((folder / "runs.json").read_text())
    assert [(run["arm"], run["seed"]) for run in runs] == [("VL-DAC", 0), ("LOOP", 0)]
    assert all(run["curve"][-1][0] >= 16 and len(run["evaluations"]) == 2 for run in runs)
    assert runs[0]["evaluations"][0] == runs[1]["evaluations"][0]  # one warm start for all arms, judged once
    assert [run["evaluations"][0]["update"] for run in runs] == [0, 0]
    assert ["--no-eval-before" in a for a in calls[1:]] == [False, True]
    calls.clear()
    (folder / "runs" / "loop-0" / "done.json").unlink()
    study.run(study.Config("small", out=tmp_path, workers=1))
    assert [a[:2] for a in calls] == [["baselines.loop", "--resume"]]
    with pytest.raises(UserError, match="other options"):
        study.run(study.Config("small", out=tmp_path, env_steps=8))
    with pytest.raises(UserError, match="must be >= 1"):
        study.run(study.Config("small", out=tmp_path, seeds=0))


def test_a_transfer_study_judges_every_model_on_every_environment(tmp_path, small, monkeypatch):
    both = f"{ENV},vlgym/Blackjack-v0"
    item = replace(
        small, env=both, arms=(arms.Arm("warm start only", None), arms.Arm("one", "baselines.vldac", env=ENV)),
        judged_on=both,
    )  # fmt: skip
    monkeypatch.setitem(arms.STUDIES, "small", item)
    call = study.Runs.call

    def fewer(self, arguments, log):
        more = ["--episodes", "2", "--policy-arg", "image_tokens=4"] if arguments[0] == "vlgym" else []
        return call(self, [*arguments, *more], log)

    monkeypatch.setattr(study.Runs, "call", fewer)
    folder = study.run(study.Config("small", out=tmp_path))
    runs = json.loads((folder / "runs.json").read_text())
    assert [[r["env_id"] for r in run["judged"]] for run in runs] == [both.split(","), both.split(",")]
    assert [r["episodes"] for run in runs for r in run["judged"]] == [2] * 4
    assert "policy" not in runs[0]["judged"][0]
    assert runs[0]["curve"] == []
    assert f"| trained on | {ENV} | vlgym/Blackjack-v0 | mean |" in (folder / "small.md").read_text()


def test_only_the_first_arm_of_an_environment_is_judged_before_its_training():
    one, other, alone = arms.VLDAC, arms.LOOP, arms.Arm("alone", "baselines.vldac", env="vlgym/Blackjack-v0")
    item = replace(arms.STUDIES["numberline"], arms=(arms.Arm("warm start only", None), one, alone, other))
    assert [item.starts(arm) for arm in (one, alone, other)] == [True, True, False]


def test_a_run_counts_when_its_start_has_been_judged(tmp_path, small):
    row = {"update": 2, "env_id": ENV, "success": 0.5}
    for slug in ("vl-dac", "loop"):
        out = tmp_path / "runs" / f"{slug}-0"
        out.mkdir(parents=True)
        write_record(out / "evaluation.json", [row])
        write_json(out / study.DONE, {})
        (out / "log.jsonl").write_text("")
    assert study.collect(tmp_path, small, {}) == []
    first = tmp_path / "runs" / "vl-dac-0" / "evaluation.json"
    write_record(first, [{**row, "update": 0, "success": 0.25}, row])
    assert [[e["success"] for e in run["evaluations"]] for run in study.collect(tmp_path, small, {})] == [
        [0.25, 0.5]
    ] * 2
    write_record(first, [{**row, "update": 0, "env_id": "vlgym/Other-v0"}, row])
    assert [run["arm"] for run in study.collect(tmp_path, small, {})] == ["VL-DAC"]


def test_a_study_goes_on_on_another_machine_from_the_runs_that_are_kept(tmp_path, small, monkeypatch, capsys):
    """The runs are made up: what is held is which are called, what is kept, and whose start counts."""
    monkeypatch.setattr(study, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(study, "UNFINISHED", tmp_path / "pages" / "unfinished")
    calls: list[str] = []
    stop_at: list[str] = ["baselines.loop"]

    def call(self, arguments, log):
        calls.append(arguments[0])
        if arguments[0] in stop_at:
            return False
        out = Path(arguments[arguments.index("--out") + 1])
        (out / "model").mkdir(parents=True)
        if arguments[0] == "baselines.sft":
            write_record(out / "warm.json", {"report": {"max_new_tokens": 8}})
            return True
        before = [] if "--no-eval-before" in arguments else [{"update": 0, "env_id": ENV, "success": 0.25}]
        end = {"update": 2, "env_id": ENV, "success": 0.5, "mean_return": 0.5, "invalid_rate": 0.0}
        write_record(out / "evaluation.json", [*before, end])
        write_json(out / "model" / "config.json", {})
        (out / "log.jsonl").write_text("")
        return True

    monkeypatch.setattr(study.Runs, "call", call)
    file = tmp_path / "pages" / "unfinished" / "small.json"
    study.run(study.Config("small", out=tmp_path / "one", workers=1, write=True))
    assert calls == ["baselines.sft", "baselines.vldac", "baselines.loop"]
    assert "1 of 2 runs have ended" in capsys.readouterr().out
    assert [run["arm"] for run in json.loads(file.read_text())["runs"]] == ["VL-DAC"]
    assert not (tmp_path / "pages" / "small.md").exists()
    whole = file.read_text()
    file.write_text(whole[:-9])
    with pytest.raises(UserError, match=r"small\.json cannot be read"):
        study.run(study.Config("small", out=tmp_path / "broken", workers=1))
    file.write_text(whole)
    calls.clear()
    stop_at.clear()
    study.run(study.Config("small", out=tmp_path / "other", workers=1, env_steps=8))
    assert calls == ["baselines.sft", "baselines.vldac", "baselines.loop"]  # another budget: nothing is taken over
    calls.clear()
    study.run(study.Config("small", out=tmp_path / "two", workers=1, write=True))
    assert calls == ["baselines.sft", "baselines.loop"]
    runs = json.loads((tmp_path / "pages" / "small.json").read_text())
    assert [(run["arm"], [e["success"] for e in run["evaluations"]]) for run in runs] == [
        ("VL-DAC", [0.25, 0.5]), ("LOOP", [0.25, 0.5]),
    ]  # fmt: skip
    assert "Incomplete" not in (tmp_path / "pages" / "small.md").read_text()
    assert not file.exists()


def test_to_judge_the_start_or_not_changes_no_bit_of_the_training(tmp_path):
    warm = WarmConfig(steps=1, samples=32, batch=4, val_episodes=2)
    models = []
    for before in (True, False):
        config = vldac.Config(
            env=ENV, out=tmp_path / str(before), image_tokens=4, threads=1, warm=warm, num_envs=4, rollout_steps=2,
            minibatch=8, updates=2, value_warmup=0, eval_episodes=4, eval_before=before, max_new_tokens=12, lr=1e-3,
        )  # fmt: skip
        vldac.train(config)
        rows = read_record(tmp_path / str(before) / "evaluation.json")
        assert [row["update"] for row in rows] == ([0, 2] if before else [2])
        models.append((tmp_path / str(before) / "model" / "model.safetensors").read_bytes())
    assert models[0] == models[1]


def test_a_failed_run_is_named_with_its_log(tmp_path, small, monkeypatch):
    monkeypatch.setitem(arms.STUDIES, "small", replace(small, warm_options=("--warm.steps", "-1")))
    with pytest.raises(UserError, match=r"warm-0\.txt"):
        study.run(study.Config("small", out=tmp_path))


def test_unknown_studies_and_bad_numbers_are_refused(tmp_path):
    with pytest.raises(UserError, match="numberline"):
        study.run(study.Config("numbrline", out=tmp_path))
    with pytest.raises(UserError, match="--workers"):
        study.run(study.Config("numberline", out=tmp_path, workers=0))


def test_a_warm_start_alone_writes_down_how_it_was_made(tmp_path):
    warm = WarmConfig(steps=1, samples=32, batch=4, val_episodes=2)
    report = sft.run(sft.Config(env=ENV, out=tmp_path / "warm", image_tokens=4, threads=1, warm=warm))
    text = (tmp_path / "warm" / "warm.json").read_text()
    record = json.loads(text)
    assert record["environments"][ENV]["parser"] == "tag"
    assert record["policy"]["max_new_tokens"] == report.max_new_tokens > 0
    assert (record["config"]["warm"]["steps"], record["report"]["steps"]) == (1, 1)
    assert {"torch", "vlgym-cards"} <= record["versions"].keys()
    assert "null" not in text


def test_a_run_of_an_older_record_format_is_not_resumed_by_guessing():
    now = {"format": 2, "config": {"algorithm": "x"}, "environments": {}}
    check_same(now, now)
    with pytest.raises(UserError, match=r"recorded by another version of vlgym \(record format 1, here 2\)"):
        check_same({**now, "format": 1}, now)


def test_a_first_report_without_a_finished_run_says_so(tmp_path, small, monkeypatch):
    monkeypatch.setattr(study.Runs, "call", lambda self, arguments, log: False)
    with pytest.raises(UserError, match="No run of small has ended"):
        study.run(study.Config("small", out=tmp_path))
