import json
import math
import random
import warnings
from array import array
from collections import defaultdict

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_robust_ner.annotation import set_complete, stated_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.draws import Thresholds, stable_hash, threshold_for_share
from spacy_robust_ner.corpus.io import docbin_paths, read_docs, write_docs
from spacy_robust_ner.corpus.mask import mask_corpus

NAMES = ["Ada", "ada", "Bern", "Lake Bern", "Cy Dole", "ACME", "Acme", "Dole", "Eve", "Foss"]


def random_docs(count=150, seed=1):
    rng = random.Random(seed)
    vocab = Vocab()
    for _ in range(count):
        words, tags = [], []
        for _ in range(rng.randrange(6)):
            words.append(rng.choice(["saw", "in", "and"]))
            tags.append(rng.choice(["O", "O", None]))
            label = rng.choice(["PER", "LOC", "ORG"])
            for i, word in enumerate(rng.choice(NAMES).split()):
                words.append(word)
                tags.append(f"{'I' if i else 'B'}-{label}")
        yield Doc(vocab, words=[*words, "."], ents=[*tags, "O"])


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.spacy"
    write_docs(random_docs(), path)
    return path


def run(source, tmp_path, name="run", **settings):
    paths = [
        tmp_path / f"{name}.spacy",
        tmp_path / f"{name}-gold.spacy",
        tmp_path / f"{name}.jsonl",
    ]
    settings.setdefault("probability", 0.5)
    return mask_corpus(source, *paths, **settings), *paths


def load(path):
    return list(read_docs(path, Vocab()))


def entities(docs):
    return [(i, e.start, e.end, e.label_) for i, doc in enumerate(docs) for e in doc.ents]


def listed(path):
    lines = path.read_text(encoding="utf8").splitlines()
    return [tuple(json.loads(line)[k] for k in ("doc", "start", "end", "label")) for line in lines]


def states(doc):
    return [(token.ent_iob_, token.ent_type_) for token in doc]


def test_hash_is_the_same_on_every_machine():
    assert stable_hash("position", 0, 7, 1, 3) == 4405703108659671804
    assert stable_hash("surface", 5, "zürich") == 13205277703520854986


def test_listing_and_rest_make_up_the_gold(source, tmp_path):
    report, target, gold, dropped = run(source, tmp_path)
    left, gone = set(entities(load(target))), set(listed(dropped))
    assert gone
    assert left
    assert not left & gone
    assert left | gone == set(entities(load(gold))) == set(entities(load(source)))
    assert (report.masked, report.entities) == (len(gone), len(left | gone))
    assert report.documents == 150
    assert report.documents_masked == len({doc for doc, *_ in gone})
    for label, count in report.labels.items():
        assert count.masked == sum(entity[3] == label for entity in gone)
        assert count.entities == sum(entity[3] == label for entity in left | gone)


def test_listing_has_text_and_characters(source, tmp_path):
    _, _, gold, dropped = run(source, tmp_path)
    docs = load(gold)
    for line in dropped.read_text(encoding="utf8").splitlines():
        entry = json.loads(line)
        doc = docs[entry["doc"]]
        assert doc.text[entry["start_char"] : entry["end_char"]] == entry["text"]
        assert doc[entry["start"] : entry["end"]].text == entry["text"]


def test_gold_is_the_source_unchanged(source, tmp_path):
    _, _, gold, _ = run(source, tmp_path)
    for before, after in zip(load(source), load(gold), strict=True):
        assert [t.text for t in before] == [t.text for t in after]
        assert states(before) == states(after)
        assert stated_complete(before) == stated_complete(after)


@pytest.mark.parametrize("masked_as", ["outside", "missing"])
def test_only_masked_tokens_change_their_state(source, tmp_path, masked_as):
    _, target, gold, dropped = run(source, tmp_path, masked_as=masked_as)
    gone = defaultdict(set)
    for doc, start, end, _ in listed(dropped):
        gone[doc].update(range(start, end))
    new = ("O", "") if masked_as == "outside" else ("", "")
    for i, (masked, full) in enumerate(zip(load(target), load(gold), strict=True)):
        expected = [new if j in gone[i] else state for j, state in enumerate(states(full))]
        assert states(masked) == expected


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("by_surface", [False, True])
def test_shards_do_not_matter_and_seeds_do(source, tmp_path, exact, by_surface):
    shards = tmp_path / "shards"
    write_docs(load(source), shards, shard_size=17)
    assert len(docbin_paths(shards)) == 9
    settings = {"exact": exact, "by_surface": by_surface, "seed": 4}
    _, _, _, one = run(source, tmp_path, "one", **settings)
    many = tmp_path / "many.jsonl"
    mask_corpus(
        shards,
        tmp_path / "many",
        tmp_path / "many-gold",
        many,
        probability=0.5,
        shard_size=25,
        **settings,
    )
    assert one.read_bytes() == many.read_bytes()
    assert len(docbin_paths(tmp_path / "many")) == len(docbin_paths(tmp_path / "many-gold")) == 6
    others = [run(source, tmp_path, f"{i}", **{**settings, "seed": i})[3] for i in (5, 6, 7)]
    assert any(set(listed(other)) != set(listed(one)) for other in others)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("by_surface", [False, True])
def test_masks_are_nested_from_nothing_to_everything(source, tmp_path, exact, by_surface):
    previous = set()
    for p in [0.0, 0.1, 0.5, 0.51, 0.8, 1.0]:
        report, _, _, dropped = run(
            source, tmp_path, f"p{p}", probability=p, exact=exact, by_surface=by_surface
        )
        gone = set(listed(dropped))
        assert previous <= gone
        assert len(gone) == report.masked
        if p == 0:
            assert not gone
        previous = gone
    assert len(previous) == report.entities


def test_realised_share_is_binomial(source, tmp_path):
    z_scores = []
    for seed in range(12):
        report, *_ = run(source, tmp_path, f"s{seed}", probability=0.3, seed=seed)
        deviation = math.sqrt(report.entities * 0.3 * 0.7)
        z_scores.append((report.masked - 0.3 * report.entities) / deviation)
    assert max(map(abs, z_scores)) < 4
    assert 0.2 < math.sqrt(sum(z * z for z in z_scores) / len(z_scores)) < 2


@pytest.mark.parametrize("share", [0.0, 0.123, 0.5, 0.8, 1.0])
def test_exact_share(source, tmp_path, share):
    report, *_ = run(source, tmp_path, probability=share, exact=True)
    assert abs(report.masked - share * report.entities) <= 0.5


def test_exact_share_by_label(source, tmp_path):
    report, *_ = run(
        source, tmp_path, probability=0.25, label_probabilities={"PER": 0.8}, exact=True
    )
    person = report.labels.pop("PER")
    assert abs(person.masked - 0.8 * person.entities) <= 0.5
    assert abs(report.masked - 0.25 * report.entities) <= 0.5


def test_equal_draws_are_cut_where_the_count_is_nearest():
    draws = array("Q", [5] * 4 + [2] * 3 + [9])
    assert [threshold_for_share(draws, share) for share in (0, 0.3, 0.6, 0.7, 0.9, 1)] == [
        0,
        3,
        3,
        6,
        6,
        10,
    ]
    assert threshold_for_share(array("Q"), 0.5) == 0
    assert threshold_for_share(array("Q", [2**64 - 1]), 1.0) == 2**64


def test_a_draw_at_the_threshold_is_not_chosen():
    thresholds = Thresholds(7, {"PER": 0})
    assert [thresholds.choose("LOC", draw) for draw in (6, 7)] == [True, False]
    assert not thresholds.choose("PER", 0)


def test_labels_have_their_own_probabilities(source, tmp_path):
    report, *_ = run(
        source, tmp_path, probability=0.0, label_probabilities={"PER": 1.0, "LOC": 0.5}
    )
    assert report.labels["PER"].share == 1
    assert 0.3 < report.labels["LOC"].share < 0.7
    assert report.labels["ORG"].share == 0


@pytest.mark.parametrize("case_sensitive", [False, True])
def test_mentions_of_a_string_vanish_together(source, tmp_path, case_sensitive):
    parted = set()
    for seed in range(8):
        _, _, gold, dropped = run(
            source,
            tmp_path,
            f"s{seed}",
            by_surface=True,
            case_sensitive=case_sensitive,
            seed=seed,
        )
        gone, fates = set(listed(dropped)), defaultdict(set)
        docs = load(gold)
        for entity in entities(docs):
            fates[docs[entity[0]][entity[1] : entity[2]].text].add(entity in gone)
        assert all(len(fate) == 1 for fate in fates.values())
        assert {True} in fates.values()
        assert {False} in fates.values()
        parted.add(fates["Acme"] != fates["ACME"])
    assert parted == ({True, False} if case_sensitive else {False})


def test_nothing_of_the_gold_leaks(tmp_path):
    doc = Doc(Vocab(), words=["Ada", "saw", "Bern", "today"])
    ents = [Span(doc, 0, 1, "SECRET", kb_id="Q1", span_id="id1")]
    doc.set_ents(ents)
    doc.spans["all_entities"] = [Span(doc, 0, 1, "SECRET"), Span(doc, 2, 3, "SECRET2")]
    doc.spans["rejected_spans"] = [Span(doc, 2, 3, "PER")]
    doc.spans["phrases"] = [Span(doc, 1, 3, "SECRET2")]
    Doc.set_extension("test_mask_source", default=None, force=True)
    doc._.test_mask_source = "gold: Ada"
    doc.user_data["notes"] = ["Ada"]
    set_complete(doc, True)
    source = tmp_path / "source.spacy"
    write_docs([doc], source)
    report, target, gold, _ = run(source, tmp_path, probability=1.0)
    [masked], [full] = load(target), load(gold)
    assert [(t.ent_kb_id_, t.ent_id_) for t in masked] == [("", "")] * 4
    assert [(s.start, s.end, s.label_) for s in masked.spans["rejected_spans"]] == [(2, 3, "PER")]
    assert [(s.start, s.end) for s in masked.spans["phrases"]] == [(1, 3)]
    assert set(masked.spans) == {"rejected_spans", "phrases"}
    assert list(masked.user_data) == [("._.", "annotation_complete", None, None)]
    assert not {"SECRET", "SECRET2", "Q1", "id1"} & set(masked.vocab.strings)
    assert {"SECRET", "SECRET2", "Q1", "id1"} <= set(full.vocab.strings)
    assert set(full.spans) == {"all_entities", "rejected_spans", "phrases"}
    assert full._.test_mask_source == "gold: Ada"
    assert stated_complete(full) is True
    assert report.removed_span_groups == {"all_entities": 1}
    assert report.removed_user_data == {"test_mask_source": 1, "notes": 1}


def test_documents_that_keep_all_entities_lose_other_gold_too(tmp_path):
    doc = Doc(Vocab(), words=["Ada", "Bern"], ents=["B-PER", "O"])
    doc.spans["all_entities"] = [Span(doc, 1, 2, "LOC")]
    write_docs([doc], tmp_path / "source.spacy")
    _, target, *_ = run(tmp_path / "source.spacy", tmp_path, probability=0.0)
    [masked] = load(target)
    assert not masked.spans
    assert [ent.label_ for ent in masked.ents] == ["PER"]


@pytest.mark.parametrize("keep_flags", [False, True])
def test_flags(tmp_path, keep_flags):
    docs = []
    for label, flag in [("PER", True), ("PER", None), ("LOC", True), ("LOC", False), ("LOC", None)]:
        docs.append(Doc(Vocab(), words=["Ada"], ents=[f"B-{label}"]))
        set_complete(docs[-1], flag)
    write_docs(docs, tmp_path / "source.spacy")
    _, target, *_ = run(
        tmp_path / "source.spacy",
        tmp_path,
        probability=0.0,
        label_probabilities={"PER": 1.0},
        keep_flags=keep_flags,
    )
    expected = [False, False, True, False, None] if keep_flags else [False] * 5
    assert [stated_complete(doc) for doc in load(target)] == expected


def test_flags_stay_where_nothing_can_be_masked(tmp_path):
    docs = [Doc(Vocab(), words=["Ada"], ents=["B-PER"]) for _ in range(3)]
    for doc, flag in zip(docs, [True, False, None], strict=True):
        set_complete(doc, flag)
    write_docs(docs, tmp_path / "source.spacy")
    settings = {"probability": 0.0, "label_probabilities": {"PER": 0.0}}
    _, target, *_ = run(tmp_path / "source.spacy", tmp_path, **settings)
    assert [stated_complete(doc) for doc in load(target)] == [True, False, None]


def test_unknown_label_is_an_error_and_leaves_earlier_files_alone(source, tmp_path):
    _, target, gold, dropped = run(source, tmp_path)
    before = [path.read_bytes() for path in (target, gold, dropped)]
    files = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"R061.*PRE.*LOC, ORG, PER"):
        run(source, tmp_path, label_probabilities={"PRE": 0.5})
    assert [path.read_bytes() for path in (target, gold, dropped)] == before
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.parametrize("value", [-0.1, 1.5, 80, math.nan])
def test_probabilities_are_checked(source, tmp_path, value):
    with pytest.raises(ValueError, match="R060"):
        run(source, tmp_path, probability=value)
    with pytest.raises(ValueError, match=r"R060.*PER"):
        run(source, tmp_path, label_probabilities={"PER": value})


def test_state_is_checked(source, tmp_path):
    with pytest.raises(ValueError, match=r"R062.*gone"):
        run(source, tmp_path, masked_as="gone")


@pytest.mark.parametrize(
    ("source", "target", "gold", "dropped"),
    [
        ("a.spacy", "a.spacy", "g.spacy", "d.jsonl"),
        ("a.spacy", "t.spacy", "a.spacy", "d.jsonl"),
        ("a.spacy", "t.spacy", "x/../t.spacy", "d.jsonl"),
        ("corpus", "corpus/masked", "g", "d.jsonl"),
        ("corpus", "t", "t/gold.spacy", "d.jsonl"),
        ("corpus", "t", "g", "t/d.jsonl"),
        ("corpus/train.spacy", "corpus", "g", "d.jsonl"),
    ],
)
def test_paths_must_lie_apart(tmp_path, source, target, gold, dropped):
    with pytest.raises(ValueError, match="R063"):
        mask_corpus(*(tmp_path / p for p in (source, target, gold, dropped)), probability=0.5)
    assert not list(tmp_path.iterdir())


def test_cli_writes_all_files_and_the_report(source, tmp_path):
    target, report = tmp_path / "out" / "masked-0.5", tmp_path / "report.json"
    arguments = ["mask", source, target, "-p", "0.5", "--seed", "3", "--report", report, "--json"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads(report.read_text(encoding="utf8"))
    assert printed["seed"] == 3
    assert printed["share"] == printed["masked"] / printed["entities"]
    assert sorted(p.name for p in target.parent.iterdir()) == [
        "masked-0.5",
        "masked-0.5-dropped.jsonl",
        "masked-0.5-gold",
    ]
    assert len(listed(target.parent / "masked-0.5-dropped.jsonl")) == printed["masked"]
    assert len(entities(load(target))) == printed["entities"] - printed["masked"]


def test_cli_passes_every_option_on(source, tmp_path):
    options = "-p 0 -l PER=1 -l LOC=.5 --by surface --exact --as missing --gold g.spacy --dropped d"
    options = options.replace("g.spacy", str(tmp_path / "g.spacy"))
    options = options.replace("--dropped d", f"--dropped {tmp_path / 'd.jsonl'}")
    target = tmp_path / "t.spacy"
    result = CliRunner().invoke(app, ["mask", str(source), str(target), *options.split()])
    assert result.exit_code == 0, result.output
    assert "PER" in result.output
    assert "100.00" in result.output
    expected, _, _, dropped = run(
        source,
        tmp_path,
        probability=0.0,
        label_probabilities={"PER": 1.0, "LOC": 0.5},
        by_surface=True,
        exact=True,
        masked_as="missing",
    )
    assert (tmp_path / "d.jsonl").read_bytes() == dropped.read_bytes()
    assert list(map(states, load(target))) == list(map(states, load(tmp_path / "run.spacy")))
    assert expected.labels["PER"].share == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], "R065"),
        (["-l", "PER"], "R064"),
        (["-l", "=0.5"], "R064"),
        (["-l", "PER=x"], "R064"),
        (["-p", "50"], "R060"),
    ],
)
def test_cli_errors_are_messages(source, tmp_path, options, code):
    result = CliRunner().invoke(app, ["mask", str(source), str(tmp_path / "t.spacy"), *options])
    assert result.exit_code == 1
    assert code in result.output
    assert not (tmp_path / "t.spacy").exists()


def make_augmenter(**settings):
    block = {"@augmenters": "spacy_robust_ner.mask_entities.v1", "probability": 0.5, **settings}
    return spacy.registry.resolve({"augmenter": block})["augmenter"]


def examples():
    return [Example(Doc(d.vocab, words=[t.text for t in d]), d) for d in random_docs(100, seed=2)]


def test_augmenter_masks_the_same_in_each_epoch():
    nlp, augment = spacy.blank("en"), make_augmenter()
    gold = examples()
    forward = [next(augment(nlp, example)).reference for example in gold]
    masked = [next(augment(nlp, example)).reference for example in reversed(gold)][::-1]
    assert entities(forward) == entities(masked)
    assert all(stated_complete(doc) is False for doc in masked)
    kept = sum(len(doc.ents) for doc in masked)
    total = sum(len(example.reference.ents) for example in gold)
    assert 0.3 * total < kept < 0.7 * total


def test_augmenter_leaves_the_original_alone():
    example = examples()[3]
    before = states(example.reference)
    [masked] = make_augmenter(probability=1.0, masked_as="missing")(spacy.blank("en"), example)
    assert not masked.reference.ents
    assert states(example.reference) == before
    assert stated_complete(example.reference) is None


def test_augmenter_without_a_chance_changes_nothing():
    example = examples()[3]
    set_complete(example.reference, True)
    [same] = make_augmenter(probability=0.0)(spacy.blank("en"), example)
    assert states(same.reference) == states(example.reference)
    assert stated_complete(same.reference) is True


def test_augmenter_by_surface_agrees_with_the_command(source, tmp_path):
    _, target, *_ = run(source, tmp_path, by_surface=True, seed=6)
    augment = make_augmenter(by_surface=True, seed=6)
    nlp = spacy.blank("en")
    docs = [Example(Doc(d.vocab, words=[t.text for t in d]), d) for d in load(source)]
    augmented = [next(augment(nlp, example)).reference for example in docs]
    assert entities(augmented) == entities(load(target))


def test_augmenter_in_a_corpus_reader(source):
    block = {
        "@readers": "spacy_robust_ner.Corpus.v1",
        "path": str(source),
        "augmenter": {"@augmenters": "spacy_robust_ner.mask_entities.v1", "probability": 1.0},
    }
    reader = spacy.registry.resolve({"corpus": block})["corpus"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = list(reader(spacy.blank("en")))
    assert len(read) == 150
    assert not any(example.reference.ents for example in read)
    aligned = {tag for example in read for tag in example.get_aligned_ner()}
    assert aligned == {"O", None}


@pytest.mark.parametrize("settings", [{"probability": 2.0}, {"masked_as": "gone"}])
def test_augmenter_checks_its_settings(settings):
    from spacy_robust_ner.augment import create_mask_entities_augmenter_v1

    with pytest.raises(ValueError, match="R06"):
        create_mask_entities_augmenter_v1(**{"probability": 0.5, **settings})
