"""The check of blind players' results. It only warns: the author decides if the picture must matter."""

from __future__ import annotations

from ..evaluation import Report, summarize
from ..play.policies import OraclePolicy, Policy, RandomPolicy
from ..sight.blind import Searcher
from ..sight.blind_gap import WARN_ABOVE, find_share
from ..sight.blind_policies import BlindPolicy, load_players, make_constant
from .measure import choosing_split, find_best, find_constants
from .playing import Deadline
from .subject import FEWEST, MOST, TURN_BUDGET, CheckWarning, Subject

CHOOSING_TURNS = 300
"""Turns, about, for which each constant action is tried before the best ones are judged."""

CHOOSING_SECONDS, JUDGING_SECONDS = 2.0, 1.5
"""After so long no other constant action is tried (though two are), and no other episode is played to judge one (though
`FEWEST` are): what is slow is looked at less, and the evidence says so."""


def check_blind(subject: Subject) -> str:
    """Policies without the picture stay under a third of the way from random play to the oracle.

    That holds for success and for returns above 0. They see only the text and the legal actions. Where one does not
    stay under it, the certificate warns.

    Sees: what the best constant action wins (chosen on train, judged on val), and a searcher that goes round the legal
    actions and prefers those whose words stand in the text; and a blind player of the spec that cannot be imported.
    Cannot see: what a policy written for the environment wins (`EnvSpec.blind`, which registry.yaml measures), and a
    few episodes say little of long ones.
    """
    load_players(subject.spec)
    if subject.spec.oracle == "none":
        return "the spec states that there is no oracle to measure the way to"
    split = subject.splits()[0] if subject.splits() else choosing_split(subject.spec)
    floor, ceiling = (subject.play(policy, split) for policy in (RandomPolicy(), OraclePolicy(fallback=True)))
    budget = "val" if split not in MOST else split
    episodes = max(FEWEST[budget], min(MOST[budget], TURN_BUDGET[budget] // subject.spec.max_turns))
    reports = [
        _play(subject, policy, split, FEWEST[budget], episodes, JUDGING_SECONDS)
        for policy in (*_choose_constants(subject), BlindPolicy(Searcher.name, Searcher))
    ]
    ways = [_find_way(report, floor, ceiling) for report in reports]
    most = max(range(len(ways)), key=ways.__getitem__)
    report = reports[most]
    evidence = (
        f"without the picture {report.policy!r} reaches {ways[most]:.2f} of the way from random play to the oracle: "
        f"success {report.success:.3f}, return {report.mean_return:.3f} over {report.episodes} episodes of {split}"
    )
    if ways[most] > WARN_ABOVE:
        raise CheckWarning(f"{evidence}; above {WARN_ABOVE:.2f} the text or the rules give too much away")
    return evidence


def _find_way(report: Report, floor: Report, ceiling: Report) -> float:
    figures = ({"return": each.mean_return, "success": each.success} for each in (report, floor, ceiling))
    return find_share(*figures) or 0.0


def _choose_constants(subject: Subject) -> list[Policy]:
    split = "train" if "train" in subject.spec.splits else choosing_split(subject.spec)
    episodes = max(2, min(20, CHOOSING_TURNS // subject.spec.max_turns))
    deadline = Deadline(CHOOSING_SECONDS)
    policies: list[Policy] = []
    reports = []
    for action in find_constants(subject.spec, subject.make):
        if deadline.over and len(policies) > 1:
            break
        policies.append(make_constant(action))
        reports.append(_play(subject, policies[-1], split, 2, episodes, CHOOSING_SECONDS))
    return list(dict.fromkeys(find_best(policies, reports))) if policies else []


def _play(subject: Subject, policy: Policy, split: str, fewest: int, most: int, seconds: float) -> Report:
    return summarize(subject.spec.id, policy.name, split, subject.run(policy, split, most, fewest, seconds))
