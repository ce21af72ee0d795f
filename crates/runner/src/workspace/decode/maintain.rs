//! `[maintain]`: how long versions and files stay, and which files are compacted.

use std::time::Duration;

use pintail_core::annotation::parse_duration_text;

use super::{Decoder, Table};
use crate::workspace::config::MaintainConfig;

const KEYS: [&str; 8] = ["every", "keep", "grace", "stale", "merge", "small_files", "rewrite", "budget"];

impl Decoder<'_> {
    pub(super) fn maintain(&mut self, table: &Table, maintain: &mut MaintainConfig) {
        let Some(table) = self.reader.table(table, "maintain") else { return };
        self.reader.deny_unknown(table, "[maintain]", &KEYS);
        maintain.every = self.some_time(table, "every", "a round of upkeep follows the last").unwrap_or(maintain.every);
        let times: [(&str, &mut Duration); 4] = [
            ("keep", &mut maintain.keep),
            ("grace", &mut maintain.grace),
            ("stale", &mut maintain.stale),
            ("budget", &mut maintain.budget),
        ];
        for (key, place) in times {
            *place = self.duration(table, key).unwrap_or(*place);
        }
        maintain.merge = self.reader.boolean(table, "merge").unwrap_or(maintain.merge);
        maintain.small_files = self.size(table, "small_files").unwrap_or(maintain.small_files);
        if let Some(text) = self.reader.text(table, "rewrite") {
            match percentage(&text.value) {
                Some(part) => maintain.rewrite = part,
                None => {
                    let help = "such as `rewrite = \"50%\"`, or `rewrite = \"never\"`";
                    self.reader.bad_value("rewrite", &text, "a part from 1% to 100%", help);
                }
            }
        }
        // A consumer that counts as silent only after its rows may have gone would be passed without a word.
        if maintain.keep <= maintain.stale
            && let Some(text) = self.reader.text(table, "stale").or_else(|| self.reader.text(table, "keep"))
        {
            let help = "a consumer must count as silent before the versions that it has not read are old enough to go";
            self.reader.bad_value("stale", &text, "a time that is shorter than `keep`", help);
        }
    }

    /// Reads a length of time such as `15m`.
    pub(super) fn duration(&mut self, table: &Table, key: &str) -> Option<Duration> {
        let text = self.reader.text(table, key)?;
        let parsed = parse_duration_text(&text.value);
        if let Err(why) = &parsed {
            self.reader.bad_value(key, &text, "a length of time", &format!("{why}; such as `15m`, `1h` or `7d`"));
        }
        parsed.ok()
    }

    /// Reads a length of time that is not zero; `what` says what happens after so long.
    pub(super) fn some_time(&mut self, table: &Table, key: &str, what: &str) -> Option<Duration> {
        let duration = self.duration(table, key)?;
        if duration.is_zero()
            && let Some(text) = self.reader.text(table, key)
        {
            self.reader.bad_value(key, &text, "longer than nothing", &format!("after so long {what}"));
        }
        Some(duration)
    }
}

/// Reads `50%`, or `never`; the outer `None` is for what is neither.
#[expect(clippy::option_option, reason = "never is a value, and no value is something else")]
fn percentage(text: &str) -> Option<Option<f64>> {
    if text.trim() == "never" {
        return Some(None);
    }
    let number: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    (1.0..=100.0).contains(&number).then_some(Some(number / 100.0))
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn parts_are_percentages_or_never() {
        assert_eq!(percentage(" 50 % "), Some(Some(0.5)));
        assert_eq!(percentage("never"), Some(None));
        assert_eq!(["0%", "101%", "50", "half%", ""].map(percentage), [None; 5]);
    }
}
