"""The certificate's warning about what can be won without the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toys import Coin, installed, make_spec

from vlgym.cli.app import main
from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.testing import EnvConformance, Subject, certify
from vlgym.testing.sight_checks import check_blind
from vlgym.types import Outcome

COLOURS = ("red", "green", "blue", "white", "black", "grey", "pink", "brown")


class Told(Coin):
    """The task names the action that wins."""

    def oracle(self) -> str:
        return "heads"


class Shown(VLEnv):
    """Only the picture tells the answer."""

    prompt = PromptTemplate(version=1, instructions="Which? {task} {format}", turn="{state}{actions}")

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.answer, self.won = int(rng.integers(len(COLOURS))), False

    def act(self, action: str) -> Outcome:
        self.won = action == COLOURS[self.answer]
        return Outcome(float(self.won), terminated=True)

    def image(self) -> np.ndarray:
        return np.full((*self.image_size, 3), 20 * self.answer, np.uint8)

    def task(self) -> str:
        return ""

    def legal_actions(self) -> list[str]:
        return list(COLOURS)

    def success(self) -> bool:
        return self.won

    def oracle(self) -> str | None:
        return COLOURS[self.answer]


TOLD = make_spec("toys/Told-v0", f"{__name__}:Told", reward_range=(-1.0, 6.0))
SHOWN = make_spec("toys/Shown-v0", f"{__name__}:Shown", max_turns=1)


def test_where_the_text_names_the_answer_a_warning_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kit = type("TestTold", (EnvConformance,), {"env_id": TOLD.id, "_subjects": {}})()
    with installed(TOLD):
        certificate = certify(TOLD.id, only=["blind"])
        assert main(["check", TOLD.id, "--only", "blind"]) == 0
        with pytest.warns(UserWarning, match="toys/Told-v0: blind: without the picture"):
            kit.test_contract(TOLD.id, "blind")
    [result] = certificate.results
    assert (result.passed, result.warning, certificate.passed, certificate.warnings) == (True, True, True, 1)
    assert "reaches 1.00 of the way from random play to the oracle" in result.evidence
    assert certificate.to_dict()["checks"][0]["warning"] is True
    out = capsys.readouterr().out
    assert "  warn blind" in out
    assert "0 of 1 properties hold, 1 warned of" in out


def test_where_only_the_picture_tells_the_answer_nothing_is_warned_of() -> None:
    with installed(SHOWN):
        [result] = certify(SHOWN.id, only=["blind"]).results
    assert (result.passed, result.warning) == (True, False)
    assert "of the way from random play to the oracle" in result.evidence


def test_without_an_oracle_there_is_no_way_to_measure() -> None:
    spec = make_spec("toys/Shown-v0", f"{__name__}:Shown", max_turns=1, oracle="none")
    assert "no oracle" in check_blind(Subject(spec))
