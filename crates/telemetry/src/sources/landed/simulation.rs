//! A broker that delivers again in any order, a process that dies between any two steps, and a lake: every message lands once.

use std::collections::{BTreeMap, BTreeSet};

use super::Landed;

/// How what has landed is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// As it is.
    Set,
    /// As one number, the highest: what must be seen to lose.
    Number,
    /// Not at all: what must be seen to repeat.
    Nothing,
}

struct World {
    memory: Memory,
    random: u64,
    /// Messages that the broker has not seen acknowledged.
    unacknowledged: BTreeSet<u64>,
    messages: u64,
    /// How often each message is in the lake.
    rows: BTreeMap<u64, u32>,
    /// The position's text in the lake.
    position: String,
}

/// The process died; what it knew is gone.
struct Died;

impl World {
    fn new(memory: Memory, seed: u64) -> Self {
        let messages = 30;
        let position = Landed::default().to_text();
        Self {
            memory,
            random: seed,
            unacknowledged: (1..=messages).collect(),
            messages,
            rows: BTreeMap::new(),
            position,
        }
    }

    /// Returns a number below `end` (splitmix64).
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn may_die(&mut self, dies: bool) -> Result<(), Died> {
        if dies && self.below(6) == 0 { Err(Died) } else { Ok(()) }
    }

    /// One life of the process; `dies` says whether it may end before everything is acknowledged.
    fn live(&mut self, dies: bool) -> Result<(), Died> {
        let mut landed = Landed::parse(&self.position).expect("the lake has what was written");
        while !self.unacknowledged.is_empty() {
            let delivered: Vec<u64> = self.unacknowledged.clone().into_iter().filter(|_| self.below(3) == 0).collect();
            self.may_die(dies)?;
            let new: Vec<u64> = delivered.iter().copied().filter(|message| !self.knows(&landed, *message)).collect();
            let mut after = landed.clone();
            after.add(new.iter().copied());
            self.may_die(dies)?;
            // Rows and position are one commit.
            new.iter().for_each(|message| *self.rows.entry(*message).or_default() += 1);
            self.position = after.to_text();
            self.may_die(dies)?;
            landed = after;
            for message in delivered {
                self.may_die(dies)?;
                // An acknowledgement may get lost.
                if self.below(5) != 0 {
                    self.unacknowledged.remove(&message);
                }
            }
            let floor = self.unacknowledged.first().map_or(self.messages, |first| first - 1);
            landed.raise_floor(floor);
        }
        Ok(())
    }

    fn knows(&self, landed: &Landed, message: u64) -> bool {
        match self.memory {
            Memory::Set => landed.contains(message),
            Memory::Number => message <= landed.ranges.last().map_or(landed.floor, |(_, last)| *last),
            Memory::Nothing => false,
        }
    }

    /// Returns whether every message is in the lake once, after some lives that end early and one that does not.
    fn comes_out_exact(mut self) -> bool {
        for _ in 0..10 {
            // Whatever a life leaves, the next one goes on from the lake.
            let _ = self.live(true);
        }
        let _ = self.live(false);
        (1..=self.messages).all(|message| self.rows.get(&message) == Some(&1))
    }
}

fn exact_of(memory: Memory) -> usize {
    (0..300).filter(|seed| World::new(memory, *seed).comes_out_exact()).count()
}

#[test]
fn every_message_lands_once_whatever_dies_and_whatever_is_delivered_again() {
    assert_eq!(exact_of(Memory::Set), 300);
}

#[test]
fn one_number_loses_and_no_memory_repeats() {
    assert!(exact_of(Memory::Number) < 100);
    assert!(exact_of(Memory::Nothing) < 100);
}
