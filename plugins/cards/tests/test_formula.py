"""The exact grammar."""

from fractions import Fraction

import pytest
from vlgym_cards.formula import FormulaError, evaluate


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
