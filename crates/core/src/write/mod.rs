//! Decisions of the write protocol: what a commit conflicts with, and what follows an error.
