import numpy as np
import pytest
import torch
from chain_enumeration import TAG_SET_IDS, TAG_SETS, enumerate_sequences, random_crf

from spacy_robust_ner.tagging.confidence import softmax_segment_log_probs
from spacy_robust_ner.tagging.padding import pad
from spacy_robust_ner.tagging.viterbi import scheme_chain, viterbi


@pytest.mark.parametrize("tag_set", TAG_SETS, ids=TAG_SET_IDS)
def test_softmax_product(tag_set):
    lengths = torch.tensor([4, 0, 2])
    emissions = torch.randn(6, len(tag_set), dtype=torch.float64)
    spans = [(0, 0, 1, 0), (0, 0, 4, 0), (0, 1, 3, 0), (0, 1, 4, 0), (2, 1, 2, 0), (2, 0, 2, 0)]
    docs, starts, ends, types = torch.tensor(spans).unbind(1)
    found = softmax_segment_log_probs(
        emissions, lengths, tag_set, docs=docs, starts=starts, ends=ends, types=types
    )
    probs = emissions.softmax(1)
    for value, (doc, start, end, label) in zip(found.exp().tolist(), spans, strict=True):
        tags = tag_set.encode([(start, end, label)], 4)
        offset = [0, 4, 4][doc]
        wanted = np.prod([float(probs[offset + i, tags[i]]) for i in range(start, end)])
        assert value == pytest.approx(wanted)


@pytest.mark.parametrize("tag_set", TAG_SETS, ids=TAG_SET_IDS)
def test_no_segments(tag_set):
    none = torch.zeros(0, dtype=torch.long)
    where = {"docs": none, "starts": none, "ends": none, "types": none}
    lengths = torch.tensor([3])
    emissions = torch.randn(3, len(tag_set))
    assert softmax_segment_log_probs(emissions, lengths, tag_set, **where).shape == (0,)
    crf = random_crf(tag_set)
    assert crf.segment_log_probs(emissions.unsqueeze(0), lengths, **where).shape == (0,)


@pytest.mark.parametrize("tag_set", TAG_SETS, ids=TAG_SET_IDS)
def test_tags_without_crf_are_the_most_probable_that_are_in_order(tag_set):
    emissions = torch.randn(4, len(tag_set), dtype=torch.float64)
    tags, _ = viterbi(pad(emissions, torch.tensor([4])), torch.tensor([4]), scheme_chain(tag_set))
    log_probs = emissions.log_softmax(1)
    best = max(
        enumerate_sequences(tag_set, 4),
        key=lambda sequence: sum(float(log_probs[i, tag]) for i, tag in enumerate(sequence)),
    )
    assert tuple(tags[0].tolist()) == best
