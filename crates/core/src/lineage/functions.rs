//! Table functions: which ones open files, which ones name tables, and which ones read nothing of the project.

/// What a table function reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The files in its first argument: a text or a list of texts.
    Files,
    /// The tables named in its first argument.
    Tables,
    /// The table in its first argument, of the lake that qualifies the function.
    LakeTable,
    /// The table in its first three arguments: catalog, schema, table.
    QualifiedTable,
    /// No asset: computed rows, or what the engine knows of itself.
    Nothing,
    /// SQL in a text, another database, or a function that is not known here.
    Unknown,
}

const FILES: [&str; 21] = [
    "glob",
    "parquet_bloom_probe",
    "parquet_file_metadata",
    "parquet_kv_metadata",
    "parquet_metadata",
    "parquet_scan",
    "parquet_schema",
    "read_blob",
    "read_csv",
    "read_csv_auto",
    "read_json",
    "read_json_auto",
    "read_json_objects",
    "read_json_objects_auto",
    "read_ndjson",
    "read_ndjson_auto",
    "read_ndjson_objects",
    "read_parquet",
    "read_text",
    "read_xlsx",
    "sniff_csv",
];

const NOTHING: [&str; 17] = [
    "current_snapshot",
    "generate_series",
    "generate_subscripts",
    "icu_calendar_names",
    "json_each",
    "json_tree",
    "last_committed_snapshot",
    "options",
    "pg_timezone_names",
    "range",
    "repeat",
    "repeat_row",
    "settings",
    "snapshots",
    "table_info",
    "test_all_types",
    "unnest",
];

/// Returns what the table function `name` reads.
pub(super) fn reads_of(name: &str) -> Reads {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "query_table" => Reads::Tables,
        "table_changes" | "table_insertions" | "table_deletions" => Reads::LakeTable,
        "ducklake_table_changes" | "ducklake_table_insertions" | "ducklake_table_deletions" => Reads::QualifiedTable,
        name if FILES.contains(&name) => Reads::Files,
        name if NOTHING.contains(&name) => Reads::Nothing,
        name if ["ducklake_", "duckdb_", "pragma_"].iter().any(|prefix| name.starts_with(prefix)) => Reads::Nothing,
        _ => Reads::Unknown,
    }
}
