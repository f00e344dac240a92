"""Random CEP jobs, valid ones, from a random.Random: every quantifier, group, limit and strategy."""

from cep_jobs import element

END = 2**63 - 1
KINDS = "abc"


def _condition(rng, names):
    roll = rng.random()
    if roll < 0.5:
        return ["is", rng.choice(KINDS)]
    if roll < 0.65:
        return ["in", "".join(rng.sample(KINDS, 2))]
    if roll < 0.75:
        return ["above", rng.randint(0, 4)]
    if roll < 0.85 and names:
        return ["sum_below", rng.choice(names), rng.randint(2, 12)]
    if roll < 0.93:
        return ["and", ["is", rng.choice(KINDS)], ["above", rng.randint(0, 3)]]
    return ["or", ["is", rng.choice(KINDS)], ["above", rng.randint(2, 5)]]


def chain(rng, prefix="", depth=0, limits=True):
    size = rng.choice((1, 2, 2, 3, 3, 4)) if depth == 0 else rng.choice((1, 2, 2, 3))
    elements, names = [], []
    for number in range(size):
        name = f"{prefix}{'pqrs'[number]}"
        names.append(name)
        before = elements[-1] if elements else None
        link = "begin"
        if before is not None:
            link = rng.choice(("next", "follow", "follow", "any", "not_next", "not_follow"))
            if link.startswith("not") and (_optional(before) or all(map(_skippable, elements))):
                link = "follow"
        if link.startswith("not"):
            elements.append(element(name, link, _condition(rng, names)))
            continue
        elements.append(_positive(rng, name, link, names, before, depth, limits))
    return elements


def _optional(data):
    return data["optional"] or data["quant"][:2] == ["times", 0]


def _skippable(data):
    if _optional(data) or data["link"].startswith("not"):
        return True
    return bool(data.get("group")) and all(map(_skippable, data["group"]))


def _positive(rng, name, link, names, before, depth, limits):
    more = {}
    quant = rng.choice(
        (("one",), ("one",), ("one",), ("loop", 1), ("loop", 2), ("times", 2, 2), ("times", 1, 3), ("times", 0, 2))
    )
    if rng.random() < (0.15, 0.08, 0)[depth]:
        more["group"] = chain(rng, prefix=name, depth=depth + 1, limits=limits)
        if quant[0] == "loop" and all(map(_skippable, more["group"])):
            quant = ("times", 2, 2)
    behind_greedy = before is not None and before["greedy"]
    if rng.random() < 0.2 and quant[:2] != ("times", 0) and not behind_greedy:
        more["optional"] = True
    if quant[0] != "one":
        more["inner"] = rng.choice(("relaxed", "relaxed", "strict", "any"))
        if rng.random() < 0.3 and "group" not in more and more["inner"] != "any":
            more["greedy"] = True
        if quant[0] == "loop" and rng.random() < 0.3:
            more["until"] = _condition(rng, names)
        if limits and rng.random() < 0.1:
            more["apart"] = rng.randint(1, 4)
    if limits and rng.random() < 0.1:
        more["after"] = rng.randint(1, 4)
    return element(name, link, _condition(rng, names), quant, **more)


def script(rng, time, start):
    steps, now, watermark, keys = [], start, start - 1, rng.choice(("k", "k", "kj"))
    for _ in range(rng.randint(5, 12)):
        now += rng.choice((0, 0, 1, 1, 1, 2, 4))
        if time == "processing":
            steps.append(["t", now])
            steps += [
                ["e", rng.choice(keys), rng.choice(KINDS), rng.randint(0, 5), now] for _ in range(rng.randint(1, 2))
            ]
            continue
        at = now + rng.choice((0, 0, 0, 0, -1, 1, 2))
        steps.append(["e", rng.choice(keys), rng.choice(KINDS), rng.randint(0, 5), at])
        if rng.random() < 0.25:
            watermark = max(watermark + 1, now - rng.randint(0, 2))
            steps.append(["w", watermark])
    return [*steps, ["w", END] if time == "event" else ["t", now + rng.randint(1, 20)]]


def random_job(rng):
    time = rng.choice(("event", "event", "event", "processing"))
    elements = chain(rng)
    outer = [one["name"] for one in elements if not one["link"].startswith("not") and "group" not in one]
    skip = rng.choice((["none"], ["none"], ["next"], ["past"], ["first"], ["last"]))
    if skip[0] in ("first", "last"):
        skip = [*skip, rng.choice(outer), rng.random() < 0.1] if outer else ["past"]
    if rng.random() < 0.6 or elements[-1]["link"] == "not_follow":
        at = elements[-1] if rng.random() < 0.8 or elements[-1]["link"] == "not_follow" else rng.choice(elements)
        at["within"] = rng.randint(4, 12)
    elif rng.random() < 0.2:
        rng.choice(elements)["within"] = rng.randint(0, 12)
    return {
        "chain": elements,
        "skip": skip,
        "time": time,
        "comparator": rng.random() < 0.2,
        "timeouts": rng.random() < 0.8,
        "script": script(rng, time, rng.choice((1, 1, 1, 10))),
    }
