//! The binary on real lakes, as a person uses it: that the parts are wired, and that what it says is right and helps.
//!
//! What can be shown without a process is tested where it lives.

mod backfills;
mod consumer_mistakes;
mod consumers;
mod explain;
mod failing_steps;
mod ingest;
mod interrupt;
mod json;
mod lifecycle;
mod mistakes;
mod owners;
mod partitions;
mod places;
mod questions;
mod scaffolds;
mod secrets;
mod states;
mod unchanged;
mod upkeep;
mod versions;
mod whole_system;

use expect_test::Expect;
use pintail_testkit::{Outcome, Project, pintail};

/// Runs `pintail` with the words of `line`.
fn run(project: &Project, line: &str) -> Outcome {
    pintail(project).words(line).run()
}

/// Compares everything that a person sees of `pintail <line>`, and its exit code.
#[track_caller]
fn check(project: &Project, line: &str, expected: Expect) {
    expected.assert_eq(&run(project, line).to_string());
}

/// Two scripts, one of which reads the other's table.
const SHOP: &str = "
//- /pipelines/orders.sql
-- description The orders of a shop.
-- owner ada
-- tag nightly
-- materialize ducklake://main/orders key=order_id
-- test unique order_id
-- test not_null customer

SELECT * FROM (VALUES (1, 'ada', 40.00), (2, 'grace', 12.50), (3, 'ada', 7.25)) AS orders(order_id, customer, amount)
//- /pipelines/revenue.sql
-- materialize ducklake://main/revenue

SELECT customer, sum(amount)::DECIMAL(18, 2) AS revenue FROM orders GROUP BY ALL ORDER BY customer
";
