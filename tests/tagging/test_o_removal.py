import json

import numpy as np
import pytest
import torch

from spacy_robust_ner.tagging.o_removal import OValueRanking, RemovedTokens, o_values


def ranking_of(*rows):
    ranking = OValueRanking()
    for key, tokens, values in rows:
        ranking.add(key, np.array(tokens), np.array(values))
    return ranking


def places(removed):
    return list(zip(removed.docs.tolist(), removed.tokens.tolist(), strict=True))


def test_o_values_are_the_entry_of_o():
    decisions = torch.tensor([[1.5, 9.0], [-2.0, 0.0]], requires_grad=True)
    assert o_values(decisions).tolist() == [1.5, -2.0]


def test_lowest_of_the_whole_set_in_order():
    ranking = ranking_of((7, [0, 2, 3], [0.5, -1.0, 3.0]), (2, [1, 5], [-2.0, 0.4]))
    assert len(ranking) == 5
    removed = ranking.select(0.5)
    assert places(removed) == [(2, 1), (7, 2), (2, 5)]
    assert removed.values.tolist() == [-2.0, -1.0, 0.4]
    assert removed.n_candidates == 5
    assert len(ranking.select(0.0)) == 0
    assert len(ranking.select(1.0)) == 5
    assert len(ranking.select(1e-6)) == 1


@pytest.mark.parametrize(
    ("share", "m", "wanted"), [(0.1, 31, 4), (0.07, 100, 7), (0.025, 1000, 25)]
)
def test_ceiling(share, m, wanted):
    ranking = ranking_of((0, range(m), np.arange(m)))
    assert len(ranking.select(share)) == wanted


def test_ties_do_not_depend_on_the_order_of_documents():
    rows = [(9, [3, 1], [0.0, 0.0]), (4, [2], [0.0]), (6, [0], [-1.0])]
    wanted = [(6, 0), (4, 2), (9, 1)]
    assert places(ranking_of(*rows).select(0.75)) == wanted
    assert places(ranking_of(*rows[::-1]).select(0.75)) == wanted


def test_lookup_by_document():
    removed = ranking_of((-1, [4, 0], [0.0, 1.0]), (5, [1], [2.0])).select(1.0)
    assert removed.in_doc(-1).tolist() == [0, 4]
    assert removed.in_doc(2**64 - 1).tolist() == [0, 4]
    assert removed.in_doc(3).tolist() == []
    mask = removed.mask([5, 3, -1], [2, 1, 5])
    assert mask.nonzero()[0].tolist() == [1, 3, 7]
    assert not OValueRanking().select(0.5).mask([1], [3]).any()


def test_round_trips():
    removed = ranking_of((2**63 + 5, [4, 0], [1 / 3, -1e-17]), (5, [1], [2.0])).select(1.0)
    lines = list(removed.to_json_lines())
    assert json.loads(lines[1])["rank"] == 1
    with_text = [json.dumps({**json.loads(line), "text": "…"}) for line in lines]
    for other in (
        RemovedTokens.from_json_lines(lines),
        RemovedTokens.from_json_lines(with_text),
        RemovedTokens.from_arrays(removed.to_arrays()),
    ):
        assert other.n_candidates == 3
        for name in ("docs", "tokens", "values"):
            assert np.array_equal(getattr(other, name), getattr(removed, name))
    empty = OValueRanking().select(0.5)
    assert len(RemovedTokens.from_json_lines(empty.to_json_lines())) == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "R154.*Line 1.*empty"),
        (["{}"], "R154.*Line 1.*n_candidates"),
        (['{"n_candidates": 3}', '{"doc": 1}'], "R154.*Line 2.*token"),
        (['{"n_candidates": 3}', "oops"], "R154.*Line 2"),
    ],
)
def test_bad_lines(lines, message):
    with pytest.raises(ValueError, match=message):
        RemovedTokens.from_json_lines(lines)


def test_wrong_share():
    with pytest.raises(ValueError, match=r"R103.*share.*2.5"):
        OValueRanking().select(2.5)
