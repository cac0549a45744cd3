//! Indices, each of its own type, so that one cannot be passed for another. They cost what a `u32` costs.

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A connection of one worker.
    ConnectionId
}
index! {
    /// A request in flight of one worker. It is reused once the request has ended.
    PendingId
}
index! {
    /// One of the scenario's tapes.
    TapeId
}
index! {
    /// A worker of this process.
    WorkerId
}
index! {
    /// A worker among those of all processes that do the job.
    GlobalWorkerId
}
