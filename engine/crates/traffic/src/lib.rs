//! What the engine saw.
