//! Log and lake with a process that dies between any two steps: what was answered lands once.
//!
//! The log's index is the real one; file and lake are models whose commits are atomic, as SQLite's and DuckLake's are.

use std::collections::BTreeMap;

use crate::log::{Index, LogPosition};

/// In which order a flush does its two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The lake first, then the log forgets.
    LandThenForget,
    /// The other way round: what must be seen to lose.
    ForgetThenLand,
    /// The rows first, and the position in a commit of its own: what must be seen to repeat.
    PositionApart,
}

#[derive(Default)]
struct World {
    random: u64,
    /// The log's file: what is durable.
    file: Vec<u64>,
    last_given: u64,
    /// How often each entry is in the lake, and the position there.
    rows: BTreeMap<u64, u32>,
    position: u64,
}

struct Died;

impl World {
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn may_die(&mut self, dies: bool) -> Result<(), Died> {
        if dies && self.below(8) == 0 { Err(Died) } else { Ok(()) }
    }

    fn append(&mut self, index: &mut Index) {
        self.last_given += 1;
        self.file.push(self.last_given);
        index.push(LogPosition(self.last_given), 1, 1, 0);
    }

    fn land(&mut self, at: u64, upto: u64) {
        for entry in self.file.iter().filter(|entry| at < **entry && **entry <= upto) {
            *self.rows.entry(*entry).or_default() += 1;
        }
    }

    fn forget(&mut self, index: &mut Index, upto: u64) {
        index.forget(LogPosition(upto));
        self.file.retain(|entry| upto < *entry);
    }

    /// One life: opens log and lake, takes requests, flushes.
    fn live(&mut self, order: Order, steps: u32, dies: bool) -> Result<(), Died> {
        let mut index = Index::default();
        self.file.iter().for_each(|entry| index.push(LogPosition(*entry), 1, 1, 0));
        index.set_head(LogPosition(self.last_given));
        let mut at = self.position;
        self.forget(&mut index, at);
        for _ in 0..steps {
            for _ in 0..self.below(4) {
                self.append(&mut index);
            }
            self.may_die(dies)?;
            let most = 1 + self.below(4);
            let Some(LogPosition(upto)) = index.cut(LogPosition(at), most, u64::MAX) else { continue };
            match order {
                Order::LandThenForget => {
                    self.land(at, upto);
                    self.position = upto;
                    self.may_die(dies)?;
                    self.forget(&mut index, upto);
                }
                Order::ForgetThenLand => {
                    let rows: Vec<u64> = self.file.clone();
                    self.forget(&mut index, upto);
                    self.may_die(dies)?;
                    self.file = rows;
                    self.land(at, upto);
                    self.position = upto;
                    self.forget(&mut index, upto);
                }
                Order::PositionApart => {
                    self.land(at, upto);
                    self.may_die(dies)?;
                    self.position = upto;
                    self.forget(&mut index, upto);
                }
            }
            at = upto;
            self.may_die(dies)?;
        }
        Ok(())
    }

    fn comes_out_exact(mut self, order: Order) -> bool {
        for _ in 0..12 {
            // What a life leaves is what the next one finds.
            let _ = self.live(order, 20, true);
        }
        let _ = self.live(order, 60, false);
        let _ = self.live(order, 0, false);
        while self.position < self.last_given {
            self.land(self.position, self.position + 1);
            self.position += 1;
        }
        (1..=self.last_given).all(|entry| self.rows.get(&entry) == Some(&1))
    }
}

fn exact_of(order: Order) -> usize {
    (0..200).filter(|seed| World { random: *seed, ..World::default() }.comes_out_exact(order)).count()
}

#[test]
fn what_was_answered_lands_once_whatever_dies() {
    assert_eq!(exact_of(Order::LandThenForget), 200);
}

#[test]
fn forgetting_first_loses_and_a_position_of_its_own_repeats() {
    assert!(exact_of(Order::ForgetThenLand) < 100);
    assert!(exact_of(Order::PositionApart) < 100);
}
