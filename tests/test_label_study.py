import random

import pytest
import spacy
from spacy.tokens import Doc

from spacy_robust_ner.label_study import _probability_of_at_most, study_labels

VOCAB = spacy.blank("en").vocab


def sentence(words, tags):
    return Doc(VOCAB, words=words.split(), ents=tags.split())


def corpus(*, p_masked, n_docs=1500, seed=0):
    """Names, some without their labels; a dictionary took "The" for a band."""
    rng = random.Random(seed)
    docs = []
    for i in range(n_docs):
        tag = "O" if rng.random() < p_masked else "B-PER"
        name = f"Name{int(60 * rng.random() ** 2)}"
        if i % 3:
            docs.append(sentence(f"The cat saw the dog and {name}", f"B-ORG O O O O O {tag}"))
        else:
            docs.append(
                sentence(f"Yesterday the cat met {name} in the rain", f"O O O O {tag} O O O")
            )
    return docs


@pytest.mark.parametrize("p_masked", [0.0, 0.4])
def test_ordinary_words_are_doubted_and_names_are_not(p_masked):
    docs = corpus(p_masked=p_masked)
    found = study_labels(docs)
    assert set(found.doubtful) == {("the",)}
    assert found.doubtful[("the",)].labeled == 1000
    names = sum(ent.label_ == "PER" for doc in docs for ent in doc.ents)
    assert found.entities == found.entity_tokens == names
    # 1,000 labeled places of one string would outweigh all names.
    assert found.coverage == pytest.approx(1 - p_masked, abs=0.04)


def test_few_places_are_no_evidence():
    docs = [sentence("May came", "B-PER O"), sentence("you may go", "O O O")]
    assert not study_labels(docs).doubtful


def test_missing_annotation_counts_like_outside():
    labeled = [sentence("The cat", "B-ORG O")] * 5
    unlabeled = [Doc(VOCAB, words=["the", "cat"])] * 200
    named = [sentence("Ada slept", "B-PER O")] * 50
    assert set(study_labels(labeled + unlabeled + named).doubtful) == {("the",)}


def test_nothing_to_study():
    found = study_labels([sentence("no names here", "O O O")])
    assert (found.coverage, found.doubtful, found.entities) == (None, {}, 0)


@pytest.mark.parametrize(
    ("k", "n", "p", "expected"),
    # By hand: (1-p)^n, all but p^n, and 1/4 + 2/4.
    [(0, 3, 0.2, 0.8**3), (2, 3, 0.2, 1 - 0.2**3), (1, 2, 0.5, 0.75), (9, 9, 0.3, 1.0)],
)
def test_lower_tail_of_the_binomial_distribution(k, n, p, expected):
    assert _probability_of_at_most(k, n, p) == pytest.approx(expected)
