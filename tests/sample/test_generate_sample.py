import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.sample import generate_sample

ASSETS = Path(__file__).parents[2] / "assets"
SPLITS = ("train", "dev", "test")
LABELS = ("PER", "ORG", "LOC", "MISC", "PRODUCT")

Rows = list[tuple[str, str]]


def read_columns(path: Path) -> list[list[Rows]]:
    """Documents of sentences of rows; a file without -DOCSTART- is one document."""
    documents: list[list[Rows]] = [[]]
    for block in path.read_text(encoding="utf8").rstrip("\n").split("\n\n"):
        rows = [tuple(line.split("\t")) for line in block.split("\n")]
        assert all(len(row) == 2 and all(row) for row in rows), (path, block)
        if rows[0][0] == "-DOCSTART-":
            assert rows == [("-DOCSTART-", "O")]
            documents.append([])
        else:
            documents[-1].append(rows)
    return [document for document in documents if document]


def iob2_entities(rows: Rows) -> list[tuple[int, int, str]]:
    entities: list[tuple[int, int, str]] = []
    previous = "O"
    for i, (_, tag) in enumerate(rows):
        if tag.startswith("B-"):
            entities.append((i, i + 1, tag[2:]))
        elif tag.startswith("I-"):
            assert previous[2:] == tag[2:], (rows, i)
            start, _, label = entities[-1]
            entities[-1] = (start, i + 1, label)
        else:
            assert tag == "O"
        previous = tag
    return entities


def surface_forms(sentences: list[Rows]) -> Counter[tuple[str, str]]:
    return Counter(
        (" ".join(token for token, _ in rows[start:end]), label)
        for rows in sentences
        for start, end, label in iob2_entities(rows)
    )


@pytest.fixture(scope="module")
def documents() -> dict[str, list[list[Rows]]]:
    return {split: read_columns(ASSETS / "sample" / f"{split}.conll") for split in SPLITS}


@pytest.fixture(scope="module")
def sentences(documents: dict[str, list[list[Rows]]]) -> dict[str, list[Rows]]:
    return {split: [rows for doc in docs for rows in doc] for split, docs in documents.items()}


@pytest.fixture(scope="module")
def dictionaries() -> dict[str, list[str]]:
    folder = ASSETS / "sample" / "dictionaries"
    assert sorted(path.stem for path in folder.iterdir()) == sorted(LABELS)
    return {
        label: (folder / f"{label}.txt").read_text(encoding="utf8").splitlines() for label in LABELS
    }


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_assets_are_what_the_generator_writes(tmp_path: Path) -> None:
    counts = generate_sample(tmp_path)
    written, shipped = files_below(tmp_path), files_below(ASSETS)
    corpora = ("sample/", "zh_sample/")
    shipped = {name: data for name, data in shipped.items() if name.startswith(corpora)}
    assert sorted(written) == sorted(shipped)
    assert len(written) == 3 + 5 + 1 + 3
    for name, data in written.items():
        assert data == shipped[name], f"assets/{name} differs: run generate-sample assets"
        assert b"\r" not in data
    readme = (ASSETS / "README.md").read_text(encoding="utf8")
    for name, count in counts.items():
        cells = " | ".join(f"{value:,}" for value in asdict(count).values())
        assert f"| `{name}` | {cells} |" in readme


def test_other_seed_other_text(tmp_path: Path) -> None:
    generate_sample(tmp_path, seed=1)
    for name, data in files_below(tmp_path).items():
        assert data != (ASSETS / name).read_bytes(), name


def test_sizes(documents: dict[str, list[list[Rows]]], sentences: dict[str, list[Rows]]) -> None:
    assert {split: len(docs) for split, docs in documents.items()} == {
        "train": 3000,
        "dev": 600,
        "test": 600,
    }
    for split in SPLITS:
        lengths = Counter(len(document) for document in documents[split])
        assert set(lengths) == {1, 2, 3, 4}
        assert 0.15 < 1 - lengths[1] / len(documents[split]) < 0.5
        tokens = [tag for rows in sentences[split] for _, tag in rows]
        assert 0.12 < sum(tag != "O" for tag in tokens) / len(tokens) < 0.18
        empty = sum(not iob2_entities(rows) for rows in sentences[split])
        assert 0.14 < empty / len(sentences[split]) < 0.22


def test_no_document_twice(documents: dict[str, list[list[Rows]]]) -> None:
    texts = Counter(
        tuple(token for rows in document for token, _ in rows)
        for docs in documents.values()
        for document in docs
    )
    assert max(texts.values()) == 1


def test_tokens_are_plain(sentences: dict[str, list[Rows]]) -> None:
    tokens = Counter(token for rows in sentences["train"] for token, _ in rows)
    assert tokens["'s"] > 50
    assert tokens["n't"] > 5
    for token in tokens:
        assert not any(character.isspace() or character in '{}[]|#@"' for character in token[1:])
        assert len(token) == 1 or token[-1] not in ",;:?!)", token
        assert not token.endswith("'s") or token == "'s"


def test_every_label_in_every_split(sentences: dict[str, list[Rows]]) -> None:
    for split in SPLITS:
        labels = Counter(label for _, label in surface_forms(sentences[split]).elements())
        assert set(labels) == set(LABELS)
        assert min(labels.values()) > 0.05 * sum(labels.values())


@pytest.mark.parametrize("split", ["dev", "test"])
def test_most_names_are_new_and_some_are_not(split: str, sentences: dict[str, list[Rows]]) -> None:
    train = surface_forms(sentences["train"])
    forms = surface_forms(sentences[split])
    for label in LABELS:
        of_label = [form for form in forms if form[1] == label]
        unseen = sum(form not in train for form in of_label) / len(of_label)
        assert 0.6 < unseen < 0.95, (label, unseen)


def test_context_decides(sentences: dict[str, list[Rows]]) -> None:
    labels: dict[str, set[str]] = {}
    forms = surface_forms(sentences["train"])
    for text, label in forms:
        labels.setdefault(text, set()).add(label)
    ambiguous = sum(count for (text, _), count in forms.items() if len(labels[text]) > 1)
    assert ambiguous / sum(forms.values()) > 0.15
    pairs = Counter(tuple(sorted(found)) for found in labels.values() if len(found) == 2)
    assert pairs["LOC", "ORG"] > 20
    assert pairs["ORG", "PER"] > 20
    assert pairs["ORG", "PRODUCT"] > 2


def test_dictionaries_are_partial(
    dictionaries: dict[str, list[str]], sentences: dict[str, list[Rows]]
) -> None:
    forms = surface_forms(sentences["train"])
    for label, entries in dictionaries.items():
        assert entries == sorted(set(entries))
        # Entries are plain text; the columns have spaces around marks such as the & in a name.
        known = {entry.replace(" ", "") for entry in entries}
        of_label = {text.replace(" ", ""): n for (text, name), n in forms.items() if name == label}
        covered = [text for text in of_label if text in known]
        assert 0.38 < len(covered) / len(of_label) < 0.52, label
        mentions = sum(of_label[text] for text in covered) / sum(of_label.values())
        assert mentions > len(covered) / len(of_label), label
        assert 0.1 < 1 - len(covered) / len(entries) < 0.4, label


def test_dictionaries_make_errors(
    dictionaries: dict[str, list[str]], sentences: dict[str, list[Rows]]
) -> None:
    entries = {
        tuple(entry.split()): label for label, names in dictionaries.items() for entry in names
    }
    longest = max(map(len, entries))
    found = right = gold = 0
    for rows in sentences["train"]:
        tokens = [token for token, _ in rows]
        entities = iob2_entities(rows)
        gold += len(entities)
        start = 0
        while start < len(tokens):
            for end in range(min(len(tokens), start + longest), start, -1):
                label = entries.get(tuple(tokens[start:end]))
                if label is not None:
                    found += 1
                    right += (start, end, label) in entities
                    start = end - 1
                    break
            start += 1
    assert 0.6 < right / found < 0.85
    assert 0.4 < right / gold < 0.6


def test_raw_text_is_new_and_untokenized(documents: dict[str, list[list[Rows]]]) -> None:
    lines = (ASSETS / "sample" / "raw.txt").read_text(encoding="utf8").splitlines()
    assert len(lines) == len(set(lines)) == 400
    assert not any(" ," in line or " 's" in line or "  " in line for line in lines)
    train = {
        "".join(token for rows in document for token, _ in rows) for document in documents["train"]
    }
    assert not any(line.replace(" ", "") in train for line in lines)


@pytest.mark.parametrize(("split", "size"), [("train", 300), ("dev", 60), ("test", 60)])
def test_chinese_columns(split: str, size: int) -> None:
    (sentences,) = read_columns(ASSETS / "zh_sample" / f"{split}.bmes")
    assert len(sentences) == size
    follows = {"B": "ME", "M": "ME", "E": "BSO", "S": "BSO", "O": "BSO"}
    labels = set()
    for rows in sentences:
        assert all(len(character) == 1 for character, _ in rows)
        tags = [tag for _, tag in rows]
        for tag, following in zip(["O", *tags], [*tags, "O"], strict=True):
            assert following[0] in follows[tag[0]]
            if following[0] in "ME":
                assert tag[1:] == following[1:]
        labels.update(tag[2:] for tag in tags if tag != "O")
    assert labels == {"PER", "ORG", "LOC", "PRODUCT"}


def test_cli(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["generate-sample", str(tmp_path / "new"), "--json"])
    assert result.exit_code == 0
    counts = json.loads(result.stdout)
    assert counts["sample/train.conll"]["documents"] == 3000
    assert (
        files_below(tmp_path / "new")["sample/dev.conll"]
        == (ASSETS / "sample" / "dev.conll").read_bytes()
    )


def test_cli_refuses_a_file(tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("mine", encoding="utf8")
    result = CliRunner().invoke(app, ["generate-sample", str(target)])
    assert result.exit_code == 1
    assert "R041" in result.output
    assert target.read_text(encoding="utf8") == "mine"
