//! The decision, and the second look at it when the lane is held.

use crate::id::SnapshotId;

/// One snapshot of a lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// When it was made, in microseconds since 1970 UTC.
    pub at_micros: i64,
}

/// Somebody's hold on a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Who.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Whether work is in progress on it: then everything from it on stays too.
    pub is_in_flight: bool,
}

/// What is known.
#[derive(Clone, Copy, Debug)]
pub struct RetentionFacts<'a> {
    /// The snapshots of the lake, oldest first.
    pub snapshots: &'a [Snapshot],
    /// Who holds which.
    pub holds: &'a [Hold],
    /// What was made at or after this moment stays.
    pub keep_from_micros: i64,
}

/// Why a snapshot stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is the newest.
    Head,
    /// It is not old enough.
    Young,
    /// These hold it, as positions in the facts.
    Held(Vec<usize>),
    /// The work of this hold may be older than it.
    AfterWork(usize),
}

/// A snapshot that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The snapshot.
    pub id: SnapshotId,
    /// Why.
    pub why: Why,
}

/// What goes and what stays; together they are all snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What may go, oldest first.
    pub expire: Vec<SnapshotId>,
    /// What stays, oldest first.
    pub kept: Vec<Kept>,
}

/// Decides for every snapshot.
pub fn decide(facts: &RetentionFacts<'_>) -> Decision {
    let head = facts.snapshots.last().map(|snapshot| snapshot.id);
    let floor = floor(facts.holds);
    let mut decision = Decision::default();
    for snapshot in facts.snapshots {
        match why_kept(facts, *snapshot, head, floor) {
            Some(why) => decision.kept.push(Kept { id: snapshot.id, why }),
            None => decision.expire.push(snapshot.id),
        }
    }
    decision
}

fn why_kept(
    facts: &RetentionFacts<'_>,
    snapshot: Snapshot,
    head: Option<SnapshotId>,
    floor: Option<(usize, SnapshotId)>,
) -> Option<Why> {
    if Some(snapshot.id) == head {
        return Some(Why::Head);
    }
    let holders: Vec<usize> = positions(facts.holds, snapshot.id).collect();
    if !holders.is_empty() {
        return Some(Why::Held(holders));
    }
    if facts.keep_from_micros <= snapshot.at_micros {
        return Some(Why::Young);
    }
    floor.filter(|(_, floor)| *floor <= snapshot.id).map(|(hold, _)| Why::AfterWork(hold))
}

fn positions(holds: &[Hold], snapshot: SnapshotId) -> impl Iterator<Item = usize> + '_ {
    holds.iter().enumerate().filter(move |(_, hold)| hold.snapshot == snapshot).map(|(position, _)| position)
}

/// The oldest work in progress.
fn floor(holds: &[Hold]) -> Option<(usize, SnapshotId)> {
    let in_flight = holds.iter().enumerate().filter(|(_, hold)| hold.is_in_flight);
    in_flight.map(|(position, hold)| (position, hold.snapshot)).min_by_key(|(_, snapshot)| *snapshot)
}

/// Returns those of `expire` that nobody holds now: holds that came since the decision count, work that began since
/// counts, and nothing is added.
pub fn still_free(expire: &[SnapshotId], holds: &[Hold]) -> Vec<SnapshotId> {
    let floor = floor(holds).map(|(_, floor)| floor);
    let is_free = |id: &SnapshotId| positions(holds, *id).next().is_none() && floor.is_none_or(|floor| *id < floor);
    expire.iter().copied().filter(is_free).collect()
}

/// Returns the moment before which files must have been let go to be deleted now: `grace` ago, for readers that nobody knows
/// of, or when the oldest of `work` in progress began, which may have found them. All are in one unit.
pub fn delete_before(now: i64, grace: i64, work: impl IntoIterator<Item = i64>) -> i64 {
    work.into_iter().fold(now.saturating_sub(grace), i64::min)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshots(times: &[i64]) -> Vec<Snapshot> {
        let one = |(id, at): (usize, &i64)| Snapshot { id: SnapshotId(i64::try_from(id).unwrap()), at_micros: *at };
        times.iter().enumerate().map(one).collect()
    }

    fn hold(snapshot: i64, is_in_flight: bool) -> Hold {
        Hold { snapshot: SnapshotId(snapshot), owner: "a".into(), reason: "b".into(), is_in_flight }
    }

    fn ids(ids: &[SnapshotId]) -> Vec<i64> {
        ids.iter().map(|id| id.0).collect()
    }

    fn expired(times: &[i64], holds: &[Hold], keep_from_micros: i64) -> Vec<i64> {
        ids(&decide(&RetentionFacts { snapshots: &snapshots(times), holds, keep_from_micros }).expire)
    }

    #[test]
    fn what_is_old_goes_and_the_head_stays() {
        assert_eq!(expired(&[1, 2, 3, 4], &[], 3), [0, 1]);
        assert_eq!(expired(&[1, 2, 3, 4], &[], 100), [0, 1, 2]);
        assert_eq!(expired(&[], &[], 100), Vec::<i64>::new());
    }

    #[test]
    fn a_pin_is_a_hole_and_work_in_progress_is_a_floor() {
        assert_eq!(expired(&[1, 2, 3, 4, 5], &[hold(1, false)], 100), [0, 2, 3]);
        assert_eq!(expired(&[1, 2, 3, 4, 5], &[hold(2, true)], 100), [0, 1]);
        assert_eq!(expired(&[1, 2, 3, 4, 5], &[hold(3, true), hold(1, true)], 100), [0]);
    }

    #[test]
    fn each_kept_snapshot_says_who_holds_it() {
        let holds = [hold(1, false), hold(3, true), hold(1, false)];
        let facts =
            RetentionFacts { snapshots: &snapshots(&[1, 2, 3, 4, 5, 200, 201]), holds: &holds, keep_from_micros: 100 };
        let decision = decide(&facts);
        let why: Vec<(i64, Why)> = decision.kept.into_iter().map(|kept| (kept.id.0, kept.why)).collect();
        assert_eq!(
            why,
            [
                (1, Why::Held(vec![0, 2])),
                (3, Why::Held(vec![1])),
                (4, Why::AfterWork(1)),
                (5, Why::Young),
                (6, Why::Head)
            ]
        );
    }

    #[test]
    fn a_hold_that_came_later_is_respected_and_nothing_is_added() {
        let expire: Vec<SnapshotId> = (0..6).map(SnapshotId).collect();
        assert_eq!(ids(&still_free(&expire, &[hold(2, false)])), [0, 1, 3, 4, 5]);
        assert_eq!(ids(&still_free(&expire, &[hold(2, true), hold(0, false)])), [1]);
        assert_eq!(ids(&still_free(&[], &[])), Vec::<i64>::new());
    }

    proptest! {
        #[test]
        fn nothing_that_anyone_needs_goes(
            times in proptest::collection::vec(0_i64..50, 1..40),
            held in proptest::collection::vec((0_i64..40, any::<bool>()), 0..6),
            keep_from in 0_i64..60,
        ) {
            let holds: Vec<Hold> = held.iter().map(|(snapshot, in_flight)| hold(*snapshot, *in_flight)).collect();
            let all = snapshots(&times);
            let facts = RetentionFacts { snapshots: &all, holds: &holds, keep_from_micros: keep_from };
            let decision = decide(&facts);
            prop_assert_eq!(decision.expire.len() + decision.kept.len(), all.len());
            for id in &decision.expire {
                let snapshot = all.iter().find(|snapshot| snapshot.id == *id).unwrap();
                prop_assert!(Some(*id) != all.last().map(|head| head.id));
                prop_assert!(snapshot.at_micros < keep_from);
                prop_assert!(holds.iter().all(|hold| hold.snapshot != *id));
                prop_assert!(holds.iter().filter(|hold| hold.is_in_flight).all(|hold| *id < hold.snapshot));
            }
            // A pin keeps its own snapshot only: without in-flight work everything else that is old goes.
            if holds.iter().all(|hold| !hold.is_in_flight) {
                for kept in &decision.kept {
                    prop_assert!(!matches!(kept.why, Why::AfterWork(_)));
                }
            }
            prop_assert_eq!(still_free(&decision.expire, &holds), decision.expire);
        }
    }
}
