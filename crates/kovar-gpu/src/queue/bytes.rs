//! Writes, fills and copies of ranges that begin and end at any byte. Graphics APIs only clear
//! whole words and copy them between different buffers. Small kernels of ours do the rest.

use std::ops::Range;
use std::sync::Arc;

use super::engine::{Engine, Order, Pending};
use super::progress::Failure;
use crate::kernel::{Access, Features, Kernel, Params, grid};
use crate::seam::{BindingKind, Buffer, BufferRange, BufferUse};

static FILL: Kernel = Kernel {
    file: "bytes_fill",
    entry: "bytes_fill",
    bindings: &[Access::Write],
};

static COPY: Kernel = Kernel {
    file: "bytes_copy",
    entry: "bytes_copy",
    bindings: &[Access::Write, Access::Read],
};

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;

/// The largest range that one dispatch processes, in bytes.
const MAX_RANGE: u64 = 1 << 30;

/// Bytes of a slot of parameters, and the number of slots, which are used in turn.
const PARAMS_BYTES: u64 = 256;
const PARAMS_SLOTS: u64 = 64;

const ALL: u32 = u32::MAX;

/// A byte of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub buffer: &'a Arc<dyn Buffer>,
    pub offset: u64,
}

impl Place<'_> {
    fn skip(self, bytes: u64) -> Self {
        Self {
            offset: self.offset + bytes,
            ..self
        }
    }
}

/// The numbers of bytes before the whole words of a range, in them, and after them.
pub(super) fn split(offset: u64, len: u64) -> (u64, u64, u64) {
    let head = (offset.next_multiple_of(4) - offset).min(len);
    let tail = (len - head) % 4;
    (head, len - head - tail, tail)
}

/// The bits of the bytes in `bytes` of a word.
fn mask(bytes: Range<u64>) -> u32 {
    bytes.fold(0, |mask, byte| mask | 0xff << (8 * byte))
}

impl Engine {
    /// Writes at most three bytes, all within one word.
    pub(super) fn patch(
        &self,
        order: &mut Order,
        to: Place<'_>,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let first = to.offset % 4;
        let mut word = [0; 4];
        for (byte, at) in bytes.iter().zip(first as usize..4) {
            word[at] = *byte;
        }
        let mask = mask(first..first + bytes.len() as u64);
        let words = to.offset / 4..to.offset / 4 + 1;
        self.fill_words(
            order,
            to.buffer,
            words,
            u32::from_le_bytes(word),
            [mask, ALL],
        )
    }

    /// Sets bytes to `byte`.
    pub(super) fn fill_bytes(
        &self,
        order: &mut Order,
        to: Place<'_>,
        len: u64,
        byte: u8,
    ) -> Result<(), Failure> {
        if len == 0 {
            return Ok(());
        }
        let end = to.offset + len;
        let value = u32::from_ne_bytes([byte; 4]);
        let (head, whole, tail) = split(to.offset, len);
        if byte == 0 && whole > 0 {
            self.fill_edge(order, to, head, value)?;
            let clear = Pending::Clear {
                buffer: to.buffer.clone(),
                offset: to.offset + head,
                len: whole,
            };
            self.push(order, "a fill", clear)?;
            return self.fill_edge(order, to.skip(head + whole), tail, value);
        }
        let words = to.offset / 4..end.div_ceil(4);
        let last = match end % 4 {
            0 => ALL,
            end => mask(0..end),
        };
        let masks = [mask(to.offset % 4..4), last];
        self.fill_words(order, to.buffer, words, value, masks)
    }

    fn fill_edge(
        &self,
        order: &mut Order,
        to: Place<'_>,
        len: u64,
        value: u32,
    ) -> Result<(), Failure> {
        let bytes = value.to_ne_bytes();
        self.patch(order, to, &bytes[..len as usize])
    }

    /// Sets words to `value`. Of the first and the last word, only the bits of `masks` change.
    fn fill_words(
        &self,
        order: &mut Order,
        buffer: &Arc<dyn Buffer>,
        words: Range<u64>,
        value: u32,
        masks: [u32; 2],
    ) -> Result<(), Failure> {
        let most = self.max_range() / 4;
        let mut start = words.start;
        while start < words.end {
            let end = words.end.min(start + most);
            let (range, skip) = self.window(start * 4, (end - start) * 4);
            let params = Params::new()
                .u32((end - start) as u32)
                .u32(value)
                .u32(if start == words.start { masks[0] } else { ALL })
                .u32(if end == words.end { masks[1] } else { ALL })
                .u32((skip / 4) as u32);
            let target = BufferRange {
                buffer: buffer.clone(),
                bytes: range,
            };
            self.dispatch(
                order,
                &FILL,
                &[BindingKind::Write],
                params,
                vec![target],
                end - start,
            )?;
            start = end;
        }
        Ok(())
    }

    /// Copies bytes. Ranges that overlap are copied as if through another buffer.
    pub(super) fn copy_bytes(
        &self,
        order: &mut Order,
        from: Place<'_>,
        to: Place<'_>,
        len: u64,
    ) -> Result<(), Failure> {
        if len == 0 {
            return Ok(());
        }
        let same = std::ptr::addr_eq(Arc::as_ptr(from.buffer), Arc::as_ptr(to.buffer));
        if same && from.offset.abs_diff(to.offset) < len {
            if from.offset == to.offset {
                return Ok(());
            }
            // Through memory at the same position within a word, so that most words are copied
            // whole.
            let skew = from.offset % 4;
            let scratch = self
                .device
                .create_buffer(skew + len, BufferUse::Storage)
                .map_err(|error| self.failure(order, "a copy", error))?;
            let scratch = Place {
                buffer: &scratch,
                offset: skew,
            };
            self.copy_bytes(order, from, scratch, len)?;
            return self.copy_bytes(order, scratch, to, len);
        }
        if same || from.offset % 4 != to.offset % 4 {
            return self.copy_by_kernel(order, from, to, len, same);
        }
        let (head, whole, tail) = split(to.offset, len);
        self.copy_by_kernel(order, from, to, head, false)?;
        if whole > 0 {
            let copy = Pending::Copy {
                from: from.buffer.clone(),
                from_offset: from.offset + head,
                to: to.buffer.clone(),
                to_offset: to.offset + head,
                len: whole,
            };
            self.push(order, "a copy", copy)?;
        }
        let done = head + whole;
        self.copy_by_kernel(order, from.skip(done), to.skip(done), tail, false)
    }

    fn copy_by_kernel(
        &self,
        order: &mut Order,
        mut from: Place<'_>,
        mut to: Place<'_>,
        mut len: u64,
        same: bool,
    ) -> Result<(), Failure> {
        let source = if same {
            BindingKind::Write
        } else {
            BindingKind::Read
        };
        while len > 0 {
            // Each copy ends with a whole word of the target, so that no word is written twice.
            let bytes = len.min(self.max_range() - to.offset % 4);
            let (target, at) = self.window(to.offset, bytes);
            let (range, skip) = self.window(from.offset, bytes);
            let skew = to.offset % 4;
            let words = (skew + bytes).div_ceil(4);
            let params = Params::new()
                .u32(words as u32)
                .u32((at / 4) as u32)
                .u32(skew as u32)
                .u32(bytes as u32)
                .u32(skip as u32);
            let ranges = [(to.buffer, target), (from.buffer, range)];
            let ranges = ranges.map(|(buffer, bytes)| BufferRange {
                buffer: buffer.clone(),
                bytes,
            });
            let kinds = [BindingKind::Write, source];
            self.dispatch(order, &COPY, &kinds, params, ranges.into(), words)?;
            (from, to) = (from.skip(bytes), to.skip(bytes));
            len -= bytes;
        }
        Ok(())
    }

    /// The largest range that a dispatch processes, in bytes: whole words, below the binding limit
    /// even if the range does not begin at the binding alignment.
    fn max_range(&self) -> u64 {
        let caps = self.device.caps();
        let alignment = caps.binding_alignment.max(4);
        let limit = caps.max_binding_bytes.min(MAX_RANGE);
        (limit.saturating_sub(2 * alignment) & !3).max(4)
    }

    /// The range to bind for bytes of a buffer, and the offset of the bytes in it.
    fn window(&self, offset: u64, len: u64) -> (Range<u64>, u64) {
        let start = offset & !(self.device.caps().binding_alignment.max(4) - 1);
        (start..(offset + len).next_multiple_of(4), offset - start)
    }

    /// Appends a dispatch with one invocation for each of `words` words.
    fn dispatch(
        &self,
        order: &mut Order,
        kernel: &'static Kernel,
        kinds: &[BindingKind],
        params: Params,
        ranges: Vec<BufferRange>,
        words: u64,
    ) -> Result<(), Failure> {
        let params = params.finish();
        let what = kernel.entry;
        let mut bindings = vec![BindingKind::Uniform];
        bindings.extend(kinds);
        let constants = [("WORKGROUP", WORKGROUP)];
        let pipeline = self
            .pipelines
            .get(
                self.device.as_ref(),
                kernel,
                Features::NONE,
                &constants,
                bindings,
            )
            .map_err(|error| self.failure(order, what, error))?;
        let mut all = vec![self.place_params(order, what, &params)?];
        all.extend(ranges);
        let bindings = self
            .device
            .create_bind_group(&pipeline, &all)
            .map_err(|error| self.failure(order, what, error))?;
        let workgroups = words.div_ceil(u64::from(WORKGROUP)) as u32;
        let dispatch = Pending::Dispatch {
            pipeline,
            bindings,
            workgroups: grid(workgroups, self.device.caps().max_workgroups),
        };
        self.push(order, what, dispatch)
    }

    /// Appends a copy of parameters to the next slot.
    fn place_params(
        &self,
        order: &mut Order,
        what: &'static str,
        params: &[u8],
    ) -> Result<BufferRange, Failure> {
        let buffer = match &order.params {
            Some(buffer) => buffer.clone(),
            None => {
                let bytes = PARAMS_BYTES * PARAMS_SLOTS;
                let made = self.device.create_buffer(bytes, BufferUse::Uniform);
                let buffer = made.map_err(|error| self.failure(order, what, error))?;
                order.params.insert(buffer).clone()
            }
        };
        let offset = order.next_params * PARAMS_BYTES;
        order.next_params = (order.next_params + 1) % PARAMS_SLOTS;
        let staged = self.stage(order, params)?;
        let copy = Pending::Copy {
            from: staged.buffer,
            from_offset: staged.offset,
            to: buffer.clone(),
            to_offset: offset,
            len: params.len() as u64,
        };
        self.push(order, what, copy)?;
        Ok(BufferRange {
            buffer,
            bytes: offset..offset + params.len() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_at_whole_words() {
        for offset in 0..9 {
            for len in 0..20 {
                let (head, whole, tail) = split(offset, len);
                assert_eq!(head + whole + tail, len);
                assert!(head < 4 && tail < 4 && whole % 4 == 0);
                assert!(whole == 0 || (offset + head) % 4 == 0);
                // An edge lies within one word.
                assert!(head == 0 || offset / 4 == (offset + head - 1) / 4);
            }
        }
    }

    #[test]
    fn masks_cover_their_bytes() {
        assert_eq!(mask(0..4), ALL);
        assert_eq!(mask(1..3), 0x00ff_ff00);
        assert_eq!(mask(2..2), 0);
    }
}
