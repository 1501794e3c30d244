"""The exact grammar, and the published language with its quirks."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlgym_cards.formula import FormulaError, evaluate
from vlgym_cards.published_formula import evaluate_published


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("2 + 3 * 4", 14), ("( 2 + 3 ) * 4", 20), ("10 - 4 - 3", 3), ("24 / 4 / 3", 2), ("0 / 5", 0),
        ("8 / ( 3 - 8 / 3 )", 24), ("1 - 2 * 3 + 4", -1), ("2 * 3 / 4 * 5", Fraction(15, 2)), ("( ( 5 ) )", 5),
        ("1 / 3 + 1 / 3 + 1 / 3", 1), ("3 - ( 4 - ( 5 - 6 ) )", -2),
    ],
)  # fmt: skip
def test_a_formula_has_its_exact_value(text: str, value: int) -> None:
    assert evaluate(text.split()) == value


@pytest.mark.parametrize(
    "tokens",
    [
        "2 4", "1 2 + 3", "- 3", "+ 3", "2 * - 3", "2 * * 3", "7 / / 2", "", "3 +", "( )", "( 3", "3 )", "3 ( 4 )",
        "( 3 ) 4", "3 = 3", "x", "\u0663", "3 / ( 2 - 2 )", "*", "1.5", "3 + * 4",
    ],
)  # fmt: skip
def test_what_is_not_in_the_grammar_is_refused(tokens: str) -> None:
    with pytest.raises(FormulaError):
        evaluate(tokens.split())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("24", 24), ("110", 110), ("2**3*3", 24), ("2**3**2", 512), ("-2**2", -4), ("2**-1", 0.5), ("7//2", 3),
        ("-7//2", -4), ("-3+27", 24), ("3*-8", -24), ("+-+3", -3), ("3 +4", 7), ("  3", 3), ("3  ", 3), ("00", 0),
        ("(1+2)*8", 24), ("7/2", 3.5), ("1-2-3", -4), ("48//4//3", 4), ("2* 12", 24), ("1**99999999999", 1),
        ("8/(3-8/3)", 23.99999999999999),
    ],
)  # fmt: skip
def test_an_expression_means_what_it_means_in_python(text: str, value: float) -> None:
    assert evaluate_published(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "3 4", "2* *3", "7/ /2", "1 0+2", "()", "3(4)", "(3)(4)", "1/0", "7//0", "9**9**9", "3+", "*3", "(3",
        "3)", "007", "x", "3=3", "0**-1", "10.0**3", "((-1)**0.5)", "(1-9)**(1/3)//2",
    ],
)  # fmt: skip
def test_what_fails_in_python_is_an_error_here(text: str) -> None:
    with pytest.raises(FormulaError):
        evaluate_published(text)


def test_a_very_large_power_and_a_very_long_expression_are_errors_at_once() -> None:
    with pytest.raises(FormulaError, match="bits"):
        evaluate_published("10**10**10**10")
    with pytest.raises(FormulaError, match="characters"):
        evaluate_published("(" * 10_000)


@given(st.text(alphabet="0123456789+-*/() ", max_size=70))
def test_any_text_has_a_value_or_is_a_formula_error(text: str) -> None:
    try:
        value = evaluate_published(text)
    except FormulaError:
        return
    assert isinstance(value, int | float | complex)
