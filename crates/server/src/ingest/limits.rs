//! How often a client may send: a bucket of requests for each, which fills again all the time.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

/// When so many clients are known, those whose buckets are full are forgotten for the first time.
const MANY: usize = 10_000;

/// How often a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// So many requests a second, for long.
    pub per_second: NonZeroU32,
    /// So many at once, after a pause.
    pub burst: NonZeroU32,
}

/// Whose bucket it is: a name of a certificate, or else an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Client {
    Named(String),
    At(IpAddr),
}

/// The buckets of all clients.
pub(super) struct Limits {
    limiter: DefaultKeyedRateLimiter<Client>,
    /// With more buckets than this, those that are full again are let go; looked through seldom enough to cost nothing.
    shrinks_at: AtomicUsize,
    clock: DefaultClock,
}

impl Limits {
    pub(super) fn new(limit: RateLimit) -> Self {
        let quota = Quota::per_second(limit.per_second).allow_burst(limit.burst);
        Self { limiter: RateLimiter::keyed(quota), shrinks_at: AtomicUsize::new(MANY), clock: DefaultClock::default() }
    }

    /// Takes one request out of the bucket of `client`; fails with the time after which there is one again.
    pub(super) fn take(&self, client: &Client) -> Result<(), Duration> {
        let count = self.limiter.len();
        if self.shrinks_at.load(Ordering::Relaxed) < count {
            self.limiter.retain_recent();
            self.shrinks_at.store(MANY.max(2 * self.limiter.len()), Ordering::Relaxed);
        }
        self.limiter.check_key(client).map_err(|early| early.wait_time_from(self.clock.now()))
    }
}
