"""The sweep: every property of every current first-party environment, in its default settings."""

from __future__ import annotations

import pytest

from vlgym.registry import get_registry
from vlgym.testing import certify


@pytest.mark.exhaustive
@pytest.mark.parametrize("env_id", sorted(get_registry().current()))
def test_an_environment_earns_the_whole_certificate(env_id: str) -> None:
    certificate = certify(env_id)
    assert [(each.name, each.evidence) for each in certificate.results if not each.passed] == []
