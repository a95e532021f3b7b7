import numpy as np
import pytest
from spacy.tokens import Doc, Span
from span_pipes import NAME, make_examples, make_nlp, scored_ents, spans_of, train

from spacy_robust_ner.decoding import ScoredSpans
from spacy_robust_ner.pipeline.writing import write_entities, write_spans

LABELS = ("O", "A", "B")
FOUND = [(0, 4, 1, 0.9), (0, 2, 2, 0.8), (1, 5, 1, 0.7), (4, 6, 2, 0.6), (6, 7, 1, 0.5)]


@pytest.fixture
def doc():
    return Doc(make_nlp().vocab, words=[f"w{i}" for i in range(8)])


def scored(rows):
    starts, ends, labels, scores = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return ScoredSpans(
        starts.astype(np.int64),
        ends.astype(np.int64),
        labels.astype(np.int64),
        scores.astype(np.float32),
    )


def rounded(ents):
    return [(start, end, label, round(score, 4)) for start, end, label, score in ents]


def test_entities_do_not_overlap_and_carry_their_score(doc):
    write_entities(doc, scored(FOUND), LABELS)
    assert rounded(scored_ents(doc)) == [(0, 4, "A", 0.9), (4, 6, "B", 0.6), (6, 7, "A", 0.5)]
    assert [token.ent_iob_ for token in doc] == list("BIIIBIBO")
    assert all(isinstance(ent._.entity_score, float) for ent in doc.ents)


def test_earlier_entities_stay_and_gaps_are_filled(doc):
    doc.ents = [Span(doc, 3, 5, "EARLIER")]
    write_entities(doc, scored(FOUND), LABELS)
    assert spans_of(doc.ents) == [(0, 2, "B"), (3, 5, "EARLIER"), (6, 7, "A")]
    assert [ent._.entity_score is None for ent in doc.ents] == [False, True, False]


def test_earlier_entities_can_be_overwritten(doc):
    doc.ents = [Span(doc, 3, 5, "EARLIER"), Span(doc, 7, 8, "EARLIER")]
    write_entities(doc, scored(FOUND), LABELS, overwrite=True)
    assert spans_of(doc.ents) == [(0, 4, "A"), (4, 6, "B"), (6, 7, "A")]


def test_nothing_found_is_no_missing_annotation(doc):
    write_entities(doc, scored([]), LABELS)
    assert doc.ents == ()
    assert doc.has_annotation("ENT_IOB")


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("flat", [(0, 4, "A", 0.9), (4, 6, "B", 0.6), (6, 7, "A", 0.5)]),
        ("nested", [(0, 2, "B", 0.8), (0, 4, "A", 0.9), (4, 6, "B", 0.6), (6, 7, "A", 0.5)]),
        (
            "all",
            [
                (0, 2, "B", 0.8),
                (0, 4, "A", 0.9),
                (1, 5, "A", 0.7),
                (4, 6, "B", 0.6),
                (6, 7, "A", 0.5),
            ],
        ),
    ],
)
def test_span_groups_keep_the_overlaps_of_the_setting(doc, overlap, expected):
    write_spans(doc, scored(FOUND), LABELS, key="sc", overlap=overlap)
    group = doc.spans["sc"]
    scores = group.attrs["scores"]
    assert scores.dtype == np.float32
    found = [(*s, x) for s, x in zip(spans_of(group), scores.tolist(), strict=True)]
    assert rounded(found) == expected
    assert doc.ents == ()
    copy = Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert spans_of(copy.spans["sc"]) == spans_of(group)
    assert np.array_equal(copy.spans["sc"].attrs["scores"], scores)


@pytest.mark.parametrize("annotate_ents", [True, False])
def test_pipe_writes_what_it_is_told(annotate_ents):
    nlp = make_nlp(annotate_ents=annotate_ents, spans_key="sc", spans_overlap="all")
    examples = make_examples(nlp)
    train(nlp, examples, steps=40)
    doc = nlp(examples[0].text)
    expected = spans_of(examples[0].reference.ents)
    assert spans_of(doc.spans["sc"]) == expected
    assert spans_of(doc.ents) == (expected if annotate_ents else [])
    assert len(doc.spans["sc"].attrs["scores"]) == len(expected)
    scores = nlp.evaluate(examples)
    assert scores["spans_sc_f"] == 1.0
    nlp.get_pipe(NAME).threshold = 0.0
    doc = nlp(examples[0].text)
    n = len(doc)
    assert len(doc.spans["sc"]) == n * (n + 1) // 2


def test_a_second_pass_leaves_no_scores_of_the_first(doc):
    write_entities(doc, scored([(0, 2, 1, 0.9)]), LABELS)
    write_entities(doc, scored([(0, 3, 1, 0.8)]), LABELS, overwrite=True)
    assert rounded(scored_ents(doc)) == [(0, 3, "A", 0.8)]
    assert doc[0:2]._.entity_score is None
