//! The oracle's binary over real sockets.

mod faults;
mod processes;
mod rig;
mod serves;
