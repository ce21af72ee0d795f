//! The plain side of a benchmark: opens a lake as Pintail does and sends the statements of a file, nothing else.
//!
//! `plain <catalog.sqlite> <data folder> <extension folder> <file.sql>`; statements end with `;` at the end of a line, the
//! lake is attached as `lake`. A catalog that does not exist is made, without Pintail's own tables.

use std::path::PathBuf;
use std::process::ExitCode;

use pintail_core::id::LakeName;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, EngineError, Instance, InstanceOptions, LakeLocation};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [catalog, data, extensions, file] = arguments.as_slice() else {
        eprintln!("usage: plain <catalog.sqlite> <data folder> <extension folder> <file.sql>");
        return ExitCode::from(2);
    };
    let statements = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("could not read {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    let lake = LakeLocation {
        name: LakeName("main".to_owned()),
        catalog: Catalog::Sqlite(catalog.clone()),
        data: format!("{}/", data.display()),
    };
    match send(&lake, extensions.clone(), &statements) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn send(lake: &LakeLocation, extensions: PathBuf, statements: &str) -> Result<(), EngineError> {
    let options = InstanceOptions { extensions: ExtensionFolders(vec![extensions]), ..InstanceOptions::default() };
    let instance = Instance::open(options)?;
    let session = instance.session()?;
    lake.attach_plain(&instance, &session)?;
    for statement in statements.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()) {
        session.batch("send a statement", statement)?;
    }
    Ok(())
}
