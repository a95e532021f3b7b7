import spacy
from spacy.tokens import Doc

from spacy_robust_ner.annotation import set_complete, stated_complete
from spacy_robust_ner.corpus.doc_stream import stream_docs
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.experiments.corpora import locate_corpus, prepare_corpus
from spacy_robust_ner.experiments.matrix import Dataset, Masking, Part


def write(path, surfaces, complete=None):
    vocab = spacy.blank("en").vocab

    def docs():
        for surface in surfaces:
            doc = Doc(vocab, words=["in", surface], ents=["O", "B-LOC"])
            set_complete(doc, complete)
            yield doc

    write_docs(docs(), path)
    return path


def entities(path):
    return [[ent.text for ent in doc.ents] for doc in stream_docs(path)]


def dataset(*parts, **fields):
    return Dataset("x", tuple(parts), dev=parts[0].path, test=parts[0].path, **fields)


def test_unchanged_corpora_are_used_where_they_are(tmp_path):
    path = write(tmp_path / "train.spacy", ["Rome"])
    corpus = prepare_corpus(dataset(Part(path)), None, tmp_path / "out")
    assert (corpus.path, corpus.gold) == (path, None)
    assert not (tmp_path / "out").exists()


def test_masking_happens_once_and_again_for_other_data(tmp_path):
    path = write(tmp_path / "train.spacy", [f"city{i}" for i in range(200)])
    data, masking = dataset(Part(path)), Masking(0.5, exact=True)
    corpus = prepare_corpus(data, masking, tmp_path / "out")
    assert corpus == locate_corpus(data, masking, tmp_path / "out")
    assert sum(map(bool, entities(corpus.path))) == 100
    assert entities(corpus.gold) == entities(path)
    made = corpus.path.stat().st_mtime_ns
    assert prepare_corpus(data, masking, tmp_path / "out") == corpus
    assert corpus.path.stat().st_mtime_ns == made

    write(path, ["Rome"] * 10)
    other = prepare_corpus(data, masking, tmp_path / "out")
    assert other.path != corpus.path
    assert sum(map(bool, entities(other.path))) == 5


def test_surface_masking_decides_for_all_mentions(tmp_path):
    path = write(tmp_path / "train.spacy", [f"city{i % 20}" for i in range(200)])
    corpus = prepare_corpus(dataset(Part(path)), Masking(0.5, "surface"), tmp_path / "out")
    seen = {}
    for i, found in enumerate(entities(corpus.path)):
        seen.setdefault(i % 20, set()).add(bool(found))
    assert all(len(states) == 1 for states in seen.values())
    assert len(set.union(*seen.values())) == 2


def test_parts_are_joined_with_their_flags(tmp_path):
    a = write(tmp_path / "a.spacy", ["Rome"])
    b = write(tmp_path / "b.spacy", ["Oslo", "Bern"], complete=True)
    out = tmp_path / "out"
    plain = prepare_corpus(dataset(Part(a), Part(b)), None, out)
    flagged = prepare_corpus(dataset(Part(a, True), Part(b, False)), None, out)
    assert entities(plain.path) == entities(flagged.path) == [["Rome"], ["Oslo"], ["Bern"]]
    assert [stated_complete(doc) for doc in stream_docs(plain.path)] == [None, True, True]
    assert [stated_complete(doc) for doc in stream_docs(flagged.path)] == [True, False, False]


def test_parts_can_be_bounded(tmp_path):
    a = write(tmp_path / "a.spacy", ["Rome", "Oslo", "Bern"])
    two = prepare_corpus(dataset(Part(a, limit=2)), None, tmp_path / "out")
    one = prepare_corpus(dataset(Part(a, limit=1)), Masking(1.0), tmp_path / "out")
    assert entities(two.path) == [["Rome"], ["Oslo"]]
    assert entities(one.gold) == [["Rome"]]
    assert entities(one.path) == [[]]


def test_directories_stay_directories(tmp_path):
    write(tmp_path / "shards" / "1.spacy", ["Rome"])
    write(tmp_path / "shards" / "2.spacy", ["Oslo"])
    corpus = prepare_corpus(dataset(Part(tmp_path / "shards")), Masking(1.0), tmp_path / "out")
    assert corpus.path.is_dir()
    assert entities(corpus.path) == [[], []]
    assert entities(corpus.gold) == [["Rome"], ["Oslo"]]


def test_given_gold_comes_first(tmp_path):
    path = write(tmp_path / "train.spacy", ["Rome"])
    gold = write(tmp_path / "gold.spacy", ["Rome"])
    data = dataset(Part(path), gold=gold)
    assert prepare_corpus(data, None, tmp_path / "out").gold == gold
    assert prepare_corpus(data, Masking(0.5), tmp_path / "out").gold == gold
