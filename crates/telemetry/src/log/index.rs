//! How much of the log waits, by position, without reading it: one small element an entry, with running totals.

use std::collections::VecDeque;

use super::LogPosition;

/// What lies after a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// When the oldest was appended, in microseconds since 1970 UTC; 0 when there is none.
    pub oldest_micros: i64,
}

/// One entry, with the totals up to and including it.
#[derive(Clone, Copy, Debug)]
struct Mark {
    position: LogPosition,
    records: u64,
    bytes: u64,
    at_micros: i64,
}

/// The entries of a log.
#[derive(Debug, Default)]
pub(crate) struct Index {
    marks: VecDeque<Mark>,
    /// The newest position that was given, also when its entry is gone.
    head: LogPosition,
    /// The totals before the first mark.
    records_before: u64,
    bytes_before: u64,
}

impl Index {
    /// Adds the newest entry.
    pub(crate) fn push(&mut self, position: LogPosition, records: u64, bytes: u64, at_micros: i64) {
        debug_assert!(self.head < position, "positions grow");
        let (records, bytes) = match self.marks.back() {
            Some(last) => (last.records + records, last.bytes + bytes),
            None => (self.records_before + records, self.bytes_before + bytes),
        };
        self.marks.push_back(Mark { position, records, bytes, at_micros });
        self.head = position;
    }

    /// Says that positions up to `head` have been given, whether or not their entries are there.
    pub(crate) fn set_head(&mut self, head: LogPosition) {
        self.head = self.head.max(head);
    }

    /// Returns the newest position that was given; 0 when there is none.
    pub(crate) fn head(&self) -> LogPosition {
        self.head
    }

    pub(crate) fn first(&self) -> Option<LogPosition> {
        self.marks.front().map(|mark| mark.position)
    }

    pub(crate) fn pending(&self, after: LogPosition) -> Pending {
        let from = self.first_after(after);
        let (Some(oldest), Some(last)) = (self.marks.get(from), self.marks.back()) else { return Pending::default() };
        let (records, bytes) = self.totals_before(from);
        Pending { records: last.records - records, bytes: last.bytes - bytes, oldest_micros: oldest.at_micros }
    }

    pub(crate) fn cut(&self, after: LogPosition, records: u64, bytes: u64) -> Option<LogPosition> {
        let from = self.first_after(after);
        let first = self.marks.get(from)?;
        let (records_before, bytes_before) = self.totals_before(from);
        let fits = |mark: &Mark| mark.records - records_before <= records && mark.bytes - bytes_before <= bytes;
        // Totals grow with the position, so what fits is a run at the beginning.
        let end = self.marks.partition_point(|mark| mark.position <= after || fits(mark));
        Some(if end == from { first.position } else { self.marks[end - 1].position })
    }

    /// Removes the entries up to `upto` and returns their bytes.
    pub(crate) fn forget(&mut self, upto: LogPosition) -> u64 {
        let before = self.bytes_before;
        while let Some(mark) = self.marks.front().filter(|mark| mark.position <= upto) {
            (self.records_before, self.bytes_before) = (mark.records, mark.bytes);
            self.marks.pop_front();
        }
        self.bytes_before - before
    }

    fn first_after(&self, after: LogPosition) -> usize {
        self.marks.partition_point(|mark| mark.position <= after)
    }

    fn totals_before(&self, index: usize) -> (u64, u64) {
        match index.checked_sub(1) {
            Some(previous) => (self.marks[previous].records, self.marks[previous].bytes),
            None => (self.records_before, self.bytes_before),
        }
    }
}
