"""AES as a pure function: hand-computed scores, and properties of both forms."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlgym_webui import aes
from vlgym_webui.aes import LOSSES, Element, NotComparable, Table, compare, expand, score_pages

STYLES = {
    "text": "Send the letter", "color": "rgb(10, 20, 30)", "background-color": "rgb(200, 100, 50)",
    "background-image": "none", "background-repeat": "repeat", "background-size": "20px 40px",
    **{f"border-{side}-width": "2px" for side in ("top", "right", "bottom", "left")},
    **{f"border-{y}-{x}-radius": "8px" for y in ("top", "bottom") for x in ("left", "right")},
    "border-top-color": "rgb(1, 2, 3)", "border-top-style": "solid",
    "font-size": "16px", "font-weight": "400", "font-family": "Arial", "font-style": "normal", "letter-spacing": "2px",
    "tab-size": "8", "display": "block", "width": "100px", "height": "50px", "class": "a", "src": "x", "type": "text",
    "placeholder": "Name", "value": "Ada", "text-shadow": "none", "outline-width": "1px", "outline-style": "solid",
    "outline-color": "rgb(0, 0, 0)", "box-shadow": "rgba(0, 0, 0, 0.5) 1px 2px 4px 8px",
}  # fmt: skip


def element(
    node: int = 1, box: tuple[float, ...] = (10, 10, 100, 50), by: str = "text", methods: str = "color", **styles: str
) -> Element:
    tables = {**STYLES, **{name.replace("_", "-"): value for name, value in styles.items()}}
    names = tuple(methods.split("|"))
    return Element(node, tuple(map(float, box)), tables, filter_by=by, eval_by=names, html=f"<{node}>")


def changed(base: Element, **styles: str) -> Element:
    new = {name.replace("_", "-"): value for name, value in styles.items()}
    return dataclasses.replace(base, styles={**base.styles, **new})


GROUND, SIZES = "background-color", "background-color|width|height"
PAGE: Table = (
    element(1, (0, 0, 400, 60), GROUND, SIZES, text="", background_color="rgb(9, 9, 9)"),
    element(2, (10, 10, 100, 40), "text", "text|color|font-size"),
    element(3, (200, 100, 150, 80), "text", "text|color|border-radius|border", text="Three words here"),
)


@pytest.mark.parametrize("compat", [False, True])
def test_the_same_page_scores_100_an_empty_one_and_none_0(compat: bool) -> None:
    report = score_pages([PAGE], [PAGE], compat=compat)
    assert (report.score, report.losses) == (pytest.approx(100), pytest.approx(dict.fromkeys(LOSSES, 0.0)))
    empty = score_pages([PAGE], [()], compat=compat)
    assert (empty.score, empty.losses["Mat"]) == (0, 100)
    assert score_pages([PAGE, PAGE], [None, None], compat=compat).losses["Ren"] == 100


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        # Boxes of 9 x 9 (10 x 10 inclusive), shifted by 5: 50 of 100 are common -> 0.5 + 0.25.
        (5, (9.8 + 46 * 0.75) / (9.8 + 46)),
        # Areas 100 each, gap 10: hull 30 x 10 = 300, union 200 -> GIoU = 0 - 100/300.
        (20, (9.8 + 46 / 3) / (9.8 + 46)),
    ],
)
def test_a_position_scores_by_the_overlap_or_giou(x: float, expected: float) -> None:
    target = element(box=(0, 0, 9, 9), methods="font-size")  # which weighs 9.8
    partner = dataclasses.replace(target, box=(x, 0.0, 9.0, 9.0))
    assert aes.score_element(target, partner, compat=False) == pytest.approx(expected)


def test_the_weight_of_an_element_is_its_area_to_the_published_power() -> None:
    big, small = element(1, (0, 0, 200, 100), text="one"), element(2, (300, 0, 20, 10), text="two")
    wrong = changed(small, color="rgb(266, 20, 30)")  # 256 off in one channel of three: 2/3
    report = score_pages([(big, small)], [(big, wrong)])
    w1, w2 = 20000**aes.AREA_EXPONENT, 200**aes.AREA_EXPONENT
    assert report.score == pytest.approx(100 * (w1 + w2 * (30 * 2 / 3 + 46) / 76) / (w1 + w2))


DAMAGE = {
    "text": ("Send the letters", 6.8, 1.0), "color": ("rgb(10, 20, 158)", 30, 1 / 6),
    "background-color": ("rgb(200, 100, 178)", 59, 1 / 6), "background-repeat": ("no-repeat", 24.5, 1.0),
    "background-size": ("20px 20px", 14.3, 0.25), "background-image": ("url(abc)", 12.6, 1.0),
    "font-size": ("12px", 9.8, 0.25), "font-weight": ("700", 2.1, 1.0), "font-family": ("Courier", 94.6, 1.0),
    "font-style": ("italic", 94.6, 1.0), "letter-spacing": ("1px", 67, 0.5), "tab-size": ("4", 50.8, 1.0),
    "display": ("flex", 51, 1.0), "width": ("80px", 31.92, 0.2), "height": ("75px", 31.92, 0.5),
    "border-top-width": ("3px", 2.1, 0.5), "border-top-color": ("rgb(1, 130, 3)", 16.9, 1 / 6),
    "border-top-style": ("dashed", 79.2, 1.0), "border-top-left-radius": ("6px", 100, 0.25),
    "outline-style": ("dotted", 79.2, 1.0), "outline-width": ("2px", 2.1, 1.0),
    "outline-color": ("rgb(0, 0, 128)", 16.9, 1 / 6),
    "box-shadow": ("rgba(0, 0, 0, 0.5) 1px 2px 4px 4px", 56.7, 0.5 / 6), "src": ("y", 12.6, 1.0),
    "type": ("email", 18.9, 1.0), "placeholder": ("Names", 6.8, 1.0), "value": ("Bob", 6.8, 1.0),
    "text-shadow": ("rgb(0, 0, 0) 1px 2px 4px", 83, 1.0),
}  # fmt: skip
"""Style -> its damaged value, the published weight, and what is lost of it."""


@pytest.mark.parametrize("name", DAMAGE)
def test_each_single_style_change_lowers_the_score_by_what_its_weight_says(name: str) -> None:
    value, weight, loss = DAMAGE[name]
    target = element(by="display" if name != "display" else "color", methods=name)
    partner = dataclasses.replace(target, styles={**target.styles, name: value})
    report = score_pages([(target,)], [(partner,)])
    assert report.score == pytest.approx(100 * (1 - loss * weight / (weight + 46)))
    assert report.losses["Attr"] == pytest.approx(100 - report.score)


def test_a_shorthand_counts_as_the_mean_of_its_parts() -> None:
    target = element(methods="border-radius")
    partner = changed(target, border_top_left_radius="4px")
    # Four corners of weight 100, each / 4: 100 in all; one corner is half right.
    assert aes.score_element(target, partner, compat=False) == pytest.approx((87.5 + 46) / 146)


SIDES = st.tuples(st.integers(0, 500), st.integers(0, 400), st.integers(1, 300), st.integers(1, 200))
ROWS = st.lists(st.tuples(SIDES, st.sampled_from(["a b", "c", ""])), max_size=6)


@given(ROWS, st.booleans(), st.booleans())
def test_score_and_losses_add_up_to_100(rows: list, compat: bool, fails: bool) -> None:
    page = tuple(element(n, box, text=text) for n, (box, text) in enumerate(rows))
    after = (*PAGE[:2], changed(PAGE[2], text="Other words here"))
    report = score_pages([PAGE, after], [page, None if fails else page], compat=compat)
    assert 0 <= report.score <= 100
    assert report.score + sum(report.losses.values()) == pytest.approx(100)
    assert all(loss >= 0 for loss in report.losses.values())


def test_a_missing_element_is_free_in_the_published_form_and_counts_in_the_corrected_one() -> None:
    lone = element(9, (700, 500, 20, 20), text="gone")
    targets = (element(1, (0, 0, 100, 100), text="here"), element(2, (300, 0, 100, 100), text="lost"))
    page = (targets[0], lone)  # the second target can pair with the lone one
    assert score_pages([targets], [page], compat=True).score == pytest.approx(100)
    corrected = score_pages([targets], [page])
    assert (corrected.score, corrected.losses["Mat"]) == (pytest.approx(50), pytest.approx(50))


def test_after_an_interaction_all_targets_count_as_published_else_the_changed_ones() -> None:
    hovered = (PAGE[0], PAGE[1], changed(PAGE[2], background_color="rgb(0, 255, 0)"))
    renamed = (*PAGE[:2], dataclasses.replace(PAGE[2], html="<3 class=on>"))
    moved = (*PAGE[:2], dataclasses.replace(PAGE[2], box=(200.0, 120.0, 150.0, 80.0)))
    shown = (*PAGE, element(4, (0, 200, 100, 20), text="hidden before"))
    for after, corrected in (hovered, [3]), (renamed, [3]), (moved, [3]), (shown, [4]), (PAGE, []):
        assert [target.node for target in aes.select_targets([PAGE, after], 1, compat=False)] == corrected
        assert aes.select_targets([PAGE, after], 1, compat=True) == list(after)


def test_a_failed_interaction_loses_the_weight_of_its_page() -> None:
    after = (*PAGE[:2], changed(PAGE[2], color="rgb(0, 255, 0)"))
    report = score_pages([PAGE, after], [PAGE, None])
    weights = [t.area**aes.AREA_EXPONENT for t in PAGE]
    assert report.losses["Act"] == pytest.approx(100 * weights[2] / (sum(weights) + weights[2]))
    assert report.score == pytest.approx(100 - report.losses["Act"])


def test_of_two_boxes_in_one_place_the_one_with_the_same_contents_is_taken() -> None:
    outer, inner = (
        element(node, by=GROUND, methods=GROUND, background_color=colour)
        for node, colour in ((1, "rgb(1, 1, 1)"), (2, "rgb(200, 200, 200)"))
    )
    outer = dataclasses.replace(outer, descendants=1)
    target = (dataclasses.replace(inner, filter_by=""), outer)
    assert score_pages([target], [(inner, outer)]).score == pytest.approx(100)
    (match,) = aes.match_elements([outer], [outer, inner], compat=True)
    assert match.partner is inner  # published: fewer descendants win


@pytest.mark.parametrize(
    ("name", "target", "generated", "published", "corrected"),
    [
        ("color", "rgb(0, 0, 0)", "rgba(0, 0, 0, 0)", 1.0, 0.0),
        ("has_text", "words", "", 1.0, 0.0),
        ("src", "a", "b", 1.0, 0.0),
        ("value", "a", "b", 1.0, 0.0),
        ("border-top-width", "2px", "9px", 1.0, 0.0),
        ("text-shadow", "rgb(0, 0, 0) 1px 2px 4px", "none", 0.0, 0.0),
        ("text-shadow", "rgb(0, 0, 0) 1px 2px 4px", "rgba(0, 0, 0, 0.5) 1px 2px 4px", 3 / 5, 4 / 5),
        ("text-shadow", "rgba(9, 9, 9, 0.5) 1px 2px 4px", "rgb(9, 9, 9) 1px 2px 4px", 3 / 5, 4 / 5),
        ("box-shadow", "rgb(0, 0, 0) 1px 2px 4px 8px", "rgb(0, 0, 0) 1px 2px 4px 4px", 5.5 / 6, 5.5 / 6),
    ],
)
def test_both_forms(name: str, target: str, generated: str, published: float, corrected: float) -> None:
    key = "text" if name == "has_text" else name
    first, second = {**STYLES, key: target}, {**STYLES, key: generated}
    scores = [compare(name, first, second, compat) for compat in (True, False)]
    assert scores == pytest.approx([published, corrected])


@pytest.mark.parametrize(
    ("name", "target", "generated"),
    [
        ("box-shadow", "rgba(0, 0, 0, 0.5) 1px 2px 4px 8px", "rgba(0, 0, 0, 0.5) 1px 2px 4px 8px"),
        ("box-shadow", "rgb(0, 0, 0) 1px 2px 4px 8px", "rgba(0, 0, 0, 0.5) 1px 2px 4px 8px"),
        ("box-shadow", "rgb(0, 0, 0) 1px 2px 4px 8px inset", "rgb(0, 0, 0) 1px 2px 4px 8px inset"),
        ("box-shadow", "rgb(0, 0, 0) 1px 2px 4px 8px, rgb(0, 0, 0) 1px 2px 4px 8px", "rgb(0, 0, 0) 1px 2px 4px 8px"),
        ("text-shadow", "rgba(0, 0, 0, 0.5) 1px 2px 4px", "rgba(0, 0, 0, 0.5) 1px 2px 4px"),
        ("text-shadow", "none", "rgb(0, 0, 0) 1px 2px 4px"),
        ("border-top-left-radius", "50%", "50%"),
        ("font-size", "16px 8px", "16px 8px"),
    ],
)
def test_a_value_at_which_the_published_code_raises_is_skipped_by_it_alone(name, target, generated):
    with pytest.raises(NotComparable):
        compare(name, {name: target}, {name: generated}, compat=True)
    assert compare(name, {name: target}, {name: generated}, compat=False) >= 0
    assert aes.filter_value(name, {name: target}, {name: generated}, compat=True) in (0, -0.01)


def test_published_gradients_have_opaque_stops_and_the_colour_behind_them() -> None:
    def styles(colour: str, stops: str) -> dict[str, str]:
        return {"background-color": colour, "background-image": f"linear-gradient({stops})"}

    name = "background-linear-gradient"
    first = styles("rgb(0, 0, 0)", "rgba(9, 9, 9, 0.5), rgb(0, 0, 0)")
    other = styles("rgb(0, 0, 0)", "rgb(128, 128, 128), rgb(7, 7, 7)")
    assert compare(name, first, other, compat=True) == pytest.approx((1 + 0.5) / 2)
    clear = styles("rgba(0, 0, 0, 0)", "rgba(9, 9, 9, 0.5), red")
    with pytest.raises(NotComparable):
        compare(name, clear, clear, compat=True)


def test_a_gradient_loses_the_stops_that_it_lacks() -> None:
    name = "background-linear-gradient"
    three, two = ({"background-image": f"linear-gradient({'rgb(9, 9, 9), ' * n})"} for n in (3, 2))
    for target, own in (three, two), (two, three):
        assert compare(name, target, own, compat=False) == pytest.approx(2 / 3)


@pytest.mark.parametrize("compat", [True, False])
def test_border_is_its_four_sides_and_a_class_is_a_filter_only(compat: bool) -> None:
    sides = {f"border-{side}-width" for side in ("top", "right", "bottom", "left")}
    assert set(expand("border", {}, compat)) == sides
    assert expand("class", {}, compat) == ()


def test_text_similarity_by_hand() -> None:
    ten = "one two three four five six seven eight nine ten"
    for first, second, similarity in ((ten, ten[:23], 0.5), ("Short Text", "short text", 1), ("A text", "texts", 0)):
        assert compare("text", {"text": first}, {"text": second}, compat=True) == similarity


def test_the_weights_that_no_change_of_one_style_shows_are_the_published_ones() -> None:
    published = {"has_text": 44, "background-linear-gradient": 18, "border-left-style": 79.2}
    assert {name: aes.PROPERTIES[name].weight for name in published} == published
