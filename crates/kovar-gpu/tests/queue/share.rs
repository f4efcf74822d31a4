//! One device for all users of a GPU.

use kovar_core::backend::Backend;
use kovar_gpu::{FeatureState, Features, Gpus};

use super::{options, read};

#[test]
fn a_gpu_that_is_opened_again_is_the_same_device() {
    let gpus = Gpus::new();
    let one = gpus.open(options(8)).unwrap();
    let same = gpus
        .clone()
        .open(options(8).id("mine").masked(Features::ALL))
        .unwrap();
    let other = gpus.open(options(9)).unwrap();
    let buffer = one.alloc_zeroed(64).unwrap();
    // Its memory and the order of its queue are shared, its id and features are not.
    same.queue().write(&buffer, 3, &[7; 5]).unwrap();
    one.queue().fill(&buffer, 4, 1, 9).unwrap();
    assert_eq!(read(&same, &buffer)[2..9], [0, 7, 9, 7, 7, 7, 0]);
    assert_eq!(same.info().id, "mine");
    assert!(same.info().features.is_empty());
    assert!(other.queue().write(&buffer, 0, &[1]).is_err());
}

#[test]
fn adapters_list_their_features_and_why_others_are_off() {
    let all = Gpus::new().adapters(Features::NONE);
    assert!(!all.is_empty());
    for (index, adapter) in all.iter().enumerate() {
        assert_eq!(
            (adapter.index, adapter.id.clone()),
            (index, format!("gpu{index}"))
        );
        assert!(!adapter.name.is_empty() && !adapter.driver.is_empty());
        assert!(adapter.limits.max_binding_bytes >= 128 << 20);
        let on = |name| adapter.features.contains(&(name, FeatureState::On));
        assert_eq!(on("subgroups"), adapter.subgroup_sizes.is_some());
        assert!(on("matrices") || adapter.matrices.is_empty());
        assert!(adapter.memory_bytes.is_none_or(|bytes| bytes > 0));
    }
    let masked = Gpus::new()
        .open(options(8).masked(Features::SUBGROUPS))
        .unwrap();
    let info = masked.adapter_info().unwrap();
    let (name, state) = info.features[0];
    assert_eq!(name, "subgroups");
    assert!(matches!(
        state,
        FeatureState::Masked | FeatureState::NotOffered
    ));
    assert_eq!(info.subgroup_sizes, None);
}
