"""Two games of several agents, and an environment of one."""

from collections.abc import Iterator

import pytest
from toy_games import MEET, NIM
from toys import installed, make_spec


@pytest.fixture(autouse=True)
def games() -> Iterator[None]:
    with installed(NIM, MEET, make_spec()):
        yield
