"""The picture of a pattern: every state once, every transition an arrow, well-formed XML."""

import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from penstock.cep import MalformedPatternError, Pattern
from penstock.cep.nfa_compiler import NFACompiler

SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "pattern_pictures.py"))


def letters(*links):
    pattern = Pattern.begin("a")
    for name, link in zip("bcdef", links, strict=False):
        pattern = getattr(pattern, link)(name)
    return pattern


def texts(pattern):
    """What is written in the picture, behind its title."""
    return [one.text for one in ET.fromstring(pattern.to_svg()).iter(f"{SVG}text")][1:]


PATTERNS = {
    "one": Pattern.begin("a"),
    "links": letters("next", "followed_by", "followed_by_any"),
    "not": letters("not_followed_by", "followed_by"),
    "not next": letters("not_next", "next"),
    "waits": letters("not_followed_by").within(1000),
    "loop": Pattern.begin("a").one_or_more().followed_by("b"),
    "greedy": Pattern.begin("a").one_or_more().greedy().followed_by("b"),
    "times": Pattern.begin("a").times(2, 4).consecutive().next("b").optional().next("c"),
    "group": Pattern.begin("s").next(letters("next")).one_or_more().followed_by("z"),
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_every_state_has_a_box_and_every_transition_an_arrow(pattern):
    automaton = NFACompiler.compile(pattern)
    reached = [automaton.start]
    for number in reached:
        reached += {edge.target for edge in automaton.states[number].transitions} - set(reached)
    edges = {(number, edge.target, edge.action) for number in reached for edge in automaton.states[number].transitions}
    picture = ET.fromstring(pattern.to_svg())
    assert len(list(picture.iter(f"{SVG}rect"))) == 1 + len(reached)
    assert len([one for one in picture.iter(f"{SVG}path") if "marker-end" in one.attrib]) == len(edges)
    names = {automaton.states[number].name.replace("$endState$", "match") for number in reached}
    assert names <= set(texts(pattern))


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_everything_is_inside_the_picture(pattern):
    picture = ET.fromstring(pattern.to_svg())
    width, height = float(picture.get("width")), float(picture.get("height"))
    for one in [*picture.iter(f"{SVG}rect"), *picture.iter(f"{SVG}text")]:
        right = float(one.get("x", "0")) + float(one.get("width", "0"))
        assert 0 <= right <= width
        assert 0 <= float(one.get("y", "0")) <= height


def test_arrows_between_patterns_have_the_name_of_the_link():
    found = texts(letters("next", "followed_by", "followed_by_any"))
    assert {"next", "followed by", "followed by any"} <= set(found)


def test_the_way_back_in_a_repeated_group_is_no_link():
    group = Pattern.begin(Pattern.begin("a").next("b")).times(2)
    assert texts(group).count("next") == 2
    assert texts(group).count("take") == 2


def test_the_title_is_the_pattern():
    picture = ET.fromstring(letters("next").within(5000).to_svg())
    assert picture.get("aria-label") == "The states of a next b within 5 s"


def test_names_may_contain_any_characters():
    assert '<&"' in texts(Pattern.begin('<&"'))


def test_the_same_pattern_gives_the_same_picture():
    assert letters("next").to_svg() == letters("next").to_svg()


def test_a_pattern_that_cannot_be_compiled_cannot_be_drawn():
    with pytest.raises(MalformedPatternError, match="'a' is used twice"):
        Pattern.begin("a").next("a").to_svg()


@pytest.mark.parametrize(("name", "pattern"), SCRIPT["patterns"]().items(), ids=SCRIPT["patterns"]())
def test_the_pictures_in_the_guide_are_up_to_date(name, pattern):
    assert (SCRIPT["PICTURES"] / f"{name}.svg").read_text(encoding="utf-8") == pattern.to_svg(), "run make pictures"
