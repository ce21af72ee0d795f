//! Which asset a path in SQL is: an object of a store, a file of a volume, or a file of the project.
//!
//! Paths are relative to the project root. Invariant: one file has one asset: `./`, `//` and `..` are resolved, and the
//! volume with the longest directory around the file wins over the project.

use super::LineageContext;
use crate::asset::Asset;

/// The volume of the project root.
const PROJECT: &str = "project";

/// Endings that the engine reads when they stand in place of a table.
const READABLE: [&str; 6] = [".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson"];

/// Returns whether a table's name is a file that the engine would open: a URL or a known ending.
pub(super) fn is_file_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let stem = [".gz", ".zst"].iter().find_map(|packed| lower.strip_suffix(packed)).unwrap_or(&lower);
    lower.contains("://") || READABLE.iter().any(|ending| stem.ends_with(ending))
}

/// Returns the asset of `path`, or what it is when it is none.
pub(super) fn file_asset(path: &str, ctx: &LineageContext<'_>) -> Result<Asset, String> {
    if path.starts_with("$res:") {
        return Err("a resource of another system".to_owned());
    }
    let Some((scheme, rest)) = path.split_once("://") else { return local_file(path, ctx) };
    match scheme.to_ascii_lowercase().as_str() {
        "s3" => match rest.split_once('/') {
            Some((store, key)) if !key.is_empty() => Ok(Asset::object(store, key)),
            _ => Err("an object store without a key".to_owned()),
        },
        "volume" => match rest.split_once('/') {
            Some((volume, file)) => clean(file)
                .map(|path| Asset::Volume { volume: volume.to_owned(), path })
                .ok_or_else(|| "a path outside its volume".to_owned()),
            None => Err("a volume without a path".to_owned()),
        },
        "datatable" => Asset::parse(path)
            .ok()
            .filter(|asset| matches!(asset, Asset::Datatable { database, .. } if ctx.datatables.contains(database)))
            .ok_or_else(|| "a datatable that pintail.toml does not name".to_owned()),
        "file" => local_file(rest, ctx),
        "res" => Err("a resource of another system".to_owned()),
        scheme => Err(format!("a `{scheme}` address outside the project")),
    }
}

fn local_file(path: &str, ctx: &LineageContext<'_>) -> Result<Asset, String> {
    let is_absolute = path.starts_with('/');
    let file = clean(path).ok_or_else(|| "a file outside the project".to_owned())?;
    let in_volume = ctx
        .volumes
        .iter()
        .filter(|(_, directory)| directory.starts_with('/') == is_absolute)
        .filter_map(|(volume, directory)| {
            let directory = clean(directory)?;
            let rest = file.strip_prefix(&directory)?;
            let rest = if directory.is_empty() { Some(rest) } else { rest.strip_prefix('/') };
            Some((directory.len(), volume, rest?.to_owned()))
        })
        .max_by_key(|(length, ..)| *length);
    match in_volume {
        Some((_, volume, path)) => Ok(Asset::Volume { volume: volume.clone(), path }),
        None if is_absolute => Err("a file outside the project and its volumes".to_owned()),
        None => Ok(Asset::Volume { volume: PROJECT.to_owned(), path: file }),
    }
}

/// Resolves `.`, `..` and doubled slashes; `None` when the path leaves its root.
fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::id::LakeName;

    fn check(paths: &[&str], expected: Expect) {
        let lake = LakeName("main".into());
        let volumes = [("landing".to_owned(), "/srv/landing".to_owned()), ("raw".to_owned(), "data/raw/".to_owned())];
        let ctx = LineageContext { default_lake: &lake, lakes: &[], datatables: &[], volumes: &volumes };
        let line = |path: &&str| match file_asset(path, &ctx) {
            Ok(asset) => format!("{path} is {asset}\n"),
            Err(why) => format!("{path} is unknown: {why}\n"),
        };
        expected.assert_eq(&paths.iter().map(line).collect::<String>());
    }

    #[test]
    fn one_file_has_one_asset() {
        check(
            &["data/x.csv", "./data//x.csv", "other/../data/x.csv", "file://data/x.csv"],
            expect![[r#"
            data/x.csv is volume://project/data/x.csv
            ./data//x.csv is volume://project/data/x.csv
            other/../data/x.csv is volume://project/data/x.csv
            file://data/x.csv is volume://project/data/x.csv
        "#]],
        );
    }

    #[test]
    fn the_longest_directory_around_a_file_wins() {
        check(
            &["/srv/landing/a/*.csv", "/srv/landing2/a.csv", "data/raw/a.csv", "data/rawer/a.csv", "../x.csv"],
            expect![[r#"
                /srv/landing/a/*.csv is volume://landing/a/*.csv
                /srv/landing2/a.csv is unknown: a file outside the project and its volumes
                data/raw/a.csv is volume://raw/a.csv
                data/rawer/a.csv is volume://project/data/rawer/a.csv
                ../x.csv is unknown: a file outside the project
            "#]],
        );
    }

    #[test]
    fn addresses_are_objects_or_unknown() {
        check(
            &[
                "s3://raw/2026/*.parquet",
                "s3:///a.parquet",
                "s3://raw",
                "volume://landing/a",
                "res://u/x",
                "https://x/y.csv",
            ],
            expect![[r#"
                s3://raw/2026/*.parquet is s3://raw/2026/*.parquet
                s3:///a.parquet is s3:///a.parquet
                s3://raw is unknown: an object store without a key
                volume://landing/a is volume://landing/a
                res://u/x is unknown: a resource of another system
                https://x/y.csv is unknown: a `https` address outside the project
            "#]],
        );
    }

    #[test]
    fn a_quoted_table_is_a_file_only_by_its_ending() {
        assert!(["a.csv", "s3://x/y", "d/A.PARQUET", "x.json.gz"].into_iter().all(is_file_name));
        assert!(!["orders", "a/b", "orders.v2", "csv", "x.gz"].into_iter().any(is_file_name));
    }
}
