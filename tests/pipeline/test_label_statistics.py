import random

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from span_pipes import example_of

from spacy_robust_ner.annotation import set_complete
from spacy_robust_ner.pipeline.label_statistics import count_annotation, estimate_ratio
from spacy_robust_ner.span.ratio import RatioTerm

NLP = spacy.blank("en")
WORDS = ["yesterday", "we", "met", "Ada", "King", "there"]


def make_examples(p_masked, *, complete=None, count=800):
    rng = random.Random(1)
    examples = []
    for i in range(count):
        words = [*WORDS[:3], f"Ada{i % 40}", *WORDS[4:]]
        tags = ["O"] * 6
        if rng.random() >= p_masked:
            tags[3:5] = ["B-PER", "I-PER"]
        reference = Doc(NLP.vocab, words=words, ents=tags)
        set_complete(reference, complete)
        examples.append(Example(Doc(NLP.vocab, words=words), reference))
    return examples


def estimate(examples, unit="tokens", **settings):
    settings = {"default_complete": False, "with_doubts": False, **settings}
    counts = count_annotation(lambda: examples, **settings)
    return estimate_ratio(counts, unit=unit, name="test")


@pytest.mark.parametrize(("unit", "truth"), [("tokens", 2 / 6), ("spans", 1 / 6)])
@pytest.mark.parametrize("p_masked", [0.0, 0.5, 0.8])
def test_ratio_is_found_behind_the_mask(unit, truth, p_masked):
    assert estimate(make_examples(p_masked), unit) == pytest.approx(truth, rel=0.12)


def test_complete_documents_are_believed():
    examples = make_examples(0.9, complete=False) + make_examples(0.0, complete=True)
    assert estimate(examples) == pytest.approx(2 / 6)
    labeled = estimate(make_examples(0.5), default_complete=True)
    assert labeled == pytest.approx(1 / 6, rel=0.1)


def test_without_repeated_strings_the_labeled_ratio_is_taken_with_a_warning():
    words = ["Ada", "slept"]
    reference = Doc(NLP.vocab, words=words, ents=["B-PER", "O"])
    with pytest.warns(UserWarning, match="W101"):
        assert estimate([Example(Doc(NLP.vocab, words=words), reference)]) == 0.5


def test_pipe_takes_and_keeps_the_estimate(tmp_path):
    nlp = spacy.blank("en")
    ratio = {"@misc": "spacy_robust_ner.RatioTerm.v1", "margin": 0.01}
    pipe = nlp.add_pipe("robust_span_ner", config={"ratio": ratio})
    examples = make_examples(0.5)
    nlp.initialize(lambda: examples)
    assert pipe.cfg["ratio"] == pytest.approx(2 / 6, rel=0.12)
    assert isinstance(pipe.objective.ratio, RatioTerm)
    assert pipe.objective.ratio.ratio == pipe.cfg["ratio"]
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path).get_pipe("robust_span_ner")
    assert loaded.objective.ratio.ratio == pytest.approx(pipe.cfg["ratio"])


TEXT = ["the", "cat", "saw", "Ada"]


def doubtful_examples(nlp, *, complete=None):
    labeled = [(0, 1, "ORG"), (3, 4, "PER")]
    few = [example_of(nlp, TEXT, labeled, complete=complete) for _ in range(10)]
    return few + [example_of(nlp, TEXT, labeled[1:]) for _ in range(90)]


@pytest.mark.parametrize("name", ["robust_span_ner", "robust_token_tagger"])
def test_doubtful_labels_are_withdrawn_on_demand(name, tmp_path, caplog):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(name, config={"withdraw_doubtful": True})
    examples = doubtful_examples(nlp)
    with caplog.at_level("INFO", logger="spacy"):
        nlp.initialize(lambda: examples)
    assert "10 labels of 1 strings" in caplog.text
    assert "'the' (10)" in caplog.text
    target = pipe.read_targets(examples[0])
    assert target.entities == [(3, 4, "PER")]
    assert target.missing.tolist() == [True, False, False, False]
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path).get_pipe(name)
    assert loaded.read_targets(examples[0]).entities == target.entities
    pipe.withdraw_doubtful = False
    assert len(pipe.read_targets(examples[0]).entities) == 2


def test_labels_of_complete_documents_are_not_withdrawn():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("robust_span_ner", config={"withdraw_doubtful": True})
    examples = doubtful_examples(nlp, complete=True)
    nlp.initialize(lambda: examples)
    assert pipe.cfg["doubtful"] == [["the"]]
    assert len(pipe.read_targets(examples[0]).entities) == 2


@pytest.mark.parametrize("name", ["robust_span_ner", "robust_token_tagger"])
def test_fragments_of_names_are_withdrawn_on_demand(name, tmp_path, caplog):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(name, config={"withdraw_fragments": True})
    words, labeled = ["we", "met", "Jean", "Dupont", "and", "Ada"], [(2, 3, "PER"), (5, 6, "PER")]
    example = example_of(nlp, words, labeled)
    complete = example_of(nlp, words, labeled, complete=True)
    with caplog.at_level("INFO", logger="spacy"):
        nlp.initialize(lambda: [example, complete])
    assert "1 labels for missing that seem to be parts of longer names" in caplog.text
    assert "met [Jean] Dupont" in caplog.text
    target = pipe.read_targets(example)
    assert target.entities == [(5, 6, "PER")]
    assert target.missing.tolist() == [False, False, True, False, False, False]
    assert len(pipe.read_targets(complete).entities) == 2
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe(name).read_targets(example).entities == target.entities
    pipe.withdraw_fragments = False
    assert len(pipe.read_targets(example).entities) == 2


@pytest.mark.parametrize("name", ["robust_span_ner", "robust_token_tagger"])
def test_writing_tells_where_no_entities_are_on_demand(name, tmp_path, caplog):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(name, config={"outside_by_writing": True})
    words = ["we", "met", "Ada", "last", "week", "again"]
    labeled = [example_of(nlp, words, [(2, 3, "PER")], missing=[5]) for _ in range(200)]
    examples = labeled + [example_of(nlp, words) for _ in range(200)]
    with caplog.at_level("INFO", logger="spacy"):
        nlp.initialize(lambda: examples)
    assert "takes unlabeled tokens for O where labels hardly ever are" in caplog.text
    assert pipe.read_targets(examples[0]).outside.tolist() == [True, True, False, True, True, False]
    assert pipe.read_targets(examples[-1]).outside.tolist() == [True, True, False, True, True, True]
    # A label is believed, wherever it is.
    odd = example_of(nlp, words, [(0, 2, "PER")])
    assert not pipe.read_targets(odd).outside[:2].any()
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path).get_pipe(name)
    assert loaded.read_targets(examples[0]).outside.sum() == 4
    pipe.outside_by_writing = False
    assert not pipe.read_targets(examples[0]).outside.any()


@pytest.mark.parametrize("name", ["robust_span_ner", "robust_token_tagger"])
def test_labels_beside_capitalized_nouns_stay(name, tmp_path):
    nlp = spacy.blank("de")
    pipe = nlp.add_pipe(name, config={"withdraw_fragments": True})
    words = [
        "die",
        "Bürgermeisterin",
        "Ada",
        "sah",
        "den",
        "Hund",
        "im",
        "Garten",
        "der",
        "Nachbarn",
    ]
    examples = [example_of(nlp, words, [(2, 3, "PER")]) for _ in range(20)]
    with pytest.warns(UserWarning, match=r"W104.*leaves 20 labels.*withdraw_fragments = false"):
        nlp.initialize(lambda: examples)
    assert pipe.read_targets(examples[0]).entities == [(2, 3, "PER")]
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path).get_pipe(name)
    assert loaded.read_targets(examples[0]).entities == [(2, 3, "PER")]
    with_names = ["we", "met", "Ada", "King", "and", "Eve", "and", "Ida"]
    examples = [example_of(nlp, with_names, [(2, 3, "PER"), (5, 6, "PER")]) for _ in range(20)]
    nlp.initialize(lambda: examples)
    assert pipe.read_targets(examples[0]).entities == [(5, 6, "PER")]
