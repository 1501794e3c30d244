"""Parsers are found by name, by import string, or given as they are."""

import types

import pytest

from vlgym.errors import UserError
from vlgym.parsers import PARSERS, TagParser, get_parser
from vlgym.types import Parser


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_each_built_in_parser_fulfils_the_protocol_under_its_name(name: str) -> None:
    parser = get_parser(name)
    assert isinstance(parser, Parser)
    assert parser.name == name
    assert parser.version >= 1


def test_a_parser_is_taken_by_its_import_string_or_as_it_is() -> None:
    assert isinstance(get_parser("vlgym.parsers.tag:TagParser"), TagParser)
    parser = TagParser()
    assert get_parser(parser) is parser


@pytest.mark.parametrize(
    "path", ["no_such_module_here:Parser", "vlgym.parsers.tag:NoSuchClass", ":", "vlgym:", "vlgym.env.spec:EnvSpec"]
)
def test_an_import_string_that_leads_nowhere_is_a_user_error(path: str) -> None:
    with pytest.raises(UserError, match="cannot be loaded"):
        get_parser(path)


def test_an_object_without_the_methods_is_refused() -> None:
    with pytest.raises(UserError, match="is not a parser: it needs name, version, parse, format and describe"):
        get_parser(types.SimpleNamespace(name="x"))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="is not a parser"):
        get_parser("types:SimpleNamespace")
