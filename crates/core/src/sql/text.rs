//! The three ways by which values become SQL text, and the statement that is logged, explained and sent.

use std::fmt;

/// One identifier; Display always quotes it and doubles inner quotes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ident(pub String);

impl Ident {
    /// Returns the identifier named `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// One string literal; Display quotes it and doubles inner quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal(pub String);

impl Literal {
    /// Returns the literal of `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// A table or view by its full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation {
    /// The attached alias; `None` for a temp table.
    pub catalog: Option<Ident>,
    /// The schema; `None` for a temp table.
    pub schema: Option<Ident>,
    /// The table.
    pub table: Ident,
}

impl Relation {
    /// Returns `catalog.schema.table`.
    pub fn in_catalog(catalog: &str, schema: &str, table: &str) -> Self {
        Self { catalog: Some(Ident::new(catalog)), schema: Some(Ident::new(schema)), table: Ident::new(table) }
    }

    /// Returns the temp table `table`.
    pub fn temp(table: &str) -> Self {
        Self { catalog: None, schema: None, table: Ident::new(table) }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(catalog) = &self.catalog {
            write!(f, "{catalog}.")?;
        }
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        self.table.fmt(f)
    }
}

/// One statement of a plan: the purpose is what logs, errors and `plan --sql` show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// A few words in the imperative, such as `delete the slice`.
    pub purpose: &'static str,
    /// The text, laid out for people, without a trailing semicolon.
    pub sql: String,
}

impl Statement {
    /// Returns the statement `sql` with its purpose.
    pub fn new(purpose: &'static str, sql: impl Into<String>) -> Self {
        Self { purpose, sql: sql.into() }
    }
}
