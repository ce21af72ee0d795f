//! Table `script_text`: the text of every script that a run had, so that the run can be replayed.
//!
//! Invariant: content-addressed; a text is stored once however often it runs, and never changes.

use pintail_core::id::ScriptHash;

use crate::database::{Row, Tx, query, retry};
use crate::encoding::Fields;
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::open::Store;

/// The text of one script as a run had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptText {
    /// The hash of the text, as materializations and stamps carry it.
    pub hash: ScriptHash,
    /// The file below the project's root that had the text first.
    pub path: String,
    /// The text, with its header. Scripts name secrets by reference, so that it holds none.
    pub text: String,
}

impl Store {
    /// Remembers the texts of the scripts of a run, in one transaction. Call it when the run begins.
    pub async fn remember_scripts(&self, scripts: &[ScriptText]) -> Result<(), WriteError> {
        let operation = || format!("remember the texts of {} scripts", scripts.len());
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            for script in scripts {
                self.insert_script(&mut tx, script).await.writing(operation)?;
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    async fn insert_script(&self, tx: &mut Tx, script: &ScriptText) -> Result<(), sqlx::Error> {
        let sql = "
            INSERT INTO script_text (project, hash, path, text) VALUES ($1, $2, $3, $4)
            ON CONFLICT (project, hash) DO NOTHING";
        query(sql)
            .bind(self.project_text())
            .bind(script.hash.as_str())
            .bind(&script.path)
            .bind(&script.text)
            .execute(tx)
            .await?;
        Ok(())
    }

    /// Returns the text with this hash, or `None` when no run of this store had it.
    pub async fn script_text(&self, hash: &ScriptHash) -> Result<Option<ScriptText>, ReadError> {
        let sql = "SELECT * FROM script_text WHERE project = $1 AND hash = $2";
        let row = query(sql).bind(self.project_text()).bind(hash.as_str()).read_optional(self.database()).await;
        row.and_then(|row| row.as_ref().map(ScriptText::from_row).transpose())
            .reading(|| format!("the text of script {hash}"))
    }
}

impl ScriptText {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self { hash: ScriptHash(row.text("hash")?), path: row.text("path")?, text: row.text("text")? })
    }
}
