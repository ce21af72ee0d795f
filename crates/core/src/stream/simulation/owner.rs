//! One owner: a process that takes the lease, looks, decides, reads, and commits window by window.

use super::world::{Brought, FeedRow, World, is_poison};
use crate::stream::{Decision, GapPolicy, Part, Passage, Permit, Span, decide};

enum Work {
    Span(Span),
    Passage(Passage),
}

impl Work {
    fn permit(&self, part: Part, token: i64) -> Permit {
        match self {
            Work::Span(span) => span.permit(part, token),
            Work::Passage(passage) => passage.permit(part, token),
        }
    }
}

enum Step {
    Lease,
    Observe,
    Read(Work),
    Window { work: Work, windows: Vec<Vec<FeedRow>> },
    Begun { work: Work, windows: Vec<Vec<FeedRow>>, permit: Permit, base: i64, fresh: Vec<u64>, dead: Vec<FeedRow> },
    Report { upto: i64 },
}

/// Events, letters and the range that was left out.
type Written = (Vec<u64>, Vec<FeedRow>, Option<(i64, i64)>);

pub struct Owner {
    id: usize,
    token: i64,
    seen: i64,
    step: Step,
}

impl Owner {
    pub fn new(id: usize) -> Self {
        Self { id, token: 0, seen: 0, step: Step::Lease }
    }

    /// Does one step; whatever lies between two of them may happen.
    pub fn step(&mut self, world: &mut World) {
        self.step = match std::mem::replace(&mut self.step, Step::Lease) {
            Step::Lease => self.lease(world),
            Step::Observe => self.observe(world),
            Step::Read(work) => read(world, work),
            Step::Window { work, windows } => self.begin(world, work, windows),
            Step::Begun { work, windows, permit, base, fresh, dead } => {
                let last = windows.len() == 1;
                let skipped = last && matches!((&work, world.policy), (Work::Passage(_), GapPolicy::Skip));
                let range = skipped.then(|| (permit.from().0, permit.to().0));
                match self.commit(world, &permit, base, (fresh, dead, range)) {
                    Some(()) if last => Step::Report { upto: world.row.at },
                    Some(()) => Step::Window { work, windows: windows[1..].to_vec() },
                    None => Step::Observe,
                }
            }
            Step::Report { upto } => {
                // A late report must not say less than what expiry has relied on.
                world.progress = if world.protocol.reports_forward { upto.max(world.progress) } else { upto };
                Step::Observe
            }
        };
    }

    fn lease(&mut self, world: &mut World) -> Step {
        if world.lease.is_some_and(|(owner, _)| owner != self.id) {
            return Step::Lease;
        }
        world.tokens += 1;
        self.token = world.tokens;
        world.lease = Some((self.id, self.token));
        Step::Observe
    }

    fn observe(&mut self, world: &mut World) -> Step {
        let cursor = world.row.at;
        self.seen = self.seen.max(cursor);
        let snapshots = world.seen_since(self.seen);
        match decide(&world.facts(cursor, self.seen, &snapshots)) {
            Decision::Idle => {
                world.counts.idle += 1;
                self.seen = world.head();
                Step::Report { upto: self.seen }
            }
            Decision::Consume(span) => {
                if !world.protocol.reports_late {
                    world.progress = span.upto().0;
                }
                Step::Read(Work::Span(span))
            }
            Decision::Rescan(passage) | Decision::Skip(passage) => {
                world.note_gap();
                Step::Read(Work::Passage(passage))
            }
            other => {
                world.found.push(format!("decided {other:?}"));
                Step::Observe
            }
        }
    }

    fn begin(&mut self, world: &mut World, work: Work, windows: Vec<Vec<FeedRow>>) -> Step {
        let is_first_of_early = world.protocol.moves_early;
        let part = if windows.len() == 1 || is_first_of_early { Part::Last } else { Part::Between };
        let permit = work.permit(part, self.token);
        let (row, protocol) = (world.row, world.protocol);
        let is_in_place =
            !protocol.swaps || row.at == permit.from().0 || (protocol.moves_early && row.at == permit.to().0);
        let is_newest = !protocol.fences || row.token <= permit.token();
        if !is_in_place || !is_newest {
            world.counts.moved += 1;
            return if is_newest { Step::Observe } else { Step::Lease };
        }
        let mut fresh: Vec<u64> =
            windows[0].iter().map(|(_, event)| *event).filter(|event| !is_poison(*event)).collect();
        fresh.sort_unstable();
        fresh.dedup();
        fresh.retain(|event| !world.target.contains(event));
        let mut dead: Vec<FeedRow> = windows[0].iter().filter(|(_, event)| is_poison(*event)).copied().collect();
        dead.sort_unstable();
        dead.dedup();
        dead.retain(|letter| !world.dead.contains(letter));
        Step::Begun { work, windows, permit, base: world.head(), fresh, dead }
    }

    /// Commits, or finds that somebody wrote the row since the transaction began. The answer may be lost: then the owner
    /// goes on as if it knew nothing.
    fn commit(&mut self, world: &mut World, permit: &Permit, base: i64, (fresh, dead, skipped): Written) -> Option<()> {
        let writes_row = permit.from() != permit.to() || world.protocol.touches;
        if writes_row && base < world.row.written {
            world.counts.conflicts += 1;
            return None;
        }
        world.snapshots.push(Brought::Nothing);
        world.counts.commits += 1;
        if permit.token() < world.row.token {
            world.found.push("an older owner wrote after a newer one".to_owned());
        }
        if writes_row {
            if permit.to().0 < world.row.at {
                world.found.push(format!("the cursor went back from {} to {}", world.row.at, permit.to()));
            }
            world.row.at = permit.to().0;
            world.row.token = world.row.token.max(permit.token());
            world.row.written = world.head();
        }
        world.target.extend(fresh);
        world.dead.extend(dead);
        world.skipped.extend(skipped);
        (world.is_calm || world.dice.roll(5) != 0).then_some(())
    }
}

/// Reads everything at once; what is expired meanwhile is seen as a failure.
fn read(world: &mut World, work: Work) -> Step {
    let rows: Vec<FeedRow> = match &work {
        Work::Span(span) => {
            if span.snapshots().iter().any(|id| world.gone.contains(&id.0)) {
                return Step::Observe;
            }
            let of = |id: i64| match &world.snapshots[id as usize] {
                Brought::Events(events) | Brought::Rewrite(events) => events.iter().map(|event| (id, *event)).collect(),
                Brought::Nothing => Vec::new(),
            };
            span.snapshots().iter().flat_map(|id| of(id.0)).collect()
        }
        Work::Passage(_) if world.policy == GapPolicy::Skip => Vec::new(),
        Work::Passage(passage) => {
            let rows = world.rows_upto(passage.upto().0);
            rows.into_iter().filter(|(id, _)| passage.after().0 < *id).collect()
        }
    };
    let mut windows: Vec<Vec<FeedRow>> = rows.chunks(2).map(<[FeedRow]>::to_vec).collect();
    if windows.is_empty() {
        windows.push(Vec::new());
    }
    Step::Window { work, windows }
}
