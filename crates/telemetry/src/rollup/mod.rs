//! Rollups of decoded rows: what is newest of each subject and name, and how much there is of it.
//!
//! Invariant: a rollup equals its recomputation from the base after every commit, whatever order rows arrive in. A fold
//! looks at what is new; of the base it reads only the instants at which something new came late, because only there can
//! a row be no news. On a usual pass nothing is late and the base is not read at all, so the cost does not grow with it.
//!
//! Rollups are small, sorted by subject and not partitioned: a fold of 5,000 rows into 400,000 takes about 0.1 s that way
//! and some seconds in 256 buckets.

mod events_latest;
mod fold;
mod signals_latest;

pub use events_latest::EventsLatest;
pub use signals_latest::SignalsLatest;

#[cfg(test)]
mod tests;
