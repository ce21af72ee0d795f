//! Windows: the rows of a span that are decoded and committed at once, bounded by rows and by bytes.

/// The most that a window holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    /// Rows.
    pub rows: u64,
    /// Bytes in memory, as the batches count them.
    pub bytes: u64,
}

impl Default for WindowLimits {
    fn default() -> Self {
        Self { rows: 100_000, bytes: 128 << 20 }
    }
}

/// How much a window holds so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCount {
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

impl WindowCount {
    /// Returns whether `more` rows of `bytes` still belong to the window; the first ones always do, however large.
    pub fn takes(&self, rows: u64, bytes: u64, limits: &WindowLimits) -> bool {
        self.rows == 0 || (self.rows + rows <= limits.rows && self.bytes + bytes <= limits.bytes)
    }

    /// Counts what was taken.
    pub fn add(&mut self, rows: u64, bytes: u64) {
        self.rows += rows;
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_tile_what_is_read_and_keep_to_the_limits(
            batches in proptest::collection::vec((1_u64..50, 0_u64..2_000), 0..60),
            rows in 1_u64..80,
            bytes in 1_u64..3_000,
        ) {
            let limits = WindowLimits { rows, bytes };
            let mut windows: Vec<Vec<(u64, u64)>> = vec![Vec::new()];
            let mut count = WindowCount::default();
            for batch in &batches {
                if !count.takes(batch.0, batch.1, &limits) {
                    windows.push(Vec::new());
                    count = WindowCount::default();
                }
                count.add(batch.0, batch.1);
                windows.last_mut().unwrap().push(*batch);
            }
            for window in &windows {
                let sum = |of: fn(&(u64, u64)) -> u64| window.iter().map(of).sum::<u64>();
                prop_assert!(window.len() <= 1 || (sum(|b| b.0) <= rows && sum(|b| b.1) <= bytes));
            }
            prop_assert_eq!(windows.concat(), batches);
        }
    }
}
