import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.experiments.predictions import (
    Recovery,
    test_predictions,
    train_predictions,
)

# Its name begins like that of a test.
test_predictions.__test__ = False


def write(path, nlp, *docs):
    write_docs((Doc(nlp.vocab, words=words.split(), ents=tags) for words, tags in docs), path)
    return path


@pytest.fixture
def nlp():
    """A pipeline that knows two cities, one of them under a wrong label."""
    nlp = spacy.blank("en")
    patterns = [{"label": "LOC", "pattern": "Paris"}, {"label": "PER", "pattern": "Rome"}]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    return nlp


def test_test_documents_with_predictions(nlp, tmp_path):
    documents = [
        ("to Paris and Bern", ["O", "B-LOC", "O", "B-LOC"]),
        ("Paris or Rome", ["", "O", "B-LOC"]),
    ]
    evaluation, records = test_predictions(nlp, write(tmp_path / "test.spacy", nlp, *documents))
    assert records == [
        {
            "split": "test",
            "words": ["to", "Paris", "and", "Bern"],
            "spaces": [True, True, True, True],
            "gold": [(1, 2, "LOC"), (3, 4, "LOC")],
            "masked": [],
            "predicted": [(1, 2, "LOC", None)],
        },
        {
            "split": "test",
            "words": ["Paris", "or", "Rome"],
            "spaces": [True, True, True],
            "gold": [(2, 3, "LOC")],
            "masked": [],
            "predicted": [(0, 1, "LOC", None), (2, 3, "PER", None)],
            "missing": [0],
        },
    ]
    figures = evaluation.as_dict()
    assert (figures["gold"], figures["predicted"], figures["correct"]) == (3, 2, 1)


def test_scores_of_span_groups(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("spancat_singlelabel", config={"spans_key": "sc", "allow_overlap": False})
    gold = Doc(nlp.vocab, words=["to", "Paris"], ents=["O", "B-LOC"])
    gold.spans["sc"] = list(gold.ents)
    examples = [Example(Doc(nlp.vocab, words=["to", "Paris"]), gold)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(30):
        nlp.update(examples, sgd=optimizer)
    write_docs([gold], tmp_path / "test.spacy")
    evaluation, (record,) = test_predictions(nlp, tmp_path / "test.spacy")
    assert evaluation.as_dict()["f1"] == 1.0
    (found,) = record["predicted"]
    assert found[:3] == (1, 2, "LOC")
    assert 0.5 < found[3] <= 1.0


def test_masked_entities_are_found_again_or_not(nlp, tmp_path):
    gold = [
        ("Paris and Rome and Bern", ["B-LOC", "O", "B-LOC", "O", "B-LOC"]),
        ("Paris again", ["B-LOC", "O"]),
    ]
    masked = [(gold[0][0], ["O", "O", "O", "O", "O"]), gold[1]]
    train = write(tmp_path / "train.spacy", nlp, *masked)
    true = write(tmp_path / "gold.spacy", nlp, *gold)
    recovery, records = train_predictions(nlp, train, true, 300)
    assert recovery == Recovery(masked=3, recovered=1, recovered_other_label=1)
    assert [record["split"] for record in records] == ["train", "train"]
    assert records[0]["masked"] == [(0, 1, "LOC"), (2, 3, "LOC"), (4, 5, "LOC")]
    assert records[0]["gold"] == records[0]["masked"]
    assert records[1]["masked"] == []
    assert records[1]["gold"] == [(0, 1, "LOC")]


def test_bounded_number_of_documents_from_everywhere(nlp, tmp_path):
    documents = [(f"word{i}", ["B-LOC"]) for i in range(100)]
    path = write(tmp_path / "train.spacy", nlp, *documents)
    _, records = train_predictions(nlp, path, path, 4)
    assert [r["words"] for r in records] == [["word0"], ["word25"], ["word50"], ["word75"]]
    assert train_predictions(nlp, path, path, 0) == (Recovery(), [])


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([("to Bern", ["O", "O"])], "document 2: only one of them has it"),
        ([("to Bern", ["O", "O"]), ("x y", ["O", "O"])], "document 2: the tokens differ"),
    ],
)
def test_gold_of_other_documents(nlp, tmp_path, documents, message):
    gold = [("to Bern", ["O", "B-LOC"]), ("to Rome", ["O", "B-LOC"])]
    train = write(tmp_path / "train.spacy", nlp, *documents)
    true = write(tmp_path / "gold.spacy", nlp, *gold)
    with pytest.raises(ValueError, match=message):
        train_predictions(nlp, train, true, 300)
