"""Findings on a model's sight, and the sentences that state them. `score` computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

SIGHTED, UNCLEAR, UNREADABLE, TOLD, TOO_FEW = "sighted", "unclear", "unreadable", "told", "too few"


@dataclass(frozen=True)
class Share:
    """Share of right answers.

    Attributes:
        unreadable: questions to which no legal answer was given.
        cut: of these, replies that a limit ended.
        refused: of these, replies that declined.
        share: `right / count`.
        low: lower end of its 95 % Wilson interval.
    """

    right: int
    count: int
    unreadable: int
    cut: int
    refused: int
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

    Attributes:
        places: what the question calls them.
        table: `table[asked][place]`: how often the picture of that place was named; the last column counts answers that
            name none of them, and unreadable ones.
        named: for each place that is asked for the place that is named, where that is clear; `(0, 1, 2, 3)` is right.
        only: where that is not clear, the last or the first place if that one alone is known.
    """

    places: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    named: tuple[int, ...] | None
    only: int | None

    @property
    def wrong(self) -> bool:
        """True if the pictures seem to arrive in another order, or not all of them."""
        return self.only is not None or self.named not in (None, tuple(range(len(self.places))))


@dataclass(frozen=True)
class ProbeVerdict:
    """The verdict on one probe.

    Attributes:
        chance: 1 / number of answers.
        controls: with other pictures: `grey` and `shuffled`, those that were played.
        p: of the answers against permuted ones.
        verdict: `sighted`; `unclear`: not clearly better than guessing; `unreadable`: most replies held no answer;
            `told`: right without the pictures too; `too few`: even all right would not have been enough.
        levels: its sizes, smallest first; empty where there is one.
        smallest: name of the smallest size that was read.
        order: where it asks for pictures of earlier turns.
    """

    env_id: str
    topic: str
    chance: float
    shown: Share
    controls: dict[str, Share]
    p: float
    verdict: str
    levels: tuple[Level, ...] = ()
    smallest: str | None = None
    order: Order | None = None


@dataclass(frozen=True)
class SightReport:
    """Verdict on the records.

    Attributes:
        sees: whether any probe shows sight; `None` where that cannot be judged.
        probes: one for each, in the order of the parts.
        warnings: plain sentences, the most important first; empty where all is well.
    """

    sees: bool | None
    probes: tuple[ProbeVerdict, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_warnings(sees: bool | None, probes: Sequence[ProbeVerdict]) -> tuple[str, ...]:
    """Write the sentences that a user must know before any score of this model is believed."""
    if probes and all(probe.verdict == UNREADABLE for probe in probes):
        return (_say_unreadable("", [probe.shown for probe in probes], "nothing can be said of the model's sight"),)
    leaks = [_say_told(probe) for probe in probes if probe.verdict == TOLD]
    unreadable = [
        _say_unreadable(f" on {probe.topic}", [probe.shown], "that is not judged")
        for probe in probes
        if probe.verdict == UNREADABLE
    ]
    if sees is False:
        return (*leaks, _say_blind([probe for probe in probes if probe.verdict == UNCLEAR]), *unreadable)
    lines = [*leaks, *unreadable]
    for probe in probes:
        if probe.verdict in (TOLD, UNREADABLE):
            continue
        if probe.order is not None and probe.order.wrong:
            lines.append(_say_order(probe.order))
        elif probe.smallest and (lost := _list_lost_levels(probe)):
            lines.append(_say_levels(probe, lost))
        elif probe.verdict == UNCLEAR:
            lines.append(_say_unclear(probe))
    return tuple(lines)


def _say_unreadable(where: str, shares: Sequence[Share], consequence: str) -> str:
    lost = sum(share.unreadable for share in shares)
    cut, refused = sum(share.cut for share in shares), sum(share.refused for share in shares)
    causes = (f", {cut} of them cut by a limit" if cut else "") + (f", {refused} refused" if refused else "")
    return (
        f"Most replies{where} held no legal answer ({lost} of {sum(share.count for share in shares)}{causes}), so "
        f"{consequence}. Look at some of them: the model may need more tokens, or another reply format."
    )


def _say_told(probe: ProbeVerdict) -> str:
    shares = ", ".join(f"{name}: {share.right} of {share.count}" for name, share in probe.controls.items())
    return (
        f"The model is right on {probe.topic} without the pictures ({shares}; guessing gives {probe.chance:.2f}): the "
        "answers reach it some other way, so this says nothing of its sight. "
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
        f"The smallest {probe.topic} that the model reads is {best.name} ({_sum([best.share])} right), not {names}: "
        "what is written smaller in a picture is lost on it."
    )


def _say_order(order: Order) -> str:
    places, named = order.places, order.named
    images = "Check how many images a request may hold."
    if named is None:
        only = order.only or 0
        others = [place for place in range(len(places)) if place != only]
        known = sum(order.table[place][place] for place in others)
        return (
            f"Of the pictures of a history the model knows the {places[only]} one ({order.table[only][only]} of "
            f"{sum(order.table[only])} right), not the others ({known} of {sum(sum(order.table[p]) for p in others)}): "
            f"only the {places[only]} one seems to arrive. {images}"
        )
    if len(set(named)) == 1:
        place = places[named[0]]
        return (
            f"Whichever picture of a history is asked for, the model names the {place}: only the {place} one seems to "
            f"arrive. {images}"
        )
    if named == tuple(reversed(range(len(places)))):
        return (
            f"Asked for the {places[0]} picture of a history, the model names the {places[-1]}, and so on: the "
            "pictures arrive in reverse order."
        )
    pairs = ", ".join(f"for the {places[index]} the {places[place]}" for index, place in enumerate(named))
    return f"The pictures of a history seem to arrive in another order: asked {pairs} is named."
