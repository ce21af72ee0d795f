//! Sizes as people write them: `4GB`, `512 MiB`.

use std::fmt;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Units, largest first; the decimal one before the binary one of the same letter.
const UNITS: [(&str, u64); 9] = [
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl ByteSize {
    /// Returns the size that `text` says, such as `4GB`, `1.5 GiB` or `800 mb`; `None` for anything else and for zero.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits_end);
        let unit = unit.trim_start();
        let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        scaled(number, *factor).filter(|bytes| 0 < *bytes).map(Self)
    }
}

/// Multiplies a decimal text exactly, dropping what is below a byte.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || 9 < fraction.len() {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(factor) / scale;
    whole.checked_add(u64::try_from(part).ok()?)
}

impl fmt::Display for ByteSize {
    /// Prints the largest unit that divides the size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |factor: u64| factor <= self.0 && self.0.is_multiple_of(factor);
        let (name, factor) = UNITS.iter().find(|(_, factor)| fits(*factor)).unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ByteSize;

    proptest! {
        #[test]
        fn a_printed_size_is_read_back(bytes in 1..u64::MAX) {
            prop_assert_eq!(ByteSize::parse(&ByteSize(bytes).to_string()), Some(ByteSize(bytes)));
        }

        #[test]
        fn any_text_is_a_size_or_none(text in "[0-9.]{0,25} ?[kKmMgGtT]?[iI]?[bB]?") {
            prop_assert_ne!(ByteSize::parse(&text), Some(ByteSize(0)));
        }
    }

    #[test]
    fn sizes_are_read_exactly_and_printed_in_the_largest_unit() {
        let cases = [
            ("4GB", 4_000_000_000, "4GB"),
            ("1.5 GiB", 1_610_612_736, "1536MiB"),
            (" 800 mb ", 800_000_000, "800MB"),
            ("1000000000B", 1_000_000_000, "1GB"),
            ("7b", 7, "7B"),
            ("0.1KB", 100, "100B"),
            ("2TiB", 2 << 40, "2TiB"),
        ];
        for (text, bytes, printed) in cases {
            assert_eq!(ByteSize::parse(text), Some(ByteSize(bytes)), "{text}");
            assert_eq!(ByteSize(bytes).to_string(), printed);
            assert_eq!(ByteSize::parse(printed), Some(ByteSize(bytes)), "{printed}");
        }
    }

    #[test]
    fn other_texts_are_no_size() {
        for text in ["", "4", "GB", "4 G", "-1GB", "1..5GB", ".5GB", "4GBs", "0GB", "99999999TB", "1e3MB"] {
            assert_eq!(ByteSize::parse(text), None, "{text}");
        }
    }
}
