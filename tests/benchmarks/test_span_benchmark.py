import json
import subprocess
import sys

import pytest
import spacy
import torch
from typer.testing import CliRunner

from spacy_robust_ner.benchmarks.span import METHODS, benchmark_span
from spacy_robust_ner.benchmarks.span_memory import DocumentMemory, measure_memory
from spacy_robust_ner.benchmarks.span_speed import InferenceSpeed, measure_inference, ratios
from spacy_robust_ner.benchmarks.span_training import make_component, measure_training
from spacy_robust_ner.benchmarks.synthetic import LABELS, as_examples, make_docs, write_encoder
from spacy_robust_ner.benchmarks.timing import cpu_seconds, one_thread
from spacy_robust_ner.cli import app


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"), layers=1, hidden=32)


def test_documents_have_the_length_and_density_asked_for():
    vocab = spacy.blank("en").vocab
    for length in (1, 15, 50):
        docs = make_docs(vocab, count=20, length=length)
        assert {len(doc) for doc in docs} == {length}
    entities = [ent for doc in docs for ent in doc.ents]
    assert len(entities) / (20 * 50) == pytest.approx(1 / 8, abs=0.03)
    assert {ent.label_ for ent in entities} == set(LABELS)
    assert all(token.is_title == bool(token.ent_type) for doc in docs for token in doc)
    half = make_docs(vocab, count=20, length=50, labeled=0.5)
    assert [doc.text for doc in half] == [
        doc.text for doc in make_docs(vocab, count=20, length=50, labeled=0.5)
    ]
    assert sum(len(doc.ents) for doc in half) == pytest.approx(len(entities) / 2, rel=0.3)
    (example,) = as_examples(docs[:1], spans_key="sc")
    assert not example.predicted.ents
    assert len(example.reference.spans["sc"]) == len(docs[0].ents)


def test_jobs_take_turns_and_the_median_counts():
    calls = []

    def busy():
        calls.append("busy")
        # Only the first rounds are slow, and the median does not see them.
        for _ in range(3_000_000 if len(calls) < 3 else 30_000):
            pass

    seconds = cpu_seconds(
        {"busy": busy, "idle": lambda: calls.append("idle")}, repetitions=3, warm_up=2
    )
    assert calls == ["busy", "idle"] * 5
    assert 0 <= seconds["idle"] < seconds["busy"] < 0.02


def fail_on_one_thread(seen):
    with one_thread():
        seen.append(torch.get_num_threads())
        raise KeyError


def test_one_thread_and_back():
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError):
            fail_on_one_thread(seen)
        assert seen == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("method", METHODS)
def test_a_timed_step_is_a_real_training_step(method):
    component, examples = make_component(method, width=24, batch_size=4, length=12, max_width=5)
    assert component.max_width == 5
    vectors = [component.model.ops.alloc2f(12, 24) + i + 0.1 for i in range(4)]
    losses, gradients = component.get_loss(examples, vectors)
    assert losses["robust_span_ner"] > 0
    assert losses["robust_span_ner_positives"] > 0
    assert losses["robust_span_ner_negatives"] > 0
    assert any(abs(gradient).sum() > 0 for gradient in gradients)
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in component.head.parameters())


def test_training_costs_of_each_method_and_length(encoder):
    costs = measure_training(
        encoder, methods=["span-ns", "span-all"], lengths=[4, 30], batch_size=4, repetitions=3
    )
    assert [(cost.method, cost.length) for cost in costs] == [
        ("span-ns", 4),
        ("span-all", 4),
        ("span-ns", 30),
        ("span-all", 30),
    ]
    assert all(cost.share == cost.added_seconds / cost.encoder_seconds > 0 for cost in costs)
    few, every = costs[2:]
    assert few.encoder_seconds == every.encoder_seconds
    assert few.added_seconds < every.added_seconds


def test_pipelines_find_what_they_learned(encoder):
    speeds = measure_inference(
        encoder, documents=8, length=16, train_steps=60, repetitions=1, max_width=4
    )
    assert [s.component for s in speeds] == ["robust_span_ner", "ner", "spancat_singlelabel"]
    assert all(speed.words_per_second > 0 for speed in speeds)
    assert 4 <= speeds[0].entities <= 64


def test_ratios_are_ours_by_theirs():
    speeds = [
        InferenceSpeed("robust_span_ner", 90.0, 1),
        InferenceSpeed("ner", 100.0, 1),
        InferenceSpeed("spancat_singlelabel", 60.0, 1),
    ]
    assert ratios(speeds) == {"ner": 0.9, "spancat_singlelabel": 1.5}


# In a process of its own, whose peak is not far above its present use.
GROWTH = """
from spacy_robust_ner.benchmarks.span_memory import peak_megabytes
before = peak_megabytes()
block = bytearray(b"x" * 400_000_000)
print(peak_megabytes() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the peak")
def test_peak_memory_sees_an_allocation():
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 300 < float(done.stdout) < 900


def test_growth_of_memory():
    assert DocumentMemory(1, None, None).growth is None
    assert DocumentMemory(1, 100.0, 130.0).growth == 30.0


def test_memory_of_a_document_in_a_new_process():
    (figures,) = measure_memory(lengths=[300])
    assert figures.tokens == 300
    assert figures.growth is None or 0 <= figures.growth < 300


def test_nothing_is_measured_unasked():
    result = benchmark_span(parts=())
    assert (result.training, result.inference, result.memory) == ([], [], [])
    assert result.to_dict()["speed_ratios"] == {}


def test_command(encoder, tmp_path):
    report = tmp_path / "figures.json"
    arguments = ["benchmark", "span", "--encoder", str(encoder), "--part", "training", "-n", "1"]
    arguments += ["-m", "span-ns", "--batch-size", "2", "--report", str(report)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    figures = json.loads(report.read_text(encoding="utf8"))
    assert [cost["length"] for cost in figures["training"]] == [15, 50, 150]
    assert all(f"{cost['share']:.1%}" in result.output for cost in figures["training"])
    assert figures["memory"] == figures["inference"] == []


def test_command_with_an_unknown_part():
    result = CliRunner().invoke(app, ["benchmark", "span", "--part", "colour"])
    assert result.exit_code == 1
    assert "[R016]" in result.output
