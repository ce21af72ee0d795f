//! Small texts: counts, times, ids.

use chrono::{DateTime, Utc};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns `1 step`, `2 steps`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", thousands(number as u64)),
    }
}

/// Returns a number with its thousands apart: `336,776`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a size: `0 B`, `812 B`, `1.4 MB`.
pub fn bytes(number: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if number < 1_000 {
        return format!("{number} B");
    }
    let mut value = number as f64;
    let mut unit = "B";
    for next in units {
        if value < 999.95 {
            break;
        }
        value /= 1_000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// Returns a moment to the second, in UTC.
pub fn moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns a moment for machines.
pub fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Returns a value or a dash.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Returns `text` with spaces up to `width` places of a terminal.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Returns the start of `text` that fits into `width` places of a terminal, with `…` for what is left out.
pub fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    // One place is for the `…`.
    let mut left = width.saturating_sub(1);
    for character in text.chars() {
        let needed = character.width().unwrap_or(0);
        if left < needed {
            break;
        }
        left -= needed;
        kept.push(character);
    }
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, padded, shortened, thousands};

    #[test]
    fn wide_glyphs_take_two_places() {
        assert_eq!(padded("東京", 6), "東京  ");
        assert_eq!(padded("Köln", 6), "Köln  ");
        let shown: Vec<String> = (4..=8).map(|width| shortened("東京太郎", width)).collect();
        assert_eq!(shown, ["東…", "東京…", "東京…", "東京太…", "東京太郎"]);
        assert_eq!(shortened("Grüße an alle", 6), "Grüße…");
        assert_eq!(shortened("kurz", 4), "kurz");
    }

    #[test]
    fn thousands_stand_apart() {
        let shown: Vec<String> = [0, 999, 1_000, 336_776, 1_234_567].into_iter().map(thousands).collect();
        assert_eq!(shown, ["0", "999", "1,000", "336,776", "1,234,567"]);
    }

    #[test]
    fn sizes_have_three_digits_or_so() {
        let shown: Vec<String> = [0, 999, 1_000, 999_949, 999_950, 1_400_000_000].into_iter().map(bytes).collect();
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.4 GB"]);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| count(number, "step")), ["0 steps", "1 step", "2 steps"]);
    }
}
