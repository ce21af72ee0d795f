//! The partitions of scripts that go by a value of a payload: from `--partition` or `--payload`.

use std::collections::BTreeMap;

use pintail_core::partition::{PartitionKey, PayloadError, payload_key, value_key};
use pintail_core::plan::Hint;

use super::runnable::Runnable;
use super::{PlanRequest, RunnerError};

/// What the user gave for the scripts that have no calendar.
#[derive(Default)]
pub(super) struct Values {
    /// The partition of each script that goes by a value.
    pub keys: BTreeMap<usize, PartitionKey>,
    /// Which selected scripts have none, and why.
    pub hints: Vec<Hint>,
    /// Whether `--partition` was a value, and no period of a calendar.
    pub took_partition: bool,
}

impl Values {
    /// Returns the values for the `selected` scripts.
    pub(super) fn of(
        request: &PlanRequest,
        selected: &std::collections::BTreeSet<usize>,
        runnable: &Runnable<'_>,
    ) -> Result<Self, RunnerError> {
        let payload = request.payload.as_deref().map(read_payload).transpose()?;
        let mut values = Self::default();
        let has_calendar = selected.iter().any(|position| runnable.facts[*position].partition.is_some());
        for position in selected {
            let script = runnable.scripts[*position];
            let left_out = |reason: String| Hint::LeftOut { script: script.name().clone(), reason };
            let wrong = |error: PayloadError| RunnerError::Usage { message: format!("`{}`: {error}", script.name()) };
            if let (Some(column), Some(_)) = (script.increment_column(), &request.partition) {
                let reason = format!("it goes by increments of `{column}`, not by partitions that can be named");
                values.hints.push(left_out(reason));
            }
            let Some(path) = script.payload_path() else { continue };
            match (&request.partition, &payload) {
                (_, Some(payload)) => {
                    values.keys.insert(*position, payload_key(payload, path).map_err(wrong)?);
                }
                // A period for the scripts of a calendar is no value for this one.
                (Some(text), None) if has_calendar => values.hints.push(left_out(format!(
                    "`{text}` goes to the scripts with a calendar; to run this one for a value, select it by itself"
                ))),
                (Some(text), None) => {
                    values.keys.insert(*position, value_key(text).map_err(wrong)?);
                    values.took_partition = true;
                }
                (None, None) if request.asks_for_values() => values.hints.push(left_out(format!(
                    "its partition is a value at `{path}`: give it with `--partition <value>` or `--payload <json>`"
                ))),
                (None, None) => {}
            }
        }
        Ok(values)
    }
}

fn read_payload(text: &str) -> Result<serde_json::Value, RunnerError> {
    serde_json::from_str(text)
        .map_err(|error| RunnerError::Usage { message: format!("the payload is no JSON: {error}") })
}
