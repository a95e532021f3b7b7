import json

import pytest
import spacy
from spacy.tokens import Doc, Span
from typer.testing import CliRunner

from spacy_robust_ner.annotation import REJECTED_SPANS_KEY, set_complete, stated_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.dictionaries import parse_source
from spacy_robust_ner.corpus.io import read_docs, write_docs
from spacy_robust_ner.corpus.matching import MatchSettings
from spacy_robust_ner.corpus.phrases import mark_phrases

TEXTS = ["Ada Lovelace met a mayor in New York City", "nobody came", "in New York"]
CAPITALS = [{"TEXT": {"REGEX": "^[A-Z]"}, "OP": "+"}]


@pytest.fixture
def corpus(tmp_path):
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=text.split()) for text in TEXTS]
    docs[0].set_ents([Span(docs[0], 0, 2, "PER")], missing=[docs[0][3:4]])
    docs[0].spans[REJECTED_SPANS_KEY] = [Span(docs[0], 4, 5, "PER")]
    docs[2].set_ents([])
    set_complete(docs[1], True)
    path = tmp_path / "train.spacy"
    write_docs(docs, path)
    return path


def sources(*paths):
    return [source for path in paths for source in parse_source(str(path))]


def phrases_of(path, key="phrases"):
    docs = list(read_docs(path, spacy.blank("en").vocab))
    return [[span.text for span in doc.spans[key]] for doc in docs]


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def test_phrases_of_lists_and_patterns_and_nothing_else_changes(tmp_path, corpus):
    names = write(tmp_path / "places.txt", "New York", "New York City", "City of London")
    # A line without a label: a list of phrases needs none.
    patterns = write(tmp_path / "p.jsonl", json.dumps({"pattern": CAPITALS}))
    target = tmp_path / "out.spacy"
    report = mark_phrases(corpus, target, sources(names))
    assert phrases_of(target) == [["New York City"], [], ["New York"]]
    assert (report.documents, report.documents_with_phrases, report.phrases) == (3, 2, 2)
    assert (report.tokens, report.tokens_in_phrases, report.outside_in_phrases) == (14, 5, 5)
    assert (report.contained, report.entries_never_found, report.replaced) == (1, 1, 0)
    vocab = spacy.blank("en").vocab
    for old, new in zip(read_docs(corpus, vocab), read_docs(target, vocab), strict=True):
        assert new.text == old.text
        assert [t.ent_iob_ for t in new] == [t.ent_iob_ for t in old]
        assert [str(ent) for ent in new.ents] == [str(ent) for ent in old.ents]
        assert stated_complete(new) is stated_complete(old)
        assert [span.label_ for span in new.spans.get(REJECTED_SPANS_KEY, [])] == [
            span.label_ for span in old.spans.get(REJECTED_SPANS_KEY, [])
        ]

    again = tmp_path / "again.spacy"
    report = mark_phrases(target, again, sources(patterns))
    assert phrases_of(again) == [["Ada Lovelace", "New York City"], [], ["New York"]]
    assert (report.replaced, report.tokens_in_phrases, report.outside_in_phrases) == (3, 7, 5)

    other = tmp_path / "other.spacy"
    mark_phrases(again, other, sources(names), key="places")
    assert phrases_of(other) == phrases_of(again)
    assert phrases_of(other, "places") == phrases_of(target)


def test_settings_of_matching_count(tmp_path, corpus):
    names = write(tmp_path / "places.txt", "new york", "ada")
    target = tmp_path / "out"
    report = mark_phrases(corpus, target, sources(names))
    assert report.phrases == 0
    settings = MatchSettings(case="insensitive", exclude=frozenset({"ada"}))
    report = mark_phrases(corpus, target, sources(names), settings=settings, shard_size=2)
    assert len(list(target.iterdir())) == 2
    assert phrases_of(target) == [["New York"], [], ["New York"]]
    assert report.entries.excluded == 1


def test_phrases_in_characters(tmp_path):
    vocab = spacy.blank("zh").vocab
    write_docs([Doc(vocab, words=list("他去北京了"))], tmp_path / "c.spacy")
    names = write(tmp_path / "names.txt", "北京")
    mark_phrases(tmp_path / "c.spacy", tmp_path / "o.spacy", sources(names), lang="zh")
    (doc,) = read_docs(tmp_path / "o.spacy", vocab)
    assert [(span.start, span.end) for span in doc.spans["phrases"]] == [(2, 4)]


def test_command_line_reports_and_refuses(tmp_path, corpus):
    names = write(tmp_path / "places.txt", "New York", "a\tb")
    target = tmp_path / "out.spacy"
    arguments = ["phrases", str(corpus), str(target), "--phrases", str(names)]
    failed = CliRunner().invoke(app, arguments)
    assert failed.exit_code == 1
    assert "line 2" in " ".join(failed.output.split())
    assert not target.exists()
    shown = CliRunner().invoke(app, [*arguments, "--skip-bad", "--report", str(tmp_path / "r")])
    assert shown.exit_code == 0
    assert "Marked 2 phrases" in shown.output
    assert json.loads((tmp_path / "r").read_text(encoding="utf8"))["tokens_in_phrases"] == 4
    printed = CliRunner().invoke(app, [*arguments, "--skip-bad", "--json"])
    assert json.loads(printed.stdout)["phrases"] == 2
    nothing = write(tmp_path / "nothing.txt", "Atlantis")
    none_found = CliRunner().invoke(app, [*arguments[:4], str(nothing)])
    assert "No phrase occurs" in none_found.output
    itself = CliRunner().invoke(app, ["phrases", str(corpus), str(corpus), "-p", str(names)])
    assert itself.exit_code == 1
    assert "[R021]" in itself.output
