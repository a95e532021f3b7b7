import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from typer.testing import CliRunner

from spacy_robust_ner.annotation import set_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.cli.fit_centroids import fit_centroids
from spacy_robust_ner.corpus.io import write_docs

RETRIEVAL = {"@misc": "spacy_robust_ner.Retrieval.v1", "alpha": 0.3, "form": "log", "decay": 0.9}
SENTENCES = [
    (["Mina", "lives", "in", "Oslo"], [(0, 1, "PER"), (3, 4, "LOC")]),
    (["Oslo", "is", "far", "from", "Lima"], [(0, 1, "LOC"), (4, 5, "LOC")]),
    (["nobody", "asked", "Mina", "Berg", "about", "it"], [(2, 4, "PER")]),
]


SETTINGS = {
    "sampler": {"@misc": "spacy_robust_ner.UniformSampler.v1", "rate": 0.35},
    "loss": {"@misc": "spacy_robust_ner.CrossEntropy.v1"},
    "ratio": None,
}


def make_docs(vocab):
    for words, ents in SENTENCES:
        doc = Doc(vocab, words=words)
        doc.set_ents([Span(doc, start, end, label) for start, end, label in ents])
        set_complete(doc, False)
        yield doc


def save_pipeline(folder, *, retrieval, seed=0):
    spacy.util.fix_random_seed(seed)
    nlp = spacy.blank("en")
    nlp.add_pipe("robust_span_ner", config={**SETTINGS, "retrieval": retrieval})
    nlp.initialize(lambda: [Example(doc.copy(), doc) for doc in make_docs(nlp.vocab)])
    nlp.to_disk(folder)
    return nlp


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.spacy"
    write_docs(make_docs(spacy.blank("en").vocab), path)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["fit-centroids", *map(str, arguments)])


def test_centroids_are_those_of_the_component(tmp_path, train):
    nlp = save_pipeline(tmp_path / "model", retrieval=RETRIEVAL)
    fitted = fit_centroids(str(tmp_path / "model"), train, tmp_path / "out")
    assert fitted.component == "robust_span_ner"
    assert (fitted.spans["PER"], fitted.spans["LOC"]) == (2, 3)
    # ⌈0.35 · 4⌉ + ⌈0.35 · 5⌉ + ⌈0.35 · 6⌉
    assert fitted.spans["O"] == 7
    examples = [
        Example(Doc(nlp.vocab, words=words), doc)
        for (words, _), doc in zip(SENTENCES, make_docs(nlp.vocab), strict=True)
    ]
    expected = nlp.get_pipe("robust_span_ner").fit_centroids(nlp, examples)
    pipe = spacy.load(tmp_path / "out").get_pipe("robust_span_ner")
    np.testing.assert_array_equal(pipe.centroids.counts, expected.counts)
    # The entities' vectors; negatives are drawn anew.
    np.testing.assert_allclose(pipe.centroids.means[1:], expected.means[1:], rtol=1e-5)
    assert (pipe.retrieval.alpha, pipe.retrieval.form, pipe.retrieval.decay) == (0.3, "log", 0.9)


def test_a_pipeline_without_centroids_works_after_fitting(tmp_path, train):
    save_pipeline(tmp_path / "model", retrieval=RETRIEVAL)
    with pytest.raises(ValueError, match="R116"):
        spacy.load(tmp_path / "model")("Mina lives in Oslo")
    result = run(tmp_path / "model", train, tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "Retrieval: alpha = 0.3, form = log" in result.output
    assert len(spacy.load(tmp_path / "out")("Mina lives in Oslo")) == 4


def test_settings_change_what_is_predicted_after_loading(tmp_path, train):
    save_pipeline(tmp_path / "model", retrieval=RETRIEVAL)
    probabilities = {}
    for alpha in (0.0, 1.0):
        result = run(
            tmp_path / "model", train, tmp_path / "out", "--alpha", alpha, "--form", "probability"
        )
        assert result.exit_code == 0, result.output
        nlp = spacy.load(tmp_path / "out")
        pipe = nlp.get_pipe("robust_span_ner")
        assert (pipe.retrieval.alpha, pipe.retrieval.form) == (alpha, "probability")
        assert nlp.config["components"]["robust_span_ner"]["retrieval"]["alpha"] == alpha
        doc = nlp.make_doc("Mina lives in Oslo")
        pipe.set_candidates([doc])
        probabilities[alpha] = doc.spans["candidates"].attrs["scores"]
    np.testing.assert_allclose(probabilities[0.0].sum(1), 1.0, rtol=1e-5)
    # Retrieval alone has no probability left for "no entity".
    assert (probabilities[1.0][:, 0] == 0).all()
    assert (probabilities[1.0][:, 1:] > 0).all()


def test_without_a_block_it_has_to_be_asked_for(tmp_path, train):
    save_pipeline(tmp_path / "model", retrieval=None)
    result = run(tmp_path / "model", train, tmp_path / "out", "--alpha", "0.2")
    assert result.exit_code == 1
    assert "[R132]" in result.output
    assert "--add" in result.output
    assert not (tmp_path / "out").exists()
    result = run(tmp_path / "model", train, tmp_path / "out", "--alpha", "0.2", "--add")
    assert result.exit_code == 0, result.output
    nlp = spacy.load(tmp_path / "out")
    assert nlp.get_pipe("robust_span_ner").retrieval.alpha == 0.2
    assert nlp.get_pipe("robust_span_ner").centroids.counts[1:].tolist() == [3, 2]


def test_output_may_be_the_input(tmp_path, train):
    save_pipeline(tmp_path / "model", retrieval=RETRIEVAL)
    assert run(tmp_path / "model", train, tmp_path / "model", "--limit", "1").exit_code == 0
    pipe = spacy.load(tmp_path / "model").get_pipe("robust_span_ner")
    assert pipe.centroids.counts[1:].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--alpha", "1.5"), "R103"),
        (("--form", "product"), "R105"),
        (("--component", "other"), "R131"),
    ],
)
def test_settings_that_can_not_be(tmp_path, train, options, code):
    save_pipeline(tmp_path / "model", retrieval=RETRIEVAL)
    result = run(tmp_path / "model", train, tmp_path / "out", *options)
    assert result.exit_code == 1
    assert f"[{code}]" in result.output
    assert not (tmp_path / "out").exists()


def test_paths_and_pipelines_that_can_not_be(tmp_path, train):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "other")
    for model, corpus, code in (
        (tmp_path / "other", train, "R131"),
        (tmp_path / "nowhere", train, "R134"),
        (tmp_path / "other", tmp_path / "nowhere.spacy", "R001"),
    ):
        result = run(model, corpus, tmp_path / "out")
        assert result.exit_code == 1
        assert f"[{code}]" in result.output
