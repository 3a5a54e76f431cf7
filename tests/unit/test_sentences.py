"""Sentences with their places, in linear time."""

from htfi.narrative.facts.sentences import sentence_at, split_sentences


def texts(text: str) -> list[str]:
    return [one.text for one in split_sentences(text)]


def test_initials_abbreviations_and_numbers_do_not_end_a_sentence():
    found = texts(
        "Voting for were Jerome H. Powell, Chair; J. Alfred Broaddus, Jr. and others at 2 p.m. today. Rates rose 1.25 "
        "percent. St. Louis agreed."
    )
    assert found == [
        "Voting for were Jerome H. Powell, Chair; J. Alfred Broaddus, Jr. and others at 2 p.m. today.",
        "Rates rose 1.25 percent.",
        "St. Louis agreed.",
    ]


def test_line_ends_join_and_blank_lines_and_list_marks_part():
    assert texts("The Committee\ndecided today\n\nA title\n* one thing\n* another\n  thing.") == [
        "The Committee decided today",
        "A title",
        "* one thing",
        "* another thing.",
    ]


def test_places_lead_back_to_the_text():
    text = "First one.  Second\none! Third?"
    for one in split_sentences(text):
        assert " ".join(text[one.start : one.end].split()) == one.text
    sentences = split_sentences(text)
    assert [sentence_at(sentences, text.index(word)) for word in ("First", "one!", "Third")] == [0, 1, 2]


def test_stops_of_other_scripts_end_sentences():
    assert texts("央行决定降息。市场上涨。") == ["央行决定降息。", "市场上涨。"]


def test_nothing_gives_nothing():
    assert texts("") == texts(" \n\n \t") == []
