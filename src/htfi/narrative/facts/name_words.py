"""Finds the words of a text that may be names, joins them to names, and takes the means of what a network says of each.

`names_core.pyx` does the same where a compiler was at hand.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

MIN_NAMED = 0.5  # probability from which a word belongs to a party
MIN_BESIDE = 0.08  # the same, of a capitalised word that stands beside one which does
MIN_CAPITAL = 0.3  # the same, of a word with a capital among words without
TITLED = 0.7  # share of words with a capital from which all have one
MIN_SUM = 1e-9
_JOINS = frozenset({" ", "-", " & ", "&", "/", ". ", "’", "'"})
# Words that belong to no name, at either end of one.
_BESIDE = """
a an the and or of in by for to from with on at as after over its his their is was are be has will would may no not
than but while when if says said sees shares stock stocks board bid offer deal takeover buys to sells cuts raises
upgraded downgraded upgrades downgrades rises falls slips gains jumps drops climbs slides surges sinks soars tumbles
q1 q2 q3 q4 h1 h2 fy ceo cfo ipo eps pt etf"""
# What a company is called before its name.
_BEFORE = """
suitor bidder broker rival activist airline airlines bank lender insurer drugmaker chipmaker carmaker automaker retailer
brewer miner shipper utility supplier customer maker fund regulator judge jury court investors investor analyst analysts
acquisition purchase holders owner parent startup unlisted privately listed exclusive update breaking why how new"""
NO_NAME, DESCRIPTIONS = frozenset(_BESIDE.split()), frozenset(_BEFORE.split())

Numbers = Any  # a numpy array, or a memoryview of one
Span = tuple[int, int]
NamedWord = tuple[int, int, float]  # start, end, probability of belonging to a party
FoundName = tuple[int, int, int]  # start, end, its place among the spans that are taken, −1 for none


def find_names(text: str, taken: list[Span], tokens: Numbers, roles: Numbers) -> list[FoundName]:
    """The spans that are taken, and names of words over none of them, in the order of the text.

    Shapes: `tokens` int64 [T, 2] in characters, `roles` float64 [T, roles + 1] (the last: no party).
    """
    words = named_words(text, tokens, 1.0 - roles[:, -1], taken)
    found = [(start, end, place) for place, (start, end) in enumerate(taken)]
    return sorted([*found, *((start, end, -1) for start, end in name_runs(text, words))])


def find_parties(
    text: str, taken: list[Span], tokens: Numbers, roles: Numbers, effects: Numbers, max_names: int
) -> tuple[list[FoundName], Numbers, list[float]]:
    """Those names of `find_names` that any token lies over, at most `max_names`, with what the network says of them,
    as in `means_of_names`.
    """
    names = find_names(text, taken, tokens, roles)
    places, shares, of_names = means_of_names([one[:2] for one in names], tokens, roles, effects, max_names)
    return [names[place] for place in places], shares, of_names


def named_words(text: str, tokens: Numbers, named: Numbers, taken: list[Span]) -> list[NamedWord]:
    """The words of the text that lie over no span that is taken, each with the largest probability of its tokens.

    Shapes: `tokens` int64 [T, 2] in characters, `named` float64 [T]. A word that no token lies over is left out.
    """
    found: list[NamedWord] = []
    at, length, num = 0, len(text), len(named)
    while at < length:
        end = _word_end(text, at, length)
        if end == at:
            at += 1
            continue
        start, at = at, end
        if end - start > 2 and text[end - 1] == "s" and (text[end - 2] == "'" or text[end - 2] == "’"):
            end -= 2
        is_free = True
        for span in taken:
            if start < span[1] and end > span[0]:
                is_free = False
        if not is_free:
            continue
        largest, is_inside = 0.0, False
        for token in range(num):
            if tokens[token, 0] < end and tokens[token, 1] > start:
                share = named[token]
                if not is_inside or share > largest or share != share:
                    largest = share
                is_inside = True
                if share != share:  # NaN: nothing is known of the word
                    break
        if is_inside and largest == largest:
            found.append((start, end, float(largest)))
    return found


def _word_end(text: str, at: int, length: int) -> int:
    """Where a word ends that begins at `at`; `at` where none does: 'U.S.', 'AT&T', 'Moody's', 'Disney+'."""
    end, num = at, 0
    while end + 1 < length and _is_letter(text[end]) and text[end + 1] == ".":
        end += 2
        num += 1
    if num >= 2:
        return end
    end = at
    if not _is_sign(text[end]):
        return at
    while True:
        while end < length and _is_sign(text[end]):
            end += 1
        if end + 1 < length and _is_joint(text[end]) and _is_sign(text[end + 1]):
            end += 1
            continue
        break
    return end + 1 if end < length and text[end] == "+" else end


def _is_sign(char: str) -> bool:
    """Whether it is a letter or a digit."""
    return "a" <= char <= "z" or char.isalnum()


def _is_letter(char: str) -> bool:
    return "a" <= char <= "z" or (char.isalnum() and not char.isdecimal())


def _is_joint(char: str) -> bool:
    return char == "." or char == "&" or char == "'" or char == "’" or char == "+"


def name_runs(text: str, words: list[NamedWord]) -> list[Span]:
    """Runs of words that are one name."""
    num_letters = num_capitals = 0
    for word in words:
        char = text[word[0]]
        if char.isalpha():
            num_letters += 1
            num_capitals += char.isupper()
    is_titled = num_capitals > TITLED * max(num_letters, 1)
    states = [_may_be_named(text, word[0], word[1], word[2], is_titled) for word in words]
    runs: list[Span] = []
    place, num = 0, len(words)
    while place < num:
        if not states[place]:
            place += 1
            continue
        last = place
        while last + 1 < num and states[last + 1] and text[words[last][1] : words[last + 1][0]] in _JOINS:
            last += 1
        first = place
        while first < last and text[words[first][0] : words[first][1]].casefold() in DESCRIPTIONS:
            first += 1  # what only describes the company before it
        for word in words[first : last + 1]:
            if word[2] >= (MIN_NAMED if is_titled else MIN_CAPITAL):
                runs.append((words[first][0], words[last][1]))
                break
        place = last + 1
    return runs


def _may_be_named(text: str, start: int, end: int, share: float, is_titled: bool) -> bool:
    """Whether a word may belong to a name."""
    is_plain = True
    for at in range(start, end):
        char = text[at]
        if not "a" <= char <= "z":
            is_plain = False
            break
    if is_plain:  # most words
        return False
    written = text[start:end]
    if written.isalpha() and written.islower():
        return False
    has_sign = False
    for at in range(start, end):
        char = text[at]
        if char.isupper() or char.isdigit():
            has_sign = True
            break
    if not has_sign or written.casefold() in NO_NAME:
        return False
    if share >= MIN_NAMED:
        return True
    if is_titled or not written.isalpha() or not written[0].isupper():
        return False
    before = text[:start]
    opens = not before.rstrip("\"'“‘( ") or before.rstrip().endswith((":", ";", "."))
    return share >= (MIN_CAPITAL if opens else MIN_BESIDE)


def means_of_names(
    names: Sequence[Span], tokens: Numbers, roles: Numbers, effects: Numbers, max_names: int
) -> tuple[list[int], Numbers, list[float]]:
    """What the network says of names: the places of those that any token lies over, at most `max_names`; their shares
    of roles, summing to 1, and P(good) − P(bad), rounded, the means of their tokens.

    Shapes: tokens int64 [T, 2], roles float64 [T, roles + 1] (the last: no party), effects float64 [T, 3]; shares
    [names found, roles].
    """
    places: list[int] = []
    of_names: list[float] = []
    num_tokens, num_roles = len(tokens), roles.shape[1] - 1
    shares = np.empty((min(len(names), max_names), num_roles))
    rows = shares  # [names, roles]
    for place, name in enumerate(names):
        num = 0
        good = bad = 0.0
        row = len(places)
        if row == max_names:
            break
        for token in range(num_tokens):
            if tokens[token, 0] < name[1] and tokens[token, 1] > name[0]:
                for role in range(num_roles):
                    rows[row, role] = roles[token, role] if num == 0 else rows[row, role] + roles[token, role]
                good += effects[token, 0]
                bad += effects[token, 2]
                num += 1
        if num == 0:
            continue
        for role in range(num_roles):
            rows[row, role] = rows[row, role] / num
        whole = max(_sum_of(rows, row, num_roles), MIN_SUM)
        for role in range(num_roles):
            rows[row, role] = rows[row, role] / whole
        places.append(place)
        of_names.append(round(float(good / num - bad / num), 3))
    return places, shares[: len(places)], of_names


def _sum_of(rows: Numbers, row: int, num: int) -> float:
    """As numpy adds the numbers of a row, 8 to 128 of them."""
    first = (_every(rows, row, 0, num) + _every(rows, row, 1, num)) + (
        _every(rows, row, 2, num) + _every(rows, row, 3, num)
    )
    second = (_every(rows, row, 4, num) + _every(rows, row, 5, num)) + (
        _every(rows, row, 6, num) + _every(rows, row, 7, num)
    )
    total = first + second
    for at in range(num - num % 8, num):
        total += rows[row, at]
    return total


def _every(rows: Numbers, row: int, first: int, num: int) -> float:
    """The sum of every eighth number of a row."""
    total = rows[row, first]
    for at in range(first + 8, num - num % 8, 8):
        total += rows[row, at]
    return total
