import json

import pytest

TUPLES = {
    "sentence": "['牧', '王', ' ', \"it's\"]",
    "labeled entities": "[(0, 1, 'pp'), (3, 3, 'cp')]",
}
TOKENS = {"tokens": ["Ada", "Lovelace", "in", "Paris"], "entities": [[0, 1, "PER"], [3, 3, "LOC"]]}


def test_tuples_have_inclusive_ends(read_content, ents_of):
    docs, report = read_content(json.dumps([TUPLES, TUPLES], indent=1), name="a.json")
    assert report.format == "tuples"
    assert [t.text for t in docs[1]] == ["牧", "王", " ", "it's"]
    assert ents_of(docs[1]) == [(0, 2, "pp"), (3, 4, "cp")]
    assert report.blank_tokens == 2


@pytest.mark.parametrize(
    "sentence", ["__import__('os').getcwd()", "[c for c in 'ab']", "['a'", "{'a'}", "[1, 2]"]
)
def test_tuples_are_never_evaluated(read_content, sentence):
    record = {"sentence": sentence, "labeled entities": "[]"}
    with pytest.raises(ValueError, match=r"R008.*line 2: .*'sentence'"):
        read_content(json.dumps([TUPLES, record]).replace("}, {", "},\n{"), name="a.json")


def test_tokens_as_list_and_as_lines(read_content, read_json_lines, ents_of):
    for docs, report in (
        read_content(json.dumps([TOKENS] * 3), name="a.json"),
        read_json_lines([TOKENS] * 3),
    ):
        assert report.format == "tokens"
        assert [ents_of(doc) for doc in docs] == [[(0, 2, "PER"), (3, 4, "LOC")]] * 3
        assert all(doc.has_unknown_spaces for doc in docs)


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ([3, 4, "LOC"], "covers the tokens 3 to 4, but there are 4"),
        ([2, 1, "LOC"], "covers the tokens 2 to 1"),
        ([-1, 1, "LOC"], "covers the tokens -1 to 1"),
        ([1, "LOC"], "must be .first, last, label."),
        ([0, 1, ""], "has no label"),
        ([0.0, 1, "LOC"], "must be a whole number, not 0.0"),
        ([True, 1, "LOC"], "must be a whole number, not True"),
    ],
)
def test_bad_entities(read_json_lines, entity, reason):
    bad = {**TOKENS, "entities": [entity]}
    with pytest.raises(ValueError, match=rf"R008.*corpus\.jsonl, line 2: .*{reason}"):
        read_json_lines([TOKENS, bad])
    docs, report = read_json_lines([TOKENS, bad, TOKENS], skip_bad=True)
    assert len(docs) == 2
    assert [note.line for note in report.skipped.listed] == [2]


def test_overlapping_entities(read_json_lines, ents_of, states_of):
    record = {
        "tokens": ["University", "of", "New", "York", "City", "Hall", "."],
        "entities": [[2, 3, "LOC"], [0, 3, "ORG"], [3, 5, "FAC"]],
    }
    docs, report = read_json_lines([record])
    assert ents_of(docs[0]) == [(0, 4, "ORG")]
    # The end of the crossing entity is neither the kept one's nor O.
    assert states_of(docs[0]) == "EEEE--O"
    spans = docs[0].spans["all_entities"]
    assert [(s.start, s.end, s.label_) for s in spans] == [
        (2, 4, "LOC"),
        (0, 4, "ORG"),
        (3, 6, "FAC"),
    ]
    assert [(n.line, n.text, n.label) for n in report.overlapping.listed] == [
        (1, "New York", "LOC"),
        (1, "York City Hall", "FAC"),
    ]


def test_flat_entities_make_no_group(read_json_lines):
    docs, _ = read_json_lines([TOKENS])
    assert "all_entities" not in docs[0].spans


def test_same_span_twice_counts_as_overlap(read_json_lines, ents_of):
    docs, report = read_json_lines(
        [{"tokens": ["Ada"], "entities": [[0, 0, "PER"], [0, 0, "ORG"]]}]
    )
    assert ents_of(docs[0]) == [(0, 1, "PER")]
    assert [note.label for note in report.overlapping.listed] == ["ORG"]


def test_no_tokens_are_left_out_and_counted(read_json_lines):
    docs, report = read_json_lines([TOKENS, {"tokens": [], "entities": []}])
    assert len(docs) == 1
    assert report.ignored == {"no tokens": 1}


TAG_IDS = {"str_words": ["Ada", "Lovelace", "in"], "tags": [1, 2, 0]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tag_to_id.json", '{"O": 0, "B-PER": 1, "I-PER": 2}'),
        ("labels.txt", "O\nB-PER\nI-PER\n"),
        ("given.json", '{"0": "O", "1": "B-PER", "2": "I-PER"}'),
        ("given.json", '["O", "B-PER", "I-PER"]'),
    ],
)
def test_tag_ids(read_content, tmp_path, ents_of, name, content):
    (tmp_path / name).write_text(content)
    given = tmp_path / name if name.startswith("given") else None
    docs, report = read_content(json.dumps([TAG_IDS]), name="train.json", tag_map=given)
    assert (report.format, report.scheme) == ("tag-ids", "iob2")
    assert ents_of(docs[0]) == [(0, 2, "PER")]


def test_tag_ids_without_a_map(read_content):
    with pytest.raises(ValueError, match=r"R012.*train\.json.*--tag-map"):
        read_content(json.dumps([TAG_IDS]), name="train.json", skip_bad=True)


@pytest.mark.parametrize("content", ['{"O": 0, "B-PER": 0}', '{"a": "b"}', "3", "{", "[1]"])
def test_bad_tag_map(read_content, tmp_path, content):
    (tmp_path / "tag_to_id.json").write_text(content)
    with pytest.raises(ValueError, match=r"R013.*tag_to_id\.json"):
        read_content(json.dumps([TAG_IDS]), name="train.json")


def test_tag_id_out_of_the_map(read_content, tmp_path):
    (tmp_path / "tag_to_id.json").write_text('{"O": 0, "B-PER": 1}')
    with pytest.raises(ValueError, match=r"R008.*line 1: The tag number 2"):
        read_content(json.dumps([TAG_IDS]), name="train.json")


def test_token_tags_as_strings_and_numbers(read_json_lines, tmp_path, ents_of, states_of):
    words = ["Ada", "Lovelace", "in", "Paris"]
    docs, report = read_json_lines(
        [{"id": "0", "tokens": words, "ner_tags": ["B-PER", "E-PER", "O", "S-LOC"]}]
    )
    assert (report.format, report.scheme) == ("token-tags", "bioes")
    assert ents_of(docs[0]) == [(0, 2, "PER"), (3, 4, "LOC")]
    labels = tmp_path / "names.txt"
    labels.write_text("O\nB-PER\nI-PER\nB-LOC\n")
    docs, _ = read_json_lines([{"tokens": words, "ner_tags": [1, 2, -100, 3]}], tag_map=labels)
    assert states_of(docs[0]) == "EE-E"


def test_token_tags_of_another_length(read_json_lines):
    with pytest.raises(ValueError, match=r"line 1: There are 2 tokens, but 1 tags"):
        read_json_lines([{"tokens": ["a", "b"], "ner_tags": ["O"]}])
