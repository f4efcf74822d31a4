//! Cases of `attention`.

use kovar_core::DType;
use kovar_core::ValueId;
use kovar_core::error::GraphError;
use kovar_core::ops::dtypes::CACHES;
use kovar_core::ops::{Attention, Precision};

use super::{Case, FLOATS, Form, Place, Setup, Target, lower, sizes};
use crate::synthetic::Fill;

/// How keys and values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cache {
    /// A storage of exactly their size.
    Whole,
    /// The first rows of a longer state, whose further rows are NaN.
    Prefix,
    /// Heads outside of rows in memory.
    HeadsFirst,
    /// Flat rows of all heads, reshaped. For a batch of 1.
    Flat,
    /// Keys and values in one state, the heads of the values after those of the keys.
    Shared,
    /// A window of a larger state along every dimension.
    Window,
}

#[derive(Clone, Debug)]
struct Query {
    q: DType,
    k: DType,
    v: DType,
    batch: usize,
    tokens: usize,
    rows: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    value_dim: usize,
    causal: bool,
    window: Option<u32>,
    soft_cap: Option<f32>,
    /// The mask's dtype, dims, form and share of excluded elements.
    mask: Option<(DType, Vec<usize>, Form, f64)>,
    sinks: bool,
    kv_len: Option<usize>,
    /// The first token's position, and the number of tokens that are missing at the end.
    positions: (i64, usize),
    cache: Cache,
    q_form: Form,
    target: Target,
    precision: Precision,
}

fn base(kv: DType) -> Query {
    Query {
        q: DType::F32,
        k: kv,
        v: kv,
        batch: 1,
        tokens: 5,
        rows: 23,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        value_dim: 64,
        causal: false,
        window: None,
        soft_cap: None,
        mask: None,
        sinks: false,
        kv_len: None,
        positions: (0, 0),
        cache: Cache::Whole,
        q_form: Form::Contiguous,
        target: Target::Fresh,
        precision: Precision::Default,
    }
}

/// Attributes and lengths, from a bare product to all attributes at once.
fn variations(kv: DType) -> Vec<Query> {
    let base = base(kv);
    let prompt = Query {
        causal: true,
        rows: 40,
        kv_len: Some(21),
        positions: (16, 0),
        cache: Cache::Prefix,
        ..base.clone()
    };
    let mask = |dtype, dims: &[usize], form, share| Some((dtype, dims.to_vec(), form, share));
    vec![
        base.clone(),
        Query {
            causal: true,
            ..base.clone()
        },
        Query {
            causal: true,
            positions: (18, 0),
            ..base.clone()
        },
        prompt.clone(),
        Query {
            tokens: 1,
            positions: (20, 0),
            ..prompt.clone()
        },
        Query {
            tokens: 33,
            rows: 64,
            kv_len: Some(64),
            positions: (31, 0),
            ..prompt.clone()
        },
        Query {
            tokens: 17,
            rows: 300,
            kv_len: Some(290),
            positions: (273, 0),
            ..prompt.clone()
        },
        Query {
            tokens: 1,
            rows: 700,
            kv_len: Some(611),
            positions: (610, 0),
            ..prompt.clone()
        },
        Query {
            tokens: 8,
            positions: (16, 3),
            ..prompt.clone()
        },
        Query {
            tokens: 4,
            positions: (16, 4),
            ..prompt.clone()
        },
        Query {
            kv_len: Some(0),
            ..prompt.clone()
        },
        Query {
            causal: false,
            kv_len: Some(7),
            ..prompt.clone()
        },
        Query {
            window: Some(1),
            ..prompt.clone()
        },
        Query {
            window: Some(6),
            ..prompt.clone()
        },
        Query {
            window: Some(6),
            causal: false,
            ..prompt.clone()
        },
        Query {
            window: Some(100),
            ..prompt.clone()
        },
        Query {
            soft_cap: Some(1.5),
            ..prompt.clone()
        },
        Query {
            soft_cap: Some(30.0),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F32, &[5, 23], Form::Contiguous, 0.3),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F16, &[5, 23], Form::Gaps, 0.3),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F16, &[1, 4, 5, 23], Form::Window, 0.3),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F32, &[1, 4, 1, 23], Form::Contiguous, 0.3),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F32, &[5, 23], Form::Transposed, 0.95),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F32, &[5, 23], Form::Contiguous, 1.0),
            ..base.clone()
        },
        Query {
            mask: mask(DType::F32, &[5, 40], Form::Contiguous, 0.2),
            ..prompt.clone()
        },
        Query {
            sinks: true,
            ..base.clone()
        },
        Query {
            sinks: true,
            window: Some(4),
            ..prompt.clone()
        },
        Query {
            mask: mask(DType::F16, &[1, 1, 5, 40], Form::Contiguous, 0.2),
            sinks: true,
            window: Some(9),
            soft_cap: Some(5.0),
            ..prompt.clone()
        },
        Query {
            heads: 1,
            kv_heads: 1,
            ..prompt.clone()
        },
        Query {
            heads: 3,
            kv_heads: 3,
            ..prompt.clone()
        },
        Query {
            heads: 9,
            kv_heads: 3,
            ..prompt.clone()
        },
        Query {
            heads: 8,
            kv_heads: 1,
            tokens: 1,
            positions: (20, 0),
            ..prompt.clone()
        },
        Query {
            batch: 2,
            ..base.clone()
        },
        Query {
            batch: 2,
            ..prompt.clone()
        },
        Query {
            tokens: 0,
            ..base.clone()
        },
        Query {
            precision: Precision::F32,
            ..prompt.clone()
        },
        Query {
            precision: Precision::F32,
            mask: mask(DType::F32, &[5, 23], Form::Contiguous, 0.3),
            ..base
        },
    ]
}

pub(super) fn tests() -> Vec<Case> {
    let mut queries = Vec::new();
    for &kv in CACHES {
        queries.extend(variations(kv));
        let prompt = Query {
            causal: true,
            rows: 40,
            kv_len: Some(21),
            positions: (16, 0),
            ..base(kv)
        };
        let dims: &[(usize, usize)] = if kv == DType::Q8_0 {
            &[(32, 32), (128, 128), (96, 96), (64, 128)]
        } else {
            &[
                (128, 128),
                (80, 80),
                (33, 33),
                (1, 1),
                (256, 256),
                (64, 96),
                (40, 7),
            ]
        };
        for &(head_dim, value_dim) in dims {
            for tokens in [1, 5] {
                queries.push(Query {
                    head_dim,
                    value_dim,
                    tokens,
                    cache: Cache::Prefix,
                    ..prompt.clone()
                });
            }
        }
        let caches = [
            Cache::Whole,
            Cache::HeadsFirst,
            Cache::Flat,
            Cache::Shared,
            Cache::Window,
        ];
        for cache in caches {
            for tokens in [1, 4] {
                for batch in [1, 2] {
                    if cache == Cache::Flat && batch > 1 {
                        continue;
                    }
                    queries.push(Query {
                        cache,
                        tokens,
                        batch,
                        ..prompt.clone()
                    });
                }
            }
        }
        for q in FLOATS {
            for q_form in [
                Form::Contiguous,
                Form::Offset,
                Form::Gaps,
                Form::Permuted,
                Form::Window,
            ] {
                queries.push(Query {
                    q,
                    q_form,
                    batch: 2,
                    tokens: 3,
                    cache: Cache::Shared,
                    ..prompt.clone()
                });
            }
        }
        for form in [Form::Offset, Form::Gaps, Form::Permuted, Form::Window] {
            queries.push(Query {
                target: Target::Into(form),
                cache: Cache::Prefix,
                batch: 2,
                tokens: 3,
                ..prompt.clone()
            });
        }
        for &v in CACHES.iter().filter(|&&v| v != kv) {
            queries.push(Query {
                v,
                cache: Cache::Prefix,
                tokens: 2,
                ..prompt.clone()
            });
        }
    }
    queries.into_iter().map(case).collect()
}

pub(super) fn perf() -> Vec<Case> {
    let mut cases = Vec::new();
    for kv in [DType::F32, DType::F16, DType::Q8_0] {
        for (tokens, rows) in [(1, 4096), (512, 512), (32, 4096)] {
            cases.push(case(Query {
                tokens,
                rows,
                heads: 32,
                kv_heads: 8,
                head_dim: 128,
                value_dim: 128,
                causal: true,
                positions: ((rows - tokens) as i64, 0),
                ..base(kv)
            }));
        }
    }
    cases
}

fn case(query: Query) -> Case {
    let q = &query;
    let dtypes = if q.k == q.v {
        format!("{}x{}", lower(q.q), lower(q.k))
    } else {
        format!("{}x{}x{}", lower(q.q), lower(q.k), lower(q.v))
    };
    let mut shape = format!(
        "b={},t={},rows={},h={}x{},d={}",
        q.batch, q.tokens, q.rows, q.heads, q.kv_heads, q.head_dim
    );
    if q.value_dim != q.head_dim {
        shape += &format!("x{}", q.value_dim);
    }
    if q.causal || q.window.is_some() {
        shape += &format!(",at={}", q.positions.0);
        if q.positions.1 > 0 {
            shape += &format!(",absent={}", q.positions.1);
        }
    }
    if q.causal {
        shape += ",causal";
    }
    if let Some(len) = q.kv_len {
        shape += &format!(",kv_len={len}");
    }
    if let Some(window) = q.window {
        shape += &format!(",window={window}");
    }
    if let Some(cap) = q.soft_cap {
        shape += &format!(",cap={cap}");
    }
    if let Some((dtype, dims, form, share)) = &q.mask {
        let (dtype, dims) = (lower(*dtype), sizes(dims));
        shape += &format!(",mask={dtype}_{dims}_{}_{share}", form.name());
    }
    if q.sinks {
        shape += ",sinks";
    }
    if q.precision == Precision::F32 {
        shape += ",f32";
    }
    let cache = format!("{:?}", q.cache).to_lowercase();
    let layout = format!("{}-cache_{cache}-{}", q.q_form.name(), q.target.name());
    Case::new(
        "attention",
        "attention",
        (dtypes, shape, layout),
        move |setup| build(&query, setup),
    )
}

fn build(query: &Query, setup: &mut Setup) -> Result<(), GraphError> {
    let &Query {
        batch,
        tokens,
        heads,
        head_dim,
        ..
    } = query;
    let q_dims = [batch, tokens, heads, head_dim];
    let fill = Fill::Gaussian(1.5);
    let q = setup.operand("q", Place::Temp, query.q, &q_dims, query.q_form, fill)?;
    let (k, v) = keys_and_values(query, setup)?;
    let mut inputs = vec![q, k, v];
    if query.causal || query.window.is_some() {
        let (from, absent) = query.positions;
        let there = tokens.saturating_sub(absent);
        let positions = (0..tokens).map(|i| if i < there { from + i as i64 } else { -1 });
        let positions = positions.collect();
        inputs.push(setup.indices("positions", &[tokens], Form::Contiguous, positions)?);
    }
    if let Some((dtype, dims, form, share)) = &query.mask {
        let fill = Fill::Mask(*share);
        inputs.push(setup.operand("mask", Place::Input, *dtype, dims, *form, fill)?);
    }
    if query.sinks {
        let fill = Fill::Gaussian(2.0);
        let form = Form::Contiguous;
        inputs.push(setup.operand("sinks", Place::Weight, DType::F32, &[heads], form, fill)?);
    }
    let kv_len = match query.kv_len {
        Some(len) => Some(setup.scalar("kv_len", query.rows as i32, len as i32)?),
        None => None,
    };
    let attention = Attention {
        causal: query.causal,
        window: query.window,
        soft_cap: query.soft_cap,
        mask: query.mask.is_some(),
        sinks: query.sinks,
        kv_len,
        precision: query.precision,
        ..Attention::new(1.0 / (head_dim as f32).sqrt())
    };
    setup.apply(attention, &inputs, query.target)?;
    Ok(())
}

/// Keys and values. Only the valid rows are filled: the others stay NaN.
fn keys_and_values(query: &Query, setup: &mut Setup) -> Result<(ValueId, ValueId), GraphError> {
    let &Query {
        batch,
        rows,
        kv_heads,
        head_dim,
        value_dim,
        ..
    } = query;
    let shared = query.cache == Cache::Shared && query.k == query.v && head_dim == value_dim;
    let (k, v) = if shared {
        let dims = [batch, rows + 3, 2 * kv_heads, head_dim];
        let state = setup.storage("kv", Place::State, query.k, &dims)?;
        let rows = setup.graph.slice(state, 1, 2..2 + rows)?;
        let k = setup.graph.slice(rows, 2, 0..kv_heads)?;
        (k, setup.graph.slice(rows, 2, kv_heads..2 * kv_heads)?)
    } else {
        let k = cache(query, setup, "k", query.k, head_dim)?;
        (k, cache(query, setup, "v", query.v, value_dim)?)
    };
    let valid = query.kv_len.unwrap_or(rows).min(rows);
    for value in [k, v] {
        let filled = setup.graph.slice(value, 1, 0..valid)?;
        setup.fill(filled, Fill::Gaussian(1.0));
    }
    Ok((k, v))
}

fn cache(
    query: &Query,
    setup: &mut Setup,
    name: &str,
    dtype: DType,
    dim: usize,
) -> Result<ValueId, GraphError> {
    let &Query {
        batch,
        rows,
        kv_heads,
        ..
    } = query;
    let dims = [batch, rows, kv_heads, dim];
    match query.cache {
        Cache::Whole | Cache::Shared => setup.storage(name, Place::State, dtype, &dims),
        Cache::Prefix => {
            let longer = [batch, rows + 9, kv_heads, dim];
            let state = setup.storage(name, Place::State, dtype, &longer)?;
            setup.graph.slice(state, 1, 0..rows)
        }
        Cache::HeadsFirst => setup.window(name, Place::State, dtype, &dims, Form::Permuted),
        Cache::Flat => {
            let flat = [rows, kv_heads * dim];
            let state = setup.storage(name, Place::State, dtype, &flat)?;
            setup.graph.reshape(state, &dims)
        }
        Cache::Window => setup.window(name, Place::State, dtype, &dims, Form::Window),
    }
}
