import json

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.cli.span_vectors import tell_apart
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.diagnostics.projection import (
    SpanVectors,
    collect_span_vectors,
    project,
)

WIDTH = 3


def make_spans(seed=0, counts=(("A", 20), ("B", 15), ("O", 30))):
    rng = np.random.default_rng(seed)
    labels = [label for label, count in counts for _ in range(count)]
    centres = {label: rng.normal(size=6) for label, _ in counts}
    vectors = np.array([centres[label] + 0.3 * rng.normal(size=6) for label in labels])
    return SpanVectors(vectors, labels, [f"t{i}" for i in range(len(labels))])


def test_projection_keeps_the_most_variance():
    spans = make_spans()
    found = project(spans)
    unit = np.array([vector / np.linalg.norm(vector) for vector in spans.vectors])
    centred = unit - unit.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    order = np.argsort(values)[::-1]
    for axis in (0, 1):
        own = centred @ vectors[:, order[axis]]
        assert np.abs(found.points[:, axis]) == pytest.approx(np.abs(own), abs=1e-9)
        assert found.explained[axis] == pytest.approx(values[order[axis]] / values.sum())
    again = project(spans)
    assert (again.points == found.points).all()


def test_cosines_agree_with_a_loop_over_pairs():
    spans = make_spans(1)
    found = project(spans)
    pairs = {"within": [], "between": [], "to_outside": []}
    for i, (one, label) in enumerate(zip(spans.vectors, spans.labels, strict=True)):
        for other, name in list(zip(spans.vectors, spans.labels, strict=True))[i + 1 :]:
            if label == name == "O":
                continue
            kind = (
                "to_outside" if "O" in (label, name) else "within" if label == name else "between"
            )
            norms = np.linalg.norm(one) * np.linalg.norm(other)
            pairs[kind].append(one @ other / norms)
    for kind, values in pairs.items():
        assert getattr(found, kind) == pytest.approx(np.mean(values))


@pytest.mark.parametrize("counts", [(("A", 1),), (("A", 2),), (("A", 1), ("O", 1))])
def test_projection_of_very_few_spans(counts):
    found = project(make_spans(counts=counts))
    assert np.isfinite(found.points).all()
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("projection")
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("robust_span_ner", config={"model": {"max_width": WIDTH}})
    docs = []
    for i in range(10):
        doc = Doc(nlp.vocab, words=[f"w{i}", "Ada", "met", "New", "Old", "York", "City", "."])
        # The place in every other document is too wide for the component.
        ents = [Span(doc, 1, 2, "PER"), Span(doc, 3, 7, "LOC")]
        doc.set_ents(ents if i % 2 else ents[:1])
        docs.append(doc)
    with pytest.warns(UserWarning, match="W100"):
        nlp.initialize(
            lambda: [Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc) for doc in docs]
        )
    nlp.to_disk(folder / "model")
    write_docs(docs, folder / "gold.spacy")
    return nlp, pipe, docs, folder


def test_vectors_are_those_of_the_head(trained):
    nlp, pipe, docs, _ = trained
    found = collect_span_vectors(nlp, pipe, docs, batch_size=3)
    assert found.labels.count("PER") == found.labels.count("O") == 10
    assert "LOC" not in found.labels
    assert len(found.vectors) == len(found.texts) == 20
    for label, text, vector in zip(found.labels, found.texts, found.vectors, strict=True):
        assert (text == "Ada") == (label == "PER")
        assert len(text.split()) <= WIDTH
        assert vector.shape == (256,)
    # One document alone, through the component's own candidates.
    alone = collect_span_vectors(nlp, pipe, docs[:1])
    assert alone.vectors[0] == pytest.approx(found.vectors[0], abs=1e-5)
    same = collect_span_vectors(nlp, pipe, docs, batch_size=3)
    assert same.texts == found.texts
    assert collect_span_vectors(nlp, pipe, docs, batch_size=3, seed=1).texts != found.texts
    assert collect_span_vectors(nlp, pipe, docs, spans=7).labels == ["PER"] * 3 + ["O"] * 3


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (["runs/a/model-best"], ["runs/a/model-best"]),
        (["runs/a/model-best", "runs/b/model-best"], ["a", "b"]),
        (["runs/a/best", "runs/b/c/best", "runs/a/last"], ["a/best", "b/c/best", "a/last"]),
        (["/x/a", "/y/a"], ["x", "y"]),
        (["one_package", "another"], ["one_package", "another"]),
        # Nothing would be left of the shorter one, or nothing tells them apart.
        (["runs/a", "runs/a/b"], ["runs/a", "runs/a/b"]),
        (["runs/a", "runs/a"], ["runs/a", "runs/a"]),
    ],
)
def test_names_tell_pipelines_apart(models, names):
    assert tell_apart(models) == names


def test_command(trained, tmp_path):
    folder = trained[3]
    arguments = ["span-vectors", folder / "gold.spacy", folder / "model", folder / "model"]
    options = ["-o", tmp_path / "new" / "x.json", "--plot", tmp_path / "new" / "x.png"]
    result = CliRunner().invoke(app, [str(part) for part in (*arguments, *options)])
    assert result.exit_code == 0, result.output
    assert "same label" in result.output
    figures = json.loads((tmp_path / "new" / "x.json").read_text(encoding="utf8"))
    (projection,) = figures.values()
    assert len(projection["spans"]) == 20
    assert projection["between"] is None
    assert (tmp_path / "new" / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("gold.spacy", "nowhere"), "R134"),
        (("nowhere.spacy", "model"), "R001"),
        (("gold.spacy", "model", "--spans", "1"), "R086"),
        (("gold.spacy", "model", "--component", "x"), "R131"),
        (("empty.spacy", "model"), "R224"),
    ],
)
def test_command_errors(trained, monkeypatch, arguments, code):
    nlp, _, _, folder = trained
    monkeypatch.chdir(folder)
    write_docs([Doc(nlp.vocab, words=["nobody"])], folder / "empty.spacy")
    result = CliRunner().invoke(app, ["span-vectors", *arguments])
    assert result.exit_code == 1
    assert f"[{code}]" in result.output
