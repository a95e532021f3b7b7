"""The only place of the corpus tools that reads and writes .spacy files."""

import functools
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..annotation import COMPLETE_EXTENSION
from ..errors import Errors

SUFFIX = ".spacy"
DEFAULT_SHARD_SIZE = 5000

# Where a Doc keeps the flag in its user data.
_FLAG = ("._.", COMPLETE_EXTENSION, None, None)


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
        packed = list(shard.user_data)
        shard.user_data = [None] * len(packed)
        for i, doc in enumerate(shard.get_docs(vocab)):
            if i < len(packed):
                doc.user_data.update(_unpack(packed[i]))
            yield doc


@functools.cache
def _packed_flags() -> dict[bytes, dict[Any, Any]]:
    """msgpack looks through all installed packages each time that it packs or unpacks, which takes
    longer than everything else about a document. Most documents have no user data but the flag."""
    common: list[dict[Any, Any]] = [{}, *({_FLAG: flag} for flag in (True, False, None))]
    return {srsly.msgpack_dumps(data): data for data in common}


def _pack(user_data: dict[Any, Any]) -> bytes:
    if len(user_data) <= 1:
        for packed, data in _packed_flags().items():
            # Equality isn't enough: 1 equals True.
            if data == user_data and all(user_data[key] is data[key] for key in data):
                return packed
    return bytes(srsly.msgpack_dumps(user_data))


def _unpack(packed: bytes | None) -> dict[Any, Any]:
    if packed is None:
        return {}
    common = _packed_flags().get(packed)
    return srsly.msgpack_loads(packed, use_list=False) if common is None else common


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
        self._shard.user_data.append(_pack(doc.user_data))
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
