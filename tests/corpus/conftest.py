import json

import pytest
import spacy

from spacy_robust_ner.corpus.convert import read_inputs
from spacy_robust_ner.corpus.convert_report import ConvertReport
from spacy_robust_ner.corpus.source import ReadOptions


@pytest.fixture(scope="session")
def blank_en():
    return spacy.blank("en")


@pytest.fixture
def read_content(tmp_path, blank_en):
    """Write a file and read it as a corpus: the documents and the input's report."""

    def read(content, *, name="corpus.txt", format="auto", **options):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf8")
        report = ConvertReport()
        stream = read_inputs(
            [path], nlp=blank_en, format=format, options=ReadOptions(**options), report=report
        )
        return list(stream), report.inputs[0]

    return read


@pytest.fixture
def read_json_lines(read_content):
    def read(records, **options):
        content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        return read_content(content, name="corpus.jsonl", **options)

    return read


@pytest.fixture
def ents_of():
    def ents(doc):
        return [(ent.start, ent.end, ent.label_) for ent in doc.ents]

    return ents


@pytest.fixture
def states_of():
    """A letter a token: E(ntity), O, or - for missing."""

    def states(doc):
        return "".join("-EOE"[token.ent_iob] for token in doc)

    return states
