//! NDJSON: one event a line; empty lines mean nothing, and are not counted.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::{ImportError, SourceRecord};

/// Hands each line to `each`.
pub(super) fn read(
    path: &Path,
    each: &mut impl FnMut(SourceRecord<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let failed = |source| ImportError::File { operation: "read", path: path.to_owned(), source };
    let mut lines = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            each(SourceRecord::parse(text))?;
        }
    }
}
