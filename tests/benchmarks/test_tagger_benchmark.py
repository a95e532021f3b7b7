import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from spacy_robust_ner.benchmarks.ratio import Ratio
from spacy_robust_ner.benchmarks.synthetic import LABELS, write_encoder
from spacy_robust_ner.benchmarks.tagger import METHODS, TaggerBenchmark, benchmark_tagger
from spacy_robust_ner.benchmarks.tagger_exploration import measure_exploration
from spacy_robust_ner.benchmarks.tagger_inference import measure_inference
from spacy_robust_ner.benchmarks.tagger_training import (
    encoder_step,
    get_tagger,
    measure_training,
    prepare_pipeline,
    sentences_a_batch,
)
from spacy_robust_ner.cli import app


@pytest.fixture(scope="module", params=["cnn", "trf"])
def encoder(request, tmp_path_factory):
    if request.param == "cnn":
        return None
    return write_encoder(tmp_path_factory.mktemp("encoder"), layers=1, hidden=32)


def gradient_size(model):
    total = 0.0
    for node in model.walk():
        for name in node.param_names:
            if node.has_grad(name):
                total += float(abs(node.get_grad(name)).sum())
        for shim in node.shims:
            gradients = (parameter.grad for parameter in shim._model.parameters())
            total += sum(float(g.abs().sum()) for g in gradients if g is not None)
    return total


def test_quotients_and_limits():
    within = Ratio("training", "cnn", "loss", 0.1, "step", 1.0, 0.15)
    above = Ratio("training", "cnn", "loss", 0.2, "step", 1.0, 0.15)
    unlimited = Ratio("training", "cnn", "loss", 9.0, "step", 1.0)
    assert (within.value, above.value) == (0.1, 0.2)
    assert (within.passed, above.passed, unlimited.passed) == (True, False, None)
    result = TaggerBenchmark([within, above, unlimited])
    assert result.failed == [above]
    assert result.to_dict()["ratios"][1]["passed"] is False


@pytest.mark.parametrize("method", METHODS)
def test_a_timed_loss_is_a_real_one(method):
    nlp, examples = prepare_pipeline(method, None, length=15, count=8)
    tagger = get_tagger(nlp)
    assert tagger.labels == LABELS
    assert len(tagger.tag_set) == 17 + 4 * (method == "two-step-crf")
    vectors = encoder_step(nlp, tagger, examples)
    losses, gradients = tagger.get_loss(examples, vectors)
    assert losses[tagger.name] > 0
    assert any(abs(gradient).sum() > 0 for gradient in gradients)
    assert (tagger.removed is not None) == (method == "two-step-crf")
    if tagger.removed is not None:
        outside = sum(token.ent_iob_ == "O" for example in examples for token in example.reference)
        assert len(tagger.removed) == math.ceil(0.025 * outside)
        assert losses[f"{tagger.name}_removed"] == len(tagger.removed)


def test_the_encoders_step_goes_forward_and_backward(encoder):
    nlp, examples = prepare_pipeline("token-crf", encoder, length=6, count=3)
    network = nlp.pipeline[0][1].model
    assert gradient_size(network) == 0
    vectors = encoder_step(nlp, get_tagger(nlp), examples)
    assert [len(array) for array in vectors] == [6, 6, 6]
    assert np.isfinite(np.concatenate(vectors)).all()
    assert gradient_size(network) > 0


def test_batches_are_those_of_the_recipes(encoder):
    nlp, examples = prepare_pipeline("token-crf", encoder, length=50)
    expected = 20 if encoder is None else 16
    assert (len(examples), sentences_a_batch(nlp, 15)) == (expected, 67 if encoder is None else 16)


def test_training(encoder):
    ratios = measure_training(
        encoder, methods=["token-crf"], lengths=[4, 8], batch_size=4, repetitions=1
    )
    assert len(ratios) == 6
    assert [ratio.limit for ratio in ratios] == [0.15, 0.03, 1.15] * 2
    assert {ratio.encoder for ratio in ratios} == {"cnn" if encoder is None else "trf"}
    loss, bookkeeping, rival = ratios[:3]
    assert "token-crf" in loss.what
    assert "4 tokens" in loss.what
    assert 0 < loss.seconds < 100 * loss.base_seconds
    assert bookkeeping.seconds < rival.seconds


def test_inference(encoder):
    viterbi, whole, rival = measure_inference(encoder, documents=10, train_steps=3, repetitions=1)
    assert (viterbi.limit, whole.limit, rival.limit) == (0.10, None, 1.15)
    assert viterbi.base_seconds == whole.base_seconds == rival.seconds
    assert viterbi.seconds < rival.seconds


def test_exploration(encoder):
    ratios = measure_exploration(encoder, documents=8, run_epochs=10, repetitions=1)
    assert [ratio.limit for ratio in ratios] == [0.08, 0.14, 0.20]
    one, two, three = (ratio.seconds for ratio in ratios)
    assert two - one == pytest.approx(three - two)
    # Ranking is part of it, and cheaper than an epoch.
    assert 0 < 2 * one - two < two - one


def test_nothing_is_measured_unasked():
    assert benchmark_tagger(parts=()).ratios == []
    assert benchmark_tagger(encoders=()).ratios == []


def test_command(tmp_path):
    report = tmp_path / "figures.json"
    arguments = ["benchmark", "tagger", "-e", "cnn", "--part", "training", "-n", "1"]
    arguments += ["-m", "token-crf", "--batch-size", "2", "--report", str(report)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    figures = json.loads(report.read_text(encoding="utf8"))
    for ratio in figures["ratios"]:
        value = f"{ratio['value']:.2f}" if ratio["limit"] > 1 else f"{ratio['value']:.1%}"
        assert value in result.output
    above = [ratio for ratio in figures["ratios"] if not ratio["passed"]]
    assert result.output.count("ABOVE") == len(above) == figures["failed"]


@pytest.mark.parametrize("option", ["--part", "--encoder"])
def test_command_with_an_unknown_choice(option):
    result = CliRunner().invoke(app, ["benchmark", "tagger", option, "colour"])
    assert result.exit_code == 1
    assert "[R016]" in result.output
