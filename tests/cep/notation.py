"""A short notation for pattern sequences and their matches, so that a scenario is one line of a table.

A pattern is a letter, which is also the kind of event that it accepts; ``x[ab]`` accepts kinds a and b, ``x[*]``
accepts every event. Behind it stand the quantifier (``+``, ``{2}``, ``{1,3}``, ``{2,}``) and ``?`` for optional.
The words after that are ``greedy``, ``strict`` (consecutive), ``any`` (with combinations), ``until:r``,
``within:5``, ``after:5`` (since the event before) and ``apart:5`` (the window of the loop). Between two patterns:

====== =================
``>``  next
``->`` followed_by
``=>`` followed_by_any
``!>`` not_next
``!->`` not_followed_by
====== =================

``( a -> b ){2}`` is a group. A match is the text of its events, name by name: ``k m1 m2 q``.
"""

import re

from cep_jobs import element, events, job, run_job

_LINKS = {">": "next", "->": "follow", "=>": "any", "!>": "not_next", "!->": "not_follow"}
_PATTERN = re.compile(r"(?P<name>\w)(\[(?P<kinds>[\w*]+)\])?(?P<quant>\+|\{[\d,]+\})?(?P<optional>\?)?")
_GROUP_END = re.compile(r"\)(?P<quant>\+|\{[\d,]+\})?(?P<optional>\?)?")


def chain(text):
    """The elements that a text in the notation describes."""
    elements = []
    _read(text.split(), elements)
    return elements


def _read(tokens, elements):
    link = "begin"
    while tokens:
        token = tokens.pop(0)
        if token in _LINKS:
            link = _LINKS[token]
        elif token == "(":
            inner = []
            end = _GROUP_END.fullmatch(_read(tokens, inner))
            elements.append(element("group", link, quant=_quantifier(end["quant"]), group=inner))
            elements[-1]["optional"] = bool(end["optional"])
        elif token.startswith(")"):
            return token
        elif token in {"strict", "any"}:
            elements[-1]["inner"] = token
        elif token == "greedy":
            elements[-1]["greedy"] = True
        elif ":" in token:
            key, value = token.split(":")
            elements[-1][key] = ["is", value] if key == "until" else int(value)
        else:
            parts = _PATTERN.fullmatch(token)
            condition = {None: None, "*": []}.get(parts["kinds"], ["in", parts["kinds"]])
            elements.append(element(parts["name"], link, condition, _quantifier(parts["quant"])))
            elements[-1]["optional"] = bool(parts["optional"])
    return None


def _quantifier(text):
    if text is None:
        return ("one",)
    if text == "+":
        return ("loop", 1)
    low, comma, high = text[1:-1].partition(",")
    if comma and not high:
        return ("loop", int(low))
    return ("times", int(low), int(high or low))


def outcome(pattern, text, *, every=1, restore_every=0, **options):
    """Matches, timed-out partial matches and errors as (kind, text of the events, timestamp), in order."""
    elements = chain(pattern) if isinstance(pattern, str) else pattern
    log = run_job(job(elements, events(text, every=every), **options), restore_every=restore_every)
    assert not any(entry[0] == "late" for entry in log)
    return [(entry[0], written(entry[1], text), entry[2]) for entry in log if entry[0] != "w"]


def written(match, text):
    """The text of a match's events."""
    words = text.split()
    if isinstance(match, str):
        return match
    return " ".join(words[number] for _, numbers in match for number in numbers)


def matches(pattern, text, **options):
    """The matches alone, without their order."""
    found = outcome(pattern, text, timeouts=False, **options)
    assert all(kind == "m" for kind, _, _ in found), found
    return sorted(match for _, match, _ in found)
