//! The planner: facts in, an ordered list of steps with reasons out.
