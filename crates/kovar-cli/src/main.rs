//! The `kovar` program.

fn main() {}
