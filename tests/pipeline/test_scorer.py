import warnings

import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from span_pipes import NAME, make_examples, make_nlp
from token_pipes import make_token_nlp

from spacy_robust_ner.pipeline.scorer import make_entity_scorer_v1

WORDS = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture(scope="module")
def vocab():
    return make_nlp().vocab


def example_with(vocab, predicted, gold, *, missing=(), predicted_spans=None, gold_spans=None):
    x, y = Doc(vocab, words=WORDS), Doc(vocab, words=WORDS)
    x.set_ents([Span(x, *span) for span in predicted])
    if gold is not None:
        y.set_ents([Span(y, *s) for s in gold], missing=[y[i : i + 1] for i in missing])
    if predicted_spans is not None:
        x.spans["sc"] = [Span(x, *span) for span in predicted_spans]
    if gold_spans is not None:
        y.spans["sc"] = [Span(y, *span) for span in gold_spans]
    return Example(x, y)


def figures(scores, prefix="ents"):
    return tuple(scores[f"{prefix}_{name}"] for name in "prf")


def test_entities_overall_and_by_type(vocab):
    example = example_with(
        vocab, [(0, 1, "A"), (2, 3, "A"), (4, 5, "B")], [(0, 1, "A"), (4, 5, "B"), (5, 6, "B")]
    )
    scores = make_entity_scorer_v1()([example])
    assert figures(scores) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert scores["ents_per_type"]["A"] == pytest.approx({"p": 0.5, "r": 1.0, "f": 2 / 3})
    assert scores["ents_per_type"]["B"] == pytest.approx({"p": 1.0, "r": 0.5, "f": 2 / 3})
    assert not any(key.startswith("spans") for key in scores)


def test_predictions_where_annotation_is_missing_do_not_count(vocab):
    example = example_with(vocab, [(0, 1, "A"), (2, 4, "A")], [(0, 1, "A")], missing=[3])
    assert figures(make_entity_scorer_v1()([example])) == (1.0, 1.0, 1.0)


def test_documents_without_annotation_do_not_count(vocab):
    unknown = example_with(vocab, [(2, 3, "A")], None)
    known = example_with(vocab, [(0, 1, "A")], [(0, 1, "A")])
    assert figures(make_entity_scorer_v1()([unknown, known])) == (1.0, 1.0, 1.0)
    assert figures(make_entity_scorer_v1()([unknown])) == (None, None, None)


def test_annotated_documents_without_entities_do_count(vocab):
    nothing = example_with(vocab, [(2, 3, "A")], [])
    known = example_with(vocab, [(0, 1, "A")], [(0, 1, "A")])
    scores = make_entity_scorer_v1()([nothing, known])
    assert figures(scores) == pytest.approx((0.5, 1.0, 2 / 3))


def test_span_groups_are_compared_with_the_gold_group(vocab):
    nested = [(0, 3, "A"), (0, 1, "B"), (1, 3, "A")]
    example = example_with(
        vocab, [], [], predicted_spans=nested, gold_spans=[(0, 3, "A"), (0, 1, "A")]
    )
    scores = make_entity_scorer_v1(spans_key="sc")([example])
    assert figures(scores, "spans_sc") == pytest.approx((1 / 3, 1 / 2, 0.4))
    assert scores["spans_sc_per_type"]["B"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert scores["spans_sc_per_type"]["A"] == pytest.approx({"p": 0.5, "r": 0.5, "f": 0.5})


def test_span_groups_are_compared_with_entities_where_there_is_no_gold_group(vocab):
    example = example_with(
        vocab,
        [],
        [(0, 1, "A")],
        missing=[3],
        predicted_spans=[(0, 1, "A"), (2, 5, "A"), (4, 5, "A")],
    )
    scores = make_entity_scorer_v1(spans_key="sc")([example])
    assert figures(scores, "spans_sc") == pytest.approx((0.5, 1.0, 2 / 3)), "(2, 5) is not known"


def test_span_groups_without_any_gold_have_no_figures(vocab):
    example = example_with(vocab, [], None, predicted_spans=[(0, 1, "A")])
    scores = make_entity_scorer_v1(spans_key="sc")([example])
    assert figures(scores, "spans_sc") == (None, None, None)
    assert scores["spans_sc_per_type"] is None


def test_spans_are_aligned_to_the_predicted_tokens(vocab):
    x = Doc(vocab, words=["New", "York", "City"], spaces=[True, False, False])
    y = Doc(vocab, words=["New", "YorkCity"], spaces=[True, False])
    y.set_ents([Span(y, 0, 2, "LOC")])
    x.set_ents([Span(x, 0, 3, "LOC")])
    x.spans["sc"] = [Span(x, 0, 3, "LOC")]
    scores = make_entity_scorer_v1(spans_key="sc")([Example(x, y)])
    assert figures(scores) == figures(scores, "spans_sc") == (1.0, 1.0, 1.0)


def test_the_pipe_hands_its_key_to_the_scorer(vocab):
    nlp = make_nlp(spans_key="found")
    pipe = nlp.get_pipe(NAME)
    example = example_with(nlp.vocab, [(0, 1, "A")], [(0, 1, "A")])
    example.predicted.spans["found"] = [Span(example.predicted, 0, 2, "A")]
    scores = pipe.score([example])
    assert figures(scores) == (1.0, 1.0, 1.0)
    assert figures(scores, "spans_found") == (0.0, 0.0, 0.0)


def test_default_score_weights_are_figures_of_the_scorer(vocab):
    nlp = make_nlp()
    weights = nlp.get_pipe_meta(NAME).default_score_weights
    scores = make_entity_scorer_v1()([example_with(vocab, [], [(0, 1, "A")])])
    assert set(weights) <= set(scores)
    assert sum(weight for weight in weights.values() if weight) == 1.0


@pytest.mark.parametrize("make", [make_nlp, make_token_nlp])
def test_score_weights_of_other_annotation_are_worth_a_warning(make):
    nlp = make(annotate_ents=False, spans_key="found")
    examples = make_examples(nlp)
    with pytest.warns(UserWarning, match="spans_found_f = 1.0"):
        nlp.initialize(lambda: examples)

    nlp.config["training"]["score_weights"] = {"spans_found_f": 1.0, "ents_f": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.initialize(lambda: examples)


def test_score_weights_of_entities_need_no_warning():
    nlp = make_nlp(spans_key="found")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.initialize(lambda: make_examples(nlp))
