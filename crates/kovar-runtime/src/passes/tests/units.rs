//! What must be on one device.

use kovar_core::{DType, Graph};
use kovar_testkit::simulated::SimulatedOptions;

use super::Planned;
use crate::device::DeviceId;
use crate::place::Homes;

#[test]
fn storages_that_one_node_writes_are_of_one_class_and_its_writers_of_few_units() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4]).unwrap();
    let shifted = graph.token_shift(x, s, None).unwrap();
    let y = graph.softmax(shifted, None, 1.0).unwrap();
    graph.copy_into(y, shifted).unwrap();
    graph.copy_into(x, shifted).unwrap();
    let z = graph.scale(shifted, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    let devices = vec![
        SimulatedOptions::new("a").only(&["token_shift", "scale"]),
        SimulatedOptions::new("b").only(&["softmax", "copy", "scale"]),
    ];
    let planned = Planned::new(graph, devices, &Homes::all_on(DeviceId::FIRST));
    // The first copy is overwritten unread.
    let expected = "\
units: 4
  0: s, token_shift.0 by [0] on a
  1: y by [1] on b
  2: s, token_shift.0 by [2] on b
  3: z by [3] on a or b
";
    assert_eq!(
        planned
            .passes
            .classes
            .dump(&planned.graph, &planned.devices),
        expected
    );
}
