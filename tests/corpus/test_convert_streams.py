import json
import tracemalloc

import pytest

from spacy_robust_ner.corpus import streams
from spacy_robust_ner.corpus.streams import json_layout, read_json, read_lines

RECORDS = [
    {"id": 1, "text": 'Zoë saw 科技 and \U0001f600 "quoted" \\ [] {} ,', "n": -1.5e3, "b": True},
    {"id": 2, "nested": [{"a": [None, "x"]}, []]},
    {"id": 3, "long": "y" * 300},
]


@pytest.fixture(params=[1, 2, 3, 7, 64, 1 << 16])
def chunk_size(request, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_SIZE", request.param)


@pytest.mark.usefixtures("chunk_size")
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_array_in_any_chunks(tmp_path, indent, ascii_only):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(RECORDS, indent=indent, ensure_ascii=ascii_only), encoding="utf8")
    items = list(streams._read_json_values(path, is_array=True))
    assert [item.value for item in items] == RECORDS
    lines = path.read_text(encoding="utf8").split("\n")
    starts = [i for i, line in enumerate(lines, start=1) if line == "  {"]
    assert [item.line for item in items] == ([1, 1, 1] if indent is None else starts)


@pytest.mark.parametrize(
    ("content", "layout", "values"),
    [
        ("[]", "array", []),
        (" [ ] \n", "array", []),
        ('[{"a": 1}]', "array", [{"a": 1}]),
        ('{"a": 1}', "lines", [{"a": 1}]),
        ('{"a": 1}\n\n{"a": 2}\n', "lines", [{"a": 1}, {"a": 2}]),
        ('{\n "a": 1\n}\n', "object", [{"a": 1}]),
        ('["t", {"e": []}]\n["u", {}]\n', "lines", [["t", {"e": []}], ["u", {}]]),
        ('[["t", {}], ["u", {}]]', "array", [["t", {}], ["u", {}]]),
        ("\ufeff[1]", "array", [1]),
    ],
)
def test_layouts(tmp_path, content, layout, values):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf8")
    assert json_layout(path) == layout
    assert [item.value for item in read_json(path)] == values


def test_no_json(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ada B-PER\n")
    assert json_layout(path) == ""


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ('[{"a": 1},\n{"a": }]', 2, "Expecting value"),
        ('[{"a": 1}\n{"a": 2}]', 2, "a comma or ] is missing"),
        ('[{"a": 1},\n\n]', 3, "a comma before the end"),
        ('[{"a": 1},\n{"a": 2}', 2, "the list has no end"),
        ('[{"a": 1},\n', 2, "Expecting value"),
        ('[{"a": 1}]\n{"a": 2}', 2, "something follows"),
        ('[{"a": "x\n', 1, "Invalid control character"),
        ('[{"a": "x', 1, "Unterminated string"),
        ('{\n"a": 1\n}\n{\n}', 4, "something follows"),
    ],
)
def test_malformed_json_names_the_line(tmp_path, content, line, reason):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=rf"R009.*a\.json, line {line}: .*{reason}"):
        list(read_json(path))


def test_a_malformed_element_is_found_before_the_rest_is_read(tmp_path):
    path = tmp_path / "a.json"
    rest = json.dumps([{"text": "word " * 20}] * 40_000)[1:]
    path.write_text('[{"a": nope}, ' + rest)
    tracemalloc.start()
    with pytest.raises(ValueError, match="line 1"):
        list(read_json(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 4_000_000
    assert peak < 1_000_000


def test_memory_does_not_grow_with_the_array(tmp_path):
    path = tmp_path / "a.json"
    peaks = []
    for count in (5_000, 40_000):
        path.write_text(json.dumps([{"text": "word " * 20}] * count))
        tracemalloc.start()
        assert sum(1 for _ in read_json(path)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < path.stat().st_size / 4


def test_array_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a": 1},\n{"a": "\xff"}]')
    with pytest.raises(ValueError, match=r"R009.*not UTF-8"):
        list(read_json(path))


def test_bad_json_line_is_an_item_with_a_problem(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n\xff\n{"a": 2}\n')
    items = list(read_json(path))
    assert [(item.line, item.value, bool(item.problem)) for item in items] == [
        (1, {"a": 1}, False),
        (2, None, True),
        (3, None, True),
        (4, {"a": 2}, False),
    ]


def test_only_line_feeds_end_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("a\u2028b\x0bc\x85d\re\r\nf".encode())
    assert [item.value for item in read_lines(path)] == ["a\u2028b\x0bc\x85d\re", "f"]
