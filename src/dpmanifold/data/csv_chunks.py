"""Rows of CSV by pyarrow, from chunks of whole lines that leave no doubt about what stands in them.

Python's reader decides what a CSV file says (:mod:`dpmanifold.data.csv_table`); pyarrow is many times faster and does
not agree with it everywhere. So a chunk is looked at first, and whatever the two might read differently raises
:class:`Doubt`: then the careful reader goes on, takes it or says what is wrong and in which line.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dpmanifold._ids import MISSING_WORDS
from dpmanifold.data.entries import text_entries
from dpmanifold.data.tables import TableRows
from dpmanifold.linalg.native.library import limited, thread_limit

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
    """Something stands in a chunk that pyarrow may read differently, or not at all."""


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
    if set(beside) & set(numbers):
        raise Doubt  # one column as both
    text, number = pa.dictionary(pa.int32(), pa.string()), pa.float64()
    kinds = {str(place): number for place in numbers} | {str(place): text for place in beside}
    kinds = kinds or {"0": text}
    read = pa.csv.ReadOptions(
        use_threads=False, block_size=_CHUNK + 2 * _LONGEST_LINE, column_names=[str(place) for place in range(width)]
    )
    convert = pa.csv.ConvertOptions(
        column_types=kinds, include_columns=list(kinds), null_values=_NULLS, strings_can_be_null=False, check_utf8=False
    )

    def parsed(chunk: Chunk) -> TableRows:
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=chunk.quoted, ignore_empty_lines=False)
        lines = pa.py_buffer(chunk.data).slice(chunk.start, chunk.end - chunk.start)
        try:
            table = pa.csv.read_csv(pa.BufferReader(lines), read, parse, convert).combine_chunks()
        except pa.ArrowException:
            raise Doubt from None
        if all(map(_has_gap, table.columns)) and _has_blank_lines(chunk):
            raise Doubt
        return _rows(table, numbers, beside)

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


def _rows(table: pa.Table, numbers: Sequence[int], beside: Sequence[int]) -> TableRows:
    values = np.empty((len(table), len(numbers)))
    nulls = 0
    for place, column in enumerate(numbers):
        found = table.column(str(column)).chunk(0)
        nulls += found.null_count
        values[:, place] = found.to_numpy(zero_copy_only=False)
    # A sum is NaN where one of them is; words that mean it are null, so more of them are spellings such as nan(1).
    with np.errstate(all="ignore"):
        doubtful = bool(np.isnan(values.sum())) and int(np.isnan(values).sum()) != nulls
    if doubtful:
        raise Doubt
    return TableRows(values, [text_entries(table.column(str(column)).chunk(0)) for column in beside])


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
        end = _end_of_text(data, start, stop)
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


def _end_of_text(data: bytes, start: int, stop: int) -> int:
    """Return where the line breaks at the end begin."""
    while stop > start and data[stop - 1] in (_NEWLINE, _RETURN):
        stop -= 1
    return stop


def _is_sound(data: bytes, start: int, stop: int) -> bool:
    """Return whether whole lines are read alike by everybody: UTF-8, short, with newlines at their ends."""
    if not data.isascii():
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
    if pa.types.is_dictionary(column.type):
        return bool(pc.any(pc.equal(column.chunk(0).dictionary, "")).as_py())
    return bool(column.null_count)


def _has_blank_lines(chunk: Chunk) -> bool:
    """Return whether a line holds nothing, which pyarrow takes for a row of gaps."""
    lines = chunk.data[chunk.start : chunk.end]
    return lines[0] in (_NEWLINE, _RETURN) or b"\n\n" in lines or b"\n\r\n" in lines
