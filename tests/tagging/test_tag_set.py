import itertools

import numpy as np
import pytest
from chain_enumeration import TAG_SET_IDS, TAG_SETS, is_valid

from spacy_robust_ner.tagging.tag_set import MISSING_TAG, TagSet
from spacy_robust_ner.tags import decode_tags, encode_tags

GENERAL = {"bio": "iob2", "bioes": "bioes"}


def test_tags_and_types():
    tag_set = TagSet(["PER", "LOC"], scheme="bioes", with_non_entity=True)
    assert tag_set.tags[:5] == ("O", "B-PER", "I-PER", "E-PER", "S-PER")
    assert len(tag_set) == 13
    assert tag_set.tags[-1] == "S-NON"
    assert tag_set.is_entity.tolist() == [False] + [True] * 8 + [False] * 4
    assert len(TagSet(["A", "B", "C", "D"])) == 17
    assert TagSet(["PER"], scheme="bio").tags == ("O", "B-PER", "I-PER")


@pytest.mark.parametrize("tag_set", TAG_SETS, ids=TAG_SET_IDS)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_constraints_agree_with_the_general_decoder(tag_set, length):
    for sequence in itertools.product(range(len(tag_set)), repeat=length):
        allowed = tag_set.allowed_start[sequence[0]] and tag_set.allowed_end[sequence[-1]]
        for pair in itertools.pairwise(sequence):
            allowed = allowed and tag_set.allowed_transitions[pair]
        assert allowed == is_valid(tag_set, sequence)


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_encode_agrees_with_the_general_encoder(scheme):
    tag_set = TagSet(["PER", "LOC"], scheme=scheme)
    spans = [(0, 1, 0), (1, 3, 1), (3, 7, 1), (9, 10, 0)]
    named = [(start, end, tag_set.labels[label]) for start, end, label in spans]
    wanted = encode_tags(named, 12, GENERAL[scheme], missing=[8, 11])
    found = tag_set.encode(spans, 12, missing=[8, 11])
    assert [None if tag == MISSING_TAG else tag_set.tags[tag] for tag in found] == wanted
    assert MISSING_TAG in found


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_decode_agrees_with_the_general_decoder_on_any_tags(scheme):
    tag_set = TagSet(["PER", "LOC"], scheme=scheme)
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 12, size=200)
    tags = rng.integers(0, len(tag_set), size=lengths.sum())
    docs, starts, ends, types = tag_set.decode(tags, lengths)
    n_spans = 0
    for doc, part in enumerate(np.split(tags, np.cumsum(lengths)[:-1])):
        wanted = decode_tags([tag_set.tags[tag] for tag in part], GENERAL[scheme]).spans
        rows = docs == doc
        found = zip(starts[rows], ends[rows], types[rows], strict=True)
        assert [(start, end, tag_set.labels[label]) for start, end, label in found] == wanted
        n_spans += len(wanted)
    assert n_spans == len(docs) > 300


def test_non_entities_decode_to_nothing():
    tag_set = TagSet(["PER"], scheme="bio", with_non_entity=True)
    tags = tag_set.encode([(0, 2, 0), (2, 4, tag_set.non_type), (4, 5, 0)], 6)
    segments = tag_set.decode(tags, np.array([6]))
    assert segments.starts.tolist() == [0, 4]
    assert segments.ends.tolist() == [2, 5]


def test_decode_nothing():
    tag_set = TagSet(["PER"])
    for lengths in (np.zeros(0, dtype=int), np.zeros(2, dtype=int)):
        assert all(len(part) == 0 for part in tag_set.decode(np.zeros(0, dtype=int), lengths))


def test_wrong_settings():
    with pytest.raises(ValueError, match=r"R150.*iob1.*bio, bioes"):
        TagSet(["PER"], scheme="iob1")
    with pytest.raises(ValueError, match=r"R151.*NON"):
        TagSet(["NON"], with_non_entity=True)
    assert TagSet(["NON"]).is_entity.sum() == 4
