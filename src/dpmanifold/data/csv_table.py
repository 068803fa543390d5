"""CSV and TSV: cut into entries by pyarrow where that leaves no doubt, and line by line where it does.

Python's reader decides what the entries of a CSV file are; pyarrow is many times faster and does not agree with it
everywhere. So a chunk of whole lines is looked at first, and whatever the two might cut differently raises
:class:`Doubt`: then the careful reader goes on, takes it or says what is wrong and in which line. What entries mean is
decided in one place: columns are text, and their numbers are read cell by cell; a chunk whose cells are plain numbers
has them from pyarrow, which gives the same bits.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import math
import pathlib
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dpmanifold._ids import MISSING_WORDS
from dpmanifold.data._files import bad_file
from dpmanifold.data.table_files import StreamedTable, TableRows, arrow_numbers, text_entries
from dpmanifold.errors import Public
from dpmanifold.linalg.native.library import limited, thread_limit

_DELIMITERS = (",", ";", "\t")
# Characters of a record, over all its lines: what is packed may unpack to any number of them.
_LONGEST_RECORD = 2**24
# Characters that the careful reader puts into a block, and then to the end of the record.
_BLOCK = 2**20
# Bytes of a file from which its length is guessed.
_SAMPLE = 65_536


# The number of a record's last line, its entries, and how many characters it has.
Record = tuple[int, list[str], int]


class CsvTable(StreamedTable):
    """A CSV file with a line of names; commas, semicolons or tabs between entries (tabs in TSV), UTF-8."""

    suffixes = (".csv", ".tsv", ".csv.gz", ".tsv.gz")

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        name = path.name.lower()
        self._open = gzip.open if name.endswith(".gz") else open
        self._delimiters = ("\t",) if name.removesuffix(".gz").endswith(".tsv") else _DELIMITERS
        self._delimiter = ""
        # The file stays open behind its names: what is asked for first is read without opening it again.
        self._held: IO[bytes] | None = None
        with contextlib.closing(self._lines(hold=True)) as lines:
            self._last_line_of_names, self.names, _ = next(lines, (0, [], 0))
        if not self.names:
            raise bad_file(path, "it is empty. Give a line with the names of the columns, and the records below.")
        if _looks_like_data(self.names):
            # Names are shown in messages and data must not be; and the first record would be lost.
            raise bad_file(path, "line 1 holds numbers, not the names of the columns. Add a first line with names.")
        self.refuse_width()

    def rows(self, names: Sequence[str] | None, beside: Sequence[str] = ()) -> Iterator[TableRows]:
        """Yield rows by pyarrow, and from where that is in doubt by the careful reader."""
        numbers, text = self._positions(names), self._positions(beside)
        done = 0
        if self._last_line_of_names == 1:
            try:
                with self._bytes() as stream:
                    for rows in fast_rows(stream, self._delimiter, len(self.names), numbers, text):
                        yield rows
                        done += len(rows.numbers)
                return
            except (Doubt, OSError):
                pass
        yield from self._careful_rows(numbers, text, done)

    def about(self) -> int | None:
        """Return roughly how many rows there are: as many as there would be if all lines were as long as the first.

        None where its beginning cannot be read: what reads it all says why.
        """
        size = self.path.stat().st_size
        try:
            with self.path.open("rb") as packed, self._bytes() as stream:
                start = stream.read(_SAMPLE)
                if self._open is gzip.open:
                    packed.seek(-4, 2)
                    unpacked = int.from_bytes(packed.read(4), "little")  # counted up to 2^32, and then from 0 again
                    size = unpacked + 2**32 * max(0, math.ceil((size - unpacked) / 2**32))
        except (OSError, EOFError, zlib.error):
            return None
        return int(max(0, start.count(b"\n") - 1) * max(1.0, size / max(1, len(start))))

    def place(self, row: int) -> str:
        """Say in which line a row ends."""
        return f"line {next(itertools.islice(self._records(), row, None), (0, [], 0))[0]}"

    def _careful_rows(self, numbers: Sequence[int], beside: Sequence[int], skip: int) -> Iterator[TableRows]:
        """Yield rows line by line, some of the first left out."""
        lines = itertools.islice(self._records(), skip, None)
        while block := list(_some_of(lines, _BLOCK)):
            wanted = {place: pa.array([cells[place] for cells in block]) for place in (*numbers, *beside)}
            yield _rows(wanted, numbers, beside, len(block))

    def _records(self) -> Iterator[Record]:
        """Yield the lines below the names; only at the end may lines be blank, or records would change places."""
        width, blank = len(self.names), 0
        for line, cells, size in itertools.islice(self._lines(), 1, None):
            if not cells:
                blank = blank or line
                continue
            if blank:
                raise bad_file(
                    self.path,
                    "line {blank} is blank. Remove it, or write the record that belongs there.",
                    blank=Public(blank),
                )
            if len(cells) != width:
                raise bad_file(
                    self.path,
                    "line {line} has {n_cells} entries, the first line {width}. Repair it; entries with separators in "
                    "them belong in quotes.",
                    line=Public(line),
                    n_cells=Public(len(cells)),
                    width=Public(width),
                )
            yield line, cells, size

    def _lines(self, hold: bool = False) -> Generator[Record, None, None]:
        """Yield records, the names first; hold the file for the next one who reads it."""
        line = taken = 0

        def parts(text: io.TextIOWrapper) -> Iterator[str]:
            nonlocal taken
            while part := text.readline(_LONGEST_RECORD):
                taken += len(part)
                if taken >= _LONGEST_RECORD:
                    raise bad_file(
                        self.path,
                        "the record after line {line} has more than {most} characters. Look for quotes that do not "
                        "close; save numbers of large records as .npy.",
                        line=Public(line),
                        most=Public(_LONGEST_RECORD),
                    )
                yield part

        try:
            with self._bytes(hold) as stream:
                text = io.TextIOWrapper(cast(io.BufferedReader, stream), encoding="utf-8-sig", newline="")
                try:
                    self._delimiter = max(self._delimiters, key=text.readline(_LONGEST_RECORD).count)
                    text.seek(0)
                    reader = csv.reader(parts(text), delimiter=self._delimiter, strict=True)
                    for cells in reader:
                        line, size, taken = reader.line_num, taken, 0
                        yield line, [cell.strip() for cell in cells] if line == 1 else cells, size
                finally:
                    text.detach()  # or it would close the file
        except UnicodeDecodeError:
            raise bad_file(
                self.path, "after line {line} it is not UTF-8. Save it as CSV UTF-8.", line=Public(line)
            ) from None
        except csv.Error:
            raise bad_file(
                self.path, "after line {line} it is not CSV. Look for quotes that do not close.", line=Public(line)
            ) from None
        except (OSError, EOFError, zlib.error):
            raise bad_file(
                self.path, "after line {line} it cannot be read. Copy or compress it again.", line=Public(line)
            ) from None

    @contextlib.contextmanager
    def _bytes(self, hold: bool = False) -> Iterator[IO[bytes]]:
        """Open the file, unpacked, or take the one that is held."""
        held, self._held = self._held, None
        stream = held or cast(IO[bytes], self._open(self.path, "rb"))
        if hold:
            self._held = stream
            weakref.finalize(self, stream.close)  # if nobody reads on
            yield stream
        else:
            with stream:
                stream.seek(0)
                yield stream


def _some_of(lines: Iterator[Record], most: int) -> Iterator[list[str]]:
    """Yield the entries of the next records, of so many characters together."""
    for _, cells, size in lines:
        yield cells
        most -= size
        if most <= 0:
            return


def _looks_like_data(names: list[str]) -> bool:
    """Return whether a first line holds numbers that are not column numbers such as 0, 1, 2."""
    numbers = []
    for name in names:
        try:
            numbers.append(float(name))
        except ValueError:
            continue
    return any(number != numbers[0] + step for step, number in enumerate(numbers)) or (
        bool(numbers) and not (numbers[0] >= 0 and numbers[0].is_integer())
    )


_NUMBER = pa.float64()
_CHUNK = 2**22
# Chunks that are parsed, or wait for it, beyond those that threads work on: so that none of them waits.
_AHEAD = 1
# Python's reader takes no longer entries, so lines of this length leave no doubt.
_LONGEST_LINE = 131_072
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
# As people write them: in small letters, in capitals or mixed, perhaps behind a blank.
_NULLS = sorted(
    {
        blank + "".join(letters)
        for word in MISSING_WORDS
        for letters in itertools.product(*({letter.lower(), letter.upper()} for letter in word))
        for blank in ("", " ")
    }
)


class Doubt(Exception):  # noqa: N818  no error: the careful reader takes over
    """Something stands in a chunk that pyarrow may cut differently, or not at all."""


class Chunk(NamedTuple):
    """Whole lines of a file: some of the bytes that were read, without the end of the last line."""

    data: bytes
    start: int
    end: int
    quoted: bool


def fast_rows(
    stream: IO[bytes], delimiter: str, width: int, numbers: Sequence[int], beside: Sequence[int]
) -> Iterator[TableRows]:
    r"""Yield the rows below the first line: columns as numbers, and others as text; raise Doubt where there is any.

    Parameters
    ----------
    stream : the file, unpacked, from its beginning; the names stand in one line
    delimiter : between entries
    width : how many entries a line has
    numbers, beside : which columns are wanted, by their places

    Examples
    --------
    >>> import io
    >>> rows = next(fast_rows(io.BytesIO(b"id,x\nann,1.5\nbob,NA\n"), ",", 2, [1], [0]))
    >>> rows.numbers.tolist(), rows.entries[0].to_pylist()
    ([[1.5], [nan]], ['ann', 'bob'])
    """
    text = dict.fromkeys(beside, pa.dictionary(pa.int32(), pa.string()))
    read = pa.csv.ReadOptions(
        use_threads=False, block_size=_CHUNK + 2 * _LONGEST_LINE, column_names=[str(place) for place in range(width)]
    )

    def parsed(chunk: Chunk, kind: Any = _NUMBER) -> TableRows:
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=chunk.quoted, ignore_empty_lines=False)
        kinds = {
            str(place): found for place, found in (dict.fromkeys(numbers, kind) | text or {0: pa.string()}).items()
        }
        convert = pa.csv.ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds),
            null_values=_NULLS,
            strings_can_be_null=False,
            check_utf8=False,
        )
        lines = pa.py_buffer(chunk.data).slice(chunk.start, chunk.end - chunk.start)
        try:
            table = pa.csv.read_csv(pa.BufferReader(lines), read, parse, convert).combine_chunks()
        except pa.ArrowException:
            if kind == _NUMBER:  # perhaps a cell that is none: then all are read as text
                return parsed(chunk, pa.string())
            raise Doubt from None
        if all(map(_has_gap, table.columns)) and _has_blank_lines(chunk):
            raise Doubt
        return _rows({int(name): table.column(name).chunk(0) for name in kinds}, numbers, beside, len(table))

    return _side_by_side(parsed, _sound_chunks(stream, delimiter), limited(thread_limit()))


def _side_by_side(parsed: Callable[[Chunk], TableRows], chunks: Iterator[Chunk], workers: int) -> Iterator[TableRows]:
    """Yield what chunks hold, in their order, after parsing several at a time where threads are to be had."""
    if workers == 1:
        yield from map(parsed, chunks)
        return
    waiting: deque[Future[TableRows]] = deque()
    doubt = False
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                try:
                    chunk = next(chunks, None)
                except Doubt:
                    chunk, doubt = None, True
                if chunk is None:
                    break
                waiting.append(pool.submit(parsed, chunk))
                if len(waiting) > workers + _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
    if doubt:
        raise Doubt


def _rows(columns: Mapping[int, Any], numbers: Sequence[int], beside: Sequence[int], rows: int) -> TableRows:
    """Return rows of columns by their places, which are text or plain numbers."""
    values = np.empty((rows, len(numbers)))
    for i, place in enumerate(numbers):
        values[:, i] = arrow_numbers(columns[place])[:, 0]
    return TableRows(values, [text_entries(columns[place]) for place in beside])


def _sound_chunks(stream: IO[bytes], delimiter: str) -> Iterator[Chunk]:
    """Yield chunks of whole lines, the first line left out; lines may be blank at the end alone."""
    rest, ended, first = b"", False, True
    while True:
        try:
            more = stream.read(_CHUNK)
        except Exception:  # whatever unpacking raises: the careful reader finds it as well, and says it
            raise Doubt from None
        data = rest + more
        start, stop = 0, data.rfind(b"\n") + 1 if more else len(data)
        rest = data[stop:]
        if len(rest) > _LONGEST_LINE:
            raise Doubt
        if first and stop:
            start = data.find(b"\n") + 1
            if not start or _has_lone_returns(data, 0, start):
                raise Doubt
            first = False
        end = start + len(data[start:stop].rstrip(b"\r\n"))
        if end > start:
            quoted = data.find(b'"', start, stop) >= 0
            if (
                ended
                or not _is_sound(data, start, stop)
                or (quoted and not _quotes_match(data, start, stop, delimiter))
            ):
                raise Doubt
            yield Chunk(data, start, end, quoted)
        # A line that holds nothing is the end of the records, or a gap between them.
        blank = data[end:stop] not in (b"", b"\n", b"\r\n") or (end == start and stop > start)
        ended = ended or blank
        if not more:
            return


def _is_sound(data: bytes, start: int, stop: int) -> bool:
    """Return whether whole lines are read alike by everybody: UTF-8, short, with newlines at their ends."""
    if not data.isascii():
        if data.startswith(codecs.BOM_UTF8, start):  # pyarrow drops it wherever it begins to read
            return False
        try:
            data[start:stop].decode("utf-8")
        except UnicodeDecodeError:
            return False
    return not _has_lone_returns(data, start, stop) and _has_short_lines(data, start, stop)


def _has_lone_returns(data: bytes, start: int, stop: int) -> bool:
    """Return whether a carriage return stands without a newline: an end of a line to some, part of it to others."""
    if data.find(b"\r", start, stop) < 0:
        return False
    marks = np.frombuffer(data, dtype=np.uint8)[start:stop]
    returns = np.flatnonzero(marks == _RETURN)
    return bool(returns[-1] == len(marks) - 1 or (marks[returns + 1] != _NEWLINE).any())


def _has_short_lines(data: bytes, start: int, stop: int) -> bool:
    while stop - start > _LONGEST_LINE:
        start = data.rfind(b"\n", start, start + _LONGEST_LINE) + 1
        if start == 0:
            return False
    return True


def _quotes_match(data: bytes, start: int, stop: int, delimiter: str) -> bool:
    """Return whether quotes come in pairs, each around a whole entry; twice within one they are a quote."""
    around = np.full(stop - start + 2, _NEWLINE, dtype=np.uint8)
    around[1:-1] = np.frombuffer(data, dtype=np.uint8)[start:stop]
    quotes = np.flatnonzero(around == _QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    edge = np.zeros(256, dtype=bool)
    edge[[_NEWLINE, ord(delimiter)]] = True
    doubled = opening[1:] == closing[:-1] + 1
    begins = edge[around[opening - 1]]
    begins[1:] |= doubled
    edge[_RETURN] = True
    ends = edge[around[closing + 1]]
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def _has_gap(column: pa.ChunkedArray) -> bool:
    """Return whether an entry is missing, as all of a blank line are."""
    if column.type == _NUMBER:
        return bool(column.null_count)
    words = column.chunk(0).dictionary if pa.types.is_dictionary(column.type) else column
    return bool(pc.any(pc.equal(words, "")).as_py())


def _has_blank_lines(chunk: Chunk) -> bool:
    """Return whether a line holds nothing, which pyarrow takes for a row of gaps."""
    lines = chunk.data[chunk.start : chunk.end]
    return lines[0] in (_NEWLINE, _RETURN) or b"\n\n" in lines or b"\n\r\n" in lines
