"""Playing a plan: every episode once, each waiting for its own answer, with its pictures."""

import threading
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import toys
from toys import make_spec

from vlgym.env.prompts import PromptBuilder
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError
from vlgym.evaluation.episodes import Player
from vlgym.evaluation.plan import Part, list_jobs
from vlgym.play.controls import GREY, GREY_LEVEL, SHUFFLED, list_pictures, with_pictures_of
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.types import Reply, StepRecord, Turn

WALK = make_spec()
COIN = make_spec("vlgym/Coin-v0", "toys:Coin", planners=("online", "global"), max_turns=30, image_size=(16, 16))
INSTALLED = (WALK, COIN)
pytestmark = pytest.mark.usefixtures("toys_installed")


def play(parts: list[Part], policy: Any = None, **options: Any) -> list[list[StepRecord]]:
    done: list[list[StepRecord]] = []
    Player(list_jobs(parts), policy or OraclePolicy(fallback=True), on_episode=done.append, **options).play()
    return sorted(done, key=lambda episode: (episode[0].part, episode[0].episode))


class Asking:
    """Answers as the oracle does, each prompt in a thread; that of the seed `hold` waits."""

    name = "asking"

    def __init__(self, hold: int | None = None, threads: int = 8) -> None:
        self.pool, self.oracle, self.hold = ThreadPoolExecutor(threads), OraclePolicy(fallback=True), hold
        self.let_go, self.requests, self.most, self.open = threading.Event(), Counter[Any](), 0, 0
        self.lock = threading.Lock()

    def reply(self, turns: Any) -> list[Reply]:
        raise AssertionError("a policy with `submit` is asked for each prompt apart")

    def submit(self, turn: Turn) -> Future[Reply]:
        reply = self.oracle.reply([turn])[0]
        self.requests[(turn.part, turn.seed, turn.repeat, turn.turn)] += 1
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
        return self.pool.submit(self._answer, reply, turn.seed)

    def _answer(self, reply: Reply, seed: int | None) -> Reply:
        if seed == self.hold:
            self.let_go.wait(10)
        with self.lock:
            self.open -= 1
        return reply


@pytest.mark.parametrize("policy", [lambda: OraclePolicy(fallback=True), Asking])
@pytest.mark.parametrize("num_envs", [1, 50])
def test_every_episode_is_played_once_with_its_own_seed(policy: Any, num_envs: int) -> None:
    parts = [Part(WALK.id, episodes=4, repeats=2), Part(COIN.id, episodes=3)]
    played = play(parts, policy(), num_envs=num_envs)
    due = [(COIN.id, n) for n in range(3)] + [(WALK.id, n) for n in range(8)]
    assert [(episode[0].part, episode[0].episode) for episode in played] == due
    for episode in played:
        first = episode[0]
        repeats = 2 if first.env_id == WALK.id else 1
        assert first.seed == episode_seed(first.env_id, "test", first.episode // repeats)
        assert first.repeat == first.episode % repeats
        assert [record.turn for record in episode] == list(range(len(episode)))
        assert episode[-1].terminated or episode[-1].truncated
        assert not any(record.terminated or record.truncated for record in episode[:-1])


def test_a_slow_answer_holds_up_its_own_episode_alone() -> None:
    policy = Asking(hold=episode_seed(WALK.id, "test", 0))
    done: list[int] = []

    def finish(episode: list[StepRecord]) -> None:
        done.append(episode[0].episode)
        if len(done) == 7:  # all the others
            policy.let_go.set()

    Player(list_jobs([Part(WALK.id, episodes=8)]), policy, num_envs=3, on_episode=finish).play()
    assert done[-1] == 0
    assert sorted(done) == list(range(8))
    assert set(policy.requests.values()) == {1}
    assert 1 < policy.most <= 3


def test_a_policys_error_closes_every_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    monkeypatch.setattr(toys.Walk, "close", lambda self: closed.append(self))

    class Wrong(Asking):
        def _answer(self, reply: Reply, seed: int | None) -> Reply:
            if seed == episode_seed(WALK.id, "test", 2):
                raise UserError("the key is wrong")
            return reply

    with pytest.raises(UserError, match="the key is wrong"):
        play([Part(WALK.id, episodes=8)], Wrong(), num_envs=3)
    assert len({id(env) for env in closed}) == 3


def test_a_reply_is_over_where_the_parser_has_what_it_asked_for() -> None:
    class Talking:
        name = "talking"

        def reply(self, turns: Any) -> list[Reply]:
            text = "I go <action>right</action> or rather <action>left</action>"
            return [Reply(text, cut=True) if turn.turn else Reply("nothing", cut=True) for turn in turns]

    (episode,) = play([Part(WALK.id, episodes=1)], Talking(), builders={WALK.id: PromptBuilder(2, 1)})
    first, *others = episode
    assert (first.reply, first.after, first.cut, first.actions) == ("nothing", "", True, ())
    for record in others:
        assert (record.reply, record.cut) == ("I go <action>right</action>", False)
        assert (record.actions, record.after) == (("right",), " or rather <action>left</action>")
    assert "rather" not in str([record.messages for record in episode])


def test_environments_are_used_again_and_few(monkeypatch: pytest.MonkeyPatch) -> None:
    made, closed, done, make = list[Any](), list[Any](), list[Any](), Part.make
    monkeypatch.setattr(Part, "make", lambda self, *more: made.append(self) or make(self, *more))
    for cls in (toys.Walk, toys.Coin):
        monkeypatch.setattr(cls, "close", lambda self: closed.append(self))

    def finish(episode: list[StepRecord]) -> None:
        done.append(episode)
        assert len(made) - len(closed) <= 3

    jobs = list_jobs([Part(WALK.id, episodes=9), Part(COIN.id, episodes=9)])
    Player(jobs, RandomPolicy(), num_envs=2, on_episode=finish).play()
    assert len(done) == 18
    assert len(made) <= 4
    assert len(closed) == len(made)


def test_grey_pictures_have_the_size_and_nothing_else() -> None:
    layout = {f"{WALK.id} {GREY}": PromptBuilder(2, 3)}
    for episode in play([Part(WALK.id, episodes=2, pictures=GREY)], builders=layout):
        for record in episode:
            images = list_pictures(record.messages)
            assert len(images) == min(3, record.turn + 1)
            assert all(np.array_equal(image, np.full_like(record.image, GREY_LEVEL)) for image in images)
            assert len(np.unique(record.image)) > 1


def test_shuffled_pictures_are_those_of_the_next_seed_under_the_same_replies() -> None:
    plain = play([Part(WALK.id, episodes=4, repeats=2)], RandomPolicy())
    shuffled = play([Part(WALK.id, episodes=3, repeats=2, pictures=SHUFFLED)], RandomPolicy())
    env = Part(WALK.id).make()
    for episode in shuffled:
        observation, _ = env.reset(seed=episode_seed(WALK.id, "test", episode[0].episode // 2 + 1))
        assert np.array_equal(list_pictures(episode[0].messages)[0], observation["image"])
        original = plain[episode[0].episode]  # text and rules are the episode's own
        assert [(r.reply, r.reward) for r in episode] == [(r.reply, r.reward) for r in original]
        for record, after in pairwise(episode):
            observation, _, terminated, truncated, _ = env.step(record.reply)
            if terminated or truncated:
                break
            assert np.array_equal(list_pictures(after.messages)[0], observation["image"])


class Reading:
    """Goes by the prompt's picture alone: any change of a pixel is another walk."""

    name = "reading"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(f"<action>{('left', 'right')[self.read(turn) % 2]}</action>") for turn in turns]

    def read(self, turn: Turn) -> int:
        return sum(zlib.crc32(image.tobytes()) for image in list_pictures(turn.messages))


def test_the_number_of_environments_changes_nothing() -> None:
    parts = [Part(WALK.id, episodes=12), Part(WALK.id, episodes=12, pictures=SHUFFLED)]

    def read_replies(num_envs: int) -> Any:
        played = play(parts, Reading(), num_envs=num_envs)
        return [[(turn.reply, turn.reward, turn.text) for turn in episode] for episode in played]

    replies = read_replies(1)
    assert replies == read_replies(5)
    assert replies[:12] != replies[12:]


def test_pictures_are_replaced_last_for_last() -> None:
    def prompt(*levels: int) -> list[Any]:
        content = [{"type": "image", "image": np.full((2, 2, 3), level, np.uint8)} for level in levels]
        return [{"role": "user", "content": [*content, {"type": "text", "text": "?"}]}]

    def levels(messages: list[Any]) -> list[int]:
        return [int(image[0, 0, 0]) for image in list_pictures(messages)]

    assert levels(with_pictures_of(prompt(1, 2), prompt(7, 8, 9))) == [8, 9]
    assert levels(with_pictures_of(prompt(1, 2, 3), prompt(7, 8))) == [7, 7, 8]
    assert with_pictures_of(prompt(1), [])[0]["content"][-1] == {"type": "text", "text": "?"}
