//! Scaled dot-product attention.
//!
//! Queries of one head of keys are taken together and meet the keys in blocks, with an online
//! softmax (Milakov and Gimelshein 2018, Dao et al. 2022). Two ways share everything but the inner
//! loops:
//! - [`columns`], for many queries: they are the lanes of the vectors, so that no sum crosses
//!   lanes, and both products run at the speed of a matrix product.
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
    way: Way,
    n_threads: usize,
}

enum Way {
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
    // Few queries would leave lanes empty, and one token of few heads threads without work.
    let few = 2 * queries <= lanes || (input.tokens == 1 && items < 2 * n_threads);
    let way = if few {
        Way::Split(split::Split::new(&input, n_threads, lanes))
    } else {
        Way::Columns(columns::Columns::new(&input, n_threads, lanes))
    };
    Ok(Box::new(Attention {
        input,
        way,
        n_threads,
    }))
}

impl Kernel for Attention {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        // SAFETY: by `Kernel::run`'s contract; the scratch memory is that of `scratch_bytes`.
        unsafe {
            match &self.way {
                Way::Columns(columns) => columns.run(&self.input, run),
                Way::Split(split) => split.run(&self.input, run),
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * match &self.way {
            Way::Columns(columns) => columns.scratch_len(self.n_threads),
            Way::Split(split) => split.scratch_len(self.n_threads),
        }
    }

    fn name(&self) -> &'static str {
        match self.way {
            Way::Columns(_) => "attention_columns",
            Way::Split(_) => "attention_split",
        }
    }
}

/// Hands out parts of a worker's scratch memory.
struct Parts {
    next: *mut f32,
}

impl Parts {
    /// Elements that a part of `len` takes, so that parts stay aligned.
    fn size(len: usize) -> usize {
        len.next_multiple_of(MAX_LANES)
    }

    /// The next part of `len` elements.
    fn take(&mut self, len: usize) -> *mut f32 {
        let part = self.next;
        self.next = part.wrapping_add(Self::size(len));
        part
    }
}
