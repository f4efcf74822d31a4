//! Reference codecs of the plain dtypes, and casts between them.
//!
//! A number becomes an element as follows, in [`cast`] and in every operation that casts:
//!
//! | to | from | rule |
//! |---|---|---|
//! | F64, F32, F16, BF16, F8_E5M2 | any | to nearest, ties to even, rounded once; beyond the range infinite |
//! | F8_E4M3 | any | the same, but NaN beyond the range: 464 still rounds to 448 |
//! | I8, U8, I16, I32, I64 | floats | towards zero, then the nearest integer in range; 0 of NaN |
//! | I8, U8, I16, I32, I64 | integers, Bool | the nearest integer in range |
//! | Bool | any | 0 is false, everything else true, NaN too |
//!
//! Bool as a number is 0 or 1, whatever its byte. F8_E4M3 does not saturate, because a weight that
//! overflows should be noticed and not silently change; torch and ml_dtypes do the same. Integers
//! saturate, because wrapped ones are useless; torch and numpy leave the result of floats beyond
//! the range open.
//!
//! The layouts of the 8-bit floats are those of the OCP 8-bit floating-point specification
//! (revision 1.0). All elements are little-endian.

mod element;
mod float8;
mod minifloat;

use half::{bf16, f16};

use crate::DType;
use crate::error::CodecError;
use crate::quant::check_sizes;
use element::Element;

pub use float8::{F8E4M3, F8E5M2};

/// An element of [`DType::Bool`].
#[derive(Clone, Copy)]
struct Bool(bool);

/// Elements that a cast takes at a time.
const PIECE: usize = 256;

/// Calls a function that is generic over the element type of `dtype`.
macro_rules! with_element {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            DType::F64 => $function::<f64, _>($($argument),*),
            DType::F32 => $function::<f32, _>($($argument),*),
            DType::F16 => $function::<f16, _>($($argument),*),
            DType::BF16 => $function::<bf16, _>($($argument),*),
            DType::F8E4M3 => $function::<F8E4M3, _>($($argument),*),
            DType::F8E5M2 => $function::<F8E5M2, _>($($argument),*),
            DType::I8 => $function::<i8, _>($($argument),*),
            DType::U8 => $function::<u8, _>($($argument),*),
            DType::I16 => $function::<i16, _>($($argument),*),
            DType::I32 => $function::<i32, _>($($argument),*),
            DType::I64 => $function::<i64, _>($($argument),*),
            DType::Bool => $function::<Bool, _>($($argument),*),
            dtype => Err(CodecError::NotPlain { dtype }),
        }
    };
}

/// The elements of a plain dtype as f64: floats and integers within 2^53 exactly, larger integers
/// to nearest.
///
/// # Errors
/// [`CodecError::NotPlain`] for block dtypes, [`CodecError::WrongSize`] if `bytes` are not as long
/// as `out.len()` elements.
pub fn decode_f64(dtype: DType, bytes: &[u8], out: &mut [f64]) -> Result<(), CodecError> {
    check_sizes(dtype, out.len(), bytes.len())?;
    with_element!(dtype, read(bytes, out, Element::to_f64))
}

/// The elements of a plain dtype as integers: floats towards zero and saturating, 0 of NaN.
///
/// # Errors
/// As [`decode_f64`].
pub fn decode_i64(dtype: DType, bytes: &[u8], out: &mut [i64]) -> Result<(), CodecError> {
    check_sizes(dtype, out.len(), bytes.len())?;
    with_element!(dtype, read(bytes, out, Element::to_i64))
}

/// Numbers as elements of a plain dtype, by the rules of [this module](self).
///
/// # Errors
/// [`CodecError::NotPlain`] for block dtypes, [`CodecError::WrongSize`] if `out` is not as long as
/// `values.len()` elements.
pub fn encode_f64(dtype: DType, values: &[f64], out: &mut [u8]) -> Result<(), CodecError> {
    check_sizes(dtype, values.len(), out.len())?;
    with_element!(dtype, write(values, out, Element::from_f64))
}

/// Integers as elements of a plain dtype, by the rules of [this module](self).
///
/// # Errors
/// As [`encode_f64`].
pub fn encode_i64(dtype: DType, values: &[i64], out: &mut [u8]) -> Result<(), CodecError> {
    check_sizes(dtype, values.len(), out.len())?;
    with_element!(dtype, write(values, out, Element::from_i64))
}

/// Elements of a plain dtype as elements of another one, by the rules of [this module](self). A
/// cast to the same dtype keeps the bits.
///
/// # Errors
/// [`CodecError::NotPlain`] for block dtypes, [`CodecError::WrongSize`] if `bytes` are not whole
/// elements or `out` has not the size of the same number of elements.
pub fn cast(from: DType, bytes: &[u8], to: DType, out: &mut [u8]) -> Result<(), CodecError> {
    let (from_bytes, to_bytes) = (from.block_bytes(), to.block_bytes());
    let elements = bytes.len() / from_bytes;
    for (dtype, len) in [(from, bytes.len()), (to, out.len())] {
        if dtype.is_quantized() {
            return Err(CodecError::NotPlain { dtype });
        }
        check_sizes(dtype, elements, len)?;
    }
    if from == to {
        out.copy_from_slice(bytes);
        return Ok(());
    }
    let pieces = bytes.chunks(PIECE * from_bytes);
    for (bytes, out) in pieces.zip(out.chunks_mut(PIECE * to_bytes)) {
        let n = bytes.len() / from_bytes;
        // Integers are not read as floats, which lack the bits of the largest ones.
        if from.is_integer() {
            let mut numbers = [0; PIECE];
            decode_i64(from, bytes, &mut numbers[..n])?;
            encode_i64(to, &numbers[..n], out)?;
        } else {
            let mut numbers = [0.0; PIECE];
            decode_f64(from, bytes, &mut numbers[..n])?;
            encode_f64(to, &numbers[..n], out)?;
        }
    }
    Ok(())
}

/// The elements of a plain dtype as f32, rounded to nearest; `bytes` must have the size of
/// `out.len()` elements.
pub(crate) fn decode_f32(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
    with_element!(dtype, read(bytes, out, Element::to_f32))
}

/// Numbers as elements of a plain dtype; `out` must have the size of `values.len()` elements.
pub(crate) fn encode_f32(dtype: DType, values: &[f32], out: &mut [u8]) -> Result<(), CodecError> {
    match dtype {
        // The same results as through f64, but faster.
        DType::F32 => write(values, out, |x: f32| x),
        DType::F16 => write(values, out, f16::from_f32),
        DType::BF16 => write(values, out, bf16::from_f32),
        _ => with_element!(dtype, write(values, out, from_f32)),
    }
}

fn from_f32<E: Element>(value: f32) -> E {
    E::from_f64(value.into())
}

/// The sizes have been checked, so the zip ends neither side early.
fn read<E: Element, T>(
    bytes: &[u8],
    out: &mut [T],
    number: impl Fn(E) -> T,
) -> Result<(), CodecError> {
    for (out, bytes) in out
        .iter_mut()
        .zip(bytes.chunks_exact(size_of::<E::Bytes>()))
    {
        if let Ok(bytes) = E::Bytes::try_from(bytes) {
            *out = number(E::from_bytes(bytes));
        }
    }
    Ok(())
}

/// The sizes have been checked, so the zip ends neither side early.
fn write<E: Element, T: Copy>(
    values: &[T],
    out: &mut [u8],
    element: impl Fn(T) -> E,
) -> Result<(), CodecError> {
    let places = out.chunks_exact_mut(size_of::<E::Bytes>());
    for (&value, place) in values.iter().zip(places) {
        place.copy_from_slice(element(value).to_bytes().as_ref());
    }
    Ok(())
}
