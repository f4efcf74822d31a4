//! Any sequence of builder calls makes a graph or is refused; a graph that builds holds what is
//! promised of it, compiles with its plan checked, and runs.
#![no_main]

use std::sync::{Arc, OnceLock};

use arbitrary::{Result, Unstructured};
use kovar_core::backend::Backend;
use kovar_core::ops::*;
use kovar_core::{DType, Dims, Graph, HostBytes, ScalarId, StorageKind, ValueId};
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_runtime::{CompileError, HostSlice, PlaceError, Policy, Session, compile};
use libfuzzer_sys::fuzz_target;

/// Graphs with more bytes are not compiled.
const MAX_BYTES: usize = 1 << 20;

/// Graphs that take more work are not run.
const MAX_FLOPS: u64 = 1 << 22;

fuzz_target!(|data: &[u8]| {
    let mut choices = Unstructured::new(data);
    let mut graph = Graph::new();
    let _ = build(&mut graph, &mut choices);
    check(&graph);
    run(&graph);
});

/// Mostly small, now and then a size that overflows.
fn size(u: &mut Unstructured) -> Result<usize> {
    Ok(match u.arbitrary::<u8>()? {
        0..=200 => u.int_in_range(0..=9)?,
        201..=240 => 32 * u.int_in_range(0..=8)?,
        241..=250 => u.int_in_range(0..=300)?,
        _ => u.arbitrary()?,
    })
}

fn sizes(u: &mut Unstructured, max: usize) -> Result<Vec<usize>> {
    let rank = u.int_in_range(0..=max)?;
    (0..rank).map(|_| size(u)).collect()
}

fn dims(u: &mut Unstructured) -> Result<Dims> {
    Ok(Dims::new(&sizes(u, 6)?).unwrap_or_else(|| Dims::new(&[1]).unwrap()))
}

fn pair(u: &mut Unstructured) -> Result<[usize; 2]> {
    Ok([size(u)?, size(u)?])
}

fn dtype(u: &mut Unstructured) -> Result<DType> {
    if u.ratio(2, 3)? {
        Ok(DType::F32)
    } else {
        Ok(*u.choose(&DType::ALL)?)
    }
}

fn precision(u: &mut Unstructured) -> Result<Precision> {
    Ok(*u.choose(&[Precision::Default, Precision::F32])?)
}

fn pairing(u: &mut Unstructured) -> Result<Pairing> {
    Ok(*u.choose(&[Pairing::Normal, Pairing::Neox])?)
}

fn scalar(u: &mut Unstructured, scalars: &[ScalarId]) -> Result<Option<ScalarId>> {
    if scalars.is_empty() || u.arbitrary()? {
        Ok(None)
    } else {
        Ok(Some(*u.choose(scalars)?))
    }
}

fn op(u: &mut Unstructured, scalars: &[ScalarId]) -> Result<Op> {
    Ok(match u.int_in_range(0..=37)? {
        0 => Op::Arange(Arange {
            start: u.arbitrary()?,
            step: u.arbitrary()?,
            n: size(u)?,
            dtype: dtype(u)?,
        }),
        1 => Op::Argmax(Argmax),
        2 => Op::Argsort(Argsort {
            order: *u.choose(&[SortOrder::Ascending, SortOrder::Descending])?,
            k: if u.arbitrary()? { Some(size(u)?) } else { None },
        }),
        3 | 4 => Op::Attention(Attention {
            scale: u.arbitrary()?,
            causal: u.arbitrary()?,
            window: u.arbitrary()?,
            soft_cap: u.arbitrary()?,
            mask: u.arbitrary()?,
            sinks: u.arbitrary()?,
            kv_len: scalar(u, scalars)?,
            precision: precision(u)?,
        }),
        5 => Op::Binary(Binary {
            kind: *u.choose(BinaryKind::ALL)?,
        }),
        6 => Op::Concat(Concat { dim: size(u)? }),
        7 => Op::Conv2d(Conv2d {
            stride: pair(u)?,
            padding: pair(u)?,
            dilation: pair(u)?,
            groups: size(u)?,
            precision: precision(u)?,
        }),
        8 => Op::ConvTranspose2d(ConvTranspose2d {
            stride: pair(u)?,
            padding: pair(u)?,
            output_padding: pair(u)?,
            dilation: pair(u)?,
            groups: size(u)?,
            precision: precision(u)?,
        }),
        9 => Op::Copy(Copy { dtype: dtype(u)? }),
        10 | 11 => Op::Gemm(Gemm {
            alpha: u.arbitrary()?,
            beta: u.arbitrary()?,
            transpose_a: u.arbitrary()?,
            transpose_b: u.arbitrary()?,
            precision: precision(u)?,
        }),
        12 => Op::GetRows(GetRows),
        13 => Op::Glu(Glu {
            kind: *u.choose(GluKind::ALL)?,
        }),
        14 => Op::GroupNorm(GroupNorm {
            groups: size(u)?,
            eps: u.arbitrary()?,
        }),
        15 => Op::L2Norm(L2Norm {
            eps: u.arbitrary()?,
        }),
        16 => Op::LayerNorm(LayerNorm {
            eps: u.arbitrary()?,
        }),
        17 | 18 => Op::Matmul(Matmul {
            precision: precision(u)?,
        }),
        19 => Op::MatmulI8(MatmulI8),
        20 => Op::MatmulId(MatmulId {
            precision: precision(u)?,
        }),
        21 => Op::Pad(Pad {
            before: dims(u)?,
            after: dims(u)?,
            value: u.arbitrary()?,
        }),
        22 => Op::Pool2d(Pool2d {
            kind: if u.arbitrary()? {
                PoolKind::Max
            } else {
                PoolKind::Average {
                    count_include_pad: u.arbitrary()?,
                }
            },
            kernel: pair(u)?,
            stride: pair(u)?,
            padding: pair(u)?,
        }),
        23 => Op::QuantizeRows(QuantizeRows),
        24 => Op::Reduce(Reduce {
            kind: *u.choose(ReduceKind::ALL)?,
        }),
        25 => Op::Repeat(Repeat { counts: dims(u)? }),
        26 => Op::RmsNorm(RmsNorm {
            eps: u.arbitrary()?,
        }),
        27 => Op::Rope(Rope {
            pairing: pairing(u)?,
        }),
        28 => Op::RopeApply(RopeApply {
            pairing: pairing(u)?,
        }),
        29 => Op::RowScales(RowScales),
        30 => Op::SetRows(SetRows),
        31 => Op::Softmax(Softmax {
            scale: u.arbitrary()?,
            max_bias: u.arbitrary()?,
        }),
        32 => Op::TimestepEmbedding(TimestepEmbedding {
            dim: size(u)?,
            flip_sin_to_cos: u.arbitrary()?,
            downscale_freq_shift: u.arbitrary()?,
            scale: u.arbitrary()?,
            max_period: u.arbitrary()?,
        }),
        33 => Op::TokenShift(TokenShift {
            n_valid: scalar(u, scalars)?,
        }),
        34 => Op::Upscale(Upscale {
            size: pair(u)?,
            mode: if u.arbitrary()? {
                UpscaleMode::Nearest
            } else {
                UpscaleMode::Bilinear {
                    align_corners: u.arbitrary()?,
                }
            },
        }),
        35 => Op::Unary(Unary {
            kind: match u.int_in_range(0..=4)? {
                0 => UnaryKind::LeakyRelu {
                    slope: u.arbitrary()?,
                },
                1 => UnaryKind::Clamp {
                    min: u.arbitrary()?,
                    max: u.arbitrary()?,
                },
                _ => *u.choose(UnaryKind::ALL)?,
            },
        }),
        36 => Op::Wkv7(Wkv7 {
            n_valid: scalar(u, scalars)?,
        }),
        _ => Op::Scale(Scale {
            scale: u.arbitrary()?,
        }),
    })
}

/// Calls builders as `u` says, until it has no more to say.
fn build(graph: &mut Graph, u: &mut Unstructured) -> Result<()> {
    let mut values: Vec<ValueId> = Vec::new();
    let mut scalars = Vec::new();
    for step in 0..64 {
        let name = format!("v{}", if u.ratio(1, 30)? { 0 } else { step });
        let some = |u: &mut Unstructured, values: &[ValueId]| match values {
            [] => Err(arbitrary::Error::NotEnoughData),
            _ => u.choose(values).copied(),
        };
        let made = match u.int_in_range(0..=13)? {
            0..=2 => {
                let (dtype, dims) = (dtype(u)?, sizes(u, 7)?);
                match u.int_in_range(0..=3)? {
                    0 => graph.weight(&name, dtype, &dims),
                    1 => graph.input(&name, dtype, &dims),
                    2 => graph.state(&name, dtype, &dims),
                    _ => graph.temp(&name, dtype, &dims),
                }
            }
            3 => {
                let max = u.arbitrary()?;
                scalars.extend(graph.scalar(&name, max));
                continue;
            }
            4 => {
                let value = some(u, &values)?;
                let (dim, from, to) = (size(u)?, size(u)?, size(u)?);
                graph.slice(value, dim, from..to)
            }
            5 => graph.permute(some(u, &values)?, &sizes(u, 6)?),
            6 => graph.reshape(some(u, &values)?, &sizes(u, 6)?),
            7 => graph.broadcast_to(some(u, &values)?, &sizes(u, 6)?),
            8 => {
                let _ = graph.set_output(some(u, &values)?, &name);
                continue;
            }
            kind => {
                let op = op(u, &scalars)?;
                let n = u.int_in_range(0..=7)?;
                let inputs = (0..n)
                    .map(|_| some(u, &values))
                    .collect::<Result<Vec<_>>>()?;
                match kind {
                    9 => graph.apply_in_place(op, &inputs),
                    10 => {
                        let destination = some(u, &values)?;
                        graph.apply_into(op, &inputs, destination)
                    }
                    _ => graph.apply(op, &inputs),
                }
            }
        };
        match made {
            Ok(value) => values.push(value),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    Ok(())
}

/// What a graph promises.
fn check(graph: &Graph) {
    for id in graph.value_ids() {
        let value = graph.value(id).unwrap();
        let storage = graph.storage_of(id).unwrap();
        let span = value.byte_span();
        assert!(span.start <= span.end && span.end <= storage.bytes);
        assert!(value.dims().elements().is_some());
    }
    for id in graph.node_ids() {
        let node = graph.node(id).unwrap();
        let cost = node.cost();
        assert!(node.n_inputs() == node.inputs().len() && cost.flops < u64::MAX);
        for written in node.writes() {
            let kind = node.storage_of(written).kind;
            assert!(!matches!(kind, StorageKind::Weight | StorageKind::Input));
        }
    }
}

fn cpu() -> Arc<dyn Backend> {
    static CPU: OnceLock<Arc<CpuBackend>> = OnceLock::new();
    CPU.get_or_init(|| Arc::new(CpuBackend::new(CpuOptions::new().threads(1)).unwrap()))
        .clone()
}

/// Compiles and runs a graph of a bearable size on zeros.
fn run(graph: &Graph) {
    let bytes = graph
        .storages()
        .iter()
        .try_fold(0usize, |sum, storage| sum.checked_add(storage.bytes));
    let flops = graph.node_ids().try_fold(0u64, |sum, id| {
        sum.checked_add(graph.node(id)?.cost().flops)
    });
    if bytes.is_none_or(|bytes| bytes > MAX_BYTES) || flops.is_none_or(|flops| flops > MAX_FLOPS) {
        return;
    }
    let session = Session::new(vec![cpu()]).unwrap();
    let zeros = vec![0; MAX_BYTES];
    for storage in graph.storages() {
        if storage.kind == StorageKind::Weight {
            let bytes = HostBytes::new(Arc::new(zeros[..storage.bytes].to_vec()));
            let sizes: &[usize] = &storage.dims;
            let _ = session.add_weight(&storage.name, storage.dtype, sizes, bytes);
        }
    }
    let mut policy = Policy::default();
    policy.check_plan = true;
    let plan = match compile(graph, &session, &policy) {
        Ok(plan) => plan,
        Err(CompileError::Place(PlaceError::Invalid(violation))) => panic!("{violation}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let inputs: Vec<_> = graph
        .storages()
        .iter()
        .filter(|storage| storage.kind == StorageKind::Input)
        .filter_map(|storage| {
            Some((
                plan.input(&storage.name)?,
                HostSlice::raw(&zeros[..storage.bytes]),
            ))
        })
        .collect();
    let scalars: Vec<i32> = graph.scalars().iter().map(|_| 0).collect();
    if let Err(error) = plan.run(&inputs, &scalars) {
        assert!(!error.to_string().is_empty());
    }
}
