"""What the span component learns from: alignment, missing tokens, flags, rejected spans."""

import numpy as np
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from span_pipes import NAME, example_of, make_nlp, misc

from spacy_robust_ner.annotation import REJECTED_SPANS_KEY, set_complete
from spacy_robust_ner.pipeline.targets import TargetReader

WORDS = ["Ada", "Lovelace", "and", "Grace", "Hopper", "met", "in", "Paris", "."]
ADA, GRACE = (0, 2, "PER"), (3, 5, "PER")


def targets_of(example, *, default_complete=False):
    return TargetReader(default_complete=default_complete)(example)


def negatives_of(example, *, steps=1, **settings):
    """All spans that training took as negatives, and the counters of the last step."""
    nlp = make_nlp(**settings)
    nlp.initialize(lambda: [example_of(nlp, WORDS, [ADA])])
    pipe, seen = nlp.get_pipe(NAME), set()

    def observe(doc_keys, doc_index, starts, ends):
        assert set(doc_index.tolist()) <= {0}
        seen.update(zip(starts.tolist(), ends.tolist(), strict=True))

    pipe.sample_observer = observe
    for _ in range(steps):
        losses = nlp.update([example], sgd=False)
    return seen, losses


def every_span(n, max_width=10):
    return {(s, e) for s in range(n) for e in range(s + 1, min(n, s + max_width) + 1)}


@pytest.fixture(scope="module")
def nlp():
    return make_nlp()


SAMPLERS = [
    misc("AllSampler"),
    misc("UniformSampler", rate=2.0),
    misc("WeightedSampler", rate=2.0),
    misc("TopSimilaritySampler", share=0.5),
    misc("FractionSampler", share=0.5, each_epoch=True),
]


def test_annotation_of_the_same_tokens(nlp):
    example = example_of(nlp, WORDS, [ADA], missing=[3, 4], complete=True, rejected=[(5, 7, "LOC")])
    targets = targets_of(example)
    assert targets.entities == [ADA]
    assert targets.rejected == [(5, 7, "LOC")]
    assert np.flatnonzero(targets.missing).tolist() == [3, 4]
    assert targets.complete


@pytest.mark.parametrize("default", [True, False])
def test_documents_without_a_flag_count_as_the_setting_says(nlp, default):
    assert targets_of(example_of(nlp, WORDS), default_complete=default).complete == default
    stated = example_of(nlp, WORDS, complete=not default)
    assert targets_of(stated, default_complete=default).complete != default


def test_a_document_without_annotation_is_all_missing(nlp):
    doc = Doc(nlp.vocab, words=WORDS)
    assert targets_of(Example(Doc(nlp.vocab, words=WORDS), doc)).missing.all()


def misaligned(nlp, predicted_words, reference_words, ents=()):
    """An example of one text in two tokenizations; the reference has words with "+" glued on."""
    words = [word.lstrip("+") for word in reference_words]
    spaces = [not word.startswith("+") for word in reference_words[1:]] + [False]
    reference = Doc(nlp.vocab, words=words, spaces=spaces)
    reference.set_ents([Span(reference, *ent) for ent in ents])
    words = [word.lstrip("+") for word in predicted_words]
    spaces = [not word.startswith("+") for word in predicted_words[1:]] + [False]
    predicted = Doc(nlp.vocab, words=words, spaces=spaces)
    assert predicted.text == reference.text
    return Example(predicted, reference)


def test_entities_are_aligned_to_the_predicted_tokens(nlp):
    example = misaligned(
        nlp,
        ["A", "+da", "lives", "in", "New", "York"],
        ["Ada", "lives", "in", "New", "York"],
        [(0, 1, "PER"), (3, 5, "LOC")],
    )
    targets = targets_of(example)
    assert targets.entities == [(0, 2, "PER"), (4, 6, "LOC")]
    assert not targets.missing.any()


def test_an_entity_that_no_tokens_make_up_is_missing(nlp):
    example = misaligned(
        nlp,
        ["Ada", "in", "New", "York-based"],
        ["Ada", "in", "New", "York", "+-based"],
        [(0, 1, "PER"), (2, 4, "LOC")],
    )
    targets = targets_of(example)
    assert targets.entities == [(0, 1, "PER")]
    assert np.flatnonzero(targets.missing).tolist() == [2, 3]


def test_rejected_spans_are_aligned_too(nlp):
    example = misaligned(nlp, ["A", "+da", "met", "Paris"], ["Ada", "met", "Paris"])
    reference = example.reference
    reference.spans[REJECTED_SPANS_KEY] = [Span(reference, 0, 1, "PER"), Span(reference, 0, 2)]
    assert targets_of(example).rejected == [(0, 2, "PER"), (0, 3, "")]


def test_flag_of_a_misaligned_document_counts(nlp):
    example = misaligned(nlp, ["A", "+da"], ["Ada"])
    set_complete(example.reference, True)
    assert targets_of(example).complete


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: s["@misc"])
def test_no_span_that_touches_a_missing_token_is_a_negative(nlp, sampler):
    example = example_of(nlp, WORDS, [ADA], missing=[3, 4])
    seen, losses = negatives_of(example, steps=5, sampler=sampler)
    allowed = {(s, e) for s, e in every_span(9) if not (s <= 4 and e > 3)} - {(0, 2)}
    assert seen
    assert seen <= allowed
    assert losses[f"{NAME}_positives"] == 1
    if sampler == SAMPLERS[0]:
        assert seen == allowed


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: s["@misc"])
def test_no_labeled_span_is_a_negative(nlp, sampler):
    example = example_of(nlp, WORDS, [ADA, GRACE])
    seen, _ = negatives_of(example, steps=5, sampler=sampler)
    assert seen
    assert seen <= every_span(9) - {(0, 2), (3, 5)}


NOTHING = misc("UniformSampler", rate=0.0)


@pytest.mark.parametrize("use_all", [True, False])
def test_complete_documents_give_all_their_negatives(nlp, use_all):
    example = example_of(nlp, WORDS, [ADA], missing=[8], complete=True)
    seen, losses = negatives_of(example, sampler=NOTHING, use_all_true_negatives=use_all)
    known = {(s, e) for s, e in every_span(9) if e <= 8} - {(0, 2)}
    assert seen == (known if use_all else set())
    assert losses[f"{NAME}_negatives"] == len(seen)


def test_incomplete_documents_give_sampled_negatives_only(nlp):
    example = example_of(nlp, WORDS, [ADA], complete=False)
    seen, _ = negatives_of(example, sampler=NOTHING, default_complete=True)
    assert seen == set()


def test_default_complete_is_for_documents_without_a_flag(nlp):
    seen, _ = negatives_of(example_of(nlp, WORDS, [ADA]), sampler=NOTHING, default_complete=True)
    assert seen == every_span(9) - {(0, 2)}


def test_rejected_spans_are_negatives_even_where_tokens_are_missing(nlp):
    example = example_of(
        nlp, WORDS, [ADA], missing=[3, 4, 5], rejected=[(3, 5, "PER"), (7, 8, "LOC"), ADA]
    )
    seen, losses = negatives_of(example, sampler=NOTHING)
    assert seen == {(3, 5), (7, 8)}
    assert losses[f"{NAME}_positives"] == 1, "a labeled span is never rejected"


def test_flat_entities_exclude_what_overlaps_them(nlp):
    example = example_of(nlp, WORDS, [ADA, GRACE], missing=[5, 6, 7, 8])
    seen, _ = negatives_of(example, sampler=NOTHING, flat=True)
    overlapping = {(s, e) for s, e in every_span(9) if s < 2 or (s < 5 and e > 3)}
    assert seen == overlapping - {(0, 2), (3, 5)}
    assert negatives_of(example, sampler=NOTHING, flat=False)[0] == set()


def test_wide_entities_still_exclude_what_overlaps_them(nlp):
    example = example_of(nlp, WORDS, [(0, 4, "PER")])
    seen, losses = negatives_of(example, sampler=NOTHING, flat=True, max_width=2)
    assert losses[f"{NAME}_positives"] == 0
    assert seen == {(s, e) for s, e in every_span(9, 2) if s < 4}


def test_rejected_spans_key_is_a_setting(nlp):
    example = example_of(nlp, WORDS, [ADA], rejected=[(3, 5, "PER")])
    seen, _ = negatives_of(example, sampler=NOTHING, rejected_spans_key="other")
    assert seen == set()


def test_observer_gets_stable_keys(nlp):
    pipe_nlp = make_nlp(sampler=misc("AllSampler"))
    examples = [example_of(pipe_nlp, WORDS, [ADA]), example_of(pipe_nlp, ["Paris"])]
    pipe_nlp.initialize(lambda: examples)
    keys = []
    pipe_nlp.get_pipe(NAME).sample_observer = lambda k, *_: keys.append(list(k))
    pipe_nlp.update(examples, sgd=False)
    pipe_nlp.update(examples[::-1], sgd=False)
    assert keys[0] == keys[1][::-1]
    assert keys[0][0] != keys[0][1]


def test_spans_with_tokens_that_are_outside_by_their_writing_are_true_negatives():
    """Ada is labeled; lower-case words and the full stop are O, so that only names are left."""
    nlp = make_nlp(sampler=misc("UniformSampler", rate=0.0), outside_by_writing=True)
    example = example_of(nlp, WORDS, [ADA])
    nlp.initialize(lambda: [example])
    pipe, seen = nlp.get_pipe(NAME), set()
    pipe.cfg["outside_places"] = ["XxX", "Xxx", "xxX", "X.$"]
    pipe.sample_observer = lambda keys, docs, starts, ends: seen.update(
        zip(starts.tolist(), ends.tolist(), strict=True)
    )
    nlp.update([example], sgd=False)
    outside = {2, 5, 6, 8}
    assert seen == {span for span in every_span(9) if outside & set(range(*span))}
