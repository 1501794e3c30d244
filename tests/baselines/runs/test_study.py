"""Studies: statistics by hand, sets of interaction types, and small ones run, resumed, reported."""

import datetime
import importlib
import json
import math
from dataclasses import replace

import pytest
from bandit import ONE, PLAIN, SEEN
from scipy.stats import ttest_1samp
from stage import ENV

from baselines import sft
from baselines.learning import command
from baselines.learning.warm_start import WarmConfig
from baselines.models.folders import TrainedLimits, read_limits
from baselines.runs.folder import check_same, write_record
from baselines.studies import arms, processes, report, sets, study
from baselines.studies.processes import Runs
from vlgym.errors import UserError
from vlgym.files import seal
from vlgym.intervals import student_p
from vlgym.registry import get_registry

SMALL = (
    "--num-envs", "4", "--rollout-steps", "2", "--minibatch", "8", "--eval-episodes", "2",
    "--no-eval-controls", "--image-tokens", "4", "--save-every", "1", "--record-every", "0",
    "--max-new-tokens", "9", "--epochs", "1",
)  # fmt: skip
WARM = (
    "--warm.steps", "2", "--warm.samples", "32", "--warm.batch", "8", "--warm.check-every", "50",
    "--warm.val-episodes", "2", "--image-tokens", "4",
)  # fmt: skip


def give(arm, seed, success=0.5, **more):
    """A run's results."""
    end = {"success": success, "mean_return": 0.5, "invalid_rate": 0.0, "env_id": ENV, "update": 4}
    own = {"arm": arm, "seed": seed, "gradient_steps": 1, "evaluations": [end], "explained_variance": None}
    return own | more


def read_table(item, results):
    """The rows of a study's page by their arms, each by the column's name."""
    page = report.write_study_page("small", item, results, complete=True).splitlines()
    head, *rows = ([x.strip() for x in line.split("|")] for line in page if line.startswith("| "))
    return {row[1]: dict(zip(head, row, strict=True)) for row in rows}


@pytest.mark.parametrize(
    ("count", "others", "expected"),
    [
        (2, {0: 0.8, 1: 0.4, 2: 0.3}, f"-0.200 +-{4.303 * 0.3 / 3:.3f}"),
        (3, {0: 0.8, 1: 0.4, 2: 0.3}, f"-0.200 +-{6.20535 * 0.3 / 3:.3f}"),  # two comparisons hold together
        (2, {0: 0.8, 1: 0.4, 5: 0.0}, "-0.100 +-0.000"),  # seeds of both
        (2, {0: 0.8}, "-"),
    ],
)
def test_arms_are_compared_seed_by_seed(count, others, expected):
    results = [give("VL-DAC", seed, x) for seed, x in {0: 0.9, 1: 0.5, 2: 0.7}.items()]
    results += [give("LOOP", seed, x) for seed, x in others.items()]
    compared = (arms.VLDAC, arms.LOOP, arms.Arm("GRPO", "baselines.grpo"))[:count]
    table = read_table(replace(arms.STUDIES["algorithms"], arms=compared), results)
    assert (table["VL-DAC"]["less VL-DAC"], table["LOOP"]["less VL-DAC"]) == ("-", expected)


def test_an_outcome_has_the_gain_of_each_seed_and_unreadable_replies_to_grey_pictures():
    grey = {"success": 0.0, "invalid_rate": 0.75}
    runs = [
        {"arm": "VL-DAC", "seed": seed, "evaluations": [
            {"update": 0, "success": first, "episodes": 10_000},
            {"update": 9, "success": last, "episodes": 10_000, "grey": grey}]}
        for seed, (first, last) in enumerate(((0.2, 0.5), (0.4, 0.6), (0.3, 0.7)))
    ]  # fmt: skip
    item = arms.STUDIES["algorithms"]
    runs += [{**runs[0], "arm": "LOOP"}]
    row = report.judge_arm(item, arms.VLDAC, runs)
    assert row.gain == pytest.approx([0.3, 0.2, 0.4])
    assert (row.trained, row.grey, row.unreadable) == (True, [0.0] * 3, [0.75] * 3)
    assert row.p_gain == pytest.approx(ttest_1samp([0.3, 0.2, 0.4], 0).pvalue / 2)
    assert row.p_blind == student_p([each - row.blind for each in row.after])
    for run in runs:
        run["evaluations"] = [{**each, "episodes": 4} for each in run["evaluations"]]
    assert report.judge_arm(item, arms.VLDAC, runs).p_gain > 0.1  # four episodes deviate more
    for option, trained, words in (
        (("--pictures", "grey"), False, False), (("--env-kwargs", "modality=none"), False, False),
        (("--env-kwargs", "modality=text"), True, True),
        (("--env-kwargs", "modality=both"), True, True),
    ):  # fmt: skip
        row = report.judge_arm(item, replace(arms.VLDAC, options=option), runs)
        assert (row.trained, row.blind is None, math.isnan(row.p_blind)) == (trained, words, words)


def test_a_form_of_an_environment_has_its_own_blind_floor():
    marks, whole = arms.STUDIES["curve-ScreensClick-marks"], arms.STUDIES["curve-OneRoom-v1"]
    rows = json.loads((processes.RESULTS_FOLDER / "screens.json").read_text())
    (row,) = (each for each in rows if each.get("form") == "marks")
    blind = report.read_blind(marks)
    assert blind["success"] == row["success"] == report.judge_arm(marks, arms.VLDAC, []).blind
    assert row["random"] + blind["share"] * (1 - row["random"]) == pytest.approx(row["success"])
    recorded = get_registry().known[whole.env]["blind"]["success"]
    assert report.read_blind(whole)["success"] == recorded
    assert (marks.label, whole.label) == ("ScreensClick-v0, marks", "OneRoom-v1")


def test_a_curve_is_binned_by_episodes():
    curve = [[256, 0.5, 0, 0, 10], [512, 1.0, 0, 0, 30], [768, None, 0, 0, 0], [1024, 0.25, 0, 0, 4]]
    base = replace(arms.STUDIES["algorithms"], env_steps=1024)
    assert report.binned({"curve": curve}, base) == [(256.0, pytest.approx(35 / 40)), (768.0, 0.25)]
    wide = replace(base, bin=1024)
    assert report.binned({"curve": curve}, wide) == [(512.0, pytest.approx(36 / 44))]
    beyond = [*curve, [1200, 1.0, 0, 0, 4]]  # a rollout that ended after the budget
    assert report.binned({"curve": beyond}, base)[1] == (768.0, pytest.approx(5 / 8))


def test_tables_have_the_critics_explained_variance_over_the_second_half_of_updates():
    seeds = [[-9.0, -9.0, 0.25, None, 0.75], [-9.0, 0.125, 0.125]]
    halves = [study.average_half([{"ev": value} for value in seed], "ev") for seed in seeds]
    assert halves == [0.5, 0.125]
    assert study.average_half([{}, {"ev": None}], "ev") is None
    results = [give("VL-DAC", i, explained_variance=half) for i, half in enumerate(halves)]
    results.append(give("LOOP", 0))
    item = replace(arms.STUDIES["algorithms"], arms=(arms.VLDAC, arms.LOOP))
    rows = read_table(item, results)
    assert [row["explained variance"] for row in rows.values()] == ["+0.31", "-"]
    for each, alike in ((item, True), (replace(item, warm_options=None), False)):
        page = report.write_study_page("x", each, [give("VL-DAC", 0)], complete=True)
        assert ("All arms of a seed begin as the same model." in page) is alike


def test_a_published_study_has_its_date_and_host(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(processes, "RESULTS_FOLDER", tmp_path / "kept")
    draw = lambda path: path.write_bytes(b"plot")  # noqa: E731
    for name in ("one", "two"):
        processes.Runs(tmp_path).publish(name, [1], draw, "page", None, write=True)
    assert json.loads((tmp_path / "kept/two.json").read_text()) == [1]
    made = json.loads((tmp_path / "kept/made.json").read_text())
    assert [made[name]["date"] for name in ("one", "two")] == [f"{datetime.date.today()}"] * 2
    assert "cores" in made["one"]["host"]


def test_arms_that_share_no_warm_start_are_all_judged_before_training(tmp_path, monkeypatch):
    calls: list[list[str]] = []
    monkeypatch.setattr(study.Runs, "learn", lambda *arguments: calls.append(arguments[4]))
    item = arms.STUDIES["words-NumberLine-v1"]
    for arm in item.arms:
        study.Runs(tmp_path).train(item, arm, 0, ())
    assert ["--no-eval-before" in options for options in calls] == [False] * 4
    for at, evaluations in enumerate(([{"update": 0}, {"update": 4}], [{"update": 4}])):
        out = tmp_path / "runs" / f"{item.arms[at].slug}-0"
        out.mkdir(parents=True)
        write_record(out / "done.json", {})
        write_record(out / "evaluation.json", evaluations)
    runs = study.collect_runs(tmp_path, item)
    assert [len(run["evaluations"]) for run in runs] == [2, 1]  # each has its own beginning


def test_a_study_runs_reports_and_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    calls, both = [], (arms.VLDAC, arms.LOOP)
    item = arms.Study("Small", "Does it run?", ENV, both, 8, seeds=1, options=SMALL, warm_options=WARM)
    monkeypatch.setitem(arms.STUDIES, "small", item)

    def call(self, arguments, log):
        """The command in this process."""
        calls.append(list(arguments))
        module = importlib.import_module(arguments[0])
        getattr(module, "train", getattr(module, "run", None))(command.parse(module.Config, "", arguments[1:]))
        return True

    monkeypatch.setattr(study.Runs, "call", call)
    monkeypatch.setattr("signal.signal", lambda number, handle: None)  # the commands run in a thread
    folder = study.run_study(study.Config("small", out=tmp_path, workers=1))
    assert [a[0] for a in calls] == ["baselines.sft", "baselines.vldac", "baselines.loop"]
    assert all(a[a.index("--threads") + 1] == "1" for a in calls)
    page = (folder / "small.md").read_text()
    assert ["| VL-DAC | " in page, "| LOOP | " in page, "Incomplete" in page] == [True, True, False]
    assert (folder / "small.png").read_bytes().startswith(b"\x89PNG")
    runs = json.loads((folder / "runs.json").read_text())
    assert [(run["arm"], run["seed"]) for run in runs] == [("VL-DAC", 0), ("LOOP", 0)]
    assert all(run["curve"][-1][0] >= 8 and len(run["evaluations"]) == 2 for run in runs)
    assert [run["explained_variance"] is None for run in runs] == [False, True]
    assert "policy" not in json.dumps(runs)
    assert runs[0]["evaluations"][0] == runs[1]["evaluations"][0]  # judged once
    assert [run["evaluations"][0]["update"] for run in runs] == [0, 0]
    assert ["--no-eval-before" in a for a in calls[1:]] == [False, True]
    calls.clear()
    (folder / "runs" / "loop-0" / "done.json").unlink()
    study.run_study(study.Config("small", out=tmp_path, workers=1))
    assert [a[:2] for a in calls] == [["baselines.loop", "--resume"]]
    with pytest.raises(UserError, match="other options"):
        study.run_study(study.Config("small", out=tmp_path, env_steps=16))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "numbrline"}, "algorithms"), ({"workers": 0}, "--workers"),
        ({"seeds": 0}, "must be >= 1"),
        ({"options": ("--gamma", "2")}, "gamma"),
    ],
)  # fmt: skip
def test_unknown_studies_and_bad_numbers_are_refused(tmp_path, options, words):
    with pytest.raises(UserError, match=words):
        study.run_study(study.Config(**{"name": "algorithms", "out": tmp_path, **options}))


def test_a_warm_start_alone_writes_down_how_it_was_made_and_its_limits(tmp_path):
    options = {"env": ENV, "image_tokens": 4, "env_kwargs": ("parser=json",), "threads": 1}
    warm = WarmConfig(steps=1, samples=32, batch=4, val_episodes=2)
    report = sft.run(sft.Config(**options, out=tmp_path / "warm", warm=warm))
    assert read_limits(str(tmp_path / "warm")) == TrainedLimits(report.max_new_tokens, 4)
    assert report.longest_reply > 9  # tokens of the longest one with tags
    text = (tmp_path / "warm" / "warm.json").read_text()
    record = json.loads(text)
    assert record["environments"][ENV]["parser"] == "json"
    assert record["policy"]["max_new_tokens"] == report.max_new_tokens > 0
    assert (record["config"]["warm"]["steps"], record["report"]["steps"]) == (1, 1)
    assert {"torch", "vlgym-cards"} <= record["versions"].keys()
    assert "null" not in text


def test_a_run_of_an_older_record_format_is_not_resumed_by_guessing():
    now = {"format": 2, "config": {"algorithm": "x"}, "environments": {}}
    check_same(now, now)
    with pytest.raises(UserError, match=r"another version of vlgym \(record format 1, here 2\)"):
        check_same({**now, "format": 1}, now)


def test_every_environment_is_another_interaction_type_and_sets_are_drawn_once():
    every = (*sets.TRAINED, *sets.HELD_OUT)
    kinds = {get_registry().get(env_id).interaction for env_id in every}
    assert len(kinds) == len(every)
    assert () not in kinds
    for size in sets.SIZES:
        drawn = sets.draw_sets(size)
        assert drawn == sets.draw_sets(size)
        assert len(set(drawn)) == len(drawn) == (1 if size == len(sets.TRAINED) else sets.MOST_SETS)
        assert all(len(set(each)) == size for each in drawn)
    assert len(sets.list_runs(2)) == 2 * (1 + 3 * sets.MOST_SETS + 1)


def test_a_gain_is_taken_from_the_beginning_of_the_same_seed_on_the_same_type():
    def run(name, seed, held_out, before):
        return {"name": name, "seed": seed, "held_out": held_out, "before": before}

    one, other = sets.HELD_OUT
    runs = [run("0-0", 0, one, 0.2), run("0-0", 0, other, 0.4), run("0-0", 1, other, 0.1)]
    runs += [run("2-1", 0, one, 0.1), run("1-0", 0, one, 0.5), run("1-0", 0, other, 0.3)]
    runs += [run("1-0", 1, one, 1.0), run("1-0", 1, other, 0.8)]  # without a beginning on one
    assert sets.gains(runs, one) == {1: {0: [pytest.approx(0.3)]}, 2: {0: [pytest.approx(-0.1)]}}
    assert sets.gains(runs, other) == {1: {0: [pytest.approx(-0.1)], 1: [pytest.approx(0.7)]}}


def test_the_models_of_a_seed_are_one_observation():
    env_id = sets.HELD_OUT[0]
    starts, own = {0: 0.2, 1: 0.4}, {0: [0.1, 0.5], 1: [0.4, 0.6]}
    runs = [
        {"name": "0-0", "seed": seed, "held_out": env_id, "set": [], "before": value, "grey": 0.0,
         "after": 0.0, "reached": None} for seed, value in starts.items()
    ]  # fmt: skip
    runs += [
        {**runs[seed], "name": f"1-{number}", "before": value}
        for seed, values in own.items() for number, value in enumerate(values)
    ]  # fmt: skip
    assert sets.cluster(sets.gains(runs, env_id)[1]) == pytest.approx([0.1, 0.1])
    lines = sets.write_sets_page(runs, 64, 2, complete=True).splitlines()
    row = next(line for line in lines if "| 1 | 4 |" in line)
    assert "| +0.100 +-0.000 |" in row  # four models as separate observations: +-0.315


def test_the_threshold_is_reached_over_a_window_of_whole_updates():
    assert sets.reach([]) is None
    assert sets.reach([(128, 1.0, 31.0)]) is None
    assert sets.reach([(128, 1.0, 16.0), (256, 0.0, 16.0)]) == 256
    points = [(128, 1.0, 8.0), (256, 0.0, 16.0), (384, 0.5, 16.0), (512, 0.6, 32.0)]
    assert sets.reach(points) == 512


def test_the_study_begins_runs_reports_and_goes_on_with_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def call(self, arguments, log):
        config = command.parse(importlib.import_module(arguments[0]).Config, "", arguments[1:])
        calls.append(config)
        model = config.out if arguments[0] == "baselines.sft" else config.out / "model"
        model.mkdir(parents=True)
        for name in ("config.json", "warm.json"):
            (model / name).write_text("{}")
        points = [("test", 0, 0.25), ("test", 1024, 1.0)]
        rows = [
            {"split": split, "env_steps": steps, "success": success, "grey": {"success": success / 2}}
            for split, steps, success in points
        ]
        write_record(config.out / "evaluation.json", rows)
        row = {"update": 4, "env_steps": 512, "episode/success": 0.5, "episode/count": 40.0}
        (config.out / "log.jsonl").write_text(json.dumps(seal(row)) + "\n")
        return config.env != ONE  # the run of that set is stopped

    for name, value in (("TRAINED", (PLAIN, ONE)), ("HELD_OUT", (SEEN,)), ("SIZES", (1, 2))):
        monkeypatch.setattr(sets, name, value)
    monkeypatch.setattr(Runs, "call", call)
    folder = study.run_study(study.Config("sets", out=tmp_path, workers=1, seeds=1))
    warm, *trained = calls[:4]
    assert warm.env == sets.STUDY.env
    assert [(c.env, c.env_steps, c.eval_episodes) for c in trained] == [
        (PLAIN, 1024, 0), (ONE, 1024, 0), (f"{PLAIN},{ONE}", 1024, 0),
    ]  # fmt: skip
    assert {c.model for c in trained} == {str(folder / "warm/seed-0")}
    begun = [folder / "warm/seed-0", *(folder / f"runs/{name}-0/model" for name in ("1-0", "2-0"))]
    assert [c.model for c in calls[4:]] == list(map(str, begun))
    assert {(c.env, c.env_steps, c.eval_episodes) for c in calls[4:]} == {(SEEN, 1024, 24)}
    runs = json.loads((folder / "runs.json").read_text())
    assert [(run["name"], run["set"]) for run in runs] == [("0-0", []), ("1-0", [PLAIN]), ("2-0", [PLAIN, ONE])]
    numbers = {tuple(run[k] for k in ("before", "grey", "after", "reached")) for run in runs}
    assert numbers == {(0.25, 0.125, 1.0, 512)}
    text = (folder / "sets.md").read_text()
    assert "| 2 | 1 | 0.250 | 0.125 | +0.000 +-nan | 1 of 1 | 512 | 1.000 |" in text
    assert "Incomplete" in text
    assert (folder / "sets.png").read_bytes().startswith(b"\x89PNG")

    calls.clear()
    study.run_study(study.Config("sets", out=tmp_path, workers=1, seeds=1))
    assert [(c.env, c.resume) for c in calls] == [(ONE, False)]  # it had no checkpoint
    with pytest.raises(UserError, match="other options"):
        study.run_study(study.Config("sets", out=tmp_path, model="tiny"))
    calls.clear()
    study.run_study(study.Config("sets", out=tmp_path / "own", workers=1, seeds=1, model="someone/model"))
    assert [c.model for c in calls[:4]] == ["someone/model"] * 4
