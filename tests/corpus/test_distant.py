import json
import pickle
import random

import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from typer.testing import CliRunner

from spacy_robust_ner.annotation import REJECTED_SPANS_KEY, set_complete, stated_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.dictionaries import DictionarySource, Entry, parse_source
from spacy_robust_ner.corpus.distant import Annotator, annotate_corpus
from spacy_robust_ner.corpus.io import read_docs, write_docs
from spacy_robust_ner.corpus.matching import DictionaryMatcher, MatchCounts, MatchSettings
from spacy_robust_ner.corpus.units import TokenisedText, is_raw_text


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def make_matcher(names, **settings):
    """names: (text or token pattern, label) or (text, label, count), in order of priority."""
    entries = []
    for line, (name, label, *count) in enumerate(names, start=1):
        pattern = name if isinstance(name, list) else None
        entries.append(Entry(label, str(name), pattern, *(count or [1]), "names", line))
    return DictionaryMatcher("en", entries, MatchSettings(**settings))


def find(matcher, text):
    words = text if isinstance(text, list) else None
    doc = Doc(matcher.nlp.vocab, words=words) if words else matcher.make_doc(text)
    found = matcher.find(doc, MatchCounts())
    return [(doc[span.start : span.end].text, span.label) for span in found]


def words_only(*words, **kwargs):
    return Doc(spacy.blank("en").vocab, words=list(words), **kwargs)


def best_spans(words, names):
    """The conflict rules word by word, without any matcher: take the best span, again and again."""
    spans = [
        (-len(name), start, priority, label)
        for priority, (name, label) in enumerate(names)
        for start in range(len(words) - len(name) + 1)
        if tuple(words[start : start + len(name)]) == name
    ]
    chosen = []
    while spans:
        best = min(spans)
        end = best[1] - best[0]
        chosen.append((best[1], end, best[3]))
        spans = [s for s in spans if s[1] >= end or s[1] - s[0] <= best[1]]
    return sorted(chosen)


def test_conflicts_are_resolved_as_by_brute_force():
    rng = random.Random(1)
    overlaps = 0
    for _ in range(6):
        lengths = [rng.randint(1, 4) for _ in range(rng.randint(1, 12))]
        names = [(tuple(rng.choices("abc", k=n)), rng.choice("XYZ")) for n in lengths]
        matcher = make_matcher([(" ".join(name), label) for name, label in names])
        for _ in range(80):
            words = rng.choices("abcd", k=rng.randint(1, 25))
            counts = MatchCounts()
            doc = Doc(matcher.nlp.vocab, words=words)
            assert [tuple(span) for span in matcher.find(doc, counts)] == best_spans(words, names)
            overlaps += counts.contained + counts.crossing
    assert overlaps > 500


def test_counts_of_conflicts_and_entries():
    matcher = make_matcher([("New York", "LOC"), ("York", "LOC"), ("York City Hall", "ORG")])
    counts = MatchCounts()
    matcher.find(matcher.make_doc("New York is not York City Hall"), counts)
    assert (counts.contained, counts.crossing) == (2, 0)
    matcher.find(matcher.make_doc("New York City Hall"), counts)
    # "New York" crosses "York City Hall", and "York" lies in it.
    assert (counts.contained, counts.crossing) == (3, 1)
    assert counts.labels == {"LOC": 1, "ORG": 2}
    assert counts.used == {0, 2}
    assert counts.found == {0, 1, 2}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("exact", ["US", "Reading", "aspirin"]),
        (
            "insensitive",
            ["US", "us", "Us", "Reading", "reading", "READING", "aspirin", "Aspirin", "ASPIRIN"],
        ),
        ("smart", ["US", "Reading", "READING", "aspirin", "Aspirin", "ASPIRIN"]),
    ],
)
def test_case(case, expected):
    matcher = make_matcher([("US", "A"), ("Reading", "B"), ("aspirin", "C")], case=case)
    text = "US us Us Reading reading READING aspirin Aspirin ASPIRIN"
    assert [name for name, _ in find(matcher, text)] == expected


def test_smart_case_takes_the_most_tolerant_spelling_of_a_label():
    names = [("Mint", "FOOD"), ("mint", "FOOD"), ("mint", "COLOR")]
    assert find(make_matcher(names, case="smart"), "mint") == [("mint", "FOOD")]
    assert find(make_matcher(names[:1], case="smart"), "mint") == []
    assert find(make_matcher([names[0], names[2]], case="smart"), "mint") == []


@pytest.mark.parametrize(
    ("ambiguous", "expected"),
    [
        ("first", [("Paris", "PER"), ("Oslo", "LOC")]),
        ("frequency", [("Paris", "LOC"), ("Oslo", "LOC")]),
        ("drop", [("Oslo", "LOC")]),
    ],
)
def test_name_under_two_labels(ambiguous, expected):
    names = [("Paris", "PER", 2), ("Paris", "LOC"), ("Paris", "LOC", 2), ("Oslo", "LOC")]
    matcher = make_matcher(names, ambiguous=ambiguous)
    assert find(matcher, "Paris and Oslo") == expected
    assert matcher.report.ambiguous == 1
    first, second = ("LOC", "PER") if ambiguous == "frequency" else ("PER", "LOC")
    assert matcher.report.ambiguous_examples == [f"Paris: {first}, {second}"]


def test_equal_frequencies_fall_to_the_first():
    names = [("Paris", "PER"), ("Paris", "LOC")]
    assert find(make_matcher(names, ambiguous="frequency"), "Paris") == [("Paris", "PER")]


def test_case_decides_what_is_ambiguous_or_repeated():
    names = [("Apple", "ORG"), ("apple", "FOOD"), ("APPLE", "ORG")]
    exact = make_matcher(names)
    assert (exact.report.ambiguous, exact.report.repeated) == (0, 0)
    assert find(exact, "apple Apple") == [("apple", "FOOD"), ("Apple", "ORG")]
    insensitive = make_matcher(names, case="insensitive")
    assert (insensitive.report.ambiguous, insensitive.report.repeated) == (1, 1)
    assert find(insensitive, "apple Apple") == [("apple", "ORG"), ("Apple", "ORG")]


def test_whitespace_inside_of_entries():
    names = [("New \u00a0 York", "LOC")]
    assert find(make_matcher(names), "in New York") == [("New York", "LOC")]
    assert find(make_matcher(names, whitespace="keep"), "in New York") == []
    assert find(make_matcher(names, whitespace="keep"), "in New \u00a0 York") == [
        ("New \u00a0 York", "LOC")
    ]


def test_exclusions_and_minimal_length():
    names = [("May", "PER"), ("Xu", "PER"), ("Of  the", "ORG"), ("Mays", "PER")]
    matcher = make_matcher(names, exclude=frozenset({"may", "of the"}), min_length=3)
    assert find(matcher, "May Xu Of the Mays") == [("Mays", "PER")]
    report = matcher.report
    assert (report.read, report.excluded, report.too_short) == (4, 2, 1)
    with pytest.raises(
        ValueError, match=r"^\[R082\].*of 4 entries 0 are excluded, 4 are too short"
    ):
        make_matcher(names, min_length=10)


def test_entry_matches_corpus_words_that_spacy_would_split():
    matcher = make_matcher([("AL-AIN don't", "LOC")])
    assert len(matcher.make_doc("AL-AIN don't")) > 2
    assert find(matcher, ["in", "AL-AIN", "don't"]) == [("AL-AIN don't", "LOC")]
    assert find(matcher, "in AL-AIN don't") == [("AL-AIN don't", "LOC")]


def test_characters():
    matcher = make_matcher([("too cool", "ORG"), ("维生素e", "MAT")], tokens="characters")
    assert find(matcher, [*"我要维生素e"]) == [("维 生 素 e", "MAT")]
    assert find(matcher, "我要维生素e，too cool") == [("维生素e", "MAT"), ("too cool", "ORG")]
    for words in (list("too cool"), list("toocool")):
        assert [label for _, label in find(matcher, words)] == ["ORG"]


def test_token_patterns_share_the_rules_of_conflict():
    pattern = [{"LOWER": "acme"}, {"TEXT": {"REGEX": "^(Inc|Corp)"}, "OP": "?"}]
    matcher = make_matcher([("Acme", "A"), (pattern, "B"), ("Acme Corp", "C")])
    assert find(matcher, "Acme and ACME Inc and Acme Corp") == [
        ("Acme", "A"),
        ("ACME Inc", "B"),
        ("Acme Corp", "B"),
    ]
    assert matcher.report.token_patterns == 1


def test_token_pattern_that_spacy_refuses(tmp_path):
    lines = [{"label": "A", "pattern": [{"LOWERR": "x"}]}, {"label": "A", "pattern": "Oslo"}]
    path = write(tmp_path / "p.jsonl", *map(json.dumps, lines))
    text = write(tmp_path / "t.txt", "Oslo")
    with pytest.raises(ValueError, match=r"^\[R081\] .*p.jsonl, line 1: spaCy refuses"):
        annotate_corpus([text], parse_source(str(path)), output=tmp_path / "o.spacy")
    report = annotate_corpus(
        [text], parse_source(str(path)), output=tmp_path / "o.spacy", skip_bad=True
    )
    assert report.matches == {"A": 1}
    assert [(bad.path, bad.line) for bad in report.bad_lines] == [(str(path), 1)]


def test_pickled_matcher_finds_the_same():
    names = [("May", "PER"), ("Oslo", "LOC"), ([{"LOWER": "rome"}], "LOC"), ("Oslo Fjord", "LOC")]
    matcher = make_matcher(names, exclude=frozenset({"may"}), case="smart")
    counts, again = MatchCounts(), MatchCounts()
    copy = pickle.loads(pickle.dumps(matcher))
    text = "May in ROME and the OSLO fjord and oslo"
    assert copy.find(copy.make_doc(text), again) == matcher.find(matcher.make_doc(text), counts)
    assert again == counts
    assert counts.labels == {"LOC": 2}


@pytest.mark.parametrize(("rest", "iob"), [("outside", 2), ("missing", 0)])
def test_annotated_document(rest, iob):
    annotator = Annotator(make_matcher([("Oslo", "LOC")]), rest=rest)
    doc = annotator.annotate("In Oslo today", MatchCounts())
    assert [token.ent_iob for token in doc] == [iob, 3, iob]
    assert stated_complete(doc) is False
    empty = annotator.annotate(TokenisedText([], None, None), MatchCounts())
    assert len(empty) == 0


def test_output_keeps_the_text_and_nothing_of_the_gold(tmp_path):
    vocab = spacy.blank("en").vocab
    known = Doc(vocab, words=["Acme", "'s", "Oslo"], spaces=[False, True, False])
    known[0].is_sent_start, known[1].is_sent_start, known[2].is_sent_start = True, False, True
    unknown = Doc(vocab, words=["Oslo", "!"])
    for doc in (known, unknown):
        doc.set_ents([Span(doc, 0, 1, "SECRET", kb_id="SECRETKB", span_id="SECRETID")])
        doc.spans[REJECTED_SPANS_KEY] = [Span(doc, 1, 2, "SECRETNOT")]
        doc.cats = {"SECRETCAT": 1.0}
        doc.user_data["SECRETKEY"] = "SECRETVALUE"
        set_complete(doc, True)
    write_docs([known, unknown], tmp_path / "in.spacy")
    names = write(tmp_path / "LOC.txt", "Oslo")
    report = annotate_corpus(
        [tmp_path / "in.spacy"],
        [DictionarySource(names)],
        output=tmp_path / "o.spacy",
        evaluate=True,
    )
    assert report.scores is not None
    first, second = read_docs(tmp_path / "o.spacy", vocab)
    assert [(e.text, e.label_, e.kb_id_, e.id_) for e in first.ents] == [("Oslo", "LOC", "", "")]
    assert first.text == known.text
    assert [s.text for s in first.sents] == ["Acme's", "Oslo"]
    assert not first.has_unknown_spaces
    assert second.has_unknown_spaces
    assert [stated_complete(doc) for doc in (first, second)] == [False, False]
    saved = DocBin().from_disk(tmp_path / "o.spacy")
    assert not [string for string in saved.strings if "SECRET" in string]
    everything = repr((saved.cats, saved.user_data, saved.span_groups))
    assert "SECRET" not in everything


def corpus_of(count, seed=3):
    """Documents with gold entities, some of them in the dictionary, some missing tokens."""
    rng = random.Random(seed)
    vocab = spacy.blank("en").vocab
    for _ in range(count):
        words = rng.choices(["Oslo", "Rome", "Acme", "New", "York", "the", "of", "."], k=12)
        doc = Doc(vocab, words=words)
        ents = [
            Span(doc, i, i + 1, rng.choice(["LOC", "ORG"])) for i in range(12) if rng.random() < 0.3
        ]
        missing = [doc[i : i + 1] for i in range(12) if rng.random() < 0.1]
        taken = {span.start for span in missing}
        doc.set_ents([e for e in ents if e.start not in taken], missing=missing, default="outside")
        yield doc


@pytest.fixture
def dictionaries(tmp_path):
    loc = write(tmp_path / "LOC.txt", "Oslo", "New York", "York", "Nowhere")
    org = write(tmp_path / "ORG.txt", "Acme", "Rome of")
    return [DictionarySource(loc), DictionarySource(org)]


@pytest.mark.parametrize(("shard_size", "shards"), [(1300, 1), (400, 4), (70, 18)])
def test_processes_do_not_change_the_result(tmp_path, dictionaries, shard_size, shards):
    write_docs(corpus_of(1204), tmp_path / "in.spacy")
    outputs, reports = [], []
    for processes in (1, 2):
        output = tmp_path / f"out{processes}"
        report = annotate_corpus(
            [tmp_path / "in.spacy"],
            dictionaries,
            output=output,
            evaluate=True,
            processes=processes,
            shard_size=shard_size,
        ).to_dict()
        outputs.append([path.read_bytes() for path in sorted(output.iterdir())])
        reports.append({**report, "output": None})
    assert reports[0] == reports[1]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == shards
    assert reports[0]["documents"] == 1204
    texts = [doc.text for doc in read_docs(tmp_path / "out2", spacy.blank("en").vocab)]
    assert texts == [doc.text for doc in corpus_of(1204)]


def test_scores_are_those_of_spacy_where_the_gold_is_whole(tmp_path, dictionaries):
    gold = list(corpus_of(60))
    for doc in gold:
        doc.set_ents(list(doc.ents), default="outside")
    write_docs(gold, tmp_path / "in.spacy")
    report = annotate_corpus(
        [tmp_path / "in.spacy"], dictionaries, output=tmp_path / "o.spacy", evaluate=True
    )
    predicted = read_docs(tmp_path / "o.spacy", gold[0].vocab)
    expected = get_ner_prf([Example(p, g) for p, g in zip(predicted, gold, strict=True)])
    overall = report.scores["overall"]
    assert 0 < expected["ents_f"] < 1
    for name in "prf":
        assert overall[name] == pytest.approx(expected[f"ents_{name}"], abs=1e-6)
        for label in ("LOC", "ORG"):
            score = report.scores["labels"][label][name]
            assert score == pytest.approx(expected["ents_per_type"][label][name], abs=1e-6)
    assert overall["true_positives"] + overall["false_positives"] == sum(report.matches.values())
    assert report.entries_never_found == 1
    assert report.never_found_examples == ["Nowhere"]


def test_matches_on_missing_gold_are_not_judged(tmp_path, dictionaries):
    doc = words_only("Oslo", "Acme", "York", ents=["B-LOC", None, "O"])
    write_docs([doc, words_only("Acme")], tmp_path / "in.spacy")
    report = annotate_corpus([tmp_path / "in.spacy"], dictionaries, evaluate=True)
    scores = report.scores
    assert scores["documents"] == 1
    assert scores["not_judged"] == 1
    assert (scores["overall"]["true_positives"], scores["overall"]["false_positives"]) == (1, 1)
    assert report.output is None


def test_separate_gold_may_have_other_tokens(tmp_path, dictionaries):
    text = write(tmp_path / "t.txt", "In New York's Acme.", "", "Oslo")
    gold = [
        words_only("In", "New", "York's", "Acme.", ents=["O", "B-LOC", "I-LOC", "B-ORG"]),
        words_only("Os", "lo", ents=["B-LOC", "I-LOC"]),
    ]
    write_docs(gold, tmp_path / "gold.spacy")
    report = annotate_corpus([text], dictionaries, gold=tmp_path / "gold.spacy")
    overall = report.scores["overall"]
    # Gold holds "New York's" and "Acme.", which are not what was matched.
    assert [overall[k] for k in ("true_positives", "false_positives", "false_negatives")] == [
        1,
        2,
        2,
    ]
    write_docs(gold[:1], tmp_path / "short.spacy")
    with pytest.raises(ValueError, match=r"^\[R084\] .*document 2: the gold corpus ends"):
        annotate_corpus([text], dictionaries, gold=tmp_path / "short.spacy")
    write_docs(gold[::-1], tmp_path / "other.spacy")
    with pytest.raises(ValueError, match=r"^\[R084\] .*document 1: the input has 'InNewYork"):
        annotate_corpus([text], dictionaries, gold=tmp_path / "other.spacy")


def test_raw_text_by_line_by_file_and_columns(tmp_path, dictionaries):
    folder = tmp_path / "texts"
    folder.mkdir()
    write(folder / "b.txt", "Oslo is", "", "New", "York")
    write(folder / "a.txt", "Acme grew -")
    columns = write(tmp_path / "c.txt", "New B-LOC", "York I-LOC", "", "Oslo O")
    assert is_raw_text(folder / "b.txt")
    assert is_raw_text(folder / "a.txt") is False
    assert is_raw_text(columns) is False

    def texts(inputs, **options):
        annotate_corpus(inputs, dictionaries, output=tmp_path / "o.spacy", **options)
        docs = read_docs(tmp_path / "o.spacy", spacy.blank("en").vocab)
        return [(doc.text.strip(), [e.text for e in doc.ents]) for doc in docs]

    assert texts([folder], format="lines") == [
        ("Acme grew -", ["Acme"]),
        ("Oslo is", ["Oslo"]),
        ("New", []),
        ("York", ["York"]),
    ]
    assert texts([folder], format="files") == [
        ("Acme grew -", ["Acme"]),
        ("Oslo is\n\nNew\nYork", ["Oslo", "York"]),
    ]
    assert texts([columns]) == [("New York", ["New York"]), ("Oslo", ["Oslo"])]


@pytest.mark.parametrize(("tokens", "unit"), [("auto", "characters"), ("words", "words")])
def test_character_corpora_are_found(tmp_path, tokens, unit):
    columns = write(tmp_path / "c.txt", *(f"{char} O" for char in "我要买不锈钢和4g的"))
    names = write(tmp_path / "M.txt", "不锈钢")
    report = annotate_corpus(
        [columns], [DictionarySource(names)], tokens=tokens, output=tmp_path / "o.spacy"
    )
    assert report.token_unit == unit
    assert report.matches == ({"M": 1} if unit == "characters" else {})


def test_evaluation_needs_gold(tmp_path, dictionaries):
    text = write(tmp_path / "t.txt", "Oslo")
    with pytest.raises(ValueError, match=r"^\[R085\]"):
        annotate_corpus([text], dictionaries, output=tmp_path / "o.spacy", evaluate=True)
    assert not (tmp_path / "o.spacy").exists()
    with pytest.raises(ValueError, match=r"^\[R089\]"):
        annotate_corpus([text], dictionaries)
    with pytest.raises(ValueError, match=r"^\[R090\]"):
        annotate_corpus([text], dictionaries, evaluate=True, gold=text)


@pytest.mark.parametrize(
    "settings",
    [
        {"case": "upper"},
        {"whitespace": "x"},
        {"ambiguous": "x"},
        {"tokens": "auto"},
        {"min_length": 0},
    ],
)
def test_unknown_settings(settings):
    with pytest.raises(
        ValueError, match=r"^\[R08[36]\] .*--" + next(iter(settings)).replace("_", "-")
    ):
        MatchSettings(**settings)


def test_command_line(tmp_path, dictionaries):
    write_docs(corpus_of(20), tmp_path / "in.spacy")
    arguments = ["annotate", str(tmp_path / "in.spacy"), "--evaluate", "-o", str(tmp_path / "o")]
    for source in dictionaries:
        arguments += ["-d", f"X_{source.path.stem}={source.path}"]
    shown = CliRunner().invoke(app, [*arguments, "--report", str(tmp_path / "r.json")])
    assert shown.exit_code == 0, shown.output
    assert "X_LOC" in shown.output
    printed = CliRunner().invoke(app, [*arguments, "--json", "-n", "2"])
    assert json.loads(printed.stdout) == json.loads((tmp_path / "r.json").read_text())
    assert set(json.loads(printed.stdout)["matches"]) == {"X_LOC", "X_ORG"}
    excluded = write(tmp_path / "words.txt", "oslo", "york", "new york", "nowhere")
    fewer = CliRunner().invoke(app, [*arguments, "--json", "--exclude", str(excluded)])
    assert set(json.loads(fewer.stdout)["matches"]) == {"X_ORG"}
    failed = CliRunner().invoke(
        app, ["annotate", str(tmp_path / "in.spacy"), "-d", "no", "-o", "x"]
    )
    assert failed.exit_code == 1
    assert "[R080]" in failed.output


def test_benchmark_is_the_same_each_time():
    arguments = ["benchmark", "annotate", "--entries", "200", "--tokens", "3000", "--json"]
    first, second = (json.loads(CliRunner().invoke(app, arguments).stdout) for _ in range(2))
    assert (first["tokens"], first["matches"]) == (second["tokens"], second["matches"])
    assert first["matches"] >= 3000 / 20
    assert first["build_seconds"] >= 0
    failed = CliRunner().invoke(app, [*arguments, "--processes", "0"])
    assert failed.exit_code == 1
    assert "[R086]" in failed.output
