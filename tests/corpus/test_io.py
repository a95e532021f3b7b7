import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_robust_ner.annotation import set_complete, stated_complete
from spacy_robust_ner.corpus.io import docbin_paths, read_docs, write_docs


def make_docs(count):
    vocab = Vocab()
    return [Doc(vocab, words=["number", f"n{i}"], ents=["O", "B-NUM"]) for i in range(count)]


def texts(path):
    return [doc[1].text for doc in read_docs(path, Vocab())]


@pytest.mark.parametrize("name", ["corpus.spacy", "corpus"])
@pytest.mark.parametrize("flag", [True, False, None])
def test_flags_and_user_data_round_trip(tmp_path, name, flag):
    plain, flagged, rich, cleared = make_docs(4)
    set_complete(flagged, flag)
    set_complete(rich, flag)
    rich.user_data["source"] = {"page": (1, 2)}
    set_complete(cleared, True)
    set_complete(cleared, None)
    assert write_docs([plain, flagged, rich, cleared], tmp_path / name, shard_size=3) == 4
    again = list(read_docs(tmp_path / name, Vocab()))
    assert [stated_complete(doc) for doc in again] == [None, flag, flag, None]
    assert again[0].user_data == {}
    assert again[2].user_data["source"] == {"page": (1, 2)}
    assert [ent.label_ for doc in again for ent in doc.ents] == ["NUM"] * 4


def test_files_are_what_spacy_itself_writes_and_reads(tmp_path):
    docs = make_docs(3)
    set_complete(docs[0], True)
    docs[1].user_data["other"] = 1
    write_docs(docs, tmp_path / "ours.spacy")
    stock = DocBin(store_user_data=True, docs=docs)
    ours = DocBin().from_disk(tmp_path / "ours.spacy")
    assert ours.user_data == stock.user_data
    read = list(ours.get_docs(Vocab()))
    assert [doc.user_data for doc in read] == [doc.user_data for doc in docs]
    stock.to_disk(tmp_path / "stock.spacy")
    read = list(read_docs(tmp_path / "stock.spacy", Vocab()))
    assert [doc.user_data for doc in read] == [doc.user_data for doc in docs]


def test_flags_are_not_confused_with_equal_numbers(tmp_path):
    (doc,) = make_docs(1)
    doc._.annotation_complete = 1
    write_docs([doc], tmp_path / "a.spacy")
    value = stated_complete(next(read_docs(tmp_path / "a.spacy", Vocab())))
    assert value == 1
    assert value is not True


def test_documents_read_do_not_share_user_data(tmp_path):
    docs = make_docs(2)
    for doc in docs:
        set_complete(doc, True)
    write_docs(docs, tmp_path / "a.spacy")
    for _ in range(2):
        first, second = read_docs(tmp_path / "a.spacy", Vocab())
        set_complete(first, False)
        first.user_data["x"] = 1
        assert stated_complete(second) is True
        assert "x" not in second.user_data


def test_files_without_user_data(tmp_path):
    DocBin(docs=make_docs(2)).to_disk(tmp_path / "a.spacy")
    assert [stated_complete(doc) for doc in read_docs(tmp_path / "a.spacy", Vocab())] == [None] * 2


def test_shards_in_order(tmp_path):
    write_docs(make_docs(25), tmp_path / "c", shard_size=2)
    assert len(docbin_paths(tmp_path / "c")) == 13
    assert texts(tmp_path / "c") == [f"n{i}" for i in range(25)]


@pytest.mark.parametrize(("count", "shards"), [(0, [0]), (1, [1]), (4, [2, 2]), (5, [2, 2, 1])])
def test_shard_sizes(tmp_path, count, shards):
    write_docs(make_docs(count), tmp_path / "c", shard_size=2)
    sizes = [len(DocBin().from_disk(p)) for p in docbin_paths(tmp_path / "c")]
    assert sizes == shards


@pytest.mark.parametrize("name", ["corpus.spacy", "corpus"])
def test_interrupted_writing_leaves_what_was_there(tmp_path, name):
    write_docs(make_docs(3), tmp_path / name, shard_size=2)

    def interrupted():
        yield from make_docs(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_docs(interrupted(), tmp_path / name, shard_size=1)
    assert texts(tmp_path / name) == ["n0", "n1", "n2"]
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_smaller_corpus_leaves_no_old_shards(tmp_path):
    write_docs(make_docs(9), tmp_path / "c", shard_size=2)
    write_docs(make_docs(3), tmp_path / "c", shard_size=2)
    assert texts(tmp_path / "c") == ["n0", "n1", "n2"]


def test_refused_targets(tmp_path):
    (tmp_path / "dir.spacy").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "notes.txt").write_text("x")
    for name in ("dir.spacy", "file", "mixed"):
        with pytest.raises(OSError, match=rf"R003.*{name}"):
            write_docs(make_docs(1), tmp_path / name)
    assert (tmp_path / "mixed" / "notes.txt").read_text() == "x"
    assert (tmp_path / "file").read_text() == "x"


def test_unreadable_sources(tmp_path):
    (tmp_path / "bad.spacy").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"R002.*bad\.spacy"):
        list(read_docs(tmp_path / "bad.spacy", Vocab()))
    (tmp_path / "empty").mkdir()
    for name in ("empty", "absent", "absent.spacy"):
        with pytest.raises(FileNotFoundError, match=rf"R001.*{name}"):
            docbin_paths(tmp_path / name)


def test_spaces_stay_known_or_unknown(tmp_path):
    nlp = spacy.blank("en")
    docs = [nlp("Ada ran."), Doc(nlp.vocab, words=["Ada", "ran", "."])]
    write_docs(docs, tmp_path / "a.spacy")
    again = list(read_docs(tmp_path / "a.spacy", nlp.vocab))
    assert [doc.has_unknown_spaces for doc in again] == [False, True]
    assert again[0].text == "Ada ran."
