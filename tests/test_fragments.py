import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_robust_ner.fragments import FragmentCount, find_fragments, is_capitalized

NLP = spacy.blank("en")


def labeled_doc(text):
    """A document whose labels are in brackets: "[Jean] Dupont"."""
    words, bounds = [], []
    for chunk in text.split():
        if chunk.startswith("["):
            bounds.append([len(words), None])
        words.append(chunk.strip("[]"))
        if chunk.endswith("]"):
            bounds[-1][1] = len(words)
    doc = Doc(NLP.vocab, words=words)
    doc.ents = [Span(doc, start, end, "PER") for start, end in bounds]
    return doc


def fragments_of(text):
    doc = labeled_doc(text)
    return find_fragments(doc, [(ent.start, ent.end) for ent in doc.ents])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met [Jean] Dupont today", [True]),
        ("we met Jean [Dupont] today", [True]),
        ("we met [Jean Dupont] today", [False]),
        ("we met [Gerald] A. [Daniel] today", [True, True]),
        ("we met [Basil] McDonald", [True]),
        ("[Jean] Dupont came", [True]),
        # Both have a label of their own.
        ("we met [American] [Malivai Washington] today", [False, False]),
        # The capital letter may come from the place in the sentence.
        ("Former [Washington] aides", [False]),
        ("It ended . Former [Washington] aides", [False]),
        ("he said : Former [Washington] aides", [False]),
        ("he said , Former [Washington] aides", [True]),
        # Headlines tell nothing, nor do numbers.
        ("[JAPAN] GET LUCKY WIN", [False]),
        ("the [Formula] 3 cars", [False]),
        ("a [Boeing] A380", [False]),
        # A label that is not written like a name is no part of one.
        ("the [president] Obama", [False]),
        ("she asked [Jean] about it", [False]),
        ("[Jean]", [False]),
    ],
)
def test_find_fragments(text, expected):
    assert fragments_of(text) == expected


def test_no_labels():
    assert find_fragments(labeled_doc("Jean Dupont"), []) == []
    assert find_fragments(Doc(NLP.vocab), []) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Dupont", True),
        ("McDonald", True),
        ("J.", True),
        ("Ärzte", True),
        ("dupont", False),
        ("BBC", False),
        ("U.S.", False),
        ("B2B", False),
        (",", False),
        ("北京", False),
    ],
)
def test_is_capitalized(word, expected):
    assert is_capitalized(word) is expected


def test_count_keeps_the_first_examples():
    count = FragmentCount()
    count.add(labeled_doc("we met [Jean] Dupont and [Ada] today"))
    assert (count.labels, count.examples) == (1, ["met [Jean] Dupont"])
    for _ in range(100):
        count.add(labeled_doc("[Jean] Dupont"))
    assert count.labels == 101
    assert len(count.examples) == 20
    assert count.examples[1] == "[Jean] Dupont"
