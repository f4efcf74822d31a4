//! `y = x`, as a number of the result's dtype if it is another one.

use kovar_core::DType;
use kovar_core::ops::Copy;

use super::{Inputs, OracleError};
use crate::tensor::{Elements, TensorData};

pub(super) fn copy(attributes: &Copy, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (x, to) = (inputs.get(0)?, attributes.dtype);
    if inputs.dtype(0) == to {
        return Ok(x.clone());
    }
    if to.is_integer() {
        let ints = match x.elements() {
            Elements::Int(ints) => ints.iter().map(|&v| integer(v, v != 0, to)).collect(),
            // Towards zero, and 0 of NaN.
            Elements::Float(values) => {
                let ints = values.iter().map(|&v| integer(v as i64, v != 0.0, to));
                ints.collect()
            }
        };
        return Ok(TensorData::ints(x.dims(), ints)?);
    }
    match x.elements() {
        Elements::Float(_) => Ok(x.rounded_to(to)?),
        Elements::Int(ints) => {
            let number = |&v: &i64| match to {
                DType::F64 => v as f64,
                _ => odd(v),
            };
            let values = ints.iter().map(number).collect();
            Ok(TensorData::floats(x.dims(), values)?.rounded_to(to)?)
        }
    }
}

/// The number of an integer dtype, or of Bool, that is nearest to `value`.
fn integer(value: i64, is_true: bool, dtype: DType) -> i64 {
    let (least, greatest) = match dtype {
        DType::Bool => return is_true.into(),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (u8::MIN.into(), u8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    };
    value.clamp(least, greatest)
}

/// The integer itself, or the neighbour in f64 whose last bit is 1: no narrower float is halfway
/// to it, so that it rounds as the integer does.
fn odd(value: i64) -> f64 {
    let near = value as f64;
    match (near as i128).cmp(&value.into()) {
        std::cmp::Ordering::Equal => near,
        _ if near.to_bits() & 1 == 1 => near,
        std::cmp::Ordering::Less => near.next_up(),
        std::cmp::Ordering::Greater => near.next_down(),
    }
}
