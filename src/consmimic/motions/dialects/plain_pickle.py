"""Pickles of plain data, read without running anything in them.

A pickle is a program. This reads those of dicts, lists, texts, numbers and numpy arrays: whatever else it names is
refused, and numpy's own functions are replaced by records of what they would have been given. What the program would
make in memory is estimated from its instructions before it runs.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError

_NUMBERS = {
    f"{kind}{size}" for kind, sizes in (("f", (2, 4, 8)), ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8))) for size in sizes
}
_CONTAINER, _NUMBER, _POINTER = 300, 50, 20
"""Bytes that an instruction makes at most: a container, a number, another mention of something there is already."""


def load(data: bytes, what: str, most_bytes: int) -> Any:
    """What the pickle holds, with numpy arrays as float64."""
    _check_size(data, what, most_bytes)
    try:
        return _plain(_Unpickler(io.BytesIO(data)).load(), depth=0)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None
    except Exception as error:  # a damaged pickle can raise anything
        raise UserError(f"{what} is no pickle of plain data, or damaged: {type(error).__name__}") from None


class _Dtype:
    """A dtype's name and byte order, as its pickle gives them."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any = "", *_: Any) -> None:
        self.code, self.order = code, "<"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    @property
    def dtype(self) -> np.dtype:
        if self.code not in _NUMBERS or self.order not in ("<", ">", "|", "="):
            raise UserError(f"it holds an array of {str(self.code)[:20]!r}; numbers are needed")
        return np.dtype(f"{self.order}{self.code}")


class _Array:
    """What numpy would have been told about an array."""

    __slots__ = ("content", "dtype", "fortran", "shape")

    def __init__(self, *_: Any) -> None:
        self.shape, self.dtype, self.fortran, self.content = (), None, False, b""

    def __setstate__(self, state: Any) -> None:
        self.shape, self.dtype, self.fortran, self.content = state[-4:]

    def value(self, depth: int) -> Any:
        if isinstance(self.content, list):  # of objects: np.save wraps a dict so
            if self.shape == () and len(self.content) == 1:
                return _plain(self.content[0], depth + 1)
            return _plain(self.content, depth + 1)
        if not isinstance(self.dtype, _Dtype) or not isinstance(self.content, bytes):
            raise UserError("it holds an array that is damaged")
        array = np.frombuffer(self.content, self.dtype.dtype)
        return array.reshape(self.shape, order="F" if self.fortran is True else "C").astype(np.float64)


def _array_of(content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    """numpy's ``_frombuffer``, of protocol 5."""
    array = _Array()
    array.__setstate__((shape, dtype, order == "F", bytes(content)))
    return array


def _scalar(dtype: Any, content: Any = b"") -> float:
    if not isinstance(dtype, _Dtype) or not isinstance(content, bytes):
        raise UserError("it holds a number that is damaged")
    return float(np.frombuffer(content, dtype.dtype).reshape(())[()])


def _latin1(text: Any, encoding: Any = "latin1") -> bytes:
    """How protocols before 3 write bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise UserError("it holds bytes that are damaged")
    return text.encode("latin1")


class _NdarrayType:
    """Stands where ``numpy.ndarray`` itself is named."""


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _NdarrayType,
    ("_codecs", "encode"): _latin1,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _array_of for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            named = f"{module}.{name}"[:60]
            raise UserError(f"it wants to call {named!r}; only numbers, texts, lists, dicts and numpy arrays are read")
        return _ALLOWED[module, name]


def _check_size(data: bytes, what: str, most_bytes: int) -> None:
    estimate, instructions = 0, 0
    try:
        for instruction, argument, _ in pickletools.genops(data):
            instructions += 1
            name = instruction.name
            if name.startswith(("EMPTY", "DICT", "LIST", "TUPLE", "MARK", "REDUCE", "BUILD", "NEWOBJ", "FROZENSET")):
                estimate += _CONTAINER
            elif isinstance(argument, (str, bytes)):
                estimate += 4 * len(argument) + _NUMBER
            elif "PUT" in name and isinstance(argument, int) and argument > len(data):
                raise UserError(
                    f"{what} is no pickle of plain data: it is damaged"
                )  # a table of that size would be made
            elif "GET" in name:
                estimate += _POINTER
            else:
                estimate += _NUMBER
            if estimate > most_bytes + 8 * len(data):
                raise UserError(f"{what} would take far more memory than its size: it is damaged")
    except UserError:
        raise
    except Exception:  # a damaged pickle can raise anything
        raise UserError(f"{what} is no pickle of plain data, or only a part of one") from None


def _plain(value: Any, depth: int) -> Any:
    """Records of arrays become arrays; nothing else may be there than plain data."""
    if depth > 6:
        raise UserError("it is nested too deeply")
    if isinstance(value, _Array):
        return value.value(depth)
    if isinstance(value, dict):
        return {str(key): _plain(content, depth + 1) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(content, depth + 1) for content in value]
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    raise UserError(f"it holds {type(value).__name__}; only numbers, texts, lists, dicts and numpy arrays are read")


def matrix(value: Any, what: str, most_numbers: int) -> NDArray[np.float64]:
    """(T, …) from an array or a list of arrays or of lists, all alike."""
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, list) or not value:
        raise UserError(f"{what} is no array")
    size = np.size(value[0]) if isinstance(value[0], np.ndarray) else len(value[0]) if isinstance(value[0], list) else 1
    if size * len(value) > most_numbers:
        raise UserError(f"{what} has {size * len(value)} numbers, too many for the size of the file: it is damaged")
    rows = []
    for frame, row in enumerate(value):
        if isinstance(row, list) and all(isinstance(number, (int, float)) for number in row):
            row = np.array(row, dtype=np.float64)
        if not isinstance(row, np.ndarray) or row.shape != np.shape(rows[0] if rows else row) or row.ndim != 1:
            raise UserError(f"{what}: frame {frame} is not a list of {size} numbers")
        rows.append(row)
    return np.stack(rows)
