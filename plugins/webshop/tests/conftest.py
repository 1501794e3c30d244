"""Fixtures: one cache folder for all tests of this plugin, one shop of the default catalogue."""

from collections.abc import Iterator

import numpy as np
import pytest
from vlgym_webshop.services import Services, Shop, ShopConfig, get_services


@pytest.fixture(scope="session", autouse=True)
def webshop_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep catalogues made by tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("VLGYM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
        get_services().close()


@pytest.fixture
def shop() -> Shop:
    """The shop with the default catalogue of 1,000 products."""
    return get_services().shop(ShopConfig())


@pytest.fixture
def blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do without the browser, where no picture is looked at."""
    picture = np.zeros((672, 896, 3), np.uint8)
    monkeypatch.setattr(Services, "photograph", lambda *arguments: picture)
