"""O-values of unlabeled entities: figures by brute force, claims by made-up figures."""

import json
import math
from itertools import product

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training.initialize import init_nlp
from typer.testing import CliRunner

from spacy_robust_ner.annotation import set_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.cli.o_values import study_o_values
from spacy_robust_ner.corpus.io import read_docs, write_docs
from spacy_robust_ner.diagnostics.detection import SHARES, detect, separation, summarize
from spacy_robust_ner.diagnostics.exploration import (
    LABELED,
    OUTSIDE,
    UNLABELED,
    EpochValues,
    Exploration,
    explore,
    find_tagger,
)
from spacy_robust_ner.diagnostics.o_value_page import o_value_page
from spacy_robust_ner.diagnostics.o_value_study import (
    FAILS,
    HOLDS,
    IN_PART,
    OValueStudy,
    check_claims,
    comparable_heads,
)
from spacy_robust_ner.pipeline.span_batch import doc_key
from spacy_robust_ner.recipes import config_text, make_config

NAME = "robust_token_tagger"


def make_corpora(path, *, count=30, seed=0, complete=0):
    """Write sentences of which every second entity has lost its label, and the same with all.

    RETURNS: The paths, and for each token whether it is unlabeled, "O" or labeled.
    """
    rng = np.random.default_rng(seed)
    vocab = spacy.blank("en").vocab
    masked, gold, kinds = [], [], []
    for number in range(count):
        words = [f"w{i}" for i in rng.integers(20, size=12)]
        ents = [(start, start + int(rng.integers(1, 4))) for start in (1, 6)]
        for start, end in ents:
            words[start:end] = [f"Name{i}" for i in rng.integers(6, size=end - start)]
        kept = [ent for ent in ents if rng.random() < 0.5]
        for docs, spans in ((gold, ents), (masked, kept)):
            doc = Doc(vocab, words=words)
            doc.set_ents([Span(doc, *span, "PER") for span in spans])
            docs.append(doc)
        own = [OUTSIDE] * 12
        for start, end in ents:
            own[start:end] = [LABELED if (start, end) in kept else UNLABELED] * (end - start)
        if number < complete:
            set_complete(masked[-1], True)
            own = [kind if kind == LABELED else None for kind in own]
        kinds.append(own)
    paths = path / "masked.spacy", path / "gold.spacy"
    for docs, target in zip((masked, gold), paths, strict=True):
        write_docs(docs, target)
    return *paths, kinds


def tiny_config(method="two-step", *, lr=0.01):
    config = make_config(method, "cnn")
    model = config["components"]["tok2vec"]["model"]
    model["encode"].update(width=16, depth=1)
    model["embed"].update(rows=[100, 50, 50, 50])
    config["training"]["batcher"]["size"] = 60
    config["training"]["optimizer"]["learn_rate"] = lr
    return config


def test_detection_by_brute_force():
    rng = np.random.default_rng(0)
    for n, low in product((40, 333), (-1.0, 0.0)):
        is_unlabeled = rng.random(n) < 0.3
        # Rounded, so that there are ties.
        values = np.round(rng.normal(size=n) + low * is_unlabeled, 1)
        found = detect(values, is_unlabeled)
        order = sorted(range(n), key=lambda i: (values[i], i))
        hidden = is_unlabeled.sum()
        assert found.base_rate == hidden / n
        for point in (*found.points, *found.curve):
            removed = order[: math.ceil(round(point.share * n, 9))]
            hits = sum(is_unlabeled[i] for i in removed)
            assert point.removed == len(removed)
            assert point.precision == pytest.approx(hits / len(removed))
            assert point.recall == pytest.approx(hits / hidden)
        pairs = product(values[is_unlabeled], values[~is_unlabeled])
        wins = [(a < b) + (a == b) / 2 for a, b in pairs]
        assert found.auc == pytest.approx(np.mean(wins))
        ranks = [k for k, i in enumerate(order, 1) if is_unlabeled[i]]
        precisions = [j / k for j, k in enumerate(ranks, 1)]
        assert found.average_precision == pytest.approx(np.mean(precisions))
        assert found.curve[-1].recall == 1
    assert [point.share for point in found.points] == list(SHARES)
    assert found.at(SHARES[2]) is found.points[2]
    assert SHARES[0] == pytest.approx(0.1 / 32)
    assert SHARES[-1] == 0.1


def test_summary_and_separation():
    low, high = summarize(np.array([0.0, 2.0])), summarize(np.array([3.0, 3.0, 6.0, 6.0]))
    assert (low.count, low.mean, low.sd, low.quantiles["0.5"]) == (2, 1.0, 1.0, 1.0)
    assert separation(low, high) == pytest.approx(3.5 / math.sqrt((1 + 2.25) / 2))
    assert separation(low, low) == 0
    assert separation(summarize(np.ones(2)), summarize(np.ones(3))) == 0
    assert summarize(np.zeros(0)) is None


@pytest.mark.parametrize("method", ["two-step", "two-step-angle-crf"])
def test_exploration_is_that_of_two_step_learning(tmp_path, method):
    """Looking after each epoch changes nothing, and the figures are those of what is removed."""
    masked, gold, kinds = make_corpora(tmp_path, complete=5)
    config = tiny_config(method)
    seen = []
    found = explore(
        config, masked, gold, name="it", epochs=2, seed=3, after_epoch=lambda v: seen.append(v)
    )
    assert [values.epoch for values in found.epochs] == [1, 2]
    assert seen == found.epochs
    names = [kind for own in kinds for kind in own]
    n_candidates = names.count(UNLABELED) + names.count(OUTSIDE)
    for values in found.epochs:
        assert {group: s.count for group, s in values.groups.items()} == {
            group: names.count(group) for group in (UNLABELED, OUTSIDE, LABELED)
        }
        assert values.detection.base_rate == names.count(UNLABELED) / n_candidates
        config["components"][NAME]["two_step"].update(epochs=values.epoch, share=0.1)
        config["paths"].update(train=str(masked), dev=str(masked))
        config["system"]["seed"] = 3
        removed = find_tagger(init_nlp(config), path="it").removed
        docs = read_docs(masked, spacy.blank("en").vocab)
        at_doc = {doc_key(doc): i for i, doc in enumerate(docs)}
        assert len(at_doc) == len(kinds)
        hits = [
            kinds[at_doc[doc]][token] == UNLABELED
            for doc, token in zip(removed.docs.tolist(), removed.tokens.tolist(), strict=True)
        ]
        point = values.detection.at(0.1)
        assert (point.removed, point.precision) == (len(removed), sum(hits) / len(removed))
    assert found.unlabeled_entities == _count_unlabeled(masked, gold)
    assert (found.head, found.crf) == (
        ("SoftmaxHead", False) if method == "two-step" else ("AngleHead", True)
    )
    assert (found.encoder, found.seed, found.documents) == ("tok2vec", 3, 30)


def _count_unlabeled(masked, gold):
    vocab = spacy.blank("en").vocab
    counts = (sum(len(doc.ents) for doc in read_docs(path, vocab)) for path in (gold, masked))
    return next(counts) - next(counts)


def test_learned_names_are_detected(tmp_path):
    masked, gold, _ = make_corpora(tmp_path, count=120)
    found = explore(tiny_config(), masked, gold, name="it", epochs=3)
    last = found.epochs[-1]
    assert last.gap > 0
    assert last.gap == pytest.approx(last.mean(OUTSIDE) - last.mean(UNLABELED))
    assert last.separation > 1
    assert last.detection.auc > 0.9
    assert last.detection.at(0.1).precision > 3 * last.detection.base_rate
    assert all(v.training_seconds > 0 and v.ranking_seconds > 0 for v in found.epochs)


def made_up(name, gaps, precisions, *, head="SoftmaxHead", crf=False, seed=0, seconds=1.0):
    """A run with given gaps by epoch and precisions by share."""
    epochs = []
    for number, gap in enumerate(gaps, 1):
        rng = np.random.default_rng(0)
        is_unlabeled = rng.random(640) < 0.25
        groups = {
            UNLABELED: summarize(np.array([0.0, 2.0])),
            OUTSIDE: summarize(np.array([0.0, 2.0]) + gap),
            LABELED: None,
        }
        detection = detect(rng.normal(size=640), is_unlabeled)
        for point, precision in zip(detection.points, precisions, strict=True):
            object.__setattr__(point, "precision", precision)
        epochs.append(EpochValues(number, seconds, 0.3, groups, gap, gap, detection))
    return Exploration(name, head, crf, "tok2vec", seed, 5, 7, epochs)


FALLING = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)


def verdicts(*runs):
    claims = check_claims(OValueStudy(list(runs), run_epochs=20))
    return {(claim.topic.split()[0], claim.method): claim.verdict for claim in claims}


@pytest.mark.parametrize(
    ("gaps", "lower", "closing"),
    [
        ((2.0, 1.0, 0.5, 0.2), HOLDS, HOLDS),
        ((2.0, 3.0, 2.5, 2.0), HOLDS, IN_PART),
        ((1.0, 2.0, 3.0, 4.0), HOLDS, FAILS),
        ((2.0, 1.9, 1.8, 1.85), HOLDS, FAILS),
        ((-0.5, 0.5, 1.0, 0.1), IN_PART, HOLDS),
        ((-1.0, -1.0, -1.0, -2.0), FAILS, FAILS),
    ],
)
def test_claims_about_values(gaps, lower, closing):
    found = verdicts(made_up("a", gaps, FALLING))
    assert found["Lower", "a"] == lower
    assert found["Not", "a"] == closing


def test_claims_about_precision_and_time():
    found = verdicts(made_up("a", (1, 1, 1), FALLING))
    assert found["Surest", "a"] == HOLDS
    # (1 + .3) / 20 is 6.5%, and so on.
    assert found["Little", "a"] == HOLDS
    uneven = (0.9, 0.95, 0.7, 0.6, 0.5, 0.4)
    assert verdicts(made_up("a", (1, 1, 1), uneven))["Surest", "a"] == IN_PART
    # A prediction pass as long as an epoch: 10% for n = 1, 20% for n = 3.
    slow = verdicts(made_up("a", (1, 1, 1), FALLING, seconds=0.3))
    assert slow["Little", "a"] == IN_PART


def test_angle_is_compared_with_the_same_model_without():
    softmax = made_up("two-step", (1, 1), FALLING)
    better = [p + 0.01 for p in FALLING]
    mixed = [*better[:3], *(p - 0.01 for p in FALLING[3:])]
    for precisions, verdict in ((better, HOLDS), (mixed, IN_PART), (FALLING, FAILS)):
        angle = made_up("angle", (1, 1), precisions, head="AngleHead")
        found = verdicts(softmax, angle)
        assert found["Angle", "angle"] == verdict
    with_crf = made_up("angle + CRF", (1, 1), better, head="AngleHead", crf=True)
    assert comparable_heads(OValueStudy([softmax, angle, with_crf])) == [("angle", "two-step")]


def test_figures_are_means_over_seeds():
    runs = [made_up("a", (gap,), FALLING, seed=seed) for seed, gap in enumerate((1.0, 3.0))]
    study = OValueStudy(runs)
    spread = study.figure("a", 1, lambda values: values.gap)
    assert (spread.mean, spread.low, spread.high) == (2.0, 1.0, 3.0)
    assert (study.names, study.seeds, study.n_epochs) == (["a"], [0, 1], 1)
    assert study.extra_time("a", 1) == pytest.approx(1.3 / 20)


def test_page_has_the_figures_and_drawings(tmp_path):
    runs = [
        made_up("plain", (2.0, 1.25, 0.5), FALLING),
        made_up("angled", (2.0, 1.0, 0.5), [p + 0.02 for p in FALLING], head="AngleHead"),
    ]
    page = o_value_page(OValueStudy(runs), corpus="made up")
    page.write_markdown(tmp_path / "page.md")
    page.write_html(tmp_path / "page.html")
    text = (tmp_path / "page.md").read_text(encoding="utf8")
    assert "# O-values of unlabeled entities: made up" in text
    assert "| plain | 2 | 1.00 | 2.25 | 1.25 | 1.25 |" in text
    assert "| Angle detects better (figure 6) | – | holds |" in text
    assert "angled: holds. Better than plain after epoch 1: at 6 of 6 shares" in text
    base = runs[0].epochs[0].detection.base_rate
    assert f"a precision of {base:.1%}" in text
    for name in ("o-values-by-epoch", "o-value-separation", "detection-by-share"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "detection-by-epoch.png").stat().st_size > 5000
    bare = o_value_page(OValueStudy(runs), corpus="made up", plots=False)
    assert len(page.blocks) - len(bare.blocks) == 4


def test_command(tmp_path):
    masked, gold, _ = make_corpora(tmp_path)
    config = tmp_path / "tiny.cfg"
    config.write_text(config_text(tiny_config()), encoding="utf8")
    output = tmp_path / "out"
    arguments = ["o-values", str(masked), str(gold), str(output), "--config", str(config)]
    result = CliRunner().invoke(app, [*arguments, "-n", "2", "-s", "1", "-s", "2"])
    assert result.exit_code == 0, result.output
    figures = json.loads((output / "o-values.json").read_text(encoding="utf8"))
    assert [(run["name"], run["seed"]) for run in figures["runs"]] == [("tiny", 1), ("tiny", 2)]
    gaps = [[epoch["gap"] for epoch in run["epochs"]] for run in figures["runs"]]
    assert gaps[0] != gaps[1]
    text = (output / "o-values.md").read_text(encoding="utf8")
    assert f"| {np.mean([gap[1] for gap in gaps]):.2f} |" in text
    assert (output / "o-values.html").is_file()
    assert "HOLD" in result.output


def test_the_masked_corpus_is_the_one_that_is_trained_on(tmp_path):
    masked, gold, _ = make_corpora(tmp_path)
    config = tiny_config()
    (run,) = study_o_values({"it": config}, masked, gold, epochs=1).runs
    # What the config says of paths and exploration is not touched.
    assert config["corpora"]["train"]["path"] == "${paths.train}"
    assert config["components"][NAME]["two_step"] is not None
    assert run.epochs[0].groups[LABELED].count > 0


def test_errors(tmp_path):
    masked, gold, _ = make_corpora(tmp_path)
    (tmp_path / "other").mkdir()
    _, other, _ = make_corpora(tmp_path / "other", seed=1)
    (tmp_path / "short").mkdir()
    _, short, _ = make_corpora(tmp_path / "short", count=29)
    span = tmp_path / "span.cfg"
    span.write_text(config_text(make_config("span-ns", "cnn")), encoding="utf8")
    tiny = tmp_path / "tiny.cfg"
    tiny.write_text(config_text(tiny_config()), encoding="utf8")
    for code, files, config, epochs in (
        ("R194", (gold, gold), tiny, 1),
        ("R130", (masked, other), tiny, 1),
        ("R130", (masked, short), tiny, 1),
        ("R193", (masked, gold), span, 1),
        ("R086", (masked, gold), tiny, 0),
        ("R134", (masked, gold), tmp_path / "none.cfg", 1),
    ):
        arguments = ["o-values", *map(str, files), str(tmp_path / "out"), "-c", str(config)]
        result = CliRunner().invoke(app, [*arguments, "-n", str(epochs)])
        assert result.exit_code == 1, code
        assert f"[{code}]" in result.output
