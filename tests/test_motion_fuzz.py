"""Damaged and hostile motion files give a UserError or a motion, and take no more memory than allowed."""

from __future__ import annotations

import contextlib
import pickle
import re
import resource
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.motions.check import check_file
from consmimic.motions.clip import ARRAYS
from consmimic.motions.convert import conversion_budget, convert
from consmimic.motions.dialects import ReadOptions, read_motion
from consmimic.motions.files import memory_budget
from consmimic.motions.retarget import read_source
from motion_files import (
    ANYMAL,
    ROBOT_DIALECTS,
    Written,
    deepmimic_text,
    human,
    isaaclab_human,
    known,
    lafan1_csv,
)

MODEL = ANYMAL.model(visuals=False)
LEFT_RIGHT = ANYMAL.left_right(MODEL)
FILES: dict[str, Callable[[Path], Written]] = {
    name: lambda folder, write=write: write(folder, known(frames=8)) for name, write in ROBOT_DIALECTS.items()
} | {
    "deepmimic": lambda folder: Written(deepmimic_text(folder, *human(6))),
    "lafan1": lambda folder: lafan1_csv(folder, 29, frames=8),
}
NUMBERS = [
    b"nan",
    b"inf",
    b"-1e308",
    b"1e400",
    b"",
    b"0",
    b"-",
    b"1_0",
    b"0x1",
    b'"a"',
    b"[",
    b"]",
    b"1e-300",
    b"9" * 400,
]


@contextlib.contextmanager
def bounded_memory(path: Path) -> Iterator[None]:
    """Whatever asks for more than the budget beyond what the process has now gets a MemoryError."""
    if not sys.platform.startswith("linux"):
        yield
        return
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + memory_budget(path), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def mutated(content: bytes, random: np.random.Generator) -> bytes:
    """Damage of the kinds that files suffer, and some that they are made to."""
    data = bytearray(content)
    for _ in range(int(random.integers(1, 4))):
        kind = random.integers(8)
        at = int(random.integers(len(data) + 1)) if data else 0
        length = int(min(random.geometric(0.05), 200))
        if kind == 0:
            data[at : at + 1] = random.bytes(1)
        elif kind == 1 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(random.integers(8))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            data[at:at] = random.bytes(length)
        elif kind == 5:
            data[at : at + length] = bytes([int(random.choice([0, 255]))]) * length
        elif kind == 6:
            start = int(random.integers(len(data) + 1))
            data[at:at] = data[start : start + length]
        else:
            data = _with_another_number(data, random)
    return bytes(data)


def _with_another_number(data: bytearray, random: np.random.Generator) -> bytearray:
    places = list(re.finditer(rb"-?\d+\.?\d*", bytes(data[:4000])))
    if not places:
        return data
    place = places[int(random.integers(len(places)))]
    data[place.start() : place.end()] = NUMBERS[int(random.integers(len(NUMBERS)))]
    return data


def remade(path: Path, content: bytes, random: np.random.Generator) -> bytes:
    """An npz whose zip is whole but whose arrays are damaged: checksums guard them from plain damage."""
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    damaged = list(members)[int(random.integers(len(members)))]
    kind = random.integers(3)
    if kind == 0:
        del members[damaged]
    elif kind == 1:
        members[damaged] = mutated(members[damaged], random)
    else:
        head = members[damaged][:120]
        members[damaged] = bytes(_with_another_number(bytearray(head), random)) + members[damaged][120:]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return path.read_bytes()


def to_convert(written: Written) -> None:
    reading = read_motion(written.path, written.options)
    convert(
        reading.recording,
        MODEL,
        robot=ANYMAL.name,
        joint_names=ANYMAL.joint_names,
        bodies=("base", *ANYMAL.feet),
        mapping=written.mapping,
        most_bytes=conversion_budget(written.path),
    )


def to_load(written: Written) -> None:
    Clip.load(written.path)


def to_check(written: Written) -> None:
    check_file(written.path, ANYMAL, left_right=LEFT_RIGHT)


def to_retarget(written: Written) -> None:
    read_source(written.path)


def a_clip(folder: Path) -> Written:
    known(frames=8).save(folder / "clip.npz")
    return Written(folder / "clip.npz")


CASES: dict[str, tuple[Callable[[Path], Written], Callable[[Written], None]]] = (
    {name: (write, to_convert) for name, write in FILES.items()}
    | {f"{name}, retargeted": (FILES[name], to_retarget) for name in ("deepmimic", "motion_imitation")}
    | {"amp_for_hardware, retargeted": (FILES["amp_for_hardware"], to_retarget)}
    | {"isaaclab, retargeted": (lambda folder: Written(isaaclab_human(folder, frames=8)), to_retarget)}
    | {"clip, loaded": (a_clip, to_load), "clip, checked": (a_clip, to_check)}
)


def fuzz(folder: Path, name: str, count: int) -> dict[str, int]:
    write, use = CASES[name]
    written = write(folder)
    content = written.path.read_bytes()
    outcomes = {"taken": 0, "refused": 0}

    def outcome(written: Written) -> str:
        try:
            use(written)
        except UserError:
            return "refused"
        return "taken"

    outcome(written)  # what is loaded once is no part of the budget
    for number in range(count):
        random = np.random.default_rng(number)
        damaged = mutated(content, random)
        if written.path.suffix == ".npz" and number % 2:
            damaged = remade(written.path, content, random)
        written.path.write_bytes(damaged)
        options = replace(written.options, allow_pickle=number % 3 > 0)
        try:
            with bounded_memory(written.path):
                outcomes[outcome(replace(written, options=options))] += 1
        except Exception as error:
            raise AssertionError(f"{name}, mutation {number}: {type(error).__name__}: {error}") from error
    return outcomes


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error")
def test_a_damaged_file_is_refused_or_read(tmp_path, name):
    outcomes = fuzz(tmp_path, name, 200)
    assert outcomes["refused"] > 50, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error")
def test_ten_thousand_damaged_files_are_refused_or_read(tmp_path, name):
    assert sum(fuzz(tmp_path, name, 10_000).values()) == 10_000


# ---------------------------------------------------------------- made to do harm


def npy(content: bytes) -> bytes:
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def nested(levels: int) -> bytes:
    """Lists of ten times the same list, levels deep."""
    value: list = [1.0]
    for _ in range(levels):
        value = [value] * 10
    return pickle.dumps(
        {"joints_list": ["a"], "joint_positions": value, "root_position": value, "root_quaternion": value}
    )


HOSTILE = {
    "a call": b"cos\nsystem\n(S'touch it-ran'\ntR.",
    "builtins.eval": b'cbuiltins\neval\n(S\'open("it-ran","w")\'\ntR.',
    "numpy's loader": b"cnumpy\nload\n(S'it-ran'\ntR.",
    "a class to be built": pickle.dumps(Path("it-ran")),
    "a giant table of memories": b"]r\xff\xff\xff\x7f.",
    "millions of sets": b"\x80\x04(" + b"\x8f" * 2_000_000 + b"l.",
    "millions of lists": b"(" + b"]" * 2_000_000 + b"l.",
    "a giant array": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(L1000000000000L\ntS'b'\ntR.",
    "lists within lists": nested(9),
    "nothing": b"",
    "half": pickle.dumps({"joints_list": ["a"] * 100})[:-20],
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("allowed", [False, True])
def test_a_pickle_that_is_made_to_do_harm_does_none(tmp_path, monkeypatch, case, allowed):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hostile.npy"
    path.write_bytes(npy(HOSTILE[case]))
    with bounded_memory(path), pytest.raises(UserError):
        read_motion(path, ReadOptions(allow_pickle=allowed))
    assert not Path("it-ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        b'{"Frames": [[' + b"1," * 3_000_000 + b"1]]}",
        b'{"Frames": [' + b"[1]," * 1_000_000 + b"[1]]}",
        b'{"a": ' + b"[" * 100_000 + b', "Frames": [[1]]}',
        b'{"Frames": ' + b"[" * 3_000_000,
        b"1," * 3_000_000,
        b"1\n" * 3_000_000,
        b"{" + b" " * 3_000_000,
        b'{"Frames": [[1]]' + b'"a": "b",' * 1_000_000,
    ],
)
def test_a_text_that_is_made_to_fill_the_memory_is_refused(tmp_path, content):
    path = tmp_path / "hostile.txt"
    path.write_bytes(content)
    with bounded_memory(path), pytest.raises(UserError):
        read_motion(path)


def test_a_zip_with_a_giant_directory_is_refused(tmp_path):
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(30_000):
            archive.writestr(f"{number}.npy", b"")
    with pytest.raises(UserError, match="not an npz file"):
        read_motion(path)


@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_a_clip_that_inflates_beyond_its_file_is_not_checked(tmp_path, dtype):
    """0.5 MB of zeros on disk; nearly as many frames as reading lets through for that size."""
    frames, clip = 45_000, known(frames=2)
    arrays = {name: np.zeros((frames, *getattr(clip, name).shape[1:]), dtype) for name in ARRAYS}
    arrays["body_quat_w"][..., 0] = 1
    path = tmp_path / "zeros.npz"
    names = {"joint_names": clip.joint_names, "body_names": clip.body_names}
    np.savez_compressed(path, fps=50.0, **names, **arrays)
    assert path.stat().st_size < 1e6
    with bounded_memory(path), pytest.raises(UserError, match="MB of memory"):
        check_file(path, ANYMAL)
