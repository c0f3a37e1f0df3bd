"""Files, carefully: nothing is overwritten, nothing is left half written, and nothing read outgrows its file.

A motion file may be damaged, or made to do harm. What reading one may hold in memory is bounded by
:func:`memory_budget`; sizes that a file claims are checked before anything of that size is made; nothing is unpickled.
"""

from __future__ import annotations

import ast
import contextlib
import math
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from consmimic.errors import UserError, unknown

ALLOWANCE = 200_000_000
"""Bytes that reading and converting may hold beyond four times the file."""
_CHUNK = 1 << 18
_DIRECTORY = 1 << 20
"""Bytes of a zip's directory; a motion has a few dozen members of about a hundred."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError)
"""What zipfile raises on damaged or encrypted members."""


def memory_budget(path: Path) -> int:
    """Bytes that reading and converting the file may hold at once."""
    return 4 * path.stat().st_size + ALLOWANCE


@contextlib.contextmanager
def reading(path: Path, what: str = "motion") -> Iterator[IO[bytes]]:
    """The file, opened; what keeps it from being read is a UserError."""
    try:
        if not path.exists():
            raise UserError(f"no {what} at {path}")
        if not path.is_file():  # a pipe would be waited for
            raise UserError(f"{path} is not a file")
        file = path.open("rb")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        yield file


def check_is_new(path: Path) -> None:
    """Whether the path can be written, asked before long work."""
    try:
        if path.exists():
            raise UserError(f"{path} exists; choose another name or remove it first")
        if not path.parent.is_dir():
            raise UserError(f"{path} cannot be written: there is no folder {path.parent}")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def write_new(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a new file, whole or not at all."""
    check_is_new(path)
    making = making_of(path)
    try:
        try:
            with making.open("xb") as file:
                write(file)
            _named_finally(making, path)
        finally:
            making.unlink(missing_ok=True)
    except FileExistsError:
        raise UserError(f"{path} exists; choose another name or remove it first") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def making_of(path: Path) -> Path:
    """Where something is put together until it is whole."""
    return path.with_name(f".{path.name[:200]}.{os.getpid()}.part")


def _named_finally(making: Path, path: Path) -> None:
    """Unlike a rename, a link fails where somebody else was faster; not every file system has links."""
    try:
        os.link(making, path)
    except FileExistsError:
        raise
    except OSError:
        with path.open("xb"):
            pass
        os.replace(making, path)


class Npz:
    """The arrays of an npz, read one at a time, after their sizes were checked. Objects are refused, not unpickled."""

    def __init__(self, path: Path, what: str = "motion") -> None:
        self.path = path
        with reading(path, what) as file:
            if not _directory_is_small(file) or not zipfile.is_zipfile(file):
                raise UserError(f"{path} is not an npz file, or only the beginning of one")
            try:
                members = zipfile.ZipFile(file).infolist()
            except _DAMAGE as error:
                raise self._damaged(error) from None
        self._members = {info.filename.removesuffix(".npy"): info for info in members}
        self._left = memory_budget(path) // 2

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def require(self, *names: str) -> None:
        missing = [name for name in names if name not in self]
        if missing:
            raise UserError(f"{self.path}: it lacks {', '.join(missing)}; it has {shortened(self.names)}")

    def shape(self, name: str) -> tuple[int, ...]:
        """Without reading the array."""
        with self._opened(name) as file:
            return self._header(name, file)[0]

    def read(self, name: str) -> np.ndarray:
        with self._opened(name) as file:
            shape, fortran, dtype = self._header(name, file)
            self._take(name, shape, max(dtype.itemsize, 4))  # numpy makes texts of length 0 one longer
            array = np.empty(shape, dtype, order="F" if fortran else "C")
            flat = array.reshape(-1, order="A").view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
            self._fill(name, flat, file)
            if dtype.kind == "U" and array.nbytes:
                codes = flat.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
                if int(codes.max()) > sys.maxunicode:  # numpy would fail to make a str of it
                    raise self._damaged(f"'{name}' holds a text that is none")
        return array

    def _take(self, name: str, shape: tuple[int, ...], itemsize: int) -> None:
        """Of what reading the file may hold."""
        size = math.prod(shape) * itemsize
        self._left -= size
        if self._left < 0:
            raise UserError(
                f"{self.path}: '{name}' of shape {shape} would take {size / 1e6:.0f} MB of memory, "
                f"too much for a file of {self.path.stat().st_size / 1e6:.1f} MB: it is damaged"
            )

    def numbers(self, name: str) -> np.ndarray:
        """An array of numbers, as the file has them."""
        array = self.read(name)
        if array.dtype.kind not in "fiu":
            raise UserError(f"{self.path}: '{name}' holds {array.dtype}, not numbers")
        return array

    def floats(self, name: str) -> np.ndarray:
        """An array of numbers, as float64; what that takes counts too."""
        array = self.numbers(name)
        if array.dtype != np.float64:
            self._take(name, array.shape, 8)
        with np.errstate(all="ignore"):  # signalling NaN; whoever reads looks at what is no number
            return array.astype(np.float64, copy=False)

    def number(self, name: str) -> float:
        """A single number, in an array of one or none dimension."""
        shape = self.shape(name)
        if math.prod(shape) != 1:
            raise UserError(f"{self.path}: '{name}' has shape {shape}; a single number is needed")
        return float(self.numbers(name).reshape(()))

    def strings(self, name: str) -> tuple[str, ...]:
        shape = self.shape(name)
        if len(shape) != 1:
            raise UserError(f"{self.path}: '{name}' has shape {shape}; a list of names is needed")
        if shape[0] > 1000:
            raise UserError(f"{self.path}: '{name}' has {shape[0]} names: the file is damaged")
        return tuple(self._printable(name, value) for value in self.read(name))

    def text(self, name: str) -> str:
        """A single string."""
        shape = self.shape(name)
        if math.prod(shape) != 1:
            raise UserError(f"{self.path}: '{name}' has shape {shape}; a single text is needed")
        return self._printable(name, self.read(name).reshape(())[()])

    def _printable(self, name: str, value: object) -> str:
        try:
            text = value.decode() if isinstance(value, bytes) else str(value)
        except ValueError:
            text = "\0"
        if not text.isprintable():
            raise UserError(f"{self.path}: '{name}' holds a text that is damaged")
        return text

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        if name not in self:
            raise unknown(f"array in {self.path}", name, self.names)
        info = self._members[name]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others inflate without a bound
            raise UserError(f"{self.path}: '{name}' is compressed in a way that numpy does not write")
        try:
            with reading(self.path) as file, zipfile.ZipFile(file) as archive, archive.open(info) as member:
                yield member
        except _DAMAGE as error:
            raise self._damaged(error) from None

    def _header(self, name: str, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
        shape, fortran, dtype = npy_header(file, f"{self.path}: '{name}'")
        if dtype.hasobject:
            raise self._damaged(f"'{name}' holds pickled objects, and those could run code")
        if dtype.kind not in "fiubUS":
            raise UserError(f"{self.path}: '{name}' holds {dtype}; numbers or names are needed")
        return shape, fortran, dtype

    def _fill(self, name: str, flat: np.ndarray, file: IO[bytes]) -> None:
        done = 0
        while done < len(flat):
            chunk = file.read(min(_CHUNK, len(flat) - done))
            if not chunk:
                raise UserError(f"{self.path}: '{name}' ends after {done} of {len(flat)} bytes: the file is damaged")
            flat[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
            done += len(chunk)
        file.read(1)  # at the end of the member its checksum is looked at

    def _damaged(self, error: object) -> UserError:
        return UserError(f"{self.path} cannot be read as npz: {error}")


def npy_header(file: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran's order, and dtype, from the start of an npy."""
    start = file.read(10)
    if len(start) < 10 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise UserError(f"{what} is not an npy array")
    length = int.from_bytes(start[8:10], "little")
    if start[6] > 1:
        length += int.from_bytes(file.read(2), "little") << 16
    if length > 10_000:  # numpy's own bound, for the parser's sake
        raise UserError(f"{what} has a header of {length} bytes: it is damaged")
    try:
        header = ast.literal_eval(file.read(length).decode("latin1").strip())
        shape, fortran, dtype = header["shape"], header["fortran_order"], np.dtype(header["descr"])
        if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 2**40 for size in shape):
            raise ValueError("shape")
        if len(shape) > 8:
            raise ValueError("shape")
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError, AttributeError):
        raise UserError(f"{what} has a damaged header") from None
    return shape, bool(fortran), dtype


def shortened(names: Any, most: int = 12) -> str:
    """A list of names, of which only the first ones are shown."""
    names = [str(name)[:60] for name in names]
    more = f" … ({len(names)} in all)" if len(names) > most else ""
    return (", ".join(names[:most]) or "nothing") + more


def _directory_is_small(file: IO[bytes]) -> bool:
    """A zip's directory becomes objects far larger than itself, so its size is looked at before zipfile reads it."""
    end, most = file.seek(0, os.SEEK_END), 22 + (1 << 16)
    file.seek(max(0, end - most))
    tail = file.read()
    at = tail.find(b"PK\x05\x06")
    found = at >= 0
    while at >= 0:
        if int.from_bytes(tail[at + 12 : at + 16], "little") > _DIRECTORY:
            return False
        if tail[max(0, at - 20) : at].startswith(b"PK\x06\x07"):  # a record of larger sizes, which would count instead
            return False
        at = tail.find(b"PK\x05\x06", at + 1)
    file.seek(0)
    return found
