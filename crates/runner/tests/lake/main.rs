//! The runner on real lakes: every case opens a project in a folder of its own and runs it as a face would.

#![expect(clippy::unwrap_used, reason = "a set-up that breaks must stop the test")]

mod catalogs;
mod compaction;
mod harness;
mod processes;

mod atomic;
mod audits;
mod backfills;
mod basics;
mod crashes;
mod data_tests;
mod datatable;
mod dynamic;
mod examples;
mod failures;
mod files;
mod groups;
mod guards;
mod history;
mod hot_tables;
mod lineage;
mod maintenance;
mod memory;
mod names;
mod objects;
mod outages;
mod ownership;
mod positions;
mod postgres;
mod profiles;
mod races;
mod runs;
mod schema_changes;
mod spill;
mod states;
mod steps;
mod storm;
mod strategies;
mod streams;
mod unchanged;
mod upkeep_faults;
mod versions;
