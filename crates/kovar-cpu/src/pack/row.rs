//! Decoding of one row of a prepared weight to f32, exactly as the reference codec decodes it.

use half::f16;
use kovar_core::quant::levels::e8m0_half;

use super::GROUP_ROWS;
use super::format::{BLOCK_LEN, Codes, LINE, PackError, PackedMatrix, Row, SUPER_BLOCKS, Scales};

impl PackedMatrix<'_> {
    /// Decodes row `row` into `out`, bit for bit as `kovar_core::quant::decode` decodes the row's
    /// blocks.
    ///
    /// - `out`: `[k]`.
    ///
    /// # Errors
    /// [`PackError::NoRow`], and [`PackError::WrongSize`] if `out` has another length.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) -> Result<(), PackError> {
        let layout = self.layout();
        if row >= layout.rows() {
            return Err(PackError::NoRow {
                row,
                rows: layout.rows(),
            });
        }
        let bytes = |elements: usize| elements.saturating_mul(size_of::<f32>());
        layout.check_size("decoded elements", bytes(layout.k()), bytes(out.len()))?;
        let (scales, codes) = self.group(row / GROUP_ROWS);
        let lane = row % GROUP_ROWS;
        let blocks = codes.chunks_exact(layout.row.codes.block_bytes());
        for (b, (codes, out)) in blocks.zip(out.as_chunks_mut::<BLOCK_LEN>().0).enumerate() {
            decode_block(&layout.row, scales, codes, b, lane, out);
        }
        Ok(())
    }
}

fn decode_block(
    format: &Row,
    scales: &[u8],
    codes: &[u8],
    b: usize,
    lane: usize,
    out: &mut [f32; BLOCK_LEN],
) {
    let unit_bytes = format.scales.unit_bytes();
    let half_at = |unit: usize, which: usize| {
        let at = unit * unit_bytes + (which * GROUP_ROWS + lane) * 2;
        f16::from_le_bytes([scales[at], scales[at + 1]]).to_f32()
    };
    let small_at = |unit: usize, which: usize, i: usize| {
        scales[unit * unit_bytes + which * GROUP_ROWS * 2 + i * GROUP_ROWS + lane]
    };
    let value = |i: usize| {
        let code = stored_code(format.codes, codes, lane, i);
        f32::from(match format.codes {
            Codes::Byte => code as i8,
            _ => format.values.of(code),
        })
    };
    let (unit, sub) = format.scales.unit_of(b);
    match format.scales {
        Scales::D | Scales::D256 => {
            let d = half_at(unit, 0);
            fill(out, |i| d * value(i));
        }
        Scales::DM => {
            let (d, m) = (half_at(unit, 0), half_at(unit, 1));
            fill(out, |i| d * value(i) + m);
        }
        Scales::E8M0 => {
            let d = e8m0_half(small_at(unit, 0, 0));
            fill(out, |i| d * value(i));
        }
        Scales::K2 => {
            let (d, dmin) = (half_at(unit, 0), half_at(unit, 1));
            let parts = [0, 1].map(|half| small_at(unit, 2, 2 * sub + half));
            let scale = parts.map(|part| d * f32::from(part & 0x0f));
            let min = parts.map(|part| dmin * f32::from(part >> 4));
            fill(out, |i| scale[i / 16] * value(i) - min[i / 16]);
        }
        Scales::K => {
            let scale = half_at(unit, 0) * f32::from(small_at(unit, 2, sub));
            let min = half_at(unit, 1) * f32::from(small_at(unit, 2 + SUPER_BLOCKS / 2, sub));
            fill(out, |i| scale * value(i) - min);
        }
        Scales::K6 => {
            let d = half_at(unit, 0);
            let scale = [0, 1].map(|half| d * f32::from(small_at(unit, 1, 2 * sub + half) as i8));
            fill(out, |i| scale[i / 16] * value(i));
        }
        Scales::XS => {
            let scale = half_at(unit, 0) * f32::from(small_at(unit, 1, sub) as i8);
            fill(out, |i| scale * value(i));
        }
    }
}

fn fill(out: &mut [f32; BLOCK_LEN], value: impl Fn(usize) -> f32) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = value(i);
    }
}

/// The stored code of element `i` of the row in `lane`.
fn stored_code(kind: Codes, codes: &[u8], lane: usize, i: usize) -> u8 {
    let (quad, at) = (i / 4, 4 * lane + i % 4);
    let nibble = || codes[quad % 4 * LINE + at] >> (4 * (quad / 4)) & 0x0f;
    let crumb = |line: usize| codes[(line + quad / 4) * LINE + at] >> (2 * (quad % 4)) & 3;
    let bit = |line: usize| codes[line * LINE + at] >> quad & 1;
    match kind {
        Codes::Crumb => crumb(0),
        Codes::Crumb1 => crumb(0) | bit(2) << 2,
        Codes::Nibble => nibble(),
        Codes::Nibble1 => nibble() | bit(4) << 4,
        Codes::Nibble2 => nibble() | crumb(4) << 4,
        Codes::Byte => codes[quad * LINE + at],
    }
}

#[cfg(test)]
mod tests {
    use kovar_core::DType;
    use kovar_core::quant;

    use super::super::{PackedLayout, PackedMatrix};
    use crate::buffer::AlignedBytes;
    use crate::pool::ThreadPool;

    #[test]
    fn decoded_rows_are_the_bits_of_the_reference_codec() {
        for dtype in DType::ALL.into_iter().filter(|d| d.is_quantized()) {
            for (rows, blocks, n_threads) in [(1, 1, 1), (16, 3, 2), (37, 2, 2), (64, 9, 1)] {
                let pool = ThreadPool::new(n_threads).unwrap();
                let k = blocks * dtype.block_len();
                let row_bytes = dtype.bytes_for(k).unwrap();
                let mut state = 1u64;
                let file: Vec<u8> = (0..rows * row_bytes)
                    .map(|_| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
                        (state >> 40) as u8
                    })
                    .collect();
                let layout = PackedLayout::new(dtype, rows, k).unwrap();
                let mut packed = AlignedBytes::zeroed(layout.bytes()).unwrap();
                packed.as_mut_slice().fill(0xee);
                layout.pack(&file, packed.as_mut_slice(), &pool).unwrap();
                let matrix = PackedMatrix::new(layout, packed.as_slice()).unwrap();
                let (mut expected, mut actual) = (vec![0.0; k], vec![0.0; k]);
                for row in 0..rows {
                    let bytes = &file[row * row_bytes..][..row_bytes];
                    quant::decode(dtype, bytes, &mut expected).unwrap();
                    matrix.decode_row(row, &mut actual).unwrap();
                    for (a, e) in actual.iter().zip(&expected) {
                        let same = a.to_bits() == e.to_bits() || a.is_nan() && e.is_nan();
                        assert!(same, "{dtype} row {row}: {a} for {e}");
                    }
                }
                assert!(matrix.decode_row(rows, &mut actual).is_err());
                assert!(matrix.decode_row(0, &mut actual[1..]).is_err());
            }
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let pool = ThreadPool::new(1).unwrap();
        let layout = PackedLayout::new(DType::Q4_1, 2, 32).unwrap();
        let mut out = vec![0; layout.bytes()];
        assert!(layout.pack(&[0; 39], &mut out, &pool).is_err());
        assert!(layout.pack(&[0; 40], &mut out[1..], &pool).is_err());
    }
}
