//! Two owners of one consumer, and what a pass costs after many.

use std::sync::{Barrier, mpsc};

use pintail_core::stream::WindowLimits;
use pintail_engine::guard::{Lease, LeaseKey};
use pintail_streams::consumer::{Consumer, Pass, Spec};

use crate::consumers::{COUNTS, begun, drain, insert, open, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, On, foreign, on_both, rows};

on_both! {
    two_owners_at_once_write_each_row_once
    a_late_pass_costs_what_the_third_did
}

/// Passes until it is idle, lost its lease, or nothing is left to do.
fn race(consumer: &mut Consumer<'_>) {
    for _ in 0..40 {
        match consumer.pass() {
            Ok(Pass::Idle) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn two_owners_at_once_write_each_row_once(on: On) {
    let lake = Lake::new(on);
    let (here, there) = (begun(&lake), lake.writer());
    let decoder = Pairs::default();
    let limits = WindowLimits { rows: 1, bytes: 1 };
    let spec = Spec { window: limits, ..spec("decode") };
    insert(&here, &["a/2026-01-01/0/x=1"]);
    let mut first = open(&here, spec.clone(), &decoder);
    drain(&mut first);
    for round in 0..3 {
        foreign(
            &here,
            &format!(
                "INSERT INTO lake.main.raw SELECT 'a', '2026-01-01', '{round}-' || i, if(i = 5, 'bad', 'x=1'), NULL FROM range(6_000) r(i)"
            ),
        );
    }
    drop(first);
    // Both own it: the lease of the first is taken for a dead one's, although it lives and goes on.
    let (together, tokens) = (Barrier::new(2), mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let writer = lake.writer();
            let mut zombie = open(&writer, spec.clone(), &decoder);
            tokens.0.send((zombie.token(), writer.guard().clone())).unwrap();
            together.wait();
            race(&mut zombie);
        });
        let (token, guard) = tokens.1.recv().unwrap();
        let lease = Lease { key: LeaseKey { asset: "consumer decode".to_owned(), partition: None }, token };
        guard.ask(|guard| async move { guard.release(&lease).await }).unwrap();
        let mut heir = open(&there, spec.clone(), &decoder);
        assert!(token < heir.token());
        together.wait();
        race(&mut heir);
    });
    drop(there);
    drain(&mut open(&here, Spec { window: limits, ..crate::consumers::spec("decode") }, &decoder));
    let sum = 3 * 5_999 + 1;
    assert_eq!(rows(&here, "SELECT count(*), count(DISTINCT id) FROM lake.main.readings"), [format!("{sum}|{sum}")]);
    assert_eq!(rows(&here, COUNTS), [format!("a|{sum}")]);
    assert_eq!(rows(&here, "SELECT count(*) FROM lake._pintail.dead_letters"), ["3"]);
}

fn a_late_pass_costs_what_the_third_did(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    let mut costs = Vec::new();
    for pass in 0..12 {
        insert(&writer, &[&format!("a/2026-01-0{}/{pass}/x=1", 1 + pass % 9)]);
        // Commits of others, as a busy lake has them.
        foreign(&writer, "CREATE OR REPLACE TABLE lake.main.other AS SELECT 1 AS x");
        writer.session().take_sent();
        assert_eq!(drain(&mut consumer).len(), 1);
        let statements = writer.session().take_sent().len();
        let alias = writer.alias();
        let live =
            format!("SELECT count(*) FROM ducklake_list_files('{alias}', 'cursor_decode', schema => '_pintail')");
        costs.push((statements, rows(&writer, &live)[0].clone()));
    }
    assert_eq!(costs[2], costs[11], "{costs:?}");
    assert_eq!(costs[11].1, "1", "the cursor is one file, however often it has moved");
}
