"""Weights of the weighted partial CRF."""

import json

import numpy as np
import pytest
import torch
from span_pipes import change, example_of, make_examples, misc, train, weights
from token_pipes import NAME, make_shared_token_nlp, make_token_nlp

from spacy_robust_ner.pipeline.completion import CrossFitting
from spacy_robust_ner.pipeline.span_batch import doc_key, words_key
from spacy_robust_ner.pipeline.trial import trial
from spacy_robust_ner.tagging.losses import CRFLikelihood, PartialCRF
from spacy_robust_ner.tagging.targets import hard_completion, soft_completion


def weighted(**settings):
    return misc("WeightedPartialCRF", completion=misc("CrossFitting", **settings))


def many_examples(nlp):
    """Documents that fall into both of two folds."""
    examples = [example_of(nlp, ["in", f"Town{i}", "now"], [(1, 2, "LOC")]) for i in range(6)]
    examples += [example_of(nlp, ["in", f"City{i}", "now"], missing=[1]) for i in range(6)]
    folds = {doc_key(example.predicted) % 2 for example in examples}
    assert folds == {0, 1}
    return examples


@pytest.mark.parametrize("make", [make_token_nlp, make_shared_token_nlp], ids=["own", "shared"])
def test_cross_fitting_leaves_the_initial_weights(make):
    results = []
    for loss in ("PartialCRF", weighted(epochs=1, iterations=2)):
        nlp = make(loss=loss)
        examples = many_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        results.append([w for _, pipe in nlp.pipeline for w in weights(pipe.model)])
    assert change(*results) == 0


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("start", ["outside", "partial"])
def test_weights_come_from_the_model_of_the_other_fold(kind, start):
    nlp = make_token_nlp(loss=weighted(epochs=2, kind=kind, start=start))
    examples = many_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    loss = CRFLikelihood() if start == "outside" else PartialCRF()
    complete = hard_completion if kind == "hard" else soft_completion
    for fold in (0, 1):
        unseen = [e for e in examples if doc_key(e.predicted) % 2 == fold]
        seen = [e for e in examples if doc_key(e.predicted) % 2 != fold]
        found = pipe.loss.completion.log_weights([e.predicted for e in unseen], pipe.tag_set)
        with trial(nlp, pipe, loss=loss) as attempt:
            attempt.train(seen, epochs=2, title="test")
            for batch, decisions, lengths in attempt.decisions(unseen):
                allowed = PartialCRF().allowed(pipe.reader.read(batch, decisions), pipe.tag_set)
                expected = complete(decisions, lengths, allowed, pipe.head.crf)
        assert torch.equal(torch.from_numpy(found), expected)
        assert np.allclose(np.exp(found).sum(1), 1.0, atol=1e-5)
    assert (set(np.exp(found).ravel().tolist()) == {0.0, 1.0}) == (kind == "hard")


def test_a_further_round_uses_the_weights_of_the_one_before():
    found = []
    for iterations in (1, 2):
        nlp = make_token_nlp(loss=weighted(epochs=3, iterations=iterations))
        examples = many_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        pipe = nlp.get_pipe(NAME)
        docs = [example.predicted for example in examples]
        found.append(np.exp(pipe.loss.completion.log_weights(docs, pipe.tag_set)))
    assert np.abs(found[0] - found[1]).max() > 0.01


def test_training_follows_the_weights(tmp_path):
    """The same unknown token is learned as what the weights say."""
    learned = {}
    for tag in ("S-LOC", "O"):
        path = tmp_path / f"{tag}.jsonl"
        nlp = make_token_nlp(loss=misc("WeightedPartialCRF", completion=file_block(path)))
        examples = [
            example_of(nlp, ["in", "Paris"], [(1, 2, "LOC")], complete=True),
            example_of(nlp, ["near", "Zzz"], missing=[0, 1]),
        ]
        rows = [[{"O": 1.0}, {"S-LOC": 1.0}], [{"O": 1.0}, {tag: 1.0}]]
        path.write_text(
            "".join(
                json.dumps({"tokens": [t.text for t in e.predicted], "q": q}) + "\n"
                for e, q in zip(examples, rows, strict=True)
            ),
            encoding="utf8",
        )
        train(nlp, examples, steps=40)
        doc = nlp.get_pipe(NAME)(examples[1].predicted.copy())
        learned[tag] = [(ent.text, ent.label_) for ent in doc.ents]
    assert learned == {"S-LOC": [("Zzz", "LOC")], "O": []}


def file_block(path):
    return misc("FileCompletion", path=str(path))


def test_a_written_file_gives_the_same_training(tmp_path):
    path = tmp_path / "weights" / "q.jsonl"
    histories = []
    for completion in (
        misc("CrossFitting", epochs=2, write_to=str(path)),
        file_block(path),
    ):
        nlp = make_token_nlp(loss=misc("WeightedPartialCRF", completion=completion))
        histories.append([losses[NAME] for losses in train(nlp, many_examples(nlp), steps=5)])
    assert np.allclose(histories[0], histories[1], rtol=1e-4)
    records = [json.loads(line) for line in path.read_text("utf8").splitlines()]
    assert len(records) == 12
    assert records[0]["tokens"] == ["in", "Town0", "now"]
    assert records[0]["q"][1] == {"S-LOC": 1.0}


def test_files_that_do_not_fit(tmp_path):
    path = tmp_path / "q.jsonl"
    nlp = make_token_nlp(loss=misc("WeightedPartialCRF", completion=file_block(path)))
    with pytest.raises(ValueError, match=r"R187.*q\.jsonl"):
        nlp.initialize(lambda: make_examples(nlp))
    path.write_text('{"tokens": ["a"], "q": [{"S-XXX": 1.0}]}\n', encoding="utf8")
    with pytest.raises(ValueError, match=r"R188.*Line 1 .*S-XXX"):
        nlp.initialize(lambda: make_examples(nlp))
    path.write_text('{"tokens": ["a"], "q": [{"O": 1.0}]}\n', encoding="utf8")
    nlp.initialize(lambda: make_examples(nlp))
    with pytest.raises(ValueError, match=r"R186.*Ada Lovelace"):
        nlp.update(make_examples(nlp))


def test_weights_are_not_saved_with_the_pipeline():
    nlp = make_token_nlp(loss=weighted(epochs=1))
    nlp.initialize(lambda: many_examples(nlp))
    with pytest.raises(ValueError, match=r"R192.*Ada Lovelace"):
        nlp.update(make_examples(nlp))
    loaded = make_token_nlp(loss=weighted(epochs=1)).from_bytes(nlp.to_bytes())
    assert loaded("in Town0 now") is not None
    with pytest.raises(ValueError, match=r"R191.*write_to"):
        loaded.update(many_examples(loaded))


@pytest.mark.parametrize(
    "settings", [{"folds": 1}, {"iterations": 0}, {"epochs": 0}, {"kind": "x"}, {"start": "x"}]
)
def test_settings_that_make_no_sense(settings):
    with pytest.raises(ValueError, match=f"R10[35].*{next(iter(settings))}"):
        CrossFitting(**settings)


def test_too_few_documents():
    nlp = make_token_nlp(loss=weighted(folds=3))
    with pytest.raises(ValueError, match=r"R190.*3 folds.*2"):
        nlp.initialize(lambda: make_examples(nlp))


def test_keys_depend_on_the_words_alone():
    nlp = make_token_nlp()
    assert doc_key(nlp.make_doc("a b")) == words_key(["a", "b"])
    assert words_key(["a", "b"]) != words_key(["ab"])
