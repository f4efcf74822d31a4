//! A simulated device that spoils its results in the ways that kernels do.

use std::sync::Arc;

use kovar_core::{Graph, NodeRef};
use kovar_testkit::oracle::{Activations, run_node};
use kovar_testkit::simulated::{Executor, Launched, SimulatedDevice, SimulatedOptions};
use kovar_testkit::{read_value, write_value};

/// What the device does wrong with each launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlantedFault {
    /// Nothing.
    None,
    /// Changes the second element of the result.
    WrongElement,
    /// Writes the byte after the result's storage.
    WriteAfter,
    /// Writes the byte before the result's storage.
    WriteBefore,
    /// Writes the first byte of the result's storage.
    TouchFirstByte,
    /// Leaves the last element of the result as it was.
    LeaveElement,
    /// Leaves every element of the result as it was.
    DoNothing,
    /// Writes into the first operand.
    ChangeInput,
    /// Changes the lowest bit of the result's first element, except in the first launch.
    DifferOnReplay,
    /// Quantises activations whatever the precision.
    AlwaysQuantize,
    /// Changes every element by a hundredth.
    AddNoise,
}

pub fn planted(fault: PlantedFault) -> SimulatedDevice {
    let activations = match fault {
        PlantedFault::AddNoise => Activations::Quantized,
        _ => Activations::Exact,
    };
    SimulatedDevice::new(SimulatedOptions {
        executor: Executor::Oracle(activations),
        after_launch: Some(Arc::new(move |launched| spoil(fault, launched))),
        ..SimulatedOptions::default()
    })
}

fn spoil(fault: PlantedFault, launched: &Launched<'_>) {
    let node = launched.nodes().next().unwrap();
    let output = node.output();
    let units: Vec<usize> = output.block_offsets().collect();
    let last = units.len() - 1;
    // Calls `change` with the buffer of the result and the result's first byte in it.
    let change = |change: &dyn Fn(&mut [u8], usize)| launched.with(node, output, change).unwrap();
    let flip = |byte: &dyn Fn(usize) -> usize| change(&|bytes, at| bytes[byte(at)] ^= 1);
    let scale = |i: usize, factor: f32, plus: f32| {
        change(&|bytes, at| {
            let element = &mut bytes[at + units[i]..][..4];
            let value = f32::from_le_bytes((&*element).try_into().unwrap());
            element.copy_from_slice(&(value * factor + plus).to_le_bytes());
        });
    };
    let leave = |i: usize| change(&|bytes, at| bytes[at + units[i]..][..4].fill(0xff));
    match fault {
        PlantedFault::None => {}
        PlantedFault::WrongElement => scale(1, 1.001, 0.001),
        PlantedFault::WriteAfter => flip(&|at| at + node.storage_of(output).bytes),
        PlantedFault::WriteBefore => flip(&|at| at - 1),
        PlantedFault::TouchFirstByte => flip(&|at| at),
        PlantedFault::LeaveElement => leave(last),
        PlantedFault::DoNothing => (0..=last).for_each(leave),
        PlantedFault::ChangeInput => {
            let x = node.input(0).unwrap();
            launched
                .with(node, x, |bytes, at| bytes[at + 5] ^= 1)
                .unwrap();
        }
        PlantedFault::DifferOnReplay if launched.nth() == 0 => {}
        PlantedFault::DifferOnReplay => flip(&|at| at + units[0]),
        PlantedFault::AlwaysQuantize => quantize(node, launched),
        PlantedFault::AddNoise => {
            (0..=last).for_each(|i| scale(i, if i % 2 == 0 { 1.01 } else { 0.99 }, 0.0));
        }
    }
}

/// Computes a product of a weight and an operand again, at default precision.
fn quantize(node: NodeRef<'_>, launched: &Launched<'_>) {
    let inputs = node.inputs().map(|value| {
        let data = launched.with(node, value, |bytes, at| read_value(value, &bytes[at..]));
        data.unwrap().unwrap()
    });
    let inputs: Vec<_> = inputs.collect();
    let mut graph = Graph::new();
    let [w, x] = [0, 1].map(|i| node.input(i).unwrap());
    let w = graph.weight("w", w.dtype, w.dims()).unwrap();
    let x = graph.input("x", x.dtype, x.dims()).unwrap();
    graph.matmul(w, x).unwrap();
    let product = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let y = run_node(product, &inputs, &[], Activations::Quantized).unwrap();
    let output = node.output();
    let write = |bytes: &mut [u8], at: usize| write_value(output, &y.data, None, &mut bytes[at..]);
    launched.with(node, output, write).unwrap().unwrap();
}
