//! The registry of diagnostic codes: each has one severity, one summary and one page `docs/diagnostics/<code>.md`.
//!
//! A test pairs codes and pages. Ranges: P0xx project and files, P1xx annotations, P2xx SQL bodies, P3xx assets, graph
//! and selection, P4xx partitions, P5xx runs and writes (what `run` reports with a code).

use std::fmt;

use super::Severity;

/// What is known of a code.
#[derive(Debug, PartialEq, Eq)]
pub struct CodeInfo {
    /// `P104`.
    pub code: &'static str,
    /// How bad a finding of this code is.
    pub severity: Severity,
    /// One line for the list of codes.
    pub summary: &'static str,
}

/// A diagnostic's stable code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(&'static CodeInfo);

impl Code {
    /// Returns what the registry says about the code.
    pub fn info(self) -> &'static CodeInfo {
        self.0
    }

    /// Returns the code named `text`, in any case.
    pub fn find(text: &str) -> Option<Self> {
        CODES.iter().copied().find(|code| code.0.code.eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code)
    }
}

macro_rules! codes {
    ($($name:ident = $severity:ident $summary:literal;)*) => {
        impl Code {
            $(
                #[doc = $summary]
                pub const $name: Code = Code(&CodeInfo { code: stringify!($name), severity: Severity::$severity, summary: $summary });
            )*
        }

        /// Every code, in order.
        pub const CODES: &[Code] = &[$(Code::$name),*];
    };
}

codes! {
    P001 = Error "syntax error in pintail.toml";
    P002 = Error "unknown key in pintail.toml";
    P003 = Error "value of the wrong type in pintail.toml";
    P004 = Error "bad value in pintail.toml";
    P005 = Error "environment variable is not set";
    P006 = Error "unknown profile";
    P007 = Error "name that no lake can have";
    P008 = Error "catalog that is not supported";
    P010 = Error "two scripts have one name";
    P011 = Error "file that cannot be read";
    P012 = Error "file that is not UTF-8";
    P013 = Warning "no scripts found";
    P101 = Error "unknown annotation";
}
