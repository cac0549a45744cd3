//! The engine as a process, held to servers that we wrote and to those of others. All are one program: building and linking many takes
//! longer than they run.

mod answers;
mod chaos;
mod checks;
mod clocks;
mod commands;
mod duets;
mod endings;
mod fixed_work;
mod jobs;
mod loads;
mod makers;
mod parts;
mod pauses;
mod pipelines;
mod pools;
mod requests;
mod robust;
mod secure;
mod shapes;
mod shards;
mod streams;
mod support;
