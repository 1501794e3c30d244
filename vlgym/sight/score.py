"""Verdict on a model's sight, from the finished records of the suite `can-it-see`.

A probe is an environment that asks one question an episode, and has plain attributes: `topic`,
`answers` (all of them) and `answer` (the right one); where there are sizes, `levels` (smallest
first) and `level`; where there are pictures of earlier turns, `asked_as` (their names in the text),
`shown` (what each shows) and `asked` (the index of the one that is asked for). Records do not hold
these, so each question is made again from its seed.

**Sight.** `p` is the share of all permutations of a probe's answers that would be right as often as
the model is, or oftener (`intervals.permutation_p`). Unlike a comparison with 1 / number of
answers, it holds for a model that prefers some answers. Holm's rule over the probes: a model that
does not see is taken for one that does in at most 1 % of runs (`ALPHA`).

**Controls.** With grey or shuffled pictures no model can be right oftener than by guessing. Where
one is (binomial test against chance, Holm's rule over all controls, `CONTROL_ALPHA`), the answer
came some other way.

**Order.** A model that names, for each picture asked for, the one at some other place, in enough
answers (binomial test against chance, at `ORDER_ALPHA` divided by the number of orders), gets the
pictures in another order.

**Power.** `QUESTIONS` make 242 requests. In 1000 simulated runs of each kind
(`tests/sight/test_score.py`), a model that guesses was called blind in 996, one that prefers some
answers in 1000, one that is right 60 % of the time in none, and one that is always right never got
a warning. One that knows the last picture of a history and guesses the others was told so in 896.
Sight on one probe alone takes 3 to 8 right answers of 12, and all 12 for left and right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import permutations
from typing import Any

from ..errors import UserError, check_choice
from ..intervals import binomial_p, holm, permutation_p, wilson_interval
from ..registry.making import make
from ..types import StepRecord

SUITE = "can-it-see"
QUESTIONS = {"shown": 12, "grey": 5, "shuffled": 5}  # of each probe, by its pictures

ALPHA, CONTROL_ALPHA, ORDER_ALPHA = 0.01, 0.0005, 0.001
NO_BETTER = 0.2  # p value from which the model counts as not seeing the remaining pictures
ORDER_LEAD = 4  # more answers than the right order, from which another order is reported
_OPTIONAL = ("levels", "level", "asked_as", "shown", "asked")
SIGHTED, UNCLEAR, UNREADABLE, TOLD, TOO_FEW = "sighted", "unclear", "unreadable", "told", "too few"


@dataclass(frozen=True)
class Share:
    """Share of right answers, with its 95 % Wilson interval."""

    right: int
    count: int
    unreadable: int  # questions without a legal answer
    cut: int  # of these, replies that a limit ended
    refused: int  # of these, replies that declined
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.2f} [{self.low:.2f} to {self.high:.2f}]"


@dataclass(frozen=True)
class Level:
    """One size of what must be read, and whether it was (`None`: too few questions to say)."""

    name: str
    share: Share
    read: bool | None


@dataclass(frozen=True)
class Order:
    """Order of the pictures of earlier turns, as the answers name them.

    `table[asked][place]` is how often the picture of that place was named; the last column counts
    other answers and unreadable ones.
    """

    places: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    named: tuple[int, ...] | None  # for each place asked for, if clear; `(0, 1, 2, 3)` is right
    only: int | None  # where that is not clear: the last or first place, if it alone is known

    @property
    def wrong(self) -> bool:
        """True if the pictures seem to arrive in another order, or not all of them."""
        straight = tuple(range(len(self.places)))
        return self.only is not None or self.named not in (None, straight)


@dataclass(frozen=True)
class ProbeVerdict:
    """The verdict on one probe.

    It is `sighted`; `unclear`: not clearly better than guessing; `unreadable`: most replies held no
    answer; `told`: right without the pictures, too; or `too few`: even all right are not enough.
    """

    env_id: str
    topic: str
    chance: float  # 1 / number of answers
    shown: Share
    controls: dict[str, Share]  # with other pictures: `grey` and `shuffled`, those played
    p: float  # of the answers against permuted ones
    verdict: str
    levels: tuple[Level, ...] = ()  # its sizes, smallest first
    smallest: str | None = None  # that was read
    order: Order | None = None


@dataclass(frozen=True)
class SightReport:
    """Verdict on the records: `sees` is `None` where it cannot be judged; warnings are sentences."""

    sees: bool | None
    probes: tuple[ProbeVerdict, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Answer:
    """One question with the model's `choice`, `None` where none was read."""

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
        episodes_by_part: key of the part (`vlgym/SeeDigit-v0`, `vlgym/SeeDigit-v0 grey`,
            `vlgym/SeeDigit-v0 shuffled`) -> its episodes. Controls without their part are left out.

    Raises:
        UserError: a key is of another kind, an environment is no probe, or the records do not fit.
    """
    parts = episodes_by_part.items()
    return judge_answers({part: read_answers(part, episodes) for part, episodes in parts})


def read_answers(part: str, episodes: Sequence[Sequence[StepRecord]]) -> list[Answer]:
    """Make the questions of a part's episodes again, and pair each with its answer."""
    env: Any = make(part.partition(" ")[0], image_size=(16, 16))
    if not all(hasattr(env, name) for name in ("topic", "answers", "answer")):
        raise UserError(f"{part} is not a probe of sight; the probes are the parts of the suite {SUITE}.")
    read = []
    for episode in episodes:
        last = episode[-1]
        if last.seed is None:
            reason = f"episode {last.episode} has no seed, so its question cannot be made again"
            raise UserError(f"{part}: {reason}.")

        # A record that does not fit the question is of another version.
        env.reset(seed=last.seed)
        action = last.actions[-1] if last.actions and not last.invalid else None
        choice = action if action in env.answers else None
        if not last.invalid and last.success != (choice == env.answer):
            raise UserError(
                f"{part}: the record of seed {last.seed} does not fit the question that the installed "
                f"{last.env_id} asks there; play it again."
            )
        own = env.topic, tuple(env.answers), env.answer
        more = {name: getattr(env, name) for name in _OPTIONAL if hasattr(env, name)}
        read.append(Answer(*own, choice, last.cut, last.refused, **more))
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

    # A model that names the pictures in another order sees them, too.
    verdicts = {probe.verdict for probe in probes}
    orders = [probe.order for probe in probes if probe.order]
    sees = False if UNCLEAR in verdicts else None
    if SIGHTED in verdicts or any(order.wrong and order.named for order in orders):
        sees = True
    return SightReport(sees, probes, write_warnings(sees, probes))


def _judge_probes(grouped: Mapping[str, Mapping[str, Sequence[Answer]]]) -> tuple[ProbeVerdict, ...]:
    groups = grouped.items()
    shares = {env_id: {name: _share(answers) for name, answers in group.items()} for env_id, group in groups}
    chances = {env_id: 1 / len(group["shown"][0].answers) for env_id, group in groups}

    # Some probes cannot be judged: too few questions, or mostly unreadable replies.
    values, verdicts = {}, {}
    for env_id, group in groups:
        right = [answer.answer for answer in group["shown"]]
        values[env_id] = permutation_p([answer.choice for answer in group["shown"]], right)
        share = shares[env_id]["shown"]
        if 2 * share.unreadable > share.count:
            verdicts[env_id] = UNREADABLE
        elif _best_p(tuple(right)) > ALPHA / len(grouped):
            verdicts[env_id] = TOO_FEW

    # Others are right without their pictures: those say nothing of sight.
    controls = [
        (env_id, binomial_p(share.right, share.count, chances[env_id]))
        for env_id, group in shares.items()
        for name, share in group.items()
        if name != "shown"
    ]
    stand = holm([p for _, p in controls], CONTROL_ALPHA)
    leaking = [env_id for (env_id, _), stands in zip(controls, stand, strict=True) if stands]
    verdicts.update(dict.fromkeys(leaking, TOLD))

    # The rest is tested together, by Holm's rule.
    judged = [env_id for env_id in grouped if env_id not in verdicts]
    stand = holm([values[env_id] for env_id in judged], ALPHA)
    for env_id, sees in zip(judged, stand, strict=True):
        verdicts[env_id] = SIGHTED if sees else UNCLEAR

    # Details are for the report; no verdict rests on them.
    probes = []
    for env_id, group in groups:
        shown, chance, own = group["shown"], chances[env_id], shares[env_id]
        levels = _judge_levels(shown, chance)
        probes.append(ProbeVerdict(
            env_id, shown[0].topic, chance, own["shown"],
            {name: own[name] for name in QUESTIONS if name != "shown" and name in group},
            values[env_id], verdicts[env_id], levels,
            next((level.name for level in levels if level.read), None), _judge_order(shown, chance),
        ))  # fmt: skip
    return tuple(probes)


@cache
def _best_p(right: tuple[str, ...]) -> float:
    return permutation_p(right, right)


def _share(answers: Sequence[Answer]) -> Share:
    count = len(answers)
    right = sum(answer.choice == answer.answer for answer in answers)
    lost = [answer for answer in answers if answer.choice is None]
    cut, refused = sum(answer.cut for answer in lost), sum(answer.refused for answer in lost)
    return Share(right, count, len(lost), cut, refused, right / count, *wilson_interval(right, count))


def _judge_levels(answers: Sequence[Answer], chance: float) -> tuple[Level, ...]:
    levels = []
    for name in answers[0].levels:
        if own := [answer for answer in answers if answer.level == name]:
            share = _share(own)
            enough = binomial_p(share.count, share.count, chance) <= ALPHA
            read = binomial_p(share.right, share.count, chance) <= ALPHA
            levels.append(Level(name, share, read if enough else None))
    return tuple(levels)


def _judge_order(answers: Sequence[Answer], chance: float) -> Order | None:
    places = answers[0].asked_as
    if not places:
        return None

    # How often the picture of each place was named, by the place that was asked for.
    counts = [[0] * (len(places) + 1) for _ in places]
    for answer in answers:
        place = answer.shown.index(answer.choice) if answer.choice in answer.shown else len(places)
        counts[answer.asked][place] += 1
    table = tuple(tuple(row) for row in counts)

    # Of the orders that explain most answers the plainest is taken: the right one, one picture, others.
    straight = tuple(range(len(places)))
    orders = [straight, *((place,) * len(places) for place in straight)]
    orders += [order for order in permutations(straight) if order != straight]
    hits = [sum(table[row][place] for row, place in enumerate(order)) for order in orders]
    best = hits.index(max(hits))
    if hits[best] < hits[0] + ORDER_LEAD:
        best = 0
    clear = binomial_p(hits[best], len(answers), chance) <= ORDER_ALPHA / len(orders)
    if clear:
        return Order(places, table, orders[best], None)
    return Order(places, table, None, _find_only(table, chance))


def _find_only(table: Sequence[Sequence[int]], chance: float) -> int | None:
    """Return the last or the first place if that one is known, while the others are not."""
    for place in (len(table) - 1, 0):
        row = table[place]
        others = [other for other in range(len(table)) if other != place]
        right = sum(table[other][other] for other in others)
        questions = sum(sum(table[other]) for other in others)
        known = binomial_p(row[place], sum(row), chance) <= ALPHA
        if known and questions and binomial_p(right, questions, chance) > NO_BETTER:
            return place
    return None


def write_warnings(sees: bool | None, probes: Sequence[ProbeVerdict]) -> tuple[str, ...]:
    """Write the sentences that a user must know before any score of this model is believed."""
    if probes and all(probe.verdict == UNREADABLE for probe in probes):
        shares = [probe.shown for probe in probes]
        return (_say_unreadable("", shares, "nothing can be said of the model's sight"),)

    # Answers that came some other way weigh most; blindness says all else.
    leaks = [_say_told(probe) for probe in probes if probe.verdict == TOLD]
    lost = [probe for probe in probes if probe.verdict == UNREADABLE]
    unreadable = [_say_unreadable(f" on {probe.topic}", [probe.shown], "that is not judged") for probe in lost]
    if sees is False:
        unclear = [probe for probe in probes if probe.verdict == UNCLEAR]
        return (*leaks, _say_blind(unclear), *unreadable)

    # A model that sees may lack some pictures, sizes or topics.
    lines = [*leaks, *unreadable]
    for probe in probes:
        if probe.verdict in (TOLD, UNREADABLE):
            continue
        if probe.order is not None and probe.order.wrong:
            lines.append(_say_order(probe.order))
        elif probe.smallest and (too_small := _list_lost_levels(probe)):
            lines.append(_say_levels(probe, too_small))
        elif probe.verdict == UNCLEAR:
            lines.append(_say_unclear(probe))
    return tuple(lines)


def _say_unreadable(where: str, shares: Sequence[Share], consequence: str) -> str:
    lost = sum(share.unreadable for share in shares)
    cut, refused = sum(share.cut for share in shares), sum(share.refused for share in shares)
    causes = (f", {cut} of them cut by a limit" if cut else "") + (f", {refused} refused" if refused else "")
    count = sum(share.count for share in shares)
    return (
        f"Most replies{where} held no legal answer ({lost} of {count}{causes}), so {consequence}. Look "
        "at some of them: the model may need more tokens, or another reply format."
    )


def _say_told(probe: ProbeVerdict) -> str:
    shares = ", ".join(f"{name}: {share.right} of {share.count}" for name, share in probe.controls.items())
    return (
        f"The model is right on {probe.topic} without the pictures ({shares}; guessing gives "
        f"{probe.chance:.2f}): the answers reach it some other way, so this says nothing of its sight. "
        "Check that the pictures of the controls are what is sent."
    )


def _say_blind(probes: Sequence[ProbeVerdict]) -> str:
    expected = sum(probe.chance * probe.shown.count for probe in probes)
    counts = f"right {_sum([probe.shown for probe in probes])}, where guessing gives {expected:.0f}"
    for name in ("grey", "shuffled"):
        if shares := [probe.controls[name] for probe in probes if name in probe.controls]:
            counts += f"; with {name} pictures {_sum(shares)}"
    return (
        f"The model does no better with pictures than without ({counts}; "
        f"asked for {', '.join(probe.topic for probe in probes)}): it may not get the pictures at all. "
        "Check that the server accepts images, and that the model is one that sees."
    )


def _sum(shares: Sequence[Share]) -> str:
    return f"{sum(share.right for share in shares)} of {sum(share.count for share in shares)}"


def _say_unclear(probe: ProbeVerdict) -> str:
    grey = probe.controls.get("grey")
    than = f"with grey ones ({probe.shown} against {grey}" if grey else f"guessing ({probe.shown}"
    return (
        f"With pictures the model is not clearly better on {probe.topic} than {than}; guessing gives "
        f"{probe.chance:.2f}): do not count on its seeing that."
    )


def _list_lost_levels(probe: ProbeVerdict) -> list[Level]:
    names = [level.name for level in probe.levels]
    smaller = probe.levels[: names.index(probe.smallest)] if probe.smallest else ()
    return [level for level in smaller if level.read is False]


def _say_levels(probe: ProbeVerdict, lost: Sequence[Level]) -> str:
    names = " and ".join(f"{level.name} ({_sum([level.share])} right)" for level in lost)
    (best,) = [level for level in probe.levels if level.name == probe.smallest]
    return (
        f"The smallest {probe.topic} that the model reads is {best.name} ({_sum([best.share])} right), "
        f"not {names}: what is written smaller in a picture is lost on it."
    )


def _say_order(order: Order) -> str:
    places, named = order.places, order.named
    images = "Check how many images a request may hold."

    # One picture alone arrives: nothing else is known, or nothing else is named.
    if named is None:
        only = order.only or 0
        row = order.table[only]
        others = [place for place in range(len(places)) if place != only]
        known = sum(order.table[place][place] for place in others)
        count = sum(sum(order.table[place]) for place in others)
        return (
            f"Of the pictures of a history the model knows the {places[only]} one ({row[only]} of "
            f"{sum(row)} right), not the others ({known} of {count}): only the {places[only]} one seems "
            f"to arrive. {images}"
        )
    if len(set(named)) == 1:
        place = places[named[0]]
        return (
            f"Whichever picture of a history is asked for, the model names the {place}: only the "
            f"{place} one seems to arrive. {images}"
        )

    # All arrive, in another order.
    if named == tuple(reversed(range(len(places)))):
        return (
            f"Asked for the {places[0]} picture of a history, the model names the {places[-1]}, and so "
            "on: the pictures arrive in reverse order."
        )
    pairs = ", ".join(f"for the {places[index]} the {places[place]}" for index, place in enumerate(named))
    return f"The pictures of a history seem to arrive in another order: asked {pairs} is named."
