//! Packing of an arena.

use proptest::prelude::*;

use crate::schedule::Lifetime;
use crate::schedule::packing::{Request, lower_bound, pack};

proptest! {
    #[test]
    fn packing_keeps_what_lives_together_apart(
        items in prop::collection::vec((0usize..20, 0usize..10, 0usize..9), 0..40),
        limit in 8usize..40,
    ) {
        let requests: Vec<Request> = items
            .iter()
            .map(|&(start, len, units)| Request {
                lifetime: Lifetime { start, end: start + len },
                bytes: units * 16,
            })
            .collect();
        let (slots, chunks) = pack(&requests, limit * 16);
        for (i, (a, x)) in requests.iter().zip(&slots).enumerate() {
            prop_assert_eq!((x.bytes, x.offset % 16), (a.bytes, 0));
            prop_assert!(x.bytes == 0 || x.offset + x.bytes <= chunks[x.chunk]);
            for (b, y) in requests.iter().zip(&slots).skip(i + 1) {
                prop_assert!(!(a.lifetime.overlaps(&b.lifetime) && x.overlaps(y)));
            }
        }
        let total: usize = chunks.iter().sum();
        prop_assert!(chunks.iter().all(|&chunk| chunk <= limit * 16));
        prop_assert!(total >= lower_bound(&requests));
        prop_assert!(total <= requests.iter().map(|request| request.bytes).sum());
    }
}
