"""Of probes and canaries the text never tells the answer, and the picture tells it on every level."""

import math
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from vlgym_sight.colours import find_split
from vlgym_sight.drawing import COLOURS, GROUND
from vlgym_sight.plugin import CANARIES, EPISODES, PROBES, SEE_HISTORY, vlgym_suites

from vlgym.env.seeding import SPLITS, episode_seed
from vlgym.env.spec import EnvSpec
from vlgym.errors import UserError
from vlgym.registry.lookup import get_registry
from vlgym.registry.making import make

SEEDS = 200
SMALL = (16, 16)  # where nobody looks at the picture
SINGLE = [spec for spec in PROBES if spec is not SEE_HISTORY]


def play_to_question(env: Any, seed: int) -> list[str]:
    """Begin an episode and go on to its question; return every text on the way."""
    texts = [env.reset(seed=seed)[0]["text"]]
    while env.legal_actions() == ["next"]:
        texts.append(env.step("<action>next</action>")[0]["text"])
    return texts


@pytest.mark.parametrize("spec", SINGLE, ids=lambda spec: spec.title)
def test_the_text_of_a_single_picture_is_the_same_in_every_episode(spec: EnvSpec) -> None:
    env = make(spec.id, image_size=SMALL)
    assert len({env.reset(seed=episode_seed(spec.id, "test", n))[0]["text"] for n in range(20)}) == 1


@pytest.mark.parametrize("spec", PROBES, ids=lambda spec: spec.title)
def test_the_answers_of_the_suite_are_balanced(spec: EnvSpec) -> None:
    env: Any = make(spec.id, image_size=SMALL)
    answers, kinds = [], []
    for number in range(EPISODES):
        env.reset(seed=episode_seed(spec.id, "test", number))
        answers.append(env.answer)
        kinds.append(env.level if spec.title == "SeeText" else getattr(env, "asked", env.answer.split()[-1]))
    assert Counter(answers).most_common(1)[0][1] <= max(2, EPISODES // len(env.answers))
    assert len(set(answers)) >= min(len(env.answers), 7)
    if spec.title in ("SeeText", "SeeCard", "SeeHistory"):  # sizes, suits, places asked for
        assert len(set(Counter(kinds).values())) == 1
        assert len(set(kinds)) == (3 if spec.title == "SeeText" else 4)


def test_no_text_of_a_history_goes_with_one_answer_more_often_than_with_another() -> None:
    env: Any = make(SEE_HISTORY.id, image_size=SMALL)
    tallies: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for number in range(SEEDS):
        texts = play_to_question(env, episode_seed(SEE_HISTORY.id, "test", number))
        tallies[tuple(texts)][env.answer] += 1
    assert len(tallies) == 4  # the four questions
    for answers in tallies.values():
        count = sum(answers.values())
        assert SEEDS / 4 * 0.7 < count < SEEDS / 4 * 1.3
        assert answers.most_common(1)[0][1] <= count / 8 + 4 * math.sqrt(count * 7 / 64)


@pytest.mark.parametrize("spec", PROBES, ids=lambda spec: spec.title)
def test_every_two_answers_give_pictures_that_differ_clearly(spec: EnvSpec) -> None:
    env: Any = make(spec.id, image_size=(112, 112))
    env.reset(seed=0)
    pictures = {}
    for answer in env.answers:
        env.answer, env.shown = answer, (answer,)
        pictures[answer] = env.image().astype(np.int16)
    for first, second in combinations(env.answers, 2):
        differing = (np.abs(pictures[first] - pictures[second]) > 80).any(axis=2).sum()
        assert differing >= 10, (first, second)  # pixels; the smallest word has letters of 7 pixels


@pytest.mark.parametrize(("title", "reply", "reward", "ends"), [
    ("SeeDigit", "<action>{right}</action>", 1.0, (True, False)),
    ("SeeDigit", "<action>{wrong}</action>", 0.0, (True, False)),
    ("SeeDigit", "I cannot tell", 0.0, (False, True)),
    ("SeeHistory", "what?", 0.0, (True, False)),
    ("SeeHistory", "<action>red</action>", 0.0, (True, False)),  # early
])  # fmt: skip
def test_a_right_answer_pays_one_and_others_nothing(title, reply, reward, ends):
    env: Any = make(f"vlgym/{title}-v0")
    env.reset(seed=0)
    wrong = next(answer for answer in env.answers if answer != env.answer)
    _, paid, *ended, info = env.step(reply.format(right=env.answer, wrong=wrong))
    assert (paid, info["success"], tuple(ended)) == (reward, reward == 1, ends)
    assert info["invalid_action"] == ("{" not in reply)


def test_the_shape_is_in_the_half_that_is_the_answer() -> None:
    env: Any = make("vlgym/SeeSide-v0")
    for seed in range(12):
        image = env.reset(seed=seed)[0]["image"].astype(int)
        columns = np.nonzero((np.abs(image - image[0, 0]).max(axis=2) > 80).any(axis=0))[0]
        assert columns.max() < 112 - 5 if env.answer == "left" else columns.min() > 112 + 5


def test_as_many_discs_are_there_as_the_answer_says_and_they_do_not_touch() -> None:
    from scipy import ndimage

    env: Any = make("vlgym/SeeCount-v0")
    for seed in range(12):
        image = env.reset(seed=seed)[0]["image"].astype(int)
        _, count = ndimage.label(np.abs(image - image[0, 0]).max(axis=2) > 40, np.ones((3, 3)))
        assert str(count) == env.answer


def test_the_mark_stands_in_the_cell_that_is_the_answer() -> None:
    env: Any = make("vlgym/SeeCell-v0")
    for seed in range(12):
        image = env.reset(seed=seed)[0]["image"].astype(int)
        cells = {}
        for column in range(3):
            for row in range(3):
                x, y = (round(224 * (0.16 + 0.27 * (n + 0.5))) for n in (column, row))
                inside = image[y - 15 : y + 15, x - 15 : x + 15]
                cells["ABC"[column] + "123"[row]] = np.abs(inside - image[2, 2]).sum()
        assert max(cells, key=lambda name: cells[name]) == env.answer


def test_the_shape_has_the_colour_that_is_the_answer_and_the_rest_is_grey() -> None:
    env: Any = make("vlgym/SeeColour-v0")
    for seed in range(12):
        image = env.reset(seed=seed)[0]["image"]
        colours = {**COLOURS, "grey": GROUND}.items()
        pure = {name: (image == colour).all(axis=2).mean() for name, colour in colours}
        assert pure[env.answer] > 0.05
        assert pure["grey"] > 0.5
        assert sum(share > 0 for share in pure.values()) == 2


def test_four_pictures_are_shown_in_order_and_the_asked_one_is_the_answer() -> None:
    env: Any = make(SEE_HISTORY.id)
    places = set()
    for seed in range(12):
        observation, _ = env.reset(seed=seed)
        colours = []
        for place in range(4):
            middle = observation["image"][112, 112]
            colours.append(next(name for name, colour in COLOURS.items() if (middle == colour).all()))
            assert env.legal_actions() == (["next"] if place < 3 else list(COLOURS))
            assert ("Question" in observation["text"]) == (place == 3)
            if place < 3:
                observation, reward, terminated, truncated, _ = env.step(env.solve())
                assert (reward, terminated, truncated) == (0.0, False, False)
        assert tuple(colours) == env.shown
        assert len(set(colours)) == 4
        assert f"the {env.asked_as[env.asked]} of the four" in observation["text"]
        _, reward, terminated, _, info = env.step(f"<action>{colours[env.asked]}</action>")
        assert (reward, terminated, info["success"]) == (1.0, True, True)
        places.add(env.asked)
    assert places == {0, 1, 2, 3}


def test_no_pictures_of_a_history_are_shown_in_the_same_order_in_two_splits() -> None:
    env: Any = make(SEE_HISTORY.id, image_size=SMALL)
    shown: dict[str, set[tuple[str, ...]]] = {}
    for split in SPLITS:
        orders = []
        for number in range(150):
            env.reset(seed=episode_seed(SEE_HISTORY.id, split, number))
            orders.append(env.shown)
        shown[split] = set(orders)
    assert all(len(orders) > 50 for orders in shown.values())
    assert len(set().union(*shown.values())) == sum(map(len, shown.values()))
    env.reset()
    order = [list(COLOURS).index(colour) for colour in env.shown]
    assert find_split(order, len(COLOURS)) == "test"  # as the last seed


def test_every_probe_is_a_part_of_the_suite_and_its_prompt_holds_all_its_pictures() -> None:
    assert {part.env_id for part in vlgym_suites()} == {spec.id for spec in PROBES}
    assert {(part.suite, part.episodes, part.repeats) for part in vlgym_suites()} == {("can-it-see", EPISODES, 1)}
    assert all(spec.history_images == spec.history_turns + 1 == spec.max_turns for spec in PROBES)


SMALLEST = {"SeeDigit": 15, "SeeText": 8, "SeeCount": 22, "SeeCell": 10}
"""Height in pixels, at 224 x 224, of the smallest digit, word, disc and label on any level."""
FAINTEST = 70  # least difference (of 255) of a symbol from its ground, in its greatest channel


def measure_symbols(picture: np.ndarray, title: str) -> tuple[int, int]:
    """Return height of the smallest symbol, or label of a grid, and contrast."""
    if title == "SeeCell":
        picture = picture[36:, :30]
    differs = np.abs(picture.astype(int) - picture[0, 0].astype(int)).max(axis=2)
    inked = np.flatnonzero((differs > 0.5 * differs.max()).any(axis=1))
    runs = np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1)
    return min(map(len, runs)), int(differs.max())


@pytest.mark.parametrize("title", SMALLEST)
def test_the_smallest_symbol_of_every_level_is_as_large_and_as_dark_as_stated(title: str) -> None:
    env = make(f"vlgym/{title}-v0")
    for level in range(5):
        for seed in range(12):
            picture = env.reset(seed=seed, options={"level": level})[0]["image"]
            height, contrast = measure_symbols(picture, title)
            assert height >= SMALLEST[title]
            assert contrast >= FAINTEST


@pytest.mark.parametrize(("title", "counts"), [
    ("SeeDigit", (4, 10, 10, 90, 90)), ("SeeText", (4, 8, 12, 12, 16)),
    ("SeeCount", (3, 6, 9, 12, 16)), ("SeeCell", (4, 9, 25, 36, 49)),
])  # fmt: skip
def test_every_answer_of_a_level_is_legal_and_comes_up(title: str, counts: tuple[int, ...]) -> None:
    env = make(f"vlgym/{title}-v0", image_size=(16, 16))
    for level, count in enumerate(counts):
        seeds = range(12 * count if count < 10 else 20)
        answers = {env.reset(seed=seed, options={"level": level})[1]["answer"] for seed in seeds}
        legal = env.legal_actions()
        assert len(legal) == len({*legal}) == count
        assert answers == {*legal} if count < 10 else answers <= {*legal}
    env.reset(seed=0)
    assert env.legal_actions() == list(type(env).answers)


CHANCES = {"CanaryColour": 1 / 8, "CanaryDigit": 1 / 10, "CanaryMemory": 1 / 12}
DRAWS = 300
each_canary = pytest.mark.parametrize("spec", CANARIES, ids=lambda spec: spec.title)


def play(env: Any, seed: int, wrong: bool = False) -> tuple[list[Any], list[bytes]]:
    """Play an episode with the oracle, or a wrong answer; return all texts, and the pictures."""
    observation, info = env.reset(seed=seed)
    texts, pictures, over = [], [], False
    while not over:
        texts.append((observation["text"], info["vlgym"]["legal_actions"], info["vlgym"]["feedback"]))
        pictures.append(observation["image"].tobytes())
        action = env.oracle()
        if wrong and action != "next":
            action = next(answer for answer in env.answers if answer != action)
        observation, reward, over, _, info = env.step(f"<action>{action}</action>")
    assert reward == info["success"] == (not wrong)
    return [*texts, info["vlgym"]["feedback"]], pictures


@each_canary
def test_texts_are_the_same_and_pictures_others_for_all_seeds(spec: EnvSpec) -> None:
    env, episodes = make(spec.id), 12
    played = [play(env, episode_seed(spec.id, "test", n), wrong=n % 2 == 1) for n in range(episodes)]
    assert all(texts == played[0][0] for texts, _ in played)
    assert len(played[0][0]) == spec.max_turns + 1
    assert len({picture for _, pictures in played for picture in pictures}) == episodes * spec.max_turns


@each_canary
def test_every_answer_is_equally_likely_whatever_the_other_pictures_show(spec: EnvSpec) -> None:
    env: Any = make(spec.id, image_size=(16, 16))
    chance, same, counts = 1 / len(env.answers), 0, Counter()
    assert chance == CHANCES[spec.title]
    for number in range(DRAWS):
        env.reset(seed=episode_seed(spec.id, "test", number))
        answer = env.shown[env.asked - 1]
        counts[answer] += 1
        same += env.shown.count(answer) - 1
    assert max(counts.values()) < DRAWS * chance + 4 * (DRAWS * chance) ** 0.5
    assert set(counts) == set(env.answers)
    pairs = (env.pictures - 1) * DRAWS
    assert abs(same - pairs * chance) <= 4 * (pairs * chance) ** 0.5


@each_canary
def test_the_recorded_blind_floor_is_chance(spec: EnvSpec) -> None:
    entry, chance = get_registry().known[spec.id], CHANCES[spec.title]
    deviation = (chance * (1 - chance) / entry["blind"]["episodes"]) ** 0.5
    assert abs(entry["blind"]["success"] - chance) <= 3 * deviation
    assert entry["ceiling"]["success"] == 1


@pytest.mark.parametrize("asked", [1, 3])
def test_only_the_asked_picture_changes_with_the_answer(asked: int) -> None:
    env: Any = make("vlgym/CanaryMemory-v0", asked=asked)
    pictures = []
    for answer in ("house", "horse"):
        env.reset(seed=0)
        env.answer = env.shown[asked - 1] = answer
        pictures.append([env.image()])
        for _ in range(3):
            pictures[-1].append(env.step(env.solve())[0]["image"])
        assert env.oracle() == answer
    same = [np.array_equal(one, other) for one, other in zip(*pictures, strict=True)]
    assert same == [place != asked for place in range(1, 5)]


@pytest.mark.parametrize("wrong", [{"asked": 5}, {"pictures": 5}, {"shows": "smell"}, {"pictures": 2}])
def test_the_asked_turn_must_exist(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        make("vlgym/CanaryMemory-v0", **wrong)
