// The experts that pairs of a token and a slot name. Batches are pairs: `params.batch.z` tokens by
// `params.batch.w` slots. The view of `c` is that of the ids.

import package::shared::product::{Bases, params};
import package::shared::view::{position, unravel};

@group(0) @binding(5) var<storage, read_write> ids: array<i32>;

// The number of all experts. The dispatch has a range of them.
fn experts() -> u32 {
    return params.size.w;
}
fn first_expert() -> u32 {
    return params.places.x;
}
fn own_experts() -> u32 {
    return params.places.y;
}

// The expert of a pair, or the number of experts if the id names none.
fn expert_of(pair: u32) -> u32 {
    let id = ids[position(params.c, unravel(pair, params.batch))];
    return select(experts(), u32(id), id >= 0 && u32(id) < experts());
}

// Where the matrices of a pair and of an expert of the dispatch begin.
fn bases_of_pair(pair: u32, expert: u32) -> Bases {
    let at = unravel(pair, params.batch);
    let own = select(expert - first_expert(), 0u, expert == experts());
    return Bases(
        position(params.a, at),
        params.b.offset + own * params.b.strides.x,
        0u,
        position(params.out, at),
    );
}
