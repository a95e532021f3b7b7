import math
from collections import Counter
from itertools import accumulate

import numpy as np
import pytest

from spacy_robust_ner.tagging.non_spans import NonSpanSampler
from spacy_robust_ner.tagging.tag_set import MISSING_TAG, TagSet


def draw(sampler, is_free, *, key=0, epoch=0):
    return sampler.draw(np.asarray(is_free), [len(is_free)], keys=[key], epoch=epoch)


def fitting_spans(is_free, max_width):
    n = len(is_free)
    return [
        (start, end)
        for start in range(n)
        for end in range(start + 1, min(start + max_width, n) + 1)
        if all(is_free[start:end])
    ]


def outcome_probabilities(is_free, max_width, wanted):
    """Every set of spans that can be drawn one after another, with its probability."""
    spans = fitting_spans(is_free, max_width)
    if not wanted or not spans:
        return Counter({(): 1.0})
    found = Counter()
    for start, end in spans:
        left = [free and not start <= i < end for i, free in enumerate(is_free)]
        for rest, p in outcome_probabilities(left, max_width, wanted - 1).items():
            found[tuple(sorted([(start, end), *rest]))] += p / len(spans)
    return found


def test_count_width_and_no_overlap():
    sampler = NonSpanSampler(rate=0.3, max_width=4)
    widths = set()
    for key in range(300):
        rng = np.random.default_rng(key)
        is_free = rng.random(30) < 0.9
        spans = draw(sampler, is_free, key=key)
        covered = [i for start, end in spans for i in range(start, end)]
        assert len(covered) == len(set(covered))
        assert is_free[covered].all()
        assert len(spans) <= math.ceil(0.3 * 30)
        widths |= {end - start for start, end in spans}
        # Fewer only where nothing more fits.
        if len(spans) < 9:
            assert is_free.sum() == len(covered)
    assert widths == {1, 2, 3, 4}


@pytest.mark.parametrize(("rate", "length", "wanted"), [(0.1, 31, 4), (0.07, 100, 7), (0, 30, 0)])
def test_ceiling(rate, length, wanted):
    sampler = NonSpanSampler(rate=rate, max_width=2)
    assert len(draw(sampler, np.ones(length, dtype=bool))) == wanted


@pytest.mark.parametrize("wanted", [1, 2, 6])
def test_draws_are_as_likely_as_by_enumeration(wanted):
    """Six are more than fit, so that the last ones are drawn from what is left."""
    is_free = [True, True, False, True, True, True]
    sampler = NonSpanSampler(rate=wanted / 6, max_width=2)
    n_draws = 20_000
    flat = np.tile(is_free, n_draws)
    drawn = sampler.draw(flat, [6] * n_draws, keys=range(n_draws), epoch=0)
    outcomes = [[] for _ in range(n_draws)]
    for start, end in drawn:
        outcomes[start // 6].append((start % 6, end - start + start % 6))
    counts = Counter(tuple(spans) for spans in outcomes)
    expected = outcome_probabilities(is_free, 2, wanted)
    assert set(counts) == set(expected)
    for spans, p in expected.items():
        # Five standard deviations of a binomial.
        assert abs(counts[spans] - n_draws * p) < 5 * math.sqrt(n_draws * p * (1 - p))


def test_a_batch_is_its_documents():
    rng = np.random.default_rng(0)
    lengths = [12, 0, 1, 30, 7]
    sampler = NonSpanSampler(rate=0.4, max_width=5)
    is_free = rng.random(sum(lengths)) < 0.8
    keys = [3, 1, -4, 1, 5]
    together = sampler.draw(is_free, lengths, keys=keys, epoch=2)
    alone = []
    for length, end, key in zip(lengths, accumulate(lengths), keys, strict=True):
        spans = draw(sampler, is_free[end - length : end], key=key, epoch=2)
        alone += [(start + end - length, stop + end - length) for start, stop in spans]
    assert together == alone


def test_depends_on_seed_epoch_and_document_alone():
    is_free = np.ones(40, dtype=bool)
    draws = {
        tuple(draw(NonSpanSampler(rate=0.2, seed=seed), is_free, key=key, epoch=epoch))
        for seed, epoch, key in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -5)]
    }
    assert len(draws) == 5
    sampler = NonSpanSampler(rate=0.2)
    first = draw(sampler, is_free, key=-5, epoch=3)
    draw(sampler, is_free, key=6, epoch=3)
    assert draw(sampler, is_free, key=-5, epoch=3) == first


def test_tags():
    tag_set = TagSet(["PER"], scheme="bioes", with_non_entity=True)
    tags = tag_set.encode([(3, 5, 0)], 12, missing=[8])
    removed = np.arange(12) == 6
    sampler = NonSpanSampler(rate=1.0, max_width=3)
    before = tags.copy()
    found = sampler.apply(tags, removed, [12], tag_set, keys=[0], epoch=0)
    assert np.array_equal(tags, before)
    assert found[3:5].tolist() == tags[3:5].tolist()
    assert (found[6], found[8]) == (0, MISSING_TAG)
    # With so high a rate every free token is covered.
    names = [tag_set.tags[tag] for tag in np.delete(found, [3, 4, 6, 8])]
    assert all(name.endswith("-NON") for name in names)
    spans = tag_set.decode(np.where(found == MISSING_TAG, 0, found), np.array([12]))
    assert (spans.starts.tolist(), spans.ends.tolist()) == ([3], [5])


def test_nothing_to_draw_from():
    sampler = NonSpanSampler(rate=0.5)
    assert draw(sampler, np.zeros(5, dtype=bool)) == []
    assert draw(sampler, np.zeros(0, dtype=bool)) == []
    assert sampler.draw(np.zeros(0, dtype=bool), [], keys=[], epoch=0) == []


def test_wrong_settings():
    with pytest.raises(ValueError, match=r"R103.*rate.*-1"):
        NonSpanSampler(rate=-1)
    with pytest.raises(ValueError, match=r"R103.*max_width.*0"):
        NonSpanSampler(max_width=0)
    with pytest.raises(ValueError, match=r"R104.*with_non_entity"):
        NonSpanSampler().apply(
            np.zeros(3, dtype=int), None, [3], TagSet(["PER"]), keys=[0], epoch=0
        )
