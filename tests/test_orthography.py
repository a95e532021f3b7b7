import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_robust_ner.orthography import OrthographyStudy, in_places, places_of, writing_of

NLP = spacy.blank("xx")


def doc_of(text, tags=None):
    words = text.split()
    return Doc(NLP.vocab, words=words, ents=tags.split() if tags else None)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Ada", "X"),
        ("BBC", "X"),
        ("iPhone", "X"),
        ("A380", "X"),
        ("ada", "x"),
        ("1990s", "x"),
        ("'s", "x"),
        ("北京", "a"),
        ("1996-08-22", "d"),
        ("٣", "d"),
        (",", "."),
        ("&", "."),
        (" ", "."),
        ("", "."),
    ],
)
def test_writing_of(word, expected):
    assert writing_of(word) == expected


def test_a_place_is_the_writing_of_a_token_and_its_neighbours():
    assert places_of(doc_of("In 1996 , Ada slept")) == ["^Xd", "Xd.", "d.X", ".Xx", "Xx$"]
    assert places_of(doc_of("Ada")) == ["^X$"]
    assert places_of(Doc(NLP.vocab)) == []


def study_of(docs):
    study = OrthographyStudy()
    for doc in docs:
        study.add(doc)
    return study


def test_places_without_labels_are_outside():
    labeled = doc_of("we met Ada last week", "O O B-PER O O")
    unlabeled = doc_of("we met Eve last week", "O O O O O")
    study = study_of([labeled] * 100 + [unlabeled] * 100)
    assert study.tokens == 1000
    assert study.outside_places(0.5) == {"^xx": 200, "xxX": 200, "Xxx": 200, "xx$": 200}


ENGLISH = [
    doc_of("we met Ada last week", "O O B-PER O O"),
    doc_of("we met Eve last week", "O O O O O"),
    doc_of("then the Senate met", "O O O O"),
]
GERMAN = [
    doc_of("die Frau sah Ada im Garten", "O O O B-PER O O"),
    doc_of("der Hund schlief in der Hütte", "O O O O O O"),
    doc_of("am Abend kam der Regen und blieb bis zum Morgen", "O O O O O O O O O O"),
]


@pytest.mark.parametrize(
    ("docs", "coverage", "expected"),
    [
        (ENGLISH, 0.5, True),
        (ENGLISH, 1.0, True),
        (GERMAN, 0.5, False),
        (GERMAN, 1.0, False),
    ],
)
def test_capitals_that_all_nouns_have_mark_no_names(docs, coverage, expected):
    assert study_of(docs * 50).capitals_mark_names(coverage) is expected


def test_capitals_at_the_start_of_a_sentence_say_nothing_either_way():
    starts = [doc_of("Yesterday . Then . We slept", "O O O O O O")] * 50
    assert study_of(starts + ENGLISH * 5).capitals_mark_names(1.0)
    assert study_of([]).capitals_mark_names(1.0)


def test_the_share_of_entities_counts_and_not_that_of_labels():
    docs = [doc_of("we met today", "B-PER O O")] + [doc_of("we met today", "O O O")] * 299
    # Of 300 places "^xx", 1 label and one more to be careful: 0.7%, or 3.3% if 4 of 5 are missing.
    assert "^xx" in study_of(docs).outside_places(1.0)
    assert "^xx" not in study_of(docs).outside_places(0.2)
    assert "xxx" in study_of(docs).outside_places(0.2)


def test_rare_places_tell_nothing():
    assert study_of([doc_of("we met", "O O")] * 20).outside_places(1.0) == {}


def test_tokens_without_annotation_tell_nothing():
    missing = doc_of("we met")
    assert missing[0].ent_iob_ == ""
    study = study_of([missing] * 1000)
    assert (study.tokens, study.outside_places(1.0)) == (0, {})


def test_scripts_without_case_have_one_kind_of_place_between_words():
    """It has labels, so that only the first and the last word of a document are told apart."""
    docs = [doc_of("我 在 北京 城 里", "O O B-LOC O O")] * 500
    assert study_of(docs).outside_places(1.0) == {"^aa": 500, "aa$": 500}


def test_in_places():
    found = in_places(doc_of("we met Ada ."), frozenset({"^xx", "X.$"}))
    np.testing.assert_array_equal(found, [True, False, False, True])
    assert in_places(Doc(NLP.vocab), frozenset()).shape == (0,)
