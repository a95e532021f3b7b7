"""First-stage confidence of the Conf-MPU loss, from a file and from a pipeline."""

import json

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from span_pipes import NAME, TRAIN_DATA, make_examples, make_nlp, make_shared_nlp, misc, train

from spacy_robust_ner.candidates import CandidateTable
from spacy_robust_ner.pipeline.confidence import (
    ConfidenceSource,
    FileConfidence,
    PipelineConfidence,
)

LOSS = misc("ConfidencePURisk", priors={"PER": 0.02, "LOC": 0.04}, threshold=0.5, gamma=10.0)


def docs_of(nlp):
    return [Doc(nlp.vocab, words=words) for words in (["a", "b", "c"], [], ["d"])]


def write(path, *entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf8")
    return path


def test_file_gives_each_span_its_confidence(tmp_path):
    nlp = spacy.blank("xx")
    path = write(
        tmp_path / "c.jsonl",
        {"tokens": ["d"], "spans": [[0, 1, 0.25]]},
        {"tokens": [], "spans": []},
        {"tokens": ["a", "b", "c"], "spans": [[0, 2, 0.5], [2, 3, 1]]},
    )
    source = FileConfidence(path)
    assert isinstance(source, ConfidenceSource)
    docs = docs_of(nlp)
    table = CandidateTable([3, 0, 1], max_width=2)
    read = source.reader(docs, table)
    every = table.spans()
    assert read(every).tolist() == [0, 0.5, 0, 0, 1, 0.25]
    assert read(table.spans_at(np.array([5, 1]))).tolist() == [0.25, 0.5]
    assert read(table.spans_at(np.array([], dtype=np.int64))).shape == (0,)


def test_unknown_text_is_an_error(tmp_path):
    nlp = spacy.blank("xx")
    source = FileConfidence(write(tmp_path / "c.jsonl", {"tokens": ["x"], "spans": []}))
    with pytest.raises(ValueError, match=r"R117.*c\.jsonl.*a b c"):
        source.reader(docs_of(nlp), CandidateTable([3, 0, 1], max_width=2))


@pytest.mark.parametrize("line", ["{", '{"tokens": ["a"]}', '{"tokens": ["a"], "spans": [[0]]}'])
def test_bad_lines_are_named(tmp_path, line):
    path = tmp_path / "c.jsonl"
    path.write_text('{"tokens": ["b"], "spans": []}\n' + line, encoding="utf8")
    with pytest.raises(ValueError, match=r"R118.*Line 2.*c\.jsonl"):
        FileConfidence(path).reader([], CandidateTable([], max_width=2))


def test_file_is_needed_in_training_only(tmp_path):
    path = write(tmp_path / "c.jsonl", *({"tokens": t.split(), "spans": []} for t, _ in TRAIN_DATA))
    nlp = make_nlp(loss=LOSS, confidence=misc("FileConfidence", path=str(path)))
    train(nlp, make_examples(nlp), steps=2)
    nlp.to_disk(tmp_path / "model")
    path.unlink()
    loaded = spacy.load(tmp_path / "model")
    assert len(list(loaded.pipe(text for text, _ in TRAIN_DATA))) == 2
    with pytest.raises(ValueError, match=r"R121.*c\.jsonl.*training only"):
        loaded.update(make_examples(loaded))


@pytest.fixture(scope="module", params=[make_nlp, make_shared_nlp], ids=["own", "shared"])
def first_stage(request, tmp_path_factory):
    """A first stage that was saved, and its pipeline. It finds wider spans than the second."""
    nlp = request.param(max_width=12)
    train(nlp, make_examples(nlp), steps=40)
    path = tmp_path_factory.mktemp("first") / "stage"
    nlp.to_disk(path)
    return nlp, path


@pytest.mark.parametrize("max_width", [1, 3, None])
def test_pipeline_gives_the_probability_of_any_entity(first_stage, max_width):
    nlp, path = first_stage
    texts = [TRAIN_DATA[1][0], "", TRAIN_DATA[0][0], TRAIN_DATA[1][0]]
    docs = [spacy.blank("xx").make_doc(text) for text in texts]
    table = CandidateTable([len(doc) for doc in docs], max_width=max_width)
    confidence = PipelineConfidence(path).reader(docs, table)(table.spans()).tolist()
    expected = []
    for text in texts:
        doc = nlp(text)
        nlp.get_pipe(NAME).set_candidates([doc])
        scores = doc.spans["candidates"].attrs["scores"]
        expected.extend(
            1 - float(row[0])
            for span, row in zip(doc.spans["candidates"], scores, strict=True)
            if max_width is None or len(span) <= max_width
        )
    assert confidence == pytest.approx(expected, abs=1e-5)
    assert max(confidence) > 0.5 > min(confidence)


def test_pipeline_is_asked_once_for_each_document(first_stage):
    _, path = first_stage
    nlp = spacy.blank("xx")
    docs = [nlp.make_doc(text) for text, _ in TRAIN_DATA]
    table = CandidateTable([len(doc) for doc in docs], max_width=3)
    source = PipelineConfidence(path)
    first = source.reader(docs, table)(table.spans())
    source._nlp.remove_pipe(NAME)
    assert source.reader(docs, table)(table.spans()).equal(first)
    with pytest.raises(ValueError, match=r"R119.*stage.*robust_span_ner"):
        source.reader([nlp.make_doc("new text")], CandidateTable([2], max_width=3))


def test_second_stage_learns_with_a_first(first_stage):
    _, path = first_stage
    nlp = make_nlp(loss=LOSS, confidence=misc("PipelineConfidence", path=str(path)))
    examples = make_examples(nlp)
    train(nlp, examples, steps=60)
    assert nlp.evaluate(examples)["ents_f"] == 1.0


@pytest.mark.filterwarnings("ignore:.*W100")
def test_confidence_changes_the_loss(tmp_path):
    """By hand: the unlabeled risk leaves out what the first stage is sure of."""
    losses = []
    for sure in ([], [[6, 7, 0.9]]):
        tokens = TRAIN_DATA[1][0].split()
        path = write(tmp_path / "c.jsonl", {"tokens": tokens, "spans": sure})
        nlp = make_nlp(loss=LOSS, max_width=1, confidence=misc("FileConfidence", path=str(path)))
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        losses.append(nlp.update(examples[1:], sgd=False)[NAME])
        doc = examples[1].predicted.copy()
        nlp.get_pipe(NAME).set_candidates([doc])
    outside = 2 * (1 - doc.spans["candidates"].attrs["scores"][6, 0]) / 3
    assert losses[0] - losses[1] == pytest.approx(outside / 7, abs=1e-5)
