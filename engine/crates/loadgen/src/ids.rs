//! Indices with a type of their own, so that they cannot be confused. They cost as much as a `u32`.

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
    /// A connection of a worker.
    ConnectionId
}
index! {
    /// A request in flight of a worker. The index is reused once the request has ended.
    PendingId
}
index! {
    /// A tape of the scenario.
    TapeId
}
index! {
    /// A worker of this process.
    WorkerId
}
index! {
    /// A worker among the workers of all processes of the job.
    GlobalWorkerId
}
