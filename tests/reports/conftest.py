"""The toys that most reports are of."""

from collections.abc import Iterator

import pytest
from evaluations import toys_installed


@pytest.fixture(scope="module")
def walk_and_coin() -> Iterator[None]:
    with toys_installed():
        yield
