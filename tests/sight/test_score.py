"""Simulated models are judged as what they are, from questions and from records of episodes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError
from vlgym.evaluation import without_images
from vlgym.play.rollout import Runner, run_episodes
from vlgym.registry import get_registry
from vlgym.registry.making import make, unwrap
from vlgym.sight.score import QUESTIONS, SUITE, Answer, SightReport, judge, judge_answers
from vlgym.types import Reply, StepRecord, Turn

RUNS = 100
Model = Callable[[Answer, np.random.Generator], str | None]
HISTORY, TEXT, DIGIT, SIDE = (f"vlgym/See{name}-v0" for name in ("History", "Text", "Digit", "Side"))


@cache
def questions(env_id: str, count: int) -> tuple[Answer, ...]:
    """The first test questions of a probe, unanswered."""
    env = make(env_id, image_size=(16, 16))
    answers = []
    for number in range(count):
        env.reset(seed=episode_seed(env_id, "test", number))
        answers.append(read_question(env))
    return tuple(answers)


def read_question(env: Any) -> Answer:
    names = ("topic", "answers", "answer", "levels", "level", "asked_as", "shown", "asked")
    return Answer(choice=None, **{name: getattr(env, name) for name in names if hasattr(env, name)})


@cache
def answered(question: Answer, choice: str | None) -> Answer:
    return replace(question, choice=choice)


@cache
def probes() -> list[str]:
    return [part.env_id for part in get_registry().suite(SUITE)]


def list_parts() -> list[tuple[str, str, str, int]]:
    """Return id, key, pictures and number of questions of each part."""
    return [
        (env_id, env_id if pictures == "shown" else f"{env_id} {pictures}", pictures, count)
        for env_id in probes()
        for pictures, count in QUESTIONS.items()
    ]


def guess(question: Answer, rng: np.random.Generator) -> str:
    return question.answers[int(rng.integers(len(question.answers)))]


def know(question: Answer, rng: np.random.Generator) -> str:
    return question.answer


def know_often(question: Answer, rng: np.random.Generator) -> str:
    if rng.random() < 0.6:
        return question.answer
    wrong = [answer for answer in question.answers if answer != question.answer]
    return wrong[int(rng.integers(len(wrong)))]


def see(place: Callable[[int], int]) -> Model:
    """A model that names the picture at another place than the asked one."""
    return lambda item, rng: item.shown[place(item.asked)] if item.shown else item.answer


def guess_where(unknown: Callable[[Answer], bool]) -> Model:
    return lambda item, rng: guess(item, rng) if unknown(item) else item.answer


def answer_parts(sighted: Model, seed: int) -> dict[str, list[Answer]]:
    """Answer the whole suite: `sighted` with the pictures, guesses in the controls."""
    rng, parts = np.random.default_rng(seed), {}
    for env_id, key, pictures, count in list_parts():
        model = sighted if pictures == "shown" else guess
        parts[key] = [answered(item, model(item, rng)) for item in questions(env_id, count)]
    return parts


def simulate(sighted: Model, seed: int = 0) -> SightReport:
    return judge_answers(answer_parts(sighted, seed))


def find(report: SightReport, env_id: str) -> Any:
    return next(probe for probe in report.probes if probe.env_id == env_id)


# ---- power -------------------------------------------------------------------------------------


def test_the_suite_with_its_controls_stays_under_250_requests() -> None:
    turns = sum(get_registry().get(env_id).max_turns for env_id in probes())
    assert (len(probes()), turns * sum(QUESTIONS.values())) == (8, 242)
    assert {part.episodes for part in get_registry().suite(SUITE)} == {QUESTIONS["shown"]}


def test_a_model_that_guesses_is_called_blind() -> None:
    reports = [simulate(guess, seed) for seed in range(RUNS)]
    assert all(bool(report.warnings) for report in reports if report.sees is False)
    assert sum(report.sees is False for report in reports) >= 0.99 * RUNS


def test_one_answer_that_is_often_right_by_accident_is_no_sight() -> None:
    side = questions(SIDE, 12)
    right = ["right"] * 11 + ["left"]
    answers = [replace(item, answer=answer) for item, answer in zip(side, right, strict=True)]
    digits = [answered(item, item.answer) for item in questions(DIGIT, 12)]
    for answer in ("right", "left"):
        choices = [replace(item, choice=answer) for item in answers]
        report = judge_answers({SIDE: choices, DIGIT: digits})
        assert find(report, SIDE).verdict == "too few"
        assert find(report, SIDE).p == 1.0


def test_a_model_that_is_always_right_is_hardly_ever_warned() -> None:
    reports = [simulate(know, seed) for seed in range(RUNS)]
    warned = [line for report in reports for line in report.warnings]
    assert len(warned) <= 1  # five guesses of eight colours are hardly ever all right
    assert all("without the pictures" in line for line in warned)
    assert {report.sees for report in reports} == {True}


def test_a_model_that_is_right_in_60_of_100_is_not_called_blind() -> None:
    reports = [simulate(know_often, seed) for seed in range(RUNS)]
    assert sum(report.sees is True for report in reports) >= 0.95 * RUNS
    wrong = [report for report in reports if "arrive" in " ".join(report.warnings)]
    assert len(wrong) <= 0.02 * RUNS  # nor is it said to get the pictures in another order


# ---- each kind of model ------------------------------------------------------------------------


def test_the_sentence_on_a_blind_model_gives_the_counts_and_what_to_check() -> None:
    report = simulate(guess, 3)
    right = sum(probe.shown.right for probe in report.probes)
    (line,) = report.warnings
    assert line.startswith("The model does no better with pictures than without (right ")
    assert f"(right {right} of 96, where guessing gives 15; with grey pictures " in line
    assert " of 40; with shuffled pictures " in line
    assert line.endswith("Check that the server accepts images, and that the model is one that sees.")
    assert {probe.verdict for probe in report.probes} == {"unclear"}


@pytest.mark.parametrize(("place", "named", "words"), [
    (lambda index: 3, (3, 3, 3, 3), "the model names the last: only the last one seems to arrive"),
    (lambda index: 3 - index, (3, 2, 1, 0), "Asked for the first picture of a history, the model names the last, "
     "and so on: the pictures arrive in reverse order."),
    (lambda index: (index + 1) % 4, (1, 2, 3, 0), "arrive in another order: asked for the first the second, "),
], ids=["last", "reversed", "shifted"])  # fmt: skip
def test_other_pictures_are_named(place: Callable[[int], int], named: tuple[int, ...], words: str) -> None:
    report = simulate(see(place))
    order = find(report, HISTORY).order
    assert (order.named, order.only, report.sees) == (named, None, True)
    assert order.table == tuple(tuple(3 * (column == place(row)) for column in range(5)) for row in range(4))
    (line,) = report.warnings
    assert words in line


def test_a_model_that_knows_the_last_picture_and_guesses_the_others_gets_only_that_one() -> None:
    model = guess_where(lambda item: bool(item.shown) and item.asked < 3)
    reports = [simulate(model, seed) for seed in range(30)]
    lines = [report.warnings for report in reports]
    warnings = [line for line in lines if len(line) == 1 and "only the last one seems to arrive" in line[0]]
    assert len(warnings) >= 24  # some guess the others well enough to look sighted
    assert all(report.sees for report in reports)
    assert "the model knows the last one (3 of 3 right), not the others" in warnings[0][0]


def test_a_model_that_reads_no_small_text_is_told_the_smallest_it_reads() -> None:
    report = simulate(guess_where(lambda item: item.level == "small"))
    probe = find(report, TEXT)
    read = {level.name: level.read for level in probe.levels}
    assert read == {"small": False, "medium": True, "large": True}
    assert probe.smallest == "medium"
    (line,) = report.warnings
    assert line.startswith("The smallest text that the model reads is medium (4 of 4 right), not small")


def test_unreadable_replies_are_not_taken_for_blindness() -> None:
    parts = answer_parts(lambda question, rng: None, 0)
    parts[DIGIT] = [replace(answer, cut=True) for answer in parts[DIGIT]]
    report = judge_answers(parts)
    assert report.sees is None
    (line,) = report.warnings
    assert line.startswith(
        "Most replies held no legal answer (96 of 96, 12 of them cut by a limit), so nothing can be said"
    )
    assert {probe.verdict for probe in report.probes} == {"unreadable"}


@pytest.mark.parametrize(("change", "words"), [
    ({"choice": None, "refused": True},
     "Most replies on digits held no legal answer (12 of 12, 12 refused), so that is not judged."),
    ({"choice": "0"}, "With pictures the model is not clearly better on digits than with grey ones "
     "(0.17 [0.05 to 0.45] against {grey}; guessing gives 0.10): do not count on its seeing that."),
])  # fmt: skip
def test_one_probe_that_is_not_seen_is_named(change: dict[str, Any], words: str) -> None:
    parts = answer_parts(know, 0)
    parts[DIGIT] = [replace(answer, **change) for answer in parts[DIGIT]]
    report = judge_answers(parts)
    assert report.sees is True
    (line,) = report.warnings
    assert line.startswith(words.format(grey=find(report, DIGIT).controls["grey"]))


def test_answers_that_are_right_without_the_pictures_show_no_sight() -> None:
    parts = answer_parts(know, 0)
    grey = f"{DIGIT} grey"
    parts[grey] = [replace(answer, choice=answer.answer) for answer in parts[grey]]
    report = judge_answers(parts)
    assert find(report, DIGIT).verdict == "told"
    (line,) = report.warnings
    assert line.startswith("The model is right on digits without the pictures (grey: 5 of 5, shuffled: ")


def test_few_questions_are_not_judged_fewer_for_two_probes() -> None:
    parts = {SIDE: [replace(item, choice="left") for item in questions(SIDE, 4)]}
    report = judge_answers(parts)
    assert (report.sees, report.probes[0].verdict, report.warnings) == (None, "too few", ())
    pairs = enumerate(questions(DIGIT, 5))
    five = [replace(each, answer=str(n), choice=str(n)) for n, each in pairs]  # p = 1 / 5!
    assert find(judge_answers({DIGIT: five}), DIGIT).verdict == "sighted"
    side = [answered(item, item.answer) for item in questions(SIDE, 12)]
    assert find(judge_answers({DIGIT: five, SIDE: side}), DIGIT).verdict == "too few"


@pytest.mark.parametrize(("swapped", "named"), [(5, (1, 0, 2, 3)), (4, None)])
def test_another_order_leads_by_four_answers(swapped: int, named: tuple[int, ...] | None) -> None:
    """The first two pictures are exchanged in `swapped` answers; the other two are always right."""
    first = [item for item in questions(HISTORY, 12) if item.asked < 2]
    others = [answered(item, item.answer) for item in questions(HISTORY, 12) if item.asked >= 2]
    choices = [*(item.shown[1 - item.asked] for item in first[:swapped]), first[swapped].answer, None, None]
    answers = [replace(item, choice=choice) for item, choice in zip(first, choices, strict=False)]
    order = find(judge_answers({HISTORY: [*answers, *others]}), HISTORY).order
    assert len(first) == 6
    assert order.named == named


def test_a_control_without_its_part_is_left_out_and_a_part_of_another_kind_refused() -> None:
    assert judge_answers({f"{DIGIT} grey": list(questions(DIGIT, 5))}).probes == ()
    assert judge_answers({}).sees is None
    with pytest.raises(UserError, match=r"pictures='global' is not one of shown, grey, shuffled"):
        judge_answers({f"{DIGIT} global": list(questions(DIGIT, 1))})


# ---- from records ------------------------------------------------------------------------------


class Simulated:
    """Answers through the environment: `model` sees its question."""

    name = "simulated"

    def __init__(self, model: Model) -> None:
        self.model = model
        self.rng = np.random.default_rng(0)

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        replies = []
        for turn in turns:
            env = unwrap(turn.env)
            waits = env.legal_actions() == ["next"]
            word = "next" if waits else self.model(read_question(env), self.rng)
            replies.append(Reply("I cannot tell." if word is None else f"<action>{word}</action>"))
        return replies


def play(env_id: str, model: Model, episodes: int = 12, **kwargs: object) -> list[list[StepRecord]]:
    runner = Runner([make(env_id, image_size=(16, 16), **kwargs)], split="test", episodes=episodes)
    played = run_episodes(runner, Simulated(model))
    return [[without_images(record) for record in episode] for episode in played]


def test_records_of_a_model_that_sees_show_sight_everywhere() -> None:
    models = {"shown": know, "grey": guess, "shuffled": guess}
    report = judge({key: play(env_id, models[kind], count) for env_id, key, kind, count in list_parts()})
    assert (report.sees, report.warnings) == (True, ())
    assert {probe.verdict for probe in report.probes} == {"sighted"}
    assert find(report, TEXT).smallest == "small"
    assert [probe.chance for probe in report.probes if probe.env_id == DIGIT] == [0.1]
    assert report.to_dict()["probes"][0]["shown"]["right"] == 12


def test_a_random_action_in_place_of_an_unreadable_reply_is_no_answer() -> None:
    episodes = play(DIGIT, lambda item, rng: None, 30, invalid_action="published")
    assert any(episode[-1].success for episode in episodes)  # by accident
    share = judge({DIGIT: episodes}).probes[0].shown
    assert (share.right, share.unreadable) == (0, 30)


def test_records_that_do_not_fit_the_questions_and_other_environments_are_refused() -> None:
    episodes = play(DIGIT, know, 2)
    unfit = [episodes[0], [replace(episodes[1][0], seed=episodes[0][0].seed)]]
    with pytest.raises(UserError, match="does not fit the question that the installed vlgym/SeeDigit-v0 asks"):
        judge({DIGIT: unfit})
    with pytest.raises(UserError, match="has no seed"):
        judge({DIGIT: [[replace(episodes[0][0], seed=None)]]})
    with pytest.raises(
        UserError, match=r"NumberLine-v0 is not a probe of sight; the probes are the parts of .*can-it-see"
    ):
        judge({"vlgym/NumberLine-v0": []})
