//! Datatables as DuckDB SQL reads them: attached read-only by the engine's Postgres extension, fresh for every step.
//!
//! A fresh ATTACH sees the tables that an earlier step of the run has made, and survives a server that was restarted.

use pintail_core::diagnostic::Code;
use pintail_core::sql::{Ident, Literal};
use pintail_engine::Session;
use pintail_engine::native::{Extension, ExtensionFolders};
use secrecy::{ExposeSecret, SecretString};

use crate::executors::{RunContext, StepFailure};
use crate::project::CompiledScript;

/// Returns the alias under which the engine reads the datatable `database`; scripts never see it.
pub fn read_alias(database: &str) -> String {
    format!("_pt_d_{database}")
}

/// Attaches what `script` and its tests read, under [`read_alias`].
pub fn attach_reads(session: &Session, ctx: &RunContext, script: &CompiledScript) -> Result<(), StepFailure> {
    for database in script.datatables_read() {
        let Some(datatable) = ctx.project.project.config.datatables.get(database) else {
            let message = format!("there is no datatable `{database}`");
            return Err(StepFailure::user(Code::UNKNOWN_PLACE, "find the datatable", message).with_help(format!(
                "declare it in pintail.toml: `[datatable.{database}] url = \"${{DATABASE_URL}}\"`"
            )));
        };
        attach(session, &ctx.instance.extensions, &datatable.url, &read_alias(database)).map_err(|failure| {
            let help = failure
                .help
                .clone()
                .unwrap_or_else(|| "see that the server runs and that `url` in pintail.toml is right".to_owned());
            StepFailure { message: format!("datatable `{database}`: {}", failure.message), ..failure }.with_help(help)
        })?;
    }
    Ok(())
}

/// Attaches the database at `url` read-only as `alias`, in place of what had that name.
pub fn attach(
    session: &Session,
    extensions: &ExtensionFolders,
    url: &SecretString,
    alias: &str,
) -> Result<(), StepFailure> {
    let extension = extensions.find(Extension::PostgresScanner)?;
    let (url, alias) = (Literal::new(url.expose_secret()), Ident::new(alias));
    session.batch("load the Postgres extension", &format!("LOAD {}", Literal::new(extension.display().to_string())))?;
    session.batch("let go of the datatable", &format!("DETACH DATABASE IF EXISTS {alias}"))?;
    session.batch("attach the datatable", &format!("ATTACH {url} AS {alias} (TYPE postgres, READ_ONLY)"))?;
    Ok(())
}
