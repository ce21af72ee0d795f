//! Payloads outside the lake against the rows that name them.

use pintail_core::id::LakeName;
use pintail_core::sql::{Literal, Relation};
use pintail_engine::lake::audit::escape_glob;
use pintail_runner::Pintail;
use pintail_runner::pintail::{Check, Question};
use pintail_runner::workspace::DataPath;
use pintail_telemetry::blob::PREFIX;

/// Returns what must be 0 when `lake`, which is attached as `alias`, is the one that events are taken in to.
pub fn questions(pintail: &Pintail, lake: &LakeName, alias: &str) -> Vec<Question> {
    let config = &pintail.project().project.config.ingest;
    if config.lake != *lake {
        return Vec::new();
    }
    let table = Relation::in_catalog(alias, &config.schema, &config.table);
    let keys = keys_of(&config.blobs);
    let named = format!("SELECT data_index_key AS key FROM {table} WHERE data_index_key IS NOT NULL");
    let ask = |counted: &str, query: String| Question {
        check: Check::Blobs,
        place: format!("{}.{}", config.schema, config.table),
        counted: counted.to_owned(),
        query,
        tables: vec![(config.schema.clone(), config.table.clone())],
    };
    vec![
        ask(
            "payloads that rows name and that are not in the store: bring them back from a copy of it",
            format!("SELECT count(DISTINCT key) FROM ({named}) WHERE key NOT IN ({keys})"),
        ),
        // A payload is there before its row, so those of these days may still wait for theirs; a key says when the event
        // was, and not when it came.
        ask(
            "payloads of more than two days ago that no row names: their events wait in the log of `pintail ingest`, never came \
             into the lake, or have gone from it",
            format!(
                "SELECT count(*) FROM ({keys}) WHERE key NOT IN ({named})
                 AND try_strptime(regexp_extract(key, '([0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}})/[^/]+$', 1), '%Y/%m/%d')
                     < (now() - INTERVAL 2 DAY)::TIMESTAMP"
            ),
        ),
    ]
}

/// Returns the query of the keys that are in the store.
fn keys_of(blobs: &DataPath) -> String {
    let place = match blobs {
        DataPath::Local(folder) => folder.display().to_string(),
        DataPath::Url(url) => url.clone(),
    };
    let place = format!("{}/", place.trim_end_matches('/'));
    let all = format!("{}{PREFIX}/**", escape_glob(&place));
    format!("SELECT substr(file, {}) AS key FROM glob({})", place.chars().count() + 1, Literal::new(all))
}
