import io
import json
import math
import random

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_config_from_str
from typer.testing import CliRunner

from spacy_robust_ner.annotation import REJECTED_SPANS_KEY, set_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.diagnostics.missampling import (
    SAMPLERS,
    MissamplingObserver,
    find_component,
    measure_missampling,
    pair_corpora,
    parse_sampler,
)
from spacy_robust_ner.diagnostics.missampling_plot import draw_missampling
from spacy_robust_ner.diagnostics.missampling_report import (
    DocumentSample,
    SamplerMissampling,
    clean_bound,
    clean_probability,
)
from spacy_robust_ner.diagnostics.missampling_training import train_with_observer
from spacy_robust_ner.pipeline.span_batch import doc_key
from spacy_robust_ner.recipes import config_text, make_config

SETTINGS = {
    "sampler": {"@misc": "spacy_robust_ner.UniformSampler.v1", "rate": 0.35},
    "loss": {"@misc": "spacy_robust_ner.CrossEntropy.v1"},
    "ratio": None,
    "flat": False,
    "model": {
        "@architectures": "spacy_robust_ner.SpanModel.v1",
        "max_width": 4,
        "tok2vec": {
            "@architectures": "spacy.HashEmbedCNN.v2",
            "pretrained_vectors": None,
            "width": 16,
            "depth": 1,
            "embed_size": 50,
            "window_size": 1,
            "maxout_pieces": 2,
            "subword_features": False,
        },
        "head": {"@architectures": "spacy_robust_ner.ConcatProductHead.v1", "hidden_width": 8},
    },
}


def make_doc(vocab, length, ents, *, word="w"):
    doc = Doc(vocab, words=[f"{word}{i}" for i in range(length)])
    doc.set_ents([Span(doc, start, end, label) for start, end, label in ents])
    return doc


def make_corpora(vocab, *, count=40, seed=0):
    """Documents with an entity every four tokens, about half of which lose their label."""
    rng = random.Random(seed)
    masked, gold = [], []
    for number in range(count):
        length = rng.randint(1, 30)
        ents = [
            (start, min(start + rng.randint(1, 2), length), rng.choice("AB"))
            for start in range(0, length, 4)
        ]
        kept = [ent for ent in ents if rng.random() < 0.5]
        word = f"{number}-"
        masked.append(make_doc(vocab, length, kept, word=word))
        gold.append(make_doc(vocab, length, ents, word=word))
    return masked, gold


@pytest.fixture(scope="module")
def trained():
    nlp = spacy.blank("en")
    nlp.add_pipe("robust_span_ner", config=SETTINGS)
    masked, gold = make_corpora(nlp.vocab)
    nlp.initialize(lambda: [Example(doc.copy(), doc) for doc in gold])
    return nlp, masked, gold


def test_clean_probability_is_the_product_of_equation_6():
    for pool in range(0, 9):
        for unlabeled in range(pool + 1):
            for negatives in range(pool + 1):
                product = math.prod(1 - unlabeled / (pool - i) for i in range(negatives))
                found = clean_probability(negatives=negatives, pool=pool, unlabeled=unlabeled)
                assert found == pytest.approx(max(0.0, product), abs=1e-12)


def test_clean_probability_is_the_share_of_clean_draws():
    rng = np.random.default_rng(0)
    draws = [(rng.permutation(20)[:4] < 3).any() for _ in range(20_000)]
    assert clean_probability(negatives=4, pool=20, unlabeled=3) == pytest.approx(
        1 - np.mean(draws), abs=0.015
    )


def test_bound_is_that_of_the_paper_and_below_the_product():
    # The example under Theorem 1.
    assert clean_bound(0.1, 20) == pytest.approx(0.906, abs=0.001)
    assert clean_bound(0.35, 1) == clean_bound(0.35, 2) == 0.0
    for length in range(2, 200):
        entities = math.floor(math.sqrt(length))
        for labeled in range(entities + 1):
            pool = length * (length + 1) // 2 - labeled
            exact = clean_probability(
                negatives=math.ceil(0.35 * length), pool=pool, unlabeled=entities - labeled
            )
            assert exact >= clean_bound(0.35, length)


def test_figures_of_samples():
    samples = [
        DocumentSample(0, length=4, negatives=2, missampled=1, pool=8, unlabeled=2),
        DocumentSample(0, length=12, negatives=8, missampled=0, pool=40, unlabeled=1),
        DocumentSample(1, length=4, negatives=2, missampled=2, pool=8, unlabeled=2),
        DocumentSample(1, length=12, negatives=8, missampled=1, pool=40, unlabeled=1),
    ]
    figures = SamplerMissampling.from_samples("x", 0.5, samples)
    assert figures.rates == [0.1, 0.3]
    assert figures.mean == pytest.approx(0.2)
    assert figures.sd == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert (figures.negatives, figures.missampled) == (20, 4)
    # Two times (2 · 2/8 + 8 · 1/40) entities among twenty.
    assert figures.mean_if_uniform == pytest.approx(0.07)
    short, long = figures.by_length
    assert (short.low, short.high, short.documents) == (1, 4, 1)
    assert (short.rate, short.clean) == (0.75, 0.0)
    assert short.rate_if_uniform == pytest.approx(2 / 8)
    assert short.clean_if_uniform == pytest.approx(6 / 8 * 5 / 7)
    assert (long.low, long.high, long.documents) == (11, 12, 1)
    assert (long.rate, long.clean) == (1 / 16, 0.5)
    assert long.rate_if_uniform == pytest.approx(1 / 40)
    assert long.clean_bound == pytest.approx(clean_bound(0.5, 12))
    assert SamplerMissampling.from_samples("x", None, samples).by_length[0].clean_bound is None


def test_all_spans_as_negatives_hold_every_unlabeled_entity(trained):
    nlp, masked, gold = trained
    report = measure_missampling(
        nlp,
        pair_corpora(masked, gold),
        samplers=parse_sampler("all"),
        own=False,
        repetitions=1,
        batch_size=7,
    )
    unlabeled = sum(len(doc.ents) for doc in gold) - sum(len(doc.ents) for doc in masked)
    candidates = sum(min(4, len(doc) - start) for doc in gold for start in range(len(doc))) - sum(
        len(doc.ents) for doc in masked
    )
    assert unlabeled > 20
    assert report.documents == len(gold)
    assert report.entities == sum(len(doc.ents) for doc in gold)
    assert (report.unlabeled, report.unreachable) == (unlabeled, 0)
    (sampler,) = report.samplers
    assert (sampler.negatives, sampler.missampled) == (candidates, unlabeled)
    assert sampler.mean == sampler.mean_if_uniform == pytest.approx(unlabeled / candidates)


def test_uniform_sampling_agrees_with_theory_and_the_seed(trained):
    nlp, masked, gold = trained
    pairs = list(pair_corpora(masked, gold))
    measure = {
        "samplers": parse_sampler("uniform=0.2,0.7", seed=3),
        "own": False,
        "repetitions": 100,
    }
    report = measure_missampling(nlp, pairs, **measure)
    assert [sampler.name for sampler in report.samplers] == ["uniform=0.2", "uniform=0.7"]
    for sampler, rate in zip(report.samplers, (0.2, 0.7), strict=True):
        drawn = sum(math.ceil(len(doc) * rate - 1e-9) for doc in gold)
        assert sampler.negatives <= 100 * drawn
        assert len(set(sampler.rates)) > 10
        error = 4 * sampler.sd / 10
        assert 0 < error < 0.02
        assert sampler.mean == pytest.approx(sampler.mean_if_uniform, abs=error)
        for item in sampler.by_length:
            assert item.clean == pytest.approx(item.clean_if_uniform, abs=0.06)
    assert measure_missampling(nlp, pairs, **measure).as_dict() == report.as_dict()


def test_spans_out_of_reach_are_never_sampled(trained):
    nlp = trained[0]
    wide = [(0, 6, "A"), (8, 9, "B"), (12, 13, "A")]
    gold = make_doc(nlp.vocab, 20, wide)
    masked = make_doc(nlp.vocab, 20, [])
    masked.set_ents([], missing=[masked[8:9]], default="outside")
    rejected = make_doc(nlp.vocab, 20, [])
    rejected.set_ents([], missing=[rejected[8:9]], default="outside")
    rejected.spans[REJECTED_SPANS_KEY] = [Span(rejected, 8, 9, "B")]
    report = measure_missampling(nlp, pair_corpora([masked, rejected], [gold, gold]), repetitions=1)
    # Wider than max_width in both; on a missing token only where nobody has looked.
    assert (report.entities, report.unlabeled, report.unreachable) == (6, 3, 3)


def test_vouched_spans_count_as_negatives(trained):
    nlp = trained[0]
    gold = make_doc(nlp.vocab, 10, [(0, 1, "A")])
    masked = make_doc(nlp.vocab, 10, [])
    set_complete(masked, True)
    report = measure_missampling(nlp, pair_corpora([masked], [gold]), repetitions=1)
    assert report.samplers[0].negatives == 4 * 7 + 3 + 2 + 1
    assert report.samplers[0].missampled == 1


def test_weighted_sampler_spares_what_the_model_knows_and_prefers_what_it_doubts(trained):
    """The direction of eq. 16: uncertain spans that lean to "no entity" come first."""
    nlp = trained[0]
    pipe = find_component(nlp)
    gold = [make_doc(nlp.vocab, 12, [(2, 3, "A")], word=f"k{i}-") for i in range(20)]
    masked = [make_doc(nlp.vocab, 12, [], word=f"k{i}-") for i in range(20)]
    pairs = list(pair_corpora(masked, gold))
    rates = {}
    score = pipe.head.score
    for case, entity in (("known", (0.0, 9.0)), ("doubted", (0.0, -2.0))):

        def scripted(projections, starts, ends, entity=entity):
            output = score(projections, starts, ends)
            logits = torch.tensor([0.0, -4.0, -9.0]).repeat(len(starts), 1)
            is_entity = (starts % 12 == 2) & (ends - starts == 1)
            logits[is_entity, :2] = torch.tensor(entity)
            return type(output)(logits, output.vectors)

        pipe.head.score = scripted
        try:
            report = measure_missampling(
                nlp, pairs, samplers=parse_sampler("weighted"), own=False, repetitions=3, epoch=9
            )
        finally:
            del pipe.head.score
        rates[case] = report.samplers[0]
    uniform = rates["known"].mean_if_uniform
    assert rates["known"].mean < 0.2 * uniform
    assert rates["doubted"].mean > 5 * uniform


def test_measuring_leaves_the_component_as_it_was(trained):
    nlp, masked, gold = trained
    pipe = find_component(nlp)
    before = pipe.sampler.get_state(), pipe.to_bytes()
    report = measure_missampling(nlp, pair_corpora(masked, gold), repetitions=2)
    assert (pipe.sampler.get_state(), pipe.to_bytes()) == before
    assert report.samplers[0].name == "own (UniformSampler)"
    assert report.samplers[0].negatives > 0


def test_corpora_that_do_not_match(trained):
    _, masked, gold = trained
    with pytest.raises(ValueError, match=r"R130.*document 39.*gold corpus ends"):
        list(pair_corpora(masked, gold[:-1]))
    with pytest.raises(ValueError, match=r"R130.*document 0.*not the same"):
        list(pair_corpora(masked, gold[1:]))


def test_no_span_component():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"R131.*sentencizer"):
        find_component(nlp)


@pytest.mark.parametrize("text", ["unknown", "uniform=x", "all=0.5", "", "uniform=0.1,"])
def test_sampler_that_can_not_be_read(text):
    with pytest.raises(ValueError, match="R133"):
        parse_sampler(text)


def test_samplers_are_made_as_asked():
    assert set(parse_sampler("uniform=0.1,0.35")) == {"uniform=0.1", "uniform=0.35"}
    (weighted,) = parse_sampler("weighted-outside=0.5", seed=5).values()
    assert (weighted(0).rate, weighted(0).outside_in_max) == (0.5, True)
    (sparing,) = parse_sampler("weighted-sparing").values()
    assert (sparing(0).outside_in_max, sparing(0).prefer_hard) == (False, False)
    assert weighted(1).get_state() == weighted(1).get_state() != weighted(0).get_state()
    for name in SAMPLERS:
        assert len(parse_sampler(name)) == 1
    with pytest.raises(ValueError, match="R103"):
        parse_sampler("fraction=1.5")


def test_observer_counts_what_training_samples(trained):
    nlp = trained[0]
    gold = make_doc(nlp.vocab, 5, [(0, 1, "A"), (2, 4, "B")])
    other = make_doc(nlp.vocab, 3, [(1, 2, "A")], word="x")
    epoch = [0]
    observer = MissamplingObserver([gold, other], lambda: epoch[0])
    keys = [doc_key(other), 12345, doc_key(gold)]
    index, starts, ends = torch.tensor([[0, 1, 2], [0, 0, 1], [1, 0, 1], [2, 2, 4], [2, 2, 3]]).T
    observer(keys, index, starts, ends)
    epoch[0] = 4
    observer(keys, index[:1], starts[:1], ends[:1])
    first, second = observer.epochs.values()
    assert (first.epoch, first.negatives, first.missampled, first.rate) == (0, 4, 2, 0.5)
    assert (second.epoch, second.negatives, second.missampled, second.rate) == (4, 1, 1, 1.0)
    assert observer.documents_without_gold == 2


def test_training_with_an_observer(tmp_path):
    vocab = spacy.blank("en").vocab
    masked, gold = make_corpora(vocab, count=12)
    for name, docs in (("masked", masked), ("gold", gold)):
        write_docs(docs, tmp_path / f"{name}.spacy")
    config = load_config_from_str(config_text(make_config("span-all", "cnn")))
    path = str(tmp_path / "masked.spacy")
    config["paths"].update(train=path, dev=path)
    config["training"].update(max_epochs=3, max_steps=0, eval_frequency=100)
    log = io.StringIO()
    observer = train_with_observer(
        config, tmp_path / "gold.spacy", output=tmp_path / "out", stdout=log, stderr=log
    )
    unlabeled = sum(len(doc.ents) for doc in gold) - sum(len(doc.ents) for doc in masked)
    assert list(observer.epochs) == [0, 1, 2]
    assert observer.documents_without_gold == 0
    # With every candidate as a negative, each epoch meets each unlabeled entity once.
    assert {epoch.missampled for epoch in observer.epochs.values()} == {unlabeled}
    assert len({epoch.negatives for epoch in observer.epochs.values()}) == 1
    assert spacy.load(tmp_path / "out" / "model-last").pipe_names == ["tok2vec", "robust_span_ner"]


@pytest.fixture(scope="module")
def saved(trained, tmp_path_factory):
    nlp, masked, gold = trained
    folder = tmp_path_factory.mktemp("missampling")
    nlp.to_disk(folder / "model")
    write_docs(masked, folder / "masked.spacy")
    write_docs(gold, folder / "gold.spacy")
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["missampling", *map(str, arguments)])


def test_command_tables_json_and_plot(saved, tmp_path):
    corpora = (saved / "masked.spacy", saved / "gold.spacy")
    options = ("-s", "uniform=0.1,0.5", "-s", "all", "-n", "2")
    output, plot = tmp_path / "new" / "figures.json", tmp_path / "new" / "rates.svg"
    result = run(saved / "model", *corpora, *options, "-o", output, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert "missampling %" in result.output
    assert "eq. 6 %" in result.output
    figures = json.loads(output.read_text(encoding="utf8"))
    names = ["own (UniformSampler)", "uniform=0.1", "uniform=0.5", "all"]
    assert [sampler["name"] for sampler in figures["samplers"]] == names
    assert all(f"{100 * sampler['mean']:.3f}" in result.output for sampler in figures["samplers"])
    assert "<svg" in plot.read_text(encoding="utf8")
    printed = run(saved / "model", *corpora, *options, "--json")
    assert json.loads(printed.stdout) == figures


def test_command_with_a_config(saved, tmp_path):
    config = tmp_path / "span-nsv.cfg"
    config.write_text(config_text(make_config("span-nsv", "cnn")), encoding="utf8")
    corpora = (saved / "masked.spacy", saved / "gold.spacy")
    first, second = (run(config, *corpora, "-n", "1", "--json") for _ in range(2))
    assert first.exit_code == 0, first.output
    figures = json.loads(first.stdout)
    assert figures == json.loads(second.stdout)
    assert (figures["epoch"], figures["samplers"][0]["name"]) == (0, "own (WeightedSampler)")
    assert 0 < figures["samplers"][0]["mean"] < 0.3


def test_rates_by_masking(saved, tmp_path):
    output, plot = tmp_path / "rates.json", tmp_path / "rates.svg"
    arguments = [saved / "model", saved / "gold.spacy", "-p", 0.2, "-p", 0.9, "-s", "all"]
    result = CliRunner().invoke(
        app,
        [
            str(part)
            for part in ("missampling-by-masking", *arguments, "-o", output, "--plot", plot)
        ],
    )
    assert result.exit_code == 0, result.output
    few, many = json.loads(output.read_text(encoding="utf8")).values()
    assert 0 < few["unlabeled"] < many["unlabeled"] < few["entities"] == many["entities"]
    for report in (few, many):
        own, everything = report["samplers"]
        assert (own["name"], everything["name"]) == ("own (UniformSampler)", "all")
        assert everything["mean"] == pytest.approx(everything["mean_if_uniform"])
        assert everything["missampled"] == 10 * report["unlabeled"]
        assert f"{100 * own['mean']:.3f}" in result.output
    assert "<svg" in plot.read_text(encoding="utf8")
    missing = CliRunner().invoke(
        app, ["missampling-by-masking", str(saved / "at-{share}"), str(saved / "gold.spacy")]
    )
    assert "[R134]" in missing.output
    assert "at-0.1" in missing.output


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere", "masked.spacy", "gold.spacy"), "R134"),
        (("nowhere.cfg", "masked.spacy", "gold.spacy"), "R134"),
        (("model", "nowhere.spacy", "gold.spacy"), "R001"),
        (("model", "masked.spacy", "gold.spacy", "-s", "none"), "R133"),
        (("model", "masked.spacy", "gold.spacy", "-n", "0"), "R086"),
        (("model", "masked.spacy", "gold.spacy", "--component", "x"), "R131"),
        (("model", "masked.spacy", "gold.spacy", "--plot", "x.txt"), "R066"),
    ],
)
def test_command_errors(saved, monkeypatch, arguments, code):
    monkeypatch.chdir(saved)
    result = run(*arguments)
    assert result.exit_code == 1
    assert f"[{code}]" in result.output


def test_drawing_of_nothing(trained, tmp_path):
    nlp = trained[0]
    report = measure_missampling(nlp, [], repetitions=1)
    draw_missampling(report, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")
    assert report.samplers[0].rates == []
    assert report.samplers[0].mean == 0.0
