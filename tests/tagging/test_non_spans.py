import math
from collections import Counter

import numpy as np
import pytest

from spacy_robust_ner.tagging.non_spans import NonSpanSampler
from spacy_robust_ner.tagging.tag_set import MISSING_TAG, TagSet


def test_count_width_and_no_overlap():
    sampler = NonSpanSampler(rate=0.3, max_width=4)
    widths = set()
    for key in range(300):
        rng = np.random.default_rng(key)
        is_free = rng.random(30) < 0.9
        spans = sampler.draw(is_free, key=key, epoch=0)
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
    assert len(sampler.draw(np.ones(length, dtype=bool), key=1, epoch=0)) == wanted


def test_first_span_is_uniform_over_all_candidates():
    sampler = NonSpanSampler(rate=0.2, max_width=2)
    is_free = np.array([True, True, False, True, True])
    drawn = Counter(sampler.draw(is_free, key=key, epoch=0)[0] for key in range(6000))
    assert set(drawn) == {(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)}
    # Five standard deviations of a binomial with n = 6000, p = 1/6.
    assert all(abs(count - 1000) < 145 for count in drawn.values())


def test_depends_on_seed_epoch_and_document_alone():
    is_free = np.ones(40, dtype=bool)
    draws = {
        tuple(NonSpanSampler(rate=0.2, seed=seed).draw(is_free, key=key, epoch=epoch))
        for seed, epoch, key in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -5)]
    }
    assert len(draws) == 5
    sampler = NonSpanSampler(rate=0.2)
    first = sampler.draw(is_free, key=-5, epoch=3)
    sampler.draw(is_free, key=6, epoch=3)
    assert sampler.draw(is_free, key=-5, epoch=3) == first


def test_tags():
    tag_set = TagSet(["PER"], scheme="bioes", with_non_entity=True)
    tags = tag_set.encode([(3, 5, 0)], 12, missing=[8])
    removed = np.array([6])
    sampler = NonSpanSampler(rate=1.0, max_width=3)
    before = tags.copy()
    found = sampler.apply(tags, removed, tag_set, key=0, epoch=0)
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
    assert sampler.draw(np.zeros(5, dtype=bool), key=0, epoch=0) == []
    assert sampler.draw(np.zeros(0, dtype=bool), key=0, epoch=0) == []


def test_wrong_settings():
    with pytest.raises(ValueError, match=r"R103.*rate.*-1"):
        NonSpanSampler(rate=-1)
    with pytest.raises(ValueError, match=r"R103.*max_width.*0"):
        NonSpanSampler(max_width=0)
    with pytest.raises(ValueError, match=r"R104.*with_non_entity"):
        NonSpanSampler().apply(
            np.zeros(3, dtype=int), np.zeros(0, dtype=int), TagSet(["PER"]), key=0, epoch=0
        )
