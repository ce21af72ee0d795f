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
    ($($name:ident = $code:literal $severity:ident $summary:literal;)*) => {
        impl Code {
            $(
                #[doc = concat!("`", $code, "`: ", $summary, ".")]
                pub const $name: Code =
                    Code(&CodeInfo { code: $code, severity: Severity::$severity, summary: $summary });
            )*
        }

        /// Every code, in order.
        pub const CODES: &[Code] = &[$(Code::$name),*];
    };
}

codes! {
    UNKNOWN_ANNOTATION = "P101" Error "unknown annotation";

    SQL_SYNTAX = "P201" Error "the body is not valid SQL";
    SQL_NOT_MANAGED = "P202" Error "a statement that cannot stand in this body";
    SQL_NO_QUERY = "P203" Error "a managed body without a query";
    SQL_MANY_QUERIES = "P204" Error "a managed body with more than one query";
    SQL_QUERY_NOT_LAST = "P205" Error "the query of a managed body is not its last statement";
    SQL_PIVOT_WITHOUT_IN = "P206" Error "a PIVOT without IN has no fixed columns";
    SQL_SETTING_NOT_ALLOWED = "P207" Error "a setting that scripts may not change";
    SQL_INSTALL_IGNORED = "P208" Info "INSTALL is ignored";
    SQL_UNKNOWN_PARAMETER = "P209" Error "a parameter that has no value in this script";
    SQL_RESERVED_NAME = "P210" Error "a name that Pintail or the engine reserves";
    SQL_MACRO_NOT_TEMP = "P211" Error "a macro of a managed body must be TEMP";
    SQL_UNKNOWN_READS = "P212" Info "what is read here cannot be known without running";
    SQL_ATTACH_NOT_AN_ASSET = "P213" Error "ATTACH of something that is neither a known asset nor read-only";
    SQL_PARTITION_COLUMN_ALIASED = "P214" Error "the query makes a column with the name of the identity column";
    SQL_SLOW_PARTITION_FILTER = "P215" Info "a partition filter that cannot skip files";
    SQL_LOAD_NOT_ALLOWED = "P216" Error "LOAD of an extension that Pintail does not ship";
    SQL_TIME_TRAVEL_READ = "P217" Warning "a read of a fixed version that retention may expire";
    SQL_WRITE_NEEDS_MANUAL = "P218" Error "a managed body that writes by itself";
    SQL_TEST_NOT_QUERY = "P219" Error "a test that is not one query";
}
