//! The conversion of one tensor, chunk by chunk, by several threads.

use std::ops::ControlFlow;
use std::thread;

use kovar_core::{DType, quant};

use super::{QuantizeError, TensorPlan};
use crate::error::FileWriteError;

/// Elements that a thread converts before the results are written: 4 MiB of F32. A multiple of
/// every block length.
const CHUNK: usize = 1 << 20;

/// Converts the tensor of `plan` to its type and passes the bytes to `write`, in order.
pub(super) fn convert(
    plan: &TensorPlan<'_>,
    threads: usize,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    write: &mut dyn FnMut(&[u8]) -> Result<(), FileWriteError>,
) -> Result<(), QuantizeError> {
    let (from, to) = (plan.tensor().dtype(), plan.dtype());
    let source = plan
        .tensor()
        .bytes()
        .map_err(|source| QuantizeError::Codec {
            tensor: plan.tensor().name().to_owned(),
            source,
        })?;
    let mut report = |bytes: usize| match progress(bytes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(QuantizeError::Stopped),
    };
    let threads = threads.max(1);
    let chunk_bytes = CHUNK / from.block_len() * from.block_bytes();
    for batch in source.as_slice().chunks(chunk_bytes * threads) {
        if from == to {
            write(batch)?;
        } else {
            for converted in convert_batch(plan, batch, chunk_bytes)? {
                write(&converted)?;
            }
        }
        report(batch.len())?;
    }
    source.release();
    Ok(())
}

fn convert_batch(
    plan: &TensorPlan<'_>,
    batch: &[u8],
    chunk_bytes: usize,
) -> Result<Vec<Vec<u8>>, QuantizeError> {
    let (from, to) = (plan.tensor().dtype(), plan.dtype());
    let name = plan.tensor().name();
    thread::scope(|scope| {
        let running: Vec<_> = batch
            .chunks(chunk_bytes)
            .map(|chunk| scope.spawn(move || convert_chunk(name, from, chunk, to)))
            .collect();
        let joined = running.into_iter().map(|thread| match thread.join() {
            Ok(converted) => converted,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

fn convert_chunk(
    name: &str,
    from: DType,
    chunk: &[u8],
    to: DType,
) -> Result<Vec<u8>, QuantizeError> {
    let codec = |source| QuantizeError::Codec {
        tensor: name.to_owned(),
        source,
    };
    let elements = chunk.len() / from.block_bytes() * from.block_len();
    let mut values = vec![0.0; elements];
    quant::decode(from, chunk, &mut values).map_err(codec)?;
    // Rows are whole blocks, so `bytes_for` fails only for a size that no tensor can have.
    let mut bytes = vec![0; to.bytes_for(elements).unwrap_or(0)];
    quant::encode(to, &values, &mut bytes).map_err(codec)?;
    // Decoding the result finds elements that were not finite and those that overflow the type.
    quant::decode(to, &bytes, &mut values).map_err(codec)?;
    if values.iter().all(|value| value.is_finite()) {
        Ok(bytes)
    } else {
        Err(QuantizeError::NotFinite {
            tensor: name.to_owned(),
            dtype: to,
        })
    }
}
