"""Chess endings: results by the rules, positions, notations, and Stockfish as a player."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import chess
import numpy as np
import pytest
from playing import say
from vlgym_pettingzoo import chess_endings
from vlgym_pettingzoo.chess_endings import STOCKFISH, draw_position, solve_pawn_ending

import vlgym
from vlgym.errors import UserError
from vlgym.games.table import Table
from vlgym.parsers import get_parser

CHESS = "vlgym/ChessEndings-v0"


@pytest.fixture(autouse=True)
def _end_the_engine() -> Any:
    yield
    STOCKFISH.end()


def at(fen: str, **kwargs: Any) -> Table:
    """A game from a position; seat 0 is to move."""
    table = vlgym.open_table(CHESS, **kwargs)
    table.reset(seed=0)
    table.game.board, table.game.opens = chess.Board(fen), chess.Board(fen).turn
    return table


@pytest.mark.parametrize(("fen", "moves", "result"), [
    ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", ["Ra8"], "checkmate"),
    ("r7/8/8/8/8/6k1/8/7K b - - 0 1", ["Ra1"], "checkmate"),
    ("7k/8/6K1/8/8/8/8/R7 w - - 99 90", ["Ra8"], "checkmate"),  # with the hundredth half-move
    ("7k/8/8/6K1/8/8/8/5Q2 w - - 0 1", ["Qf7"], "stalemate"),
    ("7k/8/8/8/8/8/r7/K7 w - - 0 1", ["Kxa2"], "insufficient material"),
    ("k7/8/8/8/8/8/8/KR6 w - - 0 1", ["Rb2", "Ka7", "Rb1", "Ka8"] * 2, "threefold repetition"),
    ("k7/8/8/8/8/8/8/KR6 w - - 98 80", ["Rc1", "Kb7"], "fifty moves"),
])  # fmt: skip
def test_mate_of_either_colour_pays_one_and_each_kind_of_draw_nothing_at_once(fen, moves, result):
    table, paid = at(fen), float(result == "checkmate")
    rewards = say(table, *moves[:-1])
    assert not table.over
    assert [*rewards, *say(table, moves[-1])] == [(0.0, 0.0)] * len(moves[:-1]) + [(paid, -paid)]
    assert (table.terminated, table.game.result) == (True, result)
    assert (table.game.won(0), table.game.won(1)) == (paid == 1, False)


def test_the_turn_limit_is_a_draw() -> None:
    table = at("k7/8/8/8/8/8/8/KR6 w - - 0 1", max_turns=2)
    assert say(table, "Rb2", "Ka7", "Rb3", "Ka8")[-1] == (0.0, 0.0)
    assert (table.terminated, table.truncated, table.game.result) == (False, True, "")


@pytest.mark.parametrize(("words", "meant"), [
    ("b7b8q", "b7b8q"), ("B7B8Q", "b7b8q"), ("b8=Q", "b7b8q"), ("b8=n", "b7b8n"), ("bxc8=Q+", "b7c8q"),
    ("bxc8=R", "b7c8r"), (" Bxc8 ", "d7c8"), ("bxc8q", "b7c8q"), ("be6", "d7e6"), ("Be6", "d7e6"), ("KA2", "a1a2"),
    ("b7b8", None), ("b8", None), ("Ka3", None), ("d7d8", None), ("e2e4", None), ("--", None), ("0000", None),
    ("O-O", None), ("", None), ("\x00", None), ("K" * 10_000, None), ("a1a2 a1a2", None), ("\u2654a2", None),
])  # fmt: skip
def test_moves_are_read_in_both_notations(words: str, meant: str | None) -> None:
    table = at("2r5/1P1B4/8/8/8/7k/8/K7 w - - 0 1")
    assert table.game.match_move(words, 0) == meant
    table.game.parser = get_parser("auto")
    reading = table.read(0, f"So: <answer>{words}</answer>")
    assert (reading.failure, reading.parsed.form) == ((None, "answer") if meant else ("no_action", None))
    assert meant in (None, reading.action)


def test_the_pawn_table_has_the_wins_that_are_known() -> None:
    wins = solve_pawn_ending()
    files = [square for square in range(64) if square % 8 < 4]
    assert int(wins[:, files].sum()) == 111_282  # asserted by Stockfish's bitbase.cpp
    flipped = np.arange(64) ^ 7  # the files in reverse
    assert np.array_equal(wins, wins[:, flipped][:, :, flipped][:, :, :, flipped])
    white = chess.Board("8/8/8/4k3/8/4K3/4P3/8 w - - 0 1")
    pawn, king, other = chess.E2, white.king(True), white.king(False)
    assert not wins[0, pawn, king, other]  # the opposition is black's
    assert wins[0, chess.E2, chess.E4, chess.E6]


@pytest.mark.parametrize("ending", ["KPvK", "KBBvK", "KRPvKR"])
def test_positions_are_legal_quiet_of_the_named_men_and_of_both_colours(ending: str) -> None:
    boards = [draw_position(ending, np.random.default_rng(seed)) for seed in range(10)]
    for board in boards:
        men = board.piece_map().items()
        assert board.is_valid()
        assert not board.is_game_over()
        assert not any(board.is_attacked_by(not man.color, square) for square, man in men)
        for symbols, colour in zip(ending.split("v"), (board.turn, not board.turn), strict=True):
            assert Counter(man.symbol().upper() for _, man in men if man.color == colour) == Counter(symbols)
        if ending == "KPvK":
            view = board if board.turn else board.mirror()
            (pawn,) = view.pieces(chess.PAWN, True)
            assert solve_pawn_ending()[0, pawn, view.king(True), view.king(False)]
        if ending == "KBBvK":
            assert len({(square + square // 8) % 2 for square in board.pieces(chess.BISHOP, board.turn)}) == 2
    assert len({board.board_fen() for board in boards}) == 10
    assert 2 <= sum(board.turn for board in boards) <= 8


def test_stockfish_answers_the_same_for_the_same_game_whatever_it_did_before() -> None:
    boards = [draw_position("KRPvKR", np.random.default_rng(seed)) for seed in range(2)]
    first = [STOCKFISH.choose(board, 3000) for board in boards]
    STOCKFISH.search.cache_clear()
    again = [STOCKFISH.choose(board, 3000) for board in reversed(boards)]
    assert first == again[::-1]
    STOCKFISH.search.cache_clear()
    STOCKFISH.end()
    assert [STOCKFISH.choose(board, 3000) for board in boards] == first


def test_the_oracle_takes_a_mate_and_says_what_it_sees() -> None:
    table = at("7k/8/6K1/8/8/8/8/R7 w - - 0 1")
    assert table.game.advise(0) == table.game.search(0) == "a1a8"
    assert "White has Kg6 Ra1, black has Kh8; Ra8#" in (table.solve(0) or "")


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_an_engine_that_dies_or_hangs_is_replaced(blow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    board, pids = chess.Board("8/8/8/3k4/8/8/8/QK6 w - - 0 1"), []
    for _ in range(2):  # one engine serves all games
        STOCKFISH.search.cache_clear()
        move = STOCKFISH.choose(board, 1000)
        assert STOCKFISH.program is not None
        pids.append(STOCKFISH.program.pid)
    assert pids[0] == pids[1]
    os.kill(pids[0], blow)
    STOCKFISH.search.cache_clear()
    monkeypatch.setattr(chess_endings, "PATIENCE", 2.0)
    assert STOCKFISH.choose(board, 1000) == move
    assert STOCKFISH.program.pid != pids[0]


def test_an_environment_that_is_not_closed_leaves_no_engine_and_ends_python() -> None:
    code = (
        "import vlgym; from vlgym_pettingzoo.chess_endings import STOCKFISH\n"
        f"env = vlgym.make('{CHESS}', seat=1); env.reset(seed=0); print(STOCKFISH.program.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_without_stockfish_one_line_names_the_package_and_random_opponents_play_on(monkeypatch):
    monkeypatch.setattr(chess_endings.shutil, "which", lambda *args, **kwargs: None)
    STOCKFISH.search.cache_clear()
    STOCKFISH.end()  # one that runs already is not looked for
    with pytest.raises(UserError, match="apt-get install stockfish") as error:
        vlgym.make(CHESS)
    assert "\n" not in str(error.value)
    env = vlgym.make(CHESS, opponents="random")
    env.reset(seed=0)
    assert env.legal_actions()
    with pytest.raises(UserError, match="apt-get install stockfish"):
        env.solve()
