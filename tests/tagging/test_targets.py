import itertools

import numpy as np
import pytest
import torch
from chain_enumeration import BIO, BIOES, enumerate_sequences

from spacy_robust_ner.tagging.tag_set import MISSING_TAG, TagSet
from spacy_robust_ner.tagging.targets import allowed_tags, doubtful_tokens, fuzzy_tags, known_tags
from spacy_robust_ner.tagging.types import TokenBatch


def batch_of(tags, lengths, **extra):
    tags = torch.tensor(tags)
    return TokenBatch(torch.zeros(len(tags), 5), torch.tensor(lengths), tags, **extra)


def test_known_tags():
    batch = batch_of(
        [1, 0, -1, 0, 2, 0],
        [4, 2],
        removed=torch.tensor([False, True, False, False, False, True]),
        complete=torch.tensor([False, True]),
    )
    cases = {
        (False, False): [1, 0, -1, 0, 2, 0],
        (True, False): [1, -1, -1, -1, 2, 0],
        (False, True): [1, -1, -1, 0, 2, -1],
        (True, True): [1, -1, -1, -1, 2, -1],
    }
    for (unknown_outside, drop_removed), wanted in cases.items():
        found = known_tags(batch, unknown_outside=unknown_outside, drop_removed=drop_removed)
        assert found.tolist() == wanted
    nobody_said = batch_of([1, 0], [2])
    assert known_tags(nobody_said, unknown_outside=True, drop_removed=True).tolist() == [1, -1]


@pytest.mark.parametrize(("tag_set", "wanted"), [(BIO, 33), (BIOES, 10)], ids=["bio", "bioes"])
def test_agreeing_sequences_are_those_that_keep_the_annotated_entities(tag_set, wanted):
    """By enumeration: the entity at tokens 1 and 2 is known, the rest is not."""
    known = torch.from_numpy(tag_set.encode([(1, 3, 0)], 5, missing=[0, 3, 4]))
    allowed = allowed_tags(known, torch.tensor([5]), tag_set)
    n_agreeing = 0
    for sequence in enumerate_sequences(tag_set, 5):
        segments = tag_set.decode(np.array(sequence), np.array([5]))
        keeps_entity = (1, 3, 0) in zip(*(part.tolist() for part in segments[1:]), strict=True)
        agrees = all(allowed[i, tag] for i, tag in enumerate(sequence))
        assert agrees == keeps_entity
        n_agreeing += agrees
    assert n_agreeing == wanted


def test_only_the_next_token_of_the_same_document_is_held_back():
    inside = BIO.tags.index("I-PER")
    known = torch.tensor([BIO.tags.index("B-PER"), MISSING_TAG, MISSING_TAG, MISSING_TAG])
    one_doc = allowed_tags(known, torch.tensor([4]), BIO)
    assert one_doc[:, inside].tolist() == [False, False, True, True]
    assert one_doc[1].sum() == len(BIO) - 1
    two_docs = allowed_tags(known, torch.tensor([1, 3]), BIO)
    assert two_docs[1:].all()


def test_known_tokens_have_one_tag():
    known = torch.tensor([0, 2, MISSING_TAG, 1])
    allowed = allowed_tags(known, torch.tensor([2, 2]), BIOES)
    assert allowed.sum(1).tolist() == [1, 1, len(BIOES), 1]
    assert allowed[[0, 1, 3], [0, 2, 1]].all()


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_fuzzy_tags_allow_what_the_dictionaries_say(scheme):
    tag_set = TagSet(["PER", "LOC"], scheme=scheme)
    allowed = fuzzy_tags(5, [(0, 2, [0, 1])], [(1, 3)], tag_set)
    found = set()
    for sequence in enumerate_sequences(tag_set, 5):
        if all(allowed[i, tag] for i, tag in enumerate(sequence)):
            segments = tag_set.decode(np.array(sequence), np.array([5]))
            found.add(tuple(zip(*(part.tolist() for part in segments[1:]), strict=True)))
    # The match is an entity of either type; the phrase's other token is one of either, or none.
    wanted = {
        ((0, 2, first), *rest)
        for first, rest in itertools.product((0, 1), ([], [(2, 3, 0)], [(2, 3, 1)]))
    }
    assert found == wanted


def test_fuzzy_tags_refuse_overlapping_matches():
    with pytest.raises(ValueError, match=r"R155.*\(0, 2\).*\(1, 3\)"):
        fuzzy_tags(4, [(1, 3, [0]), (0, 2, [1])], [], BIO)


def test_trusted_tokens_of_incomplete_documents_are_known():
    tags, lengths = [0, 0, 1, 2, 0, 0, -1], [2, 5]
    complete = torch.tensor([True, False])
    trusted = torch.tensor([False, False, False, False, True, False, False])
    batch = batch_of(tags, lengths, complete=complete, trusted=trusted)
    assert doubtful_tokens(batch).tolist() == [False, False, True, True, False, True, True]
    known = known_tags(batch, unknown_outside=True, drop_removed=True)
    assert known.tolist() == [0, 0, 1, 2, 0, MISSING_TAG, MISSING_TAG]
    batch = batch_of(tags, lengths, complete=complete)
    known = known_tags(batch, unknown_outside=True, drop_removed=True)
    assert known.tolist() == [0, 0, 1, 2, MISSING_TAG, MISSING_TAG, MISSING_TAG]
