"""Checks of pictures and text: pictures show the state, looking is free, the text tells little."""

import re
from collections import defaultdict
from itertools import pairwise

import numpy as np

from ..env import VLEnv
from ..evaluation import Report, summarize
from ..play.policies import OraclePolicy, Policy, RandomPolicy
from ..sight.blind import Searcher, leave_out_list
from ..sight.blind_gap import WARN_ABOVE, find_share
from ..sight.blind_policies import BlindPolicy, load_players, make_constant
from .measure import choosing_split, find_best, find_constants
from .playing import Deadline, choose_legal, choose_oracle, digest_picture, play_episode
from .subject import FEWEST_EPISODES, MOST_SAMPLED, TURN_BUDGET, CheckWarning, Subject, require, require_repeat

TRIAL_TURNS = 300  # turns, about, for which each constant action is tried
CHOOSING_SECONDS = 2.0  # after so long no other constant action is tried, though two are
JUDGING_SECONDS = 1.5  # limit of judging one, though `FEWEST_EPISODES` are played


def check_blind(subject: Subject) -> str:
    """Policies without the picture stay under a third of the way from random play to the oracle.
    That holds for success and for returns above 0; else the certificate warns.

    Sees: the best constant action (chosen on train, judged on val), a searcher that goes round the
    legal actions and prefers words of the text, and a blind player of the spec that cannot be
    imported. Cannot see: a policy for this environment (`EnvSpec.blind`, which registry.yaml
    measures).
    """
    spec = subject.spec
    load_players(spec)
    if spec.oracle == "none":
        return "the spec states that there is no oracle to measure the way to"
    split = subject.splits()[0] if subject.splits() else choosing_split(spec)
    bounds = [subject.play(policy, split) for policy in (RandomPolicy(), OraclePolicy(fallback=True))]

    # A few episodes of each policy, by the budget of the split.
    budget = "val" if split not in MOST_SAMPLED else split
    fewest, most = FEWEST_EPISODES[budget], MOST_SAMPLED[budget]
    episodes = max(fewest, min(most, TURN_BUDGET[budget] // spec.max_turns))
    reports = [
        _play(subject, policy, split, fewest, episodes, JUDGING_SECONDS)
        for policy in (*_choose_constants(subject), BlindPolicy(Searcher.name, Searcher))
    ]

    # The best one's way from random play to the oracle.
    ways = [_find_way(report, *bounds) for report in reports]
    way, report = max(zip(ways, reports, strict=True), key=lambda pair: pair[0])
    evidence = (
        f"without the picture {report.policy!r} reaches {way:.2f} of the way from random play to the "
        f"oracle: success {report.success:.3f}, return {report.mean_return:.3f} over "
        f"{report.episodes} episodes of {split}"
    )
    if way > WARN_ABOVE:
        above = f"above {WARN_ABOVE:.2f} the text or the rules give too much away"
        raise CheckWarning(f"{evidence}; {above}")
    return evidence


def _find_way(*reports: Report) -> float:
    figures = ({"return": each.mean_return, "success": each.success} for each in reports)
    return find_share(*figures) or 0.0


def _choose_constants(subject: Subject) -> list[Policy]:
    split = "train" if "train" in subject.spec.splits else choosing_split(subject.spec)
    episodes, deadline = max(2, min(20, TRIAL_TURNS // subject.spec.max_turns)), Deadline(CHOOSING_SECONDS)
    reports: dict[Policy, Report] = {}
    for action in find_constants(subject.spec, subject.make):
        if deadline.over and len(reports) > 1:
            break
        policy = make_constant(action)
        reports[policy] = _play(subject, policy, split, 2, episodes, CHOOSING_SECONDS)
    return list(dict.fromkeys(find_best([*reports], [*reports.values()]))) if reports else []


def _play(subject: Subject, policy: Policy, split: str, fewest: int, most: int, seconds: float) -> Report:
    episodes = subject.run(policy, split, most, fewest, seconds)
    return summarize(subject.spec.id, policy.name, split, episodes)


BUCKETS = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 40))  # turns that are looked at together
ENOUGH = 8  # turns of a bucket, or of an answer, from which a pattern is more than chance
LEAST_SPREAD = 8  # levels of 255 between a colour's extremes of which an eye sees nothing


def check_picture(subject: Subject) -> str:
    """Pictures differ by seed, follow the actions, and are never blank. They have the size that is
    asked for.

    Sees: a picture that is constant, frozen at the start or later, one step behind at the first
    step, of nearly one colour, or that ignores `image_size`. Cannot see: a picture of something
    else (`recorded` compares), or one without a part of the state.
    """
    sample = subject.sample
    starts = {episode[0].picture for episode in sample}
    require(len(starts) > 1, f"{len(sample)} seeds show the same picture at the start")

    # Early and late turns apart: a picture may freeze later.
    pairs = [pair for episode in sample for pair in pairwise(episode)]
    steps = [(b.turn, a.picture != b.picture) for a, b in pairs if b.acted and not b.ended]
    changed = sum(moved for _, moved in steps)
    frozen = "the picture changed at none of"
    require(changed or len(steps) < ENOUGH, f"{frozen} {len(steps)} executed actions")
    for first, last in BUCKETS:
        moves = [moved for turn, moved in steps if first <= turn <= last]
        rest = [moved for turn, moved in steps if not first <= turn <= last]
        usual = sum(rest) / len(rest) if rest else 0.0
        stuck = not any(moves) and (1 - usual) ** len(moves) < 1e-4
        require(not stuck, f"{frozen} {len(moves)} actions in turns {first} to {last}")

    # Nearly one colour is blank to an eye.
    env = subject.make()
    height, width = env.image_size
    env.reset(seed=1)
    flat = [env.reset(seed=seed)[0]["image"] for seed in subject.seeds(3)]
    spread = max(int(np.ptp(image, axis=(0, 1)).max()) for image in flat)
    blank = f"the picture is blank to the eye: the levels of a colour differ by {spread} of 255"
    require(spread > LEAST_SPREAD, blank)

    # The size is the user's to choose.
    size = (height * 5 // 4, width * 5 // 4)
    larger = subject.make(image_size=size)
    shape = larger.reset(seed=1)[0]["image"].shape
    require(shape == (*size, 3), f"image_size={size} gives a picture of shape {shape}")
    moved = f"{changed} of {len(steps)} actions changed the picture"
    return f"{len(starts)} pictures at {len(sample)} starts; {moved}"


def check_render(subject: Subject) -> str:
    """`render()` in mode `rgb_array` shows the observation's image.

    Sees: another drawing, size or moment, in an episode of 8 turns. Cannot see: later turns.
    """
    frames: list[str] = []
    env = subject.make(render_mode="rgb_array")

    def draw(env: VLEnv) -> None:
        frame = env.render()
        frames.append(digest_picture(frame) if isinstance(frame, np.ndarray) else "")

    for step, frame in zip(play_episode(env, subject.seed(0), choose_legal(4), 9, watch=draw), frames, strict=False):
        require(frame == step.picture, f"render() differs from the observation's image at turn {step.turn}")
    return f"render() is the observation's image over {len(frames)} turns"


def check_looking(subject: Subject) -> str:
    """Looking changes nothing. Image, texts, legal actions, info and state give the same each time.

    Sees: drawing, listing or saving that moves something, draws from the episode's generator, or
    answers differently when it is asked again. Cannot see: later turns than 16.
    """
    plain, watched = subject.make(), subject.make()
    otherwise = "an episode that is looked at more often goes otherwise"
    for index, seed in enumerate(subject.seeds(2, first=20)):
        one = play_episode(plain, seed, choose_legal(index, garbage_every=5), 16)
        require_repeat(one, watched, seed, otherwise, watch=_look)
    return "two episodes are the same however often they are looked at"


def _look(env: VLEnv) -> None:
    def see() -> tuple[object, ...]:
        return digest_picture(env.image()), env.legal_actions(), env.state_text(), env.task()

    for _ in range(2):
        require(see() == see(), "image, legal actions or texts differ when they are asked for twice")
        for ask in (env.success, env.score, env.extra_info, env.render, env.get_state):
            ask()


DESCRIBED_EPISODES, DESCRIBED_SECONDS = 24, 3.0  # each by random play and by the oracle


def check_described(subject: Subject) -> str:
    """The words of a picture tell nothing that it does not show. They are those of `Game.describe`.

    Sees: different words of the same picture, in 24 short episodes of random play and of the
    oracle; a wrong `modality`. Cannot see: too much told of pictures that do not come again.
    """
    env = subject.make()
    descriptions: dict[str, str] = {}
    again = 0

    def compare(env: VLEnv) -> None:
        nonlocal again
        picture, words = digest_picture(env.image()), env.describe()
        again += picture in descriptions
        before = descriptions.setdefault(picture, words)
        require(before == words, f"one picture is told in two ways: {before!r}, {words!r}")

    deadline = Deadline(DESCRIBED_SECONDS)
    for index, seed in enumerate(subject.seeds(DESCRIBED_EPISODES)):
        if deadline.over and index > 1:
            break
        for choose in (choose_legal(index), choose_oracle):
            play_episode(env, seed, choose, 8, watch=compare)
    if not any(descriptions.values()):
        return "nobody wrote words for its picture, so it has no modality but image and none"
    require(all(descriptions.values()), "a picture has no words")

    # `modality="text"` shows the words for the picture.
    worded = subject.make(modality="text")
    observation, _ = worded.reset(seed=seed)
    require(worded.describe() in observation["text"], "modality='text' does not show the words")
    require(not np.ptp(observation["image"]), "modality='text' shows the picture")
    seen = f"{len(descriptions)} pictures, {again} times seen again"
    return f"{seen}: the same picture has the same words"


def check_leak(subject: Subject) -> str:
    """The text does not give the oracle's next action away. It tells it neither by name nor by its
    place in the list.

    Sees: the right action spelled in the text apart from the list, or always at the same place of a
    list that changes. Cannot see: an answer in other words (a place, a code), in the picture's
    pixels, or in info, which no model is shown.
    """
    if subject.spec.oracle == "none":
        return "the spec states that there is no oracle to compare with"
    steps = [step for episode in subject.sample for step in episode if step.advice is not None]
    hits: dict[str, list[bool]] = defaultdict(list)
    misses: dict[str, list[bool]] = defaultdict(list)
    answers = {step.advice or "" for step in steps}
    for step in steps:
        words = leave_out_list(step.text, step.legal)
        for answer in answers:
            spelled = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", words) is not None
            (hits if step.advice == answer else misses)[answer].append(spelled)

    # Words: the right action is named where it is right, and others are not.
    frequent = [answer for answer in answers if len(hits[answer]) >= 2]
    always = [answer for answer in frequent if all(hits[answer])]
    rest = [each for answer in always for each in misses[answer]]
    times = sum(len(hits[answer]) for answer in always)
    telling = len(frequent) > 1 and len(always) > 0.6 * len(frequent) and times >= ENOUGH
    require(
        not (telling and sum(rest) < 0.75 * len(rest)),
        f"the text names the oracle's action in all of {times} turns, and another one in "
        f"{sum(rest)} of {len(rest)} places: {sorted(always)[:3]}",
    )

    # Places: the right action stands always first, or always last.
    listed = [step for step in steps if step.advice in step.legal and len(step.legal) > 1]
    lists = {step.legal for step in listed}
    places = {step.legal.index(step.advice or "") for step in listed}
    from_end = {len(step.legal) - step.legal.index(step.advice or "") for step in listed}
    varied = len(listed) >= ENOUGH and len(lists) > 1 and len({step.advice for step in listed}) > 1
    require(
        not (varied and 1 in (len(places), len(from_end))),
        f"the oracle's action stands at the same place of the list of legal actions in all of {len(listed)} turns",
    )
    actions = f"{len(steps)} turns with {len(answers)} different right actions"
    return f"{actions}: neither named nor told by their place"
