"""Every option of every command with wrong values is refused before any model is made."""

import importlib
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from baselines import vldac
from baselines.learning import run as run_module
from baselines.studies import study
from vlgym.errors import UserError


def wrong_values(kind: Any, name: str) -> tuple[Any, ...]:
    words, texts = str(kind), {"env_kwargs": ("targt=3",), "options": ("--lr=-1",)}
    if "bool" in words or name in ("model", "system"):  # names of no model: test_models_on_disk.py
        return ()
    if "int" in words or "float" in words:
        return (-1, 10**30, math.nan)
    if "Path" in words:
        return (Path("/dev/null/x"),)  # cannot be made, by root either
    return (texts.get(name, "no-such-thing"),)


def options(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and type of each option, those of groups too."""
    hints = get_type_hints(type(config))
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            yield from options(value, f"{prefix}{item.name}.")
        else:
            yield f"{prefix}{item.name}", hints[item.name]


def changed(config: Any, path: str, value: Any) -> Any:
    group, _, rest = path.partition(".")
    return replace(config, **{group: changed(getattr(config, group), rest, value) if rest else value})


@pytest.mark.parametrize("command", ["vldac", "loop", "archer", "sft", "studies.study"])
def test_wrong_values_are_refused_before_any_work(command, tmp_path, monkeypatch):
    def begin(*args, **kwargs):
        pytest.fail("work began")

    module = importlib.import_module(f"baselines.{command}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "load_family", begin)
    monkeypatch.setattr(module, "load_family", begin, raising=False)
    monkeypatch.setattr(study.Runs, "call", begin)
    plain = module.Config(**{"studies.study": {"name": "algorithms"}}.get(command, {}))
    if command in ("vldac", "sft"):
        plain = replace(plain, out=Path("run"))
    run = next(getattr(module, name) for name in ("train", "run", "run_study") if hasattr(module, name))
    taken, messages = [], []
    with pytest.raises(pytest.fail.Exception):
        run(plain)
    shared = {path for path, _ in options(vldac.Config())} if command in ("loop", "archer") else set()
    for path, kind in options(plain):
        for value in wrong_values(kind, path) if path not in shared else ():
            config = changed(plain, path, value)
            if path == "lora.alpha":
                config = changed(config, "lora.rank", 8)
            try:
                run(config)
            except UserError as error:
                messages.append(str(error))
            except pytest.fail.Exception:
                taken.append(f"{path}={value}")
    assert taken == []
    assert len(messages) >= {"vldac": 60, "loop": 3}.get(command, 8)
    assert not any("\n" in line for line in messages)
    assert not (tmp_path / "run").exists()
