//! Indices in the order of the elements, or the first of them.
//!
//! Rows that fit a workgroup's memory are sorted there. The first few indices of longer rows are
//! found by rounds: the first elements of each block of a row go on to the next round. If more
//! indices are needed, whole rows are sorted in scratch memory, with a dispatch for each exchange
//! between blocks.

use kovar_core::NodeRef;
use kovar_core::backend::Reason;
use kovar_core::ops::{Op, SortOrder};

use super::rows::{Rows, dtypes, refuse_rows, rows};
use super::{Entry, FLOATS, I32, Planned, no_kernel};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::program::Resolver;
use crate::scratch;
use crate::seam::Caps;
use crate::view::{Operand, View};

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;
/// The base-2 logarithm of the largest block that a workgroup sorts.
const LOG2_BLOCK: u32 = 11;
const BLOCK: u32 = 1 << LOG2_BLOCK;
/// The base-2 logarithm of the fewest elements of a workgroup: two for each invocation.
const LOG2_GROUP: u32 = 9;
/// The most words of scratch memory for rows that are sorted together.
const SCRATCH_WORDS: u64 = 1 << 24;

static KERNEL: Kernel = Kernel::new("argsort", 1);

static EXCHANGE: Kernel = Kernel::new("argsort", 0).entry("argsort_exchange");

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| I32,
    refuses,
    plan,
};

fn refuses(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    let method = node.input(0).and_then(|x| {
        let n = u32::try_from(x.dims().from_end(0)).ok()?;
        let k = u32::try_from(node.output().dims().from_end(0)).ok()?;
        Method::of(n, k)
    });
    let fits = |method: &Method| method.words() * 4 <= caps.max_binding_bytes;
    if !method.is_some_and(|method| fits(&method)) {
        return Some(Reason::Layout {
            op: node.op().name(),
            operand: node.op().operand_name(0),
        });
    }
    refuse_rows(caps, node)
}

/// How rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// In a workgroup.
    Block { n: u32 },
    /// By rounds that keep the first few of each block.
    Rounds { n: u32, keep: u32 },
    /// As a whole, padded to a power of two.
    Whole { padded: u32 },
}

impl Method {
    /// For the first `k` indices of rows of `n`.
    fn of(n: u32, k: u32) -> Option<Self> {
        Some(if n <= BLOCK {
            Method::Block { n }
        } else if k <= BLOCK / 2 {
            Method::Rounds { n, keep: k }
        } else {
            let padded = n.checked_next_power_of_two()?;
            Method::Whole { padded }
        })
    }

    /// Words of scratch memory for a row.
    fn words(self) -> u64 {
        2 * match self {
            Method::Block { .. } => 0,
            Method::Rounds { n, keep } => {
                let first = u64::from(n.div_ceil(BLOCK)) * u64::from(keep);
                let second = first.div_ceil(BLOCK.into()) * u64::from(keep);
                first + second
            }
            Method::Whole { padded } => u64::from(padded),
        }
    }
}

/// A run of the kernel over rows of `n` elements or pairs.
struct Sort<'a> {
    rows: &'a Rows,
    /// The first row, and the number of rows.
    range: (u32, u32),
    n: u32,
    blocks: u32,
    log2_block: u32,
    stages: (u32, u32),
    row_stage: u32,
    keep: u32,
    descending: bool,
    /// Whether it reads pairs, and whether it writes pairs.
    pairs: (bool, bool),
    out: (Operand, View),
    source: (Operand, View),
}

impl<'a> Sort<'a> {
    /// A run that sorts each block of rows of `n` separately.
    fn blocks(rows: &'a Rows, range: (u32, u32), n: u32, descending: bool) -> Option<Self> {
        let ([y, x], &[y_view, x_view]) = (&rows.operands[..], &rows.views[..]) else {
            return None;
        };
        let block = n.max(2).checked_next_power_of_two()?.min(BLOCK);
        Some(Self {
            rows,
            range,
            n,
            blocks: n.div_ceil(block).max(1),
            log2_block: block.ilog2(),
            stages: (2, block),
            row_stage: block,
            keep: y.layout.dims().from_end(0).try_into().ok()?,
            descending,
            pairs: (false, false),
            out: (y.clone(), y_view),
            source: (x.clone(), x_view),
        })
    }

    fn params(&self, log2_group: u32) -> Params {
        let [x, y, z] = self.rows.outer;
        let params = Params::new().vec4([x, y, z, self.n]);
        let params = params.view(self.out.1).view(self.source.1);
        let params = params.u32(self.range.0).u32(self.range.1);
        let params = params.u32(self.log2_block).u32(log2_group).u32(self.blocks);
        let params = params.u32(self.stages.0).u32(self.stages.1);
        let params = params.u32(self.row_stage).u32(self.keep);
        params.u32(self.descending.into())
    }

    fn dispatch(self) -> Option<Dispatch> {
        let log2_group = self.log2_block.max(LOG2_GROUP);
        let params = self.params(log2_group).finish();
        let blocks = self.range.1.checked_mul(self.blocks)?;
        let operands = vec![self.out.0, self.source.0];
        let mut constants = dtypes(&operands);
        constants.push(("FROM_PAIRS", self.pairs.0.into()));
        constants.push(("TO_PAIRS", self.pairs.1.into()));
        Some(Dispatch {
            kernel: &KERNEL,
            features: Features::NONE,
            constants,
            params,
            operands,
            workgroups: blocks.div_ceil(1 << (log2_group - self.log2_block)),
        })
    }

    /// An exchange of the last stage between pairs that are `reach` apart.
    fn exchange(&self, reach: u32) -> Option<Dispatch> {
        let params = Sort {
            keep: reach,
            out: self.out.clone(),
            source: self.source.clone(),
            ..*self
        };
        let exchanges = self.range.1.checked_mul(self.n / 2)?;
        Some(Dispatch {
            kernel: &EXCHANGE,
            features: Features::NONE,
            constants: Vec::new(),
            params: params.params(LOG2_BLOCK).finish(),
            operands: vec![self.out.0.clone()],
            workgroups: exchanges.div_ceil(WORKGROUP),
        })
    }
}

/// `count` pairs in scratch memory, from pair `first` on.
fn pairs(first: u64, count: u64) -> Option<(Operand, View)> {
    let word = |pair: u64| usize::try_from(2 * pair).ok();
    let operand = scratch::operand(word(first)?..word(first + count)?)?;
    Some((operand, View::default()))
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Argsort(op) = node.op() else {
        return Err(refused());
    };
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    let plan = || {
        let n = u32::try_from(x.layout.dims().from_end(0)).ok()?;
        let k = u32::try_from(y.layout.dims().from_end(0)).ok()?;
        let method = Method::of(n, k)?;
        let descending = op.order == SortOrder::Descending;
        let together = match method.words() {
            0 => u64::from(u32::MAX),
            words => (SCRATCH_WORDS.min(caps.max_binding_bytes / 4) / words).max(1),
        };
        let mut dispatches = Vec::new();
        for rows in rows(caps, &[y, x], 0)? {
            let mut first = 0;
            while first < rows.count() {
                let left = rows.count() - first;
                let range = (first, u32::try_from(together).map_or(left, |n| n.min(left)));
                let sort = Sort::blocks(&rows, range, n, descending)?;
                plan_rows(method, sort, &mut dispatches)?;
                first += range.1;
            }
        }
        Some(dispatches)
    };
    plan().ok_or_else(refused)
}

/// Plans rows that are sorted together.
fn plan_rows(method: Method, sort: Sort<'_>, dispatches: &mut Vec<Dispatch>) -> Option<()> {
    let (rows, range, descending) = (sort.rows, sort.range, sort.descending);
    let n_rows = u64::from(range.1);
    match method {
        Method::Block { .. } => dispatches.push(sort.dispatch()?),
        Method::Rounds { n, keep } => {
            // Rounds alternate between two areas of scratch memory.
            let first_area = n_rows * u64::from(n.div_ceil(BLOCK)) * u64::from(keep);
            let (mut sort, mut from_start) = (sort, false);
            while sort.blocks > 1 {
                let kept = sort.blocks.checked_mul(keep)?;
                let start = if from_start { first_area } else { 0 };
                let left = pairs(start, n_rows * u64::from(kept))?;
                sort.pairs.1 = true;
                sort.out = left.clone();
                dispatches.push(sort.dispatch()?);
                sort = Sort::blocks(rows, range, kept, descending)?;
                sort.pairs.0 = true;
                sort.source = left;
                from_start = !from_start;
            }
            dispatches.push(sort.dispatch()?);
        }
        Method::Whole { padded } => {
            let area = pairs(0, n_rows * u64::from(padded))?;
            let blocks = padded / BLOCK;
            dispatches.push(
                Sort {
                    blocks,
                    row_stage: padded,
                    keep: BLOCK,
                    pairs: (false, true),
                    out: area.clone(),
                    ..sort
                }
                .dispatch()?,
            );
            let mut stage = 2 * BLOCK;
            while stage <= padded {
                let mut merge = Sort::blocks(rows, range, padded, descending)?;
                let is_last = stage == padded;
                merge.stages = (stage, stage);
                merge.row_stage = padded;
                merge.pairs = (true, !is_last);
                merge.source = area.clone();
                let y = std::mem::replace(&mut merge.out, area.clone());
                let mut reach = stage / 2;
                while reach >= BLOCK {
                    dispatches.push(merge.exchange(reach)?);
                    reach /= 2;
                }
                if is_last {
                    merge.out = y;
                } else {
                    merge.keep = BLOCK;
                }
                dispatches.push(merge.dispatch()?);
                stage = match stage.checked_mul(2) {
                    Some(next) => next,
                    None => break,
                };
            }
        }
    }
    Some(())
}
