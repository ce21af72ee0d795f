//! Pintail store.
