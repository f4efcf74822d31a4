//! Conversion of a file's blocks to the prepared form.

use kovar_core::quant::{
    BlockIQ4NL, BlockIQ4XS, BlockMXFP4, BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K,
    BlockQ5_0, BlockQ5_1, BlockQ5K, BlockQ6K, BlockQ8_0, BlockTQ2_0,
};

use super::GROUP_ROWS;
use super::format::{BLOCK_LEN, Codes, FormatId, LINE, PackError, PackedLayout, SUPER_BLOCKS};
use crate::pool::{ChunkPtr, ThreadPool};

impl PackedLayout {
    /// Writes the prepared form of a weight.
    ///
    /// - `src`: `[rows, k]` elements as blocks of [`dtype`](Self::dtype), rows one after another.
    /// - `dst`: [`bytes`](Self::bytes) bytes; all of them are written.
    ///
    /// # Errors
    /// [`PackError::WrongSize`] if a slice has another length.
    pub fn pack(&self, src: &[u8], dst: &mut [u8], pool: &ThreadPool) -> Result<(), PackError> {
        let row_bytes = self.k() / self.dtype().block_len() * self.dtype().block_bytes();
        let src_bytes = self.rows().saturating_mul(row_bytes);
        self.check_size("file blocks", src_bytes, src.len())?;
        self.check_size("prepared bytes", self.bytes(), dst.len())?;
        let base = ChunkPtr::new(dst.as_mut_ptr());
        let grain = (64 * 1024 / self.group_bytes().max(1)).max(1);
        pool.run_ranges(self.groups(), grain, &|groups, _| {
            for group in groups {
                let bytes = self.group_bytes();
                // SAFETY: `dst` has `groups * group_bytes` bytes, and ranges do not overlap.
                let out =
                    unsafe { std::slice::from_raw_parts_mut(base.get().add(group * bytes), bytes) };
                let first = group * GROUP_ROWS;
                let rows = GROUP_ROWS.min(self.rows() - first);
                let src = &src[first * row_bytes..][..rows * row_bytes];
                self.pack_group(src, row_bytes, out);
            }
        });
        Ok(())
    }

    fn pack_group(&self, src: &[u8], row_bytes: usize, out: &mut [u8]) {
        let (scales, codes) = out.split_at_mut(self.scale_bytes());
        scales.fill(0);
        if src.len() < GROUP_ROWS * row_bytes {
            codes.fill(0);
        }
        let mut group = Group {
            scales,
            codes,
            unit_bytes: self.row.scales.unit_bytes(),
            block_bytes: self.row.codes.block_bytes(),
        };
        for (row, bytes) in src.chunks_exact(row_bytes.max(1)).enumerate() {
            match self.row.id {
                FormatId::Q4_0 => each_block(bytes, |b, block: &BlockQ4_0| {
                    group.scale(row, b, 0, block.d.0);
                    group.nibbles(row, b, &block.qs);
                }),
                FormatId::Q4_1 => each_block(bytes, |b, block: &BlockQ4_1| {
                    group.scale(row, b, 0, block.d.0);
                    group.scale(row, b, 1, block.m.0);
                    group.nibbles(row, b, &block.qs);
                }),
                FormatId::Q5_0 => each_block(bytes, |b, block: &BlockQ5_0| {
                    group.scale(row, b, 0, block.d.0);
                    group.nibbles(row, b, &block.qs);
                    group.bits(row, b, u32::from_le_bytes(block.qh));
                }),
                FormatId::Q5_1 => each_block(bytes, |b, block: &BlockQ5_1| {
                    group.scale(row, b, 0, block.d.0);
                    group.scale(row, b, 1, block.m.0);
                    group.nibbles(row, b, &block.qs);
                    group.bits(row, b, u32::from_le_bytes(block.qh));
                }),
                FormatId::Q8_0 => each_block(bytes, |b, block: &BlockQ8_0| {
                    group.scale(row, b, 0, block.d.0);
                    group.bytes(row, b, &block.qs);
                }),
                FormatId::Q2K => each_block(bytes, |s, block: &BlockQ2K| {
                    group.scale(row, s, 0, block.d.0);
                    group.scale(row, s, 1, block.dmin.0);
                    group.small_scales(row, s, 2, &block.scales);
                    group.two_bits(row, s, &block.qs);
                }),
                FormatId::Q3K => each_block(bytes, |s, block: &BlockQ3K| {
                    group.scale(row, s, 0, block.d.0);
                    group.small_scales(row, s, 1, bytemuck::cast_slice(&block.scales.unpack()));
                    group.two_bits(row, s, &block.qs);
                    group.bit_planes(row, s, &block.hmask);
                }),
                FormatId::Q4K => each_block(bytes, |s, block: &BlockQ4K| {
                    group.k_scales(row, s, [block.d.0, block.dmin.0], block.scales.unpack());
                    group.k_nibbles(row, s, &block.qs);
                }),
                FormatId::Q5K => each_block(bytes, |s, block: &BlockQ5K| {
                    group.k_scales(row, s, [block.d.0, block.dmin.0], block.scales.unpack());
                    group.k_nibbles(row, s, &block.qs);
                    group.bit_planes(row, s, &block.qh);
                }),
                FormatId::Q6K => each_block(bytes, |s, block: &BlockQ6K| {
                    group.scale(row, s, 0, block.d.0);
                    group.small_scales(row, s, 1, bytemuck::cast_slice(&block.scales));
                    group.six_bits(row, s, &block.ql, &block.qh);
                }),
                FormatId::IQ4NL => each_block(bytes, |b, block: &BlockIQ4NL| {
                    group.scale(row, b, 0, block.d.0);
                    group.nibbles(row, b, &block.qs);
                }),
                FormatId::IQ4XS => each_block(bytes, |s, block: &BlockIQ4XS| {
                    group.scale(row, s, 0, block.d.0);
                    group.small_scales(row, s, 1, bytemuck::cast_slice(&block.scales.unpack()));
                    for (sub, qs) in block.qs.as_chunks::<16>().0.iter().enumerate() {
                        group.nibbles(row, s * SUPER_BLOCKS + sub, qs);
                    }
                }),
                FormatId::MXFP4 => each_block(bytes, |b, block: &BlockMXFP4| {
                    group.small_scales(row, b, 0, &[block.e]);
                    group.nibbles(row, b, &block.qs);
                }),
                FormatId::TQ2_0 => each_block(bytes, |s, block: &BlockTQ2_0| {
                    group.scale(row, s, 0, block.d.0);
                    group.two_bits(row, s, &block.qs);
                }),
            }
        }
    }
}

fn each_block<B: bytemuck::Pod>(row: &[u8], mut pack: impl FnMut(usize, &B)) {
    for (i, block) in row.chunks_exact(size_of::<B>()).enumerate() {
        pack(i, &bytemuck::pod_read_unaligned(block));
    }
}

/// A group that is being written.
struct Group<'a> {
    scales: &'a mut [u8],
    codes: &'a mut [u8],
    unit_bytes: usize,
    block_bytes: usize,
}

impl Group<'_> {
    /// Writes f16 vector `which` of a unit of scales.
    fn scale(&mut self, row: usize, unit: usize, which: usize, bits: [u8; 2]) {
        let at = unit * self.unit_bytes + (which * GROUP_ROWS + row) * 2;
        self.scales[at..][..2].copy_from_slice(&bits);
    }

    /// Writes one-byte scales, starting at f16 vector `which` of the unit.
    fn small_scales(&mut self, row: usize, unit: usize, which: usize, values: &[u8]) {
        let at = unit * self.unit_bytes + which * GROUP_ROWS * 2 + row;
        let slots = self.scales[at..].iter_mut().step_by(GROUP_ROWS);
        slots.zip(values).for_each(|(slot, value)| *slot = *value);
    }

    /// Writes the scales of a super-block of Q4_K or Q5_K: `d` and `dmin`, scales and minima.
    fn k_scales(
        &mut self,
        row: usize,
        unit: usize,
        [d, dmin]: [[u8; 2]; 2],
        (scales, mins): ([u8; SUPER_BLOCKS], [u8; SUPER_BLOCKS]),
    ) {
        self.scale(row, unit, 0, d);
        self.scale(row, unit, 1, dmin);
        self.small_scales(row, unit, 2, &scales);
        self.small_scales(row, unit, 2 + SUPER_BLOCKS / 2, &mins);
    }

    /// Copies quads of `quads` to consecutive lines of a block.
    fn lines(&mut self, row: usize, block: usize, first_line: usize, quads: &[u8]) {
        let at = block * self.block_bytes + first_line * LINE + 4 * row;
        let slots = self.codes[at..].chunks_mut(LINE);
        for (slot, quad) in slots.zip(quads.chunks_exact(4)) {
            slot[..4].copy_from_slice(quad);
        }
    }

    /// Writes codes from the order of the 32-element types: element `i` low, element `i + 16` high.
    fn nibbles(&mut self, row: usize, block: usize, qs: &[u8; 16]) {
        self.lines(row, block, 0, qs);
    }

    fn bytes(&mut self, row: usize, block: usize, qs: &[i8; 32]) {
        self.lines(row, block, 0, bytemuck::cast_slice(qs));
    }

    /// Writes codes from the order of Q4_K and Q5_K: two blocks share 32 bytes.
    fn k_nibbles(&mut self, row: usize, super_block: usize, qs: &[u8; 128]) {
        for (pair, bytes) in qs.chunks_exact(32).enumerate() {
            let (first, second) = bytes.split_at(16);
            let mut low = [0; 16];
            let mut high = [0; 16];
            for i in 0..16 {
                low[i] = first[i] & 0x0f | second[i] << 4;
                high[i] = first[i] >> 4 | second[i] & 0xf0;
            }
            let block = super_block * SUPER_BLOCKS + 2 * pair;
            self.nibbles(row, block, &low);
            self.nibbles(row, block + 1, &high);
        }
    }

    /// Writes the last line of a block: bit `i` of `bits` is the high bit of element `i`.
    fn bits(&mut self, row: usize, block: usize, bits: u32) {
        let mut line = [0u8; 4];
        for (lane, byte) in line.iter_mut().enumerate() {
            // Bits lane, lane + 4, ... of the word, moved together.
            let spread = u64::from(bits >> lane & 0x1111_1111);
            let pairs = (spread | spread >> 3) & 0x0303_0303;
            let fours = (pairs | pairs >> 6) & 0x000f_000f;
            *byte = (fours | fours >> 12) as u8;
        }
        self.lines(row, block, self.block_bytes / LINE - 1, &line);
    }

    /// Writes the high bits of a super-block: bit `s` of byte `i` belongs to element `i` of block
    /// `s`.
    fn bit_planes(&mut self, row: usize, super_block: usize, planes: &[u8; 32]) {
        for sub in 0..SUPER_BLOCKS {
            let mut bits = 0;
            for (i, byte) in planes.iter().enumerate() {
                bits |= u32::from(byte >> sub & 1) << i;
            }
            self.bits(row, super_block * SUPER_BLOCKS + sub, bits);
        }
    }

    /// Writes two bits of each element of a block as crumb lines, from line `first_line` on.
    fn crumbs(&mut self, row: usize, block: usize, first_line: usize, two: impl Fn(usize) -> u8) {
        let lines: [u8; 8] = std::array::from_fn(|i| {
            let (line, lane) = (i / 4, i % 4);
            (0..4).fold(0, |byte, j| byte | two(16 * line + 4 * j + lane) << (2 * j))
        });
        self.lines(row, block, first_line, &lines);
    }

    /// Writes codes from the order of Q2_K, Q3_K and TQ2_0: 128 elements share 32 bytes.
    fn two_bits(&mut self, row: usize, super_block: usize, qs: &[u8; 64]) {
        for (half, qs) in qs.chunks_exact(32).enumerate() {
            for quarter in 0..4 {
                let block = super_block * SUPER_BLOCKS + half * 4 + quarter;
                self.crumbs(row, block, 0, |i| qs[i] >> (2 * quarter) & 3);
            }
        }
    }

    /// Writes codes from the order of Q6_K: 128 elements share 64 bytes of low bits and 32 bytes of
    /// high bits.
    fn six_bits(&mut self, row: usize, super_block: usize, ql: &[u8; 128], qh: &[u8; 64]) {
        for (half, (ql, qh)) in ql.chunks_exact(64).zip(qh.chunks_exact(32)).enumerate() {
            for quarter in 0..4 {
                let low: [u8; BLOCK_LEN] = std::array::from_fn(|i| {
                    let byte = ql[(quarter % 2) * 32 + i];
                    if quarter < 2 { byte & 0x0f } else { byte >> 4 }
                });
                let nibbles: [u8; 16] = std::array::from_fn(|i| low[i] | low[i + 16] << 4);
                let block = super_block * SUPER_BLOCKS + half * 4 + quarter;
                self.nibbles(row, block, &nibbles);
                let first_line = Codes::Nibble.block_bytes() / LINE;
                self.crumbs(row, block, first_line, |i| qh[i] >> (2 * quarter) & 3);
            }
        }
    }
}
