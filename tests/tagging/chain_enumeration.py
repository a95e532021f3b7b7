"""All tag sequences of small chains, one by one: what the fast algorithms are compared with."""

import itertools
from functools import cache

import torch

from spacy_robust_ner.tagging.crf import CRF
from spacy_robust_ner.tagging.tag_set import TagSet
from spacy_robust_ner.tags import decode_tags


def random_crf(tag_set, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    crf = CRF(tag_set).to(dtype)
    for parameter in crf.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=dtype)
    return crf


def random_emissions(lengths, n_tags, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1000 + seed)
    shape = (len(lengths), max(lengths, default=0), n_tags)
    return 2 * torch.randn(shape, generator=generator, dtype=dtype)


def is_valid(tag_set, sequence):
    """Whether the scheme allows a sequence, read off its tags by the general decoder."""
    scheme = {"bio": "iob2", "bioes": "bioes"}[tag_set.scheme]
    return not decode_tags([tag_set.tags[tag] for tag in sequence], scheme).irregular


@cache
def enumerate_sequences(tag_set, length):
    return [
        sequence
        for sequence in itertools.product(range(len(tag_set)), repeat=length)
        if is_valid(tag_set, sequence)
    ]


def sequence_scores(crf, emissions, sequences, *, skip=(), log_weights=None):
    """The scores of sequences by their definition. emissions: (tokens, tags)."""
    totals = emissions.new_zeros(len(sequences))
    tags = torch.tensor(sequences, dtype=torch.long).reshape(len(sequences), -1)
    n_tokens = tags.shape[1]
    for i in range(n_tokens):
        totals = totals + emissions[i, tags[:, i]]
        if log_weights is not None:
            totals = totals + log_weights[i, tags[:, i]]
        if i not in skip:
            first = crf.start[tags[:, i]]
            totals = totals + (crf.transitions[tags[:, i - 1], tags[:, i]] if i else first)
    return totals + crf.end[tags[:, -1]] if n_tokens else totals


def enumerated_scores(crf, emissions, *, allowed=None, skip=(), log_weights=None):
    """All sequences of a document that agree with what is known, and their scores."""
    sequences = [
        sequence
        for sequence in enumerate_sequences(crf.tag_set, len(emissions))
        if allowed is None or all(allowed[i][tag] for i, tag in enumerate(sequence))
    ]
    return sequences, sequence_scores(crf, emissions, sequences, skip=skip, log_weights=log_weights)


BIO = TagSet(["PER", "LOC"], scheme="bio")
BIOES = TagSet(["PER"], scheme="bioes")
BIO_NON = TagSet(["PER"], scheme="bio", with_non_entity=True)
TAG_SETS = [BIO, BIOES, BIO_NON]
TAG_SET_IDS = ["bio", "bioes", "bio-non"]
