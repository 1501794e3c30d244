"""A real server on loopback with a tiny model that is built here: `transformers serve`.

Needs the packages of requirements.txt, which `make servers` installs into a separate environment,
because torchvision in the learners' environment would change what the library does there.
"""

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "baselines"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

NEEDED = ("fastapi", "uvicorn", "torchvision", "openai")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
START, ADDRESS = 120, re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")

os.environ["HF_HUB_OFFLINE"] = "1"

if not MISSING:
    from torchvision_here import make_importable

    make_importable()


class Server(NamedTuple):
    """A server that answers.

    Attributes:
        url: of its interface, with `/v1`.
        model: the folder it serves, which is also the model's name.
    """

    url: str
    model: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.server)
            if MISSING:
                reason = f"{', '.join(MISSING)} not installed here: make servers"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen2-VL as a published one is: weights, tokenizer, chat template, image processor."""
    from publish import publish
    from tiny_families import build

    raw = tmp_path_factory.mktemp("raw")
    for part in build("qwen2_vl"):
        part.save_pretrained(raw)
    return publish(raw, tmp_path_factory.mktemp("served") / "qwen2_vl", "qwen2_vl")


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`transformers serve` with that model, stopped at the end."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "cache").mkdir()
    log = folder / "log.txt"
    command = [sys.executable, str(HERE / "serve.py"), str(model), "--host", "127.0.0.1", "--port", "0"]
    environment = {**os.environ, "HF_HUB_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    with log.open("w") as file:
        process = subprocess.Popen([*command, "--device", "cpu"], stdout=file, stderr=file, env=environment)
    try:
        yield Server(f"{_wait(process, log)}/v1", model)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the server says where it is."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        if match := ADDRESS.search(log.read_text()):
            return match.group(1)
        if process.poll() is not None:
            break
        time.sleep(0.2)
    pytest.fail(f"the server does not answer:\n{log.read_text()[-4000:]}")
