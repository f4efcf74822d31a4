//! Scaled dot-product attention.
//!
//! The queries of one head of keys are computed together. They go through the keys in blocks, with
//! an online softmax (Milakov and Gimelshein 2018, Dao et al. 2022). Two methods share everything
//! but the inner loops:
//! - [`columns`], for many queries: queries are the lanes of the vectors, so no sum crosses lanes,
//!   and both products run at the speed of a matrix product.
//! - [`split`], for few queries: elements of a head are the lanes, and the keys are split between
//!   threads, whose results are then combined.

mod columns;
mod input;
mod split;

use kovar_core::ops::Op;
use kovar_core::ops::dtypes::{CACHES, MASKS};
use kovar_core::{DType, NodeRef};

use super::{Compiled, Entry, F32, FLOATS, I32, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};
use crate::vector::lanes::MAX_LANES;
use input::Input;

/// Keys of a block.
const BLOCK: usize = 64;

pub(super) static ENTRY: Entry = Entry {
    operands,
    result: |_| F32,
    compile,
};

fn operands(op: &Op, i: usize) -> &'static [DType] {
    let Op::Attention(op) = op else {
        return &[];
    };
    match i {
        0 => FLOATS,
        1 | 2 => CACHES,
        _ if op.positions_operand() == Some(i) => I32,
        _ if op.mask_operand() == Some(i) => MASKS,
        _ => F32,
    }
}

struct Attention {
    input: Input,
    method: Method,
    n_threads: usize,
}

enum Method {
    Columns(columns::Columns),
    Split(split::Split),
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let Op::Attention(op) = node.op() else {
        return Err(malformed(resolver, node, "q"));
    };
    let input = Input::new(resolver, node, op)?;
    let n_threads = resolver.shared.pool.n_threads();
    let lanes = crate::vector::lanes(resolver.shared.level);
    let queries = input.tokens * input.group;
    let items = input.batch * input.kv_heads;
    // As columns, few queries would leave lanes empty, and one token of few heads would leave
    // threads without work.
    let few = 2 * queries <= lanes || (input.tokens == 1 && items < 2 * n_threads);
    let method = if few {
        Method::Split(split::Split::new(&input, n_threads, lanes))
    } else {
        Method::Columns(columns::Columns::new(&input, n_threads, lanes))
    };
    Ok(Box::new(Attention {
        input,
        method,
        n_threads,
    }))
}

impl Kernel for Attention {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        // SAFETY: by `Kernel::run`'s contract; the scratch memory has `scratch_bytes` bytes.
        unsafe {
            match &self.method {
                Method::Columns(columns) => columns.run(&self.input, run),
                Method::Split(split) => split.run(&self.input, run),
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * match &self.method {
            Method::Columns(columns) => columns.scratch_len(self.n_threads),
            Method::Split(split) => split.scratch_len(self.n_threads),
        }
    }

    fn name(&self) -> &'static str {
        match self.method {
            Method::Columns(_) => "attention_columns",
            Method::Split(_) => "attention_split",
        }
    }
}

/// Allocates a worker's scratch memory, one buffer after another.
struct Bump {
    next: *mut f32,
}

impl Bump {
    /// Elements that a buffer of `len` takes, so that buffers stay aligned.
    fn size(len: usize) -> usize {
        len.next_multiple_of(MAX_LANES)
    }

    /// The next buffer of `len` elements.
    fn take(&mut self, len: usize) -> *mut f32 {
        let buffer = self.next;
        self.next = buffer.wrapping_add(Self::size(len));
        buffer
    }
}
