//! Cases of `rope`.

use kovar_core::ops::{Rope, RopeSpec};

use super::rope_sweep::{Rotation, Sweep};
use super::{Case, Form, Target};
use crate::synthetic::Fill;

/// The number of elements that are rotated, and the first token's position.
type Angles = (usize, i32);

pub(super) fn tests() -> Vec<Case> {
    let sweep = Sweep {
        targets: &[
            Target::InPlace(0),
            Target::Fresh,
            Target::Into(Form::Window),
        ],
        table: (64, 7),
        shapes: &[
            (&[1, 1, 2], (2, 7)),
            (&[1, 9, 64], (64, 7)),
            (&[7, 2, 128], (128, 7)),
            (&[7, 2, 128], (32, 7)),
            (&[3, 5, 4, 80], (20, 7)),
            (&[2, 1, 3, 33], (32, 7)),
            (&[2, 3, 2, 96], (0, 7)),
            (&[0, 2, 64], (64, 7)),
            (&[1, 2, 1, 3, 2, 16], (16, 7)),
        ],
        table_of_forms: (48, 7),
        table_forms: (
            &[Form::Offset, Form::Gaps, Form::Permuted, Form::Repeated],
            (64, 7),
        ),
        tables: [(64, 0), (64, 100_000)],
    };
    sweep.cases(case)
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 32, 128], [512, 32, 128]]
        .into_iter()
        .map(|dims| case(Rotation::new(&dims, Target::InPlace(0), (128, 0))))
        .collect()
}

fn case(rotation: Rotation<Angles>) -> Case {
    let (n_rot, from) = rotation.table;
    let pairing = rotation.pairing_name();
    let labels = rotation.labels(&format!(",n_rot={n_rot},{pairing},from={from}"));
    Case::new("rope", "rope", labels, move |setup| {
        let tokens = rotation.dims[rotation.dims.len() - 3];
        let spec = RopeSpec::new(n_rot, 10_000.0);
        let mut table = vec![0.0; tokens * spec.row_len()];
        let positions: Vec<i32> = (from..).take(tokens).collect();
        if n_rot > 0 {
            spec.angles().fill_table(&positions, &mut table);
        }
        let angles = Fill::Values(table.into_iter().map(f64::from).collect());
        let operands = rotation.operands(setup, &[tokens, n_rot / 2, 2], angles)?;
        let pairing = rotation.pairing;
        setup.apply(Rope { pairing }, &operands, rotation.target)?;
        Ok(())
    })
}
