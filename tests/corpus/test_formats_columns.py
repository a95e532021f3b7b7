import pytest

SENTENCES = "Ada B-PER\nLovelace I-PER\nwrote O\n\nin O\nLondon B-LOC\n"


def test_two_columns(read_content, ents_of, states_of):
    docs, report = read_content(SENTENCES)
    assert [[t.text for t in doc] for doc in docs] == [
        ["Ada", "Lovelace", "wrote"],
        ["in", "London"],
    ]
    assert [ents_of(doc) for doc in docs] == [[(0, 2, "PER")], [(1, 2, "LOC")]]
    assert [states_of(doc) for doc in docs] == ["EEO", "OE"]
    # Training must keep the data's tokens, so the spaces stay unknown.
    assert all(doc.has_unknown_spaces for doc in docs)
    assert (report.format, report.scheme, report.found) == ("conll", "iob2", ["format", "scheme"])
    assert (report.documents, report.tokens) == (2, 5)
    assert report.entities == {"PER": 1, "LOC": 1}


@pytest.mark.parametrize("end", ["\n", "\n\n", "\n\n\n", "", "\n \t \n", "\r\n\r\n"])
def test_any_end_of_file(read_content, end):
    docs, _ = read_content((SENTENCES.rstrip("\n") + end).encode())
    assert [len(doc) for doc in docs] == [3, 2]


def test_byte_order_mark_and_windows_line_ends(read_content, ents_of):
    docs, _ = read_content(b"\xef\xbb\xbf" + SENTENCES.replace("\n", "\r\n").encode())
    assert docs[0][0].text == "Ada"
    assert ents_of(docs[0]) == [(0, 2, "PER")]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("iob1", "I-PER I-PER B-PER O"),
        ("iob2", "B-PER I-PER B-PER O"),
        ("bioes", "B-PER E-PER S-PER O"),
        ("bilou", "B-PER L-PER U-PER O"),
        ("bmes", "B-PER E-PER S-PER O\n\nB-PER M-PER E-PER O"),
    ],
)
def test_schemes_are_found_or_taken_as_given(read_content, ents_of, scheme, tags):
    lines = "\n".join(f"w{i}\t{tag}" if tag else "" for i, tag in enumerate(_spread(tags)))
    for given in ("auto", scheme):
        docs, report = read_content(lines, scheme=given)
        assert report.scheme == scheme
        assert ("scheme" in report.found) == (given == "auto")
        assert ents_of(docs[0]) == [(0, 2, "PER"), (2, 3, "PER")]
        assert report.irregular_tags.count == 0


def _spread(tags):
    return [tag for line in tags.split("\n") for tag in (line.split() or [""])]


def test_missing_tags(read_content, states_of):
    docs, report = read_content("a UNK\nb B-X\nc -\nd O\n")
    assert states_of(docs[0]) == "-E-O"
    assert report.missing_tokens == 2
    docs, report = read_content("a ?\nb B-X\nc O\n", format="conll", missing_tags=("?",))
    assert states_of(docs[0]) == "-EO"


def test_chosen_columns(read_content, ents_of):
    docs, _ = read_content(
        "1 Ada NNP B-PER x\n2 ran VBD O y\n", format="conll", token_column=2, tag_column=4
    )
    assert docs[0].text.split() == ["Ada", "ran"]
    assert ents_of(docs[0]) == [(0, 1, "PER")]
    docs, _ = read_content("B-PER Ada\nO ran\n", format="conll", token_column=-1, tag_column=1)
    assert docs[0].text.split() == ["Ada", "ran"]


DOCSTART = "-DOCSTART- -X- O O\n\nAda NN I-NP B-PER\n\nran VB O O\nfar RB O UNK\n\n"


def test_docstart_lines_are_no_tokens(read_content):
    docs, _ = read_content(DOCSTART * 2)
    assert [[t.text for t in doc] for doc in docs] == [["Ada"], ["ran", "far"]] * 2


def test_documents_from_docstart_to_docstart(read_content, ents_of, states_of):
    docs, report = read_content(DOCSTART + DOCSTART.replace("Ada", "Eve"), docs="docstart")
    assert report.documents == 2
    assert [t.text for t in docs[1]] == ["Eve", "ran", "far"]
    assert ents_of(docs[1]) == [(0, 1, "PER")]
    assert states_of(docs[1]) == "EO-"
    assert [sent.start for sent in docs[1].sents] == [0, 1]


def test_docstart_wanted_but_absent(read_content):
    with pytest.raises(ValueError, match=r"R014.*corpus\.txt.*--docs sentence"):
        read_content(SENTENCES, docs="docstart")


def test_blank_tokens_shift_nothing(read_content, ents_of, states_of):
    docs, report = read_content("买\tB-X\n \tI-X\n酒\tI-X\n\tO\n了\tUNK\n\u3000\tO\n")
    assert [t.text for t in docs[0]] == ["买", " ", "酒", " ", "了", "\u3000"]
    assert ents_of(docs[0]) == [(0, 3, "X")]
    assert states_of(docs[0]) == "EEEO-O"
    assert report.blank_tokens == 3
    docs, report = read_content("a B-X\n O\n\u3000 O\nb B-X\n")
    assert [t.text for t in docs[0]] == ["a", " ", "\u3000", "b"]
    assert ents_of(docs[0]) == [(0, 1, "X"), (3, 4, "X")]


DIGITS = "科0\tO\n技1\tO\n全0\tO\n\n李0\tB-PER\n四1\tI-PER\n"


def test_segmentation_digits(read_content):
    docs, report = read_content(DIGITS)
    assert ["".join(t.text for t in doc) for doc in docs] == ["科技全", "李四"]
    assert "segmentation digits, stripped" in report.found
    docs, report = read_content(DIGITS, segmentation_digits="keep")
    assert docs[0][0].text == "科0"
    assert report.found == ["format", "scheme"]
    docs, _ = read_content(DIGITS + "\nabcd\tO\n", segmentation_digits="strip")
    assert [t.text for t in docs[2]] == ["abcd"]
    assert docs[0][0].text == "科"


@pytest.mark.parametrize("odd", ["技\tO", "A9\tO", "abc1\tO"])
def test_other_digits_stay(read_content, odd):
    docs, report = read_content(f"科0\tO\n{odd}\n\n李0\tB-PER\n")
    assert docs[0][0].text == "科0"
    assert report.found == ["format", "scheme"]


def test_irregular_tags_are_reported_with_their_line(read_content, ents_of):
    docs, report = read_content("Ada B-PER\nran O\n\nin O\nParis I-LOC\n\nEve B-PER\n")
    assert ents_of(docs[1]) == [(1, 2, "LOC")]
    assert [(note.line, note.reason) for note in report.irregular_tags.listed] == [
        (5, "I-LOC is out of order")
    ]


BROKEN = "Ada B-PER\n\nran O\nfar\nnow O\n\nEve B-PER\n"


def test_malformed_line_stops_with_file_and_line(read_content):
    with pytest.raises(
        ValueError, match=r"R008.*corpus\.txt, line 4: .*2 columns.*'far'.*--skip-bad"
    ):
        read_content(BROKEN, format="conll")


def test_malformed_sentence_can_be_left_out(read_content):
    docs, report = read_content(BROKEN, format="conll", skip_bad=True)
    assert [doc.text.strip() for doc in docs] == ["Ada", "Eve"]
    assert report.skipped.count == 1
    assert report.skipped.listed[0].line == 4


def test_undecodable_line_is_malformed(read_content):
    content = b"Ada B-PER\n\nr\xffn O\n\nEve B-PER\n"
    with pytest.raises(ValueError, match=r"line 3: .*not UTF-8"):
        read_content(content, format="conll")
    docs, report = read_content(content, format="conll", skip_bad=True)
    assert (len(docs), report.skipped.count) == (2, 1)


def test_tag_of_another_scheme_and_empty_tag(read_content):
    with pytest.raises(ValueError, match=r"line 1: .*'S-PER'"):
        read_content("Ada S-PER\n", scheme="iob2")
    with pytest.raises(ValueError, match=r"line 1: .*'ran' \(line 2\) is empty"):
        read_content("Ada\tB-PER\nran\t\n", format="conll")
    with pytest.raises(ValueError, match=r"R006.*'NN'.*corpus\.txt"):
        read_content("Ada B-PER NN\n", format="conll")
