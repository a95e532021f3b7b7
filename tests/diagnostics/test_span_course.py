import io
import json
import random

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.diagnostics.span_course import (
    LABELED,
    MISSAMPLED,
    NEGATIVES,
    UNLABELED,
    Distribution,
    FollowedDoc,
    SpanCourse,
)
from spacy_robust_ner.diagnostics.span_course_training import follow_training
from spacy_robust_ner.pipeline.span_batch import doc_key
from spacy_robust_ner.recipes import config_text, make_config

WIDTH = 4


def make_docs(vocab, count=12):
    """Names are capitalised; half of them have no label."""
    rng = random.Random(0)
    gold, masked = [], []
    for i in range(count):
        words = [f"w{rng.randrange(30)}" for _ in range(8)] + [f"n{i}"]
        words[2], words[5] = f"Ada{i % 3}", f"Bob{i % 4}"
        spans = [(2, 3, "A"), (5, 6, "B")]
        for docs, own in ((gold, spans), (masked, spans[i % 2 :][:1])):
            doc = Doc(vocab, words=words)
            doc.set_ents([Span(doc, *span) for span in own])
            docs.append(doc)
    return masked, gold


def make_pipeline(docs):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("robust_span_ner", config={"model": {"max_width": WIDTH}})
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=[t.text for t in d]), d) for d in docs])
    return nlp, pipe


@pytest.fixture(scope="module")
def course():
    masked, gold = make_docs(spacy.blank("en").vocab)
    nlp, pipe = make_pipeline(gold)
    followed = [
        FollowedDoc(
            Doc(nlp.vocab, words=[token.text for token in one]),
            [(e.start, e.end) for e in one.ents],
            [(e.start, e.end) for e in other.ents],
        )
        for one, other in zip(masked, gold, strict=True)
    ]
    return SpanCourse(nlp, pipe, followed, texts=["Ada0", "Ada1 w"], batch_size=5)


def probabilities(course, spans):
    """One document at a time, one span at a time."""
    values = []
    for i, start, end in spans:
        doc = Doc(course.nlp.vocab, words=[token.text for token in course.followed[i].doc])
        (own,) = course.component.entity_probabilities([doc], max_width=WIDTH)
        listed = [(s, e) for s in range(len(doc)) for e in range(s + 1, len(doc) + 1) if e - s <= 4]
        values.append(own[listed.index((start, end))])
    return values


def test_groups_of_a_stage_agree_with_single_spans(course):
    docs = [item.doc for item in course.followed]
    keys = [doc_key(docs[0]), 1234, doc_key(docs[7])]
    index, starts, ends = torch.tensor([[0, 0, 3], [0, 5, 6], [1, 0, 1], [2, 2, 3], [0, 0, 3]]).T
    course(keys, index, starts, ends)
    stage = course.record(1)
    labeled = [(i, *span) for i, item in enumerate(course.followed) for span in item.labeled]
    hidden = [
        (i, *span)
        for i, item in enumerate(course.followed)
        for span in item.gold
        if span not in item.labeled
    ]
    expected = {
        LABELED: labeled,
        UNLABELED: hidden,
        NEGATIVES: [(0, 0, 3)],
        MISSAMPLED: [(0, 5, 6), (7, 2, 3)],
    }
    assert set(expected[MISSAMPLED]) <= set(hidden)
    for name, spans in expected.items():
        values = probabilities(course, spans)
        assert stage.groups[name].count == len(spans)
        assert stage.groups[name].mean == pytest.approx(np.mean(values), abs=1e-5)
        assert stage.groups[name].quantiles[2] == pytest.approx(np.median(values), abs=1e-5)
    mentions = [(i, 2, 3) for i in range(0, 12, 3)]
    assert stage.texts["Ada0"] == pytest.approx(probabilities(course, mentions), abs=1e-5)
    # Only whole tokens are mentions.
    assert stage.texts["Ada1 w"] == []
    # What was sampled before does not count again.
    assert set(course.record(2).groups) == {LABELED, UNLABELED}


def test_distribution_of_values():
    found = Distribution.of(np.array([0.0, 0.21, 0.61, 1.0]))
    assert (found.count, found.mean, found.likely) == (4, pytest.approx(0.455), 0.5)
    assert found.histogram == [1, *[0] * 3, 1, *[0] * 7, 1, *[0] * 6, 1]
    assert Distribution.of(np.empty(0)) is None


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    nlp = spacy.blank("en")
    masked, gold = make_docs(nlp.vocab)
    # The pipeline's own tokenizer cuts this differently.
    words = ["Ada2", "is", "a", "54-year-old", "woman", "x.", "Bob9", "sings"]
    for docs, spans in ((masked, [(6, 7, "B")]), (gold, [(0, 1, "A"), (6, 7, "B")])):
        doc = Doc(nlp.vocab, words=words)
        doc.set_ents([Span(doc, *span) for span in spans])
        docs.append(doc)
    write_docs(masked, folder / "train.spacy")
    write_docs(gold, folder / "gold.spacy")
    for method in ("span-all", "nrces"):
        text = config_text(make_config(method, "cnn"))
        (folder / f"{method}.cfg").write_text(text, encoding="utf8")
    return folder


def load(folder, method, **training):
    config = spacy.util.load_config(folder / f"{method}.cfg")
    path = str(folder / "train.spacy")
    config["paths"].update(train=path, dev=path)
    config["training"].update(max_epochs=3, max_steps=0, eval_frequency=100, **training)
    return config


@pytest.mark.parametrize("method", ["span-all", "nrces"])
def test_following_a_training(corpora, method):
    log = io.StringIO()
    course = follow_training(
        load(corpora, method), gold=corpora / "gold.spacy", stdout=log, stderr=log
    )
    assert [stage.epochs for stage in course.stages] == [0, 1, 2, 3]
    assert len(course.followed) == 13
    first, *later = course.stages
    assert set(first.groups) == {LABELED, UNLABELED}
    assert {stage.groups[LABELED].count for stage in course.stages} == {13}
    assert {stage.groups[UNLABELED].count for stage in course.stages} == {13}
    for stage in later:
        assert set(stage.groups) == {LABELED, UNLABELED, NEGATIVES, MISSAMPLED}
        if method == "span-all":
            assert stage.groups[MISSAMPLED] == stage.groups[UNLABELED]
        else:
            assert stage.groups[MISSAMPLED].count < 13
    assert course.component.sample_observer is None
    assert "update" not in vars(course.nlp)
    assert len({stage.groups[LABELED].mean for stage in course.stages}) == 4


def test_following_changes_nothing_in_training(corpora):
    weights = []
    for documents in (1, 13):
        log = io.StringIO()
        course = follow_training(
            load(corpora, "nrces"), documents=documents, stdout=log, stderr=log
        )
        weights.append(course.component.model.to_bytes())
        assert UNLABELED not in course.stages[0].groups
    assert weights[0] == weights[1]


def run(*arguments):
    return CliRunner().invoke(app, ["follow-spans", *map(str, arguments)])


def test_command(corpora, tmp_path):
    result = run(
        *(corpora / "span-all.cfg", corpora / "nrces.cfg", "--train", corpora / "train.spacy"),
        *("--gold", corpora / "gold.spacy", "--epochs", 1, "--text", "Bob1", "--documents", 2),
        *("-o", tmp_path / "new" / "course.json", "--plot", tmp_path / "new" / "course.svg"),
    )
    assert result.exit_code == 0, result.output
    assert "'Bob1'" in result.output
    figures = json.loads((tmp_path / "new" / "course.json").read_text(encoding="utf8"))
    assert list(figures) == ["span-all", "nrces"]
    for course in figures.values():
        assert [stage["epochs"] for stage in course["stages"]] == [0, 1]
        assert course["documents"] == 4
        assert len(course["stages"][0]["texts"]["Bob1"]) == 2
    assert "<svg" in (tmp_path / "new" / "course.svg").read_text(encoding="utf8")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere.cfg", "--train", "train.spacy"), "R134"),
        (("nrces.cfg", "--train", "nowhere.spacy"), "R001"),
        (("nrces.cfg", "--train", "train.spacy", "--epochs", "0"), "R086"),
        (("nrces.cfg", "--train", "train.spacy", "--documents", "0"), "R086"),
        (("nrces.cfg", "--train", "train.spacy", "--text", "Zoe"), "R222"),
        (("nrces.cfg", "--train", "train.spacy", "--text", "Ad"), "R222"),
        (("nrces.cfg", "--train", "train.spacy", "--gold", "other.spacy"), "R223"),
        (("nrces.cfg", "--train", "train.spacy", "--plot", "x.txt"), "R066"),
    ],
)
def test_command_errors(corpora, monkeypatch, arguments, code):
    monkeypatch.chdir(corpora)
    nlp = spacy.blank("en")
    write_docs([Doc(nlp.vocab, words=["other"])], corpora / "other.spacy")
    result = run(*arguments)
    assert result.exit_code == 1
    assert f"[{code}]" in result.output
