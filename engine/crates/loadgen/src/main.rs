//! The load engine.
fn main() {}
