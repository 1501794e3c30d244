"""The study of interaction types: its sets, its figures by hand, and a small one run and gone on
with."""

import importlib
import json

import pytest
from bandit import ONE, PLAIN, SEEN, bandits

from baselines.learning import command
from baselines.runs.folder import write_record
from baselines.studies import sets, study
from baselines.studies.processes import Runs
from vlgym.errors import UserError
from vlgym.files import seal
from vlgym.registry import get_registry


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
    found = [run("0-0", 0, one, 0.2), run("0-0", 0, other, 0.4), run("0-0", 1, other, 0.1)]
    found += [run("2-1", 0, one, 0.1), run("1-0", 0, one, 0.5), run("1-0", 0, other, 0.3)]
    found += [run("1-0", 1, one, 1.0), run("1-0", 1, other, 0.8)]  # without a beginning on one
    assert sets.gains(found, one) == {1: {0: [pytest.approx(0.3)]}, 2: {0: [pytest.approx(-0.1)]}}
    assert sets.gains(found, other) == {1: {0: [pytest.approx(-0.1)], 1: [pytest.approx(0.7)]}}


def test_the_models_of_a_seed_are_one_observation():
    held = sets.HELD_OUT[0]
    starts, own = {0: 0.2, 1: 0.4}, {0: [0.1, 0.5], 1: [0.4, 0.6]}
    found = [
        {"name": "0-0", "seed": seed, "held_out": held, "set": [], "before": value, "grey": 0.0,
         "after": 0.0, "reached": None} for seed, value in starts.items()
    ]  # fmt: skip
    found += [
        {**found[seed], "name": f"1-{number}", "before": value}
        for seed, values in own.items() for number, value in enumerate(values)
    ]  # fmt: skip
    assert sets.cluster(sets.gains(found, held)[1]) == pytest.approx([0.1, 0.1])
    lines = sets.write_sets_page(found, 64, 2, complete=True).splitlines()
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
        module = importlib.import_module(arguments[0])
        config = command.parse(module.Config, "", arguments[1:])
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
    with bandits():
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
