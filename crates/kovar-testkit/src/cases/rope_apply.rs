//! Cases of `rope_apply`. In place means the window of `x` with tokens and heads swapped.

use kovar_core::ops::{RopeApply, RopeSpec};

use super::rope_sweep::{Rotation, Sweep};
use super::{Case, Form, Target};
use crate::synthetic::Fill;

/// The matrices of the table.
#[derive(Clone, Copy)]
enum Matrices {
    /// Rotations by the angles of positions from this one on.
    Rotations(i32),
    /// Four unrelated numbers: no entry follows from another.
    Any,
}

pub(super) fn tests() -> Vec<Case> {
    let base = Matrices::Rotations(7);
    let sweep = Sweep {
        targets: &[
            Target::Fresh,
            Target::InPlace(0),
            Target::Into(Form::Permuted),
            Target::Into(Form::Window),
        ],
        table: base,
        shapes: &[
            (&[1, 1, 1, 2], base),
            (&[1, 9, 1, 64], base),
            (&[2, 1, 7, 32], base),
            (&[1, 7, 2, 128], base),
            (&[3, 5, 4, 80], base),
            (&[2, 11, 3, 34], base),
            (&[2, 3, 2, 6], base),
            (&[1, 0, 2, 64], base),
            (&[2, 3, 2, 0], base),
        ],
        table_of_forms: Matrices::Any,
        table_forms: (
            &[
                Form::Offset,
                Form::Gaps,
                Form::Permuted,
                Form::Transposed,
                Form::Repeated,
            ],
            Matrices::Any,
        ),
        tables: [0, 100_000].map(Matrices::Rotations),
    };
    sweep.cases(case)
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 1, 32, 128], [2, 4096, 24, 64]]
        .into_iter()
        .map(|dims| case(Rotation::new(&dims, Target::Fresh, Matrices::Rotations(0))))
        .collect()
}

/// `cos, -sin, sin, cos` of every pair for each position.
fn rotations(from: i32, tokens: usize, d: usize) -> Fill {
    let spec = RopeSpec::new(d, 10_000.0);
    let mut angles = vec![0.0; tokens * spec.row_len()];
    let positions: Vec<i32> = (from..).take(tokens).collect();
    spec.angles().fill_table(&positions, &mut angles);
    let matrices = angles.as_chunks::<2>().0.iter();
    let matrices = matrices.flat_map(|&[cos, sin]| [cos, -sin, sin, cos]);
    Fill::Values(matrices.map(f64::from).collect())
}

fn case(rotation: Rotation<Matrices>) -> Case {
    let matrices = match rotation.table {
        Matrices::Rotations(from) => format!("from={from}"),
        Matrices::Any => "any".to_owned(),
    };
    let labels = rotation.labels(&format!(",{},{matrices}", rotation.pairing_name()));
    Case::new("rope_apply", "rope_apply", labels, move |setup| {
        let (tokens, d) = (rotation.dims[1], rotation.dims[3]);
        let matrices = match rotation.table {
            Matrices::Rotations(from) => rotations(from, tokens, d),
            Matrices::Any => Fill::Gaussian(1.0),
        };
        let [x, table] = rotation.operands(setup, &[tokens, d / 2, 2, 2], matrices)?;
        let pairing = rotation.pairing;
        match rotation.target {
            Target::InPlace(_) => setup.graph.rope_apply_in_place(x, table, pairing)?,
            target => setup.apply(RopeApply { pairing }, &[x, table], target)?,
        };
        Ok(())
    })
}
