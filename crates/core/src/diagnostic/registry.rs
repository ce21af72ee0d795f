//! The registry of diagnostic codes: each has one severity, one summary and one page `docs/diagnostics/<code>.md`.
//!
//! A test pairs codes and pages. Ranges: P0xx project and files, P1xx annotations, P2xx SQL bodies, P3xx assets, graph
//! and selection, P4xx partitions, P5xx runs and writes (what `run` reports with a code). A code that was released
//! never changes its meaning; a finding that goes away leaves its number unused.

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

    /// Returns the code as text, such as `P104`.
    pub fn as_str(self) -> &'static str {
        self.0.code
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
    TOML_SYNTAX = "P001" Error "pintail.toml is not valid TOML";
    UNKNOWN_KEY = "P002" Error "unknown key in pintail.toml";
    WRONG_TYPE = "P003" Error "a key of pintail.toml has a value of another type";
    BAD_SETTING = "P004" Error "a value of pintail.toml is not one that the key can have";
    VARIABLE_NOT_SET = "P005" Error "pintail.toml names an environment variable that is not set";
    UNKNOWN_PROFILE = "P006" Error "the selected profile is not in pintail.toml";
    DUPLICATE_SCRIPT = "P007" Error "two files have the same script name";
    UNREADABLE_FILE = "P008" Error "a file of the project cannot be read";
    NOT_UTF8 = "P009" Error "a file of the project is not UTF-8 text";
    BAD_LAKE_NAME = "P010" Error "a lake has a name that is reserved or cannot be a name";
    PLAIN_SECRET = "P011" Error "a secret stands in pintail.toml as plain text";
    CATALOG_NOT_SUPPORTED = "P012" Error "a lake's catalog is of a kind that Pintail does not use";
    NO_SCRIPTS = "P013" Warning "the project has no scripts";
    UNKNOWN_OBJECT_STORE = "P014" Error "a script reads an object store that pintail.toml does not configure";

    UNKNOWN_ANNOTATION = "P101" Error "unknown annotation";
    LOOKS_LIKE_ANNOTATION = "P102" Warning "prose that looks like an annotation";
    REPEATED_ANNOTATION = "P103" Error "an annotation that may stand once is repeated";
    MISSING_ARGUMENT = "P104" Error "an annotation lacks an argument";
    UNEXPECTED_ARGUMENT = "P105" Error "an annotation has an argument too many";
    UNKNOWN_OPTION = "P106" Error "unknown option of an annotation";
    REPEATED_OPTION = "P107" Error "an option of an annotation is repeated";
    BAD_VALUE = "P108" Error "a value in an annotation is not one that can stand there";
    UNTERMINATED_QUOTE = "P109" Error "a quote in an annotation is never closed";
    BAD_ASSET = "P110" Error "not an asset URI";
    BAD_CRON = "P111" Error "not a cron expression";
    CRON_NEVER_FIRES = "P112" Error "a cron expression that never fires";
    UNKNOWN_TIME_ZONE = "P113" Error "unknown time zone";
    BAD_DURATION = "P114" Error "not a duration";
    BAD_DATE = "P115" Error "not a date";
    BAD_COLUMN_NAME = "P116" Error "not a column name or list of column names";
    REPEATED_COLUMN = "P117" Error "a column is named twice";
    CONFLICTING_ANNOTATIONS = "P118" Error "two annotations contradict each other";
    APPEND_IGNORES_KEY = "P119" Warning "a key has no effect on an append";
    NOT_PARTITIONABLE = "P120" Error "a history table or view cannot be partitioned";
    CONTRACT_WITHOUT_COLUMNS = "P121" Error "an enforced contract declares no columns";
    NO_EFFECT = "P122" Warning "an annotation has no effect in this script";
    OPTION_NOT_APPLICABLE = "P123" Error "an option does not apply to what the line declares";
    UNDECLARED_COLUMN = "P124" Error "a column is used that the enforced contract does not declare";
    NOT_YET = "P125" Info "checked, but this version does not act on it yet";
    LANGUAGE_NOT_YET = "P126" Info "this version does not run scripts of this language yet";
    WINDMILL_IGNORED = "P127" Info "a Windmill spelling that has no meaning here";
    BAD_SQL_FRAGMENT = "P128" Error "SQL inside an annotation is not one expression";
    UNKNOWN_TYPE = "P129" Error "unknown column type";
    MISSING_KEY = "P130" Error "a history table has no key";
    ANNOTATION_IN_BLOCK_COMMENT = "P131" Warning "an annotation inside a block comment is not read";
    ANNOTATION_AFTER_HEADER = "P132" Warning "an annotation after the end of the header is not read";
    NOTHING_WRITTEN = "P133" Info "a script that writes nothing does not run";

    SQL_SYNTAX = "P201" Error "SQL syntax error";
    SQL_NOT_MANAGED = "P202" Error "a managed script has a statement that is neither setup nor its query";
    SQL_NO_QUERY = "P203" Error "a managed script has no query";
    SQL_MANY_QUERIES = "P204" Error "a managed script has more than one query";
    SQL_QUERY_NOT_LAST = "P205" Error "statements follow the query of a managed script";
    SQL_PIVOT_WITHOUT_IN = "P206" Error "a PIVOT without IN has no fixed columns";
    SQL_SETTING_NOT_ALLOWED = "P207" Error "a setting that scripts may not change";
    SQL_INSTALL_IGNORED = "P208" Info "INSTALL is ignored";
    SQL_UNKNOWN_PARAMETER = "P209" Error "unknown $parameter";
    SQL_RESERVED_NAME = "P210" Error "a name that is reserved";
    SQL_MACRO_NOT_TEMP = "P211" Error "a macro, table or view of the setup is not TEMP";
    SQL_UNKNOWN_READS = "P212" Info "what the script reads is not fully known";
    SQL_ATTACH_NOT_AN_ASSET = "P213" Error "ATTACH of something that is neither an asset nor read-only";
    SQL_PARTITION_COLUMN_ALIASED = "P214" Error "the query makes a column with the name of the partition column";
    SQL_SLOW_PARTITION_FILTER = "P215" Info "a partition filter that cannot skip files";
    SQL_LOAD_NOT_ALLOWED = "P216" Error "LOAD of an extension that scripts may not load";
    SQL_TIME_TRAVEL_READ = "P217" Info "a read at a fixed version";
    SQL_WRITE_NEEDS_MANUAL = "P218" Error "a statement writes, but the script is not `materialize manual`";
    SQL_TEST_NOT_QUERY = "P219" Error "a test script is not one query";

    GRAPH_CYCLE = "P301" Error "scripts read each other in a circle";
    ASSET_WRITTEN_TWICE = "P302" Error "two scripts materialize one asset";
    UNKNOWN_LAKE = "P303" Error "a lake that pintail.toml does not name";
    SELECTION_SYNTAX = "P304" Error "a selection cannot be read";
    SELECTION_MATCHES_NOTHING = "P305" Error "a selection matches nothing";
    UNKNOWN_SELECTION_METHOD = "P306" Error "unknown selection method";
    UNKNOWN_TEST = "P307" Error "unknown test";
    UNKNOWN_COLUMN_IN_TEST = "P308" Error "a test names a column that the asset does not have";
    NAMES_CLASH = "P309" Error "two names differ only by case";
    UNKNOWN_SCRIPT = "P310" Error "unknown script";
    SELECTION_NEEDS_FACTS = "P311" Error "a selection asks for what this version does not select by";
    TEST_NEVER_RUNS = "P312" Warning "a test that never runs";
    INCREMENT_SOURCE = "P313" Error "the column that increments go by is not found, or cannot be followed";
    CONSUMED_UNKNOWN = "P314" Error "what an incremental script has consumed is not known";

    PARTITION_KEY_INVALID = "P401" Error "not a partition of this kind";
    PARTITION_BEFORE_START = "P402" Error "a partition before the declared start";
    PARTITION_IN_FUTURE = "P403" Error "a partition that has not begun";
    PARTITION_NOT_APPLICABLE = "P404" Error "a partition for a script that has none";

    DUPLICATE_KEYS = "P501" Error "the staged rows have duplicate keys";
    NULL_KEYS = "P502" Error "the staged rows have NULL keys";
    ROWS_OUTSIDE_WINDOW = "P503" Error "staged rows lie outside the partition's window";
    EMPTY_REPLACE = "P504" Error "an empty result would replace existing rows";
    SCHEMA_CHANGED = "P505" Error "the query's columns differ from the table's";
    LOSSY_CAST = "P506" Error "values would lose something in the table's type";
    TYPE_NOT_STORABLE = "P507" Error "a type that the lake cannot hold";
    TARGET_NOT_OURS = "P508" Error "the target was not made by Pintail";
    TARGET_PARTITIONED_OTHERWISE = "P509" Error "the target is not partitioned as the script says";
    TEST_FAILED = "P510" Error "a data test failed";
    CONFLICT = "P511" Error "somebody else changed the table during the write";
    SUPERSEDED = "P512" Error "a newer write of the same slice came first";
    LEASE_HELD = "P513" Error "another run is writing the same slice";
    FIRST_RUN_NEEDS_COLUMNS = "P514" Error "the first run of a script that reads its own target";
    CONTRACT_BROKEN = "P515" Error "the result breaks the declared contract";
    ENGINE_ERROR = "P516" Error "the engine refused a statement";
    TRANSIENT_ERROR = "P517" Error "a passing fault outlasted the retries";
    TIMEOUT = "P518" Error "the step ran longer than its timeout";
    CANCELLED = "P519" Error "the step was cancelled";
    CATALOG_DATABASE_MISSING = "P525" Error "the database of a Postgres catalog is not there";
    TOO_FEW_CONNECTIONS = "P526" Error "the catalog's server cannot take the connections of a run";
    OBJECT_STORE_MISSING = "P527" Error "a lake's data lie in no configured object store";
    HISTORY_COLUMN = "P530" Error "a column has a name that a history table keeps for itself";
    CURRENT_VIEW_TAKEN = "P531" Error "the name of a history's view of current rows is taken";
    NOT_A_HISTORY = "P532" Error "the target is a table without history";
    HISTORY_TIME = "P533" Error "rows of a history have no time, or contradict each other at one time";
    HISTORY_BROKEN = "P534" Error "the versions of a key overlap";
    SNAPSHOT_GONE = "P535" Error "a snapshot that is needed has expired";
    ROLLBACK_REFUSED = "P536" Error "the older version cannot be written again";
    POSTGRES_BODY = "P545" Error "a statement that cannot stand in a Postgres script";
    POSTGRES_FOREIGN_READ = "P546" Error "a Postgres script reads something outside its datatable";
    POSTGRES_UNREADABLE = "P547" Warning "Postgres SQL whose reads could not be found out";
    TARGET_UNSUPPORTED = "P548" Error "the target cannot be written this way";
    UNKNOWN_PLACE = "P549" Warning "a datatable, object store or volume that pintail.toml does not name";
    PLACE_UNREACHABLE = "P550" Error "a datatable or object store cannot be reached";
    CONSUMER_INCOMPLETE = "P560" Error "a consumer lacks a setting, cannot have its name, or writes the tables of another one";
    UNKNOWN_DECODER = "P561" Error "a decoder that does not exist";
    STREAM_BODY = "P562" Error "a script with `stream` that cannot be run as one";
    SOURCE_NOT_MADE = "P563" Warning "what is consumed is not what the project makes, but almost has its name";
    CONSUMER_COLUMN = "P564" Error "a consumer names a column that its source does not have";
    OPEN_INGEST = "P575" Error "ingest would take events from anybody";
    INGEST_FILE = "P576" Error "a file that `[ingest]` names cannot be read";
}

#[cfg(test)]
mod tests {
    use super::{CODES, Code};

    #[test]
    fn codes_are_in_order_and_unique() {
        let codes: Vec<&str> = CODES.iter().map(|code| code.as_str()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }

    #[test]
    fn codes_are_a_p_and_three_digits() {
        for code in CODES {
            let digits = code.as_str().strip_prefix('P').unwrap();
            assert!(digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
        }
    }

    #[test]
    fn summaries_are_one_line_without_a_full_stop() {
        for code in CODES {
            let summary = code.info().summary;
            assert!(!summary.ends_with('.') && !summary.contains('\n'), "{code}: {summary}");
        }
    }

    #[test]
    fn codes_are_found_in_any_case() {
        assert_eq!(Code::find("p104"), Some(Code::MISSING_ARGUMENT));
        assert_eq!(Code::find("P999"), None);
    }
}
