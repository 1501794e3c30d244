"""The apps: no two are alike, every box holds its element, sentences name one, and colours can be told apart."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from vlgym_screens.app import State, Widget, name_widget, press
from vlgym_screens.drawing import Painter
from vlgym_screens.layout import SIZES, Theme, hit
from vlgym_screens.words import Draws

import vlgym
from vlgym.env.seeding import SPLITS, episode_seed

IDS = [f"vlgym/Screens{name}-v0" for name in ("Click", "Go", "Set", "Find", "Look")]


@pytest.mark.parametrize("device", SIZES)
def test_no_two_seeds_share_layout_or_words(device: str) -> None:
    env = vlgym.make("vlgym/ScreensClick-v0", device=device, modality="none")
    layouts, words = set(), set()
    seeds = [episode_seed(IDS[0], split, number) for split in SPLITS for number in range(60)]
    for seed in seeds:
        env.reset(seed=seed)
        elements = env.layout.place(env.state)
        layouts.add(tuple((each.widget.kind, each.box) for each in elements))
        words.add(tuple(each.widget[1:4] for each in elements))
    assert len(layouts) == len(words) == len(seeds)


@pytest.mark.parametrize("device", SIZES)
@pytest.mark.parametrize("env_id", IDS)
def test_live_boxes_lie_in_the_picture_and_apart_from_one_another(env_id: str, device: str) -> None:
    env = vlgym.make(env_id, device=device, modality="none")
    height, width = SIZES[device]
    for number in range(10):
        env.reset(seed=episode_seed(env_id, "train", number), options={"level": number % 5})
        for _ in range(4):
            live = env.live()
            for each in live:
                x1, y1, x2, y2 = each.box
                assert 0 <= x1 <= x2 - 24 < x2 < width
                assert 0 <= y1 <= y2 - 24 < y2 < height
                assert hit(env.layout.place(env.state), *each.centre) == each
            pairs = combinations(live, 2)
            assert not [0 for a, b in pairs if a.holds(*b.box[:2]) or b.holds(*a.box[:2])]
            if env._ended:
                break
            env.step(env.solve())


def test_a_sentence_names_exactly_one_element() -> None:
    env = vlgym.make("vlgym/ScreensClick-v0", modality="none")
    for number in range(100):
        env.reset(seed=episode_seed(IDS[0], "val", number), options={"level": number % 5})
        exact = [name_widget(each.widget, twin=True) for each in env.live()]
        named = [name for name in exact if name in env.task()] or [name_widget(env.aim.widget)]
        plain = [name_widget(each.widget) for each in env.live()]
        assert (exact if named[0] in exact else plain).count(named[0]) == 1
        assert named[0] in (name_widget(env.aim.widget), name_widget(env.aim.widget, twin=True))


@pytest.mark.parametrize("env_id", IDS)
def test_no_start_meets_the_goal(env_id: str) -> None:
    env = vlgym.make(env_id, modality="none")
    for number in range(20):
        seed = episode_seed(env_id, "test", number)
        assert not env.reset(seed=seed, options={"level": number % 5})[1]["success"]
        if env_id not in (IDS[0], IDS[-1]):
            assert not env.done(env.state, env.seen)


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Return the contrast of two colours as WCAG defines it."""

    def light(colour: tuple[int, int, int]) -> float:
        parts = [value / 255 for value in colour]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_has_a_contrast_of_four_and_a_half() -> None:
    for seed in range(300):
        theme = Theme(Draws(np.random.default_rng(seed)), "phone", "medium")
        inks, grounds = (theme.ink, theme.faint, theme.accent), (theme.ground, theme.surface)
        pairs = [*product(inks, grounds), (theme.on_accent, theme.accent)]
        assert min(contrast(*pair) for pair in pairs) >= 4.5, seed


@pytest.mark.parametrize(("device", "size"), [("phone", (896, 448)), ("desktop", (672, 1120))])
def test_a_picture_has_its_size_and_shows_every_live_element(device: str, size: tuple[int, int]) -> None:
    env = vlgym.make("vlgym/ScreensClick-v0", device=device)
    for seed in range(4):
        image: NDArray[np.uint8] = env.reset(seed=seed)[0]["image"]
        assert image.shape == (*size, 3)
        for each in env.live():
            x1, y1, x2, y2 = each.box
            part = image[y1 : y2 + 1, x1 : x2 + 1].astype(int)
            assert np.ptp(part, axis=(0, 1)).max() > 40, each


def test_a_click_changes_what_the_widget_says() -> None:
    env = vlgym.make("vlgym/ScreensSet-v0", modality="none")
    env.reset(seed=1)
    app = env.app
    state = State(values=(0, 3, ""))
    for kind, value, after in (("toggle", 0, (1, 3, "")), ("plus", 1, (0, 4, "")), ("minus", 1, (0, 2, ""))):
        assert press(app, state, Widget(kind, "a", value=value))[0].values == after
    assert press(app, state, Widget("slider", "a", value=1), 9)[0].values == (0, 9, "")
    assert press(app, state, Widget("radio", "a", value=1, sets=2))[0].values == (0, 2, "")
    assert press(app, state, Widget("field", "a", value=2))[0].focus == 2
    opened = press(app, state, Widget("dropdown", "a", value=1, options=("x", "y")))[0]
    assert opened.menu == 1
    chosen = press(app, opened, Widget("option", "y", value=1, sets=1))[0]
    assert chosen == state._replace(values=(0, 1, ""))
    most = state._replace(values=(0, 9, ""))
    assert press(app, most, Widget("plus", "plus", value=1))[1] == "nothing changed"


def test_a_part_is_drawn_larger_not_blown_up() -> None:
    env = vlgym.make("vlgym/ScreensLook-v0")
    env.reset(seed=3)
    painter = Painter(env.layout, 4, (0, 0))
    painter.paint(env.state, "")
    drawn = painter.finish(env.image_size)
    small = env.image()[: drawn.shape[0] // 4, : drawn.shape[1] // 4]
    assert (np.kron(small, np.ones((4, 4, 1), np.uint8)) != drawn).any()
