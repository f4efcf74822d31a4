//! Checkpoints of recurrent models.

mod common;

use common::{data, exact, load, max_difference};
use kovar_text::{LogitsOf, SavedText};

#[test]
fn a_checkpoint_of_another_text_is_forgotten() {
    let (a, b): (Vec<u32>, Vec<u32>) = ((1..21).collect(), (21..41).collect());
    let tail = [5u32, 6, 7];
    let mut fresh = load(&data("rwkv7-tiny"), &exact());
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    fresh
        .eval(&[&b[..], &tail].concat(), LogitsOf::Last, &mut expected)
        .unwrap();

    // Like two calls of `generate` with prompts of the same length, and a third that keeps the
    // second.
    let mut model = load(&data("rwkv7-tiny"), &exact());
    model.eval(&a, LogitsOf::Last, &mut found).unwrap();
    model.checkpoint().unwrap();
    assert_eq!(model.keep_prefix(&b), 0);
    model.eval(&b, LogitsOf::Last, &mut found).unwrap();
    model.checkpoint().unwrap();
    model.eval(&[9, 10], LogitsOf::Last, &mut found).unwrap();
    let kept = model.keep_prefix(&[&b[..], &tail].concat());
    model
        .eval(
            &[&b[..], &tail].concat()[kept..],
            LogitsOf::Last,
            &mut found,
        )
        .unwrap();
    assert!(
        max_difference(&expected, &found) < 1e-4,
        "kept {kept}: {}",
        max_difference(&expected, &found)
    );
}

#[test]
fn truncating_another_text_does_not_restore_the_checkpoint() {
    let (a, b): (Vec<u32>, Vec<u32>) = ((1..21).collect(), (21..51).collect());
    let mut fresh = load(&data("rwkv7-tiny"), &exact());
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    fresh.eval(&b, LogitsOf::Last, &mut expected).unwrap();
    let mut model = load(&data("rwkv7-tiny"), &exact());
    model.eval(&a, LogitsOf::Last, &mut found).unwrap();
    model.checkpoint().unwrap();
    model.truncate(0);
    model.eval(&b, LogitsOf::Last, &mut found).unwrap();
    let left = model.truncate(25);
    model.eval(&b[left..], LogitsOf::Last, &mut found).unwrap();
    assert!(
        max_difference(&expected, &found) < 1e-4,
        "left {left}: {}",
        max_difference(&expected, &found)
    );
}

#[test]
fn a_saved_text_with_a_checkpoint_of_forgotten_tokens_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let mut found = Vec::new();
    let mut model = load(&data("rwkv7-tiny"), &exact());
    model
        .eval(&(1..21).collect::<Vec<u32>>(), LogitsOf::Last, &mut found)
        .unwrap();
    model.checkpoint().unwrap();
    model.truncate(0);
    model.eval(&[1, 2, 3], LogitsOf::Last, &mut found).unwrap();
    let text = SavedText {
        tokens: vec![1, 2, 3],
        note: String::new(),
    };
    model.save_text(&path, &text).unwrap();
    load(&data("rwkv7-tiny"), &exact())
        .restore_text(&path)
        .unwrap();
}
