//! `ingest --from`: files into the table of raw events.

use std::path::Path;

use pintail_telemetry::import::{Import, ImportError, Imported};
use serde_json::json;

use super::parts::Parts;
use crate::app::App;
use crate::environment::now;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::count;

/// Imports `path`.
pub fn run(path: &Path, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let parts = Parts { app, pintail: &pintail };
    let path = app.environment.current_dir.join(path);
    // The lake's part of the memory, and that of the files.
    let reading = pintail.instance_options(2);
    let received = now().timestamp_micros();
    let import = Import::open(parts.writer(2)?, parts.table(), parts.policy(), reading, received);
    let told = |done: &Imported| app.terminal.talk(&format!("{} in the lake", count_of(done.rows, "event")));
    let done = import.and_then(|mut import| import.run(&path, told)).map_err(|error| failure(&error))?;
    show(&done, &parts);
    Ok(if done.changed.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn show(done: &Imported, parts: &Parts<'_>) {
    let terminal = &parts.app.terminal;
    if terminal.is_json {
        terminal.json(&json!({
            "files": done.files, "known_files": done.known, "events": done.rows, "dead_letters": done.letters,
            "changed_files": done.changed.iter().map(|changed| json!({
                "path": changed.path.display().to_string(), "imported_records": changed.records,
            })).collect::<Vec<_>>(),
        }));
        return;
    }
    let (files, known) = (count_of(done.files, "file"), count_of(done.known, "file"));
    let mut line = format!("{} of {files} landed in {}", count_of(done.rows, "event"), parts.table());
    if 0 < done.known {
        line.push_str(&format!("; {known} had landed before"));
    }
    terminal.data(&format!("{line}\n"));
    if 0 < done.letters {
        let letters = count_of(done.letters, "record");
        terminal.warning(&format!("kept as dead letters, because they are no events: {letters}"));
        terminal.hint("`pintail deadletter list` shows them");
    }
    for changed in &done.changed {
        let (path, records) = (changed.path.display(), count_of(changed.records, "record"));
        terminal
            .error(&format!("{path} has changed since it was imported ({records}); nothing of it was imported now"));
    }
    if !done.changed.is_empty() {
        terminal.hint("import what is new as a file of its own");
    }
}

fn count_of(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

fn failure(error: &ImportError) -> Failure {
    let is_usage =
        matches!(error, ImportError::Nothing { .. } | ImportError::Unknown { .. } | ImportError::File { .. });
    let exit = if is_usage { Exit::Usage } else { Exit::Failed };
    Failure::advised(exit, error)
}
