//! What the quoted string of an ATTACH names.

/// What is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachTarget<'a> {
    /// `ducklake`, `ducklake://name`: a lake of the project; `None` is the lake `main`.
    Lake(Option<&'a str>),
    /// `datatable`, `datatable://name`: a Postgres database of the project; `None` is the one named `main`.
    Datatable(Option<&'a str>),
    /// A file, a connection string, a resource of another system.
    Other,
}

/// Returns what the ATTACH string `target` names.
pub fn attach_target(target: &str) -> AttachTarget<'_> {
    let name_after = |scheme: &str| {
        let rest = target.strip_prefix(scheme)?;
        match rest.strip_prefix("://") {
            Some(name) => Some(Some(name.trim_end_matches('/')).filter(|name| !name.is_empty())),
            None if rest.is_empty() => Some(None),
            None => None,
        }
    };
    match (name_after("ducklake"), name_after("datatable")) {
        (Some(lake), _) => AttachTarget::Lake(lake),
        (_, Some(database)) => AttachTarget::Datatable(database),
        _ => AttachTarget::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_are_told_from_files_and_connections() {
        assert_eq!(attach_target("ducklake"), AttachTarget::Lake(None));
        assert_eq!(attach_target("ducklake://"), AttachTarget::Lake(None));
        assert_eq!(attach_target("ducklake://raw/"), AttachTarget::Lake(Some("raw")));
        assert_eq!(attach_target("datatable://app"), AttachTarget::Datatable(Some("app")));
        for other in ["ducklake:sqlite:x", "ducklakes", "x.duckdb", "postgres:dbname=a", "$res:u/a/b"] {
            assert_eq!(attach_target(other), AttachTarget::Other, "{other}");
        }
    }
}
