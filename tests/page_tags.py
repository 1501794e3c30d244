"""Reads a page as a browser does, for the tests of what a record may bring into one."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """Tags with their attributes, comments, text and marked texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.comments: list[str] = []
        self.text = ""
        self.marked: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.lasttag == "mark":
            self.marked.append(data)
            self.lasttag = ""
