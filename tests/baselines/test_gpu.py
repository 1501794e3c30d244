"""What needs a GPU can be asked for without one: it says so."""

from __future__ import annotations

import sys

import gpu
import pytest


def test_without_cuda_it_ends_well_and_marks_every_piece_as_not_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(gpu, "PAGES", tmp_path)
    monkeypatch.setattr("report.PAGES", tmp_path)
    monkeypatch.setattr(gpu, "has_cuda", lambda: False)
    monkeypatch.setattr(gpu, "run", lambda *args: pytest.fail("a piece was run"))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--write"])
    assert gpu.main() == 0
    text = (tmp_path / "gpu.md").read_text()
    assert text.count("| not run |") == len(gpu.PIECES)
    assert gpu.NONE in text
    assert "finds no CUDA device" in capsys.readouterr().out
    assert not (tmp_path / "gpu.json").exists()
