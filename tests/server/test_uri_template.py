"""URI templates (RFC 6570, levels 1 to 3), expanded and matched backwards."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twolane.server.uri_template import MAX_URI_LENGTH, UriTemplate, check_uri, parse_template

# The values of RFC 6570 section 1.2.
VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "half": "50%",
    "empty": "",
    "path": "/foo/bar",
    "x": "1024",
    "y": "768",
    "base": "http://example.com/home/",
}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        # Level 1
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        # Level 2
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("X{#var}", "X#value"),
        ("X{#hello}", "X#Hello%20World!"),
        # Level 3
        ("map?{x,y}", "map?1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("X{.var}", "X.value"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
        # Section 3.2
        ("{half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,undef,y}", "1024,768"),
        ("{?x,undef}", "?x=1024"),
        ("{/undef}", ""),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
    ],
)
def test_the_examples_of_the_rfc_expand(template: str, uri: str) -> None:
    """Templates of levels 1 to 3 expand to what RFC 6570 prints beside them."""
    assert UriTemplate(template).expand(VALUES) == uri


def test_reserved_expansion_keeps_triplets() -> None:
    """A value that is percent-encoded already is not encoded twice under {+x}."""
    assert UriTemplate("{+x}").expand({"x": "a%20b%"}) == "a%20b%25"


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("test://static", "test://static", {}),
        ("users://{id}", "users://42", {"id": "42"}),
        ("users://{id}/posts/{post}", "users://42/posts/7", {"id": "42", "post": "7"}),
        ("users://{id}", "users://caf%C3%A9%2Fbar", {"id": "café/bar"}),
        ("users://{id}", "users://%7Bid%7D", {"id": "{id}"}),
        ("users://{id}", "users://a,b", {"id": "a,b"}),
        ("geo://{lat,lon}", "geo://52.5,13.4", {"lat": "52.5", "lon": "13.4"}),
        ("geo://{lat,lon}", "geo://a%2Cb,c", {"lat": "a,b", "lon": "c"}),
        ("docs://{+path}", "docs://a/b/c.txt", {"path": "a/b/c.txt"}),
        ("docs://{+path}/{file}", "docs://a/b/c.txt", {"path": "a/b", "file": "c.txt"}),
        ("proxy://{+url}", "proxy://http://h/p?q=1#f", {"url": "http://h/p?q=1#f"}),
        ("docs://{+path}{?v}", "docs://a/b?v=2", {"path": "a/b", "v": "2"}),
        ("docs://{+path}{#part}", "docs://a/b#c/d", {"path": "a/b", "part": "c/d"}),
        ("doc://x{#part}", "doc://x#top", {"part": "top"}),
        ("file://{name}{.ext}", "file://archive.tar.gz", {"name": "archive.tar", "ext": "gz"}),
        ("file://{name}{.a,b}", "file://n.x.y", {"name": "n", "a": "x", "b": "y"}),
        ("r://h{/a,b}", "r://h/1/2", {"a": "1", "b": "2"}),
        ("r://h{/a}/x", "r://h/1/x", {"a": "1"}),
        ("r://h{;a,b}", "r://h;b=2;a=1", {"a": "1", "b": "2"}),
        ("r://{name}{;v}", "r://n;v", {"name": "n", "v": ""}),
        ("s://find{?q,limit}", "s://find?q=a%20b&limit=5", {"q": "a b", "limit": "5"}),
        ("s://find{?q,limit}", "s://find?limit=5&q=a", {"q": "a", "limit": "5"}),
        ("s://find{?q,limit}", "s://find?limit=5", {"limit": "5"}),
        ("s://find{?q,limit}", "s://find", {}),
        ("s://find{?q}", "s://find?q=", {"q": ""}),
        ("s://find{?q}", "s://find?q=a=b", {"q": "a=b"}),
        ("s://find{?q}", "s://find?q=a+b", {"q": "a+b"}),
        ("s://find{?a}{&b}", "s://find?b=1&a=2", {"a": "2", "b": "1"}),
        ("s://find?fixed=1{&x}", "s://find?fixed=1&x=2", {"x": "2"}),
        ("s://find?fixed=1{&x}", "s://find?fixed=1", {}),
        ("s://find?a={a}&b={b}", "s://find?a=1&b=/2", {"a": "1", "b": "/2"}),
        ("s://find{?q}{#part}", "s://find?q=1#end", {"q": "1", "part": "end"}),
        ("t://{a}-{b}", "t://x-y-z", {"a": "x-y", "b": "z"}),
        ("{+everything}", "any://thing", {"everything": "any://thing"}),
    ],
)
def test_a_template_matches_what_it_produces(template: str, uri: str, values: dict[str, str]) -> None:
    """A URI of the family yields its decoded variables, query parameters in any order or absent."""
    assert UriTemplate(template).match(uri) == values


@pytest.mark.obligation("S-107")
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("users://{id}", "users://"),
        ("users://{id}", "users://a/b"),
        ("users://{id}", "users://a?b"),
        ("users://{id}", "USERS://a"),
        ("users://{id}", "users://a b"),
        ("users://{id}", "users://a\nb"),
        ("users://{id}", "users://%zz"),
        ("users://{id}", "users://%ff"),
        ("users://{id}", "users://%00"),
        ("users://{id}/x", "users://a/y"),
        ("geo://{lat,lon}", "geo://1"),
        ("s://find{?q}", "s://find?"),
        ("s://find{?q}", "s://find?z=1"),
        ("s://find{?q}", "s://find?q=1&q=2"),
        ("s://find{?q}", "s://find?q=1#x"),
        ("s://find{?q}", "s://finder"),
        ("r://h{/a}", "r://h"),
        ("docs://{+path}", "docs://../etc/passwd"),
        ("docs://{+path}", "docs://a/%2e%2e/b"),
        ("docs://{name}", "docs://..%2F..%2Fetc%2Fpasswd"),
        ("docs://{name}", "docs://..%5Cwindows"),
        ("file:///{+path}", "file:///a/.."),
        ("docs://{+path}", "docs://" + "a" * MAX_URI_LENGTH),
    ],
)
def test_a_template_matches_nothing_else(template: str, uri: str) -> None:
    """A foreign, malformed or oversized URI, and one that climbs out of its directory, is no match."""
    assert UriTemplate(template).match(uri) is None


def test_two_dots_within_a_name_are_no_traversal() -> None:
    """Only a whole path segment of two dots is refused."""
    assert UriTemplate("git://diff/{+range}").match("git://diff/v1..v2") == {"range": "v1..v2"}


@pytest.mark.parametrize(
    "template",
    ["a://{", "a://}", "a://{}", "a://{a}}", "a://{{a}}", "a://{a b}", "a://{a,}", "a://{,a}", "a://{?}", "a://{a-b}",
     "a://{a:3}", "a://{a*}", "a://{/a*}", "a://{=a}", "a://{!a}", "a://{|a}", "a://{@a}", "a://{a}/{a}", "a://{a,a}",
     "a://b c/{a}", "a://%zz/{a}", "a://<{a}>"],
)  # fmt: skip
def test_a_malformed_template_is_refused(template: str) -> None:
    """A template that RFC 6570 levels 1 to 3 do not define is a ValueError that quotes it."""
    with pytest.raises(ValueError, match=r"URI template"):
        UriTemplate(template)


def test_names_and_options_are_told() -> None:
    """A template tells its variables in order, and which of them a URI may leave out."""
    template = UriTemplate("a://{b}{/c}{?d,e}{&f}")
    assert template.names == ("b", "c", "d", "e", "f")
    assert template.optional == {"d", "e", "f"}
    assert repr(template) == "UriTemplate('a://{b}{/c}{?d,e}{&f}')"


def test_a_template_is_parsed_once() -> None:
    """Fresh servers share the parsed form of a template."""
    assert parse_template("cached://{x}") is parse_template("cached://{x}")


@pytest.mark.parametrize("uri", ["config://app", "a:b", "urn:isbn:1", "file:///x%20y", "x-1.2+3:y"])
def test_uris_are_taken_as_they_are(uri: str) -> None:
    """A URI with a scheme is accepted without being rewritten."""
    assert check_uri(uri) == uri


@pytest.mark.obligation("S-107")
@pytest.mark.parametrize(
    "uri", ["", "config", "/etc", "1a:b", "a b:c", "config://a b", "config://%zz", "x://\n", None, 3]
)
def test_what_is_no_uri_is_refused(uri: object) -> None:
    """A resource cannot be registered under something that is no URI."""
    with pytest.raises(ValueError, match=r"is not a URI"):
        check_uri(uri)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12).filter(
    lambda text: ".." not in text
)


@pytest.mark.parametrize(
    "template",
    ["x://{a}", "x://{a}/{b}", "x://{a,b}", "x://h{/a,b}", "x://h{?a,b}", "x://h?f=1{&a,b}", "x://h{;a,b}", "x://{a}{?b}",
     "x://h?a={a}&b={b}"],
)  # fmt: skip
@given(a=TEXT, b=TEXT)
def test_expanding_and_matching_round_trip(template: str, a: str, b: str) -> None:
    """Whatever the values hold, the expansion of a template matches back to them."""
    parsed = UriTemplate(template)
    values = {name: {"a": a, "b": b}[name] for name in parsed.names}
    assert parsed.match(parsed.expand(values)) == values


@pytest.mark.parametrize("template", ["x://{+a}", "x://h{#a}"])
@given(a=TEXT.filter(lambda text: "%" not in text))
def test_reserved_values_round_trip(template: str, a: str) -> None:
    """Values with slashes, question marks and the like come back whole from {+a} and {#a}."""
    parsed = UriTemplate(template)
    assert parsed.match(parsed.expand({"a": a})) == {"a": a}


PIECE = st.sampled_from(
    ["a", "/", "?", "&", "#", ";", "=", ".", ",", "-", "x=1", "{p}", "{q,r}", "{+s}", "{#t}", "{.u}", "{/v}", "{;w}",
     "{?y}", "{&z}"]
)  # fmt: skip


@given(pieces=st.lists(PIECE, max_size=7, unique=True), uri=st.text("a/?&#;=.,-x1%2F", max_size=24))
@settings(max_examples=500)
def test_matching_any_uri_is_sound(pieces: list[str], uri: str) -> None:
    """For any template and URI there is an answer, and a match holds only variables of the template."""
    template = UriTemplate("".join(pieces))
    found = template.match(uri)
    assert found is None or (
        set(found) <= set(template.names) and set(template.names) - set(found) <= template.optional
    )


def test_the_time_of_a_match_grows_with_the_length_only() -> None:
    """Many ambiguous variables against a long hostile URI cost no more than linear time: no backtracking."""
    template = UriTemplate("x://" + "/".join(f"{{+v{index}}}" for index in range(8)) + "!")

    def cost(length: int) -> float:
        uri = "x://" + "/" * length
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            assert template.match(uri) is None
            best = min(best, time.perf_counter() - start)
        return best

    assert cost(8000) / cost(800) < 40
