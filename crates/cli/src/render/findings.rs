//! What the steps of a run have to say besides their rows: notes, warnings of tests, failures.
//!
//! A backfill says the same for many partitions, so what is equal is said once, with how many there were and the first.

use pintail_core::plan::Step;
use pintail_runner::executors::StepFailure;
use pintail_store::TestStatus;

use super::plan::step_name;
use super::run::{EndedStep, count_rows};
use super::text::{count, thousands};

/// Equal failures of one script that are shown in full.
const SHOWN_FAILURES: usize = 1;

/// Returns the notes of the steps, a line each.
pub fn notes(steps: &[Step], ended: &[EndedStep]) -> Vec<String> {
    let mut folded = Folded::default();
    for (step, ended) in in_order(steps, ended) {
        let notes = ended.report.iter().flat_map(|report| &report.notes);
        for note in notes {
            folded.add(step, note.clone(), 0);
        }
    }
    folded.groups.iter().map(|group| format!("{}: {}", group.names(), group.what)).collect()
}

/// Returns the tests that only warn and found something, a line each.
pub fn warnings(steps: &[Step], ended: &[EndedStep]) -> Vec<String> {
    let mut folded = Folded::default();
    for (step, ended) in in_order(steps, ended) {
        let tests = ended.report.iter().flat_map(|report| &report.tests);
        for test in tests.filter(|test| test.status == TestStatus::Warned) {
            folded.add(step, test.name.clone(), test.failures.unwrap_or(0));
        }
    }
    let line = |group: &Group<'_>| {
        let found = if group.rows == 0 { "rows".to_owned() } else { count_rows(group.rows) };
        let writes = if group.steps.len() == 1 { "the write" } else { "the writes" };
        format!("{}: test `{}` found {found}; it only warns, so {writes} went on", group.names(), group.what)
    };
    folded.groups.iter().map(line).collect()
}

/// The failures that are shown in full, and a sentence for each script that has more of them.
#[derive(Default)]
pub struct Failures<'a> {
    /// Shown in full.
    pub shown: Vec<(&'a Step, &'a StepFailure)>,
    /// What there is besides.
    pub more: Vec<String>,
}

/// Returns the failures, those of one script that differ in their partition only once.
pub fn failures<'a>(steps: &'a [Step], ended: &'a [EndedStep]) -> Failures<'a> {
    let mut failures = Failures::default();
    let mut folded = Folded::default();
    for (step, ended) in in_order(steps, ended) {
        let Some(failure) = ended.failure() else { continue };
        let before = folded.add(step, signature(step, failure), 0);
        if before < SHOWN_FAILURES {
            failures.shown.push((step, failure));
        }
    }
    for group in folded.groups.iter().filter(|group| SHOWN_FAILURES < group.steps.len()) {
        let others = group.steps.len() - SHOWN_FAILURES;
        let noun = if others == 1 { "partition" } else { "partitions" };
        let last = group.steps.last().and_then(|step| step.partition.as_ref());
        let upto = last.map_or_else(String::new, |last| format!(", the last {last}"));
        let name = &group.steps[0].name;
        failures.more.push(format!("{} more {noun} of {name} failed in the same way{upto}", thousands(others as u64)));
    }
    failures
}

/// Returns what failures have in common that differ in their partition and in numbers only.
fn signature(step: &Step, failure: &StepFailure) -> String {
    let partition = step.partition.as_ref().map(ToString::to_string).unwrap_or_default();
    let message = match partition.as_str() {
        "" => failure.message.clone(),
        partition => failure.message.replace(partition, ""),
    };
    // Only the first line: the others are samples.
    let line = message.lines().next().unwrap_or_default();
    let without_numbers: String = line.chars().filter(|character| !character.is_ascii_digit()).collect();
    format!("{} {} {without_numbers}", failure.code.as_str(), failure.stage)
}

fn in_order<'a>(steps: &'a [Step], ended: &'a [EndedStep]) -> impl Iterator<Item = (&'a Step, &'a EndedStep)> {
    let mut in_order: Vec<&EndedStep> = ended.iter().collect();
    in_order.sort_by_key(|ended| ended.index);
    in_order.into_iter().map(|ended| (&steps[ended.index], ended))
}

/// What was said, in the order in which it was said first.
#[derive(Default)]
struct Folded<'a> {
    groups: Vec<Group<'a>>,
}

struct Group<'a> {
    what: String,
    steps: Vec<&'a Step>,
    rows: u64,
}

impl<'a> Folded<'a> {
    /// Takes note that `step` said `what`, and returns how many steps of its script had said it before.
    fn add(&mut self, step: &'a Step, what: String, rows: u64) -> usize {
        let is_same = |group: &&mut Group<'a>| group.what == what && group.steps[0].name == step.name;
        match self.groups.iter_mut().find(is_same) {
            Some(group) => {
                group.steps.push(step);
                group.rows += rows;
                group.steps.len() - 1
            }
            None => {
                self.groups.push(Group { what, steps: vec![step], rows });
                0
            }
        }
    }
}

impl Group<'_> {
    /// Returns whom it is about: `orders 2026-06-01`, or `orders, 12 partitions from 2026-06-01`.
    fn names(&self) -> String {
        let first = self.steps[0];
        match (&first.partition, self.steps.len()) {
            (Some(partition), 2..) => {
                format!("{}, {} from {partition} on", first.name, count(self.steps.len(), "partition"))
            }
            _ => step_name(first),
        }
    }
}
