//! The stamp in a Parquet file's footer.
//!
//! The engine writes it as a key-value pair, whose text stands in the footer as it is, so it is found by what every stamp
//! begins with; nothing else of the format has to be read.

use pintail_core::sql::stamp::{StampEntry, from_extra_info};

/// What a stamp begins with.
const BEGINNING: &[u8] = b"{\"pintail\":";

/// The four bytes at both ends of every Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// How many bytes of the end of a file hold its footer; `None` when `tail` is not the end of a Parquet file.
pub fn footer_length(tail: &[u8]) -> Option<usize> {
    let end = tail.len().checked_sub(8)?;
    let (length, magic) = tail[end..].split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes were split off"));
    (magic == MAGIC).then(|| usize::try_from(length).ok()?.checked_add(8)).flatten()
}

/// Returns the stamp in `tail`, the end of a file with its whole footer.
pub fn stamp(tail: &[u8]) -> Option<StampEntry> {
    let at = tail.windows(BEGINNING.len()).position(|window| window == BEGINNING)?;
    let value = serde_json::Deserializer::from_slice(&tail[at..]).into_iter::<serde_json::Value>().next()?.ok()?;
    from_extra_info(&value.to_string()).ok().flatten()?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_parquet_file_has_a_footer() {
        assert_eq!(footer_length(b"xxxx\x05\0\0\0PAR1"), Some(13));
        assert_eq!(footer_length(b"xxxx\x05\0\0\0PAR2"), None);
        assert_eq!(footer_length(b"PAR1"), None);
    }

    #[test]
    fn a_file_of_somebody_else_has_no_stamp() {
        assert_eq!(stamp(b"ARROW:schema {\"pandas\": 1} PAR1"), None);
        assert_eq!(stamp(b"{\"pintail\": oh"), None);
    }
}
