"""VLEnv: observation, info, invalid-action policies, endings, plans, saving and restoring."""

import json
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from toys import Coin, Walk, make_spec, make_walk

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.errors import UserError
from vlgym.parsers import TagParser
from vlgym.testing.playing import same
from vlgym.types import Outcome

LEFT, RIGHT = "<action>left</action>", "<action>right</action>"


def begin(env: VLEnv, target: int = 3) -> dict[str, Any]:
    return env.reset(seed=0, options={"target": target})[0]


def test_the_text_is_the_whole_message_and_info_says_how_a_reply_was_read() -> None:
    env = make_walk()
    assert begin(env)["text"] == (
        "Walk. Go to cell 3. Think briefly, then end your reply with <action>ACTION</action>, "
        "where ACTION is one of the legal actions.\n\nYou are in cell 0. Legal actions: left, right."
    )
    _, reward, terminated, truncated, info = env.step(f"hm {RIGHT}")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["success"], info["invalid_action"], "score" in info) == (False, False, False)
    details = info["vlgym"]
    assert details.pop("instructions").startswith("Walk. Go to cell 3.")
    assert details == {
        "turn": 1, "actions": ["right"], "parse": "ok", "span": (11, 16), "form": "tag",
        "point": None, "legal_actions": ["left", "right"], "feedback": "went right",
        "turn_text": "You are in cell 1. Legal actions: left, right.",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("max_turns", "reply", "ends"),
    [(8, RIGHT, [(False, False)] * 2 + [(True, False)]), (3, RIGHT, [(False, False)] * 2 + [(True, False)]),
     (3, LEFT, [(False, False)] * 2 + [(False, True)])],
    ids=["won", "won on the last turn", "turn limit"],
)  # fmt: skip
def test_a_win_terminates_and_the_turn_limit_truncates(max_turns, reply, ends):
    env = make_walk(max_turns=max_turns)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(reply)
    begin(env)
    results = [env.step(reply) for _ in range(3)]
    won = reply == RIGHT
    assert [result[2:4] for result in results] == ends
    assert [result[1] for result in results] == [0.0, 0.0, float(won)]
    assert (results[-1][4]["success"], env.episode_return) == (won, won)
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call env.reset\(\)"):
        env.step(reply)


def test_noop_counts_an_unreadable_reply_and_does_nothing_else() -> None:
    env = make_walk(invalid_penalty=0.25)
    begin(env)
    _, reward, terminated, _, info = env.step("eh")
    assert (reward, terminated, env.position, info["invalid_action"]) == (-0.25, False, 0, True)
    details = [info["vlgym"][name] for name in ("turn", "parse", "actions", "span")]
    assert details == [1, "no_action", [], None]
    env.step_cost = 0.5  # a reply costs as a step does, too
    assert env.step("eh")[1] == -0.75


@pytest.mark.parametrize(("policy", "ends"), [("terminate", True), ("noop", False), ("random", False)])
def test_an_unreadable_and_a_refused_action_cost_the_penalty_and_end_alike(policy, ends):
    env = Coin(vlgym_spec=make_spec("vlgym/Coin-v0", "toys:Coin"), invalid_action=policy, invalid_penalty=1)
    env.reset(seed=0)
    _, reward, _, _, info = env.step("<action>heads</action>")
    assert (reward, info["score"], info["heads"]) == (2.0, pytest.approx(1 / 3), 1)
    _, reward, terminated, truncated, info = env.step("<action>dig</action>")
    assert (reward, terminated, truncated, info["success"]) == (-1.0, ends, False, False)
    assert (info["vlgym"]["parse"], info["vlgym"]["feedback"]) == ("illegal_action", "no digging")
    walk = make_walk(invalid_action=policy, invalid_penalty=1)
    begin(walk)
    _, reward, terminated, truncated, info = walk.step("eh")
    assert (reward, terminated, truncated, info["success"]) == (-1.0, ends, False, False)


def test_random_executes_the_same_legal_action_again_and_says_why() -> None:
    env = make_walk(invalid_action="random", invalid_penalty=0.5)
    drawn = []
    for seed in (*range(8), *range(8)):
        env.reset(seed=seed, options={"target": 3})
        _, reward, _, _, info = env.step("eh")
        drawn += info["vlgym"]["actions"]
        assert env.position == {"left": -1, "right": 1}[drawn[-1]]
        assert (reward, info["invalid_action"]) == (-0.5, True)
        assert info["vlgym"]["feedback"] == f"Your reply had no action. {TAG}"
    assert drawn[:8] == drawn[8:]
    assert set(drawn) == {"left", "right"}


TAG, JSON = "End with <action>ACTION</action>.", 'End with {"thoughts": "", "action": "ACTION"}.'
TOLD = [
    ("tag", "left", "Your reply had no action. " + TAG),
    ("tag", "<action>left", "The action in your reply was not closed. " + TAG),
    ("tag", "<action> </action>", "The action in your reply was empty. " + TAG),
    ("tag", "<action>fly</action>", "The action in your reply is not a legal action. " + TAG),
    ("auto", "[left] or [right]", "Your reply named two different actions. " + TAG),
    ("json", "left", "Your reply had no JSON object. " + JSON),
    ("json", '{"action": }', "The JSON object in your reply could not be read. " + JSON),
    ("json", "{}", "Your reply had no action. " + JSON),
    ("choice", "left", "Your reply had no action. End with [NUMBER]."),
    ("plan", "left", "Your reply had no action. End with <plan>ACTION</plan>."),
]


@pytest.mark.parametrize(("parser", "reply", "line"), TOLD)
def test_a_turn_after_a_failure_begins_with_the_failure_and_the_format(parser, reply, line):
    env = make_walk(parser=parser)
    plain = env.reset(seed=1)[0]["text"]
    observation, _, _, _, info = env.step(reply)
    assert info["vlgym"]["turn_text"].split("\n")[0] == line == info["vlgym"]["feedback"]
    assert observation["text"] == plain.replace("\n\n", f"\n\n{line}\n")  # and nothing else
    other = make_walk(parser=parser)
    state = json.loads(json.dumps(env.get_state()))
    assert other.set_state(state)[0]["text"] == observation["text"]
    text = env.step(env.action_space.sample())[0]["text"]
    assert "Your reply" not in text
    assert "your reply" not in text.split("\n\n")[-1]
    env.step(reply)
    assert env.reset(seed=1)[0]["text"] == plain


def test_a_line_on_a_failure_is_one_line_and_short_and_published_forms_have_none() -> None:
    class Wordy(TagParser):
        def format(self, actions: Sequence[str], thoughts: str = "") -> str:
            return "\n".join([*actions, "x" * 500])

    env = make_walk(parser=Wordy())
    env.reset(seed=1)
    line, *rest = env.step("?")[4]["vlgym"]["turn_text"].split("\n")
    assert (len(line), len(rest)) == (200, 1)
    env = make_walk(invalid_action="published")
    env.reset(seed=1)
    assert "our reply" not in env.step("?")[0]["text"].split("\n\n")[-1]


def test_the_next_episode_does_not_depend_on_how_many_replies_were_unreadable() -> None:
    env, texts = make_walk(invalid_action="random"), []
    for silent in (0, 5):
        env.reset(seed=3)
        assert all(env.step("?")[4]["vlgym"]["actions"] for _ in range(silent))
        texts.append([env.reset()[0]["text"] for _ in range(4)])
    assert texts[0] == texts[1]


def test_a_random_action_costs_and_never_earns_and_only_the_published_form_pays_it() -> None:
    ends = {}
    for policy in ("random", "published"):
        env = Coin(invalid_action=policy, vlgym_spec=make_spec("vlgym/Coin-v0", "toys:Coin"))
        env.step_cost = 0.5
        paid = set()
        for seed in range(30):
            env.reset(seed=seed)
            terminated = truncated = False
            while not (terminated or truncated):
                _, reward, terminated, truncated, info = env.step("eh")
                paid.add((info["vlgym"]["actions"][0], reward))
            if terminated:
                ends[policy] = info["success"]
        dug, lost, won = (-0.5, -1.0, -0.5) if policy == "random" else (0.0, -1.0, 2.0)
        assert paid == {("dig", dug), ("tails", lost), ("heads", won)}
    assert ends == {"random": False, "published": True}


@pytest.mark.parametrize(
    ("plan", "arguments", "paid", "executed", "ends"),
    [
        ("heads; tails; heads; heads; tails", {}, 2 - 1 + 2 + 2, ["heads", "tails", "heads", "heads"], (True, False)),
        ("heads; fly; heads", {"invalid_penalty": 0.5}, 1.5, ["heads"], (False, False)),
        ("heads; dig; heads", {"invalid_penalty": 0.5}, 1.5, ["heads", "dig"], (False, False)),
        ("heads; heads; heads", {"max_turns": 2}, 4.0, ["heads", "heads"], (False, True)),
    ],
    ids=["won", "illegal", "refused", "turn limit"],
)
def test_a_plan_is_paid_up_to_its_first_illegal_action_or_the_end(plan, arguments, paid, executed, ends):
    env = Coin(parser="plan", **arguments)
    env.reset(seed=0)
    _, reward, *ended, info = env.step(f"<plan>{plan}</plan>")
    assert (reward, info["vlgym"]["actions"], tuple(ended)) == (paid, executed, ends)
    assert info["vlgym"]["turn"] == len(executed) + ("fly" in plan)
    assert info["invalid_action"] == ("invalid_penalty" in arguments)


def plan_ahead() -> Walk:
    """Return a walk of three cells to the right by one reply."""
    env = Walk(planner="global")
    begin(env)
    return env


def test_a_global_episode_ends_after_one_reply_and_is_restored_as_finished():
    env, other = plan_ahead(), plan_ahead()
    _, reward, terminated, truncated, info = env.step("<plan>right</plan>")
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)
    other.set_state(env.get_state())
    assert (other.position, other.get_state()) == (env.position, env.get_state())


def test_solve_under_the_global_planner_holds_the_whole_plan_and_leaves_the_state_alone() -> None:
    env = plan_ahead()
    reply = env.solve()
    assert reply == "the target lies right <plan>right; right; right</plan>"
    assert env.position == 0
    assert env.step(reply)[1:4] == (1.0, True, False)


def test_a_truncation_by_the_game_itself_is_a_truncation() -> None:
    class Short(Walk):
        def act(self, action: str) -> Outcome:
            return Outcome(0.5, truncated=True)

    env = Short()
    begin(env)
    assert env.step(LEFT)[1:4] == (0.5, False, True)


def test_an_action_that_is_no_string_is_a_user_error() -> None:
    env = make_walk()
    begin(env)
    with pytest.raises(UserError, match=r"a string; got int: 3"):
        env.step(3)  # type: ignore[arg-type]


def test_the_oracle_solves_with_thoughts_in_the_parsers_format() -> None:
    env = make_walk(parser="json")
    begin(env, -3)
    assert json.loads(env.solve() or "") == {"thoughts": "the target lies left", "action": "left"}


def test_the_spec_gives_parser_turn_limit_and_the_default_image_size():
    env = Walk(vlgym_spec=make_spec(reply_styles=("json",), max_turns=5))
    assert (env.parser.name, env.max_turns) == ("json", 5)

    class Wide(Walk):
        def natural_size(self) -> tuple[int, int]:
            return 33, 99

    assert Wide(vlgym_spec=make_spec()).observation_space["image"].shape == (33, 99, 3)
    assert Wide(vlgym_spec=make_spec(), image_size=(44, 66)).image_size == (44, 66)
    assert make_walk().observation_space["image"].shape == (22, 22, 3)
    assert make_walk(image_size=(44, 66)).observation_space["image"].shape == (44, 66, 3)
    assert Walk().image_size == (224, 224)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"invalid_action": "rendom"}, r"invalid_action='rendom'.*noop, random, published, terminate.*Nearest: random"),
    ({"invalid_penalty": -1}, "must be >= 0"), ({"invalid_penalty": float("nan")}, "must be >= 0"),
    ({"max_turns": 0}, "max_turns=0 must be >= 1"),
    ({"render_mode": "human"}, "render_mode='human' is not one of rgb_array"),
    ({"image_size": (8, 224)}, "image_size"), ({"image_size": (224,)}, "image_size"),
    ({"parser": "tagg"}, "Nearest: tag"), ({"planner": "globl"}, "global"),
    ({"planner": "global", "vlgym_spec": make_spec()}, "online"),
])  # fmt: skip
def test_an_argument_out_of_range_is_a_user_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Walk(**arguments)


def test_a_state_passes_through_json_and_goes_on_identically() -> None:
    env, other = (make_walk(invalid_action="random", invalid_penalty=0.1) for _ in range(2))
    env.reset(seed=3)
    for reply in (LEFT, "eh", "<action>fly</action>"):
        env.step(reply)
    other.reset(seed=1)
    _, info = other.set_state(json.loads(json.dumps(env.get_state())))
    assert (info["vlgym"]["turn"], other.episode_return) == (3, pytest.approx(env.episode_return))
    for reply in (RIGHT, "eh", "eh", RIGHT, "eh"):
        assert same(env.step(reply), other.step(reply))


def test_a_state_is_a_copy_with_the_options_of_its_reset_and_a_restored_end_is_an_end() -> None:
    env, other = make_walk(max_turns=1), make_walk(max_turns=1)
    with pytest.raises(UserError, match=r"call env.reset"):
        env.get_state()
    begin(env, target=-4)
    state = env.get_state()
    written = json.dumps(state)
    env.step(LEFT)
    assert json.dumps(state) == written
    other.set_state(env.get_state())
    assert other.target == -4
    with pytest.raises(gymnasium.error.ResetNeeded):
        other.step(LEFT)


def test_a_missing_method_is_named() -> None:
    class Bare(VLEnv):
        prompt = PromptTemplate(1, "{format}", "{actions}")

    with pytest.raises(TypeError, match=r"Bare must define start\(\)"):
        Bare().reset(seed=0)


@pytest.mark.parametrize(("modality", "words", "drawn"), [
    ("image", False, True), ("text", True, False), ("both", True, True), ("none", False, False),
])  # fmt: skip
def test_the_modality_says_whether_a_turn_shows_the_picture_and_its_words(modality, words, drawn):
    env = make_walk(modality=modality)
    env.reset(seed=1)
    observation, _, _, _, info = env.step("<action>left</action>")
    place = "In words" if modality == "text" else "In the picture"
    start = f"{place}: cell -1 white, cell {env.target} red\n"
    assert info["vlgym"]["turn_text"].startswith(start) is words
    assert observation["text"].endswith(info["vlgym"]["turn_text"])
    assert np.array_equal(observation["image"], env.image()) is drawn
    assert (observation["image"] == 128).all() != drawn
    assert (env.prompt.digest() != Walk.prompt.digest()) == (modality == "text")


def test_an_environment_without_words_has_no_modality_of_words() -> None:
    env = Coin(vlgym_spec=make_spec("vlgym/Coin-v0", "toys:Coin"), modality="text")
    with pytest.raises(UserError, match="vlgym/Coin-v0 has no text description"):
        env.reset(seed=1)


def test_a_closed_environment_says_so_until_a_reset_or_a_state_opens_it() -> None:
    env = make_walk()
    env.reset(seed=1)
    assert env.render() is None  # no `render_mode`
    env.render_mode = "rgb_array"
    state = env.get_state()
    for open_again in (lambda: env.reset(seed=1), lambda: env.set_state(state)):
        env.close()
        env.close()
        for call in (lambda: env.step("<action>left</action>"), env.render, env.solve):
            with pytest.raises(gymnasium.error.ResetNeeded, match=r"closed: call env\.reset\(\) first\.$"):
                call()
        open_again()
        assert env.render() is not None
        env.step(env.solve() or "")
