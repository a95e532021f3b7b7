"""Small annotated batches for the tests of token losses."""

import torch

from spacy_robust_ner.tagging.tag_set import MISSING_TAG
from spacy_robust_ner.tagging.types import TokenBatch

# An entity of two tokens, then O; nothing; a single O; an entity at the end.
DOCS = [(4, [(0, 2, 0)]), (0, []), (1, []), (3, [(2, 3, 0)])]
ONE_DOC = DOCS[:1]


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def make_batch(tag_set, docs=DOCS, *, missing=(), removed=(), complete=None, **extra):
    """missing and removed: rows of the flat batch."""
    lengths = torch.tensor([length for length, _ in docs])
    tags = torch.cat([torch.from_numpy(tag_set.encode(spans, n)) for n, spans in docs])
    tags[list(missing)] = MISSING_TAG
    generator = torch.Generator().manual_seed(7)
    emissions = torch.randn(len(tags), len(tag_set), generator=generator, dtype=torch.float64)
    is_removed = torch.zeros(len(tags), dtype=torch.bool)
    is_removed[list(removed)] = True
    return TokenBatch(
        emissions=emissions.requires_grad_(),
        lengths=lengths,
        tags=tags,
        removed=is_removed if removed else None,
        complete=None if complete is None else torch.tensor(complete),
        **extra,
    )


def with_emissions(batch, emissions):
    return TokenBatch(**{**vars(batch), "emissions": emissions})


def split(batch, values):
    return values.split(batch.lengths.tolist())
