import pytest

from spacy_robust_ner.annotation import REJECTED_SPANS_KEY

TEXT = "Ada met Bob"
ADA = {"start": 0, "end": 3, "label": "PER"}
BOB = {"start": 8, "end": 11, "label": "PER"}
BOB_ORG = {**BOB, "label": "ORG"}


def answer(kind, *spans, text=TEXT, **fields):
    return {"text": text, "spans": list(spans), "answer": kind, **fields}


def rejected(doc):
    group = doc.spans.get(REJECTED_SPANS_KEY, [])
    return [(span.start, span.end, span.label_) for span in group]


@pytest.mark.parametrize(("no_missing", "states"), [(False, "E--"), (True, "EOO")])
def test_accepted_spans(read_json_lines, states_of, no_missing, states):
    docs, report = read_json_lines([answer("accept", ADA)], no_missing=no_missing)
    assert states_of(docs[0]) == states
    assert rejected(docs[0]) == []
    assert report.missing_tokens == states.count("-")


@pytest.mark.parametrize("no_missing", [False, True])
def test_rejected_spans_say_nothing_about_other_tokens(read_json_lines, states_of, no_missing):
    docs, report = read_json_lines([answer("reject", BOB_ORG)], no_missing=no_missing)
    assert states_of(docs[0]) == "---"
    assert rejected(docs[0]) == [(2, 3, "ORG")]
    assert report.rejected_spans == 1


def test_ignored_answers_are_counted(read_json_lines):
    docs, report = read_json_lines([answer("ignore", ADA), answer("accept", ADA, text="Ada ran")])
    assert [doc.text for doc in docs] == ["Ada ran"]
    assert report.ignored == {"answer 'ignore'": 1}


def test_answers_on_a_text_are_merged(read_json_lines, ents_of, states_of):
    records = [
        answer("accept", ADA, _input_hash=7),
        answer("accept", {"start": 0, "end": 3, "label": "PER"}, text="Eve sat", _input_hash=8),
        answer("reject", BOB_ORG, _input_hash=7),
        answer("ignore", BOB, _input_hash=7),
        answer("accept", BOB, _input_hash=7),
    ]
    docs, report = read_json_lines(records)
    assert [doc.text for doc in docs] == ["Eve sat", TEXT]
    assert ents_of(docs[1]) == [(0, 1, "PER"), (2, 3, "PER")]
    assert states_of(docs[1]) == "E-E"
    assert rejected(docs[1]) == [(2, 3, "ORG")]
    assert report.ignored["merged with another answer on its text"] == 2
    docs, _ = read_json_lines(records, no_missing=True)
    assert states_of(docs[1]) == "EOE"


def test_contradicting_answers_are_missing_and_reported(read_json_lines, states_of):
    records = [answer("accept", ADA, BOB), answer("reject", BOB)]
    docs, report = read_json_lines(records, no_missing=True)
    assert states_of(docs[0]) == "EO-"
    assert rejected(docs[0]) == []
    assert [(n.text, n.label) for n in report.conflicts.listed] == [("Bob", "PER")]


def test_a_malformed_answer_does_not_hold_back_the_others(read_json_lines, ents_of):
    records = [answer("accept", ADA), answer("accept", {"start": 0}), answer("accept", BOB)]
    docs, report = read_json_lines(records, skip_bad=True)
    assert [ents_of(doc) for doc in docs] == [[(0, 1, "PER"), (2, 3, "PER")]]
    assert report.skipped.count == 1
    with pytest.raises(ValueError, match=r"R008.*line 2"):
        read_json_lines(records)


TOKENS = [
    {"text": "Ada", "start": 0, "end": 3, "id": 0, "ws": True},
    {"text": "m", "start": 4, "end": 5, "id": 1, "ws": False},
    {"text": "et", "start": 5, "end": 7, "id": 2, "ws": True},
    {"text": "Bob", "start": 8, "end": 11, "id": 3, "ws": False},
]


def test_own_tokens_and_inclusive_token_ends(read_json_lines, ents_of):
    span = {"token_start": 2, "token_end": 3, "label": "X"}
    docs, _ = read_json_lines([answer("accept", span, tokens=TOKENS)])
    assert [t.text for t in docs[0]] == ["Ada", "m", "et", "Bob"]
    assert docs[0].text == TEXT
    assert ents_of(docs[0]) == [(2, 4, "X")]
    with pytest.raises(ValueError, match=r"covers the tokens 2 to 4, but there are 4"):
        read_json_lines([answer("accept", {**span, "token_end": 4}, tokens=TOKENS)])


def test_tokens_that_do_not_make_up_the_text(read_json_lines, ents_of):
    span = {"token_start": 2, "token_end": 2, "label": "PER"}
    tokens = [TOKENS[0], {"text": "met", "start": 4, "end": 7}, {**TOKENS[3], "text": "bob"}]
    docs, _ = read_json_lines([answer("accept", span, tokens=tokens)])
    assert [t.text for t in docs[0]] == ["Ada", "met", "Bob"]
    assert ents_of(docs[0]) == [(2, 3, "PER")]


def test_a_misaligned_rejected_span_is_reported_and_harms_nothing(read_json_lines, states_of):
    spans = answer("reject", {"start": 0, "end": 2, "label": "PER"})
    docs, report = read_json_lines([answer("accept", ADA), spans], no_missing=True)
    assert states_of(docs[0]) == "EOO"
    assert rejected(docs[0]) == []
    assert report.misaligned.count == 1


def test_unknown_answer(read_json_lines):
    with pytest.raises(ValueError, match=r"line 1: 'answer' must be one of accept.*'maybe'"):
        read_json_lines([answer("maybe")])
