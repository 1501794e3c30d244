"""Curricula: the weights of each sampler, the choice of a place, and the Runner that plays it."""

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from vlgym import make
from vlgym.errors import UserError
from vlgym.integrations.agent import tasks
from vlgym.play import curriculum
from vlgym.play.curriculum import CURRICULA, Course, Curriculum, Place
from vlgym.play.env_failures import EnvFailures
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry

LINE, POINTS, PLAIN = "vlgym/NumberLine-v1", "vlgym/EZPoints-v1", "vlgym/Blackjack-v0"


def count(course: Course, first: int = 0, episodes: int = 600) -> Counter[Place]:
    return Counter(course.choose(number) for number in range(first, first + episodes))


def at(level: int) -> Place:
    return Place(LINE, level)


def test_fixed_plays_the_highest_level_or_the_one_named() -> None:
    highest = {at(5), Place(POINTS, 4), Place(PLAIN, None)}
    assert set(count(Course("fixed", [LINE, POINTS, PLAIN]))) == highest
    assert set(count(Course("fixed:2", [LINE, POINTS]))) == {at(2), Place(POINTS, 2)}
    for wrong in ("fixed:5", "fixed:-1", "fixed:x", "fixed:²"):
        with pytest.raises(UserError, match="from 0 to 4"):
            Course(wrong, [LINE, POINTS])


def test_uniform_plays_levels_and_environments_alike() -> None:
    weights = Course("uniform", [LINE, PLAIN]).sampler.weights()
    assert list(weights) == pytest.approx([1 / 6] * 6 + [1])


def test_levels_above_the_one_behind_the_at_sign_are_left_out() -> None:
    course = Course("fixed:0@2", [LINE, POINTS, PLAIN])
    assert set(count(course)) == {at(0), Place(POINTS, 0), Place(PLAIN, None)}
    assert course.held_out(LINE, {"seed": 3}) == {"seed": 3, "level": 2}
    assert (course.held_out(POINTS, {}), course.held_out(PLAIN, {})) == ({"level": 2}, {})
    assert set(count(Course(f"uniform{course.limit}", [LINE]))) == {at(0), at(1), at(2)}
    assert Course("fixed@5", [LINE, POINTS]).held_out(POINTS, {}) == {"level": 4}
    for wrong in ("fixed@6", "fixed@", "fixed@-1", "fixed@x"):
        with pytest.raises(UserError, match="from 0 to 5"):
            Course(wrong, [LINE, POINTS])


def test_success_goes_up_at_80_and_down_at_30_percent_of_a_window() -> None:
    course = Course("success", [POINTS, LINE])

    def play(level: int, wins: int, losses: int) -> int | None:
        for success in [False] * losses + [True] * wins:
            course.note(at(level), success)
        (now,) = {place.level for place in count(course, episodes=60) if place.env_id == LINE}
        return now

    assert play(0, 23, 7) == 0  # 77 %
    assert play(0, 1, 0) == 1  # 24 of the last 30
    assert play(0, 0, 30) == 1  # of the level before: they count for nothing
    assert play(1, 10, 20) == 1
    assert play(1, 0, 1) == 1  # 33 %
    assert play(1, 0, 30) == 0
    assert play(0, 0, 40) == 0  # there is none below, not even that of the other environment
    for level in range(6):
        assert play(level, 30, 0) == min(5, level + 1)
    assert {place.level for place in count(course, episodes=60) if place.env_id == POINTS} == {0}


def test_learning_progress_prefers_levels_whose_success_changes() -> None:
    course = Course("learning-progress", [LINE])
    for _ in range(400):
        course.note(at(0), True)
        course.note(at(1), False)
    for _ in range(10):
        course.note(at(2), True)
    played = count(course)
    assert played[at(2)] > 400
    assert all(played[at(level)] > 5 for level in range(6))  # a fifth is spread evenly
    for _ in range(400):
        course.note(at(2), True)
    for _ in range(10):
        course.note(at(0), False)
    assert count(course)[at(0)] > 400  # forgetting is change, too


def test_prioritized_plays_unseen_places_then_large_errors_and_sometimes_what_is_stale() -> None:
    course = Course("prioritized", [LINE])
    course.note_errors([(at(0), 0.1), (at(3), 5.0)])
    assert set(count(course)) == {at(1), at(2), at(4), at(5)}
    course.note_errors([(at(level), 0.1 * level) for level in (0, 1, 2, 4, 5)])
    course.note_errors([(at(2), -9.0), (at(2), 9.0)])  # the absolute values count, as a mean
    for _ in range(20):
        course.note_errors([(at(2), 9.0)])
    played = count(course)
    assert 500 < played[at(2)] < 565
    stale = course.sampler.memory["seen"]
    assert stale[3] < stale[0] < stale[2]
    assert played[at(3)] > played[at(5)] > 0


def test_a_choice_depends_on_seed_number_and_memory_alone() -> None:
    one, other, fourth = (Course("learning-progress", [LINE], seed=seed) for seed in (3, 3, 4))
    for number in range(40):
        one.note(one.choose(number), number % 3 == 0)
    other.sampler.memory = fourth.sampler.memory = json.loads(json.dumps(one.sampler.memory))
    assert [one.choose(n) for n in range(99)] == [other.choose(n) for n in reversed(range(99))][::-1]
    assert [one.choose(n) for n in range(99)] != [fourth.choose(n) for n in range(99)]


class Odd(Curriculum):
    def weights(self) -> Any:
        return self.memory["weights"]


@pytest.mark.parametrize("weights", [[1.0], [0.0] * 6, [1] * 5 + [-1], [math.nan] * 6, [math.inf] * 6])
def test_weights_that_are_none_are_refused(weights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CURRICULA, "odd", Odd)
    course = Course("odd", [LINE])
    course.sampler.memory["weights"] = weights
    with pytest.raises(UserError, match="no weights of 6 places"):
        course.choose(0)


def test_a_plugins_sampler_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    record = replace(get_registry().plugins[0], curricula={"odd": Odd})
    registry = replace(get_registry(), plugins=(record,))
    monkeypatch.setattr(curriculum, "get_registry", lambda: registry)
    assert isinstance(Course("odd", [LINE]).sampler, Odd)
    record.curricula["uniform"] = Odd
    with pytest.raises(UserError, match="'uniform'"):
        Course("odd", [LINE])


@pytest.mark.parametrize(
    ("name", "env_id", "words"),
    [("succes", LINE, "success"), ("uniform", PLAIN, "no levels"), ("success:3", LINE, "nothing after")],
)
def test_wrong_names_are_explained(name: str, env_id: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Course(name, [env_id])


def make_runner(course: Course, made: list[str], **more: Any) -> Runner:
    def make_env(index: int, env_id: str = POINTS) -> Any:
        made.append(env_id)
        return make(env_id)

    def exchange(index: int, env: Any, env_id: str) -> Any:
        env.close()
        return make_env(index, env_id)

    return Runner([make_env(i) for i in range(3)], course=course, remake=make_env, exchange=exchange, **more)


def test_the_runner_plays_environment_and_level_of_each_choice() -> None:
    course, made = Course("uniform", [LINE, POINTS, PLAIN]), []
    runner = make_runner(course, made)
    played = {}
    for _ in range(30):
        for slot in runner.slots:
            turns = slot.env.unwrapped.max_turns
            expected = {LINE: (6, 10, 20, 36, 80, 180), POINTS: (7, 7, 11, 11, 11)}.get(slot.env_id)
            assert turns == (20 if expected is None else expected[slot.level])
        for record in runner.step(OraclePolicy(fallback=True)):
            played[record.episode] = Place(record.env_id, record.level)
    assert played == {number: course.choose(number) for number in played}
    assert {place.env_id for place in played.values()} == {LINE, POINTS, PLAIN}
    runner.close()


def test_repeats_of_one_start_are_on_one_level() -> None:
    course = Course("uniform", [LINE])
    runner = Runner([make(LINE) for _ in range(8)], course=course, episodes=8, repeats=4)
    assert [slot.level for slot in runner.slots] == [course.choose(n // 4).level for n in range(8)]
    assert len({slot.observation["image"].tobytes() for slot in runner.slots}) == 2


def test_a_saved_rollout_goes_on_where_it_was_whatever_the_sampler_would_choose_now() -> None:
    course, made = Course("uniform", [LINE, POINTS]), []
    runner = make_runner(course, made)
    for _ in range(7):
        runner.step(RandomPolicy())
    state = json.loads(json.dumps(runner.get_state()))
    again = make_runner(Course("success", [LINE, POINTS]), made)
    again.set_state(state)
    for mine, other in zip(runner.slots, again.slots, strict=True):
        assert (mine.env_id, mine.level, mine.episode) == (other.env_id, other.level, other.episode)
        assert (mine.observation["image"] == other.observation["image"]).all()
        assert mine.observation["text"] == other.observation["text"]


def test_without_exchange_a_course_of_several_environments_is_refused() -> None:
    with pytest.raises(UserError, match="exchange"):
        Runner([make(LINE)], course=Course("uniform", [LINE, POINTS]))


def test_an_environment_that_cannot_be_made_in_exchange_is_a_noted_failure() -> None:
    broken, noted = [True], []

    def make_env(index: int, env_id: str) -> Any:
        if broken and broken.pop():
            raise OSError("no room")
        return make(env_id)

    runner = Runner(
        [make(POINTS)], course=Course("fixed:0", [LINE]), remake=make_env, failures=EnvFailures(noted.append),
        exchange=lambda index, env, env_id: make_env(index, env_id),
    )  # fmt: skip
    assert runner.slots[0].env_id == LINE
    assert "no room" in noted[0]["error"]


def test_an_agents_tasks_are_of_the_levels_that_the_curriculum_chooses() -> None:
    course = Course("success", [LINE])
    (first,) = tasks(LINE, curriculum=course)
    assert (first.place, dict(first.arguments), first.number) == (at(0), {"level": 0}, 0)
    for task in tasks(LINE, n=30, curriculum=course):
        course.note(task.place, True)
    later = tasks(LINE, n=4, first=30, curriculum=course, parser="json")
    assert {task.place for task in later} == {at(1)}
    assert tasks(LINE)[0].place == Place(LINE, None)
