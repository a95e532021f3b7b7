"""Two-step learning: exploration inside of initialization, and in separate steps."""

import json
import random

import numpy as np
import pytest
import spacy
import torch
from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_pipeline
from spacy.util import load_config, load_config_from_str
from span_pipes import (
    change,
    example_of,
    make_examples,
    misc,
    save_corpus,
    tiny_training,
    train,
    weights,
)
from token_pipes import (
    LISTENER,
    NAME,
    make_shared_token_nlp,
    make_token_nlp,
    make_trf_token_nlp,
    tags_of,
    token_config,
    two_step,
)
from typer.testing import CliRunner

from spacy_robust_ner.annotation import missing_tokens
from spacy_robust_ner.cli import app
from spacy_robust_ner.cli.select_tokens import select_tokens
from spacy_robust_ner.corpus.io import read_docs
from spacy_robust_ner.pipeline.span_batch import doc_key
from spacy_robust_ner.pipeline.trial import trial
from spacy_robust_ner.pipeline.two_step import TwoStep, mark_removed, rank_outside, read_removed
from spacy_robust_ner.reader import AnnotationCorpus
from spacy_robust_ner.recipes import config_text, make_config

SAMPLING = misc("NonSpanSampler", rate=0.2)
TAGGED = {"others_after": ["tagger"]}


@pytest.fixture(params=["own", "tok2vec", "transformer"])
def make(request):
    """Makes a pipeline whose token component has its own encoder or a shared one."""
    if request.param == "own":
        return make_token_nlp
    if request.param == "tok2vec":
        return make_shared_token_nlp
    path = request.getfixturevalue("tiny_bert")
    return lambda **settings: make_trf_token_nlp(path, **settings)


def tagged_examples(nlp):
    examples = make_examples(nlp)
    for example in examples:
        for token in example.reference:
            token.tag_ = "A" if token.i % 2 else "B"
    return examples


def all_weights(nlp):
    return [w for _, pipe in nlp.pipeline for w in weights(pipe.model)]


def random_states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_exploration_leaves_the_initial_weights(make):
    """Also those of components that are initialized later, and what training makes of them."""
    others = {} if make is make_token_nlp else TAGGED
    results = []
    for settings in ({}, {"two_step": two_step(epochs=2, share=0.0)}):
        nlp = make(dropout=0.1, **settings, **others)
        examples = tagged_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        initial, states = all_weights(nlp), random_states()
        train(nlp, examples, steps=3, initialize=False)
        results.append((initial, all_weights(nlp), states))
    (plain, plain_after, plain_states), (explored, explored_after, states) = results
    assert change(plain, explored) == 0
    assert change(plain_after, explored_after) == 0
    assert change(plain, plain_after) > 0
    assert states == plain_states


def test_exploration_moves_the_encoder_and_the_head(make):
    others = {} if make is make_token_nlp else TAGGED
    nlp = make(**others)
    examples = tagged_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    encoder = pipe.model.get_ref("tok2vec") if make is make_token_nlp else nlp.pipeline[0][1].model
    before, head_before = weights(encoder), weights(pipe.model.get_ref("head"))
    everything = all_weights(nlp)
    with trial(nlp, pipe) as attempt:
        attempt.train(examples, epochs=1, title="test")
        assert change(before, weights(encoder)) > 1e-6
        assert change(head_before, weights(pipe.model.get_ref("head"))) > 1e-6
    assert change(everything, all_weights(nlp)) == 0


def test_a_trial_is_undone_after_an_error():
    nlp = make_shared_token_nlp(non_sampling=SAMPLING, **TAGGED)
    examples = tagged_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe, encoder = nlp.get_pipe(NAME), nlp.get_pipe("tok2vec")
    before, states = all_weights(nlp), random_states()
    listeners = encoder.listener_map

    def give_up():
        with trial(nlp, pipe) as attempt:
            assert list(encoder.listener_map) == [NAME]
            assert pipe.non_sampling is None
            attempt.train(examples, epochs=1, title="test")
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        give_up()
    assert change(before, all_weights(nlp)) == 0
    assert random_states() == states
    assert encoder.listener_map is listeners
    assert set(listeners) == {NAME, "tagger"}
    assert pipe.non_sampling is not None
    assert pipe.progress.epoch == 0


def test_frozen_encoder_stays_in_exploration():
    source = make_shared_token_nlp()
    train(source, make_examples(source), steps=3)
    nlp = spacy.blank("en", vocab=source.vocab)
    nlp.add_pipe("tok2vec", source=source)
    nlp.add_pipe(NAME, config=token_config(tok2vec=LISTENER))
    nlp.config["training"].update(frozen_components=["tok2vec"], annotating_components=["tok2vec"])
    examples = make_examples(nlp)
    with nlp.select_pipes(disable=["tok2vec"]):
        nlp.initialize(lambda: examples)
        pipe, encoder = nlp.get_pipe(NAME), nlp.get_pipe("tok2vec")
        before, head_before = weights(encoder.model), weights(pipe.model.get_ref("head"))
        with trial(nlp, pipe) as attempt:
            attempt.train(examples, epochs=1, title="test")
            assert change(before, weights(encoder.model)) == 0
            assert change(head_before, weights(pipe.model.get_ref("head"))) > 1e-6


def test_exploration_starts_with_pretrained_weights(tmp_path):
    """spaCy loads them after the initialization of all components."""
    nlp = make_shared_token_nlp(seed=1)
    nlp.initialize(lambda: make_examples(nlp))
    other = make_shared_token_nlp(seed=2)
    other.initialize(lambda: make_examples(other))
    path = tmp_path / "pretrained.bin"
    path.write_bytes(other.get_pipe("tok2vec").model.to_bytes())
    nlp.config["pretraining"] = load_config(DEFAULT_CONFIG_PRETRAIN_PATH)["pretraining"]
    nlp.config["pretraining"].update(component="tok2vec", layer="", corpus="corpora.pretrain")
    nlp.config["initialize"]["init_tok2vec"] = str(path)
    nlp.config["training"]["optimizer"].update(learn_rate=0.0, L2=0.0)
    model = nlp.get_pipe("tok2vec").model
    before, pretrained = weights(model), weights(other.get_pipe("tok2vec").model)
    assert change(before, pretrained) > 0
    with trial(nlp, nlp.get_pipe(NAME)) as attempt:
        attempt.train(make_examples(nlp), epochs=1, title="test")
        assert change(pretrained, weights(model)) == 0
    assert change(before, weights(model)) == 0


def test_the_lowest_share_of_all_outside_tokens_is_removed(tmp_path):
    path = tmp_path / "lists" / "removed.jsonl"
    nlp = make_token_nlp(two_step=two_step(epochs=2, share=0.3, write_to=str(path)))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    # Nine O tokens, of which ⌈.3 · 9⌉ go.
    assert (pipe.removed.n_candidates, len(pipe.removed)) == (9, 3)
    assert (np.diff(pipe.removed.values) >= 0).all()
    head, *rows = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    assert head == {"n_candidates": 9, "n_removed": 3}
    docs = {doc_key(example.reference): example.reference for example in examples}
    for rank, row in enumerate(rows, 1):
        doc = docs[row["doc"]]
        assert row["rank"] == rank
        assert row["sentence"] == doc.text
        assert row["text"] == doc[row["token"]].text
        assert doc[row["token"]].ent_iob_ == "O"
        assert row["o_value"] == pipe.removed.values[rank - 1]
    saved = read_removed(path)
    assert saved.docs.tolist() == pipe.removed.docs.tolist()
    assert saved.tokens.tolist() == pipe.removed.tokens.tolist()


def test_removed_tokens_are_those_with_the_lowest_values_of_the_explored_model():
    nlp = make_token_nlp(two_step=two_step(epochs=2, share=0.3))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    with trial(nlp, pipe) as attempt:
        attempt.train(examples, epochs=2, title="test")
        values = []
        for example in examples:
            decisions, _ = pipe.decisions([example.predicted])
            values += [
                (float(decisions[token.i, 0]), doc_key(example.predicted), token.i)
                for token in example.reference
                if token.ent_iob_ == "O"
            ]
    lowest = [place[1:] for place in sorted(values)[:3]]
    found = zip(pipe.removed.docs.tolist(), pipe.removed.tokens.tolist(), strict=True)
    assert list(found) == lowest


def test_the_loss_sees_removed_tokens():
    nlp = make_token_nlp(two_step=two_step(share=0.3), non_sampling=SAMPLING)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    tags, batch = tags_of(nlp, examples)
    assert int(batch.removed.sum()) == 3
    gone = [tag for tag, removed in zip(tags, batch.removed.tolist(), strict=True) if removed]
    assert gone == ["O"] * 3, "neither entities nor NON"
    assert any(tag.endswith("-NON") for tag in tags)
    losses = nlp.update(examples, sgd=nlp.create_optimizer())
    assert losses[f"{NAME}_removed"] == 3


def test_the_same_sentence_with_other_annotation():
    """A removed token stays where another copy of the sentence has an entity."""
    nlp = make_token_nlp(two_step=two_step(share=1.0))
    words = ["in", "London"]
    examples = [example_of(nlp, words), example_of(nlp, words, [(1, 2, "LOC")])]
    nlp.initialize(lambda: examples)
    _, batch = tags_of(nlp, examples)
    assert batch.removed.tolist() == [True, True, True, False]
    docs = list(mark_removed(examples, nlp.get_pipe(NAME).removed))
    assert [missing_tokens(doc) for doc in docs] == [[True, True], [True, False]]


def half_labeled(nlp, **settings):
    """Of eight annotated sentences with a name each, four have labels."""
    words = ["in", "London", "again"]
    labels = [[(1, 2, "LOC")]] * 4 + [[]] * 4
    examples = [example_of(nlp, words, ents, **settings) for ents in labels]
    return [*examples, example_of(nlp, words, missing=range(3))]


def test_as_many_tokens_are_removed_as_seem_to_be_in_unlabeled_entities(caplog):
    plain = {"withdraw_doubtful": False, "withdraw_fragments": False, "outside_by_writing": False}
    nlp = make_token_nlp(two_step=two_step(share=None), **plain)
    examples = half_labeled(nlp)
    with caplog.at_level("INFO", logger="spacy"):
        nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    assert pipe.cfg["ratio"] > 1 / 4, "more than there are labels"
    expected = pipe.cfg["ratio"] * 24 - 4
    assert (pipe.removed.n_candidates, len(pipe.removed)) == (20, np.ceil(expected))
    assert f"{NAME} removes {100 * expected / 20:.1f}% of 20 O tokens" in caplog.text


def test_no_share_to_estimate_for_complete_documents():
    nlp = make_token_nlp(two_step=two_step(share=None))
    examples = half_labeled(nlp, complete=True)
    nlp.initialize(lambda: [*examples[:8], example_of(nlp, ["a", "b"], complete=True)])
    assert len(nlp.get_pipe(NAME).removed) == 0


def test_a_share_can_only_be_estimated_in_training():
    nlp = make_token_nlp()
    examples = half_labeled(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    ranking = rank_outside(nlp, pipe, examples)
    with pytest.raises(ValueError, match=r"R189.*--share"):
        TwoStep(share=None).remove(ranking, pipe, examples)


def test_removed_tokens_survive_saving(tmp_path):
    nlp = make_token_nlp(two_step=two_step(share=0.3))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    _, batch = tags_of(nlp, examples)
    _, again = tags_of(loaded, make_examples(loaded))
    assert again.removed.tolist() == batch.removed.tolist()
    losses = [
        pipeline.get_pipe(NAME).update(make_examples(pipeline), sgd=None)[NAME]
        for pipeline in (nlp, loaded)
    ]
    assert losses[0] == losses[1]


def test_two_step_learns():
    nlp = make_token_nlp(two_step=two_step(share=0.1), loss="TokenCrossEntropy", crf=False)
    examples = make_examples(nlp)
    train(nlp, examples, steps=40)
    assert nlp.evaluate(examples)["ents_r"] == 1.0


def test_exploring_needs_the_pipeline():
    nlp = make_token_nlp(two_step=two_step())
    with pytest.raises(ValueError, match=r"R182.*nlp\.initialize"):
        nlp.get_pipe(NAME).initialize(lambda: make_examples(nlp))


def test_exploring_needs_the_whole_corpus():
    nlp = make_token_nlp(two_step=two_step())
    nlp.config["training"]["max_epochs"] = -1
    with pytest.raises(ValueError, match=r"R183.*select"):
        nlp.initialize(lambda: make_examples(nlp))


def test_lists_that_do_not_fit(tmp_path):
    path = tmp_path / "removed.jsonl"
    nlp = make_token_nlp(two_step=two_step(read_from=str(path)))
    with pytest.raises(ValueError, match=r"R184.*removed\.jsonl"):
        nlp.initialize(lambda: make_examples(nlp))
    row = {"rank": 1, "doc": 1, "token": 0, "o_value": 0.0}
    path.write_text(f'{{"n_candidates": 3}}\n{json.dumps(row)}\n', encoding="utf8")
    with pytest.raises(ValueError, match=r"R185.*removed\.jsonl"):
        nlp.initialize(lambda: make_examples(nlp))
    path.write_text("not JSON\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"R154.*Line 1 "):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.fixture
def corpus(tmp_path):
    data = [
        (f"Ada Lovelace number {i} lives in London .", [(0, 12, "PER"), (31, 37, "LOC")])
        for i in range(6)
    ]
    data += [(f"Nobody number {i} has ever come to London .", []) for i in range(6)]
    return save_corpus(spacy.blank("en"), tmp_path / "train.spacy", data)


def run(config, folder):
    """Train as `spacy train` does."""
    nlp = init_nlp(load_config_from_str(config_text(config)))
    folder.mkdir()
    train_pipeline(nlp, folder)
    return nlp


@pytest.mark.parametrize(
    ("method", "accumulate_gradient", "share"),
    [("two-step", 1, 0.2), ("two-step-angle-crf", 3, 0.2), ("two-step", 1, None)],
)
def test_separate_steps_remove_the_same_tokens(
    method, accumulate_gradient, share, corpus, tmp_path
):
    def settings(steps, **changes):
        config = tiny_training(
            make_config(method, "cnn"), train_path=corpus, dev_path=corpus, steps=steps
        )
        block = config["components"][NAME]
        block["two_step"].update(share=share, **changes)
        config["training"]["accumulate_gradient"] = accumulate_gradient
        config["training"]["batcher"]["size"] = 40
        return config

    together = settings(6, epochs=2, write_to=str(tmp_path / "together.jsonl"))
    at_once = run(together, tmp_path / "at_once")

    first = settings(0, epochs=0)
    first["components"][NAME]["non_sampling"]["rate"] = 0.0
    first["training"]["max_epochs"] = 2
    run(first, tmp_path / "first")
    path, marked = tmp_path / "removed.jsonl", tmp_path / "marked.spacy"
    model = str(tmp_path / "first" / "model-last")
    found = select_tokens(model, corpus, path, corpus=marked)
    assert len(found.removed) > 3
    assert path.read_text("utf8") == (tmp_path / "together.jsonl").read_text("utf8")

    last = run(settings(6, epochs=2, read_from=str(path)), tmp_path / "last")
    assert change(all_weights(at_once), all_weights(last)) == 0
    docs = list(read_docs(marked, spacy.blank("en").vocab))
    assert sum(sum(missing_tokens(doc)) for doc in docs) == len(found.removed)
    for doc in docs:
        group = doc.spans["removed_tokens"]
        assert len(group.attrs["o_values"]) == len(group.attrs["ranks"]) == len(group)
        assert all(token.ent_iob == 0 for span in group for token in span)


def test_select_on_the_command_line(corpus, tmp_path):
    nlp = make_token_nlp()
    examples = list(AnnotationCorpus(corpus)(nlp))
    train(nlp, examples, steps=3)
    nlp.to_disk(tmp_path / "model")
    paths = (tmp_path / "model", corpus, tmp_path / "out.jsonl")
    arguments = [*map(str, paths), "--share", "0.1"]
    result = CliRunner().invoke(app, ["select", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    counts = json.loads(result.stdout[result.stdout.index("{") :])
    ranking = rank_outside(nlp, nlp.get_pipe(NAME), examples)
    assert counts == {
        "n_candidates": len(ranking),
        "n_removed": int(np.ceil(0.1 * len(ranking))),
    }
    assert len(read_removed(tmp_path / "out.jsonl")) == counts["n_removed"]
    shown = CliRunner().invoke(app, ["select", *arguments, "--corpus", str(tmp_path / "o.spacy")])
    assert "O-value" in shown.stdout
    assert (tmp_path / "o.spacy").is_file()


def test_select_errors(corpus, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    arguments = [str(corpus), str(tmp_path / "out.jsonl")]
    result = CliRunner().invoke(app, ["select", str(tmp_path / "blank"), *arguments])
    assert result.exit_code == 1
    assert "R193" in result.stderr + result.stdout
    make_token_nlp().to_disk(tmp_path / "model")
    with pytest.raises(ValueError, match=r"R193.*of the name 'x'.*robust_token_tagger"):
        select_tokens(str(tmp_path / "model"), corpus, tmp_path / "o", component="x")
    with pytest.raises(FileNotFoundError, match="R001"):
        select_tokens(str(tmp_path / "model"), tmp_path / "none", tmp_path / "o")
