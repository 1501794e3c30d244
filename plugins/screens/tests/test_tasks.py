"""The tasks: the oracle through the real parser, coordinates there and back, what is paid and what is not."""

import re
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from vlgym_screens.app import name_widget
from vlgym_screens.blind import CELLS
from vlgym_screens.drawing import Painter
from vlgym_screens.layout import SIZES

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

sys.path.insert(0, str(Path(__file__).parent))
from players import count_places, learn_habits, play_looks

IDS = [f"vlgym/Screens{name}-v0" for name in ("Click", "Go", "Set", "Find", "Look")]


def begin(name: str, number: int = 0, level: int | None = None, **arguments: Any) -> Any:
    env = vlgym.make(f"vlgym/Screens{name}-v0", **{"modality": "none", **arguments})
    env.reset(seed=episode_seed(env.vlgym_spec.id, "val", number), options={} if level is None else {"level": level})
    return env


def feedback(info: dict[str, Any]) -> str:
    return str(info["vlgym"]["feedback"])


def finish(env: Any) -> dict[str, Any]:
    """Play the oracle to the end; return the last info."""
    while True:
        _, _, terminated, truncated, info = env.step(env.solve())
        if terminated or truncated:
            return dict(info)


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("env_id", IDS)
def test_the_oracle_earns_all_in_every_convention(env_id: str, every: int) -> None:
    name = env_id.removeprefix("vlgym/Screens").removesuffix("-v0")
    systems = ("thousand", "pixels", "grid") if name == "Click" else ("thousand", "pixels")
    ways = list(enumerate(product(SIZES, systems, (False, True), range(5))))[::every]
    for number, (device, coordinates, marks, level) in ways:
        env = begin(name, number, level, device=device, coordinates=coordinates, marks=marks)
        shortest = env.shortest()
        info = finish(env)
        won = info["success"], info["score"], env.turn
        assert won == (True, 1, shortest), (device, coordinates, marks, level)


@pytest.mark.parametrize("coordinates", ["thousand", "pixels"])
@pytest.mark.parametrize("device", SIZES)
def test_a_place_comes_back_from_its_coordinates(device: str, coordinates: str) -> None:
    env = begin("Click", device=device, coordinates=coordinates)
    height, width = SIZES[device]
    corners = product((0, width - 1), (0, height - 1))
    for place in (*corners, (width // 3, height // 5)):
        assert env.read_point(env.write_point("click", *place)) == pytest.approx(place, abs=0.7)


def test_a_cell_of_the_grid_is_clicked_in_its_middle() -> None:
    env = begin("Click", coordinates="grid")
    assert env.write_point("click", 447, 0) == "click(9, 0)"
    assert env.read_point("click(3, 2)") == env.read_point("click(3.6, 2)") == pytest.approx((156.8, 224))
    assert env.read_point("click(-1, 10)") == pytest.approx((22.4, 851.2))
    with pytest.raises(UserError, match="grid"):
        begin("Go", coordinates="grid")


def test_a_thousand_and_more_is_the_last_pixel() -> None:
    env = begin("Click")
    assert env.read_point("click(1000, 1000)") == env.read_point("click(4000, 1200)") == (447, 895)
    assert env.read_point("click(-3, 0)") == (0, 0)


def test_a_larger_picture_has_its_own_pixels() -> None:
    env = begin("Click", coordinates="pixels", image_size=(1792, 896), modality="image")
    assert "896 wide and 1792 high" in env.notation
    assert finish(env)["success"]


def test_the_text_lists_no_element_and_no_place() -> None:
    env = vlgym.make("vlgym/ScreensClick-v0")
    for number in range(20):
        observation, info = env.reset(seed=number)
        assert info["vlgym"]["legal_actions"] == []
        assert env.solve().splitlines()[-1] not in observation["text"]
        rows = [each.widget.label for each in env.live() if each.widget.kind == "row"]
        assert not [label for label in rows if f'"{label}"' in env.notation]


def test_the_tree_tells_where_the_oracle_clicks() -> None:
    for marks in (False, True):
        env = vlgym.make("vlgym/ScreensClick-v0", modality="text", marks=marks)
        for number in range(10):
            observation, _ = env.reset(seed=number)
            action = env.oracle()
            place = f"[{action.split()[1]}]" if marks else action.removeprefix("click")
            line = next(line for line in observation["text"].splitlines() if place in line)
            assert f'"{env.aim.widget.label}"' in line


def test_marks_take_numbers_and_coordinates_take_points() -> None:
    env = begin("Click", marks=True)
    replies = "click(500, 300)", "click 99", "Click [3]"
    assert [env.match_action(reply) for reply in replies] == [None, None, "click 3"]
    env = begin("Click")
    assert env.match_action("click 3") is env.match_action("scroll(down)") is None
    with pytest.raises(UserError, match="coordinates"):
        begin("Click", coordinates="percent")


def test_a_click_tells_its_distance_and_in_what_it_went_wrong() -> None:
    errors: Counter[str] = Counter()
    for number in range(60):
        env = begin("Click", number, level=4)
        for action in env.legal_actions():
            env.reset(seed=env.reset_seed, options={"level": 4})
            _, reward, terminated, _, info = env.step(action)
            aim, hit = env.aim.widget, env.clicked.widget
            right = info["in_box"], info["error"] == "none", info["distance"] == 0, reward > 0, not feedback(info)
            assert terminated
            assert {*right} == {info["success"]}
            errors[info["error"]] += 1
            if info["error"] == "wrong row":
                assert (aim.kind, aim.label) == (hit.kind, hit.label)
            if info["error"] == "wrong column":
                assert hit.kind == "row" or aim.kind == "row" or aim.of == hit.of
            if info["error"] == "twin":
                assert (aim.kind, aim.label, aim.of) == (hit.kind, hit.label, hit.of)
                assert aim.detail != hit.detail
        if len(errors) == 6:
            break
    assert set(errors) == {"none", "twin", "wrong row", "wrong column", "right kind", "wrong kind"}


def test_edges_of_a_box_count_and_what_lies_outside_does_not() -> None:
    env = begin("Click", coordinates="pixels")
    x1, y1, x2, y2 = env.aim.box
    for x, y, inside in ((x1, y1, True), (x2, y2, True), (x2 + 2, (y1 + y2) // 2, False)):
        env.reset(seed=env.reset_seed)
        info = env.step(f"click({x + 0.5}, {y + 0.5})")[4]
        assert info["in_box"] is inside
        assert info["distance"] == (0 if inside else 2)


def test_a_click_on_nothing_is_feedback_and_no_error() -> None:
    env = begin("Go")
    box = env.layout.content_box(0)
    _, reward, terminated, _, info = env.step(env.write_point("click", 1, box[1] + 1))
    assert (reward, terminated, info["invalid_action"]) == (-0.01, False, False)
    assert feedback(info) == "there is nothing to click"


def test_a_detour_lowers_the_score() -> None:
    env = begin("Go", level=0)
    for action in ("back()", "back()"):
        env.step(action)
    assert finish(env)["score"] == pytest.approx(2 / 4)


def test_a_dead_end_is_left_by_going_back() -> None:
    env = begin("Go", level=0)
    row = next(each for each in env.live() if each.widget.kind == "row" and each.widget.detail)
    env.step(env.write_click(row, 1))
    assert env.state.screen == row.widget.leads
    assert feedback(env.step("back()")[4]) == "went back"
    assert env.state.screen == 0


def test_a_dialog_takes_all_clicks_until_it_is_answered() -> None:
    env = begin("Set", level=4)
    while not env.layout.covered(env.state):
        env.step(env.solve())
    labels = {each.widget.label for each in env.live()}
    assert labels == {*env.app.screens[env.state.screen].dialog[2:]}
    assert feedback(env.step("scroll(down)")[4]) == "nothing scrolls here"
    consent = next(each for each in env.live() if each.widget.sets == 1)
    env.step(env.write_click(consent, 1))
    assert env.layout.covered(env.state)
    env.step(env.solve())
    assert not env.layout.covered(env.state)


def press_save(env: Any) -> tuple[float, dict[str, Any]]:
    while not (save := [each for each in env.live() if each.widget.saves]):
        env.step("scroll(down)")
    _, reward, terminated, _, info = env.step(env.write_click(save[0], 1))
    assert terminated
    return reward, info


def test_a_wrong_save_earns_a_part_of_the_score_and_no_reward() -> None:
    env = begin("Set", level=1)
    reward, info = press_save(env)
    assert (reward, info["success"], info["score"], info["right"]) == (-0.01, False, 0, 0)
    env = begin("Set", level=1)
    while env._count()[0] < 2:
        env.step(env.solve())
    reward, info = press_save(env)
    assert (reward, info["success"], info["right"], info["spoiled"]) == (-0.01, False, 2, 0)
    assert info["score"] == pytest.approx(0.5 * 2 / 3)
    assert 'toast "Saved"' in env.describe()
    toast = env.layout.place(env.state)[-1]
    x1, y1, x2, y2 = toast.box
    saved, before = (env.layout.place(env.state._replace(saved=saved)) for saved in (True, False))
    assert (toast.live, saved[:-1]) == (False, before)
    painter = Painter(env.layout)
    painter.paint(env.state._replace(saved=False), "")
    plain, drawn = painter.finish(env.image_size), env.image()
    assert (plain[y1:y2, x1:x2] != drawn[y1:y2, x1:x2]).any(-1).mean() > 0.5


def test_a_change_too_many_spoils_the_save_and_the_oracle_takes_it_back() -> None:
    for number in range(20):
        env = begin("Set", number, level=1)
        other = [e for e in env.live() if e.widget.kind in ("toggle", "check") and e.widget.value not in env.goals]
        if other:
            break
    env.step(env.write_click(other[0], 1))
    assert env.extra_info()["spoiled"] == 1
    state = env.get_state()
    values = (env.goals.get(at, value) for at, value in enumerate(env.state.values))
    env.state = env.state._replace(values=tuple(values))
    info = press_save(env)[1]
    assert (info["success"], info["right"], info["spoiled"]) == (False, 3, 1)
    assert info["score"] == pytest.approx(0.5 * 2 / 3)
    env.set_state(state)
    assert finish(env)["success"]


def test_words_go_to_the_field_with_the_caret_only() -> None:
    env = begin("Find", level=3)
    assert feedback(env.step('type("Oslo")')[4]) == "no field has the caret"
    while env.state.focus < 0:
        env.step(env.solve())
    env.step('type("Oslo")')
    assert env.state.values[env.state.focus] == "Oslo"


@pytest.mark.parametrize(
    ("form", "right"), [("{}", True), (" {} ", True), ("{}X", False), ("", False), ("{0:.1}", False)]
)
def test_only_the_whole_answer_counts(form: str, right: bool) -> None:
    env = begin("Find", level=0)
    words = form.format(env.code).lower()
    _, reward, terminated, _, info = env.step(f'answer("{words}")')
    assert (terminated, info["success"], reward > 0) == (True, right, right)


def test_a_look_shows_a_part_and_costs() -> None:
    env = begin("Look", level=1, modality="text")
    before = env.describe()
    assert env.code not in before
    assert "too small to read" in before
    _, reward, _, _, info = env.step(env.solve())
    assert reward == pytest.approx(-0.06)
    assert env.code in env.describe()
    assert (info["looks"], info["needed"]) == (1, 1)
    env.step("zoom_out()")
    assert env.describe() == before


def test_one_look_serves_two_codes_where_both_fit() -> None:
    needed = {begin("Look", number, level=3).needed() for number in range(60)}
    assert needed == {1, 2}


def test_a_look_is_worth_its_price_and_no_more() -> None:
    for level in (1, 3):
        never, thrice, best = (play_looks(IDS[-1], looks, level, 40) for looks in (0, 3, None))
        assert never[0] < 0.2
        assert thrice[0] == best[0] == 1
        assert never[1] < thrice[1] < best[1]
    assert play_looks(IDS[-1], 0, 0, 40)[0] > 0.3  # some codes need no look


@pytest.mark.exhaustive
def test_habits_are_those_of_train() -> None:
    assert learn_habits("vlgym/ScreensClick-v0") == CELLS


@pytest.mark.parametrize("level", [0, *(pytest.param(level, marks=pytest.mark.exhaustive) for level in range(1, 5))])
def test_habits_win_a_tenth_at_most(level: int) -> None:
    won = episodes = 0
    for kind, places in count_places("vlgym/ScreensClick-v0", "test", 1000, level=level).items():
        episodes += places["episodes"]  # type: ignore[index]
        won += places[CELLS[kind]] if kind in CELLS else 0
    assert episodes == 1000
    assert won / episodes <= 0.1


def test_thoughts_name_what_is_clicked() -> None:
    env = begin("Go", level=0)
    thought = env.think(env.oracle())
    assert re.match(r'I see the (row|option) ".+"; it ', thought)
    env = begin("Click", level=0)
    thoughts = [env.think(action) for action in env.legal_actions()]
    for each, words in zip(env.live(), thoughts, strict=True):
        assert f"I see {name_widget(each.widget)};" in words
    assert len(set(thoughts)) > 5
