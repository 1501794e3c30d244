"""A learner measures how much pictures change the log-probability that it takes gradients of."""

from __future__ import annotations

import pytest

from baselines.engine.engine import make_engine
from baselines.learning import evaluation
from baselines.learning.evaluation import measure_gap
from baselines.models.load import load_family
from vlgym.integrations.canary import ARRIVES, BLIND, CANARIES
from vlgym.play.controls import in_grey
from vlgym.registry import get_registry


def test_a_scorer_that_drops_the_pictures_is_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "GAP_EPISODES", 6)
    family = load_family("tiny")
    engine = make_engine(family, max_new_tokens=8, parsers=())
    gap = measure_gap(engine)
    assert gap.n == 6
    assert gap.verdict == ARRIVES
    encode = family.encode
    monkeypatch.setattr(family, "encode", lambda messages: encode(in_grey(messages)))
    blind = measure_gap(engine)
    assert (blind.mean, blind.verdict) == (0, BLIND)
    monkeypatch.delitem(get_registry().specs, CANARIES[2])
    assert measure_gap(engine) is None
