"""A training corpus reader that loses nothing that annotation means.

spaCy's own reader keeps the flag and the rejected spans of documents that it passes on whole, but
it drops both when it splits a document into sentences (``Span.as_doc``), and it leaves out long
documents without a word. It also spends most of its time on unpacking the flags. Use this one in
its place: the settings are the same.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus, Example
from spacy.training.augment import dont_augment
from spacy.util import registry
from spacy.vocab import Vocab

from .annotation import docs_in, set_complete, stated_complete
from .errors import Warnings


def sentence_as_doc(sentence: Span) -> Doc:
    """Copy a sentence into a Doc with its span groups and the document's flag.

    sentence (Span): A sentence of an annotated document.
    RETURNS (Doc): The sentence on its own. Spans that cross its borders are left behind.
    """
    doc = sentence.as_doc()
    set_complete(doc, stated_complete(sentence.doc))
    for key, group in sentence.doc.spans.items():
        doc.spans[key] = [
            Span(doc, span.start - sentence.start, span.end - sentence.start, span.label_)
            for span in group
            if sentence.start <= span.start and span.end <= sentence.end
        ]
    return doc


class AnnotationCorpus(Corpus):
    """Read Examples from .spacy files, as spaCy's Corpus does, and keep the completeness flag and
    the span groups when documents are split into sentences.

    spans_key (Optional[str]): Also offer the entities as a span group under this key, for
        components that learn from ``doc.spans``.
    """

    def __init__(self, path: str | Path, *, spans_key: str | None = None, **settings: Any) -> None:
        super().__init__(path, **settings)
        self.spans_key = spans_key

    def _make_example(self, nlp: Language, reference: Doc, gold_preproc: bool) -> Example:
        if self.spans_key is not None:
            reference.spans[self.spans_key] = list(reference.ents)
        return super()._make_example(nlp, reference, gold_preproc)

    def read_docbin(self, vocab: Vocab, locs: Iterable[str | Path]) -> Iterator[Doc]:
        count = 0
        for loc in locs:
            for doc in docs_in(DocBin().from_disk(loc), vocab):
                if len(doc):
                    yield doc
                    count += 1
                    # spaCy's reader would go on to one more document of each further file.
                    if count == self.limit:
                        return

    def make_examples(self, nlp: Language, reference_docs: Iterable[Doc]) -> Iterator[Example]:
        left_out = 0
        for reference in reference_docs:
            if len(reference) == 0:
                continue
            if self.max_length == 0 or len(reference) < self.max_length:
                yield self._make_example(nlp, reference, False)
                continue
            if not reference.has_annotation("SENT_START"):
                left_out += 1
                continue
            for sentence in reference.sents:
                if len(sentence) < self.max_length:
                    yield self._make_example(nlp, sentence_as_doc(sentence), False)
                else:
                    left_out += 1
        if left_out:
            warnings.warn(
                Warnings.W001.format(count=left_out, path=self.path, max_length=self.max_length),
                stacklevel=2,
            )

    def make_examples_gold_preproc(
        self, nlp: Language, reference_docs: Iterable[Doc]
    ) -> Iterator[Example]:
        for reference in reference_docs:
            sentences = (
                map(sentence_as_doc, reference.sents)
                if reference.has_annotation("SENT_START")
                else [reference]
            )
            for sentence in sentences:
                eg = self._make_example(nlp, sentence, True)
                if len(eg.x):
                    yield eg


def make_corpus_reader_v1(
    path: Path | None,
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Callable[[Language, Example], Iterator[Example]] | None = None,
    spans_key: str | None = None,
) -> Callable[[Language], Iterable[Example]]:
    """Build the reader for a config's [corpora] blocks.

    path (Path): A .spacy file or a directory of them.
    gold_preproc (bool): Train on gold sentences and tokens.
    max_length (int): Split longer documents into sentences; 0 for no limit.
    limit (int): Read that many examples only; 0 for no limit.
    augmenter (Optional[Callable]): Data augmentation, as in spaCy.
    spans_key (Optional[str]): Also offer the entities as ``doc.spans[spans_key]``.
    RETURNS (Callable[[Language], Iterable[Example]]): The reader.
    """
    if path is None:
        raise ValueError(SpacyErrors.E913)
    return AnnotationCorpus(
        path,
        gold_preproc=gold_preproc,
        max_length=max_length,
        limit=limit,
        augmenter=augmenter or dont_augment,
        spans_key=spans_key,
    )


def training_reader(nlp: Language, path: Path) -> Callable[[Language], Iterable[Example]]:
    """nlp (Language): A pipeline with its training config.
    path (Path): A .spacy file or a directory of them.
    RETURNS (Callable[[Language], Iterable[Example]]): The reader of the pipeline's training
        corpus, for another path.
    """
    config = nlp.config.interpolate()
    block = config["corpora"][config["training"]["train_corpus"].split(".", 1)[1]]
    reader: Callable[[Language], Iterable[Example]] = registry.resolve(
        {"reader": {**block, "path": str(path)}}
    )["reader"]
    return reader
