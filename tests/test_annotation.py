"""States and flag from convert through the DocBin and the readers to the Examples."""

import warnings

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Corpus

from spacy_robust_ner.annotation import (
    REJECTED_SPANS_KEY,
    is_complete,
    missing_tokens,
    set_complete,
    stated_complete,
)
from spacy_robust_ner.corpus.convert import CorpusInput, convert
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.corpus.source import ReadOptions
from spacy_robust_ner.reader import AnnotationCorpus

COLUMNS = """-DOCSTART- O

Ada B-PER
, O
met UNK

Bob B-PER
Ray I-PER
now O
far -

"""
TAGS = ["U-PER", "O", None, "B-PER", "L-PER", "O", None]


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("en")


@pytest.fixture(scope="module")
def corpus_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("complete", "incomplete", "unstated"):
        (folder / f"{name}.txt").write_text(COLUMNS)
    convert(
        [
            CorpusInput(folder / "complete.txt", True),
            CorpusInput(folder / "incomplete.txt", False),
            CorpusInput(folder / "unstated.txt"),
        ],
        folder / "shards",
        options=ReadOptions(docs="docstart"),
        shard_size=2,
    )
    return folder / "shards"


@pytest.fixture(params=["spacy.Corpus.v1", "spacy_robust_ner.Corpus.v1"])
def make_reader(request, corpus_path):
    build = spacy.registry.readers.get(request.param)

    def make(**settings):
        values = {"gold_preproc": False, "max_length": 0, "limit": 0, "augmenter": None, **settings}
        return build(corpus_path, **values)

    return make


def test_whole_documents_keep_states_and_flag(nlp, make_reader):
    examples = list(make_reader()(nlp))
    assert [stated_complete(eg.reference) for eg in examples] == [True, False, None]
    for eg in examples:
        assert [t.text for t in eg.predicted] == [t.text for t in eg.reference]
        assert eg.get_aligned_ner() == TAGS
        assert missing_tokens(eg.reference) == [tag is None for tag in TAGS]


@pytest.mark.parametrize("settings", [{"max_length": 5}, {"gold_preproc": True}])
def test_split_documents_keep_states_and_flag_with_our_reader(nlp, corpus_path, settings):
    examples = list(AnnotationCorpus(corpus_path, **settings)(nlp))
    assert [len(eg.reference) for eg in examples] == [3, 4] * 3
    assert [stated_complete(eg.reference) for eg in examples] == [True] * 2 + [False] * 2 + [
        None
    ] * 2
    assert [tag for eg in examples[:2] for tag in eg.get_aligned_ner()] == TAGS


@pytest.mark.parametrize("settings", [{"max_length": 5}, {"gold_preproc": True}])
def test_why_spacys_reader_is_not_enough(nlp, corpus_path, settings):
    examples = list(Corpus(corpus_path, **settings)(nlp))
    assert [stated_complete(eg.reference) for eg in examples] == [None] * 6


def test_training_config_resolves_our_reader(nlp, corpus_path):
    config = {
        "reader": {
            "@readers": "spacy_robust_ner.Corpus.v1",
            "path": str(corpus_path),
            "max_length": 5,
        }
    }
    reader = spacy.registry.resolve(config)["reader"]
    assert len(list(reader(nlp))) == 6


@pytest.mark.parametrize(("limit", "count"), [(0, 3), (1, 1), (2, 2), (5, 3)])
def test_limit_across_shards(nlp, corpus_path, limit, count):
    assert len(list(AnnotationCorpus(corpus_path, limit=limit)(nlp))) == count


def test_reader_without_a_path():
    build = spacy.registry.readers.get("spacy_robust_ner.Corpus.v1")
    with pytest.raises(ValueError, match="E913"):
        build(None)


def split_doc(nlp, tmp_path, **settings):
    doc = Doc(nlp.vocab, words=list("abcdef"), sent_starts=[True, False, True, False, False, False])
    doc.ents = [Span(doc, 0, 1, "X")]
    doc.spans[REJECTED_SPANS_KEY] = [
        Span(doc, 1, 2, "X"),
        Span(doc, 1, 3, "Y"),
        Span(doc, 3, 6, "Z"),
    ]
    set_complete(doc, False)
    write_docs([doc], tmp_path / "a.spacy")
    return list(AnnotationCorpus(tmp_path / "a.spacy", **settings)(nlp))


def test_rejected_spans_move_with_their_sentence(nlp, tmp_path):
    first, second = split_doc(nlp, tmp_path, gold_preproc=True)

    def rejected(eg):
        group = eg.reference.spans[REJECTED_SPANS_KEY]
        return [(span.start, span.end, span.label_, span.text) for span in group]

    # The span across the border belongs to neither sentence.
    assert rejected(first) == [(1, 2, "X", "b")]
    assert rejected(second) == [(1, 4, "Z", "d e f")]


def test_left_out_sentences_are_told(nlp, tmp_path):
    with pytest.warns(UserWarning, match=r"W001.*1 .*max_length = 4"):
        examples = split_doc(nlp, tmp_path, max_length=4)
    assert [len(eg.reference) for eg in examples] == [2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(split_doc(nlp, tmp_path, max_length=5)) == 2


@pytest.mark.parametrize("default", [True, False])
def test_document_without_the_flag(nlp, default):
    doc = Doc(nlp.vocab, words=["Ada"])
    assert stated_complete(doc) is None
    assert is_complete(doc) is False
    assert is_complete(doc, default=default) is default
    for flag in (True, False):
        set_complete(doc, flag)
        assert is_complete(doc, default=default) is flag
    set_complete(doc, None)
    assert is_complete(doc, default=default) is default


def test_missing_tokens(nlp):
    doc = Doc(nlp.vocab, words=["a", "b", "c"])
    assert missing_tokens(doc) == [True, True, True]
    doc.set_ents([Span(doc, 0, 1, "X")], missing=[doc[2:3]])
    assert missing_tokens(doc) == [False, False, True]
    assert missing_tokens(Doc(nlp.vocab)) == []
