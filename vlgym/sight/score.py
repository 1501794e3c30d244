"""Verdict on a model's sight, from the finished records of the suite `can-it-see`. Nothing is played here.

A probe is an environment that asks one question an episode, and has plain attributes: `topic` (what must be seen),
`answers` (all of them) and `answer` (the right one); where there are sizes, `levels` (smallest first) and `level`;
where there are pictures of earlier turns, `asked_as` (what the text calls them), `shown` (what each shows) and `asked`
(the index of the one that is asked for). Records do not hold these, so each question is made again from its seed.

**Sight.** `p` is the share of all permutations of a probe's answers that would be right as often as the model is, or
oftener (`intervals.permutation_p`). Unlike a comparison with 1 / number of answers, it holds for a model that prefers
some answers. Holm's rule over the probes: a model that does not see is taken for one that does in at most 1 % of runs
(`ALPHA`).

**Controls.** With grey or shuffled pictures no model can be right oftener than by guessing. Where one is (binomial
test against chance, Holm's rule over all controls, `CONTROL_ALPHA`), the answer came some other way.

**Order.** Whoever names, for each picture asked for, the one at some other place, in enough answers (binomial test
against chance, at `ORDER_ALPHA` divided by the number of orders), gets the pictures in another order.

**Power.** `QUESTIONS` make 242 requests. In 1000 simulated runs of each kind (`tests/sight/test_score.py`), a
model that guesses was called blind in 996, one that prefers some answers in 1000, one that is right 60 % of the time
in none, and one that is always right never got a warning. One that knows the last picture of a history and guesses the
others was told so in 896. Where nothing else is seen, sight on one probe takes 3 to 8 right answers of 12, and all 12
for left and right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any

from ..errors import UserError, check_choice
from ..intervals import binomial_p, holm, permutation_p, wilson_interval
from ..registry.making import make
from ..types import StepRecord
from .sight_report import (
    SIGHTED,
    TOLD,
    TOO_FEW,
    UNCLEAR,
    UNREADABLE,
    Level,
    Order,
    ProbeVerdict,
    Share,
    SightReport,
    write_warnings,
)

SUITE = "can-it-see"
QUESTIONS = {"shown": 12, "grey": 5, "shuffled": 5}
"""Questions of each probe, by what is done with its pictures."""

ALPHA = 0.01
CONTROL_ALPHA = 0.0005
ORDER_ALPHA = 0.001
NO_BETTER = 0.2
"""The model counts as not seeing the remaining pictures where their p value is higher."""
ORDER_LEAD = 4
"""Another order of the pictures is reported if it explains at least this many more answers than the right one."""

_OPTIONAL = ("levels", "level", "asked_as", "shown", "asked")


@dataclass(frozen=True)
class Answer:
    """One question, and what was answered.

    Attributes:
        choice: the model's; `None` where none was read.
        levels: names of the sizes, smallest first; empty where there is one size.
        asked_as: what the pictures of earlier turns are called; empty where there are none.
        shown: what each of them shows, in order.
        asked: index of the one that is asked for.
    """

    topic: str
    answers: tuple[str, ...]
    answer: str
    choice: str | None
    cut: bool = False
    refused: bool = False
    levels: tuple[str, ...] = ()
    level: str = ""
    asked_as: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    asked: int = 0


def judge(episodes_by_part: Mapping[str, Sequence[Sequence[StepRecord]]]) -> SightReport:
    """Judge finished episodes of the suite.

    Args:
        episodes_by_part: key of the part (`vlgym/SeeDigit-v0`, `vlgym/SeeDigit-v0 grey`, `vlgym/SeeDigit-v0
            shuffled`) -> its episodes. Controls without their part with pictures are left out.

    Raises:
        UserError: a key is of another kind, an environment is no probe or cannot be made, or the records are not of
            its questions.
    """
    return judge_answers({part: read_answers(part, episodes) for part, episodes in episodes_by_part.items()})


def read_answers(part: str, episodes: Sequence[Sequence[StepRecord]]) -> list[Answer]:
    """Make the questions of a part's episodes again, and pair each with its answer."""
    env: Any = make(part.partition(" ")[0], image_size=(16, 16))
    if not all(hasattr(env, name) for name in ("topic", "answers", "answer")):
        raise UserError(f"{part} is not a probe of sight; the probes are the parts of the suite {SUITE}.")
    read = []
    for episode in episodes:
        last = episode[-1]
        if last.seed is None:
            raise UserError(f"{part}: episode {last.episode} has no seed, so its question cannot be made again.")
        env.reset(seed=last.seed)
        choice = last.actions[-1] if last.actions and not last.invalid and last.actions[-1] in env.answers else None
        if not last.invalid and last.success != (choice == env.answer):
            raise UserError(
                f"{part}: the record of seed {last.seed} does not fit the question that the installed {last.env_id} "
                "asks there; play it again."
            )
        more = {name: getattr(env, name) for name in _OPTIONAL if hasattr(env, name)}
        read.append(Answer(env.topic, tuple(env.answers), env.answer, choice, last.cut, last.refused, **more))
    env.close()
    return read


def judge_answers(answers_by_part: Mapping[str, Sequence[Answer]]) -> SightReport:
    """Judge answers; keys as in `judge`."""
    grouped: dict[str, dict[str, Sequence[Answer]]] = {}
    for part, answers in answers_by_part.items():
        env_id, _, pictures = part.partition(" ")
        check_choice(f"part {part!r}: pictures", pictures or "shown", QUESTIONS)
        if answers:
            grouped.setdefault(env_id, {})[pictures or "shown"] = answers
    probes = _judge_probes({env_id: group for env_id, group in grouped.items() if "shown" in group})
    sees = _judge_sight(probes)
    return SightReport(sees, probes, write_warnings(sees, probes))


def _judge_sight(probes: Sequence[ProbeVerdict]) -> bool | None:
    verdicts = {probe.verdict for probe in probes}
    if SIGHTED in verdicts or any(probe.order and probe.order.wrong and probe.order.named for probe in probes):
        return True
    return False if UNCLEAR in verdicts else None


def _judge_probes(grouped: Mapping[str, Mapping[str, Sequence[Answer]]]) -> tuple[ProbeVerdict, ...]:
    shares = {env_id: {name: _share(answers) for name, answers in group.items()} for env_id, group in grouped.items()}
    chances = {env_id: 1 / len(group["shown"][0].answers) for env_id, group in grouped.items()}

    # Some probes cannot be judged: too few questions, or mostly unreadable replies.
    values, verdicts = {}, {}
    for env_id, group in grouped.items():
        right = [answer.answer for answer in group["shown"]]
        values[env_id] = permutation_p([answer.choice for answer in group["shown"]], right)
        if 2 * shares[env_id]["shown"].unreadable > shares[env_id]["shown"].count:
            verdicts[env_id] = UNREADABLE
        elif _best_p(tuple(right)) > ALPHA / len(grouped):
            verdicts[env_id] = TOO_FEW

    # Others are right without their pictures: those say nothing of sight.
    controls = {
        (env_id, name): binomial_p(share.right, share.count, chances[env_id])
        for env_id, group in shares.items()
        for name, share in group.items()
        if name != "shown"
    }
    stand = holm(list(controls.values()), CONTROL_ALPHA)
    verdicts.update({env_id: TOLD for (env_id, _), stands in zip(controls, stand, strict=True) if stands})

    # The rest is tested together, by Holm's rule.
    judged = [env_id for env_id in grouped if env_id not in verdicts]
    stand = holm([values[env_id] for env_id in judged], ALPHA)
    verdicts.update({env_id: SIGHTED if sees else UNCLEAR for env_id, sees in zip(judged, stand, strict=True)})

    # Details are for the report; no verdict rests on them.
    probes = []
    for env_id, group in grouped.items():
        shown = group["shown"]
        levels = _judge_levels(shown, chances[env_id])
        probes.append(
            ProbeVerdict(
                env_id, shown[0].topic, chances[env_id], shares[env_id]["shown"],
                {name: shares[env_id][name] for name in QUESTIONS if name != "shown" and name in group},
                values[env_id], verdicts[env_id], levels,
                next((level.name for level in levels if level.read), None), _judge_order(shown, chances[env_id]),
            )
        )  # fmt: skip
    return tuple(probes)


@cache
def _best_p(right: tuple[str, ...]) -> float:
    """Return the p value of a model that is always right."""
    return permutation_p(right, right)


def _share(answers: Sequence[Answer]) -> Share:
    right, count = sum(answer.choice == answer.answer for answer in answers), len(answers)
    lost = [answer for answer in answers if answer.choice is None]
    cut, refused = sum(answer.cut for answer in lost), sum(answer.refused for answer in lost)
    return Share(right, count, len(lost), cut, refused, right / count, *wilson_interval(right, count))


def _judge_levels(answers: Sequence[Answer], chance: float) -> tuple[Level, ...]:
    levels = []
    for name in answers[0].levels:
        own = [answer for answer in answers if answer.level == name]
        if own:
            share = _share(own)
            enough = binomial_p(share.count, share.count, chance) <= ALPHA
            levels.append(Level(name, share, binomial_p(share.right, share.count, chance) <= ALPHA if enough else None))
    return tuple(levels)


def _judge_order(answers: Sequence[Answer], chance: float) -> Order | None:
    places = answers[0].asked_as
    if not places:
        return None
    counts = [[0] * (len(places) + 1) for _ in places]
    for answer in answers:
        place = answer.shown.index(answer.choice) if answer.choice in answer.shown else len(places)
        counts[answer.asked][place] += 1
    table = tuple(tuple(row) for row in counts)
    straight = tuple(range(len(places)))
    orders = [straight, *((place,) * len(places) for place in straight)]
    orders += [order for order in permutations(straight) if order != straight]
    hits = [sum(table[row][place] for row, place in enumerate(order)) for order in orders]
    best = hits.index(max(hits))  # the first of equals: the plainest
    if hits[best] < hits[0] + ORDER_LEAD:
        best = 0
    clear = binomial_p(hits[best], len(answers), chance) <= ORDER_ALPHA / len(orders)
    return Order(places, table, orders[best] if clear else None, None if clear else _find_only(table, chance))


def _find_only(table: Sequence[Sequence[int]], chance: float) -> int | None:
    """Return the last or the first place if that one is known, while the others are not."""
    for place in (len(table) - 1, 0):
        row = table[place]
        others = [other for other in range(len(table)) if other != place]
        right, questions = sum(table[other][other] for other in others), sum(sum(table[other]) for other in others)
        known = binomial_p(row[place], sum(row), chance) <= ALPHA
        if known and questions and binomial_p(right, questions, chance) > NO_BETTER:
            return place
    return None
