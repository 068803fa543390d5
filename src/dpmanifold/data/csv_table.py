"""CSV and TSV: by pyarrow where it leaves no doubt, and line by line where it does."""

from __future__ import annotations

import array
import contextlib
import csv
import gzip
import io
import itertools
import math
import pathlib
import weakref
import zlib
from collections.abc import Generator, Iterator, Sequence
from typing import IO, cast

import numpy as np
import pyarrow as pa

from dpmanifold._cells import real_cell
from dpmanifold.data._files import bad_file
from dpmanifold.data.csv_chunks import Doubt, fast_rows
from dpmanifold.data.entries import text_entries
from dpmanifold.data.tables import StreamedTable, TableRows
from dpmanifold.errors import Public

_DELIMITERS = (",", ";", "\t")
# Lines that the careful reader puts into a block.
_BLOCK = 8192
# Bytes of a file from which its length is guessed.
_SAMPLE = 65_536


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
            self._last_line_of_names, self.names = next(lines, (0, []))
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

    def about(self) -> int:
        """Return roughly how many rows there are: as many as there would be if all lines were as long as the first."""
        size = self.path.stat().st_size
        with self.path.open("rb") as packed, self._bytes() as stream:
            start = stream.read(_SAMPLE)
            if self._open is gzip.open:
                packed.seek(-4, 2)
                unpacked = int.from_bytes(packed.read(4), "little")  # counted up to 2^32, and then from 0 again
                size = unpacked + 2**32 * max(0, math.ceil((size - unpacked) / 2**32))
        return int(max(0, start.count(b"\n") - 1) * max(1.0, size / max(1, len(start))))

    def place(self, row: int) -> str:
        """Say in which line a row ends."""
        return f"line {next(itertools.islice(self._records(), row, None), (0, []))[0]}"

    def _careful_rows(self, numbers: Sequence[int], beside: Sequence[int], skip: int) -> Iterator[TableRows]:
        """Yield rows line by line, some of the first left out."""
        lines = itertools.islice(self._records(), skip, None)
        while block := list(itertools.islice(lines, _BLOCK)):
            values = array.array("d")
            for _, cells in block:
                try:
                    row = [float(cells[place]) for place in numbers]
                except ValueError:
                    row = [real_cell(cells[place]) for place in numbers]
                values.extend(row)
            entries = [text_entries(pa.array([cells[place].strip() for _, cells in block])) for place in beside]
            yield TableRows(np.frombuffer(values, dtype=np.float64).reshape(len(block), len(numbers)), entries)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines below the names; only at the end may lines be blank, or records would change places."""
        width, blank = len(self.names), 0
        for line, cells in itertools.islice(self._lines(), 1, None):
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
            yield line, cells

    def _lines(self, hold: bool = False) -> Generator[tuple[int, list[str]], None, None]:
        """Yield line numbers and entries, the names first; hold the file for the next one who reads it."""
        line = 0
        try:
            with self._bytes(hold) as stream:
                text = io.TextIOWrapper(cast(io.BufferedReader, stream), encoding="utf-8-sig", newline="")
                try:
                    self._delimiter = max(self._delimiters, key=text.readline().count)
                    text.seek(0)
                    reader = csv.reader(text, delimiter=self._delimiter, strict=True)
                    for cells in reader:
                        line = reader.line_num
                        yield line, [cell.strip() for cell in cells] if line == 1 else cells
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
