"""The browser: the elements that it reads, its clock and its input."""

from collections.abc import Callable

from vlgym_webui.aes import Element
from vlgym_webui.browser import Render, name_contents
from vlgym_webui.project import Interaction, Step

Draw = Callable[..., Render]


def act(kind: str, selector: str = "", text: str = "", wait_ms: int = 0) -> Interaction:
    return Interaction(kind, (Step(kind, selector, text, wait_ms),))


def by_tag(result: Render, tag: str, moment: int = 0) -> Element:
    return next(element for element in result.tables[moment] if element.tag == tag)


def test_boxes_styles_and_texts_of_displayed_elements_are_read(render: Draw) -> None:
    css = "p { position: absolute; left: 30px; top: 40px; width: 120px; height: 50px; color: #0a141e; margin: 0 }"
    hidden = ("display: none", "visibility: hidden", "opacity: 0")
    body = "".join(f"<i style='{style}'>1</i>" for style in hidden) + "<i></i>"
    element, inner = render(f"<p class=' x  y '>Hello   <b>you</b></p>{body}", css=css).tables[0]
    assert (element.box, element.descendants, inner.tag) == ((30, 40, 120, 50), 1, "b")
    assert element.styles["color"] == "rgb(10, 20, 30)"
    assert element.styles["text"] == "Hello you"


def test_click_hover_type_and_wait_do_what_a_user_does(render: Draw) -> None:
    body = "<button>go</button><input placeholder='name'><p>-</p>"
    script = (
        "const p = document.querySelector('p');"
        "document.querySelector('button').onclick = (e) => "
        "setTimeout(() => { p.textContent = 'clicked ' + e.isTrusted; }, 5000);"
        "document.querySelector('input').onkeydown = (e) => { if (e.key === 'Enter') p.textContent = e.target.value; };"
    )
    steps = (act("hover", "button"), act("click", "button"), act("wait", wait_ms=4500), act("type", "input", "Ada\n"))
    css = "button:hover { color: rgb(1, 2, 3); transition: color 9s } @keyframes a { to { width: 300px } }"
    animated = " p { width: 100px; animation: a 40s forwards } b { animation: a 1s infinite alternate }"
    result = render(f"{body}<b>2</b>", script, *steps, css=css + animated)
    assert result.problems == {}
    assert by_tag(result, "button", 1).styles["color"] == "rgb(1, 2, 3)"
    texts = [by_tag(result, "p", moment).styles["text"] for moment in range(5)]
    assert texts == ["-", "-", "-", "clicked true", "Ada"]
    assert by_tag(result, "p").box[2] == 300, "an animation is read before it comes to rest"


def test_places_are_those_of_the_document_however_far_it_is_scrolled(render: Draw) -> None:
    result = render("<p style='position: absolute; top: 2000px'>low</p>", "", act("click", "p"))
    assert result.views[1][1] > 0
    assert by_tag(result, "p", 1).box == by_tag(result, "p").box


def test_the_clock_begins_at_noon_of_15_january_2024(render: Draw) -> None:
    result = render("<p></p>", "document.querySelector('p').textContent = new Date().toISOString()")
    assert by_tag(result, "p").styles["text"].startswith("2024-01-15T12:00")


def test_images_are_compared_by_what_is_in_them() -> None:
    files = {"a.png": b"same", "img/b.png": b"same", "c.png": b"other"}
    first, second, third = (name_contents(f'url("http://page.invalid/{name}")', files) for name in files)
    assert first == second != third
    assert name_contents('url("http://page.invalid/none.png")', files) == "url(missing)"
    assert name_contents("data:text/plain;base64,c2FtZQ==", files) in first
    assert name_contents("linear-gradient(red, blue)", files) == "linear-gradient(red, blue)"


def test_a_step_takes_the_first_displayed_element_or_says_why_it_cannot(render: Draw) -> None:
    body = "<p>1</p><i hidden>2</i><div style='position:fixed; inset:0'></div><b hidden>3</b>"
    clicks = [act("click", selector) for selector in (".none", "i", "p", "p:::x", "b")]
    result = render(f"{body}<b style='position:relative'>4</b>", "", *clicks)
    assert result.problems == {0: "not_found: .none", 1: "hidden: i", 2: "covered: p", 3: "bad_selector"}
    assert [table is None for table in result.tables] == [False, True, True, True, True, False]
    assert result.failure is None
