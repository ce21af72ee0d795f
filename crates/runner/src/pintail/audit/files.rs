//! Files and rows against the catalog.

use pintail_engine::lake::audit;
use pintail_engine::{LakeLocation, Session};

use super::{Check, Finding};
use crate::pintail::RunnerError;

/// Returns the files that a snapshot shows and that are not there.
pub(super) fn files(session: &Session, alias: &str, lake: &LakeLocation) -> Result<Vec<Finding>, RunnerError> {
    let finding = |missing: audit::MissingFile| Finding {
        check: Check::Files.word(),
        place: format!("{}.{}", missing.schema, missing.table),
        message: match missing.is_live {
            true => format!(
                "{} is not there: the table cannot be read; bring an older version back by `pintail rollback`, or write \
                 it anew",
                missing.file
            ),
            false => format!("{} is not there: versions that show it cannot be read any more", missing.file),
        },
    };
    Ok(audit::missing_files(session, alias, lake)?.into_iter().map(finding).collect())
}

/// Returns the tables that a scan counts otherwise than the catalog.
pub(super) fn rows(session: &Session, alias: &str) -> Result<Vec<Finding>, RunnerError> {
    let finding = |wrong: audit::Miscounted| Finding {
        check: Check::Rows.word(),
        place: format!("{}.{}", wrong.schema, wrong.table),
        message: match (wrong.scanned, wrong.failure) {
            (Some(scanned), _) => {
                format!("the catalog says {} rows and a scan finds {scanned}; write the table anew", wrong.catalog)
            }
            (None, failure) => format!("it cannot be read: {}", failure.unwrap_or_default()),
        },
    };
    Ok(audit::miscounted(session, alias)?.into_iter().map(finding).collect())
}

/// Returns the tables with rows that lie in files of another partition than theirs.
pub(super) fn partitions(session: &Session, alias: &str) -> Result<Vec<Finding>, RunnerError> {
    let finding = |wrong: audit::Misplaced| Finding {
        check: Check::Partitions.word(),
        place: format!("{}.{}", wrong.schema, wrong.table),
        message: match wrong.found {
            audit::Found::Rows(count, file) => format!(
                "{count} rows lie in files of another partition, such as {file}: a query that asks for theirs does not read \
                 them; write the table anew"
            ),
            audit::Found::Unreadable(why) => format!("it cannot be read: {why}"),
        },
    };
    Ok(audit::misplaced_rows(session, alias)?.into_iter().map(finding).collect())
}
