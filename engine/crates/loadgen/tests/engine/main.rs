//! Tests of the engine as a process, against our own servers and those of others. All tests are a single program, because
//! building and linking many takes longer than they run.

mod answers;
mod chaos;
mod checks;
mod clocks;
mod commands;
mod dropped_cookies;
mod duets;
mod early;
mod endings;
mod event_streams;
mod failures;
mod fixed_work;
mod idle;
mod jobs;
mod journeys;
mod loads;
mod makers;
mod messages;
mod parts;
mod pauses;
mod pipelines;
mod pools;
mod proxies;
mod pushes;
mod requests;
mod robust;
mod same_verdicts;
mod secure;
mod shapes;
mod shards;
mod streams;
mod support;
mod surplus;
mod websockets;
