"""Relaxed dynamic time warping (Algorithm 2): how far a motion is from the nearest part of a demonstration.

Both ends are open on the demonstration's side only: every frame of the policy's motion is matched, in order,
to frames of a contiguous stretch of the demonstration, and whatever lies before and after that stretch costs
nothing. So the measure is **not symmetric**, and a policy that stands still on one demonstrated pose is at
distance 0 (docs/metrics.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmimic.errors import UserError

Array = NDArray[np.float64]

DIAGONAL_ELEMENTS = 16_384
"""Sequences are worked on in groups, so that one anti-diagonal of a group stays in the processor's cache."""


def relaxed_dtw(policy: ArrayLike, demonstration: ArrayLike) -> float:
    """The distance of Algorithm 2 between one policy sequence (n, d) and one demonstration (m, d)."""
    P = _sequences("policy", policy, ndim=2)
    return float(relaxed_dtw_batch(P[None], demonstration)[0])


def relaxed_dtw_batch(policies: ArrayLike, demonstration: ArrayLike, lengths: ArrayLike | None = None) -> Array:
    """Algorithm 2 for many policy sequences (B, n, d) at once: distances (B,).

    ``demonstration`` is (m, d), the same for all, or (B, m, d), one for each sequence (as Eq. 13 needs).
    ``lengths`` (B,) says how many frames of each sequence count; what comes after may hold anything.
    """
    P = _sequences("policies", policies, ndim=3, check_finite=lengths is None)
    Q = _sequences("demonstration", demonstration, ndim=3 if np.ndim(demonstration) == 3 else 2)
    B, n, d = P.shape
    if Q.shape[-1] != d:
        raise UserError(f"policies have {d} values per frame, the demonstration has {Q.shape[-1]}; they must agree")
    if Q.ndim == 3 and len(Q) != B:
        raise UserError(f"{B} policies but {len(Q)} demonstrations; give one demonstration, or one for each")
    counts = np.full(B, n)
    if lengths is not None:
        counts, P = _without_padding(lengths, P)

    Q = Q[None] if Q.ndim == 2 else Q  # (1 or B, m, d)
    group = max(1, DIAGONAL_ELEMENTS // min(n, Q.shape[1]))
    distances = np.empty(B)
    for first in range(0, B, group):
        these = slice(first, first + group)
        rows = _row_minima(_frames_first(P[these]), _frames_first(Q if len(Q) == 1 else Q[these]))
        distances[these] = rows[counts[these], np.arange(rows.shape[1])]
    return distances


def per_frame(distance: ArrayLike, frames: ArrayLike) -> Array:
    """Distance / n, in the unit of the compared values: comparable between windows of different length."""
    if np.any(np.asarray(frames) < 1):
        raise UserError(f"a distance over {frames} frames has no per-frame value; frames must be >= 1")
    return np.asarray(distance, dtype=np.float64) / np.asarray(frames)


def dtw_path(policy: ArrayLike, demonstration: ArrayLike) -> NDArray[np.intp]:
    """The frames that ``relaxed_dtw`` matches, for figures: (K, 2) indices (policy, demonstration)."""
    D = accumulated_cost(policy, demonstration)
    i, j = len(D) - 1, int(D[-1, 1:].argmin()) + 1
    path = [(i, j)]
    while i > 1:  # the first frame never steps along the demonstration: the row above it is free
        i, j = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda cell: D[cell])
        path.append((i, j))
    return np.array(path[::-1], dtype=np.intp) - 1


def accumulated_cost(policy: ArrayLike, demonstration: ArrayLike) -> Array:
    """The matrix D of Algorithm 2, (n + 1, m + 1), line by line: slow, for one pair.

    Read literally, line 1 leaves D[0, 0] = ∞. Only D[1, 1] looks there, and it looks at D[0, 1] = 0 too, so
    the corner decides nothing.
    """
    P = _sequences("policy", policy, ndim=2)
    Q = _sequences("demonstration", demonstration, ndim=2)
    if P.shape[1] != Q.shape[1]:
        raise UserError(
            f"policy has {P.shape[1]} values per frame, the demonstration has {Q.shape[1]}; they must agree"
        )
    cost = np.sqrt(np.square(P[:, None] - Q[None]).sum(-1))  # (n, m)
    D = np.full((len(P) + 1, len(Q) + 1), np.inf)
    D[0, 1:] = 0.0
    for i in range(1, len(P) + 1):
        for j in range(1, len(Q) + 1):
            D[i, j] = cost[i - 1, j - 1] + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D


def _row_minima(P: Array, Q: Array) -> Array:
    """min_j D[i, j] for every i: P (d, n, B), Q (d, m, 1 or B) -> (n + 1, B).

    Cells of an anti-diagonal i + j = k need only the two diagonals before it, so each diagonal is one step
    for all sequences. It is stored by its row i.
    """
    _, n, B = P.shape
    m = Q.shape[1]
    backwards = Q[:, ::-1]  # along a diagonal, j falls as i rises
    before, last, this = (np.full((n + 1, B), np.inf) for _ in range(3))  # k − 2, k − 1, k
    last[0] = 0.0  # D[0, 1]
    minima = np.full((n + 1, B), np.inf)
    total, term = np.empty((2, min(n, m), B))
    for k in range(2, n + m + 1):
        low, high = max(1, k - m), min(n, k - 1)
        here, above = slice(low, high + 1), slice(low - 1, high)
        cost, square = total[: high + 1 - low], term[: high + 1 - low]
        cost[:] = 0.0
        for x, y in zip(P[:, above], backwards[:, m - k + low : m - k + high + 1], strict=True):
            np.subtract(x, y, out=square)
            cost += np.square(square, out=square)
        cells = this[here]
        np.minimum(last[above], last[here], out=cells)  # D[i−1, j], D[i, j−1]
        np.minimum(cells, before[above], out=cells)  # D[i−1, j−1]
        cells += np.sqrt(cost, out=cost)
        this[0] = 0.0  # D[0, k]; D[k, 0] = ∞ is what the buffer still holds in row k
        np.minimum(minima[here], cells, out=minima[here])
        before, last, this = last, this, before
    return minima


def _frames_first(sequences: Array) -> Array:
    """(B, n, d) -> (d, n, B), contiguous: the batch is the fastest axis."""
    return np.ascontiguousarray(sequences.transpose(2, 1, 0))


def _sequences(name: str, values: ArrayLike, *, ndim: int, check_finite: bool = True) -> Array:
    array = np.asarray(values, dtype=np.float64)
    expected = {2: "(frames, values)", 3: "(sequences, frames, values)"}[ndim]
    if array.ndim != ndim or array.size == 0:
        raise UserError(f"{name} has shape {array.shape}; expected {expected}, none of them 0")
    if check_finite and not np.isfinite(array).all():
        raise UserError(f"{name} holds NaN or infinity, first at index {_first(~np.isfinite(array))}")
    return array


def _without_padding(lengths: ArrayLike, policies: Array) -> tuple[NDArray[np.intp], Array]:
    """Frames that count (B,), and the sequences with zeros after them."""
    B, n, _ = policies.shape
    counts = np.asarray(lengths)
    if counts.shape != (B,) or not np.issubdtype(counts.dtype, np.integer) or counts.min() < 1 or counts.max() > n:
        raise UserError(f"lengths must be {B} whole numbers from 1 to {n}, found {lengths}")
    counted = np.arange(n) < counts[:, None]  # (B, n)
    broken = counted & ~np.isfinite(policies).all(-1)
    if broken.any():
        raise UserError(f"policies hold NaN or infinity, first in (sequence, frame) {_first(broken)}")
    return counts.astype(np.intp), np.where(counted[..., None], policies, 0.0)


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])
