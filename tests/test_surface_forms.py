import random

import pytest
import spacy
from spacy.tokens import Doc

from spacy_robust_ner.surface_forms import SurfaceForms

VOCAB = spacy.blank("en").vocab


def coverage(docs, **settings):
    forms = SurfaceForms()
    for doc in docs:
        forms.collect(doc)
    for doc in docs:
        forms.search(doc, **settings)
    return forms.coverage()


def name_docs(p_masked, *, as_tag="O", n_docs=2000, n_names=300):
    rng = random.Random(0)
    for _ in range(n_docs):
        name = f"Name{int(n_names * rng.random() ** 2)}"
        tag = as_tag if rng.random() < p_masked else "B-PER"
        yield Doc(VOCAB, words=["we", "met", name], ents=["O", "O", tag])


@pytest.mark.parametrize("p_masked", [0.0, 0.5, 0.8])
def test_coverage_of_labels_that_were_left_out_at_random(p_masked):
    assert coverage(list(name_docs(p_masked))) == pytest.approx(1 - p_masked, abs=0.04)


def test_coverage_by_hand():
    docs = [Doc(VOCAB, words=["Rome"], ents=["B-LOC"])] * 2
    docs += [Doc(VOCAB, words=["Rome"], ents=["O"])]
    docs += [Doc(VOCAB, words=["Oslo"], ents=["B-LOC"])]
    # Of the two labeled Romes, each sees one labeled and one unlabeled other.
    assert coverage(docs) == 0.5
    assert coverage(docs[-1:]) is None
    assert coverage([]) is None


def test_longer_entities_count_as_places_of_the_strings_within():
    rng = random.Random(0)
    docs = []
    for _ in range(3000):
        words = [["Oslo"], ["Bank", "of", "Oslo"]][rng.random() < 0.3]
        labeled = rng.random() < 0.25
        tags = ["B-X", *["I-X"] * (len(words) - 1)] if labeled else ["O"] * len(words)
        docs.append(Doc(VOCAB, words=words, ents=tags))
    assert coverage(docs) == pytest.approx(0.25, abs=0.02)


def test_missing_tokens_count_only_on_demand():
    docs = list(name_docs(0.5, as_tag=""))
    assert coverage(docs) == 1.0
    assert coverage(docs, in_missing=True) == pytest.approx(0.5, abs=0.04)
