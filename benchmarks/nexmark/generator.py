"""Nexmark's events, each a pure function of its place in the stream.

Of every 50 events one is a person, three are auctions and 46 are bids. Half of the bids go to one hot auction, three
quarters come from one hot bidder, three quarters of the auctions belong to one hot seller; the hot ones change as the
stream goes on. Nothing is remembered between events, so any number of generators can share one stream, and a test can
ask for the very same events again.
"""

from __future__ import annotations

from typing import TypeAlias

# id, name, email, credit card, city, state, time
Person: TypeAlias = tuple[int, str, str, str, str, str, int]
# id, item, description, initial bid, reserve, time, expires, seller, category
Auction: TypeAlias = tuple[int, str, str, int, int, int, int, int, int]
# auction, bidder, price, channel, url, time
Bid: TypeAlias = tuple[int, int, int, str, str, int]

PERSONS, AUCTIONS, EPOCH = 1, 3, 50  # of 50 events
FIRST_PERSON = FIRST_AUCTION = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PERSONS = 1_000  # those who bid and sell
OPEN_AUCTIONS = 100  # those that get bids
HOT_EVERY = 100  # ids from one hot auction, bidder or seller to the next

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_SCALES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_MASK = (1 << 64) - 1


def draw(index: int, salt: int) -> int:
    """A number below 2**64 that looks random: the same one for the same arguments, everywhere and always."""
    mixed = (index * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def is_person(index: int) -> bool:
    """Whether the event at this place is a person."""
    return index % EPOCH < PERSONS


def is_auction(index: int) -> bool:
    """Whether the event at this place is an auction."""
    return PERSONS <= index % EPOCH < PERSONS + AUCTIONS


def is_bid(index: int) -> bool:
    """Whether the event at this place is a bid."""
    return index % EPOCH >= PERSONS + AUCTIONS


def event_time(index: int, events_per_second: int) -> int:
    """Milliseconds since the stream began."""
    return index * 1_000 // events_per_second


def person(index: int, events_per_second: int) -> Person:
    """The person at this place of the stream."""
    dice = draw(index, 1)
    first = _FIRST_NAMES[dice % len(_FIRST_NAMES)]
    last = _LAST_NAMES[dice // 100 % len(_LAST_NAMES)]
    card = f"{draw(index, 2) % 10**16:016d}"
    city = _CITIES[dice // 10_000 % len(_CITIES)]
    state = _STATES[dice // 1_000_000 % len(_STATES)]
    number = FIRST_PERSON + index // EPOCH * PERSONS + index % EPOCH
    return number, f"{first} {last}", f"{first}@{last}.com", card, city, state, event_time(index, events_per_second)


def auction(index: int, events_per_second: int) -> Auction:
    """The auction at this place of the stream.

    It is open for about as long as it takes until 100 younger ones have begun, so that some bids come too late.
    """
    dice = draw(index, 3)
    number = FIRST_AUCTION + index // EPOCH * AUCTIONS + index % EPOCH - PERSONS
    begins = event_time(index, events_per_second)
    horizon = OPEN_AUCTIONS * EPOCH // AUCTIONS * 1_000 // events_per_second
    expires = begins + 1 + dice % max(1, 2 * horizon)
    initial = _price(index, 4)
    reserve = initial + _price(index, 5)
    seller = _seller(index)
    category = FIRST_CATEGORY + dice // 1_000_000 % CATEGORIES
    return number, f"item {number}", f"lot {dice % 100_000}", initial, reserve, begins, expires, seller, category


def bid(index: int, events_per_second: int) -> Bid:
    """The bid at this place of the stream."""
    dice = draw(index, 6)
    began = index // EPOCH * AUCTIONS + AUCTIONS - 1  # the youngest auction, counted from 0
    lot = _hot(began) if dice & 1 else began - (dice >> 8) % min(began + 1, OPEN_AUCTIONS)
    known = index // EPOCH * PERSONS  # the youngest person
    who = _hot(known) if dice >> 1 & 3 else known - (dice >> 24) % min(known + 1, ACTIVE_PERSONS)
    channel = _CHANNELS[dice >> 4 & 3]
    url = f"https://www.nexmark.com/{channel.lower()}/item.htm?query=1&channel_id={dice >> 40}"
    time = event_time(index, events_per_second)
    return FIRST_AUCTION + lot, FIRST_PERSON + who, _price(index, 7), channel, url, time


def _seller(index: int) -> int:
    dice = draw(index, 8)
    known = index // EPOCH * PERSONS
    return FIRST_PERSON + (_hot(known) if dice & 3 else known - (dice >> 8) % min(known + 1, ACTIVE_PERSONS))


def _hot(youngest: int) -> int:
    """The one that most choose at present."""
    return youngest // HOT_EVERY * HOT_EVERY


def _price(index: int, salt: int) -> int:
    """Cents: cheap things are as frequent as expensive ones, by order of magnitude.

    Whole numbers only, for a power of ten computed elsewhere may differ in its last digit.
    """
    dice = draw(index, salt)
    scale = _SCALES[dice % 6]
    return scale + (dice >> 16) % (9 * scale)
