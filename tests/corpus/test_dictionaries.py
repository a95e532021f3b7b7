import json

import pytest

from spacy_robust_ner.corpus.dictionaries import (
    BadLine,
    DictionarySource,
    parse_source,
    read_entries,
    read_word_list,
)


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def read(path, label=None, bad_lines=None):
    entries = read_entries([DictionarySource(path, label)], bad_lines=bad_lines)
    return [(e.text, e.label, e.count, e.line) for e in entries]


def test_list_takes_its_label_from_the_file_name_or_the_argument(tmp_path):
    path = write(tmp_path / "LOC.txt", "Oslo", "", "  New York ", "#1 Street")
    assert read(path) == [
        ("Oslo", "LOC", 1, 1),
        ("New York", "LOC", 1, 3),
        ("#1 Street", "LOC", 1, 4),
    ]
    assert {label for _, label, _, _ in read(path, "PLACE")} == {"PLACE"}


def test_list_with_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "LOC.txt"
    path.write_bytes(b"\xef\xbb\xbfOslo\r\nRome\r\n")
    assert [text for text, *_ in read(path)] == ["Oslo", "Rome"]


def test_unicode_line_separators_do_not_end_an_entry(tmp_path):
    path = tmp_path / "LOC.txt"
    path.write_text("a\u2028b\nc\n", encoding="utf8")
    assert [text for text, *_ in read(path)] == ["a\u2028b", "c"]


def test_table_has_labels_counts_and_a_label_for_the_rest(tmp_path):
    path = write(tmp_path / "names.tsv", "Oslo\tLOC", "Paris\tPER\t7", "Acme\t")
    assert read(path, "ORG") == [
        ("Oslo", "LOC", 1, 1),
        ("Paris", "PER", 7, 2),
        ("Acme", "ORG", 1, 3),
    ]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("x.tsv", "Oslo", "has no label"),
        ("x.tsv", "\tLOC", "entry before the tab is empty"),
        ("x.tsv", "a\tb\t1\tc", "4 columns"),
        ("x.tsv", "a\tb\tmany", "count 'many'"),
        ("x.tsv", "a\tb\t0", "count '0'"),
        ("x.txt", "Oslo\tLOC", "must end in .tsv"),
        ("x.jsonl", "{", "not valid JSON"),
        ("x.jsonl", '["Oslo"]', "no JSON object"),
        ("x.jsonl", '{"pattern": "Oslo"}', 'no "label"'),
        ("x.jsonl", '{"label": "LOC", "pattern": " "}', "not empty"),
        ("x.jsonl", '{"label": "LOC", "pattern": []}', "not empty"),
        ("x.jsonl", '{"label": "LOC", "pattern": ["Oslo"]}', "list of objects"),
        ("x.jsonl", '{"label": "LOC", "pattern": [{"POS": "NOUN"}]}', "asks for POS"),
        ("x.jsonl", '{"label": "LOC", "pattern": [{"ent_type": "LOC"}]}', "asks for ENT_TYPE"),
    ],
)
def test_malformed_line_is_an_error_with_its_place_or_is_listed(tmp_path, name, line, reason):
    good = {"x.tsv": "Rome\tLOC", "x.txt": "Rome", "x.jsonl": '{"label": "LOC", "pattern": "Rome"}'}
    path = write(tmp_path / name, good[name], line, good[name])
    with pytest.raises(ValueError, match=r"^\[R081\]") as raised:
        read(path)
    assert f"{path}, line 2:" in str(raised.value)
    assert reason in str(raised.value)
    bad_lines: list[BadLine] = []
    assert [(text, at) for text, _, _, at in read(path, bad_lines=bad_lines)] == [
        ("Rome", 1),
        ("Rome", 3),
    ]
    assert [(bad.path, bad.line) for bad in bad_lines] == [(str(path), 2)]
    assert reason in bad_lines[0].reason


def test_line_that_is_not_utf8(tmp_path):
    path = tmp_path / "LOC.txt"
    path.write_bytes(b"Oslo\nM\xfcnchen\n")
    with pytest.raises(ValueError, match=r"line 2: The line is not UTF-8"):
        read(path)


def test_pattern_files(tmp_path):
    phrase = {"label": "LOC", "pattern": "Oslo", "id": "oslo"}
    tokens = {"label": "ORG", "pattern": [{"LOWER": "acme"}, {"TEXT": {"REGEX": "^Inc"}}]}
    bare = {"text": "Rome", "count": 3}
    lines = write(tmp_path / "p.jsonl", *map(json.dumps, (phrase, tokens, bare)))
    entries = list(read_entries([DictionarySource(lines, "CITY")]))
    assert [(e.label, e.pattern, e.count) for e in entries] == [
        ("LOC", None, 1),
        ("ORG", tokens["pattern"], 1),
        ("CITY", None, 3),
    ]
    array = tmp_path / "p.json"
    array.write_text(json.dumps([phrase, tokens], indent=1), encoding="utf8")
    again = list(read_entries([DictionarySource(array)]))
    assert [(e.label, e.text) for e in again] == [(e.label, e.text) for e in entries[:2]]


@pytest.mark.parametrize("factory", ["entity_ruler", "span_ruler"])
def test_patterns_that_spacy_saved(tmp_path, factory):
    import spacy

    nlp = spacy.blank("en")
    ruler = nlp.add_pipe(factory)
    ruler.add_patterns(
        [{"label": "LOC", "pattern": "Oslo"}, {"label": "LOC", "pattern": [{"LOWER": "rome"}]}]
    )
    nlp.to_disk(tmp_path)
    entries = list(read_entries(parse_source(str(tmp_path / factory))))
    assert sorted((e.label, e.text) for e in entries) == [
        ("LOC", "Oslo"),
        ("LOC", '[{"LOWER": "rome"}]'),
    ]


def test_source_arguments(tmp_path):
    loc = write(tmp_path / "LOC.txt", "Oslo")
    org = write(tmp_path / "ORG.tsv", "Acme\tORG")
    write(tmp_path / "README.md", "no dictionary")
    write(tmp_path / "readme.txt", "no dictionary")
    odd = write(tmp_path / "a=b.txt", "Rome")
    assert parse_source(str(loc)) == [DictionarySource(loc)]
    assert parse_source(f"PLACE={loc}") == [DictionarySource(loc, "PLACE")]
    assert parse_source(str(odd)) == [DictionarySource(odd)]
    assert parse_source(str(tmp_path)) == [DictionarySource(p) for p in (loc, org, odd)]
    for missing in ("nothing.txt", f"X={tmp_path / 'nothing.txt'}", f"={loc}"):
        with pytest.raises(FileNotFoundError, match=r"^\[R080\]"):
            parse_source(missing)


def test_word_list(tmp_path):
    assert read_word_list(write(tmp_path / "w.txt", "May", "", "of  The")) == {"may", "of the"}
    with pytest.raises(FileNotFoundError, match=r"^\[R087\]"):
        read_word_list(tmp_path / "nothing.txt")
