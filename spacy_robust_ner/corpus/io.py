"""The only place of the corpus tools that reads and writes .spacy files."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..annotation import docs_in, pack_user_data
from ..errors import Errors

SUFFIX = ".spacy"
DEFAULT_SHARD_SIZE = 5000


def docbin_paths(path: Path) -> list[Path]:
    """List the .spacy files that make up a corpus, in reading order.

    path (Path): A .spacy file, or a directory that is searched at every depth.
    RETURNS (List[Path]): At least one file; anything else is an error.
    """
    if path.is_dir():
        found = sorted(p for p in path.rglob(f"*{SUFFIX}") if p.is_file())
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise FileNotFoundError(Errors.R001.format(path=path))
    return found


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read a corpus, one shard in memory at a time.

    path (Path): A .spacy file or a directory of them.
    vocab (Vocab): The vocabulary of the documents.
    YIELDS (Doc): The documents, with states, span groups and flags.
    """
    for file in docbin_paths(path):
        try:
            shard = DocBin().from_disk(file)
        except Exception as error:
            raise ValueError(Errors.R002.format(path=file, reason=error)) from error
        yield from docs_in(shard, vocab)


class DocWriter:
    """Write documents to one .spacy file, or to numbered shards in a directory.

    Nothing appears at the path before the writer is left without an error, so an interrupted
    run leaves no half corpus behind, and an earlier corpus at the path survives it.

    path (Path): A name that ends in .spacy for a single file, any other for a directory.
    shard_size (int): Documents a shard; a single file has no shards and is held in memory.
    """

    def __init__(self, path: Path, *, shard_size: int = DEFAULT_SHARD_SIZE) -> None:
        self.path = path
        self.shard_size = shard_size
        self.count = 0
        self._single = path.suffix == SUFFIX
        self._shards = 0

    def __enter__(self) -> "DocWriter":
        self._check_target()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._staging = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-", dir=self.path.parent))
        self._shard = self._new_shard()
        return self

    def write(self, doc: Doc) -> None:
        """doc (Doc): The next document of the corpus."""
        self._shard.add(doc)
        self._shard.user_data.append(pack_user_data(doc))
        self.count += 1
        if not self._single and len(self._shard) >= self.shard_size:
            self._flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                if len(self._shard) or not self._shards:
                    self._flush()
                self._publish()
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _new_shard(self) -> DocBin:
        return DocBin(store_user_data=False)

    def _flush(self) -> None:
        # Only now, so that the shard takes our packed user data and packs none itself.
        self._shard.store_user_data = True
        self._shard.to_disk(self._staging / f"{self._shards:05d}{SUFFIX}")
        self._shards += 1
        self._shard = self._new_shard()

    def _publish(self) -> None:
        if self._single:
            (self._staging / f"00000{SUFFIX}").replace(self.path)
            return
        if self.path.is_dir():
            shutil.rmtree(self.path)
        self._staging.chmod(0o755)
        self._staging.replace(self.path)

    def _check_target(self) -> None:
        if self._single and self.path.is_dir():
            raise IsADirectoryError(
                Errors.R003.format(path=self.path, reason="it is an existing directory")
            )
        if not self._single and self.path.exists():
            if not self.path.is_dir():
                raise NotADirectoryError(
                    Errors.R003.format(path=self.path, reason="it is an existing file")
                )
            foreign = [p.name for p in self.path.iterdir() if p.suffix != SUFFIX]
            if foreign:
                raise FileExistsError(
                    Errors.R003.format(
                        path=self.path, reason=f"the directory holds other files ({foreign[0]})"
                    )
                )


def write_docs(docs: Iterable[Doc], path: Path, *, shard_size: int = DEFAULT_SHARD_SIZE) -> int:
    """Write a stream of documents; see DocWriter.

    RETURNS (int): How many documents were written.
    """
    with DocWriter(path, shard_size=shard_size) as writer:
        for doc in docs:
            writer.write(doc)
    return writer.count
