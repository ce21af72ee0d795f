//! The declared columns of a script against what its query really gives.
//!
//! Invariant: declared types compare exactly, aliases aside. An enforced contract is complete and ordered; otherwise it
//! is about the declared columns only. Whether a difference is an error is the caller's: it is under `contract
//! enforced`, and a warning else.

use std::fmt;

use super::Schema;
use super::data_type::DataType;
use super::parse::TypeError;
use crate::annotation::ColumnDecl;
use crate::diagnostic::nearest;

/// Every way in which the actual columns differ, in declared order, then those that no line declares.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ContractDiff {
    /// The differences.
    pub differences: Vec<ContractDifference>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractDifference {
    /// A declared column that the query does not give.
    Missing {
        /// The declared name.
        column: String,
        /// The undeclared actual column with the nearest name.
        near: Option<String>,
    },
    /// A column of another type.
    Type {
        /// The declared name.
        column: String,
        /// The declared type as written.
        declared: String,
        /// The actual type.
        actual: String,
    },
    /// A declared type that is none.
    UnreadableType {
        /// The declared name.
        column: String,
        /// The declared type as written.
        declared: String,
        /// What is wrong with it.
        error: TypeError,
    },
    /// An actual column that no line declares, under an enforced contract.
    Undeclared {
        /// The actual name.
        column: String,
        /// Its type.
        data_type: String,
    },
    /// The columns are the declared ones in another order, under an enforced contract.
    Order {
        /// The declared names.
        declared: Vec<String>,
        /// The actual names.
        actual: Vec<String>,
    },
}

/// Returns how `actual` differs from the declared columns.
pub fn contract_diff<'a>(
    declared: impl IntoIterator<Item = &'a ColumnDecl>,
    actual: &Schema,
    enforced: bool,
) -> ContractDiff {
    let declared: Vec<&ColumnDecl> = declared.into_iter().collect();
    let is_declared = |name: &str| declared.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let undeclared: Vec<_> = actual.columns.iter().filter(|column| !is_declared(&column.name)).collect();

    let mut differences = Vec::new();
    for declaration in &declared {
        let Some(column) = actual.column(&declaration.name) else {
            let near = nearest(&declaration.name, undeclared.iter().map(|column| column.name.as_str()));
            let near = near.map(str::to_owned);
            differences.push(ContractDifference::Missing { column: declaration.name.clone(), near });
            continue;
        };
        differences.extend(type_difference(declaration, &column.data_type));
    }
    if enforced {
        let as_difference = |column: &&super::Column| ContractDifference::Undeclared {
            column: column.name.clone(),
            data_type: column.data_type.clone(),
        };
        differences.extend(undeclared.iter().map(as_difference));
        differences.extend(order_difference(&declared, actual));
    }
    ContractDiff { differences }
}

fn type_difference(declaration: &ColumnDecl, actual: &str) -> Option<ContractDifference> {
    let text = declaration.data_type.as_ref()?;
    let (column, declared) = (declaration.name.clone(), text.clone());
    match DataType::parse(text) {
        Ok(data_type) if data_type == DataType::of(actual) => None,
        Ok(_) => Some(ContractDifference::Type { column, declared, actual: actual.to_owned() }),
        Err(error) => Some(ContractDifference::UnreadableType { column, declared, error }),
    }
}

/// Only columns that both sides have are compared: a missing one is reported as such.
fn order_difference(declared: &[&ColumnDecl], actual: &Schema) -> Option<ContractDifference> {
    let declared_names: Vec<String> = declared
        .iter()
        .filter(|column| actual.column(&column.name).is_some())
        .map(|column| column.name.clone())
        .collect();
    let is_common = |name: &str| declared_names.iter().any(|declared| declared.eq_ignore_ascii_case(name));
    let actual_names: Vec<String> =
        actual.columns.iter().map(|column| column.name.clone()).filter(|name| is_common(name)).collect();
    let same = declared_names.len() == actual_names.len()
        && declared_names.iter().zip(&actual_names).all(|(one, other)| one.eq_ignore_ascii_case(other));
    (!same).then_some(ContractDifference::Order { declared: declared_names, actual: actual_names })
}

impl ContractDiff {
    /// Returns whether the contract holds.
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }
}

impl fmt::Display for ContractDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContractDifference::Missing { column, near: Some(near) } => {
                write!(f, "`{column}` is declared but not selected; did you mean `{near}`?")
            }
            ContractDifference::Missing { column, near: None } => write!(f, "`{column}` is declared but not selected"),
            ContractDifference::Type { column, declared, actual } => {
                write!(f, "`{column}` is declared {declared} but selected as {actual}")
            }
            ContractDifference::UnreadableType { column, declared, error } => {
                write!(f, "`{column}` is declared `{declared}`: {error}")
            }
            ContractDifference::Undeclared { column, data_type } => {
                write!(f, "`{column}` {data_type} is selected but not declared")
            }
            ContractDifference::Order { declared, actual } => {
                write!(f, "the declared order is {} but the query's is {}", declared.join(", "), actual.join(", "))
            }
        }
    }
}

impl fmt::Display for ContractDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.differences.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}
