import json
import tracemalloc

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

from spacy_robust_ner.annotation import set_complete, stated_complete
from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.convert import CorpusInput, convert, read_inputs
from spacy_robust_ner.corpus.convert_report import MAX_LISTED
from spacy_robust_ner.corpus.formats import find_format
from spacy_robust_ner.corpus.io import read_docs, write_docs
from spacy_robust_ner.corpus.source import ReadOptions

FULL = "我\tO\n买\tO\n茶\tB-cp\n\n茶\tB-cp\n"
PARTIAL = "买\tUNK\n茶\tB-cp\n杯\tI-cp\n"


@pytest.fixture
def ec(tmp_path):
    (tmp_path / "full.txt").write_text(FULL, encoding="utf8")
    (tmp_path / "partial.txt").write_text(PARTIAL, encoding="utf8")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


def load(path):
    return list(read_docs(path, spacy.blank("xx").vocab))


def test_inputs_merge_with_their_own_flags(ec, states_of):
    report = convert(
        [CorpusInput(ec / "full.txt", True), CorpusInput(ec / "partial.txt", False)],
        ec / "train.spacy",
    )
    docs = load(ec / "train.spacy")
    assert [states_of(doc) for doc in docs] == ["OOE", "E", "-EE"]
    assert [stated_complete(doc) for doc in docs] == [True, True, False]
    assert [(i.documents, i.complete, i.incomplete, i.unstated) for i in report.inputs] == [
        (2, 2, 0, 0),
        (1, 0, 1, 0),
    ]
    assert (report.documents, report.tokens, report.entities) == (3, 7, {"cp": 3})


def test_flag_is_not_stated_by_default(ec):
    convert([ec / "full.txt"], ec / "train.spacy")
    assert [stated_complete(doc) for doc in load(ec / "train.spacy")] == [None, None]


def test_flags_of_spacy_files_are_kept_unless_overridden(tmp_path, blank_en):
    docs = [Doc(blank_en.vocab, words=[word]) for word in "abc"]
    for doc, flag in zip(docs, (True, False, None), strict=True):
        set_complete(doc, flag)
    write_docs(docs, tmp_path / "in.spacy")
    for given, flags in ((None, [True, False, None]), (False, [False] * 3), (True, [True] * 3)):
        convert([CorpusInput(tmp_path / "in.spacy", given)], tmp_path / "out.spacy")
        assert [stated_complete(doc) for doc in load(tmp_path / "out.spacy")] == flags


def test_docbin_keeps_all_annotation(tmp_path, blank_en, states_of):
    doc = Doc(blank_en.vocab, words=["Ada", "ran", "far"], sent_starts=[True, False, True])
    doc.set_ents([doc.char_span(0, 3, "PER")], missing=[doc[2:3]])
    doc.spans["rejected_spans"] = [doc[1:3]]
    doc.user_data["source"] = "somewhere"
    write_docs([doc], tmp_path / "in" / "part.spacy")
    report = convert([tmp_path / "in"], tmp_path / "out")
    again = load(tmp_path / "out")[0]
    assert states_of(again) == "EO-"
    assert [(s.start, s.end) for s in again.spans["rejected_spans"]] == [(1, 3)]
    assert [s.start for s in again.sents] == [0, 2]
    assert again.user_data["source"] == "somewhere"
    assert (report.inputs[0].format, report.inputs[0].rejected_spans) == ("docbin", 1)


def test_shards_and_forgotten_words(tmp_path):
    nlp = spacy.blank("en")
    lines = "".join(f"word{i} O\nname{i} B-PER\n\n" for i in range(25))
    (tmp_path / "in.txt").write_text(lines)
    known = len(nlp.vocab.strings)
    convert([tmp_path / "in.txt"], tmp_path / "out", nlp=nlp, shard_size=10)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "00000.spacy",
        "00001.spacy",
        "00002.spacy",
    ]
    assert [len(DocBin().from_disk(p)) for p in sorted((tmp_path / "out").iterdir())] == [10, 10, 5]
    docs = load(tmp_path / "out")
    assert [doc[1].text for doc in docs] == [f"name{i}" for i in range(25)]
    assert [doc.ents[0].label_ for doc in docs] == ["PER"] * 25
    assert len(nlp.vocab.strings) < known + 10


def test_spacy_shards_of_other_sizes_than_the_output(tmp_path):
    (tmp_path / "in.txt").write_text("".join(f"name{i} B-PER\n\n" for i in range(23)))
    convert([tmp_path / "in.txt"], tmp_path / "a", shard_size=7)
    report = convert([tmp_path / "a"], tmp_path / "b", shard_size=4)
    assert [doc.text.strip() for doc in load(tmp_path / "b")] == [f"name{i}" for i in range(23)]
    assert report.entities == {"PER": 23}


def test_text_is_tokenized_across_shards(tmp_path):
    records = [
        {"text": f"Ada{i} ran.", "entities": [[0, 3 + len(str(i)), "PER"]]} for i in range(9)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, records)))
    convert([tmp_path / "in.jsonl"], tmp_path / "out", shard_size=2)
    assert [doc.text for doc in load(tmp_path / "out")] == [r["text"] for r in records]
    assert [doc.ents[0].text for doc in load(tmp_path / "out")] == [f"Ada{i}" for i in range(9)]


def test_read_inputs_shares_the_vocab(ec, blank_en):
    convert([ec / "full.txt"], ec / "full.spacy")
    docs = list(read_inputs([ec / "full.spacy", ec / "partial.txt"], nlp=blank_en))
    assert len(docs) == 3
    assert all(doc.vocab is blank_en.vocab for doc in docs)


def test_lists_are_limited_and_counts_are_not(tmp_path):
    lines = '{"text": 1, "entities": []}\n' * (MAX_LISTED + 5)
    (tmp_path / "in.jsonl").write_text(lines)
    report = convert(
        [tmp_path / "in.jsonl"], tmp_path / "o.spacy", options=ReadOptions(skip_bad=True)
    )
    skipped = report.inputs[0].skipped
    assert (skipped.count, len(skipped.listed)) == (MAX_LISTED + 5, MAX_LISTED)


def test_an_error_leaves_the_earlier_corpus(ec):
    convert([ec / "full.txt"], ec / "train.spacy")
    (ec / "bad.txt").write_text("a O\n\nb\n")
    with pytest.raises(ValueError, match="R008"):
        convert([ec / "partial.txt", ec / "bad.txt"], ec / "train.spacy", format="conll")
    assert len(load(ec / "train.spacy")) == 2
    assert sorted(p.name for p in ec.iterdir()) == [
        "bad.txt",
        "full.txt",
        "partial.txt",
        "train.spacy",
    ]


def test_cli_merges_and_reports(ec):
    result = run(
        ec / "train.spacy",
        "--complete",
        ec / "full.txt",
        "--incomplete",
        ec / "partial.txt",
        "--report",
        ec / "report.json",
    )
    assert result.exit_code == 0, result.output
    assert "iob2 (found)" in result.output
    assert "conll (found)" in result.output
    assert "3 documents, 7 tokens, 3 entities" in result.output
    assert [stated_complete(doc) for doc in load(ec / "train.spacy")] == [True, True, False]
    report = json.loads((ec / "report.json").read_text())
    assert (report["documents"], report["entities"]) == (3, {"cp": 3})
    assert report["inputs"][1]["missing_tokens"] == 1
    assert report["inputs"][1]["scheme"] == "iob2"


def test_cli_passes_every_option_on(tmp_path):
    lines = "-DOCSTART- x x\n\nO Ada0 1\n\nE-X b0 1\n? c1 1\nbad\n\n"
    (tmp_path / "in.data").write_text(lines)
    result = run(
        *(tmp_path / "out", tmp_path / "in.data", "--format", "conll", "--scheme", "bioes"),
        *("--token-column", 2, "--tag-column", -3, "--missing-tag", "?", "--docs", "docstart"),
        *("--segmentation-digits", "strip", "--skip-bad", "--shard-size", 1, "--quiet"),
        *("--report", tmp_path / "r.json", "--lang", "xx"),
    )
    assert result.exit_code == 0, result.output
    assert result.output == ""
    report = json.loads((tmp_path / "r.json").read_text())["inputs"][0]
    assert (report["documents"], report["skipped"]["count"], report["found"]) == (1, 1, [])
    assert [[t.text for t in doc] for doc in load(tmp_path / "out")] == [["Ada"]]


def test_cli_options_of_text_formats(tmp_path):
    spans = [{"start": 0, "end": 2, "label": "PER"}]
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "Ada ran", "spans": spans}))
    arguments = (tmp_path / "out.spacy", tmp_path / "in.jsonl", "--no-missing", "--misaligned")
    result = run(*arguments, "expand")
    assert result.exit_code == 0, result.output
    assert "1 misaligned spans" in result.output
    assert "'Ad' (PER) taken as 'Ada'" in result.output
    doc = load(tmp_path / "out.spacy")[0]
    assert [token.ent_iob_ for token in doc] == ["B", "O"]
    assert run(*arguments, "missing").exit_code == 0
    assert [token.ent_iob_ for token in load(tmp_path / "out.spacy")[0]] == ["", "O"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing.txt"], "R017"),
        ([], "R018"),
        (["full.txt", "--complete", "full.txt"], "R019"),
        (["full.txt", "--lang", "qq"], "R020"),
        (["full.txt", "--format", "conl"], "R011"),
        (["full.txt", "--scheme", "biluo"], "R016"),
        (["full.txt", "--docs", "file"], "R016"),
        (["full.txt", "--misaligned", "drop"], "R016"),
        (["full.txt", "--tag-column", "0"], "R016"),
        (["full.txt", "--shard-size", "0"], "R023"),
        (["train.spacy"], "R021"),
        (["binary.dat"], "R010"),
        (["other.json"], "R010"),
        (["folder", "--format", "conll"], "R022"),
        (["folder"], "R001"),
    ],
)
def test_cli_errors(ec, monkeypatch, arguments, code):
    monkeypatch.chdir(ec)
    convert([ec / "full.txt"], ec / "train.spacy")
    (ec / "binary.dat").write_bytes(b"\x00\xff" * 50)
    (ec / "folder").mkdir()
    (ec / "other.json").write_text('[{"foo": 1}]')
    result = run("train.spacy", *arguments)
    assert result.exit_code == 1
    assert f"[{code}]" in result.output
    assert len(load(ec / "train.spacy")) == 2


def test_output_inside_of_which_an_input_lies(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "in.txt").write_text(FULL, encoding="utf8")
    with pytest.raises(ValueError, match="R021"):
        convert([tmp_path / "corpus" / "in.txt"], tmp_path / "corpus")
    assert (tmp_path / "corpus" / "in.txt").exists()


def test_finding_the_format_of_a_single_line_reads_its_beginning_only(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"tokens": ["word"] * 20, "entities": []}] * 40_000))
    tracemalloc.start()
    assert find_format(path) == "tokens"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 6_000_000
    assert peak < 1_000_000


@pytest.mark.parametrize("first", ["[ O", "{ O", '"\tO', "[\tB-X"])
def test_columns_that_begin_like_json(tmp_path, first):
    (tmp_path / "a.txt").write_text(first + "\nAda B-PER\n")
    assert find_format(tmp_path / "a.txt") == "conll"
