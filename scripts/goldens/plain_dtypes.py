"""Goldens of the plain dtypes, made with numpy and ml_dtypes (pip install numpy ml_dtypes).

    python scripts/goldens/plain_dtypes.py [OUTPUT_FOLDER]

The output folder is crates/kovar-core/tests/data/plain unless another is given. Files are raw and
little-endian:

    F8_E4M3.decoded.bin, F8_E5M2.decoded.bin   the numbers of the bytes 0 to 255, f32
    floats.bin                                 f64 numbers to cast
    floats.NAME.bin                            these as elements of the dtype NAME
    integers.bin                               i64 numbers to cast
    integers.NAME.bin                          these as elements of the dtype NAME

Nearest elements are searched for among all of a dtype in exact arithmetic, so that nothing is
rounded twice; where ml_dtypes and numpy round once, they must agree.
"""

import sys
from bisect import bisect_left
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
NARROW = {
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
INTEGERS = {"I8": "<i1", "U8": "<u1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}


class Nearest:
    """Elements of a narrow float dtype by exact value."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.bits = np.dtype(f"<u{dtype.itemsize}")
        half = 1 << (8 * dtype.itemsize - 1)
        numbers = np.arange(half, dtype=self.bits).view(dtype).astype(np.float64)
        self.finite = [Fraction(float(x)) for x in numbers if np.isfinite(x)]
        self.sign = half
        # The spacing above the greatest number is that below it.
        self.finite.append(2 * self.finite[-1] - self.finite[-2])
        self.nan = int(np.array(np.nan, np.float32).astype(dtype).view(self.bits)) & (half - 1)
        has_infinity = bool(np.isinf(numbers).any())
        self.beyond = len(self.finite) - 1 if has_infinity else self.nan

    def of(self, value) -> int:
        """The bits of the element nearest to a float or an integer, ties to even bits."""
        if isinstance(value, float):
            sign = self.sign if np.signbit(value) else 0
            if np.isnan(value):
                return sign | self.nan
            if np.isinf(value):
                return sign | self.beyond
        else:
            sign = self.sign if value < 0 else 0
        exact = abs(Fraction(value))
        at = bisect_left(self.finite, exact)
        if at == len(self.finite):
            return sign | self.beyond
        if at > 0:
            below, above = exact - self.finite[at - 1], self.finite[at] - exact
            if below < above or (below == above and at % 2 == 1):
                at -= 1
        return sign | (self.beyond if at == len(self.finite) - 1 else at)


def floats(rng: np.random.Generator) -> np.ndarray:
    """Numbers near and between the elements of every dtype, and specials."""
    numbers = [0.0, 0.3, 0.5, 1.5, 2.5, 126.5, 127.5, 128.0, 254.5, 255.0, 255.5, 256.0]
    for dtype in NARROW.values():
        bits = np.dtype(f"<u{dtype.itemsize}")
        half = 1 << (8 * dtype.itemsize - 1)
        all_finite = np.arange(half, dtype=bits).view(dtype).astype(np.float64)
        all_finite = all_finite[np.isfinite(all_finite)]
        last = all_finite[-1]
        ends = np.concatenate([all_finite[:5], all_finite[-4:], [2 * last - all_finite[-2]]])
        some = rng.choice(len(all_finite) - 1, 24, replace=False)
        middles = (all_finite[some] + all_finite[some + 1]) / 2
        end_middles = (ends[:-1] + ends[1:]) / 2
        for x in np.concatenate([ends, all_finite[some], middles, end_middles]):
            # The neighbours in binary64 are lost on the way through binary32.
            numbers += [x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)]
    for power in [7, 8, 15, 16, 31, 32, 53, 63, 64]:
        for step in [-1.5, -1.0, -0.5, 0.5, 1.0]:
            numbers.append(2.0**power + step)
    numbers += [5e-324, 1e-310, 1e-46, 1e-40, 3.5e38, 1e300, np.finfo(np.float64).max]
    numbers += [np.inf, np.nan]
    numbers = np.unique(np.array(numbers, "<f8"))
    return np.concatenate([numbers, -numbers])


def integers(rng: np.random.Generator) -> np.ndarray:
    """Integers about powers of two, halfway between narrow floats and a little off."""
    numbers = {0, 1, 2, -(2**63), 2**63 - 1}
    for power in range(2, 63):
        for step in [-1, 0, 1]:
            numbers.add(2**power + step)
    for mantissa_bits in [3, 4, 8, 11, 24, 53]:
        for power in [mantissa_bits + 2, 40, 55, 62]:
            if power <= mantissa_bits:
                continue
            unit = 2 ** (power - mantissa_bits)
            for _ in range(4):
                middle = 2**power + unit * int(rng.integers(0, 2 ** (mantissa_bits - 1))) + unit // 2
                numbers |= {middle - 1, middle, middle + 1}
    both = sorted(numbers | {-x for x in numbers if x < 2**63})
    return np.array([x for x in both if -(2**63) <= x < 2**63], "<i8")


def to_integer(value, dtype: np.dtype) -> int:
    """Towards zero and into range."""
    info = np.iinfo(dtype)
    if isinstance(value, float):
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return info.max if value > 0 else info.min
    return max(info.min, min(info.max, int(value)))


def check(name: str, numbers: np.ndarray, encoded: np.ndarray, dtype: np.dtype) -> None:
    """Where numpy or ml_dtypes round binary32 numbers, they round as the search does."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = numbers.astype(np.float32)
    exact = (single.astype(np.float64) == numbers) | np.isnan(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = single[exact].astype(dtype).astype(np.float32)
    ours = encoded[exact].view(dtype).astype(np.float32)
    assert np.array_equal(theirs, ours, equal_nan=True), name


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(8)
    for name in ["F8_E4M3", "F8_E5M2"]:
        decoded = np.arange(256, dtype=np.uint8).view(NARROW[name]).astype("<f4")
        decoded.tofile(folder / f"{name}.decoded.bin")
    for kind, numbers in [("floats", floats(rng)), ("integers", integers(rng))]:
        numbers.tofile(folder / f"{kind}.bin")
        values = numbers.tolist()
        for name, dtype in NARROW.items():
            nearest = Nearest(dtype)
            encoded = np.array([nearest.of(value) for value in values], nearest.bits)
            if kind == "floats":
                check(name, numbers, encoded, dtype)
            encoded.tofile(folder / f"{kind}.{name}.bin")
        with np.errstate(over="ignore"):
            numbers.astype("<f4").tofile(folder / f"{kind}.F32.bin")
        numbers.astype("<f8").tofile(folder / f"{kind}.F64.bin")
        (numbers != 0).astype(np.uint8).tofile(folder / f"{kind}.BOOL.bin")
        for name, dtype in INTEGERS.items():
            rounded = [to_integer(value, np.dtype(dtype)) for value in values]
            np.array(rounded, dtype).tofile(folder / f"{kind}.{name}.bin")


if __name__ == "__main__":
    given = sys.argv[1:2]
    main(Path(given[0]) if given else REPOSITORY / "crates/kovar-core/tests/data/plain")
