//! Upkeep of a lake.
