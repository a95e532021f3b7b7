import json

import pytest
from spacy.tokens import Doc
from spacy.training import docs_to_json

TEXT = "Ada met Bob in New York."
ENTITIES = [[0, 3, "PER"], [8, 11, "PER"], [15, 23, "LOC"]]
SPANS = [{"start": start, "end": end, "label": label} for start, end, label in ENTITIES]
TOKEN_ENTS = [(0, 1, "PER"), (2, 3, "PER"), (4, 6, "LOC")]


@pytest.mark.parametrize(
    ("format", "record"),
    [
        ("offsets", {"text": TEXT, "entities": ENTITIES}),
        ("offsets", [TEXT, {"entities": ENTITIES}]),
        (
            "offsets",
            {"text": TEXT, "entities": SPANS},
        ),
        ("doccano", {"id": 1, "text": TEXT, "label": ENTITIES}),
        ("doccano", {"id": 1, "data": TEXT, "label": ENTITIES}),
        ("doccano", {"id": 1, "text": TEXT, "labels": ENTITIES}),
        (
            "doccano",
            {
                "id": 1,
                "text": TEXT,
                "entities": [
                    {"id": 1, "start_offset": s, "end_offset": e, "label": label}
                    for s, e, label in ENTITIES
                ],
                "relations": [],
            },
        ),
        (
            "prodigy",
            {
                "text": TEXT,
                "answer": "accept",
                "spans": SPANS,
            },
        ),
        (
            "label-studio",
            {
                "id": 3,
                "text": TEXT,
                "annotator": 1,
                "annotation_id": 5,
                "label": [
                    {"start": s, "end": e, "text": TEXT[s:e], "labels": [label]}
                    for s, e, label in ENTITIES
                ],
            },
        ),
        (
            "label-studio",
            {
                "id": 3,
                "data": {"text": TEXT},
                "annotations": [
                    {
                        "was_cancelled": False,
                        "result": [
                            {
                                "type": "labels",
                                "value": {
                                    "start": s,
                                    "end": e,
                                    "text": TEXT[s:e],
                                    "labels": [label],
                                },
                            }
                            for s, e, label in ENTITIES
                        ],
                    }
                ],
            },
        ),
    ],
)
def test_every_shape_gives_the_same_document(
    read_content, read_json_lines, ents_of, states_of, format, record
):
    results = [read_json_lines([record, record], no_missing=True)]
    results.append(
        read_content(json.dumps([record, record], indent=2), name="a.json", no_missing=True)
    )
    for docs, report in results:
        assert (report.format, report.found) == (format, ["format"])
        # Prodigy's answers on one text are merged.
        assert len(docs) == (1 if format == "prodigy" else 2)
        assert docs[0].text == TEXT
        assert ents_of(docs[0]) == TOKEN_ENTS
        assert states_of(docs[0]) == "EOEOEEO"
        assert not docs[0].has_unknown_spaces
        assert report.misaligned.count == 0


def test_text_without_entities_is_not_annotated(read_json_lines, states_of):
    docs, report = read_json_lines([{"text": "Ada ran"}, {"text": "Ada ran", "entities": []}])
    assert [states_of(doc) for doc in docs] == ["--", "OO"]
    assert report.format == "offsets"


def test_first_records_without_entities_do_not_mislead(read_json_lines):
    empty = {"text": "Nothing.", "entities": []}
    entity = {"id": 1, "start_offset": 0, "end_offset": 3, "label": "PER"}
    _, report = read_json_lines([empty, empty, {"text": TEXT, "entities": [entity]}])
    assert report.format == "doccano"
    assert report.entities == {"PER": 1}


MISALIGNED = {"text": "The Berliners sing", "entities": [[4, 10, "LOC"], [14, 18, "ACT"]]}


@pytest.mark.parametrize(
    ("mode", "states", "labels"),
    [("missing", "O-E", ["ACT"]), ("expand", "OEE", ["LOC", "ACT"]), ("contract", "O-E", ["ACT"])],
)
def test_misaligned_spans(read_json_lines, states_of, mode, states, labels):
    docs, report = read_json_lines([MISALIGNED], misaligned=mode)
    assert states_of(docs[0]) == states
    assert [ent.label_ for ent in docs[0].ents] == labels
    assert report.misaligned.count == 1
    note = report.misaligned.listed[0]
    assert (note.line, note.text, note.label) == (1, "Berlin", "LOC")


def test_misaligned_contract_keeps_whole_tokens(read_json_lines, ents_of):
    record = {"text": "The New Yorkers", "entities": [[4, 12, "LOC"]]}
    docs, report = read_json_lines([record], misaligned="contract")
    assert ents_of(docs[0]) == [(1, 2, "LOC")]
    assert report.misaligned.listed[0].reason == "taken as 'New'"


def test_misaligned_error(read_json_lines):
    with pytest.raises(ValueError, match=r"R015.*line 1: .*'Berlin' \(LOC\).*--misaligned"):
        read_json_lines([MISALIGNED], misaligned="error")


@pytest.mark.parametrize(
    "entity", [[0, 99, "X"], [3, 3, "X"], [-1, 3, "X"], [0, 3], [0, 3, 1], "X"]
)
def test_impossible_spans_are_malformed(read_json_lines, entity):
    good = {"text": TEXT, "entities": ENTITIES}
    bad = {"text": TEXT, "entities": [entity]}
    with pytest.raises(ValueError, match=r"R008.*line 2"):
        read_json_lines([good, bad])
    docs, report = read_json_lines([good, bad, good], skip_bad=True)
    assert (len(docs), report.skipped.count) == (2, 1)


def test_raw_text_only_by_request(read_content, states_of):
    docs, _ = read_content("Ada ran.\n\n  Bob sat.\n", format="text")
    assert [doc.text for doc in docs] == ["Ada ran.", "Bob sat."]
    assert [states_of(doc) for doc in docs] == ["---", "---"]
    with pytest.raises(ValueError, match=r"R010.*corpus\.txt.*--format.*conll"):
        read_content("Ada ran.\n\nBob sat.\n")


def test_legacy_json_goes_through_spacy(read_content, blank_en, ents_of):
    doc = Doc(
        blank_en.vocab,
        words=["Ada", "ran", "."],
        sent_starts=[True, False, False],
        ents=["B-PER", "O", "O"],
    )
    legacy = [docs_to_json([doc], doc_id=0), docs_to_json([doc, doc], doc_id=1)]
    docs, report = read_content(json.dumps(legacy), name="train.json")
    assert report.format == "spacy-json"
    assert [ents_of(each) for each in docs] == [[(0, 1, "PER")]] * 3
    assert all(each.vocab is blank_en.vocab for each in docs)
    with pytest.raises(ValueError, match=r"R008.*line 1: spaCy can't read"):
        read_content('[{"paragraphs": [{"sentences": 3}]}]', name="train.json")


def region(start, end, label, text=None, kind="labels"):
    value = {"start": start, "end": end, "text": text or TEXT[start:end], kind: [label]}
    return {"type": kind, "value": value}


def task(*annotations, **data):
    return {"id": 1, "data": data or {"text": TEXT}, "annotations": list(annotations)}


def test_label_studio_counts_what_it_leaves_out(read_content, ents_of):
    tasks = [
        task({"was_cancelled": True, "result": [region(0, 3, "PER")]}),
        task(),
        task({"result": [region(0, 3, "PER")]}, {"result": [], "ground_truth": True}),
        task({"result": [region(8, 11, "PER"), {"type": "choices", "value": {"choices": ["x"]}}]}),
    ]
    docs, report = read_content(json.dumps(tasks), name="export.json")
    assert [ents_of(doc) for doc in docs] == [[], [(2, 3, "PER")]]
    assert report.ignored == {
        "cancelled annotation": 1,
        "task without an annotation": 2,
        "another annotation of its task": 1,
    }


def test_label_studio_compares_the_marked_text(read_content, states_of):
    tasks = [task({"result": [region(0, 3, "PER", text="Bob"), region(8, 11, "PER")]})]
    docs, report = read_content(json.dumps(tasks), name="export.json")
    assert states_of(docs[0]) == "--E----"
    assert report.misaligned.count == 1
    assert "'Ada'" in report.misaligned.listed[0].reason
    with pytest.raises(ValueError, match=r"R015.*'Bob' \(PER\)"):
        read_content(json.dumps(tasks), name="export.json", misaligned="error")


def test_label_studio_hypertext(read_content, ents_of):
    value = {
        "start": "/p[1]/text()[1]",
        "end": "/p[1]/text()[1]",
        "globalOffsets": {"start": 0, "end": 3},
        "text": "Ada",
        "hypertextlabels": ["PER"],
    }
    annotation = {"result": [{"type": "hypertextlabels", "value": value}]}
    html = "<p>Ada &amp; <b>Bob</b></p>"
    docs, _ = read_content(json.dumps([task(annotation, text=html)]), name="export.json")
    assert docs[0].text == "Ada & Bob"
    assert ents_of(docs[0]) == [(0, 1, "PER")]


def test_label_studio_text_field(read_content):
    annotation = {"result": [region(0, 3, "PER")]}
    two = json.dumps([task(annotation, body=TEXT, source="x")])
    with pytest.raises(ValueError, match=r"R008.*--text-key.*body, source"):
        read_content(two, name="export.json")
    docs, _ = read_content(two, name="export.json", text_key="body")
    assert docs[0].text == TEXT
    docs, _ = read_content(json.dumps([task(annotation, body=TEXT)]), name="export.json")
    assert docs[0].text == TEXT


def test_label_studio_offsets_of_a_browser(read_content):
    text = "\U0001f600\U0001f600 Ada ran"
    in_python, in_browser = region(3, 6, "PER", text="Ada"), region(5, 8, "PER", text="Ada")
    for each in (in_python, in_browser):
        tasks = [task({"result": [each]}, text=text)]
        docs, report = read_content(json.dumps(tasks), name="export.json")
        assert [ent.text for ent in docs[0].ents] == ["Ada"]
        assert report.misaligned.count == 0
