//! Cases that `rope` and `rope_apply` share: operands, and the sweep through shapes and layouts.

use kovar_core::error::GraphError;
use kovar_core::ops::Pairing;
use kovar_core::{DType, ValueId};

use super::sweep::{Labels, hard};
use super::{Case, FLOATS, Form, Place, Setup, Target, lower, sizes};
use crate::synthetic::Fill;

/// A rotation of `x` by a table. `T` says what the table holds.
#[derive(Clone)]
pub(super) struct Rotation<T> {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub pairing: Pairing,
    pub form: Form,
    pub table_form: Form,
    pub target: Target,
    pub table: T,
    pub fill: Fill,
}

impl<T> Rotation<T> {
    /// Contiguous F32 operands of normal numbers.
    pub(super) fn new(dims: &[usize], target: Target, table: T) -> Self {
        Self {
            dtype: DType::F32,
            dims: dims.to_vec(),
            pairing: Pairing::Normal,
            form: Form::Contiguous,
            table_form: Form::Contiguous,
            target,
            table,
            fill: Fill::Gaussian(1.0),
        }
    }

    pub(super) fn pairing_name(&self) -> String {
        format!("{:?}", self.pairing).to_lowercase()
    }

    /// The labels of a case; `attributes` follow the dims.
    pub(super) fn labels(&self, attributes: &str) -> Labels {
        let shape = format!("{}{attributes}{}", sizes(&self.dims), hard(&self.fill));
        let layout = format!(
            "{}-table_{}-{}",
            self.form.name(),
            self.table_form.name(),
            self.target.name()
        );
        (lower(self.dtype), shape, layout)
    }

    /// `x` and the table.
    pub(super) fn operands(
        &self,
        setup: &mut Setup,
        table_dims: &[usize],
        table: Fill,
    ) -> Result<[ValueId; 2], GraphError> {
        let (dims, fill) = (&self.dims, self.fill.clone());
        let x = setup.operand("x", Place::Temp, self.dtype, dims, self.form, fill)?;
        let (place, dtype) = (Place::Input, DType::F32);
        let table = setup.operand("table", place, dtype, table_dims, self.table_form, table)?;
        Ok([x, table])
    }
}

/// What the cases of an operation vary, for each dtype and pairing.
pub(super) struct Sweep<'s, T> {
    /// Where results go, for every form of `x`. The first is the target of most other cases.
    pub targets: &'s [Target],
    /// The table of most cases.
    pub table: T,
    /// Dims and tables, for the first two targets.
    pub shapes: &'s [(&'s [usize], T)],
    /// The table for every form of `x`.
    pub table_of_forms: T,
    /// The forms of the table, and what it holds in them.
    pub table_forms: (&'s [Form], T),
    /// More tables.
    pub tables: [T; 2],
}

impl<T: Copy> Sweep<'_, T> {
    pub(super) fn cases(&self, case: impl Fn(Rotation<T>) -> Case) -> Vec<Case> {
        let mut cases = Vec::new();
        for dtype in FLOATS {
            for pairing in [Pairing::Normal, Pairing::Neox] {
                let base = Rotation {
                    dtype,
                    pairing,
                    ..Rotation::new(&[2, 5, 3, 64], self.targets[0], self.table)
                };
                let mut push = |rotation| cases.push(case(rotation));
                for &(dims, table) in self.shapes {
                    for &target in &self.targets[..2] {
                        push(Rotation {
                            dims: dims.to_vec(),
                            table,
                            target,
                            ..base.clone()
                        });
                    }
                }
                for form in Form::ALL {
                    for &target in self.targets {
                        if form == Form::Repeated && target == Target::InPlace(0) {
                            continue;
                        }
                        push(Rotation {
                            form,
                            target,
                            table: self.table_of_forms,
                            ..base.clone()
                        });
                    }
                }
                let (table_forms, table) = self.table_forms;
                for &table_form in table_forms {
                    push(Rotation {
                        table_form,
                        table,
                        ..base.clone()
                    });
                }
                for table in self.tables {
                    push(Rotation {
                        table,
                        ..base.clone()
                    });
                }
                for fill in [Fill::Small, Fill::large(dtype)] {
                    push(Rotation {
                        fill,
                        ..base.clone()
                    });
                }
            }
        }
        cases
    }
}
