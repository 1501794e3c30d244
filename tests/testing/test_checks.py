"""Every check of the conformance kit fails for an environment that is broken in just that way."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import broken_toys
import numpy as np
import pytest
from faults.table import FAULTS, make_fault_spec
from toys import Walk, installed, make_entry, make_spec

from vlgym.env.pictures import compare_sheets, unpack_pictures
from vlgym.env.probes import Probe
from vlgym.env.spec import EnvSpec
from vlgym.errors import UserError
from vlgym.parsers import AutoParser
from vlgym.play.policies import RandomPolicy
from vlgym.registry.making import build
from vlgym.testing import CHECKS, EnvConformance, Subject, certify, measure_behaviour, measure_hashes
from vlgym.testing.fingerprint import transcript
from vlgym.testing.playing import write_garbage

pytestmark = pytest.mark.usefixtures("toys_importable")


BROKEN: list[tuple[str, str, dict[str, Any], str]] = [
    ("card", "NoCard", {}, "lacks Goal, Observation"),
    ("card", "OldPrompt", {}, "prompt version 2 is not the spec's 1"),
    ("card", "Walk", {"reply_styles": ("tag", "no_such_module_here:Parser")}, "cannot be loaded"),
    ("gymnasium", "ListReset", {}, "was not a tuple"),
    ("determinism", "RemembersTheEpisodeBefore", {}, "seed 0: info of turn 0"),
    ("determinism", "Seedless", {}, "the seed has no effect"),
    ("processes", "Hashing", {}, "in another process"),
    ("described", "WordsTellTheSteps", {}, "one picture is told in two ways"),
    ("state", "StateForgetsAfterSixteen", {}, "the image differs after set_state"),
    ("copies", "CopyForgetsTheDraws", {}, "samples another reply"),
    ("oracle", "TestUnsolvable", {}, "the spec promises 1.0"),
    ("oracle", "Silent", {"oracle": "none"}, "but solve() answers"),
    ("floor", "Easy", {}, "is not below 0.9"),
    ("blind", "Walk", {"blind": ("no_such_module:Player",)}, "cannot import no_such_module:Player"),
    ("rewards", "TestPaysMore", {}, "leave [0.0, 1.0]"),
    ("rewards", "Walk", {"kwargs": {"max_turns": 12}}, "an episode took 12 turns, the spec says 8"),
    ("garbage", "Touchy", {"reply_styles": ("broken_toys:TouchyParser",)}, "raised ValueError"),
    ("garbage", "Paying", {}, "was invalid and paid 0.5"),
    ("garbage", "PayingPlans", {"planners": ("online", "global")}, "paid 0.5; its moves pay 0.0"),
    ("turn_limit", "Impatient", {}, "terminated the episode"),
    ("turn_limit", "Forgiving", {"kwargs": {"invalid_action": "terminate"}}, "did not terminate"),
    ("parser_time", "Rescanning", {"reply_styles": ("broken_toys:RescanningParser",)}, "must be linear"),
    ("parsers", "Semicolon", {"reply_styles": ("tag", "plan")}, "'left; slowly' came back as"),
    ("prompt", "Accented", {}, r"does not state the legal action(s) ['\ue000 left']"),
    ("prompt", "Folded", {}, "does not hold the words ['走到第 3 格。'] as they are written"),
    ("endings", "Ajar", {}, "a closed environment takes a step"),
    ("picture", "Dim", {}, "the levels of a colour differ by 1 of 255"),
    ("reset_options", "Deaf", {}, "accepted the option no_such_option=1 without an error"),
    ("reset_options", "Credulous", {}, "accepted the option target={'no such': 'value'}"),
    ("reset_options", "Hasty", {}, "no_such_option=1 changed the running episode"),
    ("reset_options", "Secretive", {}, "does not name the reset option(s) whither"),
    ("fresh", "InfoIsSharedFromTurnThree", {}, "the infos of turns 3 and 4 share a list"),
    ("fresh", "Canvas", {}, "the images of turns 0 and 1 share memory"),
    ("levels", "Backwards", {"levels": ("five cells", "two cells")}, "nor random success falls"),
    ("levels", "TooFar", {"levels": ("two cells", "five cells")}, "level 1: oracle success 0.0"),
    ("levels", "Alike", {"levels": ("two cells", "two cells")}, "begin alike on two"),
    ("levels", "Alike", {"levels": ("two cells",)}, "the card has 1 levels"),
    ("silence", "Costly", {}, "silence pays"),
    ("side_effects", "Printing", {}, "it printed 'target"),
    ("side_effects", "Writing", {}, "it printed 'driver loaded"),
    ("side_effects", "PythonDraw", {}, "global random module"),
    ("side_effects", "NumpyDraw", {}, "numpy's global generator"),
    ("side_effects", "Setting", {}, "it changed environment variables"),
    ("vector", "Homesick", {}, "differ"),
    ("vector", "Homeless", {}, "async, SAME_STEP: turn 1 differs"),
    ("vector", "Homebound", {}, "async, SAME_STEP: turn 1 differs"),
    ("splits", "SplitsMix", {}, "does not begin with that seed's generator"),
]


def broken_spec(name: str, changes: dict[str, Any]) -> EnvSpec:
    module = "toys" if name == "Walk" else "broken_toys"
    if module == "broken_toys" and not hasattr(broken_toys, name):
        return make_fault_spec(name)
    return make_spec(f"vlgym/{name}-v0", f"{module}:{name}", **changes)


LETTERS = ("prompt", "parsers", "garbage", "words", "conduct")


@pytest.mark.parametrize(("name", "only"), [("Walk", None), ("Chinese", LETTERS)])
def test_a_sound_toy_has_every_property(name: str, only: tuple[str, ...] | None) -> None:
    spec = broken_spec(name, {})
    with installed(spec):
        results = certify(spec.id, only=only).results
    assert [result.name for result in results] == [*(only or (name for name in CHECKS if name != "levels"))]
    assert [result for result in results if not (result.passed and result.evidence)] == []


@pytest.mark.parametrize(("check", "name", "changes", "evidence"), BROKEN, ids=[f"{row[0]}-{row[1]}" for row in BROKEN])
def test_a_check_fails_for_an_environment_that_is_broken_in_that_way(check, name, changes, evidence):
    spec = broken_spec(name, changes)
    with installed(spec):
        result = certify(spec.id, only=["fresh", check]).results[-1]  # it was made before
    assert not result.passed
    assert evidence in result.evidence


def test_every_check_has_a_broken_environment() -> None:
    assert {row[0] for row in BROKEN} | FAULTS.keys() | {"recorded"} >= set(CHECKS)


def test_what_registry_yaml_records_is_compared_and_the_differences_are_named() -> None:
    spec = make_spec()
    entry = {**make_entry(spec), **measure_hashes(spec, "vlgym-toys")}
    wrong = {
        "prompt_hash": ("aaaa", f"prompt_hash is '{entry['prompt_hash']}', recorded 'aaaa'"),
        "parser_hash": ("tag-v9", "parser_hash is 'auto-v1', recorded 'tag-v9'"),
        "spec": (make_spec(summary="Run to the target."), "spec field(s) summary changed"),
        "fingerprint": ("1111", "fingerprint changed from 1111"),
    }
    with installed(spec, known={spec.id: entry}):
        assert certify(spec.id, only=["recorded"]).passed
    for name, (value, words) in wrong.items():
        with installed(spec, known={spec.id: {**entry, name: value}}):
            result = certify(spec.id, only=["recorded"]).results[0]
        assert not result.passed
        assert words in result.evidence
        assert "vlgym registry --id vlgym/Walk-v0" in result.evidence


def test_a_new_id_and_other_arguments_have_nothing_to_be_compared_with() -> None:
    spec = make_spec()
    with installed(spec):
        assert "does not know this id" in certify(spec.id, only=["recorded"]).results[0].evidence
    with installed(spec, known={spec.id: make_entry(spec)}):
        assert certify(spec.id, {"max_turns": 5}, only=["recorded"]).passed


def test_an_exception_is_evidence_and_does_not_stop_the_certificate() -> None:
    spec = make_spec("vlgym/Gone-v0", "no_such_module_here:Gone")
    with installed(spec):
        certificate = certify(spec.id, only=["card", "fresh"])
    assert not certificate.passed
    evidence = [result.evidence for result in certificate.results]
    assert all("cannot import no_such_module_here:Gone" in each for each in evidence)


def test_a_certificate_is_plain_data_and_its_results_are_handed_on_one_by_one() -> None:
    seen: list[Any] = []
    with installed(make_spec()):
        certificate = certify("vlgym/Walk-v0", only=["fresh", "card"], on_result=seen.append)
    data = json.loads(json.dumps(certificate.to_dict()))
    assert (data["id"], data["passed"]) == ("vlgym/Walk-v0", True)
    assert [check["name"] for check in data["checks"]] == [each.name for each in seen] == ["fresh", "card"]


def test_an_unknown_check_is_refused_with_the_nearest() -> None:
    with installed(make_spec()), pytest.raises(UserError, match=r"check='florr' is not one of .*Nearest: floor"):
        certify("vlgym/Walk-v0", only=["florr"])


def test_slow_episodes_are_fewer() -> None:
    slow = make_spec(figure_episodes=100)
    assert [Subject(spec).play(RandomPolicy()).episodes for spec in (make_spec(), slow)] == [30, 10]


def test_the_pytest_class_has_one_case_for_each_id_and_check() -> None:
    class Twice(EnvConformance):
        env_ids = ("vlgym/Walk-v0", "vlgym/Walk-v1")
        garbage = 20

    cases: dict[str, list[str]] = {}
    request = SimpleNamespace(
        fixturenames=("conformance_id", "conformance_check"),
        parametrize=lambda name, values: cases.update({name: [*values]}),
        config=SimpleNamespace(pluginmanager=SimpleNamespace(hasplugin=lambda name: False)),
    )  # fmt: skip
    Twice().pytest_generate_tests(request)
    assert cases == {"conformance_id": ["vlgym/Walk-v0", "vlgym/Walk-v1"], "conformance_check": list(CHECKS)}
    with installed(make_spec()):
        Twice().test_contract("vlgym/Walk-v0", "garbage")


def test_the_pytest_class_fails_where_the_check_fails() -> None:
    class Failing(EnvConformance):
        env_id = "vlgym/Walk-v0"
        env_kwargs = {"max_turns": 12}  # noqa: RUF012

    with installed(make_spec()), pytest.raises(AssertionError, match="an episode took 12 turns"):
        Failing().test_contract("vlgym/Walk-v0", "rewards")


def measure(cls: type, spec: EnvSpec, **kwargs: Any) -> Any:
    return measure_behaviour(lambda **more: cls(vlgym_spec=spec, **{**kwargs, **more}), spec)


def paying(pay: Callable[[Any, float], float]) -> type[Walk]:
    """Return a `Walk` with other rewards."""

    def act(env: Any, action: str) -> Any:
        outcome = Walk.act(env, action)
        return replace(outcome, reward=pay(env, outcome.reward))

    return broken_toys.broken("It pays otherwise.", act=act)


Wordy = broken_toys.broken("Its text ends in a blank.", state_text=lambda env: f"{Walk.state_text(env)} ")
Darker = broken_toys.broken("Its picture is darker.", image=lambda env: Walk.image(env) // 2)


def test_the_fingerprint_is_stable_and_moves_with_text_reward_rules_and_every_split() -> None:
    spec = make_spec()
    base, darker = measure(Walk, spec), measure(Darker, spec)
    assert base == measure(Walk, spec)
    assert darker.fingerprints == base.fingerprints  # pictures are compared by themselves, with tolerance
    assert compare_sheets(unpack_pictures(base.pictures), unpack_pictures(darker.pictures), exact=False) is not None
    others = [Wordy, paying(lambda env, reward: reward - 0.01)]
    others += [
        paying(lambda env, reward, split=split: reward * (1 + (env.seed_split == split)))
        for split in ("train", "val", "test")
    ]
    results = [base, measure(Walk, spec, max_turns=7), *(measure(cls, spec) for cls in others)]
    assert len({each.fingerprints[-1] for each in results}) == 7


def test_the_fingerprint_sees_a_rule_that_only_a_probe_reaches() -> None:
    bonus = paying(lambda env, reward: reward * (0.5 if env.target == 1 else 1.0))  # no seed draws that target
    blind = make_spec()
    probed = make_spec(probes=(Probe("a near target", ("right",), {"target": 1}),))
    assert measure(Walk, blind).fingerprints == measure(bonus, blind).fingerprints
    assert measure(Walk, probed).fingerprints != measure(bonus, probed).fingerprints


def test_a_probe_writes_actions_raw_texts_and_the_oracles_replies() -> None:
    env = build(make_spec())
    probe = Probe("all kinds", ("left", "@raw what?", "@oracle", "@oracle..."), {"target": 3})
    turns = [json.loads(line)[4]["vlgym"] for line in transcript(env, "vlgym/Walk-v0", probe)]
    assert [turn["actions"] for turn in turns] == [[], ["left"], [], ["right"], ["right"], ["right"], ["right"]]
    assert turns[2]["parse"] == "no_action"


def test_garbage_is_rarely_legal_and_repeats_with_its_generator() -> None:
    texts, again = ([write_garbage(np.random.default_rng(n), ["left"]) for n in range(300)] for _ in range(2))
    assert texts == again
    assert sum(AutoParser().parse(text, ["left"]).failure is None for text in texts) <= 3
    assert all(any(part in text for text in texts) for part in ("<action>", "left or maybe not"))
