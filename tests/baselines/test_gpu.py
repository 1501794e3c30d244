"""What needs a GPU can be asked for without one: it says so, and every piece's command is one that runs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import gpu
import pytest
from commands import Command, check
from report import PAGES

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "benchmarks" / "gpu.py"


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Pages and results in a folder of their own."""
    monkeypatch.setattr(gpu, "PAGES", tmp_path / "pages")
    monkeypatch.setattr("report.PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    return tmp_path / "pages"


def ask(monkeypatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *words])
    return gpu.main()


def test_without_cuda_it_ends_well_and_marks_every_piece_as_not_run(monkeypatch, capsys, pages):
    monkeypatch.setattr(gpu, "has_cuda", lambda: False)
    monkeypatch.setattr(gpu, "run", lambda *args: pytest.fail("a piece was run"))
    assert ask(monkeypatch, "--write") == 0
    text = (pages / "gpu.md").read_text()
    assert text.count("| not run |") == len(gpu.PIECES)
    assert gpu.NONE in text
    assert "finds no CUDA device" in capsys.readouterr().out
    assert not (pages / "gpu.json").exists()


def test_the_pieces_come_in_their_order(monkeypatch, capsys):
    assert ask(monkeypatch, "--list") == 0
    names = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["tests", "decode", "prefill", "vision", "update", "loop", "learn", "generate", "memory"]


def test_the_command_of_every_piece_is_accepted_by_its_own_parser(monkeypatch, capsys, tmp_path):
    assert ask(monkeypatch, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(gpu.PIECES)
    for line in lines:
        words = [word for word in shlex.split(line) if not word.startswith("VLGYM_TEST_DEVICE=")]
        words = [word.replace("WORK", str(tmp_path)) for word in words]
        assert words[0] == "python"
        if words[2] == "pytest":
            done = subprocess.run(
                [sys.executable, *words[1:], "--collect-only", "-n", "0", "--rootdir", str(ROOT)],
                cwd=ROOT, capture_output=True, text=True, env=gpu.environment(tmp_path),
            )  # fmt: skip
            assert done.returncode == 0, done.stdout
            assert "test_a_run_and_its_continuation_keep_to_one_device" in done.stdout
        else:
            check(Command(tuple(words), False, "gpu.py"))


def test_an_unknown_piece_is_refused_with_the_known_ones(monkeypatch, capsys):
    with pytest.raises(SystemExit) as stopped:
        ask(monkeypatch, "decoding")
    assert stopped.value.code == 2
    assert "choose from tests, decode" in capsys.readouterr().err


def pretend_pieces(monkeypatch, *commands: tuple[str, ...]) -> None:
    pieces = tuple(gpu.Piece(f"p{i}", "something", command) for i, command in enumerate(commands))
    monkeypatch.setattr(gpu, "PIECES", pieces)
    monkeypatch.setattr(gpu, "has_cuda", lambda: True)
    monkeypatch.setattr(gpu, "machine", lambda: "a pretended GPU")


def test_pieces_that_run_fail_or_take_too_long_are_told_apart_and_the_others_go_on(monkeypatch, pages, tmp_path):
    found = "import sys, json; json.dump({'x': 1.5}, open(sys.argv[1], 'w'))"
    pretend_pieces(
        monkeypatch,
        ("-c", "raise SystemExit(3)"),
        ("-c", "import time; time.sleep(60)"),
        ("-c", found, "WORK/found.json"),
    )
    out = tmp_path / "out"
    assert ask(monkeypatch, "--limit", "5", "--out", str(out)) == 1
    results = json.loads((out / "gpu.json").read_text())
    assert [results[name]["ended"] for name in results] == ["failed (exit status 3)", "stopped after 5 s", "ran"]
    assert results["p2"]["found"] == {"x": 1.5}
    assert list(pages.iterdir()) == []  # with --out, the documentation is left alone


def test_results_of_a_folder_are_taken_over_and_others_stay(monkeypatch, pages, tmp_path):
    gpu.write(pages / "gpu.json", {"learn": {"ended": "ran", "seconds": 1.0, "found": {}, "machine": "old"}})
    gpu.write(pages / "gpu_speed.json", {"cuda/7b": {"decode": 1}, "cpu/tiny": {"loop": 2}})
    gpu.write(
        tmp_path / "gpu.json", {"tests": {"ended": "ran", "seconds": 2.0, "found": {"tests": 3}, "machine": "new"}}
    )
    gpu.write(tmp_path / "gpu_speed.json", {"cuda/7b": {"loop": 4}})
    assert ask(monkeypatch, "--merge", str(tmp_path)) == 0
    results = json.loads((pages / "gpu.json").read_text())
    assert set(results) == {"learn", "tests"}
    assert json.loads((pages / "gpu_speed.json").read_text()) == {
        "cuda/7b": {"decode": 1, "loop": 4}, "cpu/tiny": {"loop": 2},
    }  # fmt: skip
    text = gpu.page(results)
    assert text.count("| not run |") == len(gpu.PIECES) - 2
    assert "| tests | 3 |" in text
    assert gpu.NONE not in text


def test_what_tests_and_runs_leave_is_read(tmp_path):
    (tmp_path / "tests.xml").write_text(
        '<testsuites><testsuite tests="2" failures="1" errors="0" skipped="0"><testcase name="good"/>'
        '<testcase name="bad"><failure/></testcase></testsuite></testsuites>'
    )
    (tmp_path / "run").mkdir()
    row = {"update": 100, "rollout/logp_diff_mean": 1e-6, "rollout/logp_diff_max": 1e-5,
           "speed/env_steps_per_s": 2.0, "speed/peak_memory_gib": 0.5}  # fmt: skip
    (tmp_path / "run" / "log.jsonl").write_text(json.dumps({}) + "\n" + json.dumps(row) + "\n")
    (tmp_path / "run" / "evaluation.json").write_text(json.dumps([{"success": 0.5}, {"success": 0.9}]))
    found = gpu.read_found(tmp_path)
    assert (found["tests"], found["failures"], found["failed"]) == (2, 1, ["bad"])
    assert (found["updates"], found["success before"], found["success after"]) == (100, 0.5, 0.9)


def test_a_checkout_that_is_not_installed_has_its_plugins(tmp_path):
    folder = gpu.describe_distributions(tmp_path)
    found = {one.name: one for one in metadata.distributions(path=[str(folder)])}
    assert found["vlgym-cards"].version
    assert [point.value for point in found["vlgym-cards"].entry_points] == ["vlgym_cards.plugin"]
    assert {point.group for point in found["vlgym"].entry_points} == {"vlgym"}


def test_the_page_is_that_of_the_results_in_the_documentation():
    results = gpu.read(PAGES / "gpu.json")
    assert gpu.page(results) in (PAGES / "gpu.md").read_text(encoding="utf-8")
