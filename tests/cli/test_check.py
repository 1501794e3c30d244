"""`vlgym check`: certificates, and their exit status."""

import pytest
from commands import invoke
from toys import installed, make_spec

from vlgym.testing import checks
from vlgym.testing.checks import CHECKS
from vlgym.testing.subject import CheckResult

WALK = make_spec()
HASTY = make_spec("vlgym/Hasty-v0", "broken_toys:Impatient")
ONLY = ["--only", "turn_limit", "--only", "card"]


def test_a_certificate_of_success_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(checks, "run_check", lambda name, _: CheckResult(name, name != "floor", "evidence"))
    with installed(WALK):
        lines = invoke("check", WALK.id, status=1).out.splitlines()
        whole = invoke("check", WALK.id, "--full", status=1).out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if "evidence" in line).split() == ["FAIL", "floor", "evidence"]
    listed = [line for line in lines if "pass" in line or line.startswith("     ")]
    named = {word.rstrip(",") for line in listed for word in line.split()}
    assert named >= set(CHECKS) - {"floor", "levels"}
    assert sum("evidence" in line for line in whole) == len(CHECKS) - 1  # without levels


def test_each_property_is_shown_with_evidence_and_a_failed_one_has_status_1() -> None:
    with installed(WALK, HASTY):
        out = invoke("check", "vlgym/Walk-v0", "vlgym/Hasty-v0", *ONLY, status=1).out
    lines = [line.split() for line in out.splitlines() if line]
    assert lines[0] == ["Certificate", "of", "vlgym/Walk-v0"]
    assert lines[1][:5] == ["pass", "turn_limit", "truncated", "after", "exactly"]
    assert lines[2][:2] == ["pass", "card"]
    assert lines[3][:5] == ["2", "of", "2", "properties", "hold"]
    assert "FAIL turn_limit  turn 4 of unreadable replies terminated the episode" in out
    rule = "An episode of unreadable replies is truncated at the turn limit, not terminated."
    assert f"required: {rule}" in " ".join(out.split())
    assert "1 of 2 properties hold" in out
    assert "1 of 2 environments passed." in out


def test_arguments_are_passed_to_the_environment() -> None:
    with installed(WALK):
        out = invoke("check", WALK.id, *ONLY[:2], "--arg", "invalid_action=terminate").out
        wrong = invoke("check", "vlgym/Walk-v0", "vlgym/Wolk-v0", status=2)
    assert "terminated by the first unreadable reply" in out
    assert (wrong.out, "Nearest: vlgym/Walk-v0" in wrong.err) == ("", True)
