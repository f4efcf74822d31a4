"""Goldens of the block codecs, made with the `gguf` Python package (pip install gguf numpy).

    python scripts/goldens/quant_blocks.py [OUTPUT_FOLDER]

The output folder is crates/kovar-core/tests/data unless another is given. Files are raw and
little-endian:

    NAME.blocks.bin    blocks of the dtype: random bits under sane scales, for the types that the
                       package can encode also encoded Gaussian data, for others also random bits
                       under extreme scales
    NAME.decoded.bin   the same blocks decoded, f32
    encode.values.bin  f32 values to encode: Gaussian rows and edge cases, 32 a block; types of
                       longer blocks take the whole blocks at its beginning
    NAME.encoded.bin   these values encoded, for the types that the package can encode
"""

import sys
from pathlib import Path

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

REPOSITORY = Path(__file__).resolve().parents[2]
ENCODABLE = [
    Type.F16,
    Type.BF16,
    Type.Q4_0,
    Type.Q4_1,
    Type.Q5_0,
    Type.Q5_1,
    Type.Q8_0,
    Type.MXFP4,
    Type.TQ2_0,
]
# Byte offsets of the f16 scales and minima in a block.
SCALES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
}
# The same, of the types whose goldens include extreme scales. They draw from one generator: new
# types go to the end.
MORE_SCALES = {
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
    Type.MXFP4: [],
    Type.TQ2_0: [64],
}
# Zeros, the least and largest subnormals, the largest numbers, infinities, NaNs.
EXTREME_F16 = [0, 0x8000, 1, 0x8001, 0x03FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFD01]


def random_blocks(rng: np.random.Generator, dtype: Type, count: int) -> np.ndarray:
    """`count` blocks of random bits whose f16 fields are finite, from subnormal to about 8."""
    blocks = rng.integers(0, 256, (count, GGML_QUANT_SIZES[dtype][1]), dtype=np.uint8)
    for offset in (SCALES | MORE_SCALES)[dtype]:
        magnitudes = np.exp2(rng.uniform(-20, 3, count))
        scales = (magnitudes * rng.choice([-1, 1], count)).astype("<f2")
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(count, 2)
    return blocks


def extreme_blocks(rng: np.random.Generator, dtype: Type) -> np.ndarray:
    """Blocks of random bits with each extreme scale."""
    if dtype == Type.MXFP4:
        blocks = rng.integers(0, 256, (12, GGML_QUANT_SIZES[dtype][1]), dtype=np.uint8)
        blocks[:, 0] = [0, 1, 2, 3, 4, 126, 127, 128, 252, 253, 254, 255]
        return blocks
    blocks = random_blocks(rng, dtype, len(EXTREME_F16))
    for i, offset in enumerate(MORE_SCALES[dtype]):
        scales = np.roll(np.array(EXTREME_F16, dtype="<u2"), 3 * i)
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks


def values_to_encode(rng: np.random.Generator) -> np.ndarray:
    """Blocks of 32 finite f32 values, shape [blocks, 32]."""
    gaussian = rng.standard_normal((12, 32)) * np.exp2(rng.uniform(-10, 6, (12, 1)))
    ramp = np.linspace(-1, 1, 32)
    edges = [
        np.zeros(32),
        -np.zeros(32),
        np.full(32, 0.75),
        np.full(32, -3.0),
        np.abs(gaussian[0]),
        -np.abs(gaussian[1]),
        # Exact halves between the codes of each scale rule, and a tie of the extremes.
        np.concatenate([[-8.0, 8.0], np.arange(30) * 0.5 - 7.25]),
        np.concatenate([[16.0, -16.0], np.arange(30) - 14.5]),
        np.concatenate([[127.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5], np.arange(25) * 5 - 62.5]),
        np.arange(32) * 0.5,
        # One outlier among zeros, one element set.
        np.eye(32)[7] * -2.5,
        np.concatenate([ramp[:31] * 1e-3, [5.0]]),
        # Scales that are subnormal f16, that vanish in f16, and whose inverse is infinite.
        gaussian[2] / np.abs(gaussian[2]).max() * 1e-5,
        gaussian[3] / np.abs(gaussian[3]).max() * 1e-9,
        gaussian[4] / np.abs(gaussian[4]).max() * 1e-39,
        gaussian[5] / np.abs(gaussian[5]).max() * 1e-44,
        # The last finite scales, scales beyond f16, a range beyond f32.
        ramp * 5e4,
        ramp * 1e9,
        ramp * 3e38,
    ]
    return np.concatenate([gaussian, np.array(edges)]).astype("<f4")


def main() -> None:
    folder = REPOSITORY / "crates/kovar-core/tests/data"
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240229)

    def write(name: str, array: np.ndarray) -> None:
        (folder / name).write_bytes(np.ascontiguousarray(array).tobytes())

    values = values_to_encode(rng)
    write("encode.values.bin", values)
    # Overflow to infinity and the cast of NaN are among the cases.
    with np.errstate(all="ignore"):
        for dtype in ENCODABLE:
            block_len = GGML_QUANT_SIZES[dtype][0]
            whole = values.size // block_len * block_len
            rows = values.reshape(-1)[:whole].reshape(-1, block_len)
            write(f"{dtype.name.lower()}.encoded.bin", quantize(rows, dtype))

    for dtype in SCALES:
        k_type = dtype.name.endswith("_K")
        blocks = random_blocks(rng, dtype, 8)
        if not k_type:
            gaussian = rng.standard_normal((8, 32)).astype(np.float32)
            blocks = np.concatenate([blocks, quantize(gaussian, dtype)])
        decoded = dequantize(blocks, dtype).astype("<f4")
        assert np.isfinite(decoded).all(), dtype
        write(f"{dtype.name.lower()}.blocks.bin", blocks)
        write(f"{dtype.name.lower()}.decoded.bin", decoded)

    more = np.random.default_rng(20240301)
    for dtype in MORE_SCALES:
        blocks = np.concatenate([random_blocks(more, dtype, 6), extreme_blocks(more, dtype)])
        with np.errstate(all="ignore"):
            decoded = dequantize(blocks, dtype).astype("<f4")
        write(f"{dtype.name.lower()}.blocks.bin", blocks)
        write(f"{dtype.name.lower()}.decoded.bin", decoded)

    # Every sign and exponent of the plain floats, infinities and NaN left out.
    for dtype, fraction_bits in [(Type.F16, 10), (Type.BF16, 7)]:
        exponents = 1 << (15 - fraction_bits)
        bits = np.arange(2 * exponents, dtype=np.uint16) << fraction_bits
        bits = bits[(np.arange(2 * exponents) % exponents) != exponents - 1]
        bits |= rng.integers(0, 1 << fraction_bits, bits.size, dtype=np.uint16)
        bits = bits.astype("<u2")
        write(f"{dtype.name.lower()}.blocks.bin", bits)
        # The package decodes BF16 from bytes.
        raw = bits.view(np.uint8) if dtype == Type.BF16 else bits
        write(f"{dtype.name.lower()}.decoded.bin", dequantize(raw, dtype).astype("<f4"))


if __name__ == "__main__":
    main()
