//! Which operations take which dtypes: the matrix that every backend implements.

use kovar_core::error::GraphError;
use kovar_core::ops::SortOrder;
use kovar_core::ops::dtypes::{ENCODED, FACTORS, FLOATS, PLAIN, PROGRESSIONS, WEIGHTS};
use kovar_core::{DType, Graph, ValueId};

/// `[2, 2, 256]` of a dtype: whole blocks of any.
fn value(g: &mut Graph, name: &str, dtype: DType) -> ValueId {
    g.state(name, dtype, &[2, 2, 256]).unwrap()
}

/// The dtypes that `build` takes, with the dtype of its result; every refusal names the dtype and
/// the accepted ones.
fn taken(build: impl Fn(&mut Graph, DType) -> Result<ValueId, GraphError>) -> Vec<(DType, DType)> {
    let mut taken = Vec::new();
    let mut named: Option<&[DType]> = None;
    for dtype in DType::ALL {
        let mut g = Graph::new();
        match build(&mut g, dtype) {
            Ok(result) => taken.push((dtype, g.value(result).unwrap().dtype)),
            Err(
                GraphError::OperandDType { found, allowed, .. }
                | GraphError::ResultDType { found, allowed, .. },
            ) => {
                assert_eq!(found, dtype);
                named = Some(allowed);
            }
            Err(other) => panic!("{dtype}: {other}"),
        }
    }
    if let Some(named) = named {
        let mut accepted: Vec<DType> = named.to_vec();
        accepted.sort();
        let of: Vec<DType> = taken.iter().map(|pair| pair.0).collect();
        assert_eq!(of, accepted);
    }
    taken
}

fn same(dtypes: &[DType]) -> Vec<(DType, DType)> {
    let mut pairs: Vec<_> = dtypes.iter().map(|&dtype| (dtype, dtype)).collect();
    pairs.sort();
    pairs
}

fn to(dtypes: &[DType], result: DType) -> Vec<(DType, DType)> {
    let mut pairs: Vec<_> = dtypes.iter().map(|&dtype| (dtype, result)).collect();
    pairs.sort();
    pairs
}

#[test]
fn plain_elements_are_moved_whatever_they_are() {
    assert_eq!(PLAIN.len(), 12);
    let concat = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.concat(&[x, x], 1)
    });
    assert_eq!(concat, same(PLAIN));
    let repeat = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.repeat(x, &[1, 2, 1])
    });
    assert_eq!(repeat, same(PLAIN));
    let pad = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.pad(x, &[1, 0, 0], &[0, 0, 0], 1.0)
    });
    assert_eq!(pad, same(PLAIN));
}

#[test]
fn plain_dtypes_are_cast_to_each_other_and_blocks_to_narrow_floats() {
    for to_dtype in PLAIN {
        let casts = taken(|g, dtype| {
            let x = value(g, "x", dtype);
            g.cast(x, *to_dtype)
        });
        let from = if ENCODED.contains(to_dtype) {
            &DType::ALL
        } else {
            PLAIN
        };
        assert_eq!(casts, to(from, *to_dtype));
    }
    let encoded = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.cast(x, DType::Q8_0)
    });
    assert_eq!(encoded, to(WEIGHTS, DType::Q8_0));
    let results = taken(|g, dtype| {
        let x = value(g, "x", DType::F32);
        g.cast(x, dtype)
    });
    assert_eq!(results, same(&[PLAIN, &[DType::Q8_0]].concat()));
}

#[test]
fn tables_decode_to_f32_or_keep_their_dtype() {
    let rows = taken(|g, dtype| {
        let table = g.weight("table", dtype, &[4, 256])?;
        let ids = g.input("ids", DType::I32, &[3])?;
        g.get_rows(table, ids)
    });
    assert_eq!(rows.len(), DType::ALL.len());
    for (dtype, result) in rows {
        let decoded = WEIGHTS.contains(&dtype);
        assert_eq!(result, if decoded { DType::F32 } else { dtype });
    }
}

#[test]
fn rows_are_written_as_they_are_and_floats_in_narrower_dtypes_too() {
    for x in PLAIN {
        let written = taken(|g, dtype| {
            let x = g.input("x", *x, &[3, 256])?;
            let ids = g.input("ids", DType::I32, &[3])?;
            let cache = g.state("cache", dtype, &[8, 256])?;
            g.set_rows(cache, x, ids)
        });
        let expected = if FLOATS.contains(x) { ENCODED } else { &[*x] };
        assert_eq!(written, same(expected));
    }
}

#[test]
fn products_take_eight_bit_floats_as_weights_and_not_as_activations() {
    let w = taken(|g, dtype| {
        let w = value(g, "w", dtype);
        let x = value(g, "x", DType::F16);
        g.matmul(w, x)
    });
    assert_eq!(w, to(WEIGHTS, DType::F32));
    let x = taken(|g, dtype| {
        let w = value(g, "w", DType::F8E4M3);
        let x = value(g, "x", dtype);
        g.matmul(w, x)
    });
    assert_eq!(x, to(FLOATS, DType::F32));
    let experts = taken(|g, dtype| {
        let w = value(g, "w", dtype);
        let x = g.input("x", DType::F32, &[5, 1, 256])?;
        let ids = g.input("ids", DType::I32, &[5, 2])?;
        g.matmul_id(w, x, ids)
    });
    assert_eq!(experts, to(WEIGHTS, DType::F32));
    for first in [true, false] {
        let gemm = taken(|g, dtype| {
            let a = value(g, "a", if first { dtype } else { DType::F32 });
            let b = g.input("b", if first { DType::F32 } else { dtype }, &[256, 256])?;
            g.gemm(Default::default(), a, b, None)
        });
        assert_eq!(gemm, to(FACTORS, DType::F32));
    }
}

#[test]
fn arithmetic_is_on_floats_of_32_and_16_bits() {
    let add = taken(|g, dtype| {
        let a = value(g, "a", dtype);
        g.add(a, a)
    });
    assert_eq!(add, same(FLOATS));
    let scale = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.scale(x, 2.0)
    });
    assert_eq!(scale, same(FLOATS));
    let sum = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.sum(x)
    });
    assert_eq!(sum, same(FLOATS));
    let order = taken(|g, dtype| {
        let x = value(g, "x", dtype);
        g.argsort(x, SortOrder::Ascending)
    });
    assert_eq!(order, to(FLOATS, DType::I32));
    let progression = taken(|g, dtype| g.arange(0.0, 1.0, 5, dtype));
    assert_eq!(progression, same(PROGRESSIONS));
}

#[test]
fn a_refused_result_is_named_with_those_that_there_are() {
    let mut g = Graph::new();
    assert_eq!(
        g.arange(0.0, 1.0, 5, DType::F16).unwrap_err().to_string(),
        "arange: the result is to be F16, the operation gives F32, I32, F64, I64"
    );
    let x = value(&mut g, "x", DType::I64);
    let error = g.cast(x, DType::Q8_0).unwrap_err().to_string();
    assert!(error.starts_with("copy: operand `x` is I64, the operation takes F32,"));
}

#[test]
fn integers_are_padded_with_what_their_dtype_holds() {
    for (dtype, held, beyond) in [
        (DType::I8, -128.0, 128.0),
        (DType::U8, 255.0, -1.0),
        (DType::I16, 32767.0, 32768.0),
        (DType::I64, -9223372036854775808.0, 9223372036854775808.0),
        (DType::Bool, 1.0, 2.0),
    ] {
        let mut g = Graph::new();
        let x = value(&mut g, "x", dtype);
        assert!(g.pad(x, &[1; 3], &[1; 3], held).is_ok(), "{dtype}");
        for value in [beyond, 0.5, f32::NAN, f32::INFINITY] {
            let padded = g.pad(x, &[1; 3], &[1; 3], value);
            let refused = matches!(padded, Err(GraphError::Attribute { attribute, .. })
                if attribute == "value");
            assert!(refused, "{dtype} {value}");
        }
    }
}

#[test]
fn progressions_of_long_integers_stay_where_f64_is_exact() {
    let mut g = Graph::new();
    let limit = 2f64.powi(53) - 1.0;
    assert!(g.arange(limit, -1.0, 9, DType::I64).is_ok());
    assert!(g.arange(limit, 1.0, 2, DType::I64).is_err());
    assert!(g.arange(0.0, 0.5, 2, DType::I64).is_err());
    assert!(g.arange(1e300, 1e300, 9, DType::F64).is_ok());
    assert!(g.arange(0.0, f64::INFINITY, 2, DType::F64).is_err());
}
