import json
import math
import random
import statistics
from collections import Counter, defaultdict

import pytest
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_robust_ner.annotation import set_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.corpus.sparsity import Sparsity
from spacy_robust_ner.corpus.stats import compute_stats

VOCAB = Vocab()


def make_doc(text, complete=None):
    """Words may carry a tag: Ada/B-PER; a question mark is a missing token."""
    words, tags = [], []
    for piece in text.split():
        word, _, tag = piece.partition("/")
        words.append(word)
        tags.append(None if tag == "?" else tag or "O")
    doc = Doc(VOCAB, words=words, ents=tags)
    set_complete(doc, complete)
    return doc


@pytest.fixture
def write(tmp_path):
    def write_corpus(name, texts, **settings):
        path = tmp_path / name
        docs = [text if isinstance(text, Doc) else make_doc(text) for text in texts]
        write_docs(docs, path, **settings)
        return path

    return write_corpus


def test_counts(write):
    docs = [
        make_doc("Ada/B-PER Lee/I-PER saw/? Bern/B-LOC .", complete=True),
        make_doc("nothing here", complete=False),
        make_doc("Bern/B-LOC"),
        make_doc("nothing here", complete=False),
    ]
    part = compute_stats(write("train.spacy", docs)).parts["train"]
    assert (part.documents, part.documents_without_entities, part.repeated_documents) == (4, 2, 1)
    assert (part.complete, part.incomplete, part.unstated) == (1, 2, 1)
    assert (part.tokens, part.longest) == (10, 5)
    assert (part.entity_tokens, part.outside_tokens, part.missing_tokens) == (4, 5, 1)
    assert part.entity_token_ratio == 0.4
    assert part.labels == {"PER": 1, "LOC": 2}
    assert part.widths == {1: 2, 2: 1}
    assert part.width_coverage() == {1: pytest.approx(2 / 3), 2: 1.0}


def test_blocked_tokens_count_as_missing(write):
    doc = make_doc("Ada Lee sang")
    doc.set_ents([Span(doc, 0, 1, "PER")], blocked=[Span(doc, 1, 2)])
    part = compute_stats(write("train.spacy", [doc])).parts["train"]
    assert (part.entity_tokens, part.outside_tokens, part.missing_tokens) == (1, 1, 1)


def test_sparsity_agrees_with_the_statistics_module():
    rng = random.Random(3)
    sparsity, by_length, violations = Sparsity(), defaultdict(list), 0
    for _ in range(2000):
        length, count = rng.randrange(1, 40), rng.randrange(8)
        sparsity.add(length, count)
        by_length[length].append(count)
        violations += count > math.sqrt(length)
    assert sparsity.documents == 2000
    assert sparsity.violations == violations > 0
    assert sparsity.violation_share == violations / 2000
    points = sparsity.points(min_cases=50)
    enough = {length for length, counts in by_length.items() if len(counts) >= 50}
    assert 0 < len(enough) < len(by_length)
    assert [point.length for point in points] == sorted(enough)
    for point in points:
        assert point.documents == len(by_length[point.length])
        assert point.mean == pytest.approx(statistics.mean(by_length[point.length]))
        assert point.deviation == pytest.approx(statistics.pstdev(by_length[point.length]))
    above = [n for n in sorted(enough) if statistics.mean(by_length[n]) > math.sqrt(n)]
    assert sparsity.lengths_above_root(min_cases=50) == above
    assert above


def test_as_many_entities_as_the_root_is_no_violation():
    sparsity = Sparsity()
    sparsity.add(9, 3)
    assert sparsity.violations == 0
    sparsity.add(8, 3)
    assert sparsity.violations == 1


def test_points_need_twenty_documents():
    sparsity = Sparsity()
    for _ in range(19):
        sparsity.add(5, 1)
    assert sparsity.points() == []
    sparsity.add(5, 1)
    assert [point.documents for point in sparsity.points()] == [20]


def test_overlap_of_parts(write):
    stats = compute_stats(
        write("train.spacy", ["a b", "a b", "c d", "E f"]),
        dev=write("dev.spacy", ["A B", "c d", "c", "d", "x"]),
        test=write("test.spacy", ["x", "x", "a b", "ab"]),
    )
    found = {(o.first, o.second): o for o in stats.overlaps}
    assert set(found) == {("train", "dev"), ("train", "test"), ("dev", "test")}
    train_dev = found["train", "dev"]
    assert (train_dev.first_documents, train_dev.second_documents) == (1, 1)
    assert train_dev.folded_second_documents == 2
    assert train_dev.folded_second_share == 0.4
    train_test = found["train", "test"]
    assert (train_test.first_documents, train_test.second_documents) == (2, 1)
    assert (train_test.first_share, train_test.second_share) == (0.5, 0.25)
    assert (found["dev", "test"].first_documents, found["dev", "test"].second_documents) == (1, 2)


def test_overlap_ignores_spaces_but_not_token_borders(write):
    spaced = Doc(VOCAB, words=["a", "b"], spaces=[False, False])
    train = write("train.spacy", [spaced])
    assert compute_stats(train, dev=write("dev.spacy", ["a b"])).overlaps[0].second_documents == 1
    assert compute_stats(train, dev=write("dev2.spacy", ["ab"])).overlaps[0].second_documents == 0


def test_strings_that_are_labeled_here_and_outside_there(write):
    texts = [
        "New/B-LOC York/I-LOC",
        "New/B-LOC York/I-LOC City/I-LOC",
        "New/B-ORG York/I-ORG won",
        "he went to New York City and New York",
        "New York/?",
        "New York/B-LOC",
        "new york",
        "Ada/B-PER",
    ]
    stats = compute_stats(write("train.spacy", texts))
    assert stats.surface_forms == 4  # with "York" alone
    forms = {form.text: form for form in stats.outside_forms}
    assert set(forms) == {"New York", "New York City"}
    assert forms["New York"].labels == {"LOC": 1, "ORG": 1}
    assert forms["New York"].labeled == 2
    assert (forms["New York"].outside, forms["New York City"].outside) == (1, 1)
    assert forms["New York City"].example == "he went to [New York City] and New York"
    assert stats.outside_mentions == 2
    assert [form.text for form in stats.outside_forms] == ["New York", "New York City"]


def test_shorter_string_counts_where_the_longer_one_touches_an_entity(write):
    texts = ["New/B-LOC York/I-LOC", "New/B-ORG York/I-ORG Times/I-ORG", "New York Times/B-ORG"]
    forms = compute_stats(write("train.spacy", texts)).outside_forms
    assert [(form.text, form.outside) for form in forms] == [("New York", 1)]


def test_the_evenly_split_string_is_more_suspicious(write):
    texts = ["Bern/B-LOC"] * 5 + ["Bern"] * 5 + ["The/B-ORG"] + ["The"] * 60 + ["Ada/B-PER"] * 50
    forms = compute_stats(write("train.spacy", [*texts, "Ada"])).outside_forms
    assert [form.text for form in forms] == ["Bern", "The", "Ada"]
    assert forms[0].suspicion == 2.5


def test_search_agrees_with_brute_force(write):
    rng = random.Random(5)
    docs = []
    for _ in range(200):
        tags = []
        for _ in range(rng.randrange(1, 15)):
            inside = tags and tags[-1] not in ("O", None) and rng.random() < 0.4
            tags.append("I-X" if inside else rng.choice(["O", "O", "O", "O", None, "B-X"]))
        docs.append(Doc(VOCAB, words=[rng.choice("abcdef") for _ in tags], ents=tags))
    stats = compute_stats(write("train", docs, shard_size=30))
    labeled = {tuple(token.text for token in ent) for doc in docs for ent in doc.ents}
    expected = Counter()
    for doc in docs:
        free = 0
        for start in range(len(doc)):
            for end in range(len(doc), start, -1):
                form = tuple(token.text for token in doc[start:end])
                is_outside = all(token.ent_iob_ == "O" for token in doc[start:end])
                if start >= free and form in labeled and is_outside:
                    expected[" ".join(form)] += 1
                    free = end
    assert stats.surface_forms == len(labeled)
    assert any(" " in form for form in expected)
    assert {form.text: form.outside for form in stats.outside_forms} == expected


def test_shards_do_not_matter(write):
    texts = [f"Ada/B-PER met {name}/B-LOC in {name}" for name in "ABCABDEF"] * 3
    one = compute_stats(write("one.spacy", texts), dev=write("dev.spacy", texts[:3]))
    many = compute_stats(write("many", texts, shard_size=5), dev=write("dev", texts, shard_size=2))
    assert one.parts["train"].as_dict() == many.parts["train"].as_dict()
    assert one.as_dict()["surface_forms"] == many.as_dict()["surface_forms"]


def test_empty_parts(write):
    stats = compute_stats(write("train.spacy", []), dev=write("dev.spacy", ["a b"]))
    assert stats.parts["train"].documents == 0
    assert stats.overlaps[0].second_share == 0
    json.dumps(stats.as_dict())
    assert CliRunner().invoke(app, ["stats", str(write("t.spacy", []))]).exit_code == 0


TEXTS = ["Ada/B-PER Lee/I-PER met Bern/B-LOC", "Bern is far"] * 25


def test_cli_json_and_output(write, tmp_path):
    train, dev = write("train.spacy", [*TEXTS, "a/B-LOC", "a"]), write("dev.spacy", TEXTS[:1])
    arguments = ["stats", train, "--dev", dev, "--json", "-o", tmp_path / "o" / "s.json", "-n", 1]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads((tmp_path / "o" / "s.json").read_text(encoding="utf8"))
    assert printed == compute_stats(train, dev=dev).as_dict(top=1)
    assert [form["text"] for form in printed["surface_forms"]["forms"]] == ["Bern"]
    assert printed["surface_forms"]["also_outside"] == 2
    assert printed["parts"]["train"]["widths"]["2"] == {"entities": 25, "covered": 1.0}


def test_cli_tables(write):
    train, dev = write("train.spacy", TEXTS), write("dev.spacy", TEXTS[:1])
    result = CliRunner().invoke(app, ["stats", str(train), "--dev", str(dev)])
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["documents", "50", "1"] in lines
    assert ["PER", "25", "1"] in lines
    assert ["2", "25", "100.00"] in lines
    assert ["dev", "train", "1", "100.00", "1", "100.00"] in lines
    assert ["Bern", "LOC", "25", "25", "[Bern]", "is", "far"] in lines


def test_cli_shows_the_string_of_a_long_example(write):
    words = " ".join(["extraordinarily-long-word"] * 20)
    train = write("train.spacy", ["Bern/B-LOC", f"{words} Bern {words}"])
    result = CliRunner().invoke(app, ["stats", str(train)])
    assert "[Bern]" in result.output


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_cli_plot(write, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "plots" / f"sparsity{suffix}"
    train = str(write("train.spacy", TEXTS))
    result = CliRunner().invoke(app, ["stats", train, "--plot", str(plot)])
    assert result.exit_code == 0, result.output
    start = plot.read_bytes()[:100]
    assert start.startswith(b"\x89PNG") if suffix == ".png" else b"<?xml" in start


def test_cli_refuses_unknown_drawings_before_it_reads(tmp_path):
    missing = str(tmp_path / "none.spacy")
    result = CliRunner().invoke(app, ["stats", missing, "--plot", str(tmp_path / "a.txt")])
    assert result.exit_code == 1
    assert "R066" in result.output


def test_cli_without_a_corpus(tmp_path):
    result = CliRunner().invoke(app, ["stats", str(tmp_path / "none.spacy")])
    assert result.exit_code == 1
    assert "R001" in result.output


def test_ordinary_words_with_labels_are_listed(write):
    texts = ["The/B-ORG cat"] * 5 + ["see the cat"] * 60 + ["Ada/B-PER slept"] * 30
    path = write("train.spacy", texts)
    stats = compute_stats(path)
    assert [(form.text, form.labeled, form.outside) for form in stats.doubtful_forms] == [
        ("The", 5, 60)
    ]
    assert stats.as_dict()["surface_forms"]["doubtful"][0]["text"] == "The"
    printed = CliRunner().invoke(app, ["stats", str(path)])
    assert "5 labels of 1 strings" in printed.output


def test_fragments_of_names_are_listed(write):
    path = write("train.spacy", ["we met Jean/B-PER Dupont", "we met Ada/B-PER today"])
    assert compute_stats(path).as_dict()["fragments"] == {
        "labels": 1,
        "examples": ["met [Jean] Dupont"],
    }
    printed = CliRunner().invoke(app, ["stats", str(path)])
    assert "1 labels have a capitalized word" in printed.output
    assert "met [Jean] Dupont" in printed.output


def test_capitals_that_mark_no_names_are_told(write):
    path = write("train.spacy", ["die Frau Ada/B-PER sah den Hund im Garten"] * 20)
    assert compute_stats(path).as_dict()["capitals_mark_names"] is False
    printed = CliRunner().invoke(app, ["stats", str(path)])
    assert "most capitalized words are in no entity" in " ".join(printed.output.split())
    assert "withdraw_fragments" not in printed.output


def test_places_without_labels_are_listed(write):
    path = write("train.spacy", ["we met Ada/B-PER last week"] * 100)
    places = compute_stats(path).as_dict()["outside_places"]
    assert places == {"^xx": 100, "xxX": 100, "Xxx": 100, "xx$": 100}
    printed = CliRunner().invoke(app, ["stats", str(path)])
    assert "80.00% of the tokens" in printed.output
    assert "^xx, xxX, Xxx, xx$" in printed.output
